"""From answers to numbers: errors, calibration with its floors, and where uncertainty went.

A row's errors and variances are in plain z-scores, mean 0 and deviation 1 over the training
non-linear molecules, whatever the scale in which a property was learned.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.stats import t

from orbical import calibration

from ..student_t import Array, student_errors, student_gence, student_nll, student_scale

Found = dict[str, float]
BINS, LEVELS, DRAWS = 15, 99, 20
NEAR = 0.01
"""An alpha this near to 1 makes a variance without bound."""


def scores(evidence: Array, target: Array, unit: float, seed: int = 0) -> Found:
    """Measure answers about one property.

    Args:
        evidence: `[4, n]`, gamma, nu, alpha and beta in the units of training.
        target: `[n]`, in the same units.
        unit: how many deviations one such unit is.
        seed: of the draws that give the floors.

    Returns:
        `mae`, `rmse`, `nll`; `bleed`, `bleed_99` without the worst molecules, and `bleed_error`,
        what it would be if all of a calibrated variance were called aleatoric; `unbounded`, the
        share of molecules with alpha near 1; `share`, the median aleatoric part of the variance;
        quantiles of both parts; calibration, each beside the value of a calibrated network with
        the same parameters.
    """
    gamma, nu, alpha, beta = evidence
    aleatoric = beta / (alpha - 1)
    epistemic = aleatoric / nu
    variance = aleatoric + epistemic
    error = target - gamma
    found = {
        "mae": float(np.abs(error).mean()) * unit,
        "rmse": float(np.sqrt(np.square(error).mean())) * unit,
        "nll": float(student_nll(error, nu, alpha, beta).mean()) + math.log(unit),
        "bleed": float(calibration.aleatoric_bleed(aleatoric * unit**2).total),
        "bleed_99": most_bleed(aleatoric * unit**2),
        "bleed_error": _error_bleed(error * unit, variance),
        "share": float(np.median(aleatoric / variance)),
        "unbounded": float((alpha < 1 + NEAR).mean()),
        "alpha": float(np.median(alpha)),
    }
    for name, part in (("aleatoric", aleatoric), ("epistemic", epistemic)):
        ends = np.quantile(part * unit**2, (0.05, 0.5, 0.95, 0.99))
        found |= {f"{name}_{q}": float(v) for q, v in zip((5, 50, 95, 99), ends, strict=True)}
        found[f"{name}_rank"] = rank_correlation(part, np.abs(error))
    found["parts_rank"] = rank_correlation(aleatoric, epistemic)
    return found | calibration_scores(error, nu, alpha, beta, seed)


def calibration_scores(error: Array, nu: Array, alpha: Array, beta: Array, seed: int) -> Found:
    """Measure calibration, and its mean over errors drawn from the answers themselves."""
    variance = beta / (alpha - 1) * (1 + 1 / nu)
    scale, freedom = student_scale(nu, alpha, beta), 2 * alpha
    draw = np.random.default_rng(seed)
    drawn = student_errors(nu, alpha, beta, DRAWS, draw)
    uniform = draw.random((DRAWS, len(error)))
    zero, spread = np.zeros_like(error), np.tile(variance, (DRAWS, 1))
    return {
        "gence": float(calibration.gence(zero, variance, error)),
        "gence_own": float(student_gence(alpha).mean()),
        "ence": float(calibration.ence(zero, variance, error, bins=BINS)),
        "ence_floor": float(
            calibration.ence(np.zeros_like(drawn), spread, drawn, bins=BINS).mean()
        ),
        "esd": float(calibration.regression_esd_normalized(zero, variance, error)),
        "coverage": coverage_error(t.cdf(error / scale, freedom)),
        "coverage_floor": float(np.mean([coverage_error(values) for values in uniform])),
        "square": float((np.square(error) / variance).mean()),
    }


def coverage_error(probability: Array) -> float:
    """Compute the mean distance of the share of samples below each quantile from its level.

    >>> round(coverage_error(np.linspace(0.0005, 0.9995, 1000)), 6)
    0.0
    """
    levels = np.arange(1, LEVELS + 1) / (LEVELS + 1)
    observed = np.searchsorted(np.sort(probability), levels, side="right") / len(probability)
    return float(np.abs(observed - levels).mean())


def most_bleed(aleatoric: Array) -> float:
    """Compute the bleed of the 99 of 100 molecules with the least aleatoric variance.

    The bleed of all is a mean of squares of `beta / (alpha - 1)`, which has no bound as alpha nears
    1: likelihood likes heavy tails, and does not mind that such a Student t has no variance.

    >>> most_bleed(np.array([1.0] * 99 + [1e9]))
    1.0
    """
    kept = np.sort(aleatoric)[: max(1, math.floor(0.99 * len(aleatoric)))]
    return float(np.square(kept).mean())


def _error_bleed(error: Array, variance: Array) -> float:
    """Compute the bleed of a network that calls all of a calibrated variance aleatoric.

        sum_b share_b (mean squared error_b)^2,   in bins b of equal mass of its variance

    >>> _error_bleed(np.array([1.0, -1.0, 1.0, 1.0]), np.ones(4))
    1.0
    """
    parts = np.array_split(np.square(error)[np.argsort(variance, kind="stable")], BINS)
    means = [(len(part), part.mean()) for part in parts if len(part)]
    return float(sum(count * value**2 for count, value in means) / len(error))


def rank_correlation(a: Array, b: Array) -> float:
    """Compute Spearman's correlation.

    >>> rank_correlation(np.arange(4.0), np.arange(4.0) ** 3)
    1.0
    """
    ranks = np.argsort(np.argsort([a, b]))
    return float(np.asarray(np.corrcoef(ranks))[0, 1].round(12))
