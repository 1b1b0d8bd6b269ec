"""Gaussian predictions that regression measures are tried on."""

from __future__ import annotations

import torch
from torch import Tensor


def predictions(size: int, *shape: int, seed: int = 0) -> tuple[Tensor, Tensor, Tensor]:
    """Calibrated Gaussian predictions of shape `[*leading, size, *coordinates]`."""
    generator = torch.Generator().manual_seed(seed)
    mean = torch.randn(size, *shape, generator=generator, dtype=torch.float64)
    variance = torch.rand(size, *shape, generator=generator, dtype=torch.float64) * 4 + 0.05
    noise = torch.randn(size, *shape, generator=generator, dtype=torch.float64)
    return mean, variance, mean + variance.sqrt() * noise


def covariances(size: int, d: int, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    factor = torch.randn(size, d, d, generator=generator, dtype=torch.float64)
    return factor @ factor.mT + 0.2 * torch.eye(d, dtype=torch.float64)
