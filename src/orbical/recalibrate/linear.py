"""Vector and matrix scaling: linear maps of the logits, fitted by likelihood.

Each row of logits is centered first. Probabilities do not depend on a row's mean, and neither
should the map: logits and the logarithms of their softmax are then mapped alike.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import ClassVar, Protocol, Self

import torch
from torch import Tensor

from .._arrays import ArrayLike
from ..errors import InputError
from .base import Calibrator, read_labels, read_logits, rows_of, same_classes

_CONJUGATE_STEPS = 200
"""Most products with the Hessian for one Newton step; an inexact step is a step all the same."""


def _centered(logits: Tensor) -> Tensor:
    """Take the mean of each row away, which no probability depends on."""
    return logits - logits.mean(-1, keepdim=True)


class _Scores(Protocol):
    """A linear map from parameters (flat) to scores `[N, C]`, and what solving for it needs."""

    def __call__(self, parameters: Tensor) -> Tensor: ...

    def adjoint(self, scores: Tensor) -> Tensor: ...

    def preconditioner(self, spread: Tensor, penalty: Tensor) -> Callable[[Tensor], Tensor]: ...


class _Diagonal:
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
        squares = torch.cat([(spread * self.logits.square()).mean(0), spread.mean(0)])
        diagonal = squares + 2 * penalty
        diagonal = diagonal.clamp(min=1e-12 * diagonal.max().item())
        return lambda slope: slope / diagonal


class _Full:
    """`W z + b`, parameters the rows of `[W, b]`, of length C (C + 1)."""

    def __init__(self, logits: Tensor) -> None:
        self.inputs = torch.cat([logits, torch.ones_like(logits[:, :1])], dim=1)
        self.classes = logits.shape[1]
        moments = self.inputs.T @ self.inputs / len(logits)
        self.size, self.axes = torch.linalg.eigh(moments)

    def __call__(self, parameters: Tensor) -> Tensor:
        return self.inputs @ parameters.view(self.classes, -1).T

    def adjoint(self, scores: Tensor) -> Tensor:
        return (scores.T @ self.inputs).flatten()

    def preconditioner(self, spread: Tensor, penalty: Tensor) -> Callable[[Tensor], Tensor]:
        """Take each class's weighted second moments of the logits for its mean weight's times all.

        Logits are strongly correlated; this undoes it at the cost of two small products.
        """
        curvature = spread.mean(0)[:, None] * self.size.clamp(min=0) + 2 * penalty.mean()
        # Centered logits do not vary along (1, ..., 1): without penalty nothing is learned there.
        varies = (self.size > 1e-12 * self.size.max()) | bool(penalty.any())
        inverse = torch.where(varies, 1 / curvature.clamp(min=1e-10 * curvature.max().item()), 0.0)

        def apply(slope: Tensor) -> Tensor:
            turned = slope.view(self.classes, -1) @ self.axes
            return ((turned * inverse) @ self.axes.T).flatten()

        return apply


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


def _curvature(scores: _Scores, probs: Tensor, penalty: Tensor) -> Callable[[Tensor], Tensor]:
    """Return the Hessian of the penalized mean NLL as a map of directions."""

    def product(direction: Tensor) -> Tensor:
        change = scores(direction)
        change -= (probs * change).sum(1, keepdim=True)
        return scores.adjoint(change.mul_(probs)) / len(probs) + 2 * penalty * direction

    return product


def _minimize(scores: _Scores, labels: Tensor, identity: Tensor, penalty: Tensor) -> Tensor:
    """Minimize `mean NLL + sum penalty * (parameters - identity)^2`, convex, by Newton's method.

    Each step is found by preconditioned conjugate gradients, more exactly as the minimum comes
    near, and shortened until the objective falls as it should.
    """
    rows = torch.arange(len(labels), device=labels.device)

    def evaluate(parameters: Tensor) -> tuple[float, Tensor]:
        log_probs = torch.log_softmax(scores(parameters), dim=1)
        value = -log_probs[rows, labels].mean() + (penalty * (parameters - identity).square()).sum()
        return value.item(), log_probs

    parameters = identity
    value, log_probs = evaluate(parameters)
    for _ in range(200):
        probs = log_probs.exp()
        if not bool(penalty.any()) and bool((probs.argmax(1) == labels).all()):
            raise _separable()
        residual = probs.clone()
        residual[rows, labels] -= 1
        slope = scores.adjoint(residual) / len(labels) + 2 * penalty * (parameters - identity)
        size = torch.linalg.vector_norm(slope).item()
        step = -_conjugate_gradients(
            _curvature(scores, probs, penalty),
            slope,
            scores.preconditioner(probs * (1 - probs), penalty),
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
        "labels: a scaling separates some classes without error, so the likelihood grows without"
        " end; fit on more data or with a larger penalty"
    )


def _all_classes(labels: Tensor, classes: int) -> None:
    absent = (torch.bincount(labels, minlength=classes) == 0).nonzero()[:, 0].tolist()
    if absent:
        raise InputError(
            f"labels: {len(absent)} of {classes} classes have no sample (the first is"
            f" {absent[0]}), so their intercepts would be minus infinity; fit on more data or with"
            " a penalty"
        )


def _penalty(name: str, value: float) -> float:
    if not (0 <= value < float("inf")):
        raise InputError(f"{name}: expected a finite number >= 0, got {value!r}")
    return float(value)


def _held_out(
    logits: ArrayLike | None, probs: ArrayLike | None, labels: ArrayLike, every_class: bool
) -> tuple[Tensor, Tensor]:
    """Read centered scores `[N, C]` in float64 and their labels `[N]`.

    Without a penalty on shifts `every_class` must occur: the shift of an absent one has no optimum.
    """
    scores = _centered(rows_of(read_logits(logits, probs)).double())
    size, classes = scores.shape
    truth = read_labels(labels, size, classes, scores.device)
    if every_class:
        _all_classes(truth, classes)
    return scores, truth


class VectorScaling(Calibrator):
    """Vector scaling: `softmax(w * logits + b)`, a scale and a shift for each class.

        minimize  mean NLL + penalty / C * sum_k ((w_k - 1)^2 + b_k^2)

    Convex; solved by Newton's method to rounding. Without penalty every class needs a sample, and
    data that a scaling separates have no optimum and are refused. Guo et al. 2017.

    Args:
        penalty: how strongly the map is held to the identity; 0 for the plain method.
            The default changes the NLL by less than it can be estimated, and gives an optimum to
            data that have none otherwise.

    Attributes:
        scale_: `[C]`, w.
        shift_: `[C]`, b; only differences matter, its mean is 0.

    >>> logits = torch.tensor([[2.0, 0.0], [2.0, 0.0], [0.0, 2.0], [0.0, 2.0], [1.0, 0.0]])
    >>> scaling = VectorScaling(penalty=0.1).fit(logits=logits, labels=[0, 1, 1, 1, 0])
    >>> scaling.scale_.shape
    torch.Size([2])
    """

    learned: ClassVar[tuple[str, ...]] = ("scale_", "shift_")
    scale_: Tensor
    shift_: Tensor

    def __init__(self, penalty: float = 1e-3) -> None:
        self.penalty = _penalty("penalty", penalty)

    def fit(
        self, *, logits: ArrayLike | None = None, probs: ArrayLike | None = None, labels: ArrayLike
    ) -> Self:
        """Find scale and shift on held-out data.

        Args:
            logits: `[N, C]`; or
            probs: `[N, C]`, rows summing to 1, of which the logarithms are scaled.
            labels: `[N]` class indices.
        """
        scores, truth = _held_out(logits, probs, labels, every_class=self.penalty == 0)
        classes = scores.shape[-1]
        identity = torch.cat([scores.new_ones(classes), scores.new_zeros(classes)])
        penalty = torch.full_like(identity, self.penalty / classes)
        best = _minimize(_Diagonal(scores), truth, identity, penalty)
        self.scale_, shift = best.view(2, classes)
        self.shift_ = shift - shift.mean()
        return self

    def transform(
        self, *, logits: ArrayLike | None = None, probs: ArrayLike | None = None
    ) -> Tensor:
        """Return calibrated probabilities `[..., C]` for `logits` or `probs` `[..., C]`."""
        self._fitted()
        scores = _centered(same_classes(read_logits(logits, probs), len(self.scale_)))
        return torch.softmax(scores * self.scale_.to(scores) + self.shift_.to(scores), dim=-1)


class MatrixScaling(Calibrator):
    """Matrix scaling: `softmax(W logits + b)`, with the ODIR penalty.

        minimize  mean NLL + off_diagonal / (C (C-1)) sum_{i != j} W_ij^2 + intercept / C sum b_k^2

    (Kull et al. 2019), to which `diagonal / C sum (W_kk - 1)^2` may be added. Convex; solved by
    Newton's method with conjugate gradients. Without penalties only the probabilities are
    determined: adding one row to all rows of W changes nothing.

    Args:
        off_diagonal: penalty of the entries of W off the diagonal. The default suits some 5,000
            samples of 10 to 100 classes; less is better with more samples for each entry, and with
            many classes too little of it over-fits badly. Choose it by held-out likelihood.
        intercept: penalty of b.
        diagonal: penalty of the diagonal's distance from 1; 0 for the plain method, which refuses
            data where some class is told apart without any error.

    Attributes:
        weight_: `[C, C]`, W.
        shift_: `[C]`, b.

    >>> logits = torch.tensor([[2.0, 0.0], [2.0, 0.0], [0.0, 2.0], [0.0, 2.0], [1.0, 0.0]])
    >>> scaling = MatrixScaling().fit(logits=logits, labels=[0, 1, 1, 1, 0])
    >>> scaling.weight_.shape
    torch.Size([2, 2])
    """

    learned: ClassVar[tuple[str, ...]] = ("weight_", "shift_")
    weight_: Tensor
    shift_: Tensor

    def __init__(
        self, off_diagonal: float = 1000.0, intercept: float = 10.0, diagonal: float = 1e-3
    ) -> None:
        self.off_diagonal = _penalty("off_diagonal", off_diagonal)
        self.intercept = _penalty("intercept", intercept)
        self.diagonal = _penalty("diagonal", diagonal)

    def fit(
        self, *, logits: ArrayLike | None = None, probs: ArrayLike | None = None, labels: ArrayLike
    ) -> Self:
        """Find matrix and shift on held-out data.

        Args:
            logits: `[N, C]`; or
            probs: `[N, C]`, rows summing to 1, of which the logarithms are mapped.
            labels: `[N]` class indices.
        """
        scores, truth = _held_out(logits, probs, labels, every_class=self.intercept == 0)
        classes = scores.shape[-1]
        eye = torch.eye(classes, dtype=scores.dtype, device=scores.device)
        held = eye * (self.diagonal / classes)
        held += (1 - eye) * (self.off_diagonal / (classes * (classes - 1)))
        column = scores.new_zeros(classes, 1)
        penalty = torch.cat([held, column + self.intercept / classes], dim=1).flatten()
        identity = torch.cat([eye, column], dim=1).flatten()
        best = _minimize(_Full(scores), truth, identity, penalty)
        self.weight_, self.shift_ = best.view(classes, -1).split([classes, 1], dim=1)
        self.shift_ = self.shift_[:, 0]
        return self

    def transform(
        self, *, logits: ArrayLike | None = None, probs: ArrayLike | None = None
    ) -> Tensor:
        """Return calibrated probabilities `[..., C]` for `logits` or `probs` `[..., C]`."""
        self._fitted()
        scores = _centered(same_classes(read_logits(logits, probs), len(self.shift_)))
        return torch.softmax(scores @ self.weight_.to(scores).T + self.shift_.to(scores), dim=-1)
