"""Calibration of the pixels of a segmentation, from sums by bin of confidence.

A segmentation scan stores, for every sample and element, how many pixels fall in each of 15 bins of
confidence, and their summed confidence and correctness. That is all a binned error needs, whatever
the size of the images.
`pairs_within` makes samples of the regions.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from ...errors import InputError, number_of_bins
from ...store import Scan, ScanArrays, arrays_of, responses
from ..intervals.interval_ends import Interval
from ..measures.binned import Reliability, error_of, reliability_of_bins
from ..registry import Draws
from .labeled_results import calibration_groups, labeled_calibration, labeled_variables
from .pooled import pooled_ece_interval

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["pixel_reliability"]


SUMS = ("pixel_count", "pixel_confidence", "pixel_correct")


def holds_pixel_calibration(scan: Scan | xr.Dataset) -> bool:
    """Check whether a scan is of segmentation with targets."""
    return {*SUMS} <= labeled_variables(scan)


def bins_are_of_points(scan: Scan | xr.Dataset) -> bool:
    """Check whether what a scan holds in bins are the points of clouds, not pixels."""
    return "point_class" in labeled_variables(scan)


def pixel_errors_along(
    scan: Scan | xr.Dataset,
    name: str,
    by: str | None,
    options: dict[str, Any] | None,
    draws: Draws | None,
) -> xr.DataArray:
    """Return the binned calibration error of all pixels at each element, `[model, element]`.

    With `draws`, with its interval: pixels of an image belong together, so images are drawn.
    """
    arrays = arrays_of(scan)
    options = _checked_pixel_options(arrays, name, options, draws is not None)
    like = responses(scan, "mean_confidence")  # with the attributes that figures need
    groups, members = calibration_groups(like, by)
    if draws is not None:
        found = _pixel_bin_intervals(arrays, members, len(groups), options["bins"], draws)
        return labeled_calibration(name, like, groups, by, found)
    diagram = _diagram_of_pixels(arrays, members, len(groups), options["bins"])
    values = error_of(diagram, options["norm"])
    values = torch.where(diagram.count.sum(-1) > 0, values, torch.nan)
    return labeled_calibration(name, like, groups, by, [(..., {"value": values.numpy()})])


def pixel_errors_pooled(
    scan: Scan | xr.Dataset, name: str, options: dict[str, object] | None, draws: Draws
) -> list[Interval]:
    """Return the binned error of the pixels of all positions pooled, for each model.

    Images are drawn with their whole orbits.
    """
    arrays = arrays_of(scan)
    bins = _checked_pixel_options(arrays, name, options, interval=True)["bins"]
    found = []
    for model in range(len(arrays.models)):
        total = np.zeros((3, arrays.samples, 1, bins))
        for run, sums in _sums(arrays, model, bins):
            total[:, :, 0] += np.einsum("k,snkb->snb", arrays.weights[run], sums)
        found += _of_images(total, draws)
    return found


def pixel_error_intervals(
    scan: Scan, element: int, *, bins: int, level: float, seed: int
) -> list[Interval]:
    """Return the binned error of the pixels at one element with its interval, for each model."""
    arrays, draws = arrays_of(scan), Draws(level=level, seed=seed)
    return [
        one
        for model in range(len(arrays.models))
        for run, sums in _sums(arrays, model, bins)
        if run.start <= element < run.stop
        for one in _of_images(sums[:, :, [element - run.start]], draws)
    ]


def _checked_pixel_options(
    arrays: ScanArrays, name: str, options: dict[str, object] | None, interval: bool
) -> dict[str, Any]:
    if options is None or (interval and options["norm"] != "l1"):
        what = "points" if "point_class" in arrays else "pixels"
        any_of = "a calibration error over bins of equal width, such as 'ece',"
        kind = "'ece', because an interval is asked for," if interval else any_of
        raise InputError(
            "measure",
            f"{kind} for {what}, which are stored by bin",
            repr(name),
            remedy="pairs_within(scan) has all measures",
        )
    return options


def _pixel_bin_intervals(
    arrays: ScanArrays, members: np.ndarray, groups: int, bins: Any, draws: Draws
) -> Iterator[tuple[tuple[int, int, int], dict[str, Any]]]:
    """Yield the error with its interval at each model, group and element."""
    for model in range(len(arrays.models)):
        for run, sums in _sums(arrays, model, bins):
            for group in range(groups):
                found = _of_images(sums[:, members == group], draws)
                for element, one in zip(range(run.start, run.stop), found, strict=True):
                    yield (model, group, element), vars(one)


def _of_images(sums: np.ndarray, draws: Draws) -> list[Interval]:
    """Return the error of sums `[3, N, K, B]` over the pixels of N images, at each of K places."""
    level, seed = draws["level"], draws["seed"]
    return [
        pooled_ece_interval(right - sure, count.sum(1), right.sum(), count.sum(0), level, seed)
        for count, sure, right in np.moveaxis(sums, 2, 0)
    ]


def _sums(arrays: ScanArrays, model: int, bins: Any) -> Iterator[tuple[slice, np.ndarray]]:
    """Yield runs of elements with the sums `[3, N, K, B]` of each image there, by bin."""
    wanted = _whole_share(arrays.shape(SUMS[0])[-1], bins)
    for run, parts in arrays.element_blocks(*SUMS, model=model):
        held = np.stack(parts).swapaxes(1, 2).astype(np.float64)
        shape = (*held.shape[:-1], wanted, held.shape[-1] // wanted)
        yield run, np.nan_to_num(held).reshape(shape).sum(-1)  # NaN: not finished


def _whole_share(stored: int, bins: Any) -> int:
    """Check that stored bins make up the wanted number of bins."""
    wanted = number_of_bins(bins)
    if stored % wanted:
        known = ", ".join(str(one) for one in range(1, stored + 1) if stored % one == 0)
        raise InputError("bins", f"one of {known} for pixels in {stored} bins", wanted)
    return wanted


def _diagram_of_pixels(arrays: ScanArrays, members: Any, groups: int, bins: Any) -> Reliability:
    """Return the reliability diagram `[model, group, element, bin]` of all pixels."""
    wanted = _whole_share(arrays.shape(SUMS[0])[-1], bins)
    shape = (3, len(arrays.models), groups, len(arrays.group), wanted)
    sums = torch.zeros(shape, dtype=torch.float64)
    for model in range(len(arrays.models)):
        for rows, blocks in arrays.sample_blocks(*SUMS, model=model):
            member = torch.from_numpy(members[rows])
            for total, block in zip(sums[:, model], blocks, strict=True):
                values = torch.from_numpy(block).double().nan_to_num(0.0)  # NaN: not finished
                total.index_add_(0, member, values.unflatten(-1, (wanted, -1)).sum(-1))
    return reliability_of_bins(sums[0].round().long(), *sums)


def calibration_of_sums(
    sums: np.ndarray, *, level: float = 0.95, seed: int = 0
) -> tuple[Reliability, Interval]:
    """Return the reliability diagram and the ECE of samples that hold several outputs each.

    Args:
        sums: `[3, N, B]`, the number of outputs of each of N samples, their summed confidence and
            their summed correctness, in B bins of equal width.
        level: the level of the interval, for which samples are drawn whole.
        seed: the seed of the draws.

    Example:
        >>> sums = np.array([[[0, 10.0]], [[0, 9.0]], [[0, 6.0]]]).repeat(20, 1)
        >>> diagram, error = calibration_of_sums(sums)
        >>> diagram.accuracy[1].item(), round(float(error.value), 3)
        (0.6, 0.3)
    """
    (found,) = _of_images(sums[:, :, None], {"level": level, "seed": seed})
    total = torch.from_numpy(sums.sum(1))
    return reliability_of_bins(total[0].round().long(), *total), found


def pixel_reliability(scan: Scan | xr.Dataset, *, bins: int = 15) -> Reliability:
    """Return the reliability diagrams of the pixels of a segmentation scan, at each element.

    Args:
        scan: a labeled segmentation scan, or its `data`.
        bins: the number of bins: 15, 5, 3 or 1, because pixels are stored in 15.

    Returns:
        The numbers of each bin, `[model, element, bin]`.

    Raises:
        InputError: if the scan is of another task, or `bins` is another number.

    Example:
        >>> import orbical as ob
        >>> images = torch.rand(4, 1, 8, 8)
        >>> scan = ob.scan(lambda x: torch.cat([-x, x], 1), (images, images[:, 0] > 0.5),
        ...                group="flips", task="segmentation", progress=False)
        >>> pixel_reliability(scan).count.sum(-1)
        tensor([[256, 256, 256, 256]])
    """
    if not holds_pixel_calibration(scan):
        raise InputError("scan", "a labeled scan of a segmentation task", "another")
    arrays = arrays_of(scan)
    found = _diagram_of_pixels(arrays, np.zeros(arrays.samples, np.int64), 1, bins)
    parts = (found.count, found.share, found.confidence, found.accuracy)
    return Reliability(found.edges, *(part[:, 0] for part in parts))
