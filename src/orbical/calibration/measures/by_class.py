"""Class-wise forms: each measure on `(p_k, label = k)` for every class k."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import ParamSpec, Required, TypedDict, Unpack

from torch import Tensor

from ..._arrays import ArrayLike
from ..measure_tables import TableOutputs
from ..pairs.from_outputs import named_outputs
from .binned import ece
from .cumulative import esd, ks
from .kernel_errors import mmce, skce
from .smooth import smooth_ece

__all__ = [
    "classwise_ece", "classwise_esd", "classwise_ks", "classwise_mmce", "classwise_skce",
    "classwise_smooth_ece", "per_class",
]  # fmt: skip


def per_class(
    measure: Callable[..., Tensor],
    *,
    probs: ArrayLike | None = None,
    logits: ArrayLike | None = None,
    labels: ArrayLike,
    weights: ArrayLike | None = None,
    ignore_index: int | None = None,
    **options: object,
) -> Tensor:
    """Return a measure for each class.

        value_k = measure(p_k, label = k)

    Args:
        measure: any function of `(confidence, correct)`, such as `ece`, `esd` or `mmce`.
        probs: probabilities `[..., N, C]`; or
        logits: scores `[..., N, C]`. Pass exactly one of the two.
        labels: class indices `[N]`, `[N, 1]` or `[..., N]`; booleans for two classes.
        weights: `[..., N]` sample weights >= 0; 1 by default.
        ignore_index: samples with this label are left out.
        options: passed on to the measure.

    Returns:
        The values `[..., C]`.

    Raises:
        InputError: if outputs and labels do not fit together, or rows are not probabilities.

    Example:
        >>> per_class(ece, probs=[[0.7, 0.3], [0.4, 0.6]], labels=[0, 0], bins=1)
        tensor([0.4500, 0.4500], dtype=torch.float64)
    """
    given = TableOutputs(probs, logits, labels, weights, ignore_index)
    if given.weights is not None:
        options["weights"] = given.weights[..., None, :]
    return measure(*given.classwise, **options)


P = ParamSpec("P")


class _Outputs(TypedDict, total=False):
    probs: ArrayLike | None
    logits: ArrayLike | None
    labels: Required[ArrayLike]
    weights: ArrayLike | None
    ignore_index: int | None


def _of_outputs(function: Callable[P, Tensor]) -> Callable[P, Tensor]:
    """Write out, in the signature of a function, the arguments that it passes to `per_class`."""
    signature, known = inspect.signature(function), inspect.signature(per_class).parameters
    *own, _ = signature.parameters.values()
    first, last = ("probs", "logits", "labels"), ("weights", "ignore_index")
    parameters = [*(known[name] for name in first), *own, *(known[name] for name in last)]
    function.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    return named_outputs(function)


@_of_outputs
def classwise_ece(
    *, bins: int = 15, norm: str = "l1", binning: str = "width", **outputs: Unpack[_Outputs]
) -> Tensor:
    """Return the class-wise ECE: the mean over classes of the ECE of each class.

        sum_k ECE(p_k, label = k) / C

    Args:
        probs: probabilities `[..., N, C]`; or
        logits: scores `[..., N, C]`. Pass exactly one of the two.
        labels: class indices `[N]`, `[N, 1]` or `[..., N]`; booleans for two classes.
        bins: the number of bins.
        norm: "l1", "l2" or "max".
        binning: "width" or "mass".
        weights: `[..., N]` sample weights >= 0; 1 by default.
        ignore_index: samples with this label are left out.

    Returns:
        The error `[...]`, float64.

    Example:
        >>> classwise_ece(probs=[[0.7, 0.3], [0.4, 0.6]], labels=[0, 0], bins=1)
        tensor(0.4500, dtype=torch.float64)
    """
    return per_class(ece, bins=bins, norm=norm, binning=binning, **outputs).mean(-1)


@_of_outputs
def classwise_ks(**outputs: Unpack[_Outputs]) -> Tensor:
    """Return the mean over classes of the KS error of `(p_k, label = k)`; see `ks`.

    Args:
        probs: probabilities `[..., N, C]`; or
        logits: scores `[..., N, C]`. Pass exactly one of the two.
        labels: class indices `[N]`, `[N, 1]` or `[..., N]`; booleans for two classes.
        weights: `[..., N]` sample weights >= 0; 1 by default.
        ignore_index: samples with this label are left out.

    Returns:
        The mean over classes `[...]`, float64.

    Example:
        >>> classwise_ks(probs=[[0.7, 0.3], [0.4, 0.6]], labels=[0, 0])
        tensor(0.4500, dtype=torch.float64)
    """
    return per_class(ks, **outputs).mean(-1)


@_of_outputs
def classwise_esd(**outputs: Unpack[_Outputs]) -> Tensor:
    """Return the mean over classes of the ESD of `(p_k, label = k)`; see `esd`. Differentiable.

    Args:
        probs: probabilities `[..., N, C]`; or
        logits: scores `[..., N, C]`. Pass exactly one of the two.
        labels: class indices `[N]`, `[N, 1]` or `[..., N]`; booleans for two classes.
        weights: `[..., N]` sample weights >= 0; 1 by default.
        ignore_index: samples with this label are left out.

    Returns:
        The mean over classes `[...]`, float64.

    Example:
        >>> classwise_esd(probs=[[0.7, 0.3], [0.4, 0.6], [0.6, 0.4]], labels=[0, 0, 1])
        tensor(-0.0900, dtype=torch.float64)
    """
    return per_class(esd, **outputs).mean(-1)


@_of_outputs
def classwise_mmce(*, phi: float = 0.4, **outputs: Unpack[_Outputs]) -> Tensor:
    """Return the mean over classes of the MMCE of `(p_k, label = k)`; see `mmce`. Differentiable.

    Args:
        probs: probabilities `[..., N, C]`; or
        logits: scores `[..., N, C]`. Pass exactly one of the two.
        labels: class indices `[N]`, `[N, 1]` or `[..., N]`; booleans for two classes.
        phi: the width of the kernel.
        weights: `[..., N]` sample weights >= 0; 1 by default.
        ignore_index: samples with this label are left out.

    Returns:
        The mean over classes `[...]`, float64.

    Example:
        >>> classwise_mmce(probs=[[0.7, 0.3], [0.7, 0.3]], labels=[0, 0])
        tensor(0.3000, dtype=torch.float64)
    """
    return per_class(mmce, phi=phi, **outputs).mean(-1)


@_of_outputs
def classwise_skce(*, phi: float = 0.4, **outputs: Unpack[_Outputs]) -> Tensor:
    """Return the mean over classes of the SKCE of `(p_k, label = k)`; see `skce`. Differentiable.

    Args:
        probs: probabilities `[..., N, C]`; or
        logits: scores `[..., N, C]`. Pass exactly one of the two.
        labels: class indices `[N]`, `[N, 1]` or `[..., N]`; booleans for two classes.
        phi: the width of the kernel.
        weights: `[..., N]` sample weights >= 0; 1 by default.
        ignore_index: samples with this label are left out.

    Returns:
        The mean over classes `[...]`, float64.

    Example:
        >>> classwise_skce(probs=[[0.7, 0.3], [0.7, 0.3]], labels=[0, 0])
        tensor(0.0900, dtype=torch.float64)
    """
    return per_class(skce, phi=phi, **outputs).mean(-1)


@_of_outputs
def classwise_smooth_ece(*, bandwidth: float | None = None, **outputs: Unpack[_Outputs]) -> Tensor:
    """Return the mean over classes of the smooth ECE of `(p_k, label = k)`; see `smooth_ece`.

    Args:
        probs: probabilities `[..., N, C]`; or
        logits: scores `[..., N, C]`. Pass exactly one of the two.
        labels: class indices `[N]`, `[N, 1]` or `[..., N]`; booleans for two classes.
        bandwidth: of the smoothing; chosen automatically if not given.
        weights: `[..., N]` sample weights >= 0; 1 by default.
        ignore_index: samples with this label are left out.

    Returns:
        The mean over classes `[...]`, float64.

    Example:
        >>> classwise_smooth_ece(probs=[[0.7, 0.3], [0.7, 0.3]], labels=[0, 0])
        tensor(0.3000, dtype=torch.float64)
    """
    return per_class(smooth_ece, bandwidth=bandwidth, **outputs).mean(-1)
