"""All measures of a model's outputs at once, each with its interval and calibrated value."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from . import gaussian, generalized
from ._interval import binary_pair
from .brier_intervals import brier_part_intervals
from .inputs import (
    ArrayLike,
    as_floating,
    classwise,
    log_probabilities,
    probabilities,
    top_label,
    true_labels,
)
from .intervals import Interval, interval, regression_interval
from .means import mean_interval, share_interval
from .scores import brier_terms, nll_terms

PAIR_MEASURES: dict[str, tuple[str, dict[str, Any]]] = {
    "ece": ("ece", {}),
    "ece_l2": ("ece", {"norm": "l2"}),
    "ece_max": ("ece", {"norm": "max"}),
    "ece_mass": ("ece", {"binning": "mass"}),
    **{name: (name, {}) for name in ("smooth_ece", "sb_ece", "ks", "esd", "mmce", "skce")},
}
"""The measures of a pair `(confidence, correct)` that a table lists, and their options."""

_BINNED = ("ence", "uce", "gence_fiber", "gence_sq_fiber")
_ONE_TARGET = ("ence", "uce", "quantile_calibration", "gaussian_crps", "regression_esd")
_ANY_TARGET = (
    "gaussian_nll",
    "mahalanobis_calibration",
    "gence",
    "gence_sq",
    "gence_fiber",
    "gence_sq_fiber",
    "regression_esd_normalized",
)

_BY_CLASS = ("ece", "ks", "esd", "mmce", "skce")


def pair_table(
    confidence: ArrayLike,
    correct: ArrayLike,
    *,
    bins: int = 15,
    level: float = 0.95,
    resamples: int = 1000,
    seed: int = 0,
) -> dict[str, Interval]:
    """Return accuracy and every measure of a pair, each with its interval.

    >>> found = pair_table([0.9, 0.8, 0.7, 0.6], [True, True, False, True], resamples=50)
    >>> list(found)[:6]
    ['accuracy', 'ece', 'ece_l2', 'ece_max', 'ece_mass', 'smooth_ece']
    """
    z, hit = binary_pair(confidence, correct)
    draws: dict[str, Any] = {"level": level, "resamples": resamples, "seed": seed}
    table = {"accuracy": share_interval(hit, z, level)}
    for name, (measure, options) in PAIR_MEASURES.items():
        binned = {"bins": bins} if measure == "ece" else {}
        table[name] = interval(measure, z, hit, **draws, **options, **binned)
    return table


def classification_table(
    *,
    probs: ArrayLike | None = None,
    logits: ArrayLike | None = None,
    labels: ArrayLike,
    bins: int = 15,
    level: float = 0.95,
    resamples: int = 1000,
    seed: int = 0,
) -> dict[str, Interval]:
    """Return scores and calibration measures of a classifier's outputs, with intervals.

    The calibrated value of a score is its mean if labels were drawn from the probabilities. The
    class-wise measures have the mean of the classes' intervals, no narrower than their own.

    Args:
        probs: probabilities `[N, C]`; or
        logits: scores `[N, C]`. Give one of both.
        labels: class indices `[N]`.
        bins: of the binned measures.
        level: nominal coverage.
        resamples: number of draws; a fifth of it, or less of many classes, for what is class-wise.
        seed: of the draws.

    >>> found = classification_table(probs=[[0.7, 0.3], [0.4, 0.6], [0.2, 0.8]], labels=[0, 0, 1],
    ...                              resamples=50)
    >>> round(float(found["nll"].value), 4)
    0.4987
    """
    outputs = {"probs": probs, "logits": logits}
    confidence, correct = top_label(**outputs, labels=labels)
    table = pair_table(confidence, correct, bins=bins, level=level, resamples=resamples, seed=seed)
    log_p = log_probabilities(**outputs).detach().double()
    p = probabilities(**outputs).detach().double()
    terms = score_terms(**outputs, labels=labels)
    if_drawn = {"nll": -log_p, "brier": p.square().sum(-1, keepdim=True) - 2 * p + 1}
    scores = {
        "accuracy": table.pop("accuracy"),
        **{
            name: mean_interval(terms[name], *_moments(p, each), level)
            for name, each in if_drawn.items()
        },
    }
    draws: dict[str, Any] = {"level": level, "resamples": max(20, resamples // 5), "seed": seed}
    scores |= brier_part_intervals(probs=probs, logits=logits, labels=labels, **draws)
    of_class, is_class = classwise(**outputs, labels=labels)
    # Their mean needs fewer draws the more classes there are.
    draws["resamples"] = max(20, min(draws["resamples"], 10_000 // len(of_class)))
    by_class = {
        f"classwise_{name}": _mean_of_classes(
            interval(name, of_class, is_class, **draws, **({"bins": bins} if name == "ece" else {}))
        )
        for name in _BY_CLASS
        if name in table  # what the top label is too short for, the classes are
    }
    return {**scores, **table, **by_class}


def score_terms(
    *, probs: ArrayLike | None = None, logits: ArrayLike | None = None, labels: ArrayLike
) -> dict[str, Tensor]:
    """Return the terms `[N]` of each score that is a mean over samples, for `compare_means`.

    >>> score_terms(probs=[[0.5, 0.5], [0.25, 0.75]], labels=[0, 1])["brier"]
    tensor([0.5000, 0.1250], dtype=torch.float64)
    """
    outputs = {"probs": probs, "logits": logits}
    _, correct = top_label(**outputs, labels=labels)
    log_p = log_probabilities(**outputs).detach().double()
    p = probabilities(**outputs).detach().double()
    truth = true_labels(labels, p)
    return {
        "accuracy": correct.double(),
        "nll": nll_terms(log_p, truth),
        "brier": brier_terms(p, truth),
    }


def _moments(p: Tensor, terms: Tensor) -> tuple[Tensor, Tensor]:
    """Return mean and variance of each sample's term if its label is drawn from `p [N, C]`."""
    finite = torch.where(p > 0, terms, 0.0)
    mean = (p * finite).sum(-1)
    return mean, (p * finite.square()).sum(-1) - mean.square()


def _mean_of_classes(found: Interval) -> Interval:
    values = {name: part.mean(-1) for name, part in vars(found).items() if torch.is_tensor(part)}
    return Interval(**values, level=found.level, method="mean of the classes' intervals")


def regression_table(
    mean: ArrayLike,
    variance: ArrayLike,
    target: ArrayLike,
    *,
    aleatoric: ArrayLike | None = None,
    bins: int = 15,
    level: float = 0.95,
    resamples: int = 1000,
    seed: int = 0,
) -> dict[str, Interval]:
    """Return scores and calibration measures of Gaussian predictions, with intervals.

    Measures of one target (ENCE, UCE, quantiles, CRPS) are left out for vectors. The squared error
    is that of all coordinates together; a calibrated model's is its mean total variance.

    Args:
        mean: `[N]` or `[N, d]`.
        variance: as the mean, `[N, 1]`, or a full covariance `[N, d, d]`.
        target: as the mean.
        aleatoric: the part of the variance ascribed to the data, as the mean, `[N, 1]`, or all
            entries of a covariance `[N, d d]`; with it the table holds the bleed into noise-free
            data.
        bins: of the binned measures.
        level: nominal coverage.
        resamples: number of draws.
        seed: of the draws.

    >>> found = regression_table([0.0, 0.0, 0.0], [1.0, 1.0, 1.0], [1.0, -1.0, 0.5], resamples=50)
    >>> round(float(found["gaussian_nll"].value), 4)
    1.2939
    """
    error, spread, full = gaussian.vector_target(mean, variance, target)
    one = torch.as_tensor(mean).ndim == 1
    names = [*_ANY_TARGET[:1], *(_ONE_TARGET if one else ()), *_ANY_TARGET[1:]]
    if error.shape[-2] < 3:
        names = [name for name in names if not name.startswith("regression_esd")]
    draws: dict[str, Any] = {"level": level, "resamples": resamples, "seed": seed}
    squares = mean_interval(error.square().sum(-1), *_squared_moments(spread, full), level)
    table = {"squared_error": squares} | {
        name: regression_interval(
            name, mean, variance, target, **draws, **({"bins": bins} if name in _BINNED else {})
        )
        for name in names
    }
    if aleatoric is not None:
        noise = as_floating("aleatoric", aleatoric)
        noise = noise[:, None] if noise.ndim == 1 else noise
        terms = (noise.expand(error.shape) if noise.shape[-1] == 1 else noise).square().sum(-1)
        none = torch.zeros_like(terms)
        table["aleatoric_bleed"] = mean_interval(terms, none, none, level)
    return table


def _squared_moments(spread: Tensor, full: bool) -> tuple[Tensor, Tensor]:
    """Return mean `tr S` and variance `2 tr S^2` of a Gaussian's squared error, `[N]` each."""
    if full:
        return spread.diagonal(dim1=-2, dim2=-1).sum(-1), 2 * spread.square().sum((-1, -2))
    return spread.sum(-1), 2 * spread.square().sum(-1)


def regression_score_terms(
    mean: ArrayLike, variance: ArrayLike, target: ArrayLike
) -> dict[str, Tensor]:
    """Return the terms `[N]` of each score that is a mean over samples, for `compare_means`.

    Squared error, NLL, GENCE, its squared form, and for one target the CRPS.

    Args:
        mean: `[N]` or `[N, d]`.
        variance: as the mean, `[N, 1]`, or a full covariance `[N, d, d]`.
        target: as the mean.

    >>> regression_score_terms([0.0, 1.0], [1.0, 1.0], [1.0, 1.0])["squared_error"]
    tensor([1., 0.], dtype=torch.float64)
    """
    given = (mean, variance, target)
    error, _, _ = gaussian.vector_target(*given)
    terms = {
        "squared_error": error.square().sum(-1),
        "gaussian_nll": gaussian.nll_terms(*given),
        "gence": generalized.gence_terms(*given),
        "gence_sq": generalized.gence_sq_terms(*given),
    }
    if torch.as_tensor(mean).ndim == 1:
        terms["gaussian_crps"] = gaussian.crps_terms(*given)
    return {name: part.detach().cpu() for name, part in terms.items()}
