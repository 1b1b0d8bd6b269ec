"""Gaussian predictions: how they are checked, and their scores.

There are two shapes of input; the function determines which one it takes:

* **one target**, `[..., N]`: the last axis is the samples, leading ones are models, orbit
  positions or coordinates, and a measure returns a value for each of them;
* **d targets**, `[..., N, d]`, or `[N]` for d = 1: the last axis is the coordinates. The variance
  has as many axes as the mean for a diagonal covariance (`[..., N, d]`, or `[..., N, 1]` for one
  variance that all coordinates share), and one axis more for a full one, `[..., N, d, d]`.

Everything is computed in float64 and keeps its place in the autograd graph.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from ..._arrays import ArrayLike, as_floating, check_finite
from ..._warnings import warn
from ...errors import InputError, errors_with_usage
from ..pairs.pairs_and_weights import (
    at_least_pairs,
    paired_in_one_shape,
    sample_weights,
    weighted_mean,
)

__all__ = ["gaussian_crps", "gaussian_nll"]

_BROADCAST = "mean, variance, target", "shapes that broadcast"


def _finite(name: str, tensor: Tensor) -> Tensor:
    if tensor.numel() == 0:
        raise InputError(name, "no empty axis", tensor)
    check_finite(name, tensor)
    return tensor.double()


def _positive_gaussian_variance(name: str, variance: Tensor) -> Tensor:
    smallest = variance.detach().min().item()
    if smallest <= 0:
        raise InputError(
            name,
            "variances > 0",
            f"{smallest:.6g}",
            remedy="pass variances, not logarithms or standard deviations",
        )
    return variance


def _hint(mean: Tensor) -> str:
    """Return the remedy where a column `[N, 1]` was passed for `[N]`."""
    column = mean.ndim > 1 and mean.shape[-1] == 1
    return f" in shape {tuple(mean.shape)}; pass one target as [N]" if column else ""


def gaussian_target(
    mean: ArrayLike, variance: ArrayLike, target: ArrayLike, *, minimum: int = 1
) -> tuple[Tensor, Tensor]:
    """Check predictions of one target; return `error = target - mean` and `variance`, `[..., N]`.

    Example:
        >>> gaussian_target([0.0, 1.0], [1.0, 4.0], [0.5, 0.0])[0]
        tensor([ 0.5000, -1.0000], dtype=torch.float64)
    """
    given = {"mean": mean, "variance": variance, "target": target}
    tensors = [as_floating(name, values) for name, values in given.items()]
    size = tensors[0].shape[-1] if tensors[0].ndim else 0
    for name, tensor in zip(given, tensors, strict=True):
        if tensor.ndim == 0 or tensor.shape[-1] != size:
            raise InputError(name, f"[..., N] with N = {size} as in mean", tensor)
    if size < minimum:
        raise InputError("mean", at_least_pairs(minimum, "sample"), f"{size}{_hint(tensors[0])}")
    if size == 1 and tensors[0].numel() > 1:
        warn(
            f"mean: expected several samples in each row, got 1{_hint(tensors[0])}",
        )
    finite = (_finite(name, tensor) for name, tensor in zip(given, tensors, strict=True))
    mean, variance, target = paired_in_one_shape(*_BROADCAST, *finite)
    return target - mean, _positive_gaussian_variance("variance", variance)


def gaussian_vector_target(
    mean: ArrayLike, variance: ArrayLike, target: ArrayLike
) -> tuple[Tensor, Tensor, bool]:
    """Check predictions of d targets; return error, variance, and whether it is a full covariance.

    `error [..., N, d]`; the variance is `[..., N, d]` if diagonal, else `[..., N, d, d]`.

    Example:
        >>> error, variance, full = gaussian_vector_target([[0.0, 0.0]], [[2.0]], [[1.0, 3.0]])
        >>> variance, full
        (tensor([[2., 2.]], dtype=torch.float64), False)
    """
    mean, variance, target = (
        as_floating(name, values)
        for name, values in (("mean", mean), ("variance", variance), ("target", target))
    )
    scalar = mean.ndim == 1
    axes, extra = mean.ndim, variance.ndim - mean.ndim
    if axes == 0 or extra not in (0, 1) or (scalar and extra):
        raise InputError(
            "variance",
            "as many axes as mean (diagonal) or one more (full covariance of [..., N, d])",
            f"shapes {tuple(mean.shape)} and {tuple(variance.shape)}",
        )
    if (target.ndim == 1) != scalar or target.ndim == 0:
        raise InputError("target", f"the axes of mean {tuple(mean.shape)}", target)
    if scalar:
        mean, variance, target = mean[:, None], variance[:, None], target[:, None]
    size = mean.shape[-2:]
    if target.shape[-2:] != size:
        raise InputError("target", f"[..., {size[0]}, {size[1]}] as in mean", target)
    fits = variance.shape[-3:] == (*size, size[1]) if extra else variance.shape[-2] == size[0]
    if not fits or (not extra and variance.shape[-1] not in (1, size[1])):
        raise InputError(
            "variance",
            f"[..., N, d], [..., N, 1] or [..., N, d, d] for mean {tuple(mean.shape)}",
            variance,
        )
    error = _finite("target", target) - _finite("mean", mean)
    variance = _finite("variance", variance)
    if extra:
        return error, variance, True
    error, variance = paired_in_one_shape(
        *_BROADCAST, error, _positive_gaussian_variance("variance", variance)
    )
    return error, variance, False


def gaussian_marginal_variance(variance: Tensor, full: bool) -> Tensor:
    """Return the variance of each coordinate `[..., N, d]`, in the frame of the coordinates.

    Example:
        >>> gaussian_marginal_variance(torch.tensor([[[2.0, 1.0], [1.0, 3.0]]]), full=True)
        tensor([[2., 3.]])
    """
    if not full:
        return variance
    return _positive_gaussian_variance("variance", variance.diagonal(dim1=-2, dim2=-1))


def gaussian_whitened(error: Tensor, variance: Tensor, full: bool) -> tuple[Tensor, Tensor]:
    """Return the squared Mahalanobis distance and the log-determinant, both `[..., N]`.

        m^2 = e^T Sigma^-1 e,    log det Sigma

    Both are the same in every orthonormal frame.

    Example:
        >>> gaussian_whitened(torch.tensor([[3.0, 4.0]]), torch.tensor([[9.0, 4.0]]), full=False)[0]
        tensor([5.])
    """
    if not full:
        return (error.square() / variance).sum(-1), variance.log().sum(-1)
    scale = variance.detach().abs().amax()
    asymmetry = (variance - variance.mT).detach().abs().amax()
    if asymmetry > 1e-5 * scale:
        raise InputError(
            "variance", "symmetric covariances", f"a difference of {asymmetry.item():.3g}"
        )
    factor, failed = torch.linalg.cholesky_ex(variance)
    if bool(failed.any()):
        first = int(failed.reshape(-1).nonzero()[0])
        raise InputError(
            "variance",
            "positive definite covariances",
            f"{int((failed > 0).sum())} others, the first at sample {first % variance.shape[-3]}",
        )
    white = torch.linalg.solve_triangular(factor, error[..., None], upper=False)[..., 0]
    return white.square().sum(-1), 2 * factor.diagonal(dim1=-2, dim2=-1).log().sum(-1)


@errors_with_usage()
def gaussian_nll(
    mean: ArrayLike, variance: ArrayLike, target: ArrayLike, *, weights: ArrayLike | None = None
) -> Tensor:
    """Return the mean negative log-likelihood of Gaussian predictions, in nats a sample.

        1/2 (e^T Sigma^-1 e + log det Sigma + d log 2 pi)

    A score of the whole vector: for d targets the joint density, so independent coordinates add.

    Args:
        mean: `[N]` or `[..., N, d]`.
        variance: as the mean, `[..., N, 1]`, or a full covariance `[..., N, d, d]`.
        target: as the mean.
        weights: `[..., N]` sample weights >= 0; 1 by default.

    Returns:
        The score `[...]`, float64.

    Raises:
        InputError: if shapes do not fit together, or a variance is not positive.

    See Also:
        gaussian_crps: In the unit of the target.
        orbical.losses.gaussian_nll: As a loss.

    Example:
        >>> gaussian_nll([0.0, 0.0], [1.0, 1.0], [1.0, -1.0])
        tensor(1.4189, dtype=torch.float64)
    """
    terms = gaussian_nll_terms(mean, variance, target)
    return weighted_mean(terms, sample_weights(weights, terms))


def gaussian_nll_terms(mean: ArrayLike, variance: ArrayLike, target: ArrayLike) -> Tensor:
    """Return the negative log-likelihood of each sample, `[..., N]`; see `gaussian_nll`.

    Example:
        >>> gaussian_nll_terms([0.0, 0.0], [1.0, 1.0], [1.0, 0.0])
        tensor([1.4189, 0.9189], dtype=torch.float64)
    """
    error, variance, full = gaussian_vector_target(mean, variance, target)
    return gaussian_nll_of(*gaussian_whitened(error, variance, full), error.shape[-1])


def gaussian_nll_of(distance: Tensor, log_determinant: Tensor, width: int) -> Tensor:
    """Return the negative log-likelihood from Mahalanobis distance and determinant of d targets.

    Example:
        >>> gaussian_nll_of(torch.tensor([1.0]), torch.tensor([0.0]), 1)
        tensor([1.4189])
    """
    return 0.5 * (distance + log_determinant + width * math.log(2 * math.pi))


@errors_with_usage()
def gaussian_crps(
    mean: ArrayLike, variance: ArrayLike, target: ArrayLike, *, weights: ArrayLike | None = None
) -> Tensor:
    """Return the mean continuous ranked probability score of Gaussian predictions of one target.

        z = (y - mu) / sigma,   CRPS = sigma (z (2 Phi(z) - 1) + 2 phi(z) - 1 / sqrt(pi))

    In the unit of the target, proper, and equal to the absolute error as the variance goes to 0.

    Args:
        mean: `[..., N]`.
        variance: `[..., N]`.
        target: `[..., N]`.
        weights: `[..., N]` sample weights >= 0; 1 by default.

    Returns:
        The score `[...]`, float64.

    Raises:
        InputError: if shapes do not fit together, or a variance is not positive.

    See Also:
        gaussian_nll: The likelihood.

    References:
        Gneiting and Raftery, Strictly proper scoring rules, prediction, and estimation, JASA 2007.

    Example:
        >>> gaussian_crps([0.0], [1.0], [0.0])
        tensor(0.2337, dtype=torch.float64)
    """
    terms = gaussian_crps_terms(mean, variance, target)
    return weighted_mean(terms, sample_weights(weights, terms))


def gaussian_crps_terms(mean: ArrayLike, variance: ArrayLike, target: ArrayLike) -> Tensor:
    """Return the continuous ranked probability score of each sample; see `gaussian_crps`.

    Example:
        >>> gaussian_crps_terms([0.0], [1.0], [0.0])
        tensor([0.2337], dtype=torch.float64)
    """
    error, spread = gaussian_target(mean, variance, target)
    deviation = spread.sqrt()
    z = error / deviation
    density = torch.exp(-0.5 * z.square()) / math.sqrt(2 * math.pi)
    below: Tensor = torch.special.ndtr(z)
    centered = 2 * below - 1
    return deviation * (z * centered + 2 * density - 1 / math.sqrt(math.pi))
