"""Evaluate models along orbits: plan a scan, run it unit by unit, and commit each unit."""

from __future__ import annotations

from .engine import scan

__all__ = ["scan"]
