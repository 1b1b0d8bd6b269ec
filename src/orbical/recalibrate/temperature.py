"""Temperature scaling: one number, exactly optimal, on samples or on whole orbits."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple, Self

import torch
from sklearn.exceptions import ConvergenceWarning
from torch import Tensor

from .._arrays import ArrayLike
from .._warnings import warn
from ..calibration import model_index
from ..errors import InputError
from ..store import arrays_of
from .calibrator import Calibrator, calibrator_weights

_BLOCK = 1 << 19
"""Elements of a block on a CPU: what stays in a core's cache while several passes read it."""

_PILOT = 4096
"""Rows of the evenly spaced subset that finds where the passes over all rows begin."""


_LIMITS = {
    0.0: "X: expected scores that favor the labels, got a mean score of the label not above the"
    " mean over classes, so the best temperature is infinite and every probability 1 / C; check"
    " that rows of X and y belong together",
    math.inf: "y: expected some errors, got the label at the largest score in every row, so the"
    " best temperature is 0 and every probability 0 or 1; fit on more data",
}
"""The warnings where the best inverse temperature is none: it lies at an end of its range."""


class _Pass(NamedTuple):
    """What one pass over the data says about an inverse temperature b."""

    slope: float  # d NLL / db = E[E_p z - z_label]
    curvature: float  # d2 NLL / db2 = E[Var_p z]
    gap: float  # E[max z - z_label], 0 if and only if every label has the largest logit


def _pass_at_temperature(logits: Tensor, labels: Tensor, weight: Tensor, inverse: float) -> _Pass:
    """Evaluate slope and curvature in one softmax pass; rows in their dtype, totals in float64."""
    rows, classes = logits.shape
    size = max(1, (_BLOCK if logits.device.type == "cpu" else 1 << 26) // classes)
    total = torch.zeros(3, dtype=torch.float64, device=logits.device)
    for start in range(0, rows, size):
        block = logits[start : start + size]
        shifted = block - block.amax(1, keepdim=True)
        at_label = shifted.gather(1, labels[start : start + size, None])[:, 0].double()
        mass = (shifted * inverse).exp_()  # no greater than 1, and 1 at the largest score
        whole = mass.sum(1).double()
        first = mass.mul_(shifted).sum(1).double() / whole
        second = mass.mul_(shifted).sum(1).double() / whole
        each = torch.stack([first - at_label, second - first.square(), -at_label])
        total += each @ weight[start : start + size]
    return _Pass(*total.tolist())


def _minimize_over_temperature(
    evaluate: Callable[[float], _Pass], start: float, accuracy: float
) -> float:
    """Newton's method in b = 1/T between bounds that every pass narrows, for a convex NLL.

    A Newton step from where the NLL exceeds its minimum by `excess` leaves about
    `excess * (relative step)^2`; the method stops once that is below `accuracy`. The minimum lies
    at 0 where the mean score of the label does not exceed the mean over classes, and at infinity
    where every label has the largest score.
    """
    inverse, low, high, zero_known = start, 0.0, float("inf"), False
    for _ in range(200):
        here = evaluate(inverse)
        if here.gap == 0:
            return math.inf
        if here.slope == 0:
            return inverse
        low, high = (inverse, high) if here.slope < 0 else (low, inverse)
        step = -here.slope / here.curvature if here.curvature > 0 else -here.slope * float("inf")
        newton, limit = inverse + step, 8 * inverse
        if newton <= 0 and not zero_known:
            if evaluate(0.0).slope >= 0:
                return 0.0
            zero_known = True
        if low < newton < min(high, limit):
            excess, relative = 0.5 * step * step * here.curvature, step / inverse
            inverse = newton
            if excess * relative * relative < accuracy:
                return inverse
        elif newton >= limit and limit < high:
            inverse = limit
        elif high - low <= 4e-16 * high:
            return inverse
        else:
            inverse = (low * high) ** 0.5 if low > 0 else high / 4
    raise InputError("X", "scores in a usable range", "no optimal temperature in 200 steps")


def _fit_inverse_temperature(
    logits: Tensor, labels: Tensor, weight: Tensor, start: float | None
) -> float:
    """Minimize the NLL from a start; without one, from where logits have unit deviation."""
    step = max(1, len(logits) // _PILOT)
    pilot, pilot_labels = logits[::step].contiguous(), labels[::step].contiguous()
    pilot_weight = weight[::step] / weight[::step].sum()
    deviation = pilot[:256].std(1).mean().item()  # the scale of the logits, no more
    if deviation == 0 and bool((logits == logits[:, :1]).all()):
        raise InputError(
            "X",
            "scores that differ between classes",
            "rows of equal ones, for which every temperature gives the same probabilities",
        )
    if start is None:
        start = 1 / deviation if deviation > 0 else 1.0
    if step > 1:
        found = _minimize_over_temperature(
            lambda inverse: _pass_at_temperature(pilot, pilot_labels, pilot_weight, inverse),
            start,
            1e-6,
        )
        start = found if 0 < found < math.inf else start  # all rows decide on a limit
    return _minimize_over_temperature(
        lambda inverse: _pass_at_temperature(logits, labels, weight, inverse), start, 1e-17
    )


class Temperature(Calibrator):
    """Temperature scaling: `softmax(logits / T)` with the T of the highest likelihood.

        T = argmin_T  sum_i w_i ( log sum_k exp(z_ik / T) - z_i,y_i / T )

    Convex in 1/T. Newton's method with bounds needs about three passes over the data; one softmax
    pass gives slope and curvature. The order of classes in a row, hence accuracy, never changes.
    Where every label has the largest score T is 0, and every probability 0 or 1; scores that do
    not favor the labels give an infinite T: both with a warning. Equal scores (any T) are refused.
    Guo et al. 2017.

    Args:
        outputs: what `X` is, `"logits"` or `"probabilities"` (rows that sum to 1).

    Attributes:
        temperature_: T.
        classes_: the class of each column, `[C]`.

    See Also:
        VectorScaling: Where classes differ.
        OrbitTemperature: For scans.

    References:
        Guo et al., On calibration of modern neural networks, ICML 2017.

    Example:
        >>> X = [[4.0, 0.0], [4.0, 0.0], [0.0, 4.0], [4.0, 0.0]]
        >>> scaling = Temperature().fit(X, [0, 0, 1, 1])
        >>> round(scaling.temperature_, 4)  # 4 / log(3)
        3.641
        >>> scaling.predict_proba(X)[0].round(4)  # right in three of four cases
        array([0.75, 0.25])
    """

    learned: ClassVar[tuple[str, ...]] = ("temperature_",)
    temperature_: float

    def _fit(self, outputs: Tensor, labels: Tensor, weight: Tensor) -> None:
        start = 1.0 if self.outputs == "probabilities" else None  # near it, if they mean anything
        inverse = _fit_inverse_temperature(self._logits(outputs), labels, weight, start)
        if inverse in _LIMITS:
            warn(_LIMITS[inverse], ConvergenceWarning)
        self.temperature_ = 1 / inverse if inverse else math.inf

    def _apply(self, outputs: Tensor) -> Tensor:
        logits = self._logits(outputs)
        if self.temperature_ == 0:
            largest = (logits == logits.amax(-1, keepdim=True)).to(logits.dtype)
            return largest / largest.sum(-1, keepdim=True)
        return torch.softmax(logits / self.temperature_, dim=-1)


class OrbitTemperature(Temperature):
    """One temperature for whole orbits, so that it serves every element of the group.

        T = argmin_T  sum_i w_i sum_g w_g NLL(z_ig, y_i; T)

    with the group's quadrature weights w_g. A temperature fitted at the identity alone is optimal
    there and may be far off at other elements, where a model that is not invariant is often as
    confident and less accurate.

    Args:
        outputs: what `X` is, `"logits"` or `"probabilities"` (rows that sum to 1).

    Attributes:
        temperature_: T.
        classes_: the class of each column, `[C]`.

    See Also:
        Temperature: For one position.

    Example:
        >>> X = torch.tensor([[[4.0, 0.0], [2.0, 0.0]], [[0.0, 4.0], [2.0, 0.0]]])
        >>> scaling = OrbitTemperature().fit(X, [0, 1], element_weight=[0.5, 0.5])
        >>> scaling.predict_proba(X).shape
        torch.Size([2, 2, 2])
    """

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        element_weight: ArrayLike | None = None,
        *,
        classes: ArrayLike | None = None,
    ) -> Self:
        """Fit on the orbits of held-out samples.

        Args:
            X: class scores `[N, K, C]` for each sample, group element and class.
            y: labels `[N]`; a label holds along the whole orbit.
            sample_weight: weights `[N]`, not negative; None for equal ones.
            element_weight: quadrature weights `[K]` of the group; None for equal ones.
            classes: the label of each column, where `y` lacks some; None takes them from `y`.

        Returns:
            The fitted calibrator itself.
        """
        outputs = self._read(X, reset=True).detach()
        if outputs.ndim != 3:
            raise InputError(
                "X",
                "shape [N, K, C] (sample, element, class)",
                outputs,
                remedy="use Temperature for samples [N, C]",
            )
        samples, elements, columns = outputs.shape
        labels = self._read_labels(y, outputs, classes).repeat_interleave(elements)
        of_samples = calibrator_weights("sample_weight", sample_weight, samples, outputs.device)
        of_elements = calibrator_weights("element_weight", element_weight, elements, outputs.device)
        weight = torch.outer(of_samples, of_elements).flatten()
        self._fit(outputs.reshape(-1, columns), labels, weight)
        return self

    @classmethod
    def from_scan(cls, scan: Any, model: str | None = None) -> Self:
        """Fit on the stored probabilities of a scan, weighted as its group is.

        Args:
            scan: a `Scan` of a labeled classification, made with `keep="probabilities"`.
            model: the model's name; may be omitted if the scan holds one.

        Returns:
            A fitted calibrator of probabilities.
        """
        arrays = arrays_of(scan)
        if "probabilities" not in arrays:
            raise InputError(
                "scan", "class probabilities", "none", remedy="scan with keep='probabilities'"
            )
        if "label" not in arrays:
            raise InputError("scan", "labels", "none", remedy="scan data with labels")
        stored = arrays.read("probabilities", model=model_index(arrays, model))
        return cls(outputs="probabilities").fit(
            stored, arrays.read("label"), element_weight=arrays.weights
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array, tags.input_tags.three_d_array = False, True
        return tags
