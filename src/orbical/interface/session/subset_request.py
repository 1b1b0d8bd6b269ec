"""A request of a page: what it selects of a scan, and the samples that this leaves."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from ...errors import InputError, check_name
from ...nero import mean_over_models
from ...store import Json
from ..background import BackgroundProgress, progress_of
from ..selection import Selection, labels_alone
from ..sidecar import bits_key
from .filter_columns import kept_by_filter
from .scan_view import ScanView, ViewMetric

Array = np.ndarray
Answer = tuple[Json, Json]
"""The header and the arrays of an answer."""
ALL = ""
"""The name of the set of all samples."""


def unavailable_request(reason: object) -> Answer:
    """Answer why a scan has none of what was requested."""
    return {"available": False, "reason": str(reason)}, {}


class UnknownSubset(InputError):
    """A set of samples that the session does not hold; the page may send its samples again."""

    code = "unknown-set"

    def __init__(self, name: str) -> None:
        super().__init__(
            f"selection subset: expected a set of samples that is known here, got {name!r}; "
            "send its samples again, or choose them again"
        )
        self.set = name


def packed_subset(mask: Array) -> Array:
    """Return a mask `[N]` as bits, the first sample lowest.

    >>> packed_subset(np.array([True, False, True])).tolist()
    [5]
    """
    return np.packbits(mask, bitorder="little")


def keep_set(view: ScanView, mask: Array) -> str:
    """Keep a set of samples, given as a mask `[N]`, and return its name."""
    if mask.all():
        return ALL
    bits = packed_subset(mask)
    name = bits_key(bits.tobytes())
    view.sets.get_or_compute(name, lambda: bits)
    return name


def mask_of_subset(view: ScanView, name: str) -> Array:
    """Return the mask `[N]` of a set; `UnknownSubset` if neither session nor folder has it."""
    if name == ALL:
        return np.ones(view.samples, bool)
    bits = view.sets.get(name)
    if bits is None:
        saved = view.sidecar.bits(name)
        if saved is None or len(saved) != -(-view.samples // 8):
            raise UnknownSubset(name)
        bits = view.sets.get_or_compute(name, lambda: np.frombuffer(saved, np.uint8))
    return np.unpackbits(bits, count=view.samples, bitorder="little").view(bool)


@dataclass(frozen=True)
class Subset:
    """Samples of a scan, and what their scores are measured against.

    Attributes:
        view: The view of the scan.
        reference: "truth" or "consensus".
        mask: The samples `[N]`; None for all.
        key: What they depend on, for caches.
        labels: The classes that they are, if nothing else chose them: those are summed already.
    """

    view: ScanView
    reference: str
    mask: Array | None = None
    key: tuple[Hashable, ...] = ((), ALL)
    labels: tuple[int, ...] | None = None

    @property
    def count(self) -> int:
        """The number of samples, finished or not."""
        return self.view.samples if self.mask is None else int(self.mask.sum())

    @property
    def judged(self) -> int:
        """The number of samples with a result, without the unfinished ones if it is all."""
        if self.mask is None:
            return self.view.judged
        return int((self.mask & ~self.view.without_result).sum())

    @cached_property
    def rows(self) -> slice | Array:
        """The index of the samples among all: numbers are looked up faster than a mask."""
        return slice(None) if self.mask is None else np.flatnonzero(self.mask)

    @property
    def members(self) -> Array:
        """A mask `[N]`, also where it is all samples."""
        return np.ones(self.view.samples, bool) if self.mask is None else self.mask


@dataclass(frozen=True)
class SubsetRequest:
    """A request about a scan: the selection, what follows from it, and the fields of its kind."""

    view: ScanView
    selection: Selection = field(default_factory=Selection)
    message: Json = field(default_factory=dict)

    def but(self, **changes: object) -> SubsetRequest:
        """Return the same request with a changed selection."""
        return replace(self, selection=replace(self.selection, **changes))  # type: ignore[arg-type]

    @property
    def progress(self) -> BackgroundProgress:
        """Where long work reports how far it is."""
        return progress_of(self.message)

    @property
    def watched(self) -> bool:
        """Whether somebody reads the progress: a page does, a report does not."""
        return self.message.get("progress") is not None

    @cached_property
    def models(self) -> list[int]:
        """The models shown, in the order of the scan."""
        known, wanted = self.view.models, self.selection.models
        for name in wanted:
            check_name("selection models", name, known)
        return [place for place, name in enumerate(known) if not wanted or name in wanted]

    @property
    def names(self) -> list[str]:
        """The names of the models shown."""
        return [self.view.models[model] for model in self.models]

    @property
    def embedded(self) -> list[int]:
        """The models whose responses are embedded: one, or all."""
        if not self.selection.of:
            return [*range(len(self.view.models))]
        check_name("selection of", self.selection.of, self.view.models)
        return [self.view.models.index(self.selection.of)]

    @property
    def sample(self) -> int:
        """The selected sample."""
        return self.view.sample(self.selection.sample)

    @property
    def element(self) -> int:
        """The selected element; -1 is the identity."""
        number, group = self.selection.element, self.view.group
        if not -1 <= number < len(group):
            expected = f"0 to {len(group) - 1}, or -1 for the identity"
            raise InputError("selection element", expected, number)
        return group.identity if number == -1 else number

    @property
    def metric(self) -> ViewMetric:
        """The selected metric."""
        check_name("selection metric", self.selection.metric or "score", self.view.metrics)
        return self.view.metrics[self.selection.metric or "score"]

    @property
    def sample_metric(self) -> ViewMetric:
        """The selected metric, or the score: a measure of sets has no value for one sample."""
        return self.metric if self.metric.per_sample else self.view.metrics["score"]

    @property
    def reference(self) -> str:
        """What scores are measured against."""
        return self.view.reference(self.selection)

    @property
    def variable(self) -> str:
        """The array of the metric of samples."""
        return self.view.variable(self.sample_metric, self.reference)

    def over_orbits(self, moment: str) -> tuple[Array, str]:
        """Return the "mean" or "variance" of the metric over each orbit `[N]`, and its title."""
        moments = self.view.moments(self.variable)
        each = moments.orbit_variance if moment == "variance" else moments.orbit_mean
        title = f"{self.sample_metric.title}, {moment} over the orbit"
        return mean_over_models(each[self.embedded]), title

    @cached_property
    def subset(self) -> Subset:
        """The samples that the selection leaves."""
        clauses, subset = self.selection.filter, self.selection.subset
        if not clauses and not subset:
            return Subset(self.view, self.reference)
        mask = self.view.cache.get_or_compute(("mask", clauses, subset), self._mask)
        labels = None if subset else labels_alone(clauses)
        return Subset(self.view, self.reference, mask, (clauses, subset), labels)

    def _mask(self) -> Array:
        mask = mask_of_subset(self.view, self.selection.subset)
        for clause in self.selection.filter:
            mask &= kept_by_filter(self.view, clause)
        return mask


def subset(request: SubsetRequest) -> Answer:
    """Answer which samples are in the subset."""
    members = request.subset.members
    return {"count": int(members.sum())}, {"mask": members.astype(np.uint8)}
