"""Finished rows of the spectra study, and how its numbers are chosen and written."""

from __future__ import annotations

from collections.abc import Callable
from statistics import fmean, stdev
from typing import Any

from ..pages import Row
from .measures import REGIONS
from .settings import NETWORKS, PENALTY, SQUARES, STEERABLE, is_kind

Data = dict[str, list[Row]]
"""The study's CSV files by name."""
ABSENT = "Not trained: `orbical study spectra train --only squares` does it."
"""What stands in the place of what was not trained."""


def chosen(rows: list[Row], network: str, penalty: float, **kind: Any) -> list[Row]:
    """Rows of one network and one kind of training (see `is_kind`), of every seed."""
    return [row for row in rows if row["network"] == network and is_kind(row, penalty, **kind)]


def values(data: Data, name: str, network: str, penalty: float, **kind: Any) -> list[float]:
    """A column of the results, one number for each seed."""
    return [float(row[name]) for row in chosen(data["results"], network, penalty, **kind)]


def mean(data: Data, name: str, network: str, penalty: float, **kind: Any) -> float:
    """A column of the results, averaged over seeds."""
    return fmean(values(data, name, network, penalty, **kind))


def at(data: Data, name: str, network: str = STEERABLE) -> float:
    """A column of the results of the paper's training with the penalty, averaged over seeds."""
    return mean(data, name, network, PENALTY)


def by_squares(data: Data, name: str, network: str, **kind: Any) -> list[float]:
    """A column of the results where means were learnt by squares, one number for each seed."""
    return values(data, name, network, PENALTY, means=SQUARES, **kind)


def squares_done(data: Data) -> bool:
    """Tell whether every network was trained with means by squares."""
    return all(by_squares(data, "mse", network) for network in NETWORKS)


def spread(found: list[float], written: Callable[[float], str] | None = None) -> str:
    """Write the mean over seeds, and the deviation beside it.

    >>> spread([1.0, 3.0])
    '2 ± 1.41'
    """
    written = written or number
    beside = f" ± {written(stdev(found))}" if len(found) > 1 else ""
    return written(fmean(found)) + beside


def number(value: float) -> str:
    """Write a number with three digits.

    >>> number(0.12345), number(12345.6), number(0.0), number(1.2e-7)
    ('0.123', '12,300', '0', '1.2e-07')
    """
    if value == 0:
        return "0"
    if abs(value) >= 1000:
        return f"{float(f'{value:.3g}'):,.0f}"
    return f"{value:.3g}" if abs(value) >= 1e-3 else f"{value:.1e}"


def span(found: list[float]) -> str:
    """Write numbers that differ by their size, as seeds of a bleed do: from the least to the most.

    >>> span([4.1e6, 2e5, 1e6]), span([1.5])
    ('200,000 to 4,100,000', '1.5')
    """
    ends = dict.fromkeys(number(end) for end in (min(found), max(found)))
    return " to ".join(ends)


def percent(share: float, digits: int = 0) -> str:
    """Write a share.

    >>> percent(0.123), percent(0.0013, 1)
    ('12%', '0.1%')
    """
    return f"{100 * share:.{digits}f}%"


def share_of_region(rows: list[Row], name: str, region: str) -> float:
    """How much of a sum over wavenumbers lies in one of `REGIONS`."""
    low, high = REGIONS[region]
    inside = sum(row[name] for row in rows if low <= row["wavenumber"] < high)
    return inside / sum(row[name] for row in rows)
