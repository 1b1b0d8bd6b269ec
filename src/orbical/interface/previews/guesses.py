"""Guess from a few images how a model wants them, and what its outputs are."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from ...data.preprocessing import SCALES, ImagePreprocessing

PREFERRED = ("imagenet", "unit", "symmetric", "bytes")
"""Scales in the order in which they are taken if the images cannot tell them apart."""
_LEAST = 0.4
"""The least share of the possible information at which the answers decide on a scale."""
_CLOSE = 1.1
_SUM = 1e-3


def is_probability(outputs: Tensor) -> bool:
    """Check whether outputs `[N, C]` are probabilities of classes.

    >>> is_probability(torch.tensor([[0.2, 0.8]])), is_probability(torch.tensor([[2.0, -1.0]]))
    (True, False)
    """
    return bool((outputs >= 0).all() and ((outputs.sum(-1) - 1).abs() < _SUM).all())


def information(outputs: Tensor) -> float:
    """Compute how much the answers `[N, C]` tell about which image was shown, in bits.

    The entropy of the mean answer minus the mean entropy: 0 if all images get the same answer, or
    if all answers are undecided. Saturated nonsense is confident, but the same for every image.

    >>> information(torch.eye(4)), information(torch.full((4, 4), 0.25))
    (2.0, 0.0)
    """
    if not bool(torch.isfinite(outputs).all()):
        return 0.0
    shares = outputs if is_probability(outputs) else outputs.softmax(-1)
    each = torch.special.entr(shares.double()).sum(-1).mean()
    whole = torch.special.entr(shares.double().mean(0)).sum()
    return round(float((whole - each) / np.log(2)), 3)


def best_scale(
    images: Tensor,
    run: Callable[[Tensor], Tensor],
    channels: str,
    layout: str,
    labels: Tensor | None,
) -> tuple[str, str]:
    """Return the scale with the most informative answers, and the reason in words.

    With labels of the model's classes, accuracy decides where it differs.
    """
    told, right = {}, {}
    for scale in SCALES:
        outputs = run(ImagePreprocessing(scale, channels, layout)(images))
        told[scale] = information(outputs)
        hits = None if labels is None else (outputs.argmax(-1) == labels).float()
        right[scale] = 0.0 if hits is None else float(hits.mean())
    best = max(PREFERRED, key=lambda scale: (right[scale], told[scale]))  # the first of equals
    tried = f"of {len(SCALES)} scales tried on {len(images)} images"
    most = max(value for scale, value in right.items() if scale != best)
    if right[best] > most:
        share = f"{right[best]:.0%}; next {most:.0%}".replace("%", " %")
        return best, f"{tried}, the most answers are right with this one ({share})"
    possible = float(np.log2(min(len(images), outputs.shape[-1])))
    if told[best] < _LEAST * possible:
        return PREFERRED[0], f"the usual one; {tried}, none gave answers that depend on the image"
    most = max(value for scale, value in told.items() if scale != best)
    close = "; close, so check it" if most * _CLOSE > told[best] else ""
    return best, (
        f"{tried}, the answers tell the images apart best with this one ({told[best]:.1f} of "
        f"{possible:.1f} bits; next {most:.1f}{close})"
    )
