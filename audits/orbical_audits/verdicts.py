"""The verdicts of audits, and the one function that every rule ends in."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping


class Verdict(enum.StrEnum):
    """The verdicts, from the best to the worst."""

    INVARIANT = "invariant"
    TOLERATED = "within tolerance"
    BY_DESIGN = "by design"
    OPEN = "open"
    UNCONFIDENT = "not invariant, low confidence there"
    NOT_INVARIANT = "not invariant"
    CONFIDENT = "not invariant and confident"


CHANGES = (Verdict.UNCONFIDENT, Verdict.NOT_INVARIANT, Verdict.CONFIDENT)
"""The verdicts that say that predictions change by more than the tolerance."""


def verdict_of(
    change: Mapping[str, float], tolerance: float, *, exact: bool, confident: bool | None = None
) -> Verdict:
    """Return the verdict on a change, by the limits of its interval. Every rule ends here.

    Args:
        change: The limits `low` and `high` of the change, or of the share of samples that change.
        tolerance: What is tolerated.
        exact: Whether nothing changes beyond rounding.
        confident: Whether the model's confidence stays high where predictions change (True), is low
            there (False), or is absent or undecided (None).

    Example:
        >>> str(verdict_of({"low": 0.02, "high": 0.09}, 0.05, exact=False, confident=True))
        'open'
        >>> str(verdict_of({"low": 0.06, "high": 0.09}, 0.05, exact=False, confident=True))
        'not invariant and confident'
    """
    if exact:
        return Verdict.INVARIANT
    if change["high"] < tolerance:
        return Verdict.TOLERATED
    if change["low"] <= tolerance:
        return Verdict.OPEN
    if confident is None:
        return Verdict.NOT_INVARIANT
    return Verdict.CONFIDENT if confident else Verdict.UNCONFIDENT


def largest(changes: Iterable[Mapping[str, float]], tolerance: float = 1) -> dict[str, float]:
    """Return the limits of the largest of several changes, in units of a tolerance.

    >>> largest([{"low": 0.1, "high": 0.4}, {"low": 0.2, "high": 0.3}])
    {'low': 0.2, 'high': 0.4}
    """
    every = list(changes)
    return {end: max(change[end] for change in every) / tolerance for end in ("low", "high")}


def stays_confident(surplus: Mapping[str, float] | None, *, high: float, low: float) -> bool | None:
    """Return whether an interval says confident (above `high`), not (below `low`), or neither.

    >>> [stays_confident({"low": a, "high": b}, high=0.5, low=0.2) for a, b in ((0.6, 1), (0, 0.1))]
    [True, False]
    """
    if surplus is None:
        return None
    if surplus["low"] > high:
        return True
    return False if surplus["high"] < low else None
