"""Runs: several scans of one group and task beside each other, and how they differ from one."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import partial

import numpy as np

from ...calibration import first_interval_caution, paired_interval_of_sums
from ...errors import check_name
from ...nero import POWERS, Sums, add_sums, mean_of_curves
from ...store import Json
from ..selection import Selection
from .calibration_plots import pooled_calibration
from .scan_view import ScanView, ViewMetric
from .subset_curves import (
    CAUTION,
    curves_counted_in_view,
    page_curve_header,
    subset_changes,
    subset_mean,
    subset_measures,
)
from .subset_request import Answer, Subset, SubsetRequest, keep_set, mask_of_subset

Array = np.ndarray

ENDS = ("values", "low", "high")
DIFFERENCE = ("difference", "difference_low", "difference_high")
NUMBERS = ("mean", "accuracy", "gap", "ece", "changed")
"""What the table has of each run, over whole orbits."""


@dataclass(frozen=True)
class Run(Subset):
    """Samples of a scan that are compared; `same` if they are those of the scan that is shown."""

    same: bool = True


def runs(request: SubsetRequest, scans: Mapping[str, ScanView]) -> Answer:
    """Answer curves `[R, K]` of each model of each run, and their differences from one run."""
    view, against = request.view, request.selection.against
    if against:
        check_name("selection against", against, scans)
    metric = request.metric
    reasons = {name: why_run_left_out(request, other) for name, other in scans.items()}
    compared = [
        _run_of_request(request, scans[name]) for name, reason in reasons.items() if not reason
    ]
    named = [run for run in compared if run.view.name == against]
    base = next(iter(named or compared), None)
    rows: list[Json] = []
    curves: dict[str, list[Array]] = {name: [] for name in (*ENDS, *DIFFERENCE)}
    for place, run in enumerate(compared):
        request.progress.tell(place / len(compared), run.view.name)
        curve, models = _curve(run, metric), _shown(run.view, request.selection)
        paired, apart = _difference_of_runs(run, base or run, metric, models)
        numbers = _numbers_of_run(run, metric)
        for row, model in enumerate(models):
            rows.append(
                {
                    "scan": run.view.name,
                    "model": run.view.models[model],
                    "count": run.count,
                    "same": run.same,
                    "paired": paired,
                    "caution": first_interval_caution(curve[CAUTION][model]),
                    "difference_caution": first_interval_caution(apart[CAUTION][row]),
                    **{name: _finite(values[model]) for name, values in numbers.items()},
                }
            )
            for name, other in zip(ENDS, DIFFERENCE, strict=True):
                curves[name].append(curve[name][model])
                curves[other].append(apart[name][row])
    shape = (len(rows), len(view.group))
    arrays = {name: np.reshape(parts, shape) for name, parts in curves.items()}
    about = {
        **page_curve_header(request, metric, arrays["values"]),
        "against": base.view.name if base else "",
        "rows": rows,
        "left_out": [{"scan": name, "reason": why} for name, why in reasons.items() if why],
        "whole": request.subset.mask is None,
        "difference_range": _about_zero([arrays[name] for name in DIFFERENCE]),
    }
    return about, {name: part.astype(np.float32) for name, part in arrays.items()}


def comparable_run(view: ScanView, scans: Mapping[str, ScanView]) -> bool:
    """Check whether another scan has the group and the task of this one."""
    return any(not _unlike(view, other) for other in scans.values() if other is not view)


def why_run_left_out(request: SubsetRequest, other: ScanView) -> str:
    """Return why a scan cannot be compared with the one that is shown; empty if it can."""
    if reason := _unlike(request.view, other):
        return reason
    if not other.complete:
        return f"unfinished: {other.finished} of {other.samples} samples"
    if request.metric.name not in other.metrics:
        return f"no {request.metric.title}"
    return "no labels" if request.reference == "truth" and not other.scan.labeled else ""


def _unlike(view: ScanView, other: ScanView) -> str:
    mine, its = view.scan.record, other.scan.record
    if its.task.name != mine.task.name:
        return f"another task: {its.task.name}"
    if its.group.fingerprint != mine.group.fingerprint:
        return f"another group: {its.group.spec}"
    return ""


def _same_samples(view: ScanView, other: ScanView) -> bool:
    return other is view or view.cache.get_or_compute(
        ("same samples", other.name), partial(view.scan.has_samples_of, other.scan)
    )


def _run_of_request(request: SubsetRequest, other: ScanView) -> Run:
    """Apply the subset of the scan that is shown, if the other scan has its samples."""
    view, shown, same = request.view, request.subset, _same_samples(request.view, other)
    if shown.mask is None or not same:
        return Run(other, shown.reference, same=same)
    if request.selection.subset:  # whoever opens that scan finds the set there
        keep_set(other, mask_of_subset(view, request.selection.subset))
    # A filter may be by what the models of the scan that is shown answered.
    key = shown.key if other is view else (view.name, *shown.key)
    return Run(other, shown.reference, shown.mask, key, shown.labels, same)


def _shown(view: ScanView, selection: Selection) -> list[int]:
    """Return the models with the chosen names; all if a run has none of them."""
    every = range(len(view.models))
    return [one for one in every if view.models[one] in selection.models] or [*every]


def _mean(run: Run, name: str) -> dict[str, Array]:
    return subset_mean(run, run.view.metrics[name])


def _curve(run: Run, metric: ViewMetric) -> dict[str, Array]:
    """Return `values`, `low`, `high` and `caution`, `[M, K]` each; NaN if it has no interval."""
    if metric.per_sample:
        return _mean(run, metric.name)
    curve = subset_measures(run, metric.name)
    missing = np.full_like(curve["values"], np.nan)
    return {CAUTION: np.full(missing.shape, ""), **dict.fromkeys(ENDS, missing), **curve}


def _difference_of_runs(
    run: Run, base: Run, metric: ViewMetric, models: list[int]
) -> tuple[bool, dict[str, Array]]:
    """Return whether samples are paired, and the difference of models `[m, K]` with its ends.

    The model of the same name is subtracted, or the only one.
    """
    known = base.view.models
    others = [
        known.index(name) if name in known else 0 if len(known) == 1 else -1
        for name in (run.view.models[model] for model in models)
    ]
    shape = len(models), len(run.view.group)
    found = {name: np.full(shape, np.nan) for name in ENDS} | {CAUTION: np.full(shape, "", object)}
    rows = [row for row, other in enumerate(others) if other >= 0]
    pairs = tuple((models[row], others[row]) for row in rows)
    if not pairs:
        return False, found
    if run is base:
        for name in ENDS:
            found[name][rows] = 0.0
        return True, found
    same = run.same and base.same
    if not run.same and not base.same:
        same = _same_samples(run.view, base.view)
    paired = metric.per_sample and same
    if paired:
        key = ("paired", metric.name, run.reference, base.view.name, pairs, *run.key)
        compute = partial(_difference_sums_of_runs, run, base, metric.name, pairs)
        sums = run.view.cache.get_or_compute(key, compute)
        one_set = (getattr(sums, one.name)[:, 0] for one in fields(Sums))
        ends = paired_interval_of_sums(*one_set)
        parts, said = [*ends], ends.caution
    else:
        curves = zip((run, base), zip(*pairs, strict=True), strict=True)
        mine, its = (
            {name: values[[*one]] for name, values in _curve(of, metric).items()}
            for of, one in curves
        )
        parts = [
            *_difference_of_unpaired_runs(
                *([curve[name] for name in ENDS] for curve in (mine, its))
            )
        ]
        said = np.where(mine[CAUTION] != "", mine[CAUTION], its[CAUTION])
    for name, part in zip((*ENDS, CAUTION), (*parts, said), strict=True):
        found[name][rows] = part
    return paired, found


def _difference_of_unpaired_runs(
    one: list[Array], other: list[Array]
) -> tuple[Array, Array, Array]:
    """Return the difference of two independent values, from their intervals (Newcombe 1998).

        low = a - b - sqrt((a - low_a)^2 + (high_b - b)^2),   high likewise

    >>> found = _difference_of_unpaired_runs([0.8, 0.7, 0.9], [0.5, 0.2, 0.8])
    >>> [round(float(part), 3) for part in found]
    [0.3, -0.016, 0.616]
    """
    (a, low_a, high_a), (b, low_b, high_b) = one, other
    return a - b, a - b - np.hypot(a - low_a, high_b - b), a - b + np.hypot(high_a - a, b - low_b)


def _difference_sums_of_runs(
    run: Run, base: Run, name: str, pairs: tuple[tuple[int, int], ...]
) -> Sums:
    """Sum the differences of samples over each pair of models, `[P, 1, K]`."""
    mine, its = (one.view.variable(one.view.metrics[name], one.reference) for one in (run, base))
    sums = np.zeros((POWERS, len(pairs), 1, len(run.view.group)))
    for span in run.view.reader.blocks(mine):
        chosen = run.members[span]
        for row, (model, other) in enumerate(pairs):
            # One turn after the other: two scans that waited for each other would never end.
            with run.view.passes.turn(patient=True):
                values = run.view.reader.responses(mine, span, model)[chosen].astype(np.float64)
            with base.view.passes.turn(patient=True):
                values = values - base.view.reader.responses(its, span, other)[chosen]
            add_sums(sums[:, row], values)
    return Sums(*sums)


def _numbers_of_run(run: Run, metric: ViewMetric) -> dict[str, Array]:
    """Return the numbers of the table, `[M]` each; those that the task does not have are absent."""
    view = run.view

    def compute() -> dict[str, Array]:
        found: dict[str, Array] = {}
        if "correct" in view.metrics:
            found["accuracy"] = mean_of_curves(_mean(run, "correct")["values"], view.group.weights)
        if {"correct", "confidence"} <= view.metrics.keys():
            sure = mean_of_curves(_mean(run, "confidence")["values"], view.group.weights)
            found["gap"] = sure - found["accuracy"]
            errors = [pooled_calibration(run, model)[1].value for model in range(len(view.models))]
            found["ece"] = np.asarray([float(one) for one in errors])
        if curves_counted_in_view(view):
            known = subset_changes(view)["changed"][:, run.rows]
            size = (~np.isnan(known)).sum(1)
            found["changed"] = np.nansum(known, 1) / np.where(size > 0, size, np.nan)
        return found

    known = view.cache.get_or_compute(("numbers", run.reference, *run.key), compute)
    return {"mean": mean_of_curves(_curve(run, metric)["values"], view.group.weights), **known}


def _about_zero(differences: list[Array]) -> list[float]:
    """Return the limits of an axis of differences, which always has zero."""
    ends = np.concatenate([[0.0], *(part[np.isfinite(part)] for part in differences)])
    least, most = float(ends.min()), float(ends.max())
    return [least, most] if most > least else [-1.0, 1.0]


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
