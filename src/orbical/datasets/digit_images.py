"""The 8 x 8 handwritten digits of scikit-learn."""

from __future__ import annotations

import torch
from torch import Tensor


def digits() -> tuple[Tensor, Tensor]:
    """Read scikit-learn's 1,797 handwritten digits.

    Returns:
        Images `[1797, 1, 8, 8]`, float32 in 0..1 (16 gray levels, divided by 16), and labels
        `[1797]`, int64 in 0..9.

    Example:
        >>> images, labels = digits()
        >>> images.shape, labels.shape, float(images.max())
        (torch.Size([1797, 1, 8, 8]), torch.Size([1797]), 1.0)
    """
    from sklearn.datasets import load_digits

    bunch = load_digits()
    images = torch.as_tensor(bunch.images, dtype=torch.float32)[:, None] / 16
    return images, torch.as_tensor(bunch.target, dtype=torch.int64)
