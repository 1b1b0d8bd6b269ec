"""Scans on disk: the Zarr folder that a scan fills, the `Scan` that reads it, and its blocks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._lazy import lazy_exports
from .file_access import (
    claimed_part,
    exists,
    explained_store_errors,
    in_turn,
    is_remote,
    locked,
    remove_leftovers,
    waiting_lock,
    write_file,
)
from .layout import ArraySpec, Fixed, fixed_arrays
from .record import (
    MOST_UNITS,
    DataEntry,
    GroupEntry,
    Json,
    ModelEntry,
    Record,
    RunEntry,
    ScoreEntry,
    TaskEntry,
    ViewsEntry,
)
from .scan_arrays import (
    AGREES,
    FINISHED,
    ScanArrays,
    StoredArrays,
    arrays_of,
    is_scan,
    opened_scan,
    responses,
    row_runs,
)
from .scan_result import Scan, load

__all__ = [
    "Record", "Scan", "ScanArrays", "arrays_of", "is_scan", "load", "opened_scan", "responses",
]  # fmt: skip

if TYPE_CHECKING:
    from .creation import check_overwritable, create
    from .verification import repair, verify
    from .zarr_store import Store, open_store
else:  # what describes a scan needs neither xarray nor zarr
    __getattr__ = lazy_exports(
        __name__,
        {
            "creation": "check_overwritable create",
            "verification": "repair verify",
            "zarr_store": "Store open_store",
        },
    )
