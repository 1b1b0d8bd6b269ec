"""The measures of classification as torchmetrics classes, for evaluation loops and processes.

Each takes `update(preds, target)`, positional, as torchmetrics' own classes do, so that they work
side by side in a `MetricCollection`. `preds` are probabilities, or logits if the constructor says
`from_logits=True`. A metric keeps sums where sums suffice (ECE over equal-width bins, smooth ECE,
SB-ECE, S-AvUC, NLL, Brier, accuracy) and all confidences otherwise (KS, ESD, MMCE, SKCE,
equal-mass ECE).

Args of every class, all by keyword, beside the options of its measure:
    from_logits: Whether `preds` are logits; probabilities by default.
    ignore_index: Samples with this target are left out.
    options: Options of `torchmetrics.Metric`, such as `sync_on_compute`.
"""

from __future__ import annotations

from typing import Any

from torch import Tensor

from ..._arrays import ArrayLike, as_array, as_floating, both_classes
from ...errors import InputError
from ..measures import smooth, soft
from ..measures.binned import Reliability, batch_bin_sums, error_of, reliability_of_bins
from ..pairs.from_outputs import classifier_outputs, normalized_entropy, top_label_of
from ..pairs.pairs_and_weights import sample_weights, samples_to_pair
from ..registry import measure_takes_weights
from .metric_states import KeptMetric, MeanMetric, MeasureMetric

__all__ = [
    "ECE", "ESD", "KS", "MMCE", "NLL", "SBECE", "SKCE", "Accuracy", "Brier", "EqualMassECE",
    "SAvUC", "SmoothECE",
]  # fmt: skip

_NAMES = {"probs": "preds", "logits": "preds", "labels": "target"}
"""What arguments of functions of `(probs or logits, labels)` are called in torchmetrics."""

_REMEDIES = {
    "pass outputs before the softmax as logits=": "for logits pass from_logits=True to the metric"
}


class _ClassificationMetric(MeasureMetric):
    """A metric of a classifier's outputs."""

    keywords = ("from_logits", "ignore_index")

    def __init__(
        self, *, from_logits: bool = False, ignore_index: int | None = None, **options: Any
    ) -> None:
        self._without = "" if ignore_index is None else f"_without_{ignore_index}"
        super().__init__(**options)
        self.from_logits, self.ignore_index = from_logits, ignore_index

    def add_state(self, name: str, *arguments: Any, **options: Any) -> None:
        """Add a state whose name says what is left out.

        A collection joins metrics whose states agree after the first batch, which may have had
        nothing to leave out.
        """
        super().add_state(f"{name}{self._without}", *arguments, **options)

    def update(self, preds: ArrayLike, target: ArrayLike, weights: ArrayLike | None = None) -> None:
        """Add a batch.

        Args:
            preds: Probabilities, or logits if so constructed, `[N, C]` or `[N, C, ...]`; those of
                class 1 of two may be `[N]` or `[N, 1, ...]`.
            target: Class indices `[N]` or `[N, ...]`.
            weights: Sample weights >= 0 of the target's shape.
        """
        given, truth = as_floating("preds", preds), as_array("target", target)
        outputs, labels = _rows(given, self.from_logits), _flat_target(given, truth)
        mass = None
        if weights is not None:
            mass = sample_weights(as_array("weights", weights).reshape(-1), outputs[..., 0])
        if self.ignore_index is not None and bool((labels == self.ignore_index).all()):
            return
        try:
            outputs, labels, kept = samples_to_pair(labels, outputs, self.ignore_index)
            mass = mass if mass is None or kept is None else mass[kept]
            self._add(mass, **{"logits" if self.from_logits else "probs": outputs}, labels=labels)
        except InputError as error:
            name = _NAMES.get(error.argument, error.argument)
            remedy = _REMEDIES.get(error.remedy, error.remedy.replace("labels.", "target."))
            raise error.about(name, remedy=remedy) from error


def _rows(preds: Tensor, from_logits: bool) -> Tensor:
    """Return outputs `[M, C]` of `[N]`, `[N, C]` or `[N, C, ...]`."""
    rows = preds.movedim(1, -1).flatten(0, -2) if preds.ndim > 2 else preds
    return both_classes(rows, logits=from_logits)


def _top_label(labels: Tensor, **outputs: Tensor) -> tuple[Tensor, Tensor]:
    """Return the pair of `probs` or `logits` whose labels `update` has checked."""
    return top_label_of(*classifier_outputs(outputs.get("probs"), outputs.get("logits")), labels)


def _flat_target(preds: Tensor, target: Tensor) -> Tensor:
    """Return the labels `[M]` of a target that has the shape of `preds` without its classes."""
    expected = (*preds.shape[:1], *preds.shape[2:])
    if target.shape not in (expected, (*expected, 1)):
        one_hot = preds.ndim > 1 and target.shape == preds.shape
        remedy = "pass class indices, target.argmax(1)" if one_hot else ""
        raise InputError("target", f"class indices of shape {expected}", target, remedy=remedy)
    return target if target.ndim == 1 else target.reshape(-1)


class ECE(_ClassificationMetric, measure="ece"):
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

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        if self.settings["binning"] != "width":
            raise InputError("binning", "'width'", "another", remedy="use EqualMassECE")
        bins = self.settings["bins"]
        self._keep_sums(sums=(4, bins))

    def _add(self, weights: Tensor | None, *arrays: Tensor, **outputs: Tensor) -> None:
        confidence, correct = _top_label(**outputs)
        self._add_sums(batch_bin_sums(confidence, correct, weights, self.settings["bins"]))

    def reliability(self) -> Reliability:
        """Return the reliability diagram of everything seen so far, in this process."""
        count, *sums = self._sums()[0]
        return reliability_of_bins(count.long(), *sums)

    def compute(self) -> Tensor:
        """Return the error of everything seen so far."""
        return error_of(self.reliability(), self.settings["norm"])


class SmoothECE(_ClassificationMetric, measure="smooth_ece"):
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

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._keep_sums(masses=(smooth.GRID + 1,), mass=())

    def _add(self, weights: Tensor | None, *arrays: Tensor, **outputs: Tensor) -> None:
        masses = smooth.residual_masses(*_top_label(**outputs), mass=weights)
        self._add_sums(masses, len(outputs["labels"]) if weights is None else weights.sum())

    def compute(self) -> Tensor:
        """Return the error of everything seen so far."""
        masses, mass = self._sums()
        return smooth.smooth_ece_from_masses(masses, mass, self.settings["bandwidth"])


class SBECE(_ClassificationMetric, measure="sb_ece"):
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

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        bins = self.settings["bins"]
        self._keep_sums(size=(bins,), gap=(bins,))

    def _add(self, weights: Tensor | None, *arrays: Tensor, **outputs: Tensor) -> None:
        confidence, correct = _top_label(**outputs)
        self._add_sums(
            *soft.soft_bin_sums(confidence.detach(), correct, **self.settings, mass=weights)
        )

    def compute(self) -> Tensor:
        """Return the error of everything seen so far."""
        return soft.soft_ece_from_sums(*self._sums())


class SAvUC(_ClassificationMetric, measure="s_avuc"):
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

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._keep_sums(against=(), for_it=())

    def _add(self, weights: Tensor | None, *arrays: Tensor, **outputs: Tensor) -> None:
        _, correct = _top_label(outputs.pop("labels"), **outputs)
        entropy = normalized_entropy(**outputs).detach()
        self._add_sums(*soft.avuc_counts(correct, entropy, **self.settings, mass=weights))

    def compute(self) -> Tensor:
        """Return the value of everything seen so far."""
        return soft.avuc_of_counts(*self._sums())


class Accuracy(MeanMetric, _ClassificationMetric, measure="accuracy"):
    """Share of samples whose most probable class is the label; keeps two sums.

    Example:
        >>> import torch
        >>> metric = Accuracy()
        >>> metric.update(torch.tensor([[0.9, 0.1], [0.9, 0.1]]), torch.tensor([0, 1]))
        >>> metric.compute()
        tensor(0.5000, dtype=torch.float64)
    """

    plot_upper_bound = 1.0


class NLL(MeanMetric, _ClassificationMetric, measure="nll"):
    """Mean negative log-likelihood; keeps two sums.

    Example:
        >>> import torch
        >>> metric = NLL()
        >>> metric.update(torch.tensor([[0.5, 0.5]]), torch.tensor([0]))
        >>> metric.compute()
        tensor(0.6931, dtype=torch.float64)
    """


class Brier(MeanMetric, _ClassificationMetric, measure="brier"):
    """Brier score over all classes; keeps two sums.

    Example:
        >>> import torch
        >>> metric = Brier()
        >>> metric.update(torch.tensor([[0.5, 0.5]]), torch.tensor([0]))
        >>> metric.compute()
        tensor(0.5000, dtype=torch.float64)
    """


class KeptPairs(KeptMetric, _ClassificationMetric):
    """A metric of all confidences together."""

    arrays = ("confidence", "correct")

    def _add(self, weights: Tensor | None, *arrays: Tensor, **outputs: Tensor) -> None:
        if weights is not None and not measure_takes_weights(self.function):
            raise InputError(
                "weights", f"none, since {type(self).__name__} takes no sample weights"
            )
        confidence, correct = _top_label(**outputs)
        super()._add(weights, confidence.detach(), correct)


class EqualMassECE(KeptPairs, measure="ece_mass"):
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


class KS(KeptPairs, measure="ks"):
    """KS error of the top label; see `ks`.

    Example:
        >>> import torch
        >>> metric = KS()
        >>> metric.update(torch.tensor([[0.9, 0.1], [0.2, 0.8]]), torch.tensor([0, 0]))
        >>> metric.compute()
        tensor(0.4000, dtype=torch.float64)
    """


class ESD(KeptPairs, measure="esd"):
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


class MMCE(KeptPairs, measure="mmce"):
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


class SKCE(KeptPairs, measure="skce"):
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
