"""A bound: a number, what it bounds, on which side, and whether its hypotheses hold."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from ..errors import check_type

__all__ = ["Bound", "Bounds"]

ROUNDING = 1e-12
OPEN = (
    "the elements are a sample of a larger group, whose orbits may be coarser: what the sampled "
    "orbits allow, no model of that symmetry need attain"
)


@dataclass(frozen=True)
class Bound:
    """One statement of the theory, evaluated on a table.

    Attributes:
        value: the number, or None where there is none.
        quantity: what it bounds: `accuracy`, `ece`, `error`, `gence`, ...
        kind: `upper`, `lower`, `exact` (the quantity itself), or `estimate`, which is not a bound
            and never applies.
        applies: whether the statement's hypotheses hold on this table. If not, `float` raises.
        reason: which hypothesis fails if not; otherwise an explanation of the value, if needed.
        vacuous: whether it only repeats the range of the quantity (accuracy and ECE lie in [0, 1],
            errors are not negative).
    """

    value: float | None
    quantity: str
    kind: str
    applies: bool = True
    reason: str = ""
    vacuous: bool = False

    def __float__(self) -> float:
        if self.value is None or not self.applies:
            raise TypeError(f"this bound does not apply: {self.reason}")
        return self.value


def inapplicable_bound(quantity: str, kind: str, reason: str) -> Bound:
    """Return the bound of a statement whose hypotheses fail: it has a reason and no value."""
    return Bound(None, quantity, kind, applies=False, reason=reason)


def lower_bound(value: float, quantity: str, scale: float = 1.0, *, reason: str = "") -> Bound:
    """Return a lower bound of a quantity that is never negative.

    Rounding errors, relative to the size of what it was computed from, count as 0.
    """
    known = value > ROUNDING * scale
    return Bound(value if known else 0.0, quantity, "lower", reason=reason, vacuous=not known)


def share_upper_bound(value: float, quantity: str, reason: str = "") -> Bound:
    """Return an upper bound of a quantity that is never above 1."""
    return Bound(value, quantity, "upper", reason=reason, vacuous=value >= 1 - ROUNDING)


def estimated_bounds(bounds: Mapping[str, Bound], tolerance: float) -> dict[str, Bound]:
    """Return statements about samples joined within a tolerance: none of them applies."""
    reason = (
        f"samples up to {tolerance:.3g} apart were joined, directly or through others, which "
        "is not an orbit; see orbical.bounds.neighbor_ceiling"
    )
    mark = {"kind": "estimate", "applies": False, "reason": reason, "vacuous": False}
    return {
        name: bound if bound.value is None else replace(bound, **mark)  # type: ignore[arg-type]
        for name, bound in bounds.items()
    }


_NO_FACTS: Mapping[str, object] = MappingProxyType({})


class Bounds(Mapping[str, Bound]):
    """The bounds of one table by name, with the facts they were computed from.

    Args:
        bounds: the bounds by name.
        about: facts to report with them, such as the fibers used and the measured invariance
            defect of the model.
    """

    def __init__(self, bounds: Mapping[str, Bound], about: Mapping[str, Any] = _NO_FACTS) -> None:
        check_type("bounds", bounds, Mapping, "bounds by name")
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

    def to_dict(self) -> dict[str, object]:
        """Return the bounds as plain values, ready for JSON."""
        return {
            "about": self.about,
            "bounds": {name: dict(vars(bound)) for name, bound in self.items()},
        }
