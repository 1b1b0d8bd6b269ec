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

from .._arrays import ArrayLike, as_floating
from ..errors import InputError
from .gaussian import crps_terms, nll_terms
from .generalized import gence_sq_terms, gence_terms
from .inputs import sample_weights
from .metrics import KeptMetric, MeanMetric
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


class _Mean(MeanMetric):
    """A mean over samples of terms of Gaussian predictions."""

    plot_lower_bound = None
    terms: ClassVar[Callable[..., Tensor]]

    def update(self, preds: Any, target: ArrayLike, weights: ArrayLike | None = None) -> None:
        """Add a batch.

        Args:
            preds: `(mean, variance)`, or a dictionary with `mean` and `variance` or `covariance`.
            target: Targets of the mean's shape.
            weights: Sample weights `[N]`.
        """
        terms = type(self).terms(*_gaussian(preds), target)
        self._add_terms(terms, sample_weights(weights, terms))


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


class _Kept(KeptMetric):
    """A measure that needs all samples at once."""

    arrays = ("mean", "variance", "target")

    def update(self, preds: Any, target: ArrayLike, weights: ArrayLike | None = None) -> None:
        """Add a batch.

        Args:
            preds: `(mean, variance)`, or a dictionary with `mean` and `variance` or `covariance`.
            target: Targets of the mean's shape.
            weights: Sample weights `[N]`.
        """
        mean, variance = _gaussian(preds)
        truth = as_floating("target", target).detach()
        mass = sample_weights(weights, mean if mean.ndim == 1 else mean[..., 0])
        self._keep(mass, mean, variance, truth)


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
    own, rest = measure.split(options)
    return _Kept(measure.bind(**own).value, {}, **rest)
