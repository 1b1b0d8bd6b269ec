"""Select the most informative samples for a report that cannot hold all of them."""

from __future__ import annotations

import contextlib
import itertools
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace

import numpy as np

from ..._text import counted
from ...embedding import spread_points
from ...errors import InputError, check_name
from ...store import Json
from ..selection import Selection
from ..session.calibration_plots import calibration_along
from ..session.sample_maps import available_map_methods, map_is_cached, sample_map
from ..session.saved_lists import FINDINGS, SETS, Finding
from ..session.scan_state import headline
from ..session.scan_view import ScanView, ViewMetric
from ..session.session import HANDLERS
from ..session.subset_curves import prepare_subset_measures, subset_spread_metric
from ..session.subset_request import (
    ALL,
    SubsetRequest,
    UnknownSubset,
    mask_of_subset,
    packed_subset,
)
from ..sidecar import bits_key
from ..wire import encode_report_part, quantize

Array = np.ndarray

FEWEST = 3
"""The least number of samples to select: one of each kind."""


@dataclass(frozen=True)
class ReportSamples:
    """A selection of samples.

    Attributes:
        samples: Their indices in the scan, ascending.
        of: The number of samples in the scan.
        how: A description of how they were selected; empty if all are included.
    """

    samples: Array
    of: int
    how: str

    @property
    def complete(self) -> bool:
        """Whether all samples are included."""
        return len(self.samples) == self.of


def chosen_samples(view: ScanView, count: int | None) -> ReportSamples:
    """Select the samples of a report, among them those of the findings; all for None."""
    if count is None or view.samples <= count >= FEWEST:
        return ReportSamples(np.arange(view.samples), view.samples, "")
    variable = view.variable(view.metrics["score"], report_references(view)[0])
    moments = view.moments(variable)
    xy = sample_map(SubsetRequest(view, Selection(reference=report_references(view)[0]))).xy
    upward = view.metrics["score"].higher_is_better is not False
    means, variances = moments.orbit_mean, moments.orbit_variance
    chosen = informative_report_samples(means, variances, xy, view.label, count, upward)
    return with_findings(view, chosen)


def report_references(view: ScanView) -> list[str]:
    """Return what scores can be measured against."""
    return ["truth", "consensus"] if view.scan.labeled else ["consensus"]


def informative_report_samples(
    mean: Array, variance: Array, xy: Array, label: Array | None, count: int, upward: bool
) -> ReportSamples:
    """Select samples: a third most variable, a third worst, the rest spread over the map.

    The first two thirds are taken class by class in turn, so that they do not all come from one
    difficult class.

    Args:
        mean: `[M, N]`, each sample's mean response over its orbit.
        variance: `[M, N]`, its variance over the orbit.
        xy: `[N, 2]`, its position on the map of responses; NaN for unfinished samples.
        label: `[N]`, its class, or None.
        count: How many to select.
        upward: Whether a higher response is better.

    >>> spread = np.array([[0.0, 0.3, 0.0, 0.1, 0.0, 0.0]])
    >>> score = np.array([[0.9, 0.9, 0.2, 0.9, 0.8, 0.9]])
    >>> xy = np.array([[-3, -3], [1, 0], [0, 1], [9, 0], [0, 9], [4.0, 4.0]])
    >>> informative_report_samples(score, spread, xy, None, 3, True).samples.tolist()
    [1, 2, 5]
    """
    if count < FEWEST:
        raise InputError("samples", f"{FEWEST} or more", count)
    total = mean.shape[1]
    if total <= count:
        return ReportSamples(np.arange(total), total, "")
    finished = np.isfinite(xy).all(1)
    known = np.flatnonzero(finished)
    if len(known) <= count:
        return ReportSamples(known, total, f"the {len(known):,} finished samples of {total:,}")
    third = count // 3
    worst = np.where(upward, mean, -mean).min(0)
    taken = np.zeros(total, bool)
    for priority in (variance.max(0), -worst):
        taken[_samples_in_turn(priority, label, finished & ~taken)[:third]] = True
    rest = np.flatnonzero(finished & ~taken)
    taken[rest[spread_points(xy[rest], count - 2 * third)]] = True
    how = (
        f"{count:,} of {total:,} samples: {third:,} that vary most along the orbit, {third:,} with "
        f"the worst scores, {count - 2 * third:,} spread over the map"
    )
    return ReportSamples(np.flatnonzero(taken), total, how)


def _samples_in_turn(priority: Array, label: Array | None, among: Array) -> Array:
    """Sort samples by priority, the first of each class before the second of any."""
    order = np.flatnonzero(among)
    order = order[np.argsort(-priority[order], kind="stable")]
    if label is None:
        return order
    rank = np.empty(len(order), int)
    for one in np.unique(label[order]):
        members = label[order] == one
        rank[members] = np.arange(members.sum())
    return order[np.argsort(rank, kind="stable")]


LINEAR = ("pca", "ica")
"""The methods that are quick enough for every model and reference."""
FIRST = (*LINEAR, "isomap")
"""The methods of a report that names none; the others take minutes."""
MOST_BYTES = 2_000_000
"""The most that maps add to a report, before compression."""
_BYTES = 4
"""Bytes of a sample on a map."""

Map = tuple[str, str, str]
"""Method, model (empty for all together) and reference."""


@dataclass(frozen=True)
class ReportMapPlan:
    """The maps of a report, and those left out."""

    maps: list[Map]
    left_out: list[Map]

    @property
    def methods(self) -> list[str]:
        """The methods of which there is a map."""
        return [*dict.fromkeys(method for method, _, _ in self.maps)]

    def note(self) -> str:
        """Name what was left out; empty if nothing was."""
        present = {*self.methods}
        whole = [*dict.fromkeys(method for method, _, _ in self.left_out if method not in present)]
        parts = [*dict.fromkeys(method for method, _, _ in self.left_out if method in present)]
        words = [*whole, *(f"{method} of some models or references" for method in parts)]
        return f"maps left out: {', '.join(words)}" if words else ""


def check_report_methods(methods: Sequence[str] | None) -> None:
    """Check the names of methods, before any work."""
    if methods is None or [*methods] == ["all"]:
        return
    for method in methods:
        check_name("methods", method, [*available_map_methods(), "all"])
    if not methods:
        raise InputError("methods", "at least one", "none")


def planned_report_maps(
    view: ScanView, methods: Sequence[str] | None, samples: int
) -> ReportMapPlan:
    """Choose the maps of a report: what findings show, then what is quick or was asked for."""
    references = report_references(view)
    every = [*itertools.product(available_map_methods(), ("", *view.models), references)]
    quick = {*itertools.product(LINEAR, ("", *view.models), references)}
    quick |= {(method, "", references[0]) for method in FIRST}
    if methods is None:
        asked = [one for one in every if one in quick or map_is_cached(_request(view, one))]
    else:
        asked = [one for one in every if {one[0], "all"} & {*methods}]
    shown = (one.selection for one in FINDINGS.saved(view))
    first = [(one.method, one.of, view.reference(one)) for one in shown]
    wanted = [*dict.fromkeys([*asked[:1], *(one for one in first if one in every), *asked])]
    kept = wanted[: max(1, MOST_BYTES // (_BYTES * max(1, samples)))]
    return ReportMapPlan(kept, [one for one in every if one not in kept])


def encoded_report_maps(view: ScanView, samples: Array, maps: Iterable[Map]) -> bytes:
    """Encode the positions of the samples of a report on each map."""
    about: Json = {}
    arrays: Json = {}
    for one in maps:
        name = "/".join(one)
        try:
            with warnings.catch_warnings():  # an ICA that did not converge is a map all the same
                warnings.filterwarnings("ignore", "FastICA did not converge", UserWarning)
                found = sample_map(_request(view, one))
        except InputError as error:  # too few samples for a map: the page shows the message
            about[name] = {"error": str(error)}
            continue
        arrays[name] = quantize(found.xy[samples], 16, -1.0, 1.0)
        about[name] = {"explained": found.explained, "note": found.note, "metric": "score"}
    return encode_report_part({"about": about}, arrays)


def _request(view: ScanView, one: Map) -> SubsetRequest:
    method, of, reference = one
    return SubsetRequest(view, Selection(method=method, of=of, reference=reference))


def with_findings(view: ScanView, chosen: ReportSamples) -> ReportSamples:
    """Add the samples that the headline and findings show to those of a report."""
    wanted = [number for one in FINDINGS.saved(view) for number in _shown(view, one)]
    wanted.append(headline(SubsetRequest(view))[0]["sample"])
    samples = np.union1d(chosen.samples, np.array(wanted, chosen.samples.dtype))
    more = len(samples) - len(chosen.samples)
    if not more:
        return chosen
    whole = len(samples) == chosen.of
    how = "" if whole else f"{chosen.how}, and {counted(more, 'sample')} of findings"
    return ReportSamples(samples, chosen.of, how)


def report_story(
    view: ScanView, chosen: ReportSamples, methods: Sequence[str]
) -> tuple[list[Json], Array]:
    """Return the findings as the page of a report takes them, and the bits `[S, ...]` of sets."""
    sets: dict[str, Array] = {}
    told = [_told_finding(view, one, chosen.samples, methods, sets) for one in FINDINGS.saved(view)]
    width = -(-len(chosen.samples) // 8)
    return told, np.array([*sets.values()], np.uint8).reshape(len(sets), width)


def _shown(view: ScanView, finding: Finding) -> list[int]:
    selection = finding.selection
    return [one for one in (selection.sample, *selection.pins) if 0 <= one < view.samples]


def _told_finding(
    view: ScanView, finding: Finding, samples: Array, methods: Sequence[str], sets: dict[str, Array]
) -> Json:
    selection = finding.selection
    here = {int(sample): place for place, sample in enumerate(samples)}
    kept = replace(
        selection,
        subset=_set_in_contents(view, selection.subset, samples, sets),
        sample=here.get(selection.sample, 0),
        pins=tuple(here[one] for one in selection.pins if one in here),
        method=selection.method if selection.method in methods else methods[0],
    )
    return {**asdict(finding), "view": kept.to_fragment()}


def _set_in_contents(view: ScanView, name: str, samples: Array, sets: dict[str, Array]) -> str:
    """Return the name of a set among the samples of a report, and keep its bits in `sets`."""
    try:
        mask = mask_of_subset(view, name)[samples]
    except UnknownSubset:  # its file was removed or altered
        return ALL
    if mask.all():
        return ALL
    bits = packed_subset(mask)
    here = bits_key(bits.tobytes())
    sets[here] = bits
    return here


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
class ReportSubset:
    """A subset of a scan whose answers are recorded, and what the page of a report calls it."""

    key: Key
    selection: Selection

    @property
    def whole(self) -> bool:
        """Whether it is all samples."""
        return not self.selection.filter and not self.selection.subset


def report_subsets(view: ScanView, told: Iterable[str]) -> list[ReportSubset]:
    """List the subsets that matter: all samples, named sets, those of findings, and classes.

    Args:
        view: The view of the scan.
        told: The views of the findings as the report has them, where sets have other names.
    """
    named = [Selection(subset=one.hash) for one in SETS.saved(view)]
    shown = [one.selection for one in FINDINGS.saved(view)]
    here = [Selection.from_fragment(fragment) for fragment in told]
    count = 0 if view.label is None or len(view.classes) > MOST_CLASSES else len(view.classes)
    classes = [Selection(filter=(f"label:{label}",)) for label in range(count)]
    found: dict[Key, ReportSubset] = {}
    pages, owns = ([Selection(), *named, *views, *classes] for views in (here, shown))
    for page, own in zip(pages, owns, strict=True):
        key = (tuple(sorted(page.filter)), page.subset)
        with contextlib.suppress(UnknownSubset):  # its file was removed or altered
            mask_of_subset(view, own.subset)
            found.setdefault(
                key, ReportSubset(key, Selection(filter=own.filter, subset=own.subset))
            )
    return [*found.values()]


def encoded_report_answers(
    view: ScanView,
    subsets: Sequence[ReportSubset],
    references: Sequence[str],
    kinds: Iterable[str],
) -> Iterator[bytes]:
    """Yield the recorded answers of each subset to requests of some kinds, encoded."""
    offered, size = {*kinds}, len(view.group) + 1
    others = [(one, reference) for reference in references for one in subsets if not one.whole]
    drawn = others[: MOST_PLACES // size]
    for subset in subsets:
        answers: dict[str, list[Json]] = {}
        arrays: Json = {}
        measures = [one.name for one in _metrics(view, subset) if not one.per_sample]
        for reference in references:
            chosen = replace(subset.selection, reference=reference)
            prepare_subset_measures(SubsetRequest(view, chosen).subset, measures)
        for name, selection in _requests_of_recorded_subset(view, subset, references):
            kind, _, reference = name.partition("/")
            plots, request = kind == "calibration", SubsetRequest(view, selection)
            left_out = plots and not subset.whole and (subset, reference) not in drawn
            if kind not in offered or left_out:
                continue
            answered = calibration_along(request) if plots else [HANDLERS[kind](request)]
            answers[name] = [about for about, _ in answered]
            for part in answered[0][1]:
                values = np.stack([held[part] for _, held in answered])
                share = plots and part in _CURVES
                arrays[f"{name}:{part}"] = quantize(values, 16, 0.0, 1.0) if share else values
        yield encode_report_part({"answers": answers}, arrays)


def report_spread_metrics(view: ScanView) -> dict[str, str]:
    """Return the metric whose spread is shown for each metric: of measures, that of the score."""
    return {name: subset_spread_metric(view, one).name for name, one in view.metrics.items()}


def _metrics(view: ScanView, subset: ReportSubset) -> list[ViewMetric]:
    """List the metrics whose curves are recorded for a subset."""
    listed = view.metrics.values()
    return [metric for metric in listed if metric.report != "all samples" or subset.whole]


def _requests_of_recorded_subset(
    view: ScanView, subset: ReportSubset, references: Sequence[str]
) -> Iterator[tuple[str, Selection]]:
    """Yield the name and the selection of each recorded answer."""
    spreads = {*report_spread_metrics(view).values()}
    for reference in references:
        against = replace(subset.selection, reference=reference)
        measured = _metrics(view, subset)
        for metric in view.metrics.values():
            one = replace(against, metric=metric.name)
            if metric in measured:
                yield f"aggregate/{reference}/{metric.name}", one
            if metric.name in spreads:
                yield f"spread/{reference}/{metric.name}", one
        yield f"calibration/{reference}", against
    yield "consistency", subset.selection
    for scope in ("element", "orbit"):
        yield f"coverage/{scope}", replace(subset.selection, scope=scope)
