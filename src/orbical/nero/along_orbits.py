"""Responses along orbits, of single samples or averaged."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .._lazy import xr
from ..errors import InputError, check_name
from ..store import Scan, ScanArrays, arrays_of, responses
from .sums_and_means import least_response, response_bounds, summed_values, sums_over


def aggregate(
    scan: Scan | xr.Dataset,
    by: str | None = None,
    metric: str = "score",
    *,
    interval: bool = False,
    level: float = 0.95,
) -> xr.DataArray:
    """Average responses over samples at each element: the aggregate NERO plot.

    Args:
        scan: a scan, or its `data`.
        by: a coordinate on `sample`, such as `"label"`; its values become a dimension, with the
            number of samples of each as the coordinate `samples`.
        metric: as in `responses`, except the predicted class: class indices have no mean.
        interval: whether to attach the ends of the interval as the coordinates `low` and `high`:
            that of `orbical.calibration.bounded_mean_interval` for shares, otherwise of
            `mean_interval`; and its `caution`, empty where nothing speaks against it.
        level: nominal coverage of the interval.

    Returns:
        `[model, element]`, or `[model, by, element]`.

    Raises:
        InputError: if there is no such metric or coordinate.

    See Also:
        individual: The responses of single samples.
        summary: The same in a few numbers.
        orbical.figures.aggregate: The figure.

    References:
        Zhao et al., Evaluating Machine Learning Models with NERO, section 2.2 and figure 4.

    Example:
        >>> import orbical as ob, torch
        >>> images, labels = ob.datasets.digits()
        >>> net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 10))
        >>> scan = ob.scan({"untrained": net}, (images[:50], labels[:50]), group="rotations:8",
        ...                task="classification", progress=False)
        >>> by_digit = ob.nero.aggregate(scan, by="label")
        >>> dict(by_digit.sizes), by_digit.attrs["meaning"]
        ({'model': 1, 'label': 10, 'element': 8}, 'probability of the true class')
    """
    like, arrays = responses(scan, metric), arrays_of(scan)
    name = str(like.name)
    if arrays.dtype(name).kind in "iu":
        expected = "one that has a mean, such as 'score', 'confidence' or 'correct'"
        raise InputError("metric", expected, f"{metric!r}, which are class indices")
    coords = {coord: one for coord, one in like.coords.items() if "sample" not in one.dims}
    dims = [dim for dim in like.dims if dim != "sample"]
    sets = None
    if by is None:
        sums = sums_over(arrays, name)
    else:
        known = [str(coord) for coord, one in like.coords.items() if one.dims == ("sample",)]
        check_name("by", by, [coord for coord in known if coord != "sample"])
        values, places = np.unique(np.asarray(like[by]), return_inverse=True)
        sets = places.reshape(-1)
        sums = sums_over(arrays, name, sets, len(values))
        coords |= {by: values, "samples": (by, np.bincount(sets))}
        dims.insert(-1, by)
    values_of = summed_values(arrays, name, sets) if interval else None
    least = least_response(arrays, name)
    mean_ends = sums.interval(response_bounds(arrays, name), least, level, values_of)
    cautions = np.broadcast_to(np.asarray(mean_ends.caution, dtype=str), mean_ends[0].shape)
    mean, *ends = (
        (part if by else part[:, 0]) if "model" in dims else (part[0] if by else part[0, 0])
        for part in (*mean_ends, cautions)
    )
    if interval:
        names = ("low", "high", "caution")
        coords |= {end: (dims, part) for end, part in zip(names, ends, strict=True)}
    return xr.DataArray(mean, coords, dims, name=name, attrs=_attributes(like, arrays))


def individual(
    scan: Scan | xr.Dataset, sample: int | Sequence[int], metric: str = "score"
) -> xr.DataArray:
    """Select the responses of one or several samples: the individual NERO plot.

    Args:
        scan: a scan, or its `data`.
        sample: an index along `sample`, from 0, or several.
        metric: as in `responses`.

    Returns:
        `[model, element]`, or `[model, sample, element]` for several; the coordinate `sample`
        holds their indices, and `label` their labels if there are any.

    Raises:
        InputError: if there is no such sample or metric.

    See Also:
        aggregate: The mean over samples.

    References:
        Zhao et al., Evaluating Machine Learning Models with NERO, section 2.3 and figure 5.

    Example:
        >>> import orbical as ob, torch
        >>> images, labels = ob.datasets.digits()
        >>> net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 10))
        >>> scan = ob.scan(net, (images[:20], labels[:20]), group="rotations:8",
        ...                task="classification", progress=False)
        >>> third = ob.nero.individual(scan, 3)
        >>> third.dims, int(third.label)
        (('model', 'element'), 3)
    """
    values = responses(scan, metric)
    count = values.sizes["sample"]
    chosen = np.asarray(sample)
    if chosen.dtype.kind not in "iu":
        raise InputError("sample", "an integer or several", repr(sample))
    if chosen.size and not 0 <= chosen.min() <= chosen.max() < count:
        wrong = chosen[(chosen < 0) | (chosen >= count)].flat[0]
        raise InputError("sample", f"0 to {count - 1}", wrong)
    if "sample" not in values.coords:
        values = values.assign_coords(sample=np.arange(count))
    selected = values.isel(sample=chosen if chosen.ndim else int(chosen))
    selected.attrs = _attributes(values, arrays_of(scan))
    return selected


def _attributes(values: xr.DataArray, arrays: ScanArrays) -> dict[str, object]:
    """Return the attributes of responses, with what is rounding in those of molecules."""
    if "numbers" not in arrays:
        return values.attrs
    from .molecule_violations import violation_rounding

    return {**values.attrs, "rounding": violation_rounding(arrays, str(values.name))}
