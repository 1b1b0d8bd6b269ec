"""The Student t that evidential outputs `(gamma, nu, alpha, beta)` predict, about its centre."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def student_scale(nu: Array, alpha: Array, beta: Array) -> Array:
    """Scale of the predictive Student t, `sqrt(beta (1 + nu) / (alpha nu))`."""
    return np.sqrt(beta * (1 + nu) / (alpha * nu))


def student_errors(
    nu: Array, alpha: Array, beta: Array, draws: int, draw: np.random.Generator
) -> Array:
    """Draw errors of a calibrated network with these answers, `[draws, ...]`.

    What a measure of calibration makes of them is its floor: the value that it has though nothing
    is wrong, for as many samples and tails as heavy.

    >>> one = np.ones(100_000)
    >>> errors = student_errors(one, 50 * one, 49 * one, 1, np.random.default_rng(0))
    >>> round(float(errors.var()), 1)  # beta / (alpha - 1) * (1 + 1 / nu)
    2.0
    """
    scale = student_scale(nu, alpha, beta)
    return np.asarray(scale * draw.standard_t(2 * alpha, (draws, *scale.shape)))


def student_nll(error: Array, nu: Array, alpha: Array, beta: Array) -> Array:
    """Negative log-density of errors, by scipy's Student t: independent of the loss's own code."""
    from scipy.stats import t

    scale = student_scale(nu, alpha, beta)
    return np.asarray(-t.logpdf(error / scale, 2 * alpha) + np.log(scale))


def student_gence(alpha: Array) -> Array:
    """GENCE of errors that are drawn from a Student t with `2 alpha` degrees of freedom.

        1 + pi/2 - 2 E|e| / a,   a = sqrt(2 s / pi)

    with E|e| of the Student t: pi/2 - 1 for a Gaussian, more for heavier tails, 1 + pi/2 where the
    variance grows beyond all bounds (alpha -> 1).

    >>> student_gence(np.array([1e6, 1.5])).round(3).tolist()
    [0.571, 0.975]
    """
    from scipy.special import gammaln

    freedom = 2 * alpha
    logarithm = gammaln((freedom + 1) / 2) - gammaln(freedom / 2)
    mean = 2 * np.sqrt(freedom / math.pi) * np.exp(logarithm) / (freedom - 1)
    deviation = np.sqrt(freedom / (freedom - 2))
    return np.asarray(1 + math.pi / 2 - 2 * mean / (math.sqrt(2 / math.pi) * deviation))
