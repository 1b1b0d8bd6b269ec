"""The measures of classification as torchmetrics classes, for evaluation loops and processes.

Each takes `update(preds, target)`, positional, as torchmetrics' own classes do, so that they work
side by side in a `MetricCollection`. `preds` are probabilities, or logits if the constructor says
`from_logits=True`. A metric keeps sums where sums suffice (ECE over equal-width bins, smooth ECE,
SB-ECE, S-AvUC, NLL, Brier, accuracy) and all confidences otherwise (KS, ESD, MMCE, SKCE,
equal-mass ECE).

Args of every class, beside its own:
    from_logits: Whether `preds` are logits; probabilities by default.
    ignore_index: Samples with this target are left out.
    options: Options of `torchmetrics.Metric`, such as `sync_on_compute`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import torch
from torch import Tensor
from torchmetrics import Metric
from torchmetrics.utilities import dim_zero_cat

from .._arrays import ArrayLike, as_array, as_floating, true_labels
from ..errors import InputError
from . import smooth, soft
from ._bound import takes_weights
from .binned import Reliability, bin_sums, diagram_of, ece, error_of, named_norm
from .cumulative import esd, ks
from .inputs import (
    kept_samples,
    log_probabilities,
    normalized_entropy,
    positive,
    probabilities,
    sample_weights,
    top_label,
    whole_number,
)
from .kernel import mmce, skce
from .registry import Measure
from .scores import brier_terms, nll_terms

__all__ = [
    "ECE",
    "ESD",
    "KS",
    "MMCE",
    "NLL",
    "SBECE",
    "SKCE",
    "Accuracy",
    "Brier",
    "EqualMassECE",
    "SAvUC",
    "SmoothECE",
]

Outputs = dict[str, Any]
"""`probs` or `logits`, `[N, C]`."""


class WeightedMetric(Metric):
    """What the metrics of classification and regression share: weights, sums and the plot."""

    is_differentiable = False
    higher_is_better = False
    full_state_update = False
    plot_lower_bound: float | None = 0.0

    def _add_sum(self, name: str, *shape: int, dtype: torch.dtype = torch.float64) -> None:
        self.add_state(name, torch.zeros(shape, dtype=dtype), dist_reduce_fx="sum")

    def plot(self, val: Any = None, ax: Any = None) -> Any:
        """Plot a value, or the values of several steps, as torchmetrics does.

        Args:
            val: Results of `forward` or `compute`; the current value by default.
            ax: A matplotlib axis to draw in.

        Returns:
            Figure and axis.
        """
        return self._plot(val, ax)


class MeanMetric(WeightedMetric):
    """A mean over samples: keeps the weighted sum of its terms, and of their weights.

    Its states carry its name: a collection joins metrics whose states agree after the first batch,
    and two different means may agree there by chance.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._sums = [f"{type(self).__name__.lower()}_{part}" for part in ("sum", "mass")]
        for name in self._sums:
            self._add_sum(name)

    def _add_terms(self, terms: Tensor, weights: Tensor | None) -> None:
        """Add terms `[N]` with their weights."""
        terms = terms.detach().double()
        total = terms.sum() if weights is None else (terms * weights).sum()
        mass = len(terms) if weights is None else weights.sum()
        for name, part in zip(self._sums, (total, mass), strict=True):
            setattr(self, name, getattr(self, name) + part)

    def compute(self) -> Tensor:
        """Return the mean over everything seen so far."""
        total, mass = (getattr(self, name) for name in self._sums)
        mean: Tensor = total / mass
        return mean


class KeptMetric(WeightedMetric):
    """A measure of all samples together, which are therefore kept."""

    arrays: ClassVar[tuple[str, ...]]
    mass: list[Tensor]

    def __init__(self, measure: Callable[..., Tensor], settings: Any, **options: Any) -> None:
        super().__init__(**options)
        self._measure, self._settings = measure, settings
        for name in (*self.arrays, "mass"):
            self.add_state(name, [], dist_reduce_fx="cat")

    def _keep(self, weights: Tensor | None, *values: Tensor) -> None:
        """Keep a batch; weights of 1 take the memory of a single one."""
        for name, part in zip(self.arrays, values, strict=True):
            getattr(self, name).append(part)
        if weights is None:
            one = torch.ones(1, dtype=torch.float64, device=values[0].device)
            weights = one.expand(len(values[0]))
        self.mass.append(weights)

    def compute(self) -> Tensor:
        """Return the measure of everything seen so far."""
        seen, mass = (dim_zero_cat(getattr(self, n)) for n in self.arrays), dim_zero_cat(self.mass)
        weights = {} if bool((mass == 1).all()) else {"weights": mass}
        return self._measure(*seen, **self._settings, **weights)


class _OfOutputs(WeightedMetric):
    """A metric of a classifier's outputs; subclasses define how a batch is added."""

    def __init__(
        self, *, from_logits: bool = False, ignore_index: int | None = None, **options: Any
    ) -> None:
        super().__init__(**options)
        self.from_logits, self.ignore_index = from_logits, ignore_index

    def _add(self, outputs: Outputs, labels: Tensor, weights: Tensor | None) -> None:
        raise NotImplementedError

    def update(self, preds: ArrayLike, target: ArrayLike, weights: ArrayLike | None = None) -> None:
        """Add a batch.

        Args:
            preds: Probabilities, or logits if so constructed, `[N, C]` or `[N, C, ...]`; or `[N]`
                of the second of two classes.
            target: Class indices `[N]` or `[N, ...]`.
            weights: Sample weights >= 0 of the target's shape.
        """
        outputs = _rows(as_floating("preds", preds), self.from_logits)
        labels = as_array("target", target).reshape(-1)
        mass = None if weights is None else as_array("weights", weights).reshape(-1)
        mass = sample_weights(mass, outputs[..., 0])
        outputs, labels, kept = kept_samples(labels, outputs, self.ignore_index)
        if len(labels):
            name = "logits" if self.from_logits else "probs"
            self._add({name: outputs}, labels, mass if mass is None or kept is None else mass[kept])


def _rows(preds: Tensor, from_logits: bool) -> Tensor:
    """Return outputs `[M, C]` of `[N]`, `[N, C]` or `[N, C, ...]`."""
    if preds.ndim == 1:
        return torch.stack([torch.zeros_like(preds) if from_logits else 1 - preds, preds], -1)
    return preds.movedim(1, -1).reshape(-1, preds.shape[1]) if preds.ndim > 2 else preds


class ECE(_OfOutputs):
    """ECE of the top label over equal-width bins; keeps four sums per bin.

    Args:
        bins: Number of bins `(lo, hi]`, the first closed at 0.
        norm: "l1", "l2" or "max".
        options: `from_logits`, `ignore_index`, and those of `torchmetrics.Metric`.

    Example:
        >>> import torch
        >>> metric = ECE(bins=10)
        >>> metric.update(torch.tensor([[0.9, 0.1], [0.2, 0.8]]), torch.tensor([0, 0]))
        >>> metric.compute()
        tensor(0.4500, dtype=torch.float64)
    """

    count: Tensor
    mass: Tensor
    confidence: Tensor
    correct: Tensor

    def __init__(self, bins: int = 15, norm: str = "l1", **options: Any) -> None:
        super().__init__(**options)
        self.bins, self.norm = whole_number("bins", bins), named_norm(norm)
        self._add_sum("count", bins, dtype=torch.int64)
        for name in ("mass", "confidence", "correct"):
            self._add_sum(name, bins)

    def _add(self, outputs: Outputs, labels: Tensor, weights: Tensor | None) -> None:
        confidence, correct = top_label(**outputs, labels=labels)
        mass = None if weights is None else weights[None]
        pair = confidence.detach()[None], correct[None]
        count, total, of_confidence, of_correct = bin_sums(*pair, mass, self.bins, None)
        self.count += count[0]
        self.mass += total[0]
        self.confidence += of_confidence[0]
        self.correct += of_correct[0]

    def reliability(self) -> Reliability:
        """Return the reliability diagram of everything seen so far, in this process."""
        edges = torch.arange(self.bins + 1, dtype=torch.float64, device=self.count.device)
        sums = (self.count, self.mass, self.confidence, self.correct)
        return diagram_of(edges / self.bins, *sums)

    def compute(self) -> Tensor:
        """Return the error of everything seen so far."""
        return error_of(self.reliability(), self.norm)


class SmoothECE(_OfOutputs):
    """Smooth ECE of the top label; keeps the residuals summed on a grid.

    Args:
        bandwidth: Chosen automatically if not given; see `smooth_ece`.
        options: `from_logits`, `ignore_index`, and those of `torchmetrics.Metric`.

    Example:
        >>> import torch
        >>> metric = SmoothECE()
        >>> metric.update(torch.tensor([[0.9, 0.1], [0.9, 0.1]]), torch.tensor([0, 1]))
        >>> metric.compute()
        tensor(0.4000, dtype=torch.float64)
    """

    masses: Tensor
    mass: Tensor

    def __init__(self, bandwidth: float | None = None, **options: Any) -> None:
        super().__init__(**options)
        if bandwidth is not None:
            positive("bandwidth", bandwidth)
        self.bandwidth = bandwidth
        self._add_sum("masses", smooth.GRID + 1)
        self._add_sum("mass")

    def _add(self, outputs: Outputs, labels: Tensor, weights: Tensor | None) -> None:
        confidence, correct = top_label(**outputs, labels=labels)
        self.masses += smooth.residual_masses(confidence, correct, mass=weights)
        self.mass += len(labels) if weights is None else weights.sum()

    def compute(self) -> Tensor:
        """Return the error of everything seen so far."""
        return smooth.error_from_masses(self.masses, self.mass, self.bandwidth)


class SBECE(_OfOutputs):
    """Soft-binned ECE of the top label; keeps two sums per bin.

    Args:
        bins: Number of bins.
        temperature: How soft membership is; see `sb_ece`.
        options: `from_logits`, `ignore_index`, and those of `torchmetrics.Metric`.

    Example:
        >>> import torch
        >>> metric = SBECE(bins=5, temperature=1e-4)
        >>> metric.update(torch.tensor([[0.9, 0.1], [0.9, 0.1]]), torch.tensor([0, 1]))
        >>> metric.compute()
        tensor(0.4000, dtype=torch.float64)
    """

    size: Tensor
    gap: Tensor

    def __init__(self, bins: int = 15, temperature: float = 0.01, **options: Any) -> None:
        super().__init__(**options)
        positive("temperature", temperature)
        self.bins, self.temperature = whole_number("bins", bins), temperature
        self._add_sum("size", bins)
        self._add_sum("gap", bins)

    def _add(self, outputs: Outputs, labels: Tensor, weights: Tensor | None) -> None:
        confidence, correct = top_label(**outputs, labels=labels)
        pair = confidence.detach(), correct
        size, gap = soft.soft_sums(*pair, self.bins, self.temperature, weights)
        self.size += size
        self.gap += gap

    def compute(self) -> Tensor:
        """Return the error of everything seen so far."""
        return soft.soft_error(self.size, self.gap)


class SAvUC(_OfOutputs):
    """Soft accuracy versus uncertainty; keeps two sums.

    Args:
        kappa: The entropy, in (0, 1), that separates certain from uncertain.
        temperature: How soft the separation is; see `s_avuc`.
        options: `from_logits`, `ignore_index`, and those of `torchmetrics.Metric`.

    Example:
        >>> import torch
        >>> metric = SAvUC()
        >>> metric.update(torch.tensor([[0.9, 0.1], [0.6, 0.4]]), torch.tensor([0, 1]))
        >>> metric.compute()
        tensor(0.0794, dtype=torch.float64)
    """

    against: Tensor
    for_it: Tensor

    def __init__(self, kappa: float = 0.5, temperature: float = 0.1, **options: Any) -> None:
        super().__init__(**options)
        positive("temperature", temperature)
        self.kappa, self.temperature = soft.checked_kappa(kappa), temperature
        self._add_sum("against")
        self._add_sum("for_it")

    def _add(self, outputs: Outputs, labels: Tensor, weights: Tensor | None) -> None:
        _, correct = top_label(**outputs, labels=labels)
        settings = (self.kappa, self.temperature, weights)
        against, for_it = soft.soft_counts(correct, normalized_entropy(**outputs), *settings)
        self.against += against.detach()
        self.for_it += for_it.detach()

    def compute(self) -> Tensor:
        """Return the value of everything seen so far."""
        return soft.avuc_of(self.against, self.for_it)


class _Mean(MeanMetric, _OfOutputs):
    """A metric that is the mean of one number per sample."""

    def _terms(self, outputs: Outputs, labels: Tensor) -> Tensor:
        raise NotImplementedError

    def _add(self, outputs: Outputs, labels: Tensor, weights: Tensor | None) -> None:
        self._add_terms(self._terms(outputs, labels), weights)


class Accuracy(_Mean):
    """Share of samples whose most probable class is the label; keeps two sums.

    Example:
        >>> import torch
        >>> metric = Accuracy()
        >>> metric.update(torch.tensor([[0.9, 0.1], [0.9, 0.1]]), torch.tensor([0, 1]))
        >>> metric.compute()
        tensor(0.5000, dtype=torch.float64)
    """

    higher_is_better = True
    plot_upper_bound = 1.0

    def _terms(self, outputs: Outputs, labels: Tensor) -> Tensor:
        return top_label(**outputs, labels=labels)[1]


class NLL(_Mean):
    """Mean negative log-likelihood; keeps two sums.

    Example:
        >>> import torch
        >>> metric = NLL()
        >>> metric.update(torch.tensor([[0.5, 0.5]]), torch.tensor([0]))
        >>> metric.compute()
        tensor(0.6931, dtype=torch.float64)
    """

    def _terms(self, outputs: Outputs, labels: Tensor) -> Tensor:
        log_p = log_probabilities(**outputs)
        return nll_terms(log_p, true_labels(labels, log_p))


class Brier(_Mean):
    """Brier score over all classes; keeps two sums.

    Example:
        >>> import torch
        >>> metric = Brier()
        >>> metric.update(torch.tensor([[0.5, 0.5]]), torch.tensor([0]))
        >>> metric.compute()
        tensor(0.5000, dtype=torch.float64)
    """

    def _terms(self, outputs: Outputs, labels: Tensor) -> Tensor:
        p = probabilities(**outputs)
        return brier_terms(p, true_labels(labels, p))


class _Kept(KeptMetric, _OfOutputs):
    """A metric of all confidences together."""

    arrays = ("confidence", "correct")

    def _add(self, outputs: Outputs, labels: Tensor, weights: Tensor | None) -> None:
        if weights is not None and not takes_weights(self._measure):
            raise InputError(
                f"weights: expected none, since {type(self).__name__} takes no sample weights"
            )
        confidence, correct = top_label(**outputs, labels=labels)
        self._keep(weights, confidence.detach(), correct)


class EqualMassECE(_Kept):
    """ECE of the top label over bins of equal mass; see `ece`.

    Args:
        bins: Number of bins.
        norm: "l1", "l2" or "max".
        options: `from_logits`, `ignore_index`, and those of `torchmetrics.Metric`.

    Example:
        >>> import torch
        >>> metric = EqualMassECE(bins=1)
        >>> metric.update(torch.tensor([[0.9, 0.1], [0.2, 0.8]]), torch.tensor([0, 0]))
        >>> metric.compute()
        tensor(0.3500, dtype=torch.float64)
    """

    def __init__(self, bins: int = 15, norm: str = "l1", **options: Any) -> None:
        parameters = {
            "bins": whole_number("bins", bins),
            "norm": named_norm(norm),
            "binning": "mass",
        }
        super().__init__(ece, parameters, **options)


class KS(_Kept):
    """KS error of the top label; see `ks`.

    Example:
        >>> import torch
        >>> metric = KS()
        >>> metric.update(torch.tensor([[0.9, 0.1], [0.2, 0.8]]), torch.tensor([0, 0]))
        >>> metric.compute()
        tensor(0.4000, dtype=torch.float64)
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(ks, {}, **options)


class ESD(_Kept):
    """Expected squared difference of the top label; see `esd`.

    Example:
        >>> import torch
        >>> metric = ESD()
        >>> preds = torch.tensor([[0.6, 0.4], [0.7, 0.3], [0.8, 0.2]])
        >>> metric.update(preds, torch.tensor([0, 1, 0]))
        >>> metric.compute()
        tensor(-0.0933, dtype=torch.float64)
    """

    plot_lower_bound = None

    def __init__(self, **options: Any) -> None:
        super().__init__(esd, {}, **options)


class MMCE(_Kept):
    """Maximum mean calibration error of the top label; see `mmce`.

    Args:
        phi: Width of the kernel.
        options: `from_logits`, `ignore_index`, and those of `torchmetrics.Metric`.

    Example:
        >>> import torch
        >>> metric = MMCE()
        >>> metric.update(torch.tensor([[0.8, 0.2], [0.8, 0.2]]), torch.tensor([0, 1]))
        >>> metric.compute()
        tensor(0.3000, dtype=torch.float64)
    """

    def __init__(self, phi: float = 0.4, **options: Any) -> None:
        positive("phi", phi)
        super().__init__(mmce, {"phi": phi}, **options)


class SKCE(_Kept):
    """Unbiased squared kernel calibration error of the top label; see `skce`.

    Args:
        phi: Width of the kernel.
        options: `from_logits`, `ignore_index`, and those of `torchmetrics.Metric`.

    Example:
        >>> import torch
        >>> metric = SKCE()
        >>> metric.update(torch.tensor([[0.8, 0.2], [0.8, 0.2]]), torch.tensor([0, 1]))
        >>> metric.compute()
        tensor(-0.1600, dtype=torch.float64)
    """

    plot_lower_bound = None

    def __init__(self, phi: float = 0.4, **options: Any) -> None:
        positive("phi", phi)
        super().__init__(skce, {"phi": phi}, **options)


def of_measure(measure: Measure, **options: Any) -> Metric:
    """Return the metric of a registered measure that has no class of its own."""
    if measure.kind != "pair":
        raise InputError(f"measure: expected one with a metric class, got {measure.name!r}")
    own, rest = measure.split(options)
    return _Kept(measure.bind(**own).value, {}, **rest)
