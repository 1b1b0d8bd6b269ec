"""Losses of regressors: Gaussian and evidential likelihoods."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from .._arrays import ArrayLike, as_array, as_floating, can_inspect_array
from ..calibration import check_weights, unchecked_sample_weights, weighted_mean
from ..errors import InputError, check_name, real_number

__all__ = ["beta_nll", "covariance_nll", "gaussian_nll", "nig_nll", "nig_regularizer"]


_REDUCTIONS = ("mean", "sum", "none")


def _regression_loss_inputs(target: ArrayLike, **parameters: ArrayLike) -> tuple[Tensor, ...]:
    """Read parameters and target; check that they fit, and that all but the center are positive."""
    target = as_array("target", target)
    if target.ndim == 0 or target.numel() == 0:
        raise InputError("target", "shape [n] or [n, d]", target)
    found = {name: as_floating(name, value) for name, value in parameters.items()}
    for name, value in found.items():
        # As many axes too: [n] beside [d, d] would fit by chance where n = d.
        sizes = zip(value.shape, target.shape, strict=False)
        fits = value.ndim == target.ndim and all(one in (1, size) for one, size in sizes)
        if not fits:
            raise InputError(name, f"a shape that fits target {tuple(target.shape)}", value)
        if name in ("mean", "gamma") or not can_inspect_array(value):
            continue
        least = value.detach().amin().item()  # NaN where there is one, and NaN is not above 0
        if not least > 0:
            raise InputError(name, "positive values", least)
    return *found.values(), target


def _reduced_regression_loss(terms: Tensor, weights: ArrayLike | None, reduction: str) -> Tensor:
    """Sum terms `[n, ...]` over coordinates, and reduce them over samples."""
    check_name("reduction", reduction, _REDUCTIONS)
    each = terms.reshape(len(terms), -1).sum(-1)
    mass = unchecked_sample_weights(each, weights)
    if mass is not None:
        if can_inspect_array(mass):
            check_weights(mass, 1)
        mass = mass.to(each.dtype)
    if reduction == "mean":
        return weighted_mean(each, mass)
    each = each if mass is None else each * mass
    return each if reduction == "none" else each.sum()


def gaussian_nll(
    mean: ArrayLike,
    variance: ArrayLike,
    target: ArrayLike,
    *,
    weights: ArrayLike | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Return the negative log-density of a Gaussian with independent coordinates.

        (log(2 pi s) + (y - m)^2 / s) / 2, summed over coordinates, averaged over samples

    Args:
        mean: `[n]` for scalar targets, `[n, d]` for vectors.
        variance: positive, of the same shape, or `[n, 1]` for one variance per vector.
        target: `[n]` or `[n, d]`.
        weights: `[n]` sample weights >= 0; 1 by default.
        reduction: "mean" (weighted) over samples, "sum", or "none".

    Returns:
        The loss, a scalar; `[n]` if it is not reduced.

    Raises:
        InputError: if an argument does not fit; values are checked on the CPU only.

    See Also:
        beta_nll: With a gradient that does not neglect large errors.
        covariance_nll: With a full covariance.

    Example:
        >>> gaussian_nll(torch.zeros(2), torch.ones(2), torch.tensor([1.0, -1.0]))
        tensor(1.4189)
    """
    return beta_nll(mean, variance, target, beta=0.0, weights=weights, reduction=reduction)


def covariance_nll(
    mean: ArrayLike,
    covariance: ArrayLike,
    target: ArrayLike,
    *,
    beta: float = 0.0,
    weights: ArrayLike | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Return the negative log-density of a Gaussian with a full covariance.

        stop_gradient((tr S / d)^beta) * (d log(2 pi) + log det S + (y - m)^T S^-1 (y - m)) / 2

    The weight, which no rotation changes, does what it does in `beta_nll`: with beta above 0,
    samples of small variance do not dominate the others.

    Args:
        mean: `[n, d]`.
        covariance: `[n, d, d]`, symmetric and positive definite.
        target: `[n, d]`.
        beta: in 0..1.
        weights: `[n]` sample weights >= 0; 1 by default.
        reduction: "mean" (weighted) over samples, "sum", or "none".

    Returns:
        The loss, a scalar; `[n]` if it is not reduced.

    Raises:
        InputError: if an argument does not fit; values are checked on the CPU only.

    Example:
        >>> covariance_nll(torch.zeros(2, 2), torch.eye(2).expand(2, 2, 2), torch.zeros(2, 2))
        tensor(1.8379)
    """
    mean, target = _regression_loss_inputs(target, mean=mean)
    covariance = as_floating("covariance", covariance)
    if target.ndim < 2 or covariance.shape != (*target.shape, target.shape[-1]):
        raise InputError(
            "covariance",
            f"shape {(*target.shape, *target.shape[-1:])}, as target is {tuple(target.shape)}",
            covariance,
        )
    real_number("beta", beta, "in [0, 1]")
    factor, failed = torch.linalg.cholesky_ex(covariance)
    if can_inspect_array(failed) and bool(failed.any()):
        first = int(failed.reshape(-1).nonzero()[0])
        raise InputError(
            "covariance", "positive definite matrices", f"another one at sample {first}"
        )
    error = (target - mean)[..., None]
    white = torch.linalg.solve_triangular(factor, error, upper=False)[..., 0]
    log_det = 2 * factor.diagonal(dim1=-2, dim2=-1).log().sum(-1)
    constant = target.shape[-1] * math.log(2 * math.pi)
    weight = covariance.detach().diagonal(dim1=-2, dim2=-1).mean(-1) ** beta
    terms = weight * (white.square().sum(-1) + log_det + constant) / 2
    return _reduced_regression_loss(terms, weights, reduction)


def beta_nll(
    mean: ArrayLike,
    variance: ArrayLike,
    target: ArrayLike,
    *,
    beta: float = 0.5,
    weights: ArrayLike | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Return the Gaussian negative log-density, weighted by the variance to the power beta.

        stop_gradient(s^beta) * (log(2 pi s) + (y - m)^2 / s) / 2, summed over coordinates

    The weight keeps samples of large variance from being ignored: beta = 0 is `gaussian_nll`, and
    beta = 1 gives the mean the gradient of the squared error.

    Args:
        mean: `[n]` or `[n, d]`.
        variance: positive, of the same shape, or `[n, 1]`.
        target: `[n]` or `[n, d]`.
        beta: in 0..1.
        weights: `[n]` sample weights >= 0; 1 by default.
        reduction: "mean" (weighted) over samples, "sum", or "none".

    Returns:
        The loss, a scalar; `[n]` if it is not reduced.

    Raises:
        InputError: if an argument does not fit; values are checked on the CPU only.

    See Also:
        gaussian_nll: The likelihood itself.

    References:
        Seitzer et al., On the pitfalls of heteroscedastic uncertainty estimation with probabilistic
        neural networks, ICLR 2022.

    Example:
        >>> beta_nll(torch.zeros(2), torch.full((2,), 4.0), torch.tensor([1.0, -1.0]), beta=1.0)
        tensor(6.9483)

    Paper: Seitzer et al. 2022; the equivariance paper's appendix B, which averages over
    coordinates where this sums.
    """
    mean, variance, target = _regression_loss_inputs(target, mean=mean, variance=variance)
    real_number("beta", beta, "in [0, 1]")
    terms = (torch.log(2 * math.pi * variance) + (target - mean).square() / variance) / 2
    if beta > 0:
        terms = variance.detach() ** beta * terms
    return _reduced_regression_loss(terms, weights, reduction)


def nig_nll(
    gamma: ArrayLike,
    nu: ArrayLike,
    alpha: ArrayLike,
    beta: ArrayLike,
    target: ArrayLike,
    *,
    weights: ArrayLike | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Return the evidential negative log-density: Student's t from a normal-inverse-gamma prior.

        y ~ t with 2 alpha degrees of freedom, center gamma, scale sqrt(beta (1+nu) / (alpha nu))
        s = beta (1 + 1 / nu)
        log(2 pi s) / 2 + (alpha + 1/2) log(1 + (y - gamma)^2 / 2 s)
          + log Gamma(alpha) - log Gamma(alpha + 1/2)

    summed over coordinates, averaged over samples. The aleatoric variance beta / (alpha - 1) and
    the epistemic one beta / (nu (alpha - 1)) exist for alpha > 1 only.

    Args:
        gamma: `[n]` for scalar targets, `[n, d]` for vectors.
        nu: positive, fits the target's shape; alpha and beta likewise.
        alpha: positive.
        beta: positive.
        target: `[n]` or `[n, d]`.
        weights: `[n]` sample weights >= 0; 1 by default.
        reduction: "mean" (weighted) over samples, "sum", or "none".

    Returns:
        The loss, a scalar; `[n]` if it is not reduced.

    Raises:
        InputError: if an argument does not fit; values are checked on the CPU only.

    See Also:
        nig_regularizer: The penalty that belongs to it.
        orbical.training.EvidentialHead: The head.

    References:
        Amini et al., Deep evidential regression, NeurIPS 2020.

    Example:
        >>> one = torch.ones(1, dtype=torch.float64)
        >>> nig_nll(0 * one, one, 2 * one, one, one)  # -log t(1; 4 degrees, scale 1)
        tensor(1.5387, dtype=torch.float64)

    Paper: the equivariance paper's appendix E (after Amini et al. 2020), which is right; the
    density printed in its section 3.5 has sqrt(sigma) for sigma and does not integrate to 1.
    """
    parts = _regression_loss_inputs(target, gamma=gamma, nu=nu, alpha=alpha, beta=beta)
    simple = all(part.dtype == torch.float32 and can_inspect_array(part) for part in parts)
    if simple and weights is None and reduction == "mean":
        every = torch.broadcast_tensors(*parts)
        total: Tensor = _EvidentialLoss.apply(*every)  # type: ignore[no-untyped-call]
        return total / len(parts[-1])
    gamma, nu, alpha, beta, target = parts
    scale = beta * (1 + 1 / nu)
    double = alpha.dtype == torch.float64
    step = torch.lgamma(alpha + 0.5) - torch.lgamma(alpha) if double else _log_gamma_step(alpha)
    tail = (alpha + 0.5) * torch.log1p((target - gamma).square() / (2 * scale))
    return _reduced_regression_loss(
        torch.log(2 * math.pi * scale) / 2 + tail - step, weights, reduction
    )


def nig_regularizer(
    gamma: ArrayLike,
    nu: ArrayLike,
    alpha: ArrayLike,
    target: ArrayLike,
    *,
    weights: ArrayLike | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Return the penalty of evidence where the prediction is wrong, `|y - gamma| (2 nu + alpha)`.

    Add it to `nig_nll` with a weight (0.1 or 1 in the paper); summed over coordinates, averaged
    over samples.

    Args:
        gamma: `[n]` or `[n, d]`.
        nu: positive, fits the target's shape; alpha likewise.
        alpha: positive.
        target: `[n]` or `[n, d]`.
        weights: `[n]` sample weights >= 0; 1 by default.
        reduction: "mean" (weighted) over samples, "sum", or "none".

    Returns:
        The penalty, a scalar; `[n]` if it is not reduced.

    Raises:
        InputError: if an argument does not fit; values are checked on the CPU only.

    Example:
        >>> one = torch.ones(2)
        >>> nig_regularizer(0 * one, one, 2 * one, 3 * one)
        tensor(12.)

    Paper: the equivariance paper's appendix E.
    """
    gamma, nu, alpha, target = _regression_loss_inputs(target, gamma=gamma, nu=nu, alpha=alpha)
    return _reduced_regression_loss((target - gamma).abs() * (2 * nu + alpha), weights, reduction)


_BLOCK = 1 << 15
"""Samples that stay in a core's cache while all operations pass over them."""

_SHIFT = 4
_SERIES = (1 / 64, -5 / 2048, 61 / 49152, -1385 / 1048576)


class _EvidentialLoss(torch.autograd.Function):
    """The sum of all terms of `nig_nll`, for float32 tensors of one shape."""

    @staticmethod
    def forward(ctx: Any, *given: Tensor) -> Tensor:
        flat = [part.reshape(-1) for part in given]
        wanted = any(ctx.needs_input_grad)
        slopes = [torch.empty_like(flat[0]) for _ in range(4)] if wanted else []
        total = 0.0
        for start in range(0, len(flat[0]), _BLOCK):
            rows = slice(start, start + _BLOCK)
            value, *parts = _evidential_loss_block(*(part[rows] for part in flat), wanted=wanted)
            total += float(value)
            for whole, part in zip(slopes, parts, strict=True):
                whole[rows] = part
        ctx.save_for_backward(*(part.view(given[0].shape) for part in slopes))
        return given[0].new_tensor(total)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, slope: Tensor) -> tuple[Tensor, ...]:
        gamma, nu, alpha, beta = (slope * part for part in ctx.saved_tensors)
        return gamma, nu, alpha, beta, -gamma


def _evidential_loss_block(
    gamma: Tensor, nu: Tensor, alpha: Tensor, beta: Tensor, target: Tensor, *, wanted: bool
) -> tuple[Tensor, ...]:
    """Return the sum of the terms of a block, and the derivatives by the four parameters.

    In terms of `s = beta (1 + 1 / nu)`, because derivatives by nu and beta in terms of omega are
    differences of numbers of size alpha.
    """
    error, above = target - gamma, nu.reciprocal().add_(1)
    scale = above * beta
    ratio = error.square().div_(scale).mul_(0.5)
    evidence, power = ratio.log1p(), alpha + 0.5
    series, growth, steps = _log_gamma_difference(alpha, wanted)
    # log(2 pi s) / 2 - log(w) / 2 - log R in a single logarithm
    joint = growth.reciprocal_().mul_(scale).mul_(2 * math.pi).log_()
    value = (power * evidence).add_(joint, alpha=0.5).sub_(series).sum(dtype=torch.float64)
    if not wanted:
        return (value,)
    pull = power.div_(ratio + 1)
    by_scale = (pull * ratio).neg_().add_(0.5).div_(scale)
    by_gamma = pull.mul_(error).div_(scale).neg_()
    by_nu = (by_scale * beta).div_(nu).div_(nu).neg_()
    return value, by_gamma, by_nu, evidence.sub_(steps), above.mul_(by_scale)


def _log_gamma_step(alpha: Tensor) -> Tensor:
    """Return `log Gamma(a + 1/2) - log Gamma(a)`, differentiable and to single precision.

    >>> _log_gamma_step(torch.tensor([0.5, 1e6]))  # log(1 / sqrt(pi)), log(1e6) / 2
    tensor([-0.5724,  6.9078])
    """
    inverse = 1 / (alpha + (_SHIFT - 0.25))
    u = inverse * inverse
    series = u * (_SERIES[0] + u * (_SERIES[1] + u * (_SERIES[2] + u * _SERIES[3])))
    over, under = alpha * (alpha + 3), alpha * (alpha + 4) + 1.75
    return series - torch.log(inverse) / 2 + torch.log(over / under * ((over + 2) / (under + 2)))


def _log_gamma_difference(alpha: Tensor, wanted: bool) -> tuple[Tensor, Tensor, Tensor]:
    """Return P, `w R^2`, and the derivative of log Gamma(a + 1/2) - log Gamma(a)."""
    inverse = (alpha + (_SHIFT - 0.25)).reciprocal_()
    u = inverse * inverse
    series, slope = torch.full_like(u, _SERIES[-1]), torch.full_like(u, 4 * _SERIES[-1])
    for k in (3, 2, 1):
        series.mul_(u).add_(_SERIES[k - 1])
        slope.mul_(u).add_(k * _SERIES[k - 1])
    # The four factors of R in two pairs: a (a + 3) and (a + 1)(a + 2), and the same of a + 1/2.
    over = (alpha + 3).mul_(alpha)
    under = (alpha + 4).mul_(alpha).add_(1.75)
    ratio = (over / under).mul_(over.add_(2)).div_(under.add_(2)).square_().div_(inverse)
    steps = alpha
    if wanted:  # 1/2 sum_k 1 / ((a + k) (a + k + 1/2)) + 1 / (2 w) + dP/dw
        steps = (alpha + 0.5).mul_(alpha).reciprocal_()
        for k in range(1, _SHIFT):
            steps.add_((alpha + k).mul_(alpha + (k + 0.5)).reciprocal_())
        steps.add_(inverse).mul_(0.5).sub_(slope.mul_(u).mul_(inverse), alpha=2)
    return series.mul_(u), ratio, steps
