"""A bound: a number, what it bounds, on which side, and whether its hypotheses hold."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Bound:
    """One statement of the theory, evaluated on a table.

    Attributes:
        value: the number, or None where the statement does not apply.
        quantity: what it bounds: `accuracy`, `ece`, `error`, `gence`, ...
        kind: `upper`, `lower`, or `exact` (the quantity itself).
        applies: whether the statement's hypotheses hold on this table.
        reason: which hypothesis fails if not; otherwise, if anything, why the value is what it is.
        vacuous: whether it says no more than the quantity's own range does (accuracy and ECE lie
            in [0, 1], errors are not negative).
    """

    value: float | None
    quantity: str
    kind: str
    applies: bool = True
    reason: str = ""
    vacuous: bool = False

    def __float__(self) -> float:
        if self.value is None:
            raise TypeError(f"this bound does not apply: {self.reason}")
        return self.value


def not_applicable(quantity: str, kind: str, reason: str) -> Bound:
    """Make the bound of a statement whose hypotheses fail: it has a reason and no number."""
    return Bound(None, quantity, kind, applies=False, reason=reason)


class Bounds(Mapping[str, Bound]):
    """The bounds of one table by name, with what they were computed from.

    Attributes:
        about: facts that belong beside the bounds, such as the fibers used and the measured
            invariance defect of the model.
    """

    def __init__(self, bounds: Mapping[str, Bound], about: Mapping[str, Any]) -> None:
        self._bounds = dict(bounds)
        self.about = dict(about)

    def __getitem__(self, name: str) -> Bound:
        if name not in self._bounds:
            raise KeyError(f"{name!r}: no such bound; known: {', '.join(self._bounds)}")
        return self._bounds[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._bounds)

    def __len__(self) -> int:
        return len(self._bounds)

    def __repr__(self) -> str:
        lines = [
            f"{name:<24}"
            + (f"{bound.value:.6g}" if bound.value is not None else "-").rjust(10)
            + f"  {bound.kind} {bound.quantity}"
            + (" (vacuous)" if bound.vacuous else "")
            + (f"  {bound.reason}" if bound.reason else "")
            for name, bound in self.items()
        ]
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON."""
        return {
            "about": self.about,
            "bounds": {name: dict(vars(bound)) for name, bound in self.items()},
        }
