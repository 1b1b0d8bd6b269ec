"""Beta calibration: a map of one confidence with three parameters."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from .confidence_maps import _ConfidenceMap
from .linear import _checked_penalty

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

        strength = _checked_penalty("penalty", self.penalty)
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
