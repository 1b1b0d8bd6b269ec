"""Scans on disk: the Zarr folder that a scan fills, and the `Scan` that reads it."""

from __future__ import annotations

from .scan_result import Scan, load

__all__ = ["Scan", "load"]
