"""Calibration of the subset: reliability diagrams, cumulative curves and errors."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import SupportsFloat

import numpy as np
import torch
from torch import Tensor

from ..._threads import in_threads
from ...calibration import (
    Interval,
    Reliability,
    calibration_of_sums,
    caution,
    caution_evidence_of_pairs,
    cumulative_curve,
    error_verdict,
    pooled_reliability,
    reliability,
)
from ...store import Json
from . import subset_curves
from .class_answers import has_class_answers, has_class_sets
from .element_columns import alike_element_columns, columns_of_view, pairs_of_signed
from .scan_view import ScanView
from .subset_request import Answer, Subset, SubsetRequest, unavailable_request

Array = np.ndarray

BINS = 15
CURVE_POINTS = 101
MOST_PAIRS = 1 << 19
"""Pairs of whole orbits that are sorted. Of more, every n-th sample is used."""


PARTS = {
    "reliability": ("pixel_count", "pixel_confidence", "pixel_correct"),
    "regions": ("region_confidence", "region_correct"),
}
"""What a sample with many outputs stores of them: sums by bin, or each with its confidence."""


def page_calibration_faces(view: ScanView) -> list[str]:
    """List what the calibration section can show of a scan."""
    if PARTS["reliability"][0] in view.reader:
        return [name for name, arrays in PARTS.items() if arrays[0] in view.reader]
    if not {"confidence", "correct"} <= view.metrics.keys():
        return []
    sets = [("confusion", has_class_answers(view)), ("sets", has_class_sets(view))]
    return ["reliability", *(name for name, there in sets if there)]


def subset_calibration_plots(request: SubsetRequest) -> Answer:
    """Answer the reliability diagram, the cumulative curves and errors of each model shown."""
    view, subset = request.view, request.subset
    known = page_calibration_faces(view)
    if not known:
        return unavailable_request("the scan stores no confidence and correctness")
    place = None if request.selection.scope == "orbit" else request.element
    parts = request.selection.answers if request.selection.answers in known else "reliability"
    within = parts in PARTS and PARTS[parts][0] in view.reader
    make = (
        partial(_calibration_plots_of_parts, subset, parts)
        if within
        else partial(_calibration_plots_of_model, subset)
    )
    key = ("calibration", parts, place, subset.reference, *subset.key)
    plots = [
        view.cache.get_or_compute((*key, model), partial(make, model, place))
        for model in request.models
    ]
    about, arrays = _calibration_plots_answer(request, plots)
    what = {"reliability": "points" if "point_class" in view.reader else "pixels"}.get(parts, parts)
    return about | ({"parts": what} if within else {}), arrays


def _calibration_plots_of_parts(subset: Subset, parts: str, model: int, place: int | None) -> Json:
    """Return the plots of the pixels or regions of all samples, at an element or over orbits."""
    view, sums = subset.view, np.zeros((3, subset.view.samples, BINS))
    weights = view.group.weights if place is None else np.eye(len(view.group))[place]
    seen = np.flatnonzero(weights)
    for rows in view.reader.blocks(PARTS[parts][0]):
        read = partial(view.reader.read, rows=rows, model=model, keep=False)
        held = [np.asarray(read(name)[:, seen], np.float64) for name in PARTS[parts]]
        stacked = np.stack(held) if len(held) == 3 else _binned(*held)
        sums[:, rows] = np.einsum("k,snkb->snb", weights[seen], np.nan_to_num(stacked))
    diagram, error = calibration_of_sums(sums[:, subset.rows])
    if not diagram.count.sum():
        return _too_few(0)
    order = np.append(0, np.cumsum(diagram.share.numpy()))
    steps = np.linspace(0, 1, CURVE_POINTS)
    sums_of_bins = [np.append(0, np.cumsum(part.numpy())) for part in _terms(diagram)]
    curves = [np.interp(steps, order, part) for part in sums_of_bins]
    return _calibration_plot(diagram, curves, subset_curves.subset_interval_ends(error))


def _binned(sure: Array, right: Array) -> Array:
    """Sum outputs `[n, K, C]` by bin of confidence, `[3, n, K, B]`; NaN is none."""
    known = np.isfinite(sure)
    bins = np.clip(np.ceil(np.nan_to_num(sure) * BINS).astype(int) - 1, 0, BINS - 1)
    inside = (bins[..., None] == np.arange(BINS)) & known[..., None]
    return np.stack([np.where(inside, part[..., None], 0).sum(2) for part in (known, sure, right)])


def calibration_along(request: SubsetRequest) -> list[Answer]:
    """Answer `subset_calibration_plots` of each element, and last of whole orbits, in one pass."""
    subset, count = request.subset, len(request.view.group)
    errors = subset_curves.subset_measures(subset, subset_curves.WITH_INTERVAL)
    each = []
    for model in request.models:
        ends = np.stack([errors[part][model] for part in subset_curves.ENDS], -1)
        # Small arrays kept between the large ones of each turn would keep that memory in pieces.
        drawn = {name: np.empty((count, size), kind) for name, (size, kind) in _DRAWN.items()}
        make = partial(_plots_of_run, subset, ends, drawn)
        runs = in_threads(make, subset_curves.element_runs([model], count, subset.count))
        each.append(itertools.chain.from_iterable(runs))
    answers = [
        _calibration_plots_answer(request.but(element=element, scope="element"), [*plots])
        for element, plots in enumerate(zip(*each, strict=True))
    ]
    return [*answers, subset_calibration_plots(request.but(scope="orbit"))]


def _plots_of_run(
    subset: Subset, ends: Array, drawn: Mapping[str, Array], place: tuple[int, slice]
) -> list[Json]:
    """Return the plots of a model at a run of elements, their arrays as rows of those `drawn`."""
    model, run = place
    pairs = _all_at(subset, model, range(run.start, run.stop))
    plots = []
    for element, plot in enumerate(_calibration_plots(*pairs, ends[run]), run.start):
        for name, every in drawn.items():
            every[element] = plot[name]
        plots.append(plot | {name: every[element] for name, every in drawn.items()})
    return plots


def _calibration_plots_answer(request: SubsetRequest, plots: list[Json]) -> Answer:
    """Return the answer that holds the plots of each model shown."""
    about = {
        "available": True,
        "scope": request.selection.scope,
        "element": request.element,
        "models": request.names,
        "count": max((plot["count"] for plot in plots), default=0),
        "measures": [
            {"model": model, **entry}
            for model, plot in zip(request.names, plots, strict=True)
            for entry in plot["measures"]
        ],
    }
    arrays = {
        "edges": np.linspace(0, 1, BINS + 1),
        "cumulative_x": np.linspace(0, 1, CURVE_POINTS),
        "count": np.stack([plot["bins"] for plot in plots]),
    }
    return about, arrays | {
        name: np.stack([plot[name] for plot in plots]) for name in _DRAWN if name != "bins"
    }


_DRAWN = {
    "bins": (BINS, np.int32),
    "confidence": (BINS, np.float64),
    "accuracy": (BINS, np.float64),
    "cumulative_confidence": (CURVE_POINTS, np.float64),
    "cumulative_accuracy": (CURVE_POINTS, np.float64),
}
"""The arrays of a plot, with their size."""


def _calibration_plots_of_model(subset: Subset, model: int, place: int | None) -> Json:
    """Return the plots of a model at an element, or over whole orbits for None."""
    if place is not None:
        return _calibration_plots(*_all_at(subset, model, [place]))[0]
    count = len(_at(subset, model, subset.view.group.identity)[0])
    if count < subset_curves.LEAST:
        return _too_few(count)
    diagram, error = pooled_calibration(subset, model)
    return _calibration_plot(
        diagram,
        _calibration_plot_curves(*_along(subset, model)),
        subset_curves.subset_interval_ends(error),
    )


def _calibration_plots(sure: Array, right: Array, ends: Array | None = None) -> list[Json]:
    """Return the plots of each row of pairs `[K, N]`, NaN if a sample has no output.

    Args:
        sure: Confidences.
        right: Whether they were justified.
        ends: `[K, 4]`, the errors with the ends of their intervals, if they are known.
    """
    plots = [_too_few(0)] * len(sure)
    for places, *given in alike_element_columns(sure, right):
        count = given[0].shape[1]
        if count < subset_curves.LEAST:
            for place in places:
                plots[place] = _too_few(count)
            continue
        pair = [torch.from_numpy(part) for part in given]
        diagrams, curves = (
            reliability(*pair, bins=BINS),
            _calibration_plot_curves(pair[0], pair[1], None),
        )
        if ends is None:
            found = subset_curves.subset_measure_rows(subset_curves.WITH_INTERVAL, pair)
            mine = np.stack([found[part] for part in subset_curves.ENDS], -1)
        else:
            mine = ends[places]
        said = caution(subset_curves.WITH_INTERVAL, caution_evidence_of_pairs(pair[1]))
        for row, place in enumerate(places):
            diagram = Reliability(**{name: part[row] for name, part in vars(diagrams).items()})
            drawn = [curve[row] for curve in curves]
            plots[place] = _calibration_plot(diagram, drawn, mine[row], str(said[row]))
    return plots


def _calibration_plot(
    diagram: Reliability, curves: Sequence[Array], ends: Iterable[SupportsFloat], said: str = ""
) -> Json:
    """Return what is drawn of a diagram, cumulative curves, and an error with its interval.

    With the error come mean confidence and accuracy, the verdict on them, and a caution.
    """
    value, low, high, expected = map(float, ends)
    sure, right = (float(part.sum()) for part in _terms(diagram))
    error = {
        "name": subset_curves.WITH_INTERVAL,
        "value": value,
        "low": low,
        "high": high,
        "expected": expected,
        "confidence": sure,
        "accuracy": right,
        "verdict": error_verdict(value, low, high, gap=sure - right),
        "caution": said,
    }
    return {
        "count": int(diagram.count.sum()),
        "bins": diagram.count.numpy().astype(np.int32),
        "confidence": diagram.confidence.numpy(),
        "accuracy": diagram.accuracy.numpy(),
        "cumulative_confidence": curves[0],
        "cumulative_accuracy": curves[1],
        "measures": [error],
    }


def _terms(diagram: Reliability) -> list[Tensor]:
    """Return what each bin adds to the mean confidence, and to the accuracy."""
    return [diagram.share * part.nan_to_num() for part in (diagram.confidence, diagram.accuracy)]


def _too_few(count: int) -> Json:
    """Return what is drawn of samples that are too few for an error, and for curves."""
    nothing = {name: np.full(size, np.nan) for name, (size, _) in _DRAWN.items()}
    return {"count": count, "measures": []} | nothing | {"bins": np.zeros(BINS, np.int32)}


def pooled_calibration(subset: Subset, model: int) -> tuple[Reliability, Interval]:
    """Return the reliability diagram and the ECE of a subset over whole orbits."""
    group = subset.view.group
    every = (_all_at(subset, model, [element]) for element in range(len(group)))
    pairs = ((sure[0], right[0]) for sure, right in every)
    return pooled_reliability(pairs, group.weights, bins=BINS)


def _calibration_plot_curves(sure: Tensor, right: Tensor, weights: Tensor | None) -> list[Array]:
    """Return cumulative confidence and accuracy at equal steps of the fraction of samples."""
    curve = cumulative_curve(sure, right, weights=weights)
    steps = torch.linspace(0, 1, CURVE_POINTS, dtype=torch.float64) + 1e-12
    steps = steps.expand(*sure.shape[:-1], -1).contiguous()
    ends = torch.searchsorted(curve.quantile, steps, right=True)
    return [
        torch.nn.functional.pad(part, (1, 0)).gather(-1, ends).numpy()
        for part in (curve.confidence, curve.accuracy)
    ]


def _all_at(subset: Subset, model: int, elements: Iterable[int]) -> tuple[Array, Array]:
    """Return the pairs `[k, n]` of the subset at some elements, NaN where there is no output."""
    return columns_of_view(subset.view, subset.reference).pairs(model, elements, subset.rows)


def _at(subset: Subset, model: int, element: int, stride: int = 1) -> tuple[Array, Array]:
    """Return the outputs of the subset at an element, or every n-th of them."""
    columns = columns_of_view(subset.view, subset.reference)
    column = columns.column(model, element, subset.rows)
    return pairs_of_signed(column[~np.isnan(column)][::stride])


def _along(subset: Subset, model: int) -> tuple[Tensor, Tensor, Tensor | None]:
    """Concatenate the pairs of all elements, each with the weight of its element."""
    size, weights = len(subset.view.group), subset.view.group.weights
    stride = max(1, -(-subset.count * size // MOST_PAIRS))
    some = [_at(subset, model, one, stride) for one in range(size)]
    sure, right = (torch.from_numpy(np.concatenate(column)) for column in zip(*some, strict=True))
    each = torch.from_numpy(np.repeat(weights, [len(pair[0]) for pair in some]))
    return sure, right, None if np.ptp(weights) < 1e-12 else each
