"""Where an interval or a comparison may not be trusted: outside of where its coverage was shown.

`docs/intervals.md` tabulates coverage and size. Each cell outside of its range has a limit here,
and `caution` is the one function that decides whether data are beyond it.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, log
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np

if TYPE_CHECKING:
    from torch import Tensor

T = TypeVar("T")


class CautionedMean(tuple[T, T, T], Generic[T]):
    """A mean with the lower and upper end of its interval, and the `caution` it needs, if any.

    >>> CautionedMean((0.5, 0.1, 0.9), "2 samples")
    (0.5, 0.1, 0.9); 2 samples
    """

    caution: Any

    def __new__(cls, ends: tuple[T, T, T], caution: Any = "") -> CautionedMean[T]:
        """Return the tuple, which unpacks as any other."""
        found = super().__new__(cls, ends)
        found.caution = caution
        return found

    def __repr__(self) -> str:
        text = first_interval_caution(self.caution)
        return super().__repr__() + (f"; {text}" if text else "")


@dataclass(frozen=True)
class CautionEvidence:
    """What data say about the regime they are in; nothing speaks against them by default.

    Each is a number, or an array of those of several rows.

    Attributes:
        samples: the number of samples.
        errors: the number of wrong predictions, or of correct ones if these are fewer.
        contributors: the number of samples that make the variance of a mean; 0 if all are equal,
            but for rounding.
        tails: how far the kurtosis of the errors exceeds that of a Gaussian, in standard errors.
    """

    samples: Any = inf
    errors: object = inf
    contributors: object = inf
    tails: object = -inf


_TEXTS = {
    "samples": "{seen:g} samples, fewer than {limit:g}",
    "errors": "{seen:g} wrong (or correct) predictions, fewer than {limit:g}",
    "contributors": "the variance is that of {seen:.1f} samples, fewer than {limit:g}",
    "equal": "values that hardly differ say nothing of rarer ones",
    "tails": "the errors have heavier tails than a Gaussian",
    "unseen": "failures as rare as 1 in {one_of:.0f} may be missing among {seen:g} samples",
}

UNSEEN = 1100
"""Samples of a regressor from which failures that are missing among them hardly matter.

Of n samples, `log(40) / n` of all cases can be missing, with a probability of 2.5 %. If these are
errors of five predicted deviations, they add `25 log(40) / n` of the variance to a mean square,
whose interval reaches `1.96 sqrt(2 / n)` of it: more than they add for n above 1,100.
"""

_UNBOUNDED: dict[str, float] = {"samples": UNSEEN, "tails": 1.8}
_FEW_ERRORS: dict[str, float] = {"errors": 6}
_LIMITS: dict[str, dict[str, float]] = {
    "mean": {"contributors": 6},
    "unbounded_mean_interval": {"contributors": 6, "samples": UNSEEN},
    "aleatoric_bleed": {"samples": 50},
    "bootstrap_interval": {"contributors": 6, "samples": 20},
    "reliability_curve": {"errors": 16},
    "brier_refinement": {"errors": 6, "samples": 50},
    "ece": _FEW_ERRORS,
    "ece_l2": _FEW_ERRORS,
    "ece_debiased": _FEW_ERRORS,
    "mmce": {"errors": 20},
    "mmce_squared": _FEW_ERRORS,
    "squared_error": _UNBOUNDED,
    "gaussian_nll": _UNBOUNDED,
    "gaussian_crps": {"samples": UNSEEN},
    "gence": _UNBOUNDED,
    "gence_sq": _UNBOUNDED,
    "regression_esd": _UNBOUNDED,
    "regression_esd_normalized": _UNBOUNDED,
    "gence_sq_fiber": {"samples": 50},
    "compare ece": _FEW_ERRORS,
    "compare_means": {"contributors": 6},
}
"""The least (of tails the largest) evidence by the name of a measure or function, if it has any."""


def caution(name: str, seen: CautionEvidence, otherwise: Any = "") -> Any:
    """Return why an interval or a comparison may be wrong more often than stated, or "".

    Args:
        name: of the measure, `compare ` and the measure, or a function.
        seen: what the data say; of several rows, arrays.
        otherwise: what is returned for a name without limits.

    Returns:
        A text, or an array of them, one for each row.

    Example:
        >>> caution("ece", CautionEvidence(errors=3))
        '3 wrong (or correct) predictions, fewer than 6: the interval may be too short'
        >>> caution("gence", CautionEvidence(samples=200)).partition(":")[0]
        'failures as rare as 1 in 54 may be missing among 200 samples'
        >>> caution("ece", CautionEvidence(errors=np.array([3, 9]))).tolist()[1]
        ''
        >>> caution("ks", CautionEvidence(errors=3))
        ''
    """
    limits = _LIMITS.get(name)
    if limits is None:
        return otherwise
    values = np.broadcast_arrays(*(np.asarray(getattr(seen, field), float) for field in limits))
    rows = zip(*(part.ravel() for part in values), strict=True)
    each = [
        _said_in_caution(dict(zip(limits, map(float, row), strict=True)), limits) for row in rows
    ]
    return np.array(each, dtype=object).reshape(values[0].shape) if values[0].ndim else each[0]


def _said_in_caution(seen: dict[str, float], limits: dict[str, float]) -> str:
    reasons = []
    for field, limit in limits.items():
        value = seen[field]
        if value > limit if field == "tails" else value < limit:
            kind = "equal" if value == 0 else field
            if limit == UNSEEN and value > 2 * log(40):
                kind = "unseen"
            reasons.append(_TEXTS[kind].format(seen=value, limit=limit, one_of=value / log(40)))
    return f"{'; '.join(reasons)}: the interval may be too short" if reasons else ""


def first_interval_caution(cautions: Any) -> str:
    """Return the first caution among those of several rows, or "".

    >>> first_interval_caution(np.array(["", "few samples", "few samples"], dtype=object))
    'few samples'
    """
    return next((str(text) for text in np.ravel(cautions) if text), "")


def caution_evidence_of_pairs(correct: Tensor) -> CautionEvidence:
    """Return the evidence of pairs `[..., N]`."""
    size, right = correct.shape[-1], correct.sum(-1)
    return CautionEvidence(samples=size, errors=right.minimum(size - right).cpu().numpy())


def caution_evidence_of_terms(terms: Tensor, share: Tensor | float) -> CautionEvidence:
    """Return the evidence of terms `[..., N]` of a mean, with the share of each in it.

    Equal terms have no variance, and nobody contributes to it.

    Example:
        >>> import torch
        >>> [float(caution_evidence_of_terms(torch.tensor(some), 0.2).contributors)
        ...  for some in ([1.0, 0.0, 1.0, 0.0, 0.5], [0.1] * 5)]
        [4.0, 0.0]
    """
    apart = terms - (terms * share).sum(-1, keepdim=True)
    rounded = apart.abs() <= 1e-6 * terms.abs().amax(-1, keepdim=True)
    square = (apart * share).masked_fill(rounded, 0.0).square()
    count = (square.sum(-1).square() / square.square().sum(-1)).nan_to_num(nan=0.0)
    return CautionEvidence(samples=terms.shape[-1], contributors=count.numpy())


def caution_evidence_of_predictions(
    mean: Tensor, variance: Tensor, target: Tensor
) -> CautionEvidence:
    """Return the evidence of Gaussian predictions `[..., N, d]`.

    The kurtosis is Mardia's, of squared Mahalanobis distances q:

        d^2 mean(q^2) / mean(q)^2,   of a Gaussian d (d + 2), with variance 8 d (d + 2) / n
    """
    from ..measures.gaussian import gaussian_vector_target, gaussian_whitened

    error, spread, full = gaussian_vector_target(mean, variance, target)
    distance, _ = gaussian_whitened(error, spread, full)
    size, width = error.shape[-2:]
    usual = width * (width + 2)
    kurtosis = width**2 * distance.square().mean(-1) / distance.mean(-1).square()
    excess = (kurtosis - usual) / (8 * usual / size) ** 0.5
    return CautionEvidence(samples=size, tails=excess.nan_to_num(nan=-inf).cpu().numpy())
