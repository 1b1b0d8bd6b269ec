"""Calibration: can a model's confidence be trusted?

Functions on arrays. Most take a pair `(confidence, correct)`, made from a model's outputs by
`top_label` or `classwise`, reduce over the last axis, broadcast over leading ones, and return
float64.

>>> import orbical as ob
>>> confidence, correct = ob.calibration.top_label(probs=[[0.9, 0.1], [0.2, 0.8]], labels=[0, 0])
>>> ob.calibration.ece(confidence, correct, bins=15)
tensor(0.4500, dtype=torch.float64)
"""

from __future__ import annotations

from .binned import Reliability, ece, error_of, reliability
from .by_class import (
    classwise_ece,
    classwise_esd,
    classwise_ks,
    classwise_mmce,
    classwise_skce,
    classwise_smooth_ece,
    per_class,
)
from .cumulative import (
    CumulativeCurve,
    cumulative_curve,
    esd,
    esd_softened,
    ks,
    ordered_esd,
)
from .inputs import classwise, normalised_entropy, probabilities, top_label
from .kernel import mmce, mmce_squared, mmce_weighted, skce
from .scores import BrierParts, accuracy, brier, brier_parts, nll
from .smooth import smooth_ece
from .soft import ece_loss, s_avuc, sb_ece

__all__ = [
    "BrierParts",
    "CumulativeCurve",
    "Reliability",
    "accuracy",
    "brier",
    "brier_parts",
    "classwise",
    "classwise_ece",
    "classwise_esd",
    "classwise_ks",
    "classwise_mmce",
    "classwise_skce",
    "classwise_smooth_ece",
    "cumulative_curve",
    "ece",
    "ece_loss",
    "error_of",
    "esd",
    "esd_softened",
    "ks",
    "mmce",
    "mmce_squared",
    "mmce_weighted",
    "nll",
    "normalised_entropy",
    "ordered_esd",
    "per_class",
    "probabilities",
    "reliability",
    "s_avuc",
    "sb_ece",
    "skce",
    "smooth_ece",
    "top_label",
]
