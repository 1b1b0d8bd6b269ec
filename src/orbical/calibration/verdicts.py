"""Judge a value with its interval by a limit: pass, fail, or inconclusive; without torch."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from .._numpy import as_numpy
from .._text import number, percent
from ..errors import InputError, if_percent, real_number
from .intervals.levels import checked_level

__all__ = ["Verdict", "error_finding", "error_verdict", "judge"]


@dataclass(frozen=True)
class Verdict:
    """Whether a measure stays within a limit, as far as its samples can tell.

    Attributes:
        outcome: "pass" if the interval lies within the limit, "fail" if it lies beyond,
            "inconclusive" if it contains the limit: more samples are needed.
        value: The measured value.
        low: Lower end of its interval; NaN if it has none.
        high: Upper end.
        limit: The limit.
        upper: Whether the limit is the largest value allowed; else it is the smallest.
        level: Nominal coverage of the interval, of all positions together.
        positions: The number of positions that the interval is corrected for.
        caution: Why the interval may be too short; empty if nothing speaks for that.
    """

    outcome: str
    value: float
    low: float
    high: float
    limit: float
    upper: bool
    level: float
    positions: int
    caution: str = field(default="", kw_only=True)

    def __str__(self) -> str:
        return f"{self.outcome}: {self.numbers}{self.said}"

    @property
    def said(self) -> str:
        """The caution as the end of a line."""
        return f"; caution: {self.caution}" if self.caution else ""

    @property
    def numbers(self) -> str:
        """Value, interval and limit in words."""
        sign = "<=" if self.upper else ">="
        known = not math.isnan(self.low)
        ends = f"[{number(self.low)}, {number(self.high)}]" if known else "no interval"
        several = f" of {self.positions} positions" if self.positions > 1 else ""
        return (
            f"{number(self.value)} {ends} at {percent(self.level)}{several},"
            f" limit {sign} {number(self.limit)}"
        )


def judge(
    value: float,
    low: float,
    high: float,
    *,
    maximum: float | None = None,
    minimum: float | None = None,
    level: float = 0.95,
    positions: int = 1,
    caution: str = "",
) -> Verdict:
    """Compare an interval with a limit.

    Args:
        value: The measured value. NaN fails.
        low: Lower end of its interval; NaN if it has none, and then nothing is decided.
        high: Upper end.
        maximum: The largest value allowed; or
        minimum: the smallest. Pass one of the two.
        level: Nominal coverage of the interval.
        positions: The number of positions that the interval was corrected for.
        caution: The caution of the interval, if it has one.

    Returns:
        The verdict.

    Example:
        >>> judge(0.03, 0.0, 0.06, maximum=0.05).outcome
        'inconclusive'
        >>> print(judge(0.9, 0.88, 0.92, minimum=0.85))
        pass: 0.9 [0.88, 0.92] at 95%, limit >= 0.85
    """
    if (maximum is None) == (minimum is None):
        given = "neither" if maximum is None else "both"
        raise InputError("maximum, minimum", "exactly one of the two", given)
    upper, limit = maximum is not None, (minimum or 0.0) if maximum is None else maximum
    within = [end <= limit if upper else end >= limit for end in (low, high)]
    if math.isnan(low) or math.isnan(high):
        within = [not math.isnan(value), False]
    outcome = "pass" if all(within) else "inconclusive" if any(within) else "fail"
    ends = (value, low, high, limit, upper, checked_level(level), positions)
    return Verdict(outcome, *ends, caution=caution)


def measure_limit(argument: str, limit: Any, bounds: tuple[float, float] | None) -> float:
    """Return a limit, which must be a value that what it limits can have.

    >>> measure_limit("max_ece", 5, (0.0, 1.0))
    Traceback (most recent call last):
    orbical.errors.InputError: max_ece: expected a number in [0, 1], got 5; did you mean 0.05?
    """
    chosen = float(real_number(argument, limit))
    if bounds is None or bounds[0] <= chosen <= bounds[1]:
        return chosen
    low, high = bounds
    raise InputError(
        argument,
        f"a number in [{number(low)}, {number(high)}]",
        number(chosen),
        remedy=if_percent(chosen, lambda share: low <= share <= high),
    )


UNDETECTED = "no error detected"
"""The verdict on an error that the samples do not show; they cannot show that there is none."""


def error_verdict(value: float, low: float, high: float, gap: float | None = None) -> str:
    """Return whether an interval shows a calibration error; every such verdict comes from here.

    Args:
        value: The calibration error.
        low: Lower end of its interval; above 0 if the samples show an error.
        high: Upper end.
        gap: Mean confidence minus accuracy, if the direction of an error is to be named.

    Returns:
        "no error detected", or "error detected"; with `gap`, "overconfident", "underconfident", or
        "miscalibrated" where the errors at different confidences almost cancel. Empty if there is
        no interval: a value alone cannot tell an error from chance.

    Example:
        >>> error_verdict(0.08, 0.02, 0.13, gap=0.07), error_verdict(0.08, 0.0, 0.13, gap=0.07)
        ('overconfident', 'no error detected')
    """
    ends = (("value", value), ("low", low), ("high", high))
    if any(math.isnan(as_numpy(name, end)) for name, end in ends):
        return ""
    if judge(value, low, high, maximum=0.0).outcome != "fail":
        return UNDETECTED
    if gap is None:
        return "error detected"
    if abs(gap) < value / 3:
        return "miscalibrated"
    return "overconfident" if gap > 0 else "underconfident"


def error_finding(value: float, low: float, high: float, gap: float | None = None) -> str:
    """Return the verdict on an error as a sentence, with the end of the interval that matters.

    >>> error_finding(0.08, 0.02, 0.13)
    'error detected (at least 0.02)'
    """
    word = error_verdict(value, low, high, gap)
    if word == UNDETECTED:
        return f"{word}; one of up to {number(high)} could have been missed"
    return word and f"{word} (at least {number(low)})"
