"""Losses of regressors: Gaussian and evidential likelihoods."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from ..errors import InputError
from .evidential import terms_at_once
from .reading import values_can_be_read


def _matched(target: Tensor, **parameters: Tensor) -> None:
    """Check that every parameter fits the target, and that all but the center are positive."""
    if target.ndim == 0 or target.numel() == 0:
        raise InputError(f"target: got shape {tuple(target.shape)}, expected [n] or [n, d]")
    for name, value in parameters.items():
        # As many axes too: [n] beside [d, d] would fit by chance where n = d.
        sizes = zip(value.shape, target.shape, strict=False)
        fits = value.ndim == target.ndim and all(one in (1, size) for one, size in sizes)
        if not fits:
            raise InputError(
                f"{name}: got shape {tuple(value.shape)}, "
                f"expected one that fits target {tuple(target.shape)}"
            )
        if name in ("mean", "gamma") or not values_can_be_read(value):
            continue
        least = value.detach().amin().item()  # NaN where there is one, and NaN is not above 0
        if not least > 0:
            raise InputError(f"{name}: expected positive values, got {least}")


def _mean_over_samples(terms: Tensor) -> Tensor:
    return terms.reshape(len(terms), -1).sum(-1).mean()


def gaussian_nll(mean: Tensor, variance: Tensor, target: Tensor) -> Tensor:
    """Negative log-density of a Gaussian with independent coordinates.

        (log(2 pi s) + (y - m)^2 / s) / 2, summed over coordinates, averaged over samples

    Args:
        mean: `[n]` for scalar targets, `[n, d]` for vectors.
        variance: positive, of the same shape, or `[n, 1]` for one variance a vector.
        target: `[n]` or `[n, d]`.

    Returns:
        The loss, a scalar.

    Example:
        >>> gaussian_nll(torch.zeros(2), torch.ones(2), torch.tensor([1.0, -1.0]))
        tensor(1.4189)
    """
    _matched(target, mean=mean, variance=variance)
    squared = (target - mean).square()
    return _mean_over_samples((torch.log(2 * math.pi * variance) + squared / variance) / 2)


def covariance_nll(
    mean: Tensor, covariance: Tensor, target: Tensor, *, beta: float = 0.0
) -> Tensor:
    """Negative log-density of a Gaussian with a full covariance, averaged over samples.

        stop_gradient((tr S / d)^beta) * (d log(2 pi) + log det S + (y - m)^T S^-1 (y - m)) / 2

    The weight, which no rotation changes, does what it does in `beta_nll`: with beta above 0,
    samples of small variance do not drown the others.

    Args:
        mean: `[n, d]`.
        covariance: `[n, d, d]`, symmetric and positive definite.
        target: `[n, d]`.
        beta: in 0..1.

    Returns:
        The loss, a scalar.

    Example:
        >>> covariance_nll(torch.zeros(2, 2), torch.eye(2).expand(2, 2, 2), torch.zeros(2, 2))
        tensor(1.8379)
    """
    _matched(target, mean=mean)
    if target.ndim < 2 or covariance.shape != (*target.shape, target.shape[-1]):
        raise InputError(
            f"covariance: got shape {tuple(covariance.shape)}, expected "
            f"{(*target.shape, *target.shape[-1:])} for target {tuple(target.shape)}"
        )
    _check_beta(beta)
    factor, failed = torch.linalg.cholesky_ex(covariance)
    if values_can_be_read(failed) and bool(failed.any()):
        first = int(failed.reshape(-1).nonzero()[0])
        raise InputError(f"covariance: sample {first} is not positive definite")
    error = (target - mean)[..., None]
    white = torch.linalg.solve_triangular(factor, error, upper=False)[..., 0]
    log_det = 2 * factor.diagonal(dim1=-2, dim2=-1).log().sum(-1)
    constant = target.shape[-1] * math.log(2 * math.pi)
    weight = covariance.detach().diagonal(dim1=-2, dim2=-1).mean(-1) ** beta
    return _mean_over_samples(weight * (white.square().sum(-1) + log_det + constant) / 2)


def _check_beta(beta: float) -> None:
    if not 0 <= beta <= 1:
        raise InputError(f"beta: got {beta}, expected a number in 0..1")


def beta_nll(mean: Tensor, variance: Tensor, target: Tensor, *, beta: float = 0.5) -> Tensor:
    """Gaussian negative log-density, each coordinate weighted by its variance to the power beta.

        stop_gradient(s^beta) * (log(2 pi s) + (y - m)^2 / s) / 2, summed over coordinates

    The weight keeps samples of large variance from being ignored: beta = 0 is `gaussian_nll`, and
    beta = 1 gives the mean the gradient of the squared error.

    Args:
        mean: `[n]` or `[n, d]`.
        variance: positive, of the same shape, or `[n, 1]`.
        target: `[n]` or `[n, d]`.
        beta: in 0..1.

    Returns:
        The loss, a scalar.

    Example:
        >>> beta_nll(torch.zeros(2), torch.full((2,), 4.0), torch.tensor([1.0, -1.0]), beta=1.0)
        tensor(6.9483)

    Paper: Seitzer et al. 2022; the equivariance paper's appendix B, which averages over
    coordinates where this sums.
    """
    _matched(target, mean=mean, variance=variance)
    _check_beta(beta)
    squared = (target - mean).square()
    terms = (torch.log(2 * math.pi * variance) + squared / variance) / 2
    return _mean_over_samples(variance.detach() ** beta * terms)


def nig_nll(gamma: Tensor, nu: Tensor, alpha: Tensor, beta: Tensor, target: Tensor) -> Tensor:
    """Evidential negative log-density: Student's t from a normal-inverse-gamma prior.

        y ~ t with 2 alpha degrees of freedom, center gamma, scale sqrt(beta (1+nu) / (alpha nu))
        omega = 2 beta (1 + nu)
        log(pi / nu) / 2 - alpha log omega + (alpha + 1/2) log(nu (y - gamma)^2 + omega)
          + log Gamma(alpha) - log Gamma(alpha + 1/2)

    summed over coordinates, averaged over samples. The aleatoric variance beta / (alpha - 1) and
    the epistemic one beta / (nu (alpha - 1)) exist for alpha > 1 only.

    Args:
        gamma: `[n]` for scalar targets, `[n, d]` for vectors.
        nu: positive, fits the target's shape; alpha and beta likewise.
        alpha: positive.
        beta: positive.
        target: `[n]` or `[n, d]`.

    Returns:
        The loss, a scalar.

    Example:
        >>> one = torch.ones(1, dtype=torch.float64)
        >>> nig_nll(0 * one, one, 2 * one, one, one)  # -log t(1; 4 degrees, scale 1)
        tensor(1.5387, dtype=torch.float64)

    Paper: the equivariance paper's appendix E (after Amini et al. 2020), which is right; the
    density printed in its section 3.5 has sqrt(sigma) for sigma and does not integrate to 1.
    """
    _matched(target, gamma=gamma, nu=nu, alpha=alpha, beta=beta)
    given = torch.broadcast_tensors(gamma, nu, alpha, beta, target)
    if all(part.dtype == torch.float32 and values_can_be_read(part) for part in given):
        return terms_at_once(*given) / len(target)
    omega = 2 * beta * (1 + nu)
    return _mean_over_samples(
        torch.log(math.pi / nu) / 2
        - alpha * torch.log(omega)
        + (alpha + 0.5) * torch.log(nu * (target - gamma).square() + omega)
        + torch.lgamma(alpha)
        - torch.lgamma(alpha + 0.5)
    )


def nig_regularizer(gamma: Tensor, nu: Tensor, alpha: Tensor, target: Tensor) -> Tensor:
    """What evidence costs where the prediction is wrong: `|y - gamma| (2 nu + alpha)`.

    Add it to `nig_nll` with a weight (0.1 or 1 in the paper); summed over coordinates, averaged
    over samples.

    Args:
        gamma: `[n]` or `[n, d]`.
        nu: positive, fits the target's shape; alpha likewise.
        alpha: positive.
        target: `[n]` or `[n, d]`.

    Returns:
        The penalty, a scalar.

    Example:
        >>> one = torch.ones(2)
        >>> nig_regularizer(0 * one, one, 2 * one, 3 * one)
        tensor(12.)

    Paper: the equivariance paper's appendix E.
    """
    _matched(target, gamma=gamma, nu=nu, alpha=alpha)
    return _mean_over_samples((target - gamma).abs() * (2 * nu + alpha))
