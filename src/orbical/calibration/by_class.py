"""Class-wise forms: each measure on `(p_k, label = k)` for every class k."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor

from .binned import ece
from .cumulative import esd, ks
from .inputs import ArrayLike, classwise
from .kernel import mmce, skce
from .smooth import smooth_ece


def per_class(
    measure: Callable[..., Tensor],
    *,
    probs: ArrayLike | None = None,
    logits: ArrayLike | None = None,
    labels: ArrayLike,
    **options: Any,
) -> Tensor:
    """Return a measure for each class, `[..., C]`.

        value_k = measure(p_k, label = k)

    Args:
        measure: any function of `(confidence, correct)`, such as `ece`, `esd` or `mmce`.
        probs: probabilities `[..., N, C]`; or
        logits: scores `[..., N, C]`. Give one of both.
        labels: class indices `[N]` or `[..., N]`.
        options: passed on to the measure.

    >>> per_class(ece, probs=[[0.7, 0.3], [0.4, 0.6]], labels=[0, 0], bins=1)
    tensor([0.4500, 0.4500], dtype=torch.float64)
    """
    return measure(*classwise(probs=probs, logits=logits, labels=labels), **options)


def classwise_ece(
    *,
    probs: ArrayLike | None = None,
    logits: ArrayLike | None = None,
    labels: ArrayLike,
    bins: int = 15,
    norm: str = "l1",
    binning: str = "width",
    weights: ArrayLike | None = None,
) -> Tensor:
    """Return the class-wise ECE: the mean over classes of the ECE of each class.

        sum_k ECE(p_k, label = k) / C

    Args:
        probs: probabilities `[..., N, C]`; or
        logits: scores `[..., N, C]`. Give one of both.
        labels: class indices `[N]` or `[..., N]`.
        bins: the number of bins.
        norm: "l1", "l2" or "max".
        binning: "width" or "mass".
        weights: `[N]` sample weights.

    >>> classwise_ece(probs=[[0.7, 0.3], [0.4, 0.6]], labels=[0, 0], bins=1)
    tensor(0.4500, dtype=torch.float64)
    """
    options = {"bins": bins, "norm": norm, "binning": binning, "weights": weights}
    return per_class(ece, probs=probs, logits=logits, labels=labels, **options).mean(-1)


def classwise_ks(
    *, probs: ArrayLike | None = None, logits: ArrayLike | None = None, labels: ArrayLike
) -> Tensor:
    """Return the mean over classes of the KS error of `(p_k, label = k)`; see `ks`.

    >>> classwise_ks(probs=[[0.7, 0.3], [0.4, 0.6]], labels=[0, 0])
    tensor(0.4500, dtype=torch.float64)
    """
    return per_class(ks, probs=probs, logits=logits, labels=labels).mean(-1)


def classwise_esd(
    *, probs: ArrayLike | None = None, logits: ArrayLike | None = None, labels: ArrayLike
) -> Tensor:
    """Return the mean over classes of the ESD of `(p_k, label = k)`; see `esd`. Differentiable.

    >>> classwise_esd(probs=[[0.7, 0.3], [0.4, 0.6], [0.6, 0.4]], labels=[0, 0, 1])
    tensor(-0.0900, dtype=torch.float64)
    """
    return per_class(esd, probs=probs, logits=logits, labels=labels).mean(-1)


def classwise_mmce(
    *,
    probs: ArrayLike | None = None,
    logits: ArrayLike | None = None,
    labels: ArrayLike,
    phi: float = 0.4,
) -> Tensor:
    """Return the mean over classes of the MMCE of `(p_k, label = k)`; see `mmce`. Differentiable.

    >>> classwise_mmce(probs=[[0.7, 0.3], [0.7, 0.3]], labels=[0, 0])
    tensor(0.3000, dtype=torch.float64)
    """
    return per_class(mmce, probs=probs, logits=logits, labels=labels, phi=phi).mean(-1)


def classwise_skce(
    *,
    probs: ArrayLike | None = None,
    logits: ArrayLike | None = None,
    labels: ArrayLike,
    phi: float = 0.4,
) -> Tensor:
    """Return the mean over classes of the SKCE of `(p_k, label = k)`; see `skce`. Differentiable.

    >>> classwise_skce(probs=[[0.7, 0.3], [0.7, 0.3]], labels=[0, 0])
    tensor(0.0900, dtype=torch.float64)
    """
    return per_class(skce, probs=probs, logits=logits, labels=labels, phi=phi).mean(-1)


def classwise_smooth_ece(
    *,
    probs: ArrayLike | None = None,
    logits: ArrayLike | None = None,
    labels: ArrayLike,
    bandwidth: float | None = None,
) -> Tensor:
    """Return the mean over classes of the smooth ECE of `(p_k, label = k)`; see `smooth_ece`.

    >>> classwise_smooth_ece(probs=[[0.7, 0.3], [0.7, 0.3]], labels=[0, 0])
    tensor(0.3000, dtype=torch.float64)
    """
    options = {"bandwidth": bandwidth}
    return per_class(smooth_ece, probs=probs, logits=logits, labels=labels, **options).mean(-1)
