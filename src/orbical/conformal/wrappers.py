"""Conformal methods made of others: a threshold for each category, or one set for an orbit."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import torch
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from .._arrays import ArrayLike
from ..errors import InputError, WithUsage
from ..recalibrate import calibrator_weights
from .class_sets import ConformalSets, conformal_scores
from .quantiles import checked_coverage, conformal_quantile
from .target_intervals import ConformalIntervals


class Mondrian(WithUsage, BaseEstimator):  # type: ignore[misc]
    """A threshold for each category, so that the coverage holds in each of them.

    Categories can be anything known of a new sample: a class of scanner, or the position of the
    orbit. Each needs `coverage / (1 - coverage)` calibration samples at least. Vovk et al. 2003.

    Args:
        method: the method, such as `LAC(coverage=0.9)`; it is cloned.

    Attributes:
        methods_: the fitted method of each category.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> position = np.tile([0, 1], 50)
        >>> error = rng.normal(0, 1 + 9 * position)
        >>> from orbical.conformal import Absolute
        >>> intervals = Mondrian(Absolute(coverage=0.9)).fit(np.zeros(100), error, position)
        >>> [round(intervals.methods_[place].threshold_) for place in (0, 1)]
        [2, 16]
    """

    methods_: dict[object, object]

    def __init__(self, method: ConformalSets | ConformalIntervals) -> None:
        self.method = method

    def fit(self, X: ArrayLike, y: ArrayLike, category: ArrayLike) -> Self:
        """Fit the method in each category.

        Args:
            X: outputs of the model, as the method takes them, one row for each sample.
            y: labels or targets `[N]`.
            category: the category of each sample `[N]`: numbers or names.

        Returns:
            The fitted estimator itself.

        Raises:
            InputError: if a category has too few samples for the coverage.
        """
        X, y = (part if hasattr(part, "shape") else np.asarray(part) for part in (X, y))
        of_row = _categories(category, len(X))
        names = np.unique(np.asarray(y.cpu() if isinstance(y, Tensor) else y))
        columns = X.shape[-1] if len(X.shape) > 1 else 0
        # A category may lack a class; where labels are names, all of them name the columns.
        of_classes = isinstance(self.method, ConformalSets)
        known = {"classes": names} if len(names) == columns and of_classes else {}
        self.methods_ = {}
        for name in np.unique(of_row).tolist():
            rows = np.flatnonzero(of_row == name)
            try:
                self.methods_[name] = clone(self.method).fit(X[rows], y[rows], **known)
            except InputError as error:
                raise InputError(f"category {name!r}", problem=str(error)) from error
        return self

    def predict_set(self, X: ArrayLike, category: ArrayLike) -> Any:
        """Return whether each set contains each class, `[N, C]`; `category` is as in `fit`."""
        return self._predicted("predict_set", X, category)

    def predict_interval(self, X: ArrayLike, category: ArrayLike) -> Any:
        """Return the ends of each interval, `[N, 2]`; `category` is as in `fit`."""
        return self._predicted("predict_interval", X, category)

    def _predicted(self, name: str, X: ArrayLike, category: ArrayLike) -> Any:
        check_is_fitted(self)
        X = X if hasattr(X, "shape") else np.asarray(X)
        of_row = _categories(category, len(X))
        unknown = {*np.unique(of_row).tolist()} - {*self.methods_}
        if unknown:
            raise InputError(
                "category",
                f"one of {[*self.methods_]}",
                repr(min(unknown, key=str)),
                remedy="calibrate on samples of it",
            )
        order = [np.flatnonzero(of_row == one) for one in self.methods_]
        parts = [
            getattr(method, name)(X[rows])
            for method, rows in zip(self.methods_.values(), order, strict=True)
            if len(rows)
        ]
        back = np.concatenate(order).argsort()
        if isinstance(X, Tensor):
            return torch.cat(parts)[torch.as_tensor(back, device=X.device)]
        return np.concatenate(parts)[back]


class OrbitAveraged(WithUsage, BaseEstimator):  # type: ignore[misc]
    """One set for a whole orbit, from scores averaged over it.

        score of class k:  sum_g w_g s(g x, k)

    A transformed input has the same orbit, and so the same set, if the group is closed and its
    weights are equal: the set is invariant where the model is not. Because the averaged scores of
    samples are exchangeable where the samples are, the coverage is guaranteed at every position.

    Args:
        method: the method whose scores are averaged, such as `LAC(coverage=0.9)`; it is cloned.

    Attributes:
        method_: the fitted method.

    Example:
        >>> from orbical.conformal import LAC
        >>> rng = np.random.default_rng(0)
        >>> orbits = rng.dirichlet(np.ones(3), (20, 4))  # 20 samples, 4 positions, 3 classes
        >>> method = OrbitAveraged(LAC(coverage=0.8, outputs="probabilities"))
        >>> sets = method.fit(orbits, rng.integers(0, 3, 20))
        >>> turned = np.roll(orbits, 1, axis=1)  # the orbit, begun at another position
        >>> bool((sets.predict_set(orbits) == sets.predict_set(turned)).all())
        True
    """

    method_: ConformalSets

    def __init__(self, method: ConformalSets) -> None:
        self.method = method

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        element_weight: ArrayLike | None = None,
        *,
        classes: ArrayLike | None = None,
    ) -> Self:
        """Find the threshold of averaged scores; the arguments are those of `ConformalSets.fit`.

        Args:
            X: class scores `[N, K, C]` for K positions of each sample.
            y: labels `[N]`.
            element_weight: quadrature weights `[K]` of the group; None for equal ones.
            classes: the label of each column, where `y` lacks some; None takes them from `y`.

        Returns:
            The fitted estimator itself.
        """
        if not isinstance(self.method, ConformalSets):
            raise InputError(
                "method",
                "a method of sets, such as LAC()",
                type(self.method),
                remedy="averaged scores of intervals are not an interval",
            )
        checked_coverage(self.method.coverage)
        method: ConformalSets = clone(self.method)
        scores, labels = method._read_scores(X, y, classes)
        weight = calibrator_weights(
            "element_weight", element_weight, scores.shape[1], scores.device
        )
        average = (scores * weight[:, None]).sum(1, keepdim=True)
        method.threshold_ = conformal_quantile(conformal_scores(average, labels), method.coverage)
        self.method_, self.weight_ = method, weight.cpu().numpy()
        return self

    def predict_set(self, X: ArrayLike) -> Any:
        """Return whether the set of each sample contains each class.

        Args:
            X: class scores `[N, K, C]` at the same K positions as in `fit`.

        Returns:
            Booleans `[N, C]`.
        """
        check_is_fitted(self)
        scores = self.method_._new_scores(X)
        if scores.ndim != 3 or scores.shape[1] != len(self.weight_):
            raise InputError(
                "X", f"shape [N, {len(self.weight_)}, C], the positions of fit", scores
            )
        weight = scores.new_tensor(self.weight_)
        average = (scores * weight[:, None]).sum(1)
        # Sums in another order differ by rounding, which must not change a set along the orbit.
        found = average <= self.method_.threshold_ + 1e-12
        return found if isinstance(X, Tensor) else found.numpy()


def _categories(category: ArrayLike, samples: int) -> np.ndarray:
    """Return the category of each sample as an array `[N]`."""
    found = category.cpu().numpy() if isinstance(category, Tensor) else np.asarray(category)
    if found.shape != (samples,):
        raise InputError("category", f"shape ({samples},), one for each row of X", found)
    return found
