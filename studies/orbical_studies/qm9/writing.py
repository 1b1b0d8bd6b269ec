"""How the page writes numbers: few figures, a power of ten where they are very large."""

from __future__ import annotations

from collections.abc import Sequence

from .. import pages


def number(value: float) -> str:
    """Write a number with three figures.

    >>> number(1785790158.45), number(8.2), number(0.0)
    ('1.8e+09', '8.20', '0')
    """
    return f"{value:.1e}" if abs(value) >= 1e4 else pages.number(value)


def about(found: Sequence[float]) -> str:
    """Write the mean over seeds and the standard deviation.

    >>> about([0.1, 0.3]), about([2e9]), about([])
    ('0.200 ± 0.141', '2.0e+09', '')
    """
    return pages.about(found, number)


def ends(found: Sequence[float]) -> str:
    """Write the least and the largest value.

    >>> ends([3.0, 1.0, 2.0]), ends([])
    ('1.00 to 3.00', 'not measured')
    """
    if not found:
        return "not measured"
    low, high = number(min(found)), number(max(found))
    return low if low == high else f"{low} to {high}"
