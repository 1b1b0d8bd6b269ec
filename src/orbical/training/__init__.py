"""Training for calibration: interleaved batches, a plain loop, and the choice of lambda.

    pairs = training.interleave(train_loader, calibration_loader)
    objective = training.interleaved(losses.esd, weight=2.0)
    history = training.fit(model, pairs, objective=objective, optimiser=optimiser, epochs=30)

`fit` is a convenience: inside a loop of your own the same thing is two lines,

    for (images, labels), (held_images, held_labels) in training.interleave(train, calibration):
        loss = nll(model(images), labels) + 2.0 * losses.esd(model(held_images), held_labels)
"""

from __future__ import annotations

from .loop import History, fit
from .objectives import Interleaved, interleave, interleaved, likelihood
from .selection import Selection, select

__all__ = [
    "History",
    "Interleaved",
    "Selection",
    "fit",
    "interleave",
    "interleaved",
    "likelihood",
    "select",
]
