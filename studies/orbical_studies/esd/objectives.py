"""What a training minimizes: the likelihood alone, or with a calibration loss beside it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor

from orbical import training

from .batches import Shuffled, Split


def objective_of(
    own: Callable[[Tensor, Tensor], Tensor] | None,
    weight: float,
    parts: dict[str, Split],
    batches: Callable[[Split], Shuffled],
) -> tuple[Any, Any]:
    """Return the likelihood on all images, or interleaved with a loss on those held out."""
    if own is None:
        return training.likelihood, batches(parts["fit"] + parts["calibration"])
    pairs = (batches(parts[name]) for name in ("fit", "calibration"))
    return training.interleaved(own, weight), training.interleave(*pairs)
