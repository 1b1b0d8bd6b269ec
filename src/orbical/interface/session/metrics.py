"""The metrics of a scan that the page can draw over an orbit, whatever its task."""

from __future__ import annotations

from dataclasses import dataclass

from ...calibration import Measure, scan_measures
from ...calibration.registry import quantity_title
from ...errors import unknown_name
from ...tasks.quantities import UNITS
from .scan_reader import ScanReader

_ROUNDING = 1e-9  # of energies and forces in double precision, whose units have a usual size
_HIDDEN = ("score_vs_consensus",)  # it is the score, once the consensus is the reference


@dataclass(frozen=True)
class Metric:
    """A quantity over the orbit: of each sample, or of a set of samples."""

    name: str
    title: str
    unit: str
    low: float | None
    high: float | None
    higher_is_better: bool | None
    per_sample: bool
    meaning: str
    rounding: float = 0.0
    """Differences below this are rounding; 0 where that is not known."""
    report: str = "any subset"
    """Of what a report shows it: a mean follows from the samples there, a measure is recorded."""


def find_metrics(reader: ScanReader) -> dict[str, Metric]:
    """List the metrics of a scan: arrays with one number per position, and measures of sets.

    The score comes first, then accuracy and other scores, confidence, measures of sets, distances
    from the consensus, and what is neither good nor bad.
    """
    score = reader.scan.record.score
    found: dict[str, Metric] = {}
    names = [name for name in reader.dims if _one_number_a_place(reader, name)]
    for name in ["score", *(name for name in names if name not in ("score", *_HIDDEN))]:
        about = reader.attributes(name)
        unit = score.unit if name == "score" else about.get("units", "")
        better = score.higher_is_better if name == "score" else about.get("higher_is_better")
        better = None if better is None else bool(better)  # attributes are stored as 0 or 1
        share = unit == "share"
        meaning = score.meaning if name == "score" else str(about.get("meaning", name))
        if reader.scan.record.views.input == "volume":
            meaning = meaning.replace("pixels", "voxels")
        title = meaning if name == "score" else quantity_title(name)
        found[name] = Metric(
            name=name,
            title=title[:1].upper() + title[1:],
            unit=unit if unit in ("share", "px") else "number",
            low=0.0 if share or name == "count" or better is False else None,
            high=1.0 if share else None,
            higher_is_better=better,
            per_sample=True,
            meaning=meaning,
            rounding=_ROUNDING if better is False and unit in UNITS.values() else 0.0,
        )
    for measure in scan_measures(reader.scan, listed="view"):
        found[measure.name] = _of_measure(measure)
    return dict(sorted(found.items(), key=lambda item: _rank(item[1])))


def _rank(metric: Metric) -> int:
    """Return the place of a metric in menus; those of one place keep their order."""
    first = {"score": 0, "correct": 1, "action_defect": 6}
    if metric.name in first:
        return first[metric.name]
    if not metric.per_sample:
        return 4
    if metric.name.endswith("_vs_consensus"):
        return 5
    if metric.name.endswith("confidence"):
        return 3
    return 2 if metric.higher_is_better is not None else 6


def _of_measure(measure: Measure) -> Metric:
    """Describe a registered measure as a metric of sets of samples."""
    return Metric(
        name=measure.name,
        title=measure.title[:1].upper() + measure.title[1:],
        unit="share" if measure.unit == "probability" else "number",
        low=0.0 if measure.kind == "pair" else None,
        high=None,
        higher_is_better=measure.higher_is_better,
        per_sample=False,
        meaning=measure.meaning,
        report=measure.report,
    )


def _one_number_a_place(reader: ScanReader, name: str) -> bool:
    dims = reader.dims[name]
    classes = reader.dtype(name).kind in "iu" and name == "predicted"  # indices have no mean
    return dims in (("model", "sample", "element"), ("sample", "element")) and not classes


def chosen_metric(metrics: dict[str, Metric], name: str, per_sample: bool = False) -> Metric:
    """Return the metric of a selection.

    A measure of sets has no value for one sample; with `per_sample` the score replaces it.
    """
    if name and name not in metrics:
        raise unknown_name("selection metric", name, metrics)
    metric = metrics[name or "score"]
    return metric if metric.per_sample or not per_sample else metrics["score"]
