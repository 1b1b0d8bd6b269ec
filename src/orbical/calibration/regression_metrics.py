"""The measures of regression as torchmetrics classes, for evaluation loops and across processes.

Each takes `update(mean, variance, target)` with samples along the first axis. Means over samples
keep two sums (GENCE, CRPS, NLL); measures that bin or sort by variance keep all samples.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import torch
from torch import Tensor
from torchmetrics import Metric
from torchmetrics.utilities import dim_zero_cat

from .gaussian import gaussian_crps, gaussian_nll
from .generalized import gence, gence_sq
from .inputs import ArrayLike
from .regression import ence, regression_esd, uce


class _Mean(Metric):
    """A mean over samples: keeps its sum and their number."""

    is_differentiable = False
    higher_is_better = False
    full_state_update = False
    measure: ClassVar[Callable[..., Tensor]]
    total: Tensor
    count: Tensor

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.add_state("total", torch.zeros((), dtype=torch.float64), dist_reduce_fx="sum")
        self.add_state("count", torch.zeros((), dtype=torch.int64), dist_reduce_fx="sum")

    def update(self, mean: ArrayLike, variance: ArrayLike, target: ArrayLike) -> None:
        """Add a batch of predictions with their targets."""
        size = len(torch.as_tensor(mean))
        self.total += type(self).measure(mean, variance, target).detach() * size
        self.count += size

    def compute(self) -> Tensor:
        """Return the mean over everything seen so far."""
        return self.total / self.count


class GENCE(_Mean):
    """GENCE; a calibrated Gaussian has `gence_floor`.

    >>> metric = GENCE()
    >>> metric.update(torch.zeros(2), torch.ones(2), torch.tensor([1.0, -1.0]))
    >>> metric.compute()
    tensor(0.0642, dtype=torch.float64)
    """

    measure = staticmethod(gence)


class GENCESquared(_Mean):
    """Squared GENCE; a calibrated Gaussian has `gence_sq_floor`.

    >>> metric = GENCESquared()
    >>> metric.update(torch.zeros(2), torch.ones(2), torch.tensor([1.0, -2.0]))
    >>> metric.compute()
    tensor(4.5000, dtype=torch.float64)
    """

    measure = staticmethod(gence_sq)


class GaussianNLL(_Mean):
    """Negative log likelihood of Gaussian predictions.

    >>> metric = GaussianNLL()
    >>> metric.update(torch.zeros(2), torch.ones(2), torch.zeros(2))
    >>> metric.compute()
    tensor(0.9189, dtype=torch.float64)
    """

    measure = staticmethod(gaussian_nll)


class GaussianCRPS(_Mean):
    """Continuous ranked probability score of Gaussian predictions.

    >>> metric = GaussianCRPS()
    >>> metric.update(torch.zeros(2), torch.ones(2), torch.zeros(2))
    >>> metric.compute()
    tensor(0.2337, dtype=torch.float64)
    """

    measure = staticmethod(gaussian_crps)


class _Kept(Metric):
    """A measure that needs all samples at once."""

    is_differentiable = False
    higher_is_better = False
    full_state_update = False
    measure: ClassVar[Callable[..., Tensor]]

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        for name in ("mean", "variance", "target"):
            self.add_state(name, [], dist_reduce_fx="cat")

    def update(self, mean: ArrayLike, variance: ArrayLike, target: ArrayLike) -> None:
        """Add a batch of predictions with their targets."""
        for name, values in (("mean", mean), ("variance", variance), ("target", target)):
            getattr(self, name).append(torch.as_tensor(values).detach())

    def _seen(self) -> tuple[Tensor, ...]:
        return tuple(dim_zero_cat(getattr(self, name)) for name in ("mean", "variance", "target"))

    def compute(self) -> Tensor:
        """Return the measure of everything seen so far."""
        return type(self).measure(*self._seen())


class RegressionESD(_Kept):
    """Regression ESD: unbiased, bin-free.

    >>> metric = RegressionESD()
    >>> metric.update(torch.zeros(3), torch.tensor([1.0, 2.0, 3.0]), torch.ones(3))
    >>> metric.compute()
    tensor(0., dtype=torch.float64)
    """

    measure = staticmethod(regression_esd)


class _Binned(_Kept):
    """A measure over bins of equal mass."""

    def __init__(self, bins: int = 15, **options: Any) -> None:
        super().__init__(**options)
        self.bins = bins

    def compute(self) -> Tensor:
        """Return the measure of everything seen so far."""
        return type(self).measure(*self._seen(), bins=self.bins)


class ENCE(_Binned):
    """Expected normalized calibration error over bins of equal mass.

    >>> metric = ENCE(bins=1)
    >>> metric.update(torch.zeros(2), torch.full((2,), 4.0), torch.tensor([1.0, -1.0]))
    >>> metric.compute()
    tensor(0.5000, dtype=torch.float64)
    """

    measure = staticmethod(ence)


class UCE(_Binned):
    """Uncertainty calibration error over bins of equal mass.

    >>> metric = UCE(bins=1)
    >>> metric.update(torch.zeros(2), torch.full((2,), 4.0), torch.tensor([1.0, -1.0]))
    >>> metric.compute()
    tensor(3., dtype=torch.float64)
    """

    measure = staticmethod(uce)
