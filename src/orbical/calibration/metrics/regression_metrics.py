"""The measures of regression as torchmetrics classes, for evaluation loops and processes.

Each takes `update(preds, target)`, where `preds` are `(mean, variance)`, or a dictionary with
`mean` and `variance` or `covariance`; samples are along the first axis. Means over samples keep two
sums (GENCE, CRPS, NLL); measures that bin or sort by variance keep all samples.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import Tensor

from ..._arrays import ArrayLike, as_floating
from ...errors import InputError
from ..pairs.pairs_and_weights import sample_weights
from .metric_states import KeptMetric, MeanMetric, MeasureMetric

__all__ = ["ENCE", "GENCE", "UCE", "GENCESquared", "GaussianCRPS", "GaussianNLL", "RegressionESD"]


def _gaussian_preds_of_metric(preds: object) -> tuple[Tensor, Tensor]:
    """Return mean and variance of predictions, however they are passed."""
    if isinstance(preds, Mapping):
        given = preds.get("mean"), preds.get("covariance", preds.get("variance"))
        if any(part is None for part in given):
            raise InputError(
                "preds",
                "the keys mean and variance or covariance",
                ", ".join(map(str, preds)) or "none",
            )
    elif isinstance(preds, tuple | list) and len(preds) == 2:
        given = tuple(preds)
    else:
        raise InputError("preds", "(mean, variance)", type(preds))
    mean, variance = given
    return as_floating("mean", mean).detach(), as_floating("variance", variance).detach()


class _RegressionMetric(MeasureMetric):
    """A metric of Gaussian predictions."""

    def update(self, preds: Any, target: ArrayLike, weights: ArrayLike | None = None) -> None:
        """Add a batch.

        Args:
            preds: `(mean, variance)`, or a dictionary with `mean` and `variance` or `covariance`.
            target: Targets of the mean's shape.
            weights: Sample weights `[N]`.
        """
        mean, variance = _gaussian_preds_of_metric(preds)
        mass = sample_weights(weights, mean if mean.ndim == 1 else mean[..., 0])
        self._add(mass, mean, variance, as_floating("target", target).detach())


class _Mean(MeanMetric, _RegressionMetric):
    """A mean over samples of terms of Gaussian predictions."""

    plot_lower_bound = None


class KeptPredictions(KeptMetric, _RegressionMetric):
    """A measure that needs all samples at once."""

    arrays = ("mean", "variance", "target")


class GENCE(_Mean, measure="gence"):
    """GENCE; a calibrated Gaussian has `gence_floor`.

    Example:
        >>> import torch
        >>> metric = GENCE()
        >>> metric.update((torch.zeros(2), torch.ones(2)), torch.tensor([1.0, -1.0]))
        >>> metric.compute()
        tensor(0.0642, dtype=torch.float64)
    """


class GENCESquared(_Mean, measure="gence_sq"):
    """Squared GENCE; a calibrated Gaussian has `gence_sq_floor`.

    Example:
        >>> import torch
        >>> metric = GENCESquared()
        >>> metric.update((torch.zeros(2), torch.ones(2)), torch.tensor([1.0, -2.0]))
        >>> metric.compute()
        tensor(4.5000, dtype=torch.float64)
    """


class GaussianNLL(_Mean, measure="gaussian_nll"):
    """Negative log-likelihood of Gaussian predictions.

    Example:
        >>> import torch
        >>> metric = GaussianNLL()
        >>> metric.update((torch.zeros(2), torch.ones(2)), torch.zeros(2))
        >>> metric.compute()
        tensor(0.9189, dtype=torch.float64)
    """


class GaussianCRPS(_Mean, measure="gaussian_crps"):
    """Continuous ranked probability score of Gaussian predictions.

    Example:
        >>> import torch
        >>> metric = GaussianCRPS()
        >>> metric.update({"mean": torch.zeros(2), "variance": torch.ones(2)}, torch.zeros(2))
        >>> metric.compute()
        tensor(0.2337, dtype=torch.float64)
    """


class RegressionESD(KeptPredictions, measure="regression_esd"):
    """Regression ESD: unbiased, without bins.

    Example:
        >>> import torch
        >>> metric = RegressionESD()
        >>> metric.update((torch.zeros(3), torch.tensor([1.0, 2.0, 3.0])), torch.ones(3))
        >>> metric.compute()
        tensor(0., dtype=torch.float64)
    """

    plot_lower_bound = None


class ENCE(KeptPredictions, measure="ence"):
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


class UCE(KeptPredictions, measure="uce"):
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
