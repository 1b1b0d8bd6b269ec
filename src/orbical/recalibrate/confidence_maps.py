"""Beta calibration, isotonic regression, histogram binning: maps of one confidence for C classes.

A problem of C classes is reduced to maps of one number in one of two ways. `"top"`: one map of
the largest probability to its accuracy; the other classes share the remainder in proportion.
`"classes"`: one map for each class's probability, and rows are normalized.
"""

from __future__ import annotations

from abc import abstractmethod
from itertools import pairwise
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from ..calibration import ascending
from ..errors import check_name, number_of_bins, real_number
from .calibrator import Calibrator

_UNSEEN = 1e-3


class _ConfidenceMap(Calibrator):
    """Maps of one confidence, in joined arrays; map k begins at `offsets_[k]`."""

    learned: ClassVar[tuple[str, ...]] = ("places_", "values_", "offsets_")
    places_: np.ndarray
    values_: np.ndarray
    offsets_: np.ndarray

    def __init__(self, *, reduce: str = "top", outputs: str = "logits") -> None:
        super().__init__(outputs=outputs)
        self.reduce = reduce

    @abstractmethod
    def _fit_map(
        self, confidence: Tensor, correct: Tensor, weight: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Return places and values `[M]` of a map, from ascending confidences."""

    @abstractmethod
    def _apply_map(self, places: Tensor, values: Tensor, confidence: Tensor) -> Tensor:
        """Return the map's value at each confidence."""

    def _fit(self, outputs: Tensor, labels: Tensor, weight: Tensor) -> None:
        check_name("reduce", self.reduce, ("top", "classes"))
        probs = self._probabilities(outputs).double()
        if self.reduce == "top":
            top, predicted = probs.max(1)
            pairs = [(top, predicted == labels)]
        else:
            pairs = [(probs[:, k].contiguous(), labels == k) for k in range(probs.shape[1])]
        maps = []
        for confidence, correct in pairs:
            ordered, order = ascending(confidence)
            maps.append(self._fit_map(ordered, correct[order].double(), weight[order]))
        self.places_ = torch.cat([places for places, _ in maps]).cpu().numpy()
        self.values_ = torch.cat([values for _, values in maps]).cpu().numpy()
        self.offsets_ = np.cumsum([0, *(len(places) for places, _ in maps)])

    def _apply(self, outputs: Tensor) -> Tensor:
        probs = self._probabilities(outputs.detach()).double()
        places, values = (torch.as_tensor(part).to(probs) for part in (self.places_, self.values_))
        maps = [(places[a:b], values[a:b]) for a, b in pairwise(self.offsets_.tolist())]
        if self.reduce == "top":
            result = self._apply_to_top(maps[0], probs)
        else:
            columns = [
                self._apply_map(*one, probs[..., k].contiguous()) for k, one in enumerate(maps)
            ]
            result = torch.stack(columns, dim=-1)
            total = result.sum(-1, keepdim=True)
            result = torch.where(total > 0, result / total, 1 / len(maps))
        return result.to(outputs.dtype)

    def _apply_to_top(self, one_map: tuple[Tensor, Tensor], probs: Tensor) -> Tensor:
        top, predicted = probs.max(-1, keepdim=True)
        calibrated = self._apply_map(*one_map, top.contiguous())
        others = probs.scatter(-1, predicted, 0.0)
        left = others.sum(-1, keepdim=True)
        even = torch.full_like(others, 1 / (others.shape[-1] - 1)).scatter(-1, predicted, 0.0)
        shares = torch.where(left > 0, others / left, even)
        return (shares * (1 - calibrated)).scatter(-1, predicted, calibrated)


class Isotonic(_ConfidenceMap):
    """Isotonic regression: the non-decreasing map of the confidence closest to being correct.

        minimize  sum_i w_i (g(confidence_i) - correct_i)^2  over non-decreasing g

    Linear between the fitted places, constant outside. Zadrozny and Elkan 2002.

    Args:
        reduce: `"top"` maps the largest probability; the calibrated value belongs to the class
            that was on top in `X`, even if another class ends above it. `"classes"` fits one map
            for each class; a row whose classes are all mapped to 0 becomes uniform.
        outputs: what `X` is, `"logits"` or `"probabilities"` (rows that sum to 1).

    Attributes:
        places_: confidences at the maps' corners, one map after the other.
        values_: the maps at their corners.
        offsets_: where each map begins in `places_` and `values_`.
        classes_: the class of each column, `[C]`.

    See Also:
        HistogramBinning: A step for each bin.
        Beta: Three numbers, for few samples.

    Example:
        >>> X = [[0.9, 0.1], [0.8, 0.2], [0.3, 0.7], [0.6, 0.4]]
        >>> Isotonic(outputs="probabilities").fit(X, [0, 1, 1, 1]).predict_proba(X)[:, 0]
        array([1. , 0.5, 0.5, 0. ])
    """

    def _fit_map(
        self, confidence: Tensor, correct: Tensor, weight: Tensor
    ) -> tuple[Tensor, Tensor]:
        from sklearn.isotonic import IsotonicRegression

        given = [part.cpu().numpy() for part in (confidence, correct, weight)]
        fitted = IsotonicRegression(y_min=0, y_max=1).fit(*given)
        places, values = fitted.X_thresholds_, fitted.y_thresholds_
        return torch.as_tensor(places).to(weight), torch.as_tensor(values).to(weight)

    def _apply_map(self, places: Tensor, values: Tensor, confidence: Tensor) -> Tensor:
        if len(places) == 1:
            return values.expand_as(confidence)
        right = torch.searchsorted(places, confidence).clamp_(1, len(places) - 1)
        low, high = places[right - 1], places[right]
        share = ((confidence - low) / (high - low)).clamp(0, 1)
        return torch.lerp(values[right - 1], values[right], share)


class HistogramBinning(_ConfidenceMap):
    """Histogram binning: the accuracy in each bin of the confidence.

    The accuracy of a bin is kept between 0.001 and 0.999: an outcome that it has not seen may
    still occur, and no likelihood becomes 0. Bins of equal mass, `(lo, hi]`, between
    confidences of the data; equal confidences share a bin. Confidences outside the data belong to
    the first or last bin. Zadrozny and Elkan 2001.

    Args:
        bins: the number of bins.
        reduce: `"top"` maps the largest probability, `"classes"` fits one map for each class, as
            in `Isotonic`.
        outputs: what `X` is, `"logits"` or `"probabilities"` (rows that sum to 1).

    Attributes:
        places_: the upper edge of each bin, one map after the other.
        values_: the accuracy in each bin, from 0.001 to 0.999.
        offsets_: where each map begins in `places_` and `values_`.
        classes_: the class of each column, `[C]`.

    Example:
        >>> X = [[0.9, 0.1], [0.8, 0.2], [0.3, 0.7], [0.6, 0.4]]
        >>> binning = HistogramBinning(bins=2, outputs="probabilities").fit(X, [0, 0, 1, 1])
        >>> binning.predict_proba(X)[:, 0].round(2)
        array([1. , 1. , 0.5, 0.5])
    """

    def __init__(self, bins: int = 15, *, reduce: str = "top", outputs: str = "logits") -> None:
        super().__init__(reduce=reduce, outputs=outputs)
        self.bins = bins

    def _fit_map(
        self, confidence: Tensor, correct: Tensor, weight: Tensor
    ) -> tuple[Tensor, Tensor]:
        bins = number_of_bins(self.bins)
        mass = (weight / weight.min()).cumsum(0)  # exact for equal weights, of any number
        steps = torch.arange(1, bins + 1, device=mass.device)
        # The slack keeps rounded sums from moving an edge by one sample.
        reached = torch.searchsorted(mass, mass[-1] * steps / bins * (1 - 1e-12))
        edges = torch.unique(confidence[reached])
        index = torch.searchsorted(edges, confidence).clamp_(max=len(edges) - 1)
        total = torch.zeros_like(edges).index_add(0, index, weight)
        share = torch.zeros_like(edges).index_add(0, index, weight * correct) / total
        # Not by the count of a bin: whole weights must equal repetitions, at any scale.
        return edges, share.clamp(_UNSEEN, 1 - _UNSEEN)

    def _apply_map(self, places: Tensor, values: Tensor, confidence: Tensor) -> Tensor:
        return values[torch.searchsorted(places, confidence).clamp_(max=len(places) - 1)]


_SMALLEST = 1e-12
"""Confidences closer to 0 or 1 count as this close, so that their logarithm is finite."""


class Beta(_ConfidenceMap):
    """Beta calibration: a sigmoid of the logarithms of a confidence and of its complement.

        g(p) = sigmoid(a log p - b log(1 - p) + c),   a, b >= 0
        minimize  NLL + penalty ((a - 1)^2 + (b - 1)^2 + c^2)

    The identity is among its maps, unlike those of Platt scaling; with a = b and c = 0 it is a
    temperature of two classes. Non-decreasing. Kull et al. 2017.

    Args:
        penalty: the penalty of the distance from the identity, which keeps parameters finite on
            data without errors.
        reduce: `"top"` maps the largest probability, `"classes"` fits one map for each class, as
            in `Isotonic`.
        outputs: what `X` is, `"logits"` or `"probabilities"` (rows that sum to 1).

    Attributes:
        values_: a, b and c of each map, one map after the other.
        classes_: the class of each column, `[C]`.

    See Also:
        Isotonic: Any increasing curve.

    References:
        Kull et al., Beta calibration: a well-founded and easily implemented improvement on logistic
        calibration for binary classifiers, AISTATS 2017.

    Example:
        >>> X = [[0.9, 0.1], [0.8, 0.2], [0.3, 0.7], [0.6, 0.4]]
        >>> beta = Beta(outputs="probabilities").fit(X, [0, 1, 1, 1])
        >>> beta.values_.shape, bool((beta.values_[:2] >= 0).all())
        ((3,), True)
    """

    def __init__(
        self, penalty: float = 1e-3, *, reduce: str = "top", outputs: str = "logits"
    ) -> None:
        super().__init__(reduce=reduce, outputs=outputs)
        self.penalty = penalty

    def _fit_map(
        self, confidence: Tensor, correct: Tensor, weight: Tensor
    ) -> tuple[Tensor, Tensor]:
        from scipy.optimize import minimize

        strength = real_number("penalty", self.penalty, ">= 0")
        given = (part.cpu().numpy() for part in (_logarithms(confidence), correct, weight))
        features, hit, mass = given
        identity = np.array([1.0, 1.0, 0.0])

        def objective(parameters: np.ndarray) -> tuple[float, np.ndarray]:
            score = features @ parameters
            apart = parameters - identity
            value = mass @ (np.logaddexp(0, score) - hit * score) + strength * apart @ apart
            residual = mass * (0.5 * (1 + np.tanh(score / 2)) - hit)
            return float(value), features.T @ residual + 2 * strength * apart

        bounds = [(0, None), (0, None), (None, None)]
        tight = {"ftol": 1e-16, "gtol": 1e-11, "maxiter": 1000}
        found = minimize(
            objective, identity, jac=True, bounds=bounds, method="L-BFGS-B", options=tight
        )
        values = torch.as_tensor(found.x).to(weight)
        return torch.arange(3).to(weight), values

    def _apply_map(self, places: Tensor, values: Tensor, confidence: Tensor) -> Tensor:
        return torch.sigmoid(_logarithms(confidence) @ values)


def _logarithms(confidence: Tensor) -> Tensor:
    """Return log p, -log(1 - p) and 1 along a last axis."""
    p = confidence.clamp(_SMALLEST, 1 - _SMALLEST)
    return torch.stack([p.log(), -torch.log1p(-p), torch.ones_like(p)], dim=-1)
