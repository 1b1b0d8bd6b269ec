"""Evaluate models along orbits: plan a scan, run it unit by unit, and commit each unit."""

from __future__ import annotations

from .engine import scan
from .recipe import as_task

__all__ = ["as_task", "scan"]
