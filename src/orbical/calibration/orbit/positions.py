"""Calibration along the orbit: a measure at each group element, for each model of a scan.

A scan stores confidence and correctness for every model, sample and element. The binned error is
made from sums over blocks of samples; other measures need all samples of an element, and are
computed for a block of elements at a time. The whole scan is never in memory.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from ...errors import InputError, number_of_bins, unknown_name
from ...store import Scan, ScanArrays, arrays_of, responses, row_runs
from ..intervals.measure_intervals import interval as interval_of
from ..measures.binned import Reliability, bin_index, ece, error_of, reliability_of_bins
from ..measures.binned import reliability as reliability_of
from ..registry import MEASURES, RESAMPLES, Draws, Measure, MeasureLike, bound_measure
from .labeled_results import calibration_groups, labeled_calibration, labeled_variables
from .pixel_bins import holds_pixel_calibration, pixel_errors_along
from .regression_orbit import holds_regression_calibration, regression_along

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["along_orbit", "pair_at", "pairs_along", "reliability_at"]


MEASURED_VALUES = 1 << 20
"""Confidences that a measure is given at once; it may need ten times their memory."""


def along_orbit(
    scan: Scan | xr.Dataset,
    measure: MeasureLike = "ece",
    *,
    by: str | None = None,
    interval: bool = False,
    level: float = 0.95,
    resamples: int = RESAMPLES,
    seed: int = 0,
    **options: Any,
) -> xr.DataArray:
    """Return a calibration measure at each group element, for each model of a scan.

        value[model, element] = measure over samples of (confidence, correct) at that element

    A model can be calibrated on upright inputs and overconfident on rotated ones, which a single
    number hides. Samples whose scan is unfinished are left out. A regression scan with
    uncertainty has the measures of regression, of `(mean, variance, truth)` in the frame of each
    element, and "aleatoric_bleed", whose option `truth` is the true variance (0 by default; of full
    covariances it is the squared Frobenius norm); those whose value for a calibrated
    model is not 0 have it as the attribute `floor`. A segmentation scan has the calibration errors
    over bins of equal width, of all its pixels; the interval of "ece" draws whole images.

    Args:
        scan: a labeled scan of classification or segmentation, or of regression with uncertainty;
            or its `data`.
        measure: the name of a measure of `(confidence, correct)`, or such a function that reduces
            over the last axis; for regression of `(mean, variance, target)`. A scan has no
            measures of all outputs, such as "nll".
        by: a coordinate on `sample`, such as "label": its values become a dimension. For
            regression also "component": each component of the target separately.
        interval: whether to attach the coordinates `low`, `high` and `calibrated`, of the array's
            shape; see `interval`.
        level: nominal coverage of the interval.
        resamples: number of draws for the interval.
        seed: seed of these draws.
        options: options of the measure, such as `bins`.

    Returns:
        `[model, element]` or `[model, by, element]`, with the attributes that figures need.

    See Also:
        mean_over_orbit: The mean of all positions.
        pooled_over_orbit: All positions in one set.
        verdict: Against a threshold.

    >>> import orbical as ob
    >>> images, labels = ob.datasets.digits()
    >>> net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 10))
    >>> scan = ob.scan(net, (images[:100], labels[:100]), group="rotations:8",
    ...                task="classification", progress=False)
    >>> found = along_orbit(scan, "ece", bins=10)
    >>> dict(found.sizes), found.attrs["metric"]
    ({'model': 1, 'element': 8}, 'ece')
    """
    draws: Draws = {"level": level, "resamples": resamples, "seed": seed}
    if holds_regression_calibration(scan):
        return regression_along(scan, measure, by, draws if interval else None, options)
    binned = equal_width_options(measure, options)
    if holds_pixel_calibration(scan):
        name = bound_measure(measure, "pair", options).name
        return pixel_errors_along(scan, name, by, binned, draws if interval else None)
    like, arrays = pair_arrays_at_positions(scan)
    chosen = bound_measure(measure, "pair", options)
    groups, members = calibration_groups(like, by)
    if binned is not None and not interval:
        values = _binned_errors_at_positions(arrays, members, len(groups), binned)
        return labeled_calibration(chosen.name, like, groups, by, [(..., {"value": values})])

    def at_elements(*pair: Tensor) -> dict[str, Any]:
        if not interval:
            return {"value": chosen.values(chosen.value, *pair)}
        return vars(interval_of(chosen, *pair, **draws))

    parts = (
        (place, at_elements(*pair))
        for place, pair in _finished_pairs_at_positions(arrays, members, len(groups))
    )
    return labeled_calibration(chosen.name, like, groups, by, parts)


def reliability_at(
    scan: Scan | xr.Dataset, element: int, model: str | None = None, **options: Any
) -> Reliability:
    """Return the numbers of the reliability diagram of one model at one group element.

    Args:
        scan: a labeled classification scan, or its `data`.
        element: the index of the element.
        model: the name of a model; optional if the scan has only one.
        options: options of `reliability`, such as `bins`.

    Returns:
        The diagram.

    Example:
        >>> import orbical as ob
        >>> images, labels = ob.datasets.digits()
        >>> net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 10))
        >>> scan = ob.scan(net, (images[:100], labels[:100]), group="rotations:8",
        ...                task="classification", progress=False)
        >>> int(reliability_at(scan, 2).count.sum())
        100
    """
    return reliability_of(*pair_at(scan, element, model), **options)


def pair_at(
    scan: Scan | xr.Dataset, element: int, model: str | None = None
) -> tuple[Tensor, Tensor]:
    """Return `(confidence [N], correct [N])` of one model at one group element.

    Args:
        scan: a labeled classification scan, or its `data`.
        element: the index of the element.
        model: the name of a model; optional if the scan has only one.

    Returns:
        The pair of all finished samples.

    Example:
        >>> import orbical as ob
        >>> images, labels = ob.datasets.digits()
        >>> net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 10))
        >>> scan = ob.scan(net, (images[:20], labels[:20]), group="cyclic:4", task="classification",
        ...                progress=False)
        >>> confidence, correct = pair_at(scan, 0)
        >>> confidence.shape, correct.dtype
        (torch.Size([20]), torch.bool)
    """
    _, arrays = pair_arrays_at_positions(scan)
    size = len(arrays.group)
    try:
        place = operator.index(element)
    except TypeError:
        raise InputError("element", "a whole number", repr(element)) from None
    if not 0 <= place < size:
        raise InputError("element", f"0 to {size - 1}", place)
    z, y = pairs_at_element(arrays, model_index(arrays, model), place)
    finished = ~np.isnan(z)
    return torch.from_numpy(z[finished]), torch.from_numpy(y[finished])


def pairs_at_element(arrays: ScanArrays, model: int, element: int) -> tuple[np.ndarray, np.ndarray]:
    """Read `(confidence [N], correct [N])` of all samples at one element, NaN if unfinished."""
    blocks = arrays.sample_blocks("confidence", "correct", model=model)
    z, y = zip(*([part[:, element] for part in parts] for _, parts in blocks), strict=True)
    return np.concatenate(z), np.concatenate(y) > 0


def model_index(arrays: ScanArrays, model: str | None) -> int:
    """Return the place of a model by its name, which a scan of one model does not need."""
    names = arrays.models
    if model is None and len(names) > 1:
        raise InputError("model", f"one of {', '.join(names)}", "None")
    if model is not None and model not in names:
        raise unknown_name("model", model, names)
    return 0 if model is None else names.index(model)


def pairs_along(scan: Scan | xr.Dataset) -> Iterator[tuple[str, Tensor, Tensor]]:
    """Yield each model's name and its pair `(confidence [K, N], correct [K, N])`.

    Args:
        scan: a labeled classification scan, or its `data`.

    Yields:
        Name, confidence and correctness of the samples that are finished at all elements.

    Example:
        >>> import orbical as ob
        >>> images, labels = ob.datasets.digits()
        >>> net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 10))
        >>> scan = ob.scan(net, (images[:20], labels[:20]), group="cyclic:4", task="classification",
        ...                progress=False)
        >>> [confidence.shape for _, confidence, _ in pairs_along(scan)]
        [torch.Size([4, 20])]
    """
    _, arrays = pair_arrays_at_positions(scan)
    for place, name in enumerate(arrays.models):
        z, y = (arrays.read(part, model=place) for part in ("confidence", "correct"))
        finished = ~np.isnan(z).any(1)
        kept = (np.ascontiguousarray(part[finished].T) for part in (z, y > 0))
        z_, y_ = (torch.from_numpy(part) for part in kept)
        yield name, z_, y_


def pair_arrays_at_positions(scan: Scan | xr.Dataset) -> tuple[xr.DataArray, ScanArrays]:
    """Return the labels of results, and the arrays `confidence` and `correct` of a labeled scan.

    Where confidence is missing, so is correctness, whatever its array holds.
    """
    held = labeled_variables(scan)
    for name in ("confidence", "correct"):
        if name not in held:
            remedy = "pass pairs_within(scan)" if holds_pixel_calibration(scan) else ""
            if name == "confidence" and {"correct", "point_correct"} & held:
                remedy = remedy or "let the model return a confidence with each prediction"
            unlabeled = name == "correct" and not remedy
            raise InputError(
                "scan",
                "a labeled scan of classification, or of regression with uncertainty",
                "one without labels" if unlabeled else f"one without {name!r}",
                remedy="scan data with labels" if unlabeled else remedy,
            )
    return responses(scan, "confidence"), arrays_of(scan)


def equal_width_options(measure: Any, options: dict[str, Any]) -> dict[str, Any] | None:
    """Return the options of an ECE over bins of equal width, which needs sums only; else None."""
    entry = MEASURES.get(measure) if isinstance(measure, str) else measure
    if not isinstance(entry, Measure) or entry.function is not ece:
        return None
    chosen = {**entry.settings, **options}
    return chosen if chosen["binning"] == "width" else None


def _binned_errors_at_positions(
    arrays: ScanArrays, members: np.ndarray, groups: int, options: dict[str, Any]
) -> np.ndarray:
    """Return the binned error `[model, group, element]`, summed over blocks of samples."""
    models, elements = len(arrays.models), len(arrays.group)
    bins = number_of_bins(options["bins"])
    shape = (models, groups, elements, bins)
    cells = groups * elements * bins
    count = torch.zeros(models, cells, dtype=torch.int64)
    sums = torch.zeros(2, models, cells, dtype=torch.float64)
    column = torch.arange(elements)
    for model in range(models):
        for rows, parts in arrays.sample_blocks("confidence", "correct", model=model):
            z, y = (torch.from_numpy(np.ascontiguousarray(part)) for part in parts)
            place = torch.from_numpy(members[rows])[:, None] * elements + column
            finished = ~z.isnan()
            if not finished.all():
                place, z, y = (part[finished] for part in (place, z, y))
            place = (place * bins + bin_index(z, bins)).view(-1)
            count[model] += torch.bincount(place, minlength=cells)
            for total, values in zip(sums, (z, y), strict=True):
                total[model] += torch.bincount(place, values.double().view(-1), minlength=cells)
    count, sums = count.view(shape), sums.view(2, *shape)
    diagram = reliability_of_bins(count, count.double(), *sums)
    error = error_of(diagram, options["norm"])
    return torch.where(count.sum(-1) > 0, error, torch.nan).numpy()


def _finished_pairs_at_positions(
    arrays: ScanArrays, members: np.ndarray, groups: int
) -> Iterator[tuple[tuple[int, int, slice], list[Tensor]]]:
    """Yield places `[model, group, element]` with the pairs `[K, N]` that are finished there."""
    of_group = [members == group for group in range(groups)]
    for model in range(len(arrays.models)):
        for run, z, y in pair_blocks(arrays, model):
            seen = ~np.isnan(z)
            for group, mine in enumerate(of_group):
                for elements in _alike_positions(seen[:, mine]):
                    kept = seen[elements].all(0) & mine
                    if kept.any():
                        pair = (np.ascontiguousarray(part[elements][:, kept]) for part in (z, y))
                        at = slice(run.start + elements.start, run.start + elements.stop)
                        yield (model, group, at), [torch.from_numpy(part) for part in pair]


def pair_blocks(arrays: ScanArrays, model: int) -> Iterator[tuple[slice, np.ndarray, np.ndarray]]:
    """Yield runs of elements with the pairs `[K, N]` of a model, to measure."""
    step = max(1, MEASURED_VALUES // max(1, arrays.samples))
    for block, (z, y) in arrays.element_blocks("confidence", "correct", model=model):
        for run in row_runs(len(z), step):
            yield slice(block.start + run.start, block.start + run.stop), z[run], y[run] > 0


def _alike_positions(seen: np.ndarray) -> list[slice]:
    """Split elements `[K, N]` into runs in which the same samples have an output.

    Usually all elements are one run; detections come and go along an orbit.
    """
    whole = seen.all(0) | ~seen.any(0)
    if whole.all():
        return [slice(0, len(seen))]
    return [slice(place, place + 1) for place in range(len(seen))]
