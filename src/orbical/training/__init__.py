"""Training for calibration: interleaved batches, a plain loop, and the choice of lambda.

    pairs = training.interleave(train_loader, calibration_loader)
    objective = training.interleaved(losses.esd, weight=50.0)
    history = training.fit(model, pairs, objective=objective, optimizer=optimizer, epochs=30)

`fit` is a convenience. In a training loop of your own, the same takes two lines:

    for (images, labels), (held_images, held_labels) in training.interleave(train, calibration):
        loss = nll(model(images), labels) + 50.0 * losses.esd(model(held_images), held_labels)

Heads add an uncertainty to any backbone: `EvidentialHead(64, targets=3)`, and, for vectors that
rotate with the input, `VectorCovarianceHead` and related classes.
"""

from __future__ import annotations

from . import equivariant_heads, heads, loop, objectives, selection
from .equivariant_heads import *
from .heads import *
from .loop import *
from .objectives import *
from .selection import *

__all__: list[str] = []
__all__ += equivariant_heads.__all__
__all__ += heads.__all__
__all__ += loop.__all__
__all__ += objectives.__all__
__all__ += selection.__all__
