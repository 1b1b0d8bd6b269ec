"""Scores of a classifier before and after temperature and vector scaling."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from sklearn.exceptions import ConvergenceWarning
from torch import Tensor
from torch.nn import functional

from orbical import calibration
from orbical.errors import InputError
from orbical.recalibrate import Temperature, VectorScaling

BINS, RESAMPLES = 20, 300


def scores(labels: Tensor, **outputs: Any) -> dict[str, float]:
    """Measure accuracy, ECE with the paper's 20 bins, and ESD of `logits=` or `probs=`."""
    confidence, correct = calibration.top_label(labels=labels, **outputs)
    return {
        "accuracy": float(correct.double().mean()),
        "ece": float(calibration.ece(confidence, correct, bins=BINS)),
        "esd": float(calibration.esd(confidence, correct)),
    }


class Scaled:
    """Temperature and vector scaling of a network, fitted on validation samples.

    Args:
        logits: Of the validation samples.
        labels: Of the validation samples.

    Attributes:
        temperature: The scaling by one temperature; None if it cannot be fitted, because the
            network has learned nothing. The scores after a scaling are then those before.
        vector: Vector scaling, or None.
    """

    def __init__(self, logits: Tensor, labels: Tensor) -> None:
        self.temperature = _fitted(Temperature(), logits, labels)
        self.vector = _fitted(VectorScaling(), logits, labels)
        self.validation = scores(labels, logits=logits)

    def row(self, logits: Tensor, labels: Tensor) -> dict[str, Any]:
        """Return the scores on test samples before and after both scalings, as one flat row."""
        found: Mapping[str, Mapping[str, float]] = {
            "validation": self.validation,
            "test": scores(labels, logits=logits),
            "test_ts": after(self.temperature, logits, labels),
            "test_vs": after(self.vector, logits, labels),
        }
        fitted = self.temperature
        return {
            "temperature": None if fitted is None else float(fitted.temperature_),
            "nll": float(functional.cross_entropy(logits, labels)),
            **{f"{part}.{n}": value for part, each in found.items() for n, value in each.items()},
        }


def after(scaling: Any, logits: Tensor, labels: Tensor) -> dict[str, float]:
    """Measure a network after a scaling, if there is one."""
    if scaling is None:
        return scores(labels, logits=logits)
    return scores(labels, probs=scaling.predict_proba(logits))


def _fitted(scaling: Any, logits: Tensor, labels: Tensor) -> Any:
    with warnings.catch_warnings(), suppress(InputError, ConvergenceWarning):
        warnings.simplefilter("error", ConvergenceWarning)
        return scaling.fit(logits, labels)
    return None  # a network that has learned nothing has no best scaling


def interval_row(logits: Tensor, labels: Tensor, temperature: float | None) -> dict[str, float]:
    """Compute 95 % intervals of the ECE over test samples, before and after a temperature.

    Returns:
        `test.low`, `test.high`, and `test.calibrated`, what a calibrated network would show; the
        same of `test_ts`.
    """
    row = {}
    for name, shown in (("test", logits), ("test_ts", logits / (temperature or 1.0))):
        pair = calibration.top_label(labels=labels, logits=shown)
        found = calibration.interval("ece", *pair, bins=BINS, resamples=RESAMPLES)
        for end in ("low", "high", "calibrated"):
            row[f"{name}.{end}"] = float(getattr(found, end))
    return row
