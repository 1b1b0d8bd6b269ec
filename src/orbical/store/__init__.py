"""Scans on disk: the Zarr folder that a scan fills, the `Scan` that reads it, and its blocks."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from .blocks import ScanArrays, arrays_of, is_scan
from .labeled_responses import opened, responses
from .record import Record

if TYPE_CHECKING:
    from .scan_result import Scan, load

__all__ = ["Record", "Scan", "ScanArrays", "arrays_of", "is_scan", "load", "opened", "responses"]


def __getattr__(name: str) -> Any:
    # On first use: what describes a scan needs the record, but neither xarray nor zarr.
    if name in ("Scan", "load"):
        return getattr(importlib.import_module(f"{__name__}.scan_result"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
