"""Aleatoric bleed: uncertainty of the model that is reported as noise of the data."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from ..._arrays import ArrayLike, as_array, as_floating
from ...errors import InputError
from ..pairs.pairs_and_weights import sample_weights, weighted_mean
from .gaussian import _finite

__all__ = ["Bleed", "aleatoric_bleed", "covariance_bleed"]


class Bleed(NamedTuple):
    """Aleatoric bleed: `total [...]`, and `per_coordinate [..., d]`, which adds up to it."""

    total: Tensor
    per_coordinate: Tensor


def _vectors(name: str, values: ArrayLike) -> Tensor:
    tensor = as_floating(name, values)
    if tensor.ndim == 0:
        raise InputError(name, "[N] or [..., N, d]", "a single number")
    tensor = _finite(name, tensor)
    return tensor[:, None] if tensor.ndim == 1 else tensor


def _variances(name: str, values: ArrayLike) -> Tensor:
    tensor = _vectors(name, values)
    smallest = tensor.detach().min().item()
    if smallest < 0:
        raise InputError(name, "variances >= 0", f"{smallest:.6g}")
    return tensor


def aleatoric_bleed(
    aleatoric: ArrayLike, truth: ArrayLike | None = None, *, weights: ArrayLike | None = None
) -> Bleed:
    """Return the mean squared norm of predicted minus true aleatoric variance.

        total = E[ ||s_predicted - s_true||^2 ],   per coordinate: E[ (s_predicted - s_true)_i^2 ]

    Def. 7 of the equivariant calibration paper; with evidential outputs `s = beta / (alpha - 1)`.
    The coordinates show where it happens, which the paper finds missing. The paper's lower bound
    (Thm 3) is 0 whenever the truth is 0, whatever the symmetry; `bounds.nll_optimal_bleed` is
    what training by likelihood does lead to. Full covariances go to `covariance_bleed`.

    Args:
        aleatoric: `[N]` or `[..., N, d]`, predicted aleatoric variance.
        truth: the same shape, or one number; None where the data are free of noise.
        weights: `[..., N]` sample weights >= 0; 1 by default.

    Returns:
        The bleed, in total and per coordinate.

    Raises:
        InputError: if shapes do not fit together, or a variance is negative.

    See Also:
        covariance_bleed: Of full covariances.
        orbical.bounds.nll_optimal_bleed: What training by likelihood leads to.

    Example:
        >>> aleatoric_bleed([[1.0, 0.0], [3.0, 2.0]])
        Bleed(total=tensor(7., dtype=torch.float64),
              per_coordinate=tensor([5., 2.], dtype=torch.float64))
    """
    return _mean_bleed(aleatoric_bleed_terms(aleatoric, truth), weights)


def _mean_bleed(terms: Tensor, weights: ArrayLike | None) -> Bleed:
    """Return the mean over samples of terms `[..., N, d]`."""
    mass = sample_weights(weights, terms[..., 0])
    if mass is None:
        per_coordinate = terms.mean(-2)
    else:
        per_coordinate = weighted_mean(terms.mT, mass[..., None, :])
    return Bleed(per_coordinate.sum(-1), per_coordinate)


def aleatoric_bleed_terms(aleatoric: ArrayLike, truth: ArrayLike | None = None) -> Tensor:
    """Return what each sample and coordinate adds to the bleed, `[..., N, d]`.

    Example:
        >>> aleatoric_bleed_terms([1.0, 3.0], 1.0)
        tensor([[0.],
                [4.]], dtype=torch.float64)
    """
    excess = _variances("aleatoric", aleatoric)
    if truth is not None:
        number = _one_variance(truth)
        true = _of_shape(excess, _variances("truth", truth)) if number is None else number
        excess = excess - true.to(excess.device)
    return excess.square()


def _one_variance(truth: ArrayLike) -> Tensor | None:
    """Return the true variance if it is one number for all samples and coordinates."""
    given = as_array("truth", truth)
    return None if given.ndim else _variances("truth", given.double()[None])


def _of_shape(excess: Tensor, true: Tensor, axes: int = 2) -> Tensor:
    if true.shape[-axes:] != excess.shape[-axes:]:
        raise InputError("truth", f"a number or the shape of aleatoric {tuple(excess.shape)}", true)
    return true


def covariance_bleed(
    aleatoric: ArrayLike, truth: ArrayLike | None = None, *, weights: ArrayLike | None = None
) -> Bleed:
    """Return the bleed of full covariances: the mean squared Frobenius norm of their excess.

        total = E[ ||C_predicted - C_true||_F^2 ],   per coordinate: the sum over its row

    The total is the same in every orthonormal frame, and for diagonal covariances it is that of
    `aleatoric_bleed`.

    Args:
        aleatoric: `[..., N, d, d]`, predicted covariances of the noise.
        truth: the same shape, or one number, the variance of noise that is alike in all directions;
            None where the data are free of noise.
        weights: `[..., N]` sample weights >= 0; 1 by default.

    Returns:
        The bleed, in total and per coordinate.

    Raises:
        InputError: if shapes do not fit together, or a variance is negative.

    Example:
        >>> covariance_bleed([[[1.0, -1.0], [-1.0, 2.0]]])
        Bleed(total=tensor(7., dtype=torch.float64),
              per_coordinate=tensor([2., 5.], dtype=torch.float64))
    """
    return _mean_bleed(covariance_bleed_terms(aleatoric, truth), weights)


def covariance_bleed_terms(aleatoric: ArrayLike, truth: ArrayLike | None = None) -> Tensor:
    """Return what each sample and coordinate adds to `covariance_bleed`, `[..., N, d]`.

    Example:
        >>> covariance_bleed_terms([[[3.0, 1.0], [1.0, 1.0]]], 1.0)
        tensor([[5., 1.]], dtype=torch.float64)
    """
    excess = _covariances_of_bleed("aleatoric", aleatoric)
    if truth is not None:
        number = _one_variance(truth)
        if number is None:
            excess = excess - _of_shape(excess, _covariances_of_bleed("truth", truth), 3)
        else:
            same = torch.eye(excess.shape[-1], dtype=excess.dtype, device=excess.device)
            excess = excess - number.to(excess.device) * same
    return excess.square().sum(-1)


def _covariances_of_bleed(name: str, values: ArrayLike) -> Tensor:
    tensor = _finite(name, as_floating(name, values))
    if tensor.ndim < 3 or tensor.shape[-1] != tensor.shape[-2]:
        raise InputError(name, "covariances [..., N, d, d]", tensor)
    given = tensor.detach()
    rounding = 1e-5 * given.abs().amax((-1, -2))
    if bool(((given - given.mT).abs().amax((-1, -2)) > rounding).any()):
        raise InputError(name, "covariances", "matrices that are not symmetric")
    least = torch.linalg.eigvalsh(given)[..., 0]
    if bool((least < -rounding).any()):
        raise InputError(name, "covariances with eigenvalues >= 0", f"{least.min().item():.6g}")
    return tensor
