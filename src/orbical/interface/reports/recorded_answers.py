"""The answers of the session that a report carries, for the subsets that matter.

A report computes nothing that Python defines. It holds what the session answers for all samples,
each class, each named set and the subset of each finding: means and measures along the orbit with
their intervals, quantiles, calibration plots with their verdicts, how often predictions change, and
conformal sets. Of any other subset the page shows what follows from the samples that it holds,
which are plain means, and says of the rest that the report does not hold it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..selection import Selection
from ..session.calibration_plots import calibration_along
from ..session.dispatch import HANDLERS
from ..session.request import Request, UnknownSet, mask_of_set
from ..session.saved_lists import saved_findings, saved_sets
from ..session.scan_view import ScanView
from ..session.subset_curves import spread_metric
from ..wire import encode_part, quantize

MOST_CLASSES = 100
"""The most classes whose answers are recorded, each by itself."""
MOST_PLACES = 1_000
"""The most places whose calibration plots are recorded, beyond those of all samples."""
FIELDS = {
    "aggregate": ("reference", "metric"),
    "spread": ("reference", "metric"),
    "calibration": ("reference",),
    "consistency": (),
    "coverage": ("scope",),
}
"""What the recorded answers of each kind depend on, beside the subset and the models shown.

Those of calibration are stacked: one of each element, and last that of whole orbits.
"""
_CURVES = ("confidence", "accuracy", "cumulative_confidence", "cumulative_accuracy")

Key = tuple[tuple[str, ...], str]
"""The clauses of a filter, sorted, and the hash of a set: what the page calls a subset."""


@dataclass(frozen=True)
class Subset:
    """A subset of a scan whose answers are recorded, and what the page of a report calls it."""

    key: Key
    selection: Selection

    @property
    def whole(self) -> bool:
        """Whether it is all samples."""
        return not self.selection.filter and not self.selection.subset


def recorded_subsets(view: ScanView, told: Iterable[str]) -> list[Subset]:
    """List the subsets that matter: all samples, named sets, those of findings, and classes.

    Args:
        view: The view of the scan.
        told: The views of the findings as the report has them, where sets have other names.
    """
    named = [Selection(subset=one.hash) for one in saved_sets(view)]
    shown = [one.selection for one in saved_findings(view)]
    here = [Selection.from_fragment(fragment) for fragment in told]
    count = 0 if view.label is None or len(view.classes) > MOST_CLASSES else len(view.classes)
    classes = [Selection(filter=(f"label:{label}",)) for label in range(count)]
    found: dict[Key, Subset] = {}
    for page, own in [
        *((one, one) for one in (Selection(), *named)),
        *zip(here, shown, strict=True),
        *((one, one) for one in classes),
    ]:
        key = (tuple(sorted(page.filter)), page.subset)
        with contextlib.suppress(UnknownSet):  # its file was removed or altered
            mask_of_set(view, own.subset)
            found.setdefault(key, Subset(key, Selection(filter=own.filter, subset=own.subset)))
    return [*found.values()]


def encoded_answers(
    view: ScanView, subsets: Sequence[Subset], references: Sequence[str], kinds: Iterable[str]
) -> Iterator[bytes]:
    """Yield the recorded answers of each subset to requests of some kinds, encoded."""
    offered, size = {*kinds}, len(view.group) + 1
    others = [(one, reference) for reference in references for one in subsets if not one.whole]
    drawn = others[: MOST_PLACES // size]
    for subset in subsets:
        answers: dict[str, list[dict[str, Any]]] = {}
        arrays: dict[str, Any] = {}
        for name, selection in _requests(view, subset, references):
            kind, _, reference = name.partition("/")
            plots, request = kind == "calibration", Request(view, selection)
            left_out = plots and not subset.whole and (subset, reference) not in drawn
            if kind not in offered or left_out:
                continue
            answered = calibration_along(request) if plots else [HANDLERS[kind](request)]
            answers[name] = [about for about, _ in answered]
            for part in answered[0][1]:
                values = np.stack([held[part] for _, held in answered])
                share = plots and part in _CURVES
                arrays[f"{name}:{part}"] = quantize(values, 16, 0.0, 1.0) if share else values
        yield encode_part({"answers": answers}, arrays)


def spread_metrics(view: ScanView) -> dict[str, str]:
    """Return the metric whose spread is shown for each metric: of measures, that of the score."""
    return {name: spread_metric(view, one).name for name, one in view.metrics.items()}


def _requests(
    view: ScanView, subset: Subset, references: Sequence[str]
) -> Iterator[tuple[str, Selection]]:
    """Yield the name and the selection of each recorded answer."""
    spreads = {*spread_metrics(view).values()}
    for reference in references:
        against = replace(subset.selection, reference=reference)
        for metric in view.metrics.values():
            one = replace(against, metric=metric.name)
            if metric.report != "all samples" or subset.whole:
                yield f"aggregate/{reference}/{metric.name}", one
            if metric.name in spreads:
                yield f"spread/{reference}/{metric.name}", one
        yield f"calibration/{reference}", against
    yield "consistency", subset.selection
    for scope in ("element", "orbit"):
        yield f"coverage/{scope}", replace(subset.selection, scope=scope)
