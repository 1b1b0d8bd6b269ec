"""Vector and matrix scaling: linear maps of the logits, fitted by likelihood.

Each row of logits is centered first. Probabilities do not depend on a row's mean, and neither
should the map: logits and the logarithms of their softmax are then mapped alike.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from ..errors import InputError, real_number
from .calibrator import Calibrator

_CONJUGATE_STEPS = 200
"""Most products with the Hessian for one Newton step; an inexact step is a step all the same."""


def _centered(logits: Tensor) -> Tensor:
    """Take the mean of each row away, which no probability depends on."""
    return logits - logits.mean(-1, keepdim=True)


class _DiagonalScaling:
    """`w * z + b`, parameters `[w, b]` of length 2 C."""

    def __init__(self, logits: Tensor) -> None:
        self.logits = logits

    def __call__(self, parameters: Tensor) -> Tensor:
        scale, shift = parameters.view(2, -1)
        return torch.addcmul(shift, self.logits, scale)

    def adjoint(self, scores: Tensor) -> Tensor:
        return torch.cat([(scores * self.logits).sum(0), scores.sum(0)])

    def preconditioner(self, spread: Tensor, penalty: Tensor) -> Callable[[Tensor], Tensor]:
        """Divide by the diagonal of the Hessian."""
        squares = torch.cat([(spread * self.logits.square()).sum(0), spread.sum(0)])
        diagonal = squares + 2 * penalty
        diagonal = diagonal.clamp(min=1e-12 * diagonal.max().item())
        return lambda slope: slope / diagonal


class _FullScaling:
    """`W z + b`, parameters the rows of `[W, b]`, of length C (C + 1)."""

    def __init__(self, logits: Tensor, weight: Tensor) -> None:
        self.inputs = torch.cat([logits, torch.ones_like(logits[:, :1])], dim=1)
        self.classes = logits.shape[1]
        moments = self.inputs.T @ (weight[:, None] * self.inputs)
        self.size, self.axes = torch.linalg.eigh(moments)

    def __call__(self, parameters: Tensor) -> Tensor:
        return self.inputs @ parameters.view(self.classes, -1).T

    def adjoint(self, scores: Tensor) -> Tensor:
        return (scores.T @ self.inputs).flatten()

    def preconditioner(self, spread: Tensor, penalty: Tensor) -> Callable[[Tensor], Tensor]:
        """Take each class's weighted second moments of the logits for its mean weight's times all.

        Logits are strongly correlated; this undoes it at the cost of two small products.
        """
        curvature = spread.sum(0)[:, None] * self.size.clamp(min=0) + 2 * penalty.mean()
        # Centered logits do not vary along (1, ..., 1): without penalty nothing is learned there.
        varies = (self.size > 1e-12 * self.size.max()) | bool(penalty.any())
        inverse = torch.where(varies, 1 / curvature.clamp(min=1e-10 * curvature.max().item()), 0.0)

        def apply(slope: Tensor) -> Tensor:
            turned = slope.view(self.classes, -1) @ self.axes
            back: Tensor = (turned * inverse) @ self.axes.T
            return back.flatten()

        return apply


_Scores = _DiagonalScaling | _FullScaling
"""A linear map from parameters (flat) to scores `[N, C]`, and what solving for it needs."""


def _conjugate_gradients(
    product: Callable[[Tensor], Tensor],
    target: Tensor,
    precondition: Callable[[Tensor], Tensor],
    tolerance: float,
) -> Tensor:
    """Solve `H x = target` for a positive semi-definite H, to a residual of `tolerance`."""
    solution = torch.zeros_like(target)
    residual = target.clone()
    direction = precondition(residual)
    power = residual @ direction
    for _ in range(_CONJUGATE_STEPS):
        image = product(direction)
        along = direction @ image
        if along <= 0:
            break
        length = power / along
        solution += length * direction
        residual -= length * image
        if torch.linalg.vector_norm(residual) <= tolerance:
            break
        weighted = precondition(residual)
        previous, power = power, residual @ weighted
        direction = weighted + (power / previous) * direction
    return solution


def _curvature_of_scaling(
    scores: _Scores, probs: Tensor, weight: Tensor, penalty: Tensor
) -> Callable[[Tensor], Tensor]:
    """Return the Hessian of the penalized mean NLL as a map of directions."""
    weighted = probs * weight[:, None]

    def product(direction: Tensor) -> Tensor:
        change = scores(direction)
        change -= (probs * change).sum(1, keepdim=True)
        return scores.adjoint(change.mul_(weighted)) + 2 * penalty * direction

    return product


def _minimize_over_linear_scaling(
    scores: _Scores, labels: Tensor, weight: Tensor, identity: Tensor, penalty: Tensor
) -> Tensor:
    """Minimize `mean NLL + sum penalty * (parameters - identity)^2`, convex, by Newton's method.

    Each step is found by preconditioned conjugate gradients, more exactly as the minimum comes
    near, and shortened until the objective falls as it should.
    """
    rows = torch.arange(len(labels), device=labels.device)

    def evaluate(parameters: Tensor) -> tuple[float, Tensor]:
        log_probs = torch.log_softmax(scores(parameters), dim=1)
        value = (penalty * (parameters - identity).square()).sum()
        return (value - weight @ log_probs[rows, labels]).item(), log_probs

    parameters = identity
    value, log_probs = evaluate(parameters)
    for _ in range(200):
        probs = log_probs.exp()
        if not bool(penalty.any()) and bool((probs.argmax(1) == labels).all()):
            raise _separable()
        residual = probs.clone()
        residual[rows, labels] -= 1
        slope = scores.adjoint(residual.mul_(weight[:, None]))
        slope += 2 * penalty * (parameters - identity)
        size = torch.linalg.vector_norm(slope).item()
        step = -_conjugate_gradients(
            _curvature_of_scaling(scores, probs, weight, penalty),
            slope,
            scores.preconditioner(probs * (1 - probs) * weight[:, None], penalty),
            min(0.1, math.sqrt(size)) * size,
        )
        decrease = -(slope @ step).item()  # twice what remains to be gained, near the minimum
        if decrease < 2e-14 * max(1.0, abs(value)):
            # Near a minimum the last step is minute. It stays long where there is none, as on the
            # way down exp(-t), and then some class is told apart without any error.
            if _centered(scores(step)).abs().max() > 0.1:
                raise _separable()
            return parameters
        length = 1.0
        while length > 1e-10:
            trial, trial_log_probs = evaluate(parameters + length * step)
            if trial <= value - 1e-4 * length * decrease:
                break
            length /= 2
        else:
            return parameters  # Rounding hides any further progress.
        parameters, value, log_probs = parameters + length * step, trial, trial_log_probs
    raise _separable()


def _separable() -> InputError:
    return InputError(
        "y",
        "labels that no scaling separates",
        "classes told apart without error, so the likelihood grows without end",
        remedy="fit on more data or with a larger penalty",
    )


def _check_all_classes_for_scaling(labels: Tensor, classes: int) -> None:
    """Refuse an absent class: without a penalty on shifts, its shift has no optimum."""
    absent = (torch.bincount(labels, minlength=classes) == 0).nonzero()[:, 0].tolist()
    if absent:
        raise InputError(
            "y",
            f"all {classes} classes",
            f"no sample of {len(absent)} (the first is {absent[0]}), whose intercepts "
            "would be minus infinity",
            remedy="fit on more data or with a penalty",
        )


class VectorScaling(Calibrator):
    """Vector scaling: `softmax(w * z + b)`, a scale and a shift for each class.

    z are the logits less the mean of their row, on which no probability depends.

        minimize  NLL + penalty / C * sum_k ((w_k - 1)^2 + b_k^2)

    Convex; solved by Newton's method up to rounding. Without penalty every class needs a sample,
    and data that a scaling separates have no optimum and are refused. Guo et al. 2017.

    Args:
        penalty: the pull toward the identity; 0 for the plain method. The default
            changes the NLL by less than it can be estimated, and makes an optimum exist.
        outputs: what `X` is, `"logits"` or `"probabilities"` (rows that sum to 1).

    Attributes:
        scale_: w, `[C]`.
        shift_: b, `[C]`; only differences matter, its mean is 0.
        classes_: the class of each column, `[C]`.

    See Also:
        Temperature: One number, which keeps predictions.
        MatrixScaling: A number for each pair of classes.

    Example:
        >>> X = [[2.0, 0.0], [2.0, 0.0], [0.0, 2.0], [0.0, 2.0], [1.0, 0.0]]
        >>> scaling = VectorScaling(penalty=0.1).fit(X, ["cat", "dog", "dog", "dog", "cat"])
        >>> scaling.scale_.shape, str(scaling.predict(X)[0])
        ((2,), 'cat')
    """

    learned: ClassVar[tuple[str, ...]] = ("scale_", "shift_")
    scale_: np.ndarray
    shift_: np.ndarray

    def __init__(self, penalty: float = 1e-3, *, outputs: str = "logits") -> None:
        super().__init__(outputs=outputs)
        self.penalty = penalty

    def _fit(self, outputs: Tensor, labels: Tensor, weight: Tensor) -> None:
        strength = real_number("penalty", self.penalty, ">= 0")
        scores = _centered(self._logits(outputs).double())
        classes = scores.shape[-1]
        if strength == 0:
            _check_all_classes_for_scaling(labels, classes)
        identity = torch.cat([scores.new_ones(classes), scores.new_zeros(classes)])
        penalty = torch.full_like(identity, strength / classes)
        best = _minimize_over_linear_scaling(
            _DiagonalScaling(scores), labels, weight, identity, penalty
        )
        self.scale_, shift = best.view(2, classes).cpu().numpy()
        self.shift_ = shift - shift.mean()

    def _apply(self, outputs: Tensor) -> Tensor:
        scores = _centered(self._logits(outputs))
        scale, shift = (torch.as_tensor(values).to(scores) for values in (self.scale_, self.shift_))
        return torch.softmax(scores * scale + shift, dim=-1)


class MatrixScaling(Calibrator):
    """Matrix scaling: `softmax(W z + b)`, with the ODIR penalty of Kull et al. 2019.

    z are the logits less the mean of their row, on which no probability depends.

        minimize  NLL + off_diagonal / (C (C-1)) sum_{i != j} W_ij^2
                  + intercept / C sum_k b_k^2 + diagonal / C sum_k (W_kk - 1)^2

    Convex; solved by Newton's method with conjugate gradients. Without penalties only the
    probabilities are determined: adding one row to all rows of W changes nothing.

    Args:
        off_diagonal: penalty of the entries of W off the diagonal. The default suits
            some 5,000 samples of 10 to 100 classes; less is better with more samples for each
            entry, and with many classes too little of it overfits badly. Choose it by held-out
            likelihood.
        intercept: penalty of b.
        diagonal: penalty of the diagonal's distance from 1; 0 for the plain method, which
            refuses data where some class is told apart without any error.
        outputs: what `X` is, `"logits"` or `"probabilities"` (rows that sum to 1).

    Attributes:
        weight_: W, `[C, C]`.
        shift_: b, `[C]`.
        classes_: the class of each column, `[C]`.

    Example:
        >>> X = [[2.0, 0.0], [2.0, 0.0], [0.0, 2.0], [0.0, 2.0], [1.0, 0.0]]
        >>> MatrixScaling().fit(X, [0, 1, 1, 1, 0]).weight_.shape
        (2, 2)
    """

    learned: ClassVar[tuple[str, ...]] = ("weight_", "shift_")
    weight_: np.ndarray
    shift_: np.ndarray

    def __init__(
        self,
        off_diagonal: float = 1000.0,
        intercept: float = 10.0,
        diagonal: float = 1e-3,
        *,
        outputs: str = "logits",
    ) -> None:
        super().__init__(outputs=outputs)
        self.off_diagonal = off_diagonal
        self.intercept = intercept
        self.diagonal = diagonal

    def _features(self, outputs: Tensor) -> Tensor:
        return _centered(self._logits(outputs))

    def _fit(self, outputs: Tensor, labels: Tensor, weight: Tensor) -> None:
        names = ("off_diagonal", "intercept", "diagonal")
        off, intercept, diagonal = (
            real_number(name, getattr(self, name), ">= 0") for name in names
        )
        scores = self._features(outputs.double())
        classes = scores.shape[-1]
        if intercept == 0:
            _check_all_classes_for_scaling(labels, classes)
        eye = torch.eye(classes, dtype=scores.dtype, device=scores.device)
        square = eye * (diagonal / classes) + (1 - eye) * (off / (classes * (classes - 1)))
        column = scores.new_zeros(classes, 1)
        penalty = torch.cat([square, column + intercept / classes], dim=1).flatten()
        identity = torch.cat([eye, column], dim=1).flatten()
        best = _minimize_over_linear_scaling(
            _FullScaling(scores, weight), labels, weight, identity, penalty
        )
        found = best.view(classes, classes + 1).cpu().numpy()
        self.weight_, self.shift_ = found[:, :-1], found[:, -1]

    def _apply(self, outputs: Tensor) -> Tensor:
        scores = self._features(outputs)
        weight, shift = (torch.as_tensor(held).to(scores) for held in (self.weight_, self.shift_))
        return torch.softmax(scores @ weight.T + shift, dim=-1)


class Dirichlet(MatrixScaling):
    """Dirichlet calibration: `softmax(W log p + b)`, with the ODIR penalty of Kull et al. 2019.

    As `MatrixScaling`, of the logarithms of the probabilities in place of the logits: the map
    between probabilities whose distributions in each class are Dirichlet.

    Args:
        off_diagonal: penalty of the entries of W off the diagonal, as in `MatrixScaling`.
        intercept: penalty of b.
        diagonal: penalty of the diagonal's distance from 1; 0 for the plain method.
        outputs: what `X` is, `"logits"` or `"probabilities"` (rows that sum to 1).

    Attributes:
        weight_: W, `[C, C]`.
        shift_: b, `[C]`.
        classes_: the class of each column, `[C]`.

    See Also:
        MatrixScaling: The same, of logits.

    References:
        Kull et al., Beyond temperature scaling: obtaining well-calibrated multi-class probabilities
        with Dirichlet calibration, NeurIPS 2019.

    Example:
        >>> X = [[0.8, 0.2], [0.8, 0.2], [0.1, 0.9], [0.1, 0.9], [0.6, 0.4]]
        >>> Dirichlet(outputs="probabilities").fit(X, [0, 1, 1, 1, 0]).shift_.shape
        (2,)
    """

    def _features(self, outputs: Tensor) -> Tensor:
        return torch.log_softmax(self._logits(outputs), dim=-1)
