"""Finished rows of the spectra study, and how its numbers are chosen and written."""

from __future__ import annotations

from statistics import fmean

from ..pages import Row
from .measures import REGIONS

Data = dict[str, list[Row]]
"""The study's CSV files by name."""


def chosen(rows: list[Row], network: str, penalty: float) -> list[Row]:
    """Rows of one network and one penalty, of every seed."""
    return [row for row in rows if row["network"] == network and row["penalty"] == penalty]


def values(data: Data, name: str, network: str, penalty: float) -> list[float]:
    """A column of the results, one number for each seed."""
    return [float(row[name]) for row in chosen(data["results"], network, penalty)]


def mean(data: Data, name: str, network: str, penalty: float) -> float:
    """A column of the results, averaged over seeds."""
    return fmean(values(data, name, network, penalty))


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


def percent(share: float) -> str:
    """Write a share.

    >>> percent(0.123)
    '12%'
    """
    return f"{100 * share:.0f}%"


def share_of_region(rows: list[Row], name: str, region: str) -> float:
    """How much of a sum over wavenumbers lies in one of `REGIONS`."""
    low, high = REGIONS[region]
    inside = sum(row[name] for row in rows if low <= row["wavenumber"] < high)
    return inside / sum(row[name] for row in rows)
