"""Training for calibration: interleaved batches, a plain loop, and the choice of lambda.

    pairs = training.interleave(train_loader, calibration_loader)
    objective = training.interleaved(losses.esd, weight=2.0)
    history = training.fit(model, pairs, objective=objective, optimizer=optimizer, epochs=30)

`fit` is a convenience. In a training loop of your own, the same takes two lines:

    for (images, labels), (held_images, held_labels) in training.interleave(train, calibration):
        loss = nll(model(images), labels) + 2.0 * losses.esd(model(held_images), held_labels)

Heads add an uncertainty to any backbone: `EvidentialHead(64, targets=3)`, and, for vectors that
rotate with the input, `VectorCovarianceHead` and related classes.
"""

from __future__ import annotations

from .equivariant_heads import (
    IrrepsCovarianceHead,
    IrrepsVarianceHead,
    MeanCovariance,
    VectorCovarianceHead,
    VectorEvidentialHead,
    VectorVarianceHead,
    positive_definite,
    symmetric_from_irreps,
)
from .heads import Evidence, EvidentialHead, MeanVariance, MeanVarianceHead
from .loop import History, fit
from .objectives import Interleaved, interleave, interleaved, likelihood
from .selection import Selection, select

__all__ = [
    "Evidence",
    "EvidentialHead",
    "History",
    "Interleaved",
    "IrrepsCovarianceHead",
    "IrrepsVarianceHead",
    "MeanCovariance",
    "MeanVariance",
    "MeanVarianceHead",
    "Selection",
    "VectorCovarianceHead",
    "VectorEvidentialHead",
    "VectorVarianceHead",
    "fit",
    "interleave",
    "interleaved",
    "likelihood",
    "positive_definite",
    "select",
    "symmetric_from_irreps",
]
