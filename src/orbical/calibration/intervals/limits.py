"""Where an interval or a comparison may not be trusted: outside of where its coverage was shown.

`docs/intervals.md` tabulates coverage and size. Each cell outside of its range has a limit here,
and `caution` is the one function that decides whether data are beyond it.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from math import inf
from typing import Generic, TypeVar

import torch
from torch import Tensor

from ..measures.gaussian import vector_target

T = TypeVar("T")


class MeanEnds(tuple[T, T, T], Generic[T]):
    """A mean with the lower and upper end of its interval, and the `caution` it needs.

    >>> MeanEnds((0.5, 0.1, 0.9), "2 samples")
    (0.5, 0.1, 0.9); 2 samples
    """

    caution: str

    def __new__(cls, ends: tuple[T, T, T], caution: str = "") -> MeanEnds[T]:
        """Return the tuple, which unpacks as any other."""
        found = super().__new__(cls, ends)
        found.caution = caution
        return found

    def __repr__(self) -> str:
        return super().__repr__() + (f"; {self.caution}" if self.caution else "")


@dataclass(frozen=True)
class Evidence:
    """What data say about the regime they are in; nothing speaks against them by default.

    Attributes:
        samples: the number of samples.
        errors: the number of wrong predictions, or of correct ones if these are fewer.
        contributors: the number of samples that make the variance of a mean.
        tails: how far the kurtosis of the errors exceeds that of a Gaussian, in standard errors.
        distances: the share of pairs of calibrated models with smaller errors than a compared pair.
    """

    samples: float = inf
    errors: float = inf
    contributors: float = inf
    tails: float = -inf
    distances: float = -inf


_AT_LEAST = {
    "samples": "{seen:g} samples, fewer than {limit:g}",
    "errors": "{seen:g} wrong (or correct) predictions, fewer than {limit:g}",
    "contributors": "the variance is that of {seen:.1f} samples, fewer than {limit:g}",
}
_AT_MOST = {
    "tails": "the errors have heavier tails than a Gaussian",
    "distances": "neither model need be calibrated, and equal errors differ too often here",
}

_FEW_TERMS = Evidence(contributors=6)
_FEW_ERRORS = Evidence(errors=6)
_HEAVY = Evidence(tails=1.8)
_NONE = Evidence(samples=0, errors=0, contributors=0, tails=inf, distances=inf)


def _limits(*limits: Evidence) -> Evidence:
    """Return limits of which the unnamed are those that nothing exceeds."""
    named = {
        field.name: value
        for one in limits
        for field in fields(Evidence)
        if (value := getattr(one, field.name)) != field.default
    }
    return replace(_NONE, **named)


_EQUAL_ERRORS = Evidence(distances=0.99, samples=300)
_LIMITS = {
    "mean": _limits(_FEW_TERMS),
    "aleatoric_bleed": _limits(Evidence(samples=50)),
    "bootstrap_interval": _limits(_FEW_TERMS, Evidence(samples=20)),
    "share_interval_of_sums": _limits(Evidence(samples=20)),
    "reliability_curve": _limits(Evidence(errors=20)),
    "brier_refinement": _limits(_FEW_ERRORS, Evidence(samples=50)),
    "ece": _limits(_FEW_ERRORS),
    "ece_l2": _limits(_FEW_ERRORS),
    "ece_debiased": _limits(_FEW_ERRORS),
    "mmce": _limits(Evidence(errors=20)),
    "mmce_squared": _limits(_FEW_ERRORS),
    "squared_error": _limits(_HEAVY),
    "gaussian_nll": _limits(_HEAVY),
    "gence": _limits(_HEAVY),
    "gence_sq": _limits(Evidence(tails=1.4)),
    "regression_esd": _limits(_HEAVY),
    "regression_esd_normalized": _limits(_HEAVY),
    "gence_sq_fiber": _limits(Evidence(samples=50)),
    "compare ece": _limits(_FEW_ERRORS),
    "compare ks": _limits(_EQUAL_ERRORS),
    "compare mmce": _limits(_EQUAL_ERRORS),
    "compare ence": _limits(_EQUAL_ERRORS),
    "compare quantile_calibration": _limits(_EQUAL_ERRORS),
    "compare mahalanobis_calibration": _limits(_EQUAL_ERRORS),
}
"""The limits of use by the name of a measure or function; what has none covers in all worlds."""


def caution(name: str, seen: Evidence) -> str:
    """Return why an interval or a comparison may be wrong more often than stated, or "".

    Args:
        name: of the measure, `compare ` and the measure, or a function.
        seen: what the data say.

    Example:
        >>> caution("ece", Evidence(errors=3))
        '3 wrong (or correct) predictions, fewer than 6: the interval may be too short'
        >>> caution("ks", Evidence(errors=3))
        ''
    """
    limit = _LIMITS.get(name, _NONE)
    reasons = [
        text.format(seen=getattr(seen, field), limit=getattr(limit, field))
        for texts, beyond in ((_AT_LEAST, float.__lt__), (_AT_MOST, float.__gt__))
        for field, text in texts.items()
        if beyond(float(getattr(seen, field)), float(getattr(limit, field)))
    ]
    return f"{'; '.join(reasons)}: the interval may be too short" if reasons else ""


def of_pairs(correct: Tensor) -> Evidence:
    """Return the evidence of pairs `[..., N]`, that of the row with the fewest errors."""
    size = correct.shape[-1]
    right = correct.sum(-1)
    fewest = torch.minimum(right, size - right)
    return Evidence(samples=size, errors=int(fewest.min()) if fewest.numel() else inf)


def of_terms(apart: Tensor) -> Evidence:
    """Return the evidence of what terms `[..., N]` add to the distance from their mean.

    Equal terms have no variance, and nobody contributes to it.

    Example:
        >>> of_terms(torch.tensor([0.5, -0.5, 0.5, -0.5, 0.0])).contributors
        4.0
    """
    square = apart.square()
    count = (square.sum(-1).square() / square.square().sum(-1)).nan_to_num(nan=0.0)
    fewest = float(count.min()) if count.numel() else inf
    return Evidence(samples=apart.shape[-1], contributors=fewest)


def of_predictions(mean: Tensor, variance: Tensor, target: Tensor) -> Evidence:
    """Return the evidence of Gaussian predictions `[..., N, d]`, that of the heaviest tails.

    The kurtosis is Mardia's, of squared Mahalanobis distances q:

        d^2 mean(q^2) / mean(q)^2,   of a Gaussian d (d + 2), with variance 8 d (d + 2) / n
    """
    error, spread, full = vector_target(mean, variance, target)
    if full:
        distance = (error * torch.linalg.solve(spread, error[..., None])[..., 0]).sum(-1)
    else:
        distance = (error.square() / spread).sum(-1)
    size, width = error.shape[-2:]
    usual = width * (width + 2)
    kurtosis = width**2 * distance.square().mean(-1) / distance.mean(-1).square()
    excess = (kurtosis - usual) / (8 * usual / size) ** 0.5
    return Evidence(samples=size, tails=float(excess.nan_to_num(nan=-inf).max()))
