"""Last layers that add an uncertainty to any torch backbone.

    model = torch.nn.Sequential(backbone, training.EvidentialHead(64, targets=3))
    loss = losses.nig_nll(*model(x), y)

A head predicts in the units of the targets. Internally, targets have mean 0 and standard deviation
1; `fit_scale(y)` measures both, and `forward` undoes the scaling. Variances are the softplus of a
linear map, in single precision at least, with a floor that keeps likelihoods finite.
"""

from __future__ import annotations

from typing import NamedTuple, Self

import torch
from torch import Tensor, nn
from torch.nn import functional

from ..errors import InputError, whole_number

__all__ = ["Evidence", "EvidentialHead", "MeanVariance", "MeanVarianceHead"]

FLOOR = 1e-6
"""The smallest variance that a head predicts, in units of the targets' variance."""


class MeanVariance(NamedTuple):
    """A Gaussian for each sample.

    Attributes:
        mean: `[n]` or `[n, d]`.
        variance: of the mean's shape, or `[n, 1]`.
    """

    mean: Tensor
    variance: Tensor


class Evidence(NamedTuple):
    """A normal-inverse-gamma distribution for each sample, as `losses.nig_nll` takes it.

    Attributes:
        gamma: the predicted value, `[n]` or `[n, d]`.
        nu: evidence for the mean, of that shape or `[n, 1]`.
        alpha: evidence for the variance, greater than 1.
        beta: scale of the variance.
    """

    gamma: Tensor
    nu: Tensor
    alpha: Tensor
    beta: Tensor

    @property
    def aleatoric(self) -> Tensor:
        """Return the expected variance of the data, `beta / (alpha - 1)`."""
        return self.beta / (self.alpha - 1)

    @property
    def epistemic(self) -> Tensor:
        """Return the variance of the mean, `beta / (nu (alpha - 1))`."""
        return self.aleatoric / self.nu

    @property
    def variance(self) -> Tensor:
        """Return the sum of both, the variance of the predictive Student t distribution."""
        return self.aleatoric + self.epistemic


def softened(raw: Tensor, floor: float = FLOOR) -> Tensor:
    """Return `softplus(raw) + floor`, in single precision at least: positive and finite.

    >>> softened(torch.tensor([-1e4, 0.0])).tolist()[0] == FLOOR
    False
    >>> bool((softened(torch.tensor([-1e4, 0.0, 1e4])) > 0).all())
    True
    """
    return functional.softplus(single(raw)) + floor


def single(values: Tensor) -> Tensor:
    """Return values in single precision at least, whatever autocast did.

    >>> single(torch.zeros(1, dtype=torch.bfloat16)).dtype, single(torch.zeros(1).double()).dtype
    (torch.float32, torch.float64)
    """
    return values.float() if values.dtype in (torch.float16, torch.bfloat16) else values


def checked_targets(targets: Tensor, width: int) -> Tensor:
    """Return targets `[n]` or `[n, d]` as `[n, d]` in double precision.

    >>> checked_targets(torch.tensor([1.0, 2.0]), 1).shape
    torch.Size([2, 1])
    """
    values = torch.as_tensor(targets).detach().double()
    if values.ndim == 1:
        values = values[:, None]
    if values.ndim != 2 or values.shape[1] != width or len(values) < 2:
        raise InputError("targets", f"shape [n, {width}] with n >= 2", tuple(values.shape))
    if not bool(torch.isfinite(values).all()):
        raise InputError("targets", "finite values", "NaN or infinity")
    return values


class _ScaledHead(nn.Module):
    """A linear layer that predicts a center and other numbers for each coordinate."""

    center: Tensor
    scale: Tensor

    def __init__(self, features: int, targets: int, others: int, shared: bool) -> None:
        super().__init__()
        self.targets = whole_number("targets", targets)
        self.shared = shared
        widths = [self.targets, *[1 if shared else self.targets] * others]
        self.linear = nn.Linear(whole_number("features", features), sum(widths))
        self.widths = widths
        self.register_buffer("center", torch.zeros(targets))
        self.register_buffer("scale", torch.ones(1 if shared else targets))

    def fit_scale(self, targets: Tensor) -> Self:
        """Set the units from training targets: their mean and standard deviation.

        A constant coordinate keeps the deviation 1. With a shared variance all coordinates share
        one deviation, their root mean square.

        Args:
            targets: `[n]` or `[n, d]`.

        Returns:
            The head itself.
        """
        values = checked_targets(targets, self.targets)
        variance = values.var(0, correction=0)
        if self.shared:
            variance = variance.mean(0, keepdim=True)
        deviation = torch.where(variance > 0, variance.sqrt(), 1.0)
        self.center.copy_(values.mean(0))
        self.scale.copy_(deviation)
        return self

    def _raw(self, features: Tensor) -> list[Tensor]:
        return list(self.linear(features).split(self.widths, dim=-1))

    def _placed(self, raw: Tensor) -> Tensor:
        """Undo the z-scoring of a center."""
        return self.center + self.scale * single(raw)

    def _shaped(self, values: Tensor) -> Tensor:
        """Return single targets as `[n]`, the shape of their labels."""
        return values[..., 0] if self.targets == 1 else values


class MeanVarianceHead(_ScaledHead):
    """A Gaussian for each sample: mean, and a variance for each coordinate.

        mean = center + scale * m,   variance = scale^2 (softplus(v) + floor)

    with m and v linear in the features. Train with `losses.gaussian_nll` or `losses.beta_nll`, scan
    with `tasks.Regression(uncertainty="variance")`.

    Args:
        features: the width of the backbone's last layer.
        targets: the number d of coordinates; 1 gives `[n]`, more give `[n, d]`.
        shared: one variance `[n, 1]` for all coordinates, as targets that rotate need.

    Example:
        >>> _ = torch.manual_seed(0)
        >>> model = nn.Sequential(nn.Linear(5, 16), nn.ReLU(), MeanVarianceHead(16, targets=3))
        >>> mean, variance = model(torch.randn(4, 5))
        >>> mean.shape, variance.shape, bool((variance > 0).all())
        (torch.Size([4, 3]), torch.Size([4, 3]), True)
    """

    def __init__(self, features: int, targets: int = 1, shared: bool = False) -> None:
        super().__init__(features, targets, others=1, shared=shared)

    def forward(self, features: Tensor) -> MeanVariance:
        """Return the distributions for features `[n, features]`."""
        mean, spread = self._raw(features)
        variance = self.scale.square() * softened(spread)
        return MeanVariance(self._shaped(self._placed(mean)), self._shaped(variance))


class EvidentialHead(_ScaledHead):
    """A normal-inverse-gamma distribution for each sample (Amini et al. 2020).

        gamma = center + scale * g,   nu = softplus + floor,   alpha = 1 + softplus + floor,
        beta = scale^2 (softplus + floor)

    so that alpha > 1 and both parts of the variance exist. Train with `losses.nig_nll` and
    `losses.nig_regularizer`, scan with `tasks.Regression(uncertainty="evidential")`.

    Args:
        features: the width of the backbone's last layer.
        targets: the number d of coordinates; 1 gives `[n]`, more give `[n, d]`.
        shared: one nu, alpha and beta `[n, 1]` for all coordinates, as targets that rotate need.

    Example:
        >>> _ = torch.manual_seed(0)
        >>> head = EvidentialHead(16).fit_scale(torch.tensor([10.0, 14.0]))
        >>> found = head(torch.zeros(2, 16))
        >>> found.gamma.shape, bool((found.alpha > 1).all())
        (torch.Size([2]), True)
        >>> torch.allclose(found.variance, found.aleatoric + found.epistemic)
        True

    Paper: the equivariance paper's section 3.5 and appendix E.
    """

    def __init__(self, features: int, targets: int = 1, shared: bool = False) -> None:
        super().__init__(features, targets, others=3, shared=shared)

    def forward(self, features: Tensor) -> Evidence:
        """Return the distributions for features `[n, features]`."""
        gamma, nu, alpha, beta = self._raw(features)
        return Evidence(
            self._shaped(self._placed(gamma)),
            self._shaped(softened(nu)),
            self._shaped(1 + softened(alpha)),
            self._shaped(self.scale.square() * softened(beta)),
        )
