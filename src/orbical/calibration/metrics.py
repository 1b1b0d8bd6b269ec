"""The measures as torchmetrics classes, for evaluation loops and across processes.

Each takes `update(probs=..., labels=...)` or `update(logits=..., labels=...)`. A metric keeps sums
where sums suffice (ECE over equal-width bins, smooth ECE, SB-ECE, S-AvUC, NLL, Brier, accuracy) and
all confidences otherwise (KS, ESD, MMCE, SKCE, equal-mass ECE).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torchmetrics import Metric
from torchmetrics.utilities import dim_zero_cat

from . import smooth, soft
from .binned import Reliability, bin_sums, checked_bins, diagram_of, ece, error_of, named_norm
from .cumulative import esd, ks
from .inputs import ArrayLike, log_probabilities, positive, probabilities, top_label, true_labels
from .kernel import mmce, skce
from .scores import brier_terms, nll_terms

Outputs = dict[str, ArrayLike]
"""`probs` and `logits`, of which one is None."""


class _OfOutputs(Metric):
    """A metric of a classifier's outputs; a kind of metric says how a batch is added."""

    is_differentiable = False
    higher_is_better = False
    full_state_update = False

    def _add(self, outputs: Outputs, labels: ArrayLike) -> None:
        raise NotImplementedError

    def update(
        self,
        *,
        probs: ArrayLike | None = None,
        logits: ArrayLike | None = None,
        labels: ArrayLike,
    ) -> None:
        """Add a batch of outputs `[N, C]` with their labels `[N]`."""
        self._add({"probs": probs, "logits": logits}, labels)

    def _top(self, outputs: Outputs, labels: ArrayLike) -> tuple[Tensor, Tensor]:
        """Give the pair of the top label `[N]`, detached."""
        confidence, correct = top_label(**outputs, labels=labels)
        return confidence.detach().reshape(-1), correct.reshape(-1)


class _Summed(_OfOutputs):
    """A metric whose states are sums over samples."""

    def _add_sum(self, name: str, *shape: int, dtype: torch.dtype = torch.float64) -> None:
        self.add_state(name, torch.zeros(shape, dtype=dtype), dist_reduce_fx="sum")


class ECE(_Summed):
    """ECE of the top label over equal-width bins; keeps three sums a bin.

    Args:
        bins: the number of bins `(lo, hi]`, the first closed at 0.
        norm: "l1", "l2" or "max".

    >>> metric = ECE(bins=10)
    >>> metric.update(probs=torch.tensor([[0.9, 0.1], [0.2, 0.8]]), labels=torch.tensor([0, 0]))
    >>> metric.compute()
    tensor(0.4500, dtype=torch.float64)
    """

    count: Tensor
    confidence: Tensor
    correct: Tensor

    def __init__(self, bins: int = 15, norm: str = "l1", **options: Any) -> None:
        super().__init__(**options)
        self.bins, self.norm = checked_bins(bins), named_norm(norm)
        self._add_sum("count", bins, dtype=torch.int64)
        self._add_sum("confidence", bins)
        self._add_sum("correct", bins)

    def _add(self, outputs: Outputs, labels: ArrayLike) -> None:
        confidence, correct = self._top(outputs, labels)
        count, _, of_confidence, of_correct = bin_sums(
            confidence[None], correct[None], None, self.bins, None
        )
        self.count += count[0]
        self.confidence += of_confidence[0]
        self.correct += of_correct[0]

    def reliability(self) -> Reliability:
        """Return the reliability diagram of everything seen so far, in this process."""
        edges = torch.arange(self.bins + 1, dtype=torch.float64, device=self.count.device)
        total = self.count.double()
        return diagram_of(edges / self.bins, self.count, total, self.confidence, self.correct)

    def compute(self) -> Tensor:
        """Return the error of everything seen so far."""
        return error_of(self.reliability(), self.norm)


class SmoothECE(_Summed):
    """Smooth ECE of the top label; keeps the residuals summed on a grid.

    Args:
        bandwidth: chosen automatically if not given; see `smooth_ece`.

    >>> metric = SmoothECE()
    >>> metric.update(probs=torch.tensor([[0.9, 0.1], [0.9, 0.1]]), labels=torch.tensor([0, 1]))
    >>> metric.compute()
    tensor(0.4000, dtype=torch.float64)
    """

    masses: Tensor
    count: Tensor

    def __init__(self, bandwidth: float | None = None, **options: Any) -> None:
        super().__init__(**options)
        if bandwidth is not None:
            positive("bandwidth", bandwidth)
        self.bandwidth = bandwidth
        self._add_sum("masses", smooth.GRID + 1)
        self._add_sum("count", dtype=torch.int64)

    def _add(self, outputs: Outputs, labels: ArrayLike) -> None:
        confidence, correct = self._top(outputs, labels)
        self.masses += smooth.residual_masses(confidence, correct)
        self.count += confidence.numel()

    def compute(self) -> Tensor:
        """Return the error of everything seen so far."""
        return smooth.error_from_masses(self.masses, self.count, self.bandwidth)


class SBECE(_Summed):
    """Soft-binned ECE of the top label; keeps two sums a bin.

    Args:
        bins: the number of bins.
        temperature: how soft membership is; see `sb_ece`.

    >>> metric = SBECE(bins=5, temperature=1e-4)
    >>> metric.update(probs=torch.tensor([[0.9, 0.1], [0.9, 0.1]]), labels=torch.tensor([0, 1]))
    >>> metric.compute()
    tensor(0.4000, dtype=torch.float64)
    """

    size: Tensor
    gap: Tensor

    def __init__(self, bins: int = 15, temperature: float = 0.01, **options: Any) -> None:
        super().__init__(**options)
        positive("temperature", temperature)
        self.bins, self.temperature = checked_bins(bins), temperature
        self._add_sum("size", bins)
        self._add_sum("gap", bins)

    def _add(self, outputs: Outputs, labels: ArrayLike) -> None:
        confidence, correct = self._top(outputs, labels)
        size, gap = soft.soft_sums(confidence, correct, self.bins, self.temperature)
        self.size += size
        self.gap += gap

    def compute(self) -> Tensor:
        """Return the error of everything seen so far."""
        return soft.soft_error(self.size, self.gap)


class SAvUC(_Summed):
    """Soft accuracy versus uncertainty; keeps two sums.

    Args:
        kappa: the entropy, in (0, 1), that separates certain from uncertain.
        temperature: how soft the separation is; see `s_avuc`.

    >>> metric = SAvUC()
    >>> metric.update(probs=torch.tensor([[0.9, 0.1], [0.6, 0.4]]), labels=torch.tensor([0, 1]))
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

    def _add(self, outputs: Outputs, labels: ArrayLike) -> None:
        against, for_it = soft.avuc_sums(
            **outputs, labels=labels, kappa=self.kappa, temperature=self.temperature
        )
        self.against += against.detach().sum()
        self.for_it += for_it.detach().sum()

    def compute(self) -> Tensor:
        """Return the value of everything seen so far."""
        return soft.avuc_of(self.against, self.for_it)


class _Mean(_Summed):
    """A metric that is the mean of one number a sample."""

    total: Tensor
    count: Tensor

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._add_sum("total")
        self._add_sum("count", dtype=torch.int64)

    def _terms(self, outputs: Outputs, labels: ArrayLike) -> Tensor:
        raise NotImplementedError

    def _add(self, outputs: Outputs, labels: ArrayLike) -> None:
        terms = self._terms(outputs, labels)
        self.total += terms.detach().double().sum()
        self.count += terms.numel()

    def compute(self) -> Tensor:
        """Return the mean over everything seen so far."""
        return self.total / self.count


class Accuracy(_Mean):
    """Share of samples whose most probable class is the label; keeps two sums.

    >>> metric = Accuracy()
    >>> metric.update(probs=torch.tensor([[0.9, 0.1], [0.9, 0.1]]), labels=torch.tensor([0, 1]))
    >>> metric.compute()
    tensor(0.5000, dtype=torch.float64)
    """

    higher_is_better = True

    def _terms(self, outputs: Outputs, labels: ArrayLike) -> Tensor:
        return top_label(**outputs, labels=labels)[1]


class NLL(_Mean):
    """Mean negative log-likelihood; keeps two sums.

    >>> metric = NLL()
    >>> metric.update(probs=torch.tensor([[0.5, 0.5]]), labels=torch.tensor([0]))
    >>> metric.compute()
    tensor(0.6931, dtype=torch.float64)
    """

    def _terms(self, outputs: Outputs, labels: ArrayLike) -> Tensor:
        log_p = log_probabilities(**outputs)
        return nll_terms(log_p, true_labels(labels, log_p))


class Brier(_Mean):
    """Brier score over all classes; keeps two sums.

    >>> metric = Brier()
    >>> metric.update(probs=torch.tensor([[0.5, 0.5]]), labels=torch.tensor([0]))
    >>> metric.compute()
    tensor(0.5000, dtype=torch.float64)
    """

    def _terms(self, outputs: Outputs, labels: ArrayLike) -> Tensor:
        p = probabilities(**outputs)
        return brier_terms(p, true_labels(labels, p))


class _Kept(_OfOutputs):
    """A metric of all confidences together, which are therefore kept."""

    confidence: list[Tensor]
    correct: list[Tensor]

    def __init__(self, measure: Callable[..., Tensor], parameters: Any, **options: Any) -> None:
        super().__init__(**options)
        self._measure, self._parameters = measure, parameters
        self.add_state("confidence", [], dist_reduce_fx="cat")
        self.add_state("correct", [], dist_reduce_fx="cat")

    def _add(self, outputs: Outputs, labels: ArrayLike) -> None:
        confidence, correct = self._top(outputs, labels)
        self.confidence.append(confidence)
        self.correct.append(correct)

    def compute(self) -> Tensor:
        """Return the measure of everything seen so far."""
        pair = dim_zero_cat(self.confidence), dim_zero_cat(self.correct)
        return self._measure(*pair, **self._parameters)


class EqualMassECE(_Kept):
    """ECE of the top label over bins of equal mass; see `ece`.

    >>> metric = EqualMassECE(bins=1)
    >>> metric.update(probs=torch.tensor([[0.9, 0.1], [0.2, 0.8]]), labels=torch.tensor([0, 0]))
    >>> metric.compute()
    tensor(0.3500, dtype=torch.float64)
    """

    def __init__(self, bins: int = 15, norm: str = "l1", **options: Any) -> None:
        parameters = {"bins": checked_bins(bins), "norm": named_norm(norm), "binning": "mass"}
        super().__init__(ece, parameters, **options)


class KS(_Kept):
    """KS error of the top label; see `ks`.

    >>> metric = KS()
    >>> metric.update(probs=torch.tensor([[0.9, 0.1], [0.2, 0.8]]), labels=torch.tensor([0, 0]))
    >>> metric.compute()
    tensor(0.4000, dtype=torch.float64)
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(ks, {}, **options)


class ESD(_Kept):
    """Expected squared difference of the top label; see `esd`.

    >>> metric = ESD()
    >>> probs = torch.tensor([[0.6, 0.4], [0.7, 0.3], [0.8, 0.2]])
    >>> metric.update(probs=probs, labels=torch.tensor([0, 1, 0]))
    >>> metric.compute()
    tensor(-0.0933, dtype=torch.float64)
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(esd, {}, **options)


class MMCE(_Kept):
    """Maximum mean calibration error of the top label; see `mmce`.

    >>> metric = MMCE()
    >>> metric.update(probs=torch.tensor([[0.8, 0.2], [0.8, 0.2]]), labels=torch.tensor([0, 1]))
    >>> metric.compute()
    tensor(0.3000, dtype=torch.float64)
    """

    def __init__(self, phi: float = 0.4, **options: Any) -> None:
        positive("phi", phi)
        super().__init__(mmce, {"phi": phi}, **options)


class SKCE(_Kept):
    """Unbiased squared kernel calibration error of the top label; see `skce`.

    >>> metric = SKCE()
    >>> metric.update(probs=torch.tensor([[0.8, 0.2], [0.8, 0.2]]), labels=torch.tensor([0, 1]))
    >>> metric.compute()
    tensor(-0.1600, dtype=torch.float64)
    """

    def __init__(self, phi: float = 0.4, **options: Any) -> None:
        positive("phi", phi)
        super().__init__(skce, {"phi": phi}, **options)
