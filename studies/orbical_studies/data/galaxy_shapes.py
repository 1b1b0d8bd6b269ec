"""Generated galaxies: Sersic profiles with spiral arms, inclined, seen through a telescope."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from orbical.errors import InputError

from .galaxy_images import point_spread


def galaxies(
    count: int = 600, size: int = 48, psf: float = 1.0, noise: float = 0.03, seed: int = 0
) -> tuple[Tensor, Tensor]:
    """Generate galaxies: smooth ellipticals, and discs with logarithmic spiral arms of both senses.

    Each has its own Sersic index, radius, inclination, position angle, arm number, pitch and
    contrast. A rotated galaxy is as likely as the upright one and of the same class; a mirrored
    spiral is of the other class. Rotations are thus a correct symmetry and reflections an
    incorrect one.

    Args:
        count: Number of galaxies.
        size: Side in pixels.
        psf: Width of the telescope's Gaussian blur in pixels.
        noise: Standard deviation of the sky noise.
        seed: Of all random numbers.

    Returns:
        Images `[count, 1, size, size]`, float32 in 0..1, and labels `[count]`, int64: 0 elliptical,
        1 spiral with arms opening to the left, 2 to the right.

    Example:
        >>> images, labels = galaxies(6, size=32)
        >>> images.shape, labels.tolist()
        (torch.Size([6, 1, 32, 32]), [0, 1, 2, 0, 1, 2])
    """
    if count < 1 or size < 8:
        raise InputError("count, size", "at least 1 and 8", f"{count} and {size}")
    random = torch.Generator().manual_seed(seed)

    def between(low: float, high: float) -> Tensor:
        drawn = torch.rand(count, 1, 1, generator=random, dtype=torch.float64)
        return low + (high - low) * drawn

    labels = torch.arange(count) % 3
    spiral = (labels > 0)[:, None, None]
    sense = torch.where(labels == 2, -1.0, 1.0).double()[:, None, None]
    axis = (torch.arange(size, dtype=torch.float64) - (size - 1) / 2) / (size / 2)
    y, x = torch.meshgrid(-axis, axis, indexing="ij")
    turn = between(0, 2 * math.pi)
    along = x * turn.cos() + y * turn.sin()
    across = (y * turn.cos() - x * turn.sin()) / torch.where(
        spiral, between(0.55, 1.0), between(0.45, 1.0)
    )
    radius = (along.square() + across.square()).sqrt()
    index = torch.where(spiral, 1.0, between(2.0, 4.0))  # discs are exponential
    half_light = torch.where(spiral, between(0.28, 0.4), between(0.15, 0.3))
    light = torch.exp(-(2 * index - 1 / 3) * ((radius / half_light) ** (1 / index) - 1))
    phase = torch.atan2(across, along) - sense * torch.log(radius + 0.05) / between(0.25, 0.5)
    arms = 1 + between(0.6, 0.95) * torch.cos(2 * phase + between(0, 2 * math.pi))
    bulge = between(0.5, 1.5) * torch.exp(-((radius / 0.1) ** 2))
    light = torch.where(spiral, 0.5 * light * arms + bulge, light)
    seen = point_spread(light[:, None].clamp(max=4).float(), psf)
    seen = seen / seen.amax((1, 2, 3), keepdim=True)
    sky = noise * torch.randn(seen.shape, generator=random)
    return (seen.asinh() / math.asinh(1) + sky).clamp(0, 1), labels
