"""The view of one scan: its arrays, metrics and labels, and caches of what was computed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ...calibration import quantity_title, scan_measures
from ...errors import InputError
from ...nero import Moments, Sums, moments, sums_over
from ...store import AGREES, FINISHED, Scan
from ...tasks import quantity_rounding, structure_display_name
from ..live_models import LiveExtras, LiveModels
from ..selection import Selection
from ..sidecar import Sidecar
from .cached_reader import Cache, ReaderTurns, ScanReader
from .worst_search import opened_worst

Array = np.ndarray

PLACE = ("model", "sample", "element")
UNITLESS = ("", "1", "share", "px")
"""Units that the page does not write out: those of shares, counts and pixels."""
_HIDDEN = ("score_vs_consensus",)  # it is the score, once the consensus is the reference


@dataclass(frozen=True)
class ViewMetric:
    """A quantity over the orbit: of each sample, or of a set of samples."""

    name: str
    title: str
    unit: str
    low: float | None
    higher_is_better: bool | None
    meaning: str
    high: float | None = None
    per_sample: bool = True
    rounding: float = 0.0
    """Differences below this are rounding; 0 where that is not known."""
    report: str = "any subset"
    """Of what a report shows it: a mean follows from the samples there, a measure is recorded."""


def _metrics_of_view(reader: ScanReader) -> dict[str, ViewMetric]:
    """List the metrics of a scan: arrays with one number per position, and measures of sets.

    The score comes first, then accuracy and other scores, confidence, measures of sets, distances
    from the consensus, and what is neither good nor bad.
    """
    score = reader.scan.record.score
    found: dict[str, ViewMetric] = {}
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
        of_unit = "" if unit in UNITLESS else f" in {unit}"
        title = meaning if name == "score" else quantity_title(name) + of_unit
        found[name] = ViewMetric(
            name=name,
            title=title[:1].upper() + title[1:],
            unit=unit if unit in ("share", "px") else "number",
            low=0.0 if share or name == "count" or better is False else None,
            high=1.0 if share else None,
            higher_is_better=better,
            meaning=meaning,
            rounding=quantity_rounding(unit, better),
        )
    for measure in scan_measures(reader.scan, listed="view"):  # of sets of samples
        found[measure.name] = ViewMetric(
            name=measure.name,
            title=measure.title[:1].upper() + measure.title[1:],
            unit="share" if measure.unit == "probability" else "number",
            low=0.0 if measure.kind == "pair" else None,
            higher_is_better=measure.higher_is_better,
            per_sample=False,
            meaning=measure.meaning,
            report=measure.report,
        )
    return dict(sorted(found.items(), key=lambda item: _rank_of_metric_in_view(item[1])))


def _rank_of_metric_in_view(metric: ViewMetric) -> int:
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


def _one_number_a_place(reader: ScanReader, name: str) -> bool:
    dims = reader.dims[name]
    classes = reader.dtype(name).kind in "iu" and name == "predicted"  # indices have no mean
    return dims in (PLACE, PLACE[1:]) and not classes


_MOST_CELLS = 1 << 22
"""Sums for each model, class and element that are held; of more classes none are."""
_MOST_CLASSES = 1_000_000
"""What an attribute may say: the page is told of every class."""


class ScanView:
    """A scan with its reader, metrics, live models and caches."""

    def __init__(
        self,
        name: str,
        scan: Scan,
        extras: LiveExtras | None = None,
        live: LiveModels | None = None,
    ) -> None:
        self._extras = extras = extras or LiveExtras()
        self.name = name
        self.scan = scan
        self.group = scan.group
        self.reader = ScanReader(scan)
        self.models: list[str] = scan.models
        self.metrics = _metrics_of_view(self.reader)
        self.live = live or LiveModels(scan, self.reader.row, extras)
        self.passes = ReaderTurns()
        self.complete = scan.complete  # reading it accesses the disk
        self.warnings = [] if self.complete else [scan.caveat]
        self.cache = Cache(entries=4096, size=128 << 20)
        self.columns = Cache(entries=4)  # each may be a file of the size of an array
        self.thumbnails = Cache(entries=4096, size=16 << 20)
        self.sets = Cache(entries=1024, size=32 << 20)
        self.orbits = None if extras.orbits is None else np.asarray(extras.orbits)
        self.worst = None if extras.worst is None else opened_worst(extras.worst, scan)
        self.sidecar = Sidecar(scan.path)  # named sets and findings
        own = scan.record.task.settings.get("classes")
        self.class_names: list[str] | None = own if isinstance(own, list) else None
        if extras.classes is not None:
            self._check_classes(extras.classes)
            self.class_names = [*extras.classes]
        if extras.names is not None:
            _check_texts("names", extras.names)
            if len(extras.names) != self.samples:
                expected = f"{self.samples}, one for each sample"
                raise InputError("names", expected, len(extras.names))
        self._names = extras.names

    def renewed(self, scan: Scan) -> ScanView:
        """Return a view of the scan as it is now, with the same models, sets and findings."""
        if scan.record != self.scan.record:
            self.live.close()
            return ScanView(self.name, scan, self._extras)
        fresh = ScanView(self.name, scan, self._extras, self.live)
        self.live.read_from(scan, fresh.reader.row)
        fresh.sets, fresh.sidecar = self.sets, self.sidecar
        return fresh

    @property
    def samples(self) -> int:
        """The number of samples."""
        return self.reader.samples

    @cached_property
    def finished_rows(self) -> list[slice]:
        """The samples that every model has finished, block by block."""
        if self.complete:
            return [slice(0, self.samples)]
        rows = [self.scan.record.rows(int(k)) for k in np.flatnonzero(self.scan.done.all(0))]
        return [slice(one.start, min(one.stop, self.samples)) for one in rows]

    @property
    def finished(self) -> int:
        """The number of samples that every model has finished."""
        return sum(rows.stop - rows.start for rows in self.finished_rows)

    @property
    def judged(self) -> int:
        """The number of finished samples that at least one model has a result of."""
        return self.finished - int(self.without_result.sum())

    @cached_property
    def failed(self) -> dict[int, dict[str, str]]:
        """What models raised on a sample, by sample and model."""
        found: dict[int, dict[str, str]] = {}
        for model, entries in self.scan.failures.items():
            for one in entries:
                found.setdefault(one["sample"], {})[model] = one["error"]
        return found

    @cached_property
    def without_result(self) -> Array:
        """The samples on which every model failed everywhere, `[N]`."""
        size = len(self.group)
        counts = np.zeros(self.samples, int)
        for entries in self.scan.failures.values():
            counts[[one["sample"] for one in entries if one["places"] == size]] += 1
        return np.asarray(counts == len(self.models))

    @cached_property
    def label(self) -> Array | None:
        """The class of each sample, if there are classes."""
        if "label" in self.reader and self.reader.dims["label"] == ("sample",):
            return np.asarray(self.reader.whole("label"), np.int64)
        if "objects" in self.reader:  # the first of several, on which the view is centered
            first = self.reader.whole("objects")[:, 0, -1]
            return np.asarray(np.nan_to_num(first, nan=-1), np.int64)
        return None

    @cached_property
    def names(self) -> list[str] | None:
        """The names of the samples, if they have any."""
        return self.scan.names if self._names is None else [*self._names]

    @property
    def molecular(self) -> bool:
        """Whether the samples are molecules or crystals."""
        return self.scan.record.views.detail == "atoms"

    @cached_property
    def shown_names(self) -> list[str]:
        """The names of the samples as they are shown, with the formulas of molecules."""
        names = self.names or []
        if not self.molecular:
            return list(names)
        numbers = np.asarray(self.scan.arrays["numbers"][0])
        return list(map(structure_display_name, names or [""] * len(numbers), numbers))

    @property
    def truth(self) -> str | None:
        """The array of the truth if it is not a class: values, fields, boxes."""
        attributes = self.reader.attributes
        names = [name for name in self.reader.dims if attributes(name).get("meaning") == "truth"]
        return next((name for name in names if name != "label"), None)

    @property
    def input_view(self) -> str:
        """The name of the view that draws the inputs."""
        return self.scan.record.views.input

    @cached_property
    def classes(self) -> list[str | int]:
        """The names of the classes, or their numbers; of labels, or of predictions alone."""
        if self.label is None and not self.predicts_classes:
            return []
        count = max(self._label_count(), self._output_count() or 0)
        if self.class_names is None:
            return [*range(count)]
        if len(self.class_names) < count:
            raise InputError("classes", f"{count} names", len(self.class_names))
        return _told_apart(self.class_names)

    @property
    def predicts_classes(self) -> bool:
        """Whether each model has one class for each sample at each element."""
        kept = self.reader.dims.get("predicted") == PLACE
        return kept and self.reader.dtype("predicted").kind in "iu"

    def _label_count(self) -> int:
        return 0 if self.label is None else int(self.label.max(initial=-1)) + 1

    def _output_count(self) -> int | None:
        """Return the number of classes of the outputs, None if the scan does not know it."""
        if self.class_names is not None:
            return len(self.class_names)
        dims = self.reader.dims
        stored = [self.reader.shape(name)[-1] for name in dims if dims[name][-1:] == ("class",)]
        said = self.reader.attributes("predicted").get("classes")
        possible = type(said) is int and 0 < said <= _MOST_CLASSES
        return max(stored, default=said if possible else None)

    def _check_classes(self, classes: Sequence[str]) -> None:
        """Refuse names that are not those of the classes, before any work."""
        _check_texts("classes", classes)
        count, least = self._output_count(), self._label_count()
        if count is None and self.label is None:
            raise InputError("classes", "none for a scan without classes", len(classes))
        if len(classes) != count if count is not None else len(classes) < least:
            wanted = f"{least} or more" if count is None else count
            raise InputError("classes", f"{wanted} names, one for each class", len(classes))

    def sample(self, number: int) -> int:
        """Check the index of a sample."""
        if not 0 <= number < self.samples:
            raise InputError("selection sample", f"0 to {self.samples - 1}", number)
        return number

    def reference(self, selection: Selection) -> str:
        """Return what scores are measured against: without a truth, always the consensus."""
        if not self.scan.labeled:
            return "consensus"
        return "consensus" if selection.reference == "consensus" else "truth"

    def variable(self, metric: ViewMetric, reference: str) -> str:
        """Return the array of a metric, which depends on the reference."""
        if reference == "consensus":
            known = {"score": FINISHED}
            by_class = self.reader.dims.get("consensus", ())[-1:] == ("class",)
            if "predicted" in self.reader and by_class:
                known["correct"] = AGREES
            return known.get(metric.name, metric.name)
        return metric.name

    def response(self, variable: str, sample: int, model: int) -> Array:
        """Return one sample's response `[K]`."""
        return self.reader.as_numbers(variable, lambda name: self.reader.row(name, sample, model))

    @cached_property
    def _class_of(self) -> tuple[Array | None, int]:
        """The class of each sample as a set of sums, and their number; the last has no class."""
        if self.label is None or len(self.classes) < 2:
            return None, 1
        count = len(self.classes) + bool((self.label < 0).any())
        if len(self.models) * count * len(self.group) > _MOST_CELLS:
            return None, 1
        return np.where(self.label < 0, len(self.classes), self.label), count

    def moments(self, variable: str) -> Moments:
        """Return sums over the samples of each class and moments over orbits, computed once."""

        def compute() -> Moments:
            with self.passes.turn():
                return moments(self.reader, variable, *self._class_of)

        return self.cache.get_or_compute(("moments", variable), compute)

    def sums_over(self, variable: str, sets: Array, count: int = 1) -> Sums:
        """Sum a variable over the samples of each set, `[N]` with -1 for none."""
        with self.passes.turn():
            return sums_over(self.reader, variable, sets, count)


def _check_texts(argument: str, names: Any) -> None:
    """Refuse names that are no list of texts."""
    if isinstance(names, str) or not all(isinstance(name, str) for name in names):
        raise InputError(argument, "a list of texts", f"{names!r:.60}")


def _told_apart(names: Sequence[str]) -> list[str | int]:
    """Return names with their number added to those that occur more than once.

    >>> _told_apart(["crane", "dog", "crane"])
    ['crane (0)', 'dog', 'crane (2)']
    """
    count = Counter(names)
    return [f"{name} ({k})" if count[name] > 1 else name for k, name in enumerate(names)]
