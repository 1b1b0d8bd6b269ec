"""Write numbers and tables. The functions on numbers are also filters of the page templates."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from .statistics import wilson

if TYPE_CHECKING:
    from pandas import DataFrame


def fixed(value: float | None, digits: int = 3) -> str:
    """Format a number with a fixed number of decimals; a missing value is empty, a 0 has no sign.

    Example:
        >>> fixed(0.12345), fixed(2, 1), fixed(-0.0001), fixed(float("nan"))
        ('0.123', '2.0', '0.000', '')
    """
    return "" if value is None or math.isnan(value) else f"{value:z.{digits}f}"


def percent(value: float, digits: int = 0) -> str:
    """Format a fraction as a percentage.

    Example:
        >>> percent(0.9513), percent(0.9513, 1)
        ('95 %', '95.1 %')
    """
    return f"{100 * value:.{digits}f} %"


def count(value: float | str) -> str:
    """Format a whole number, or a number without its decimals, with thousands separators.

    Example:
        >>> count(20000)
        '20,000'
    """
    return f"{float(value):,.0f}"  # a header holds texts


def number(value: float) -> str:
    """Format a number to three significant figures, more if it is large; rounding error is 0.

    Example:
        >>> number(129.3982), number(8.2), number(0.01234), number(7.2e-08), number(1e-29)
        ('129.40', '8.20', '0.0123', '7.2e-08', '0')
    """
    size = abs(value)
    if math.isnan(value) or size < 1e-15:
        return "" if math.isnan(value) else "0"
    if size < 1e-3:
        return f"{value:.1e}"
    return f"{value:.2f}" if size >= 10 else f"{value:#.3g}"


def spread(
    values: Iterable[float], digits: int | None = 3, write: Callable[[float], str] = number
) -> str:
    """Format the mean and the standard deviation of some values, usually over seeds.

    Args:
        values: Numbers; missing ones are left out.
        digits: Decimals of both; None formats each with `write`.
        write: Formats one number.

    Returns:
        `mean ± standard deviation`, the mean alone for one value, empty for none.

    Example:
        >>> spread([0.1, 0.2, 0.3]), spread([0.1]), spread([])
        ('0.200 ± 0.100', '0.100', '')
        >>> spread([129.0, 130.0], None)
        '129.50 ± 0.707'
    """
    known = [float(value) for value in values if not math.isnan(value)]
    if not known:
        return ""
    shown = [statistics.fmean(known)]
    if len(known) > 1:
        shown.append(statistics.stdev(known))
    return " ± ".join(write(value) if digits is None else fixed(value, digits) for value in shown)


def verdict(holds: object, refuted: object = None) -> str:
    """Return the verdict on a claim: whether the data confirm it.

    Args:
        holds: Whether the rule of the claim holds.
        refuted: Whether the data contradict it; if neither, the question is open. None for a claim
            with one rule.

    Example:
        >>> verdict(0.9 > 0.5), verdict(float("nan") > 0.5)
        ('confirmed', 'not confirmed here')
        >>> verdict(False, refuted=True), verdict(False, refuted=False)
        ('contradicted', 'open')
    """
    if holds:
        return "confirmed"
    return "not confirmed here" if refuted is None else "contradicted" if refuted else "open"


def share(value: float, samples: float, digits: int = 2) -> str:
    """Format a share with its 95 % interval over samples (Wilson's).

    Example:
        >>> share(0.05, 100)
        '0.05 (0.02 to 0.11)'
    """
    low, high = wilson(value * samples, samples)
    return f"{fixed(value, digits)} ({fixed(low, digits)} to {fixed(high, digits)})"


def table(frame: DataFrame) -> str:
    """Write a data frame as a Markdown table.

    Strings are written as they are, floats by `number`, missing values empty. An index is shown if
    it has a name.

    Example:
        >>> import pandas as pd
        >>> print(table(pd.DataFrame({"n": [4], "error": [0.25], "paper": [float("nan")]})))
        | n | error | paper |
        | --- | --- | --- |
        | 4 | 0.250 |  |
    """
    named = [name for name in frame.index.names if name is not None]
    shown = frame.reset_index(level=named) if named else frame
    lines: list[list[Any]] = [list(shown), ["---"] * shown.shape[1]]
    lines += [list(line) for line in shown.itertuples(index=False, name=None)]
    return "\n".join("| " + " | ".join(map(_cell, line)) + " |" for line in lines)


def _cell(value: Any) -> str:
    return number(value) if isinstance(value, float) else "" if value is None else str(value)


def columns(text: str, *places: int) -> str:
    """Keep some columns of a Markdown table, by their places.

    Example:
        >>> print(columns("| claim | measured | verdict |\\n| - | - | - |\\n| a | 1 | yes |", 0, 2))
        | claim | verdict |
        | - | - |
        | a | yes |
    """
    rows = ([cell.strip() for cell in line[1:-1].split("|")] for line in text.split("\n") if line)
    return "\n".join("| " + " | ".join(row[place] for place in places) + " |" for row in rows)


FILTERS = {
    f.__name__: f for f in (columns, count, fixed, number, percent, share, spread, table, verdict)
}
