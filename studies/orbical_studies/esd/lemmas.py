"""Lemmas of the ESD paper, computed: what its estimator subtracts, printed and true.

For sample i of N the estimator takes the N - 1 others, g_im = I(z_m <= z_i) (y_m - z_m), and
G_i = mean^2 - S^2 / (N - 1), with S^2 their variance.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike


def variance_of_mean(others: ArrayLike) -> float:
    """Return S^2 / (N - 1) of the N - 1 values of a sample's others.

    >>> round(variance_of_mean([0.7] * 9), 12)
    0.0
    """
    values = np.asarray(others, float)
    return float(values.var(ddof=1) / len(values))


def printed_in_lemma_3_2(others: ArrayLike) -> float:
    """Return what the proof of Lemma 3.2 equates with it; its sign and a factor are wrong.

    >>> round(printed_in_lemma_3_2([0.7] * 9), 3)
    0.116
    """
    values = np.asarray(others, float)
    count = len(values)
    squares, whole = (values**2).sum(), values.sum() ** 2
    return float(squares / count**2 + whole / (count**2 * (count - 1)))


def lemma_3_2(others: ArrayLike) -> dict[str, float]:
    """Return both sides of the printed identity, and the bound 2 / (N - 2) that is proved by it."""
    sides = {"true": variance_of_mean(others), "printed": printed_in_lemma_3_2(others)}
    return sides | {"bound": 2 / (np.size(others) - 1)}
