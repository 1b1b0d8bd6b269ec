"""Comparing candidate symmetries of a data set before training."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from .._arrays import ArrayLike, as_numpy
from .._text import in_column, percent
from ..actions import ActionTree
from ..errors import InputError
from ..groups import Group, as_group, identity_of
from . import table_checks as checks
from .classification_bounds import forced_overconfidence
from .matching import match_orbits
from .neighbors import Estimate, neighbor_ceiling, neighbor_floor
from .orbit_table import OrbitTable
from .pointwise_taxonomy import Support, taxonomy
from .price_and_ceiling import certified_ceiling
from .regression_bounds import regression
from .value_table import ValueTable

__all__ = ["Candidate", "Comparison", "compare_groups"]

Array = np.ndarray
BASELINE = "trivial"
Representation = str | Callable[[Group], Any]


@dataclass(frozen=True, eq=False)
class Candidate:
    """The consequences of one group for a data set.

    Attributes:
        name: the name passed, or the text of the group.
        elements: the number of transformations of the group.
        matched: the share of samples that share their orbit with another sample.
        table: the orbits of the data.
        kinds: shares of correct, incorrect and extrinsic.
        estimate: from nearest neighbors across orbits: of the accuracy ceiling, or of the floor of
            the squared error. It is no bound, but has something to say where nothing matches.
        certified: for labels, the interval of the population's ceiling; None where the samples are
            not of equal mass, or were joined within a tolerance.
        floor: for values, the least squared error of an equivariant model on these samples.
        forced: for labels, the calibration error forced on every model whose mean confidence is p,
            `[P]`, and the same where each orbit has a confidence near p of its own.
    """

    name: str
    elements: int
    matched: float
    table: OrbitTable | ValueTable
    kinds: Mapping[str, float]
    estimate: Estimate
    certified: tuple[float, float] | None = None
    floor: float | None = None
    forced: tuple[Array, Array] | None = None

    @property
    def orbits(self) -> int:
        """The number of orbits of the data."""
        table = self.table
        return int(table.orbit.max()) + 1 if isinstance(table, ValueTable) else len(table.mass)

    @property
    def best(self) -> float | None:
        """The accuracy ceiling or the error floor on these samples; None within a tolerance."""
        if self.table.tolerance is not None:
            return None
        return self.floor if isinstance(self.table, ValueTable) else self.table.accuracy_ceiling


@dataclass(frozen=True, eq=False)
class Comparison:
    """Candidate groups; the first is the trivial group, their baseline.

    Attributes:
        candidates: the trivial group and the groups passed.
        confidence: `[P]`, the values p of the curves.
        tolerance: the distance within which points counted as equal.
        level: the probability with which certified intervals hold and estimated ones cover.
    """

    candidates: tuple[Candidate, ...]
    confidence: Array
    tolerance: float
    level: float

    _SHOWN: ClassVar[dict[str, str]] = {
        "accuracy_ceiling": "ceiling",
        "error_floor": "floor",
        "accuracy_floor": "floor",
        "neighbor_low": "estimate",
        "neighbor_high": "",
    }

    @property
    def forced(self) -> dict[str, tuple[Array, Array]]:
        """The forced overconfidence of each candidate with labels: one for all, and by orbit."""
        return {each.name: each.forced for each in self.candidates if each.forced is not None}

    def rows(self) -> list[dict[str, object]]:
        """Return the table, one dictionary for each group.

        `cost` is the distance of the ceiling (or floor) from that of the trivial group. It is None
        where no two different samples share an orbit: then only `neighbor_cost`, the difference of
        the estimates with its paired interval, says anything about the symmetry. In high dimension
        (`neighbor_dense` is false) the estimates themselves say little. Within a tolerance there
        are no bounds, and their columns are None.
        """
        return [self._row(each) for each in self.candidates]

    def to_dict(self) -> dict[str, object]:
        """Return the table, and the error forced on models of each confidence, ready for JSON."""
        forced = {
            name: {"one_confidence": mean.tolist(), "orbitwise": orbitwise.tolist()}
            for name, (mean, orbitwise) in self.forced.items()
        }
        return {
            "tolerance": self.tolerance,
            "level": self.level,
            "groups": self.rows(),
            "forced_overconfidence": {"confidence": self.confidence.tolist(), "groups": forced},
        }

    def _row(self, each: Candidate) -> dict[str, object]:
        ground = self.candidates[0]
        informed = each is ground or each.orbits < ground.orbits
        here, there = each.best, ground.best
        cost = None if not informed or here is None or there is None else abs(here - there)
        row: dict[str, Any] = {"group": each.name, "elements": each.elements}
        row |= {"orbits": each.orbits, "matched": each.matched}
        change, least, most = each.estimate.difference(ground.estimate, self.level)
        neighbors = {
            "neighbor_low": each.estimate.low,
            "neighbor_high": each.estimate.high,
            "neighbor_dense": each.estimate.dense,
            "neighbor_cost": change,
            "neighbor_cost_low": least,
            "neighbor_cost_high": most,
        }
        if isinstance(each.table, ValueTable):
            row |= {"error_floor": each.best, "cost": cost}
            return row | {"neighbor_floor": each.estimate.value, **neighbors, **each.kinds}
        exact, (low, high) = each.best is not None, each.certified or (None, None)
        row |= {"accuracy_ceiling": each.best, "cost": cost}
        row |= {"accuracy_floor": each.table.accuracy_floor if exact else None}
        row |= {"certified_low": low, "certified_high": high}
        row |= {"neighbor_error": each.estimate.value, **neighbors, **each.kinds}
        forced = None if each.forced is None or not exact else float(each.forced[0][-1])
        return row | {"forced_at_full_confidence": forced}

    def __repr__(self) -> str:
        rows = self.rows()
        hidden = ("certified", "neighbor_c", "neighbor_d", "neighbor_e", "neighbor_f", "forced")
        keys = [key for key in rows[0] if not key.startswith(hidden)]
        lines = [[self._SHOWN.get(key, key) for key in keys]]
        lines += [[_text(row[key]) for key in keys] for row in rows]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        text = "\n".join(
            "  ".join([line[0].ljust(widths[0]), *map(str.rjust, line[1:], widths[1:])])
            for line in lines
        )
        about = f"from nearest neighbors, {percent(self.level)} interval, not a bound"
        return f"{text}\nestimate: {about}"


def _text(value: object) -> str:
    return "-" if value is None else in_column(value) if isinstance(value, float) else str(value)


def compare_groups(
    data: tuple[Any, Any],
    groups: Sequence[Group | str] | Mapping[str, Group | str],
    *,
    representation: Representation | None = None,
    mass: ArrayLike | None = None,
    tolerance: float | None = None,
    support: Support | None = None,
    action: ActionTree | None = None,
    labels: int | None = None,
    confidence: ArrayLike | None = None,
    level: float = 0.95,
    progress: bool = False,
) -> Comparison:
    """Compare symmetries on a data set before training: is D4 safe, or only C4?

    For each group: the share of samples matched with others of their orbit; the accuracy ceiling
    and floor of invariant models on these samples, and an interval certified for the population
    (`certified_ceiling`); an estimate from nearest neighbors across orbits (`neighbor_ceiling`),
    which is all that there is where no samples coincide, and is biased where samples are copies of
    each other, as in augmented data; the shares of correct, incorrect and
    extrinsic invariance; and the calibration error that the symmetry forces on confident models, as
    a curve in p. The trivial group comes first: its cost is not due to a symmetry (equal points
    with different labels). With a `representation` the data are values, and the floor of the
    squared error takes the place of the ceiling.

    Args:
        data: points (or whatever `action` moves) and labels, `(x, label)`, or values, `(x, value)`.
        groups: candidates, as groups or their texts (`"dihedral:4"`), or a mapping that names them.
        representation: for values, how groups move them: `"invariant"`, `"vector"`, or a function
            from a group (other than the trivial one) to matrices `[K, D, D]`. None means labels.
        mass: `[N]`, each sample's probability; equal by default.
        tolerance: the distance within which points match; None means equal up to rounding. Within a
            larger one nothing is a bound, and all columns of bounds are None.
        support: as in `taxonomy`; by default the tolerance.
        action: how the groups move `x`; `orbical.actions.Points()` by default.
        labels: the number of labels; one more than the largest by default.
        confidence: `[P]`, values p of the curves; 101 values from 0 to 1 by default.
        level: the probability with which intervals hold.
        progress: whether to show the progress of long searches for neighbors.

    Returns:
        The candidates, the trivial group first.

    Raises:
        InputError: if there is no candidate, the data are not a pair, or labels are floats.

    Example:
        >>> x = [[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]]
        >>> found = compare_groups((x, [0, 0, 1, 1]), ["cyclic:2", "cyclic:4"])
        >>> [(row["group"], row["matched"], row["accuracy_ceiling"]) for row in found.rows()]
        [('trivial', 0.0, 1.0), ('cyclic:2', 1.0, 1.0), ('cyclic:4', 1.0, 0.5)]
    """
    if not isinstance(data, tuple | list) or len(data) != 2:
        raise InputError("data", "a pair (x, label)", type(data))
    if isinstance(groups, str) or not isinstance(groups, Mapping | Sequence):
        raise InputError(
            "groups", "a list or a mapping of candidates", repr(groups), remedy=f"pass [{groups!r}]"
        )
    if not isinstance(groups, Mapping):
        groups = {group if isinstance(group, str) else group.spec: group for group in groups}
    if not groups:
        raise InputError("groups", "at least one candidate", "none")
    x, truth = data
    if representation is None:
        _check_labels_to_compare_groups(truth)
    p = np.linspace(0, 1, 101) if confidence is None else np.asarray(confidence, dtype=np.float64)
    both: dict[str, Any] = {"action": action, "mass": mass}
    search: dict[str, Any] = {"level": level, "progress": progress, **both}
    others = {name: as_group(each) for name, each in groups.items()}
    candidates = {BASELINE: identity_of(next(iter(others.values())))} | others
    found = []
    for name, group in candidates.items():
        orbits = match_orbits(x, group, tolerance=tolerance, action=action)
        table: OrbitTable | ValueTable
        if representation is None:
            turns = "invariant"
            table = OrbitTable.from_labels(orbits, truth, labels=labels, mass=mass)
            estimate = neighbor_ceiling(x, truth, group, labels=labels, **search)
            own = _of_labels(table, p, level)
        else:
            truth = checks.columns("value", truth)
            turns = _matrices_of_compared_group(representation, group, truth.shape[1])
            table = ValueTable.from_data(x, truth, group, tolerance=tolerance, **both)
            estimate = neighbor_floor(x, truth, group, representation=turns, **search)
            reached = isinstance(turns, str) or table.element is not None
            own = {"floor": regression(table, turns)["thm3"].value if reached else None}
        moves = None if isinstance(turns, str) else turns
        reach = orbits.tolerance if support is None else support
        kinds = taxonomy(x, truth, group, support=reach, representation=moves, **both).totals()
        together = np.bincount(orbits.orbit)[orbits.orbit] > 1
        matched = float(checks.sample_mass(mass, len(together)) @ together)
        found.append(Candidate(name, len(group), matched, table, kinds, estimate, **own))
    return Comparison(tuple(found), p, orbits.tolerance, level)


def _check_labels_to_compare_groups(truth: ArrayLike) -> None:
    """Refuse floats as labels: whole values of a regression would be hundreds of classes."""
    kind = as_numpy("label", truth).dtype
    if kind.kind == "f":
        raise InputError(
            "label",
            "integers",
            kind,
            remedy="cast labels to integers, or pass representation='invariant' (or 'vector') "
            "for values of a regression",
        )


def _of_labels(table: OrbitTable, p: Array, level: float) -> dict[str, Any]:
    """Return what only labels have: a certified interval, and curves of forced error."""
    certified = None
    if table.samples is not None and table.samples > 1 and table.tolerance is None:
        certified = certified_ceiling(table, level=level)
    return {"certified": certified, "forced": forced_overconfidence(table, p)}


def _matrices_of_compared_group(
    representation: Representation, group: Group, dimension: int
) -> Any:
    """Return how a group moves values: `"invariant"`, or matrices `[K, D, D]`."""
    if callable(representation) and group.parts:
        return representation(group)
    if callable(representation) or representation == "vector":
        part = {2: "plane", 3: "space"}.get(dimension, "")
        still = np.broadcast_to(np.eye(dimension), (len(group), dimension, dimension))
        return group.linear(part) if part in group.parts else still
    if representation != "invariant":
        raise InputError(
            "representation",
            "'invariant', 'vector' or a function from a group to matrices",
            repr(representation),
        )
    return representation
