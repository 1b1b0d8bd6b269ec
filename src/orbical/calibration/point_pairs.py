"""Calibration by point: the confidence of a key point, a residue or a node against its truth."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..errors import InputError
from ._orbit_arrays import stacked_pairs

if TYPE_CHECKING:
    import xarray as xr

    from ..store.scan_result import Scan


def points(scan: Scan | xr.Dataset) -> xr.Dataset:
    """Return each point of a scan as a sample of its own, for the measures of calibration.

    A classified point is correct if its class is. A key point is correct if it is within the task's
    `radius` times the size of its sample from the truth. Points of one sample are not independent,
    which intervals ignore.

    Args:
        scan: a labeled scan of `point_classification`, or of `key_points` by models with
            confidences, or its `data`.

    Returns:
        A dataset of `confidence` and `correct` `[model, sample, element]`, in which `sample` runs
        over samples and their points, NaN where a point is padding, unlabeled or out of view.
        `along_orbit`, `pair_at` and `reliability_at` take it.

    Raises:
        InputError: if the scan is of another task, or has no confidences.

    Example:
        >>> import orbical as ob, torch
        >>> truth = torch.tensor([[[1.0, 4.0], [6.0, 4.0]]])
        >>> def sure(images):
        ...     return torch.tensor([[[1.0, 4.0, 0.9], [6.0, 4.0, 0.8]]]).repeat(len(images), 1, 1)
        >>> scan = ob.scan(sure, (torch.zeros(1, 1, 8, 8), truth), group="cyclic:4",
        ...                task=ob.tasks.KeyPoints((8, 8)), progress=False)
        >>> dict(points(scan)["confidence"].sizes)
        {'model': 1, 'sample': 2, 'element': 4}
    """
    data: xr.Dataset = getattr(scan, "data", scan)  # type: ignore[arg-type]
    names = {"point_confidence": "confidence", "point_correct": "correct"}
    for name in names:
        if name not in getattr(data, "data_vars", ()):
            raise InputError(
                "scan", "a labeled scan of points with confidences", f"one without {name!r}"
            )
    meanings = {
        "confidence": "confidence of a point",
        "correct": "whether a point is correct",
    }
    return stacked_pairs(data, names, "point", meanings)
