"""Training for calibration: interleaved batches, heads, and the choice of lambda.

In any training loop, or a Lightning module, interleaved training takes two lines:

    for (images, labels), (held_images, held_labels) in training.interleave(train, calibration):
        loss = nll(model(images), labels) + 50.0 * losses.esd(model(held_images), held_labels)

Heads add an uncertainty to any backbone: `EvidentialHead(64, targets=3)`, and, for vectors that
rotate with the input, `VectorCovarianceHead` and related classes.
"""

from __future__ import annotations

from . import heads, objectives
from .heads import *
from .objectives import *

__all__ = [*heads.__all__, *objectives.__all__]
