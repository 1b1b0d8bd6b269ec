"""Comparing candidate symmetries of a data set before training."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InputError
from .classification_bounds import forced_overconfidence
from .matching import match_orbits
from .orbit_table import OrbitTable
from .pointwise_taxonomy import KINDS, Support, taxonomy

if TYPE_CHECKING:
    from ..groups import Group

__all__ = ["Candidate", "Comparison", "compare_groups"]

Array = np.ndarray
BASELINE = "trivial"


@dataclass(frozen=True, eq=False)
class Candidate:
    """The consequences of one group for a labeled data set.

    Attributes:
        name: the name passed, or the text of the group.
        elements: the number of transformations of the group.
        table: the orbits of the data.
        kinds: shares of correct, incorrect and extrinsic.
        forced: `[P]`, the calibration error forced on every model whose mean confidence is p.
        forced_orbitwise: `[P]`, the same where each orbit has a confidence near p of its own.
    """

    name: str
    elements: int
    table: OrbitTable
    kinds: Mapping[str, float]
    forced: Array
    forced_orbitwise: Array


@dataclass(frozen=True, eq=False)
class Comparison:
    """Candidate groups; the first is the trivial group, their baseline.

    Attributes:
        candidates: the trivial group and the groups passed.
        confidence: `[P]`, the values p of the curves.
        tolerance: the distance within which points counted as equal.
    """

    candidates: tuple[Candidate, ...]
    confidence: Array
    tolerance: float

    def rows(self) -> list[dict[str, Any]]:
        """Return the table, one dictionary for each group."""
        ground = self.candidates[0].table.accuracy_ceiling
        return [
            {
                "group": each.name,
                "elements": each.elements,
                "orbits": len(each.table.mass),
                "accuracy_ceiling": each.table.accuracy_ceiling,
                "cost": ground - each.table.accuracy_ceiling,
                "accuracy_floor": each.table.accuracy_floor,
                **each.kinds,
                "forced_at_full_confidence": float(each.forced[-1]),
            }
            for each in self.candidates
        ]

    def __repr__(self) -> str:
        shares = {"ceiling": "accuracy_ceiling", "cost": "cost", "floor": "accuracy_floor"}
        shares |= {kind: kind for kind in KINDS}
        lines = [["group", "elements", "orbits", *shares]]
        for row in self.rows():
            numbers = [f"{row[name]:.4f}" for name in shares.values()]
            lines.append([row["group"], str(row["elements"]), str(row["orbits"]), *numbers])
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        return "\n".join(
            "  ".join([line[0].ljust(widths[0]), *map(str.rjust, line[1:], widths[1:])])
            for line in lines
        )


def compare_groups(
    data: tuple[Any, Any],
    groups: Sequence[Group | str] | Mapping[str, Group | str],
    *,
    tolerance: float | None = None,
    support: Support | None = None,
    action: Any | None = None,
    labels: int | None = None,
    confidence: Any | None = None,
) -> Comparison:
    """Compare symmetries on labeled data before training: is D4 safe, or only C4?

    For each group: the accuracy ceiling and floor of invariant models, the shares of correct,
    incorrect and extrinsic invariance, and the calibration error that the symmetry forces on
    confident models, as a curve in p. The trivial group comes first: its cost is not due to a
    symmetry (equal points with different labels).

    Args:
        data: points (or whatever `action` moves) and labels, `(x, label)`.
        groups: candidates, as groups or their texts (`"dihedral:4"`), or a mapping that names them.
        tolerance: the distance within which points match; None means equal up to rounding.
        support: as in `taxonomy`; by default the tolerance.
        action: how the groups move `x`; `orbical.actions.Points()` by default.
        labels: the number of labels; one more than the largest by default.
        confidence: `[P]`, values p of the curves; 101 values from 0 to 1 by default.

    Returns:
        The candidates, the trivial group first.

    Raises:
        InputError: if there is no candidate, or the data are not a pair.

    Example:
        >>> x = [[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]]
        >>> compare_groups((x, [0, 0, 1, 1]), ["cyclic:2", "cyclic:4"])
        group     elements  orbits  ceiling    cost   floor  correct  incorrect  extrinsic
        trivial          1       4   1.0000  0.0000  0.0000   1.0000     0.0000     0.0000
        cyclic:2         2       2   1.0000  0.0000  0.0000   1.0000     0.0000     0.0000
        cyclic:4         4       1   0.5000  0.5000  0.5000   0.5000     0.5000     0.0000
    """
    from ..groups import parse, trivial

    if not isinstance(data, tuple | list) or len(data) != 2:
        raise InputError(f"data: expected a pair (x, label), got {type(data).__name__}")
    x, label = data
    if isinstance(groups, str) or not isinstance(groups, Mapping | Sequence):
        raise InputError(f"groups: expected a list or a mapping of candidates, got {groups!r}")
    named = groups if isinstance(groups, Mapping) else {_name(group): group for group in groups}
    if not named:
        raise InputError("groups: expected at least one candidate, got none")
    p = np.linspace(0, 1, 101) if confidence is None else np.asarray(confidence, dtype=np.float64)
    candidates = []
    used = tolerance
    for name, given in {BASELINE: trivial(), **named}.items():
        group = parse(given) if isinstance(given, str) else given
        orbits = match_orbits(x, group, tolerance=tolerance, action=action)
        used = orbits.tolerance
        table = OrbitTable.from_labels(orbits.orbit, label, labels=labels)
        kinds = taxonomy(
            x, label, group, support=used if support is None else support, action=action
        )
        forced, orbitwise = forced_overconfidence(table, p)
        candidates.append(Candidate(name, len(group), table, kinds.totals(), forced, orbitwise))
    assert used is not None
    return Comparison(tuple(candidates), p, used)


def _name(group: Group | str) -> str:
    return group if isinstance(group, str) else group.spec
