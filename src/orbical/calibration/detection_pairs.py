"""Calibration of detections: confidence against precision at an IoU threshold, along the orbit.

A detection scan stores, for every sample and element, the confidence of each detection and whether
it is correct, that is matched to an object at the scan's IoU threshold. The share of correct
detections at a confidence is their precision, which equals the confidence of a calibrated detector.
Their number differs from view to view.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..errors import InputError
from ._orbit_arrays import stacked_pairs

if TYPE_CHECKING:
    import xarray as xr

    from ..store.scan_result import Scan


def detections(scan: Scan | xr.Dataset) -> xr.Dataset:
    """Return each detection of a scan as a sample of its own, for the measures of calibration.

    Args:
        scan: a labeled detection scan, or its `data`.

    Returns:
        A dataset of `confidence` and `correct` `[model, sample, element]`, in which `sample` runs
        over samples and their slots for a detection, NaN where there is none (or where it matches
        only a hardly visible object). `along_orbit`, `pair_at` and `reliability_at` take it.

    Example:
        >>> import orbical as ob, torch
        >>> made = ob.datasets.scenes(2, window=32, radius=8)
        >>> def center(views):
        ...     return torch.tensor([[[8.0, 8, 24, 24, 0.6, 0]]]).repeat(len(views), 1, 1)
        >>> task = ob.tasks.Detection(ob.actions.Window(32), most=2)
        >>> scan = ob.scan(center, (made["images"], made["objects"]), group="translations:8:8",
        ...                task=task, progress=False)
        >>> found = detections(scan)
        >>> dict(found["confidence"].sizes)
        {'model': 1, 'sample': 4, 'element': 9}
        >>> ob.calibration.along_orbit(found, "ece").shape
        (1, 9)
    """
    data: xr.Dataset = getattr(scan, "data", scan)  # type: ignore[arg-type]
    for name in ("box_score", "box_correct"):
        if name not in getattr(data, "data_vars", ()):
            raise InputError("scan", "a labeled scan of a detection task", f"one without {name!r}")
    names = {"box_score": "confidence", "box_correct": "correct"}
    meanings = {
        "confidence": "confidence of a detection",
        "correct": "whether a detection is correct",
    }
    return stacked_pairs(data, names, "detection", meanings)
