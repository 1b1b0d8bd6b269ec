"""The measures of regression as torchmetrics classes, for evaluation loops and processes.

Each takes `update(preds, target)`, where `preds` are `(mean, variance)`, or a dictionary with
`mean` and `variance` or `covariance`; samples are along the first axis. Means over samples keep two
sums (GENCE, CRPS, NLL); measures that bin or sort by variance keep all samples.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from torch import Tensor
from torchmetrics import Metric
from torchmetrics.utilities import dim_zero_cat

from .._arrays import ArrayLike, as_floating
from ..errors import InputError
from .gaussian import crps_terms, nll_terms
from .generalized import gence_sq_terms, gence_terms
from .inputs import sample_weights
from .metrics import WeightedMetric, equal_weights, kept_weights
from .registry import Measure
from .regression import ence, regression_esd, uce

__all__ = ["ENCE", "GENCE", "UCE", "GENCESquared", "GaussianCRPS", "GaussianNLL", "RegressionESD"]


def _gaussian(preds: Any) -> tuple[Tensor, Tensor]:
    """Return mean and variance of predictions, however they are passed."""
    if isinstance(preds, Mapping):
        given = preds.get("mean"), preds.get("covariance", preds.get("variance"))
        if any(part is None for part in given):
            raise InputError(
                "preds: expected the keys mean and variance or covariance, got "
                f"{', '.join(map(str, preds)) or 'none'}"
            )
    elif isinstance(preds, tuple | list) and len(preds) == 2:
        given = tuple(preds)
    else:
        raise InputError(f"preds: expected (mean, variance), got {type(preds).__name__}")
    mean, variance = given
    return as_floating("mean", mean).detach(), as_floating("variance", variance).detach()


class _Mean(WeightedMetric):
    """A mean over samples: keeps the weighted sum of its terms, and of their weights.

    Its states carry its name: a collection joins metrics whose states agree after the first batch,
    and two different means may agree there by chance.
    """

    plot_lower_bound = None
    terms: ClassVar[Callable[..., Tensor]]

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._total, self._mass = (
            f"{type(self).__name__.lower()}_{part}" for part in ("sum", "mass")
        )
        self._add_sum(self._total)
        self._add_sum(self._mass)

    def update(self, preds: Any, target: ArrayLike, weights: ArrayLike | None = None) -> None:
        """Add a batch.

        Args:
            preds: `(mean, variance)`, or a dictionary with `mean` and `variance` or `covariance`.
            target: Targets of the mean's shape.
            weights: Sample weights `[N]`.
        """
        terms = type(self).terms(*_gaussian(preds), target).detach().double()
        mass = sample_weights(weights, terms)
        mass = equal_weights(len(terms), terms.device) if mass is None else mass
        setattr(self, self._total, getattr(self, self._total) + (terms * mass).sum())
        setattr(self, self._mass, getattr(self, self._mass) + mass.sum())

    def compute(self) -> Tensor:
        """Return the mean over everything seen so far."""
        mean: Tensor = getattr(self, self._total) / getattr(self, self._mass)
        return mean


class GENCE(_Mean):
    """GENCE; a calibrated Gaussian has `gence_floor`.

    Example:
        >>> import torch
        >>> metric = GENCE()
        >>> metric.update((torch.zeros(2), torch.ones(2)), torch.tensor([1.0, -1.0]))
        >>> metric.compute()
        tensor(0.0642, dtype=torch.float64)
    """

    terms = staticmethod(gence_terms)


class GENCESquared(_Mean):
    """Squared GENCE; a calibrated Gaussian has `gence_sq_floor`.

    Example:
        >>> import torch
        >>> metric = GENCESquared()
        >>> metric.update((torch.zeros(2), torch.ones(2)), torch.tensor([1.0, -2.0]))
        >>> metric.compute()
        tensor(4.5000, dtype=torch.float64)
    """

    terms = staticmethod(gence_sq_terms)


class GaussianNLL(_Mean):
    """Negative log-likelihood of Gaussian predictions.

    Example:
        >>> import torch
        >>> metric = GaussianNLL()
        >>> metric.update((torch.zeros(2), torch.ones(2)), torch.zeros(2))
        >>> metric.compute()
        tensor(0.9189, dtype=torch.float64)
    """

    terms = staticmethod(nll_terms)


class GaussianCRPS(_Mean):
    """Continuous ranked probability score of Gaussian predictions.

    Example:
        >>> import torch
        >>> metric = GaussianCRPS()
        >>> metric.update({"mean": torch.zeros(2), "variance": torch.ones(2)}, torch.zeros(2))
        >>> metric.compute()
        tensor(0.2337, dtype=torch.float64)
    """

    terms = staticmethod(crps_terms)


class _Kept(WeightedMetric):
    """A measure that needs all samples at once."""

    mass: list[Tensor]

    def __init__(self, measure: Callable[..., Tensor], settings: Any, **options: Any) -> None:
        super().__init__(**options)
        self._measure, self._settings = measure, settings
        for name in ("mean", "variance", "target", "mass"):
            self.add_state(name, [], dist_reduce_fx="cat")

    def update(self, preds: Any, target: ArrayLike, weights: ArrayLike | None = None) -> None:
        """Add a batch.

        Args:
            preds: `(mean, variance)`, or a dictionary with `mean` and `variance` or `covariance`.
            target: Targets of the mean's shape.
            weights: Sample weights `[N]`.
        """
        parts = (*_gaussian(preds), as_floating("target", target).detach())
        for name, values in zip(("mean", "variance", "target"), parts, strict=True):
            getattr(self, name).append(values)
        mean = parts[0]
        mass = sample_weights(weights, mean if mean.ndim == 1 else mean[..., 0])
        self.mass.append(equal_weights(len(mean), mean.device) if mass is None else mass)

    def compute(self) -> Tensor:
        """Return the measure of everything seen so far."""
        seen = (dim_zero_cat(getattr(self, name)) for name in ("mean", "variance", "target"))
        return self._measure(*seen, **self._settings, **kept_weights(self.mass))


class RegressionESD(_Kept):
    """Regression ESD: unbiased, without bins.

    Example:
        >>> import torch
        >>> metric = RegressionESD()
        >>> metric.update((torch.zeros(3), torch.tensor([1.0, 2.0, 3.0])), torch.ones(3))
        >>> metric.compute()
        tensor(0., dtype=torch.float64)
    """

    plot_lower_bound = None

    def __init__(self, **options: Any) -> None:
        super().__init__(regression_esd, {}, **options)


class ENCE(_Kept):
    """Expected normalized calibration error over bins of equal mass.

    Args:
        bins: Number of bins.
        options: Options of `torchmetrics.Metric`.

    Example:
        >>> import torch
        >>> metric = ENCE(bins=1)
        >>> metric.update((torch.zeros(2), torch.full((2,), 4.0)), torch.tensor([1.0, -1.0]))
        >>> metric.compute()
        tensor(0.5000, dtype=torch.float64)
    """

    def __init__(self, bins: int = 15, **options: Any) -> None:
        super().__init__(ence, {"bins": bins}, **options)


class UCE(_Kept):
    """Uncertainty calibration error over bins of equal mass.

    Args:
        bins: Number of bins.
        options: Options of `torchmetrics.Metric`.

    Example:
        >>> import torch
        >>> metric = UCE(bins=1)
        >>> metric.update((torch.zeros(2), torch.full((2,), 4.0)), torch.tensor([1.0, -1.0]))
        >>> metric.compute()
        tensor(3., dtype=torch.float64)
    """

    def __init__(self, bins: int = 15, **options: Any) -> None:
        super().__init__(uce, {"bins": bins}, **options)


def of_measure(measure: Measure, **options: Any) -> Metric:
    """Return the metric of a registered measure that has no class of its own."""
    own = measure.accepted(options)
    rest = {name: value for name, value in options.items() if name not in own}
    return _Kept(measure.bind(**own).value, {}, **rest)
