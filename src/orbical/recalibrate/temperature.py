"""Temperature scaling: one number, exactly optimal, on samples or on whole orbits."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any, ClassVar, NamedTuple, Self

import torch
from torch import Tensor

from .._arrays import ArrayLike, as_array
from ..errors import InputError, unknown_name
from .base import Calibrator, read_labels, read_logits, rows_of

_BLOCK = 1 << 19
"""Elements of a block on a CPU: what stays in a core's cache while several passes read it."""

_PILOT = 4096
"""Rows of the evenly spaced subset that finds where the passes over all rows begin."""


class _Pass(NamedTuple):
    """What one pass over the data says about an inverse temperature b."""

    slope: float  # d NLL / db = E[E_p z - z_label]
    curvature: float  # d2 NLL / db2 = E[Var_p z]
    gap: float  # E[max z - z_label], 0 if and only if every label has the largest logit


def _pass(logits: Tensor, labels: Tensor, weights: Tensor | None, inverse: float) -> _Pass:
    """Evaluate slope and curvature in one softmax pass; rows in their dtype, totals in float64."""
    rows, classes = logits.shape
    size = max(1, (_BLOCK if logits.device.type == "cpu" else 1 << 26) // classes)
    total = torch.zeros(3, dtype=torch.float64, device=logits.device)
    for start in range(0, rows, size):
        block = logits[start : start + size]
        shifted = block - block.amax(1, keepdim=True)
        at_label = shifted.gather(1, labels[start : start + size, None])[:, 0].double()
        mass = torch.softmax(shifted * inverse, 1)
        first = mass.mul_(shifted).sum(1).double()
        second = mass.mul_(shifted).sum(1).double()
        each = torch.stack([first - at_label, second - first.square(), -at_label])
        if weights is None:
            total += each.sum(1) / rows
        else:
            total += each @ weights[start : start + size]
    return _Pass(*total.tolist())


def _minimize(evaluate: Callable[[float], _Pass], start: float, accuracy: float) -> float:
    """Newton's method in b = 1/T between bounds that every pass narrows, for a convex NLL.

    A Newton step from where the NLL exceeds its minimum by `excess` leaves about
    `excess * (relative step)^2`; the method stops once that is below `accuracy`.
    """
    inverse, low, high, zero_known = start, 0.0, float("inf"), False
    for _ in range(200):
        here = evaluate(inverse)
        if here.gap == 0:
            raise InputError(
                "labels: every sample has its label at the largest logit, so the likelihood grows"
                " without end as the temperature goes to 0; fit on data with some errors"
            )
        if here.slope == 0:
            return inverse
        low, high = (inverse, high) if here.slope < 0 else (low, inverse)
        step = -here.slope / here.curvature if here.curvature > 0 else -here.slope * float("inf")
        newton, limit = inverse + step, 8 * inverse
        if newton <= 0 and not zero_known:
            if evaluate(0.0).slope >= 0:
                raise InputError(
                    "logits: on average the label's logit does not exceed the mean over classes,"
                    " so no finite positive temperature is optimal; logits and labels do not fit"
                )
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
    raise InputError("logits: no optimal temperature was found; are they in a usable range?")


def _fit_inverse(logits: Tensor, labels: Tensor, weights: Tensor | None) -> float:
    step = max(1, len(logits) // _PILOT)
    pilot, pilot_labels = logits[::step].contiguous(), labels[::step].contiguous()
    pilot_weights = None if weights is None else weights[::step] / weights[::step].sum()
    deviation = pilot[:256].std(1).mean().item()  # the scale of the logits, no more
    if deviation == 0 and bool((logits == logits[:, :1]).all()):
        raise InputError(
            "logits: equal in each row, so every temperature gives the same probabilities"
        )
    start = 1 / deviation if deviation > 0 else 1.0
    if step > 1:
        with suppress(InputError):  # The subset alone may have no optimum; all rows decide.
            start = _minimize(
                lambda inverse: _pass(pilot, pilot_labels, pilot_weights, inverse), start, 1e-6
            )
    return _minimize(lambda inverse: _pass(logits, labels, weights, inverse), start, 1e-17)


class Temperature(Calibrator):
    """Temperature scaling: `softmax(logits / T)` with the T of the highest likelihood.

        T = argmin_T  mean_i ( log sum_k exp(z_ik / T) - z_i,label_i / T )

    Convex in 1/T. Newton's method with bounds needs about three passes over the data; one softmax
    pass gives slope and curvature. The order of classes in a row, hence accuracy, never changes.
    Guo et al. 2017.

    Attributes:
        temperature_: the scalar T, float64.

    >>> logits = torch.tensor([[4.0, 0.0], [4.0, 0.0], [0.0, 4.0], [4.0, 0.0]])
    >>> scaling = Temperature().fit(logits=logits, labels=[0, 0, 1, 1])
    >>> scaling.temperature_  # 4 / log(3)
    tensor(3.6410, dtype=torch.float64)
    """

    learned: ClassVar[tuple[str, ...]] = ("temperature_",)
    temperature_: Tensor

    def fit(
        self, *, logits: ArrayLike | None = None, probs: ArrayLike | None = None, labels: ArrayLike
    ) -> Self:
        """Find the temperature on held-out data.

        Data without an optimum are refused: all labels at the largest logit (T would be 0), logits
        that do not favor the labels (T would be infinite), equal logits (any T).

        Args:
            logits: `[N, C]`; or
            probs: `[N, C]`, rows summing to 1, of which the logarithms are scaled.
            labels: `[N]` class indices.
        """
        scores = rows_of(read_logits(logits, probs))
        truth = read_labels(labels, len(scores), scores.shape[1], scores.device)
        inverse = _fit_inverse(scores, truth, None)
        self.temperature_ = torch.tensor(1 / inverse, dtype=torch.float64)
        return self

    def transform(
        self, *, logits: ArrayLike | None = None, probs: ArrayLike | None = None
    ) -> Tensor:
        """Return calibrated probabilities `[..., C]` for `logits` or `probs` `[..., C]`."""
        self._fitted()
        return torch.softmax(read_logits(logits, probs) / float(self.temperature_), dim=-1)


class OrbitTemperature(Temperature):
    """One temperature for whole orbits, so that it serves every position of the group.

        T = argmin_T  mean_i sum_g w_g NLL(outputs at g of sample i, label_i; T)

    The weights are the group's quadrature weights. A temperature fitted at the identity alone is
    optimal there and may be far off at other positions, where a model that is not invariant is
    often as sure and less right.

    Attributes:
        temperature_: the scalar T, float64.

    >>> logits = torch.tensor([[[4.0, 0.0], [2.0, 0.0]], [[0.0, 4.0], [2.0, 0.0]]])
    >>> scaling = OrbitTemperature().fit(logits=logits, labels=[0, 1], weights=[0.5, 0.5])
    >>> scaling.transform(logits=logits).shape
    torch.Size([2, 2, 2])
    """

    def fit(
        self,
        *,
        logits: ArrayLike | None = None,
        probs: ArrayLike | None = None,
        labels: ArrayLike,
        weights: ArrayLike | None = None,
    ) -> Self:
        """Find the temperature on the orbits of held-out samples.

        Args:
            logits: `[N, K, C]`, outputs for each sample, element and class; or
            probs: `[N, K, C]`, rows summing to 1.
            labels: `[N]` class indices; a label holds along the whole orbit.
            weights: `[K]` quadrature weights of the group, normalized here; None for equal ones.
        """
        scores = read_logits(logits, probs).detach()
        if scores.ndim != 3:
            raise InputError(
                "logits, probs: expected [N, K, C] (sample, element, class), got shape"
                f" {tuple(scores.shape)}"
            )
        samples, elements, classes = scores.shape
        truth = read_labels(labels, samples, classes, scores.device)
        share = None
        if weights is not None:
            share = _element_weights(weights, elements, scores.device).repeat(samples) / samples
        inverse = _fit_inverse(
            scores.reshape(-1, classes), truth.repeat_interleave(elements), share
        )
        self.temperature_ = torch.tensor(1 / inverse, dtype=torch.float64)
        return self

    @classmethod
    def from_scan(cls, scan: Any, model: str | None = None) -> Self:
        """Fit on the stored probabilities of a scan, weighted as its group is.

        Args:
            scan: a `Scan` of a labeled classification, made with `keep="probabilities"`.
            model: which model; may be left out if the scan holds one.
        """
        data = scan.data
        if "probabilities" not in data:
            raise InputError(
                "scan: holds no class probabilities; scan again with keep='probabilities'"
            )
        if "label" not in data.coords:
            raise InputError("scan: holds no labels, and a temperature is fitted to labels")
        names = [str(name) for name in data["model"].values]
        if model is None and len(names) > 1:
            raise InputError(f"model: the scan holds {len(names)} models {names}; name one")
        if model is not None and model not in names:
            raise unknown_name("model", model, names)
        stored = data["probabilities"].isel(model=0 if model is None else names.index(model))
        return cls().fit(
            probs=stored.transpose("sample", "element", "class").values,
            labels=data["label"].values,
            weights=data["weight"].values,
        )


def _element_weights(weights: ArrayLike, elements: int, device: torch.device) -> Tensor:
    tensor = as_array("weights", weights, device).double()
    if tensor.shape != (elements,):
        raise InputError(
            f"weights: expected shape ({elements},), one for each element, got"
            f" {tuple(tensor.shape)}"
        )
    if not bool(torch.isfinite(tensor).all()) or bool((tensor < 0).any()) or tensor.sum() <= 0:
        raise InputError("weights: expected finite values >= 0 with a positive sum")
    return tensor / tensor.sum()
