"""Split conformal intervals of a number: absolute, normalized and conformalized quantiles."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Self

import torch
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from .._arrays import ArrayLike, as_array, check_finite
from ..errors import InputError, WithUsage
from .quantiles import checked_coverage, conformal_quantile


class ConformalIntervals(WithUsage, BaseEstimator, ABC):  # type: ignore[misc]
    """Intervals that contain the true number with a chosen probability.

    A scikit-learn estimator whose features are the outputs of a model. Torch tensors give torch
    tensors on their device; anything else gives NumPy arrays.

    Args:
        coverage: the probability that an interval contains the truth.

    Attributes:
        threshold_: the largest score inside an interval.
    """

    columns: ClassVar[tuple[str, ...]]
    """The outputs of the model that the method needs, in the order of the columns of `X`."""
    threshold_: float

    def __init__(self, coverage: float = 0.9) -> None:
        self.coverage = coverage

    @abstractmethod
    def _center_and_reach(self, *columns: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return low and high end at score 0, and how far they move for each unit of score."""

    def fit(self, X: ArrayLike, y: ArrayLike, element_weight: ArrayLike | None = None) -> Self:
        """Find the threshold on data used neither for training nor for evaluation.

        Args:
            X: outputs of the model `[N, columns]`; or `[N, K, columns]` for K positions of each
                sample. A single column may be `[N]`.
            y: targets `[N]`, the same at all positions, or `[N, K]`.
            element_weight: quadrature weights `[K]` of the group; None for equal ones.

        Returns:
            The fitted estimator itself.

        Raises:
            InputError: if the data cannot be read, or if there are too few samples for the
                coverage: fewer than `coverage / (1 - coverage)`.
        """
        checked_coverage(self.coverage)
        outputs = self._read(X)
        if outputs.ndim not in (2, 3):
            raise InputError(
                "X",
                f"shape [N, {len(self.columns)}] or [N, K, {len(self.columns)}] to fit on",
                outputs,
            )
        outputs = outputs[:, None] if outputs.ndim == 2 else outputs
        targets = _read_targets(y, outputs)
        low, high, reach = self._center_and_reach(*outputs.unbind(-1))
        beyond = torch.maximum(low - targets, targets - high)
        self.threshold_ = conformal_quantile(beyond / reach, self.coverage, element_weight)
        return self

    def predict_interval(self, X: ArrayLike) -> Any:
        """Return the lower and the upper end of each interval.

        Args:
            X: outputs of the model `[..., columns]`, such as `[N, 2]` or the orbits `[N, K, 2]`.

        Returns:
            Ends `[..., 2]`. Where the low end would exceed the high one, which happens if CQR
            shrinks the quantiles, the interval is empty and both are NaN.
        """
        check_is_fitted(self)
        low, high, reach = self._center_and_reach(*self._read(X).unbind(-1))
        ends = torch.stack([low - self.threshold_ * reach, high + self.threshold_ * reach], dim=-1)
        ends = torch.where(ends[..., :1] <= ends[..., 1:], ends, torch.nan)
        return ends if isinstance(X, Tensor) else ends.numpy()

    def _read(self, X: ArrayLike) -> Tensor:
        """Return finite outputs `[..., columns]` in double precision."""
        outputs = as_array("X", X).detach().double()
        width = len(self.columns)
        if width == 1 and outputs.ndim == 1:
            outputs = outputs[:, None]
        if outputs.ndim < 2 or outputs.shape[-1] != width or not outputs.numel():
            raise InputError("X", f"shape [..., {width}] ({', '.join(self.columns)})", outputs)
        check_finite("X", outputs, "outputs")
        return outputs


class Absolute(ConformalIntervals):
    """Intervals of one width around the prediction.

        score:  |y - mean|

    Args:
        coverage: the probability that an interval contains the truth.

    Attributes:
        threshold_: half of the width.

    See Also:
        Normalized: Wider where the model predicts a larger deviation.
        CQR: From predicted quantiles.

    Example:
        >>> intervals = Absolute(coverage=0.8).fit([0.0, 0.0, 0.0, 0.0], [1.0, -2.0, 3.0, 4.0])
        >>> intervals.predict_interval([10.0])
        array([[ 6., 14.]])
    """

    columns: ClassVar[tuple[str, ...]] = ("mean",)

    def _center_and_reach(self, *columns: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        (mean,) = columns
        return mean, mean, torch.ones_like(mean)


class Normalized(ConformalIntervals):
    """Intervals that scale with the standard deviation that the model predicts.

        score:  |y - mean| / deviation

    Columns of `X` are mean and standard deviation. Lei et al. 2018.

    Args:
        coverage: the probability that an interval contains the truth.

    Attributes:
        threshold_: half of the width, in standard deviations.

    See Also:
        Absolute: One width for all inputs.
        CQR: From predicted quantiles.

    Example:
        >>> X = [[0.0, 1.0], [0.0, 2.0], [0.0, 1.0], [0.0, 2.0]]
        >>> intervals = Normalized(coverage=0.8).fit(X, [1.0, -2.0, 0.5, 4.0])
        >>> intervals.predict_interval([[10.0, 3.0]])
        array([[ 4., 16.]])
    """

    columns: ClassVar[tuple[str, ...]] = ("mean", "deviation")

    def _center_and_reach(self, *columns: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        mean, deviation = columns
        if not bool((deviation > 0).all()):
            raise InputError(
                "X",
                "standard deviations > 0 in column 1",
                f"values down to {float(deviation.min()):.4g}",
                remedy="pass sqrt(variance)",
            )
        return mean, mean, deviation


class CQR(ConformalIntervals):
    """Conformalized quantile regression: predicted quantiles, widened or narrowed as needed.

        score:  max(low - y, y - high)

    Columns of `X` are the predicted lower and upper quantile. Romano et al. 2019.

    Args:
        coverage: the probability that an interval contains the truth.

    Attributes:
        threshold_: how far each end is moved outwards; negative if the quantiles were too wide.

    See Also:
        Normalized: From a mean and a deviation.

    References:
        Romano et al., Conformalized quantile regression, NeurIPS 2019.

    Example:
        >>> X = [[-1.0, 1.0], [-1.0, 1.0], [-2.0, 2.0], [-2.0, 2.0]]
        >>> intervals = CQR(coverage=0.8).fit(X, [0.5, 1.5, 0.0, -4.0])
        >>> intervals.predict_interval([[9.0, 11.0]])
        array([[ 7., 13.]])
    """

    columns: ClassVar[tuple[str, ...]] = ("low", "high")

    def _center_and_reach(self, *columns: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        low, high = columns
        if bool((low > high).any()):
            raise InputError(
                "X",
                "lower quantiles in column 0 and upper ones in column 1",
                "crossing ones",
                remedy="sort each pair",
            )
        return low, high, torch.ones_like(low)


def _read_targets(y: ArrayLike, outputs: Tensor) -> Tensor:
    """Return finite targets `[N, 1]` or `[N, K]`."""
    targets = as_array("y", y, outputs.device).detach().double()
    targets = targets[:, None] if targets.ndim == 1 else targets
    samples, elements = outputs.shape[:2]
    if targets.shape not in ((samples, 1), (samples, elements)):
        raise InputError("y", f"shape ({samples},) or ({samples}, {elements}), as X", targets)
    check_finite("y", targets, "targets")
    return targets
