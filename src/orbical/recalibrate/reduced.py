"""Isotonic regression and histogram binning: maps of one confidence, for many classes.

A problem of C classes is reduced to maps of one number in one of two ways. `"top"`: one map of
the largest probability to how often it is right; the other classes share what is left in
proportion. `"classes"`: one map for each class's probability, and rows are normalized.
"""

from __future__ import annotations

from abc import abstractmethod
from itertools import pairwise
from typing import ClassVar, Self

import torch
from torch import Tensor

from .._arrays import ArrayLike
from ..calibration.sorting import ascending
from ..errors import InputError, unknown_name
from .base import Calibrator, read_labels, read_probabilities, rows_of, same_classes


class _Reduced(Calibrator):
    """Maps of one confidence, in joined arrays; map k begins at `offsets_[k]`."""

    learned: ClassVar[tuple[str, ...]] = ("places_", "values_", "offsets_", "classes_")
    places_: Tensor
    values_: Tensor
    offsets_: Tensor
    classes_: Tensor

    def __init__(self, reduce: str = "top") -> None:
        if reduce not in ("top", "classes"):
            raise unknown_name("reduce", reduce, ("top", "classes"))
        self.reduce = reduce

    @abstractmethod
    def _fit_map(self, confidence: Tensor, hits: Tensor) -> tuple[Tensor, Tensor]:
        """Return places and values `[M]` of a map, from ascending confidences and their hits."""

    @abstractmethod
    def _apply_map(self, places: Tensor, values: Tensor, confidence: Tensor) -> Tensor:
        """Return the map's value at each confidence."""

    def fit(
        self, *, logits: ArrayLike | None = None, probs: ArrayLike | None = None, labels: ArrayLike
    ) -> Self:
        """Find the maps on held-out data.

        Args:
            logits: `[N, C]`, turned into probabilities by the softmax; or
            probs: `[N, C]`, rows summing to 1.
            labels: `[N]` class indices.
        """
        confidences = rows_of(read_probabilities(logits, probs)).double()
        size, classes = confidences.shape
        truth = read_labels(labels, size, classes, confidences.device)
        if self.reduce == "top":
            top, predicted = confidences.max(1)
            pairs = [(top, predicted == truth)]
        else:
            pairs = [(confidences[:, k].contiguous(), truth == k) for k in range(classes)]
        maps = []
        for confidence, hits in pairs:
            ordered, order = ascending(confidence)
            maps.append(self._fit_map(ordered, hits.index_select(0, order).double()))
        self.places_ = torch.cat([places for places, _ in maps])
        self.values_ = torch.cat([values for _, values in maps])
        self.offsets_ = torch.tensor([0, *(len(places) for places, _ in maps)]).cumsum(0)
        self.classes_ = torch.tensor(classes)
        return self

    def transform(
        self, *, logits: ArrayLike | None = None, probs: ArrayLike | None = None
    ) -> Tensor:
        """Return calibrated probabilities `[..., C]` for `logits` or `probs` `[..., C]`.

        With `reduce="top"` the calibrated confidence belongs to the class that was on top in the
        input, even if another class ends above it. With `reduce="classes"` a row whose classes are
        all mapped to 0 becomes uniform.
        """
        self._fitted()
        given = same_classes(read_probabilities(logits, probs).detach(), int(self.classes_))
        confidences = given.double()
        bounds = self.offsets_.tolist()
        maps = [
            (self.places_[a:b].to(given.device), self.values_[a:b].to(given.device))
            for a, b in pairwise(bounds)
        ]
        if self.reduce == "top":
            result = self._transform_top(maps[0], confidences)
        else:
            columns = [
                self._apply_map(places, values, confidences[..., k].contiguous())
                for k, (places, values) in enumerate(maps)
            ]
            result = torch.stack(columns, dim=-1)
            total = result.sum(-1, keepdim=True)
            result = torch.where(total > 0, result / total, 1 / len(maps))
        return result.to(given.dtype)

    def _transform_top(self, one_map: tuple[Tensor, Tensor], confidences: Tensor) -> Tensor:
        top, predicted = confidences.max(-1, keepdim=True)
        calibrated = self._apply_map(*one_map, top.contiguous())
        others = confidences.scatter(-1, predicted, 0.0)
        left = others.sum(-1, keepdim=True)
        even = torch.full_like(others, 1 / (others.shape[-1] - 1)).scatter(-1, predicted, 0.0)
        shares = torch.where(left > 0, others / left, even)
        return (shares * (1 - calibrated)).scatter(-1, predicted, calibrated)


def _tied(ordered: Tensor, hits: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return distinct confidences, how many samples share each, and their mean of hits."""
    distinct, index, count = torch.unique_consecutive(
        ordered, return_inverse=True, return_counts=True
    )
    total = torch.zeros_like(distinct).index_add(0, index, hits)
    return distinct, count, total / count


class Isotonic(_Reduced):
    """Isotonic regression: the non-decreasing map of the confidence nearest to the hits.

        minimize  sum_i (g(confidence_i) - hit_i)^2  over non-decreasing g

    Linear between the fitted places, constant outside. Zadrozny and Elkan 2002.

    Args:
        reduce: "top" (largest probability) or "classes" (one map for each class).

    Attributes:
        places_, values_: the maps' corners, one map after the other; `offsets_` says where each
            begins.

    >>> probs = torch.tensor([[0.9, 0.1], [0.8, 0.2], [0.3, 0.7], [0.6, 0.4]])
    >>> Isotonic().fit(probs=probs, labels=[0, 1, 1, 1]).transform(probs=probs)[:, 0]
    tensor([1.0000, 0.5000, 0.5000, 0.0000])
    """

    def _fit_map(self, confidence: Tensor, hits: Tensor) -> tuple[Tensor, Tensor]:
        from scipy.optimize import isotonic_regression

        places, count, mean = _tied(confidence, hits)
        fitted = isotonic_regression(mean.cpu().numpy(), weights=count.double().cpu().numpy())
        values = torch.as_tensor(fitted.x).to(places).clamp_(0, 1)
        # Inside a constant stretch the corners say nothing: keep its two ends.
        corner = torch.ones(len(values), dtype=torch.bool, device=values.device)
        corner[1:-1] = (values[1:-1] != values[:-2]) | (values[1:-1] != values[2:])
        return places[corner].cpu(), values[corner].cpu()

    def _apply_map(self, places: Tensor, values: Tensor, confidence: Tensor) -> Tensor:
        if len(places) == 1:
            return values.expand_as(confidence)
        right = torch.searchsorted(places, confidence).clamp_(1, len(places) - 1)
        low, high = places[right - 1], places[right]
        share = ((confidence - low) / (high - low)).clamp(0, 1)
        return torch.lerp(values[right - 1], values[right], share)


class HistogramBinning(_Reduced):
    """Histogram binning: in each bin of the confidence, how often it was right.

    Bins of equal mass, `(lo, hi]`, between confidences of the data; equal confidences share a
    bin. Confidences outside the data belong to the first or last bin. Zadrozny and Elkan 2001.

    Args:
        bins: the number of bins.
        reduce: "top" (largest probability) or "classes" (one map for each class).

    Attributes:
        places_, values_: the upper edge and the share of hits of each bin, one map after the
            other; `offsets_` says where each begins.

    >>> probs = torch.tensor([[0.9, 0.1], [0.8, 0.2], [0.3, 0.7], [0.6, 0.4]])
    >>> HistogramBinning(bins=2).fit(probs=probs, labels=[0, 0, 1, 1]).transform(probs=probs)[:, 0]
    tensor([1.0000, 1.0000, 0.5000, 0.5000])
    """

    def __init__(self, bins: int = 15, reduce: str = "top") -> None:
        super().__init__(reduce)
        if isinstance(bins, bool) or not isinstance(bins, int) or bins < 1:
            raise InputError(f"bins: expected a whole number >= 1, got {bins!r}")
        self.bins = bins

    def _fit_map(self, confidence: Tensor, hits: Tensor) -> tuple[Tensor, Tensor]:
        size = len(confidence)
        steps = torch.arange(1, self.bins + 1, device=confidence.device)
        places = (-(-steps * size // self.bins) - 1).clamp_(min=0)
        edges = torch.unique(confidence[places])
        index = torch.searchsorted(edges, confidence)
        count = torch.bincount(index, minlength=len(edges))
        total = torch.zeros_like(edges).index_add(0, index, hits)
        return edges.cpu(), (total / count).cpu()

    def _apply_map(self, places: Tensor, values: Tensor, confidence: Tensor) -> Tensor:
        return values[torch.searchsorted(places, confidence).clamp_(max=len(places) - 1)]
