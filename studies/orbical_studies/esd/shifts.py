"""Shifted test images of increasing strength: rotation, blur, noise (the paper's Fig. 6)."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional

from orbical.zoo.digits import turn

STRENGTHS: dict[str, tuple[float, ...]] = {
    "rotation": (15.0, 30.0, 45.0, 60.0, 90.0),  # degrees
    "blur": (0.5, 1.0, 1.5, 2.0, 3.0),  # standard deviation in pixels
    "noise": (0.05, 0.1, 0.2, 0.3, 0.5),  # standard deviation, images spanning 0..1
}


def rotated(images: Tensor, degrees: float) -> Tensor:
    """Rotate images `[n, c, h, w]` in -1..1 counterclockwise, black beyond the border."""
    angles = torch.full((len(images),), math.radians(degrees), device=images.device)
    return turn(images + 1, angles) - 1


def blurred(images: Tensor, sigma: float) -> Tensor:
    """Convolve images `[n, c, h, w]` with a Gaussian of `sigma` pixels, the border repeated.

    >>> blurred(torch.ones(1, 1, 4, 4), 1.0).allclose(torch.ones(1, 1, 4, 4))
    True
    """
    radius = math.ceil(3 * sigma)
    places = torch.arange(-radius, radius + 1, device=images.device, dtype=images.dtype)
    kernel = torch.exp(-(places**2) / (2 * sigma**2))
    kernel = (kernel / kernel.sum()).expand(images.shape[1], 1, -1)
    framed = functional.pad(images, (radius,) * 4, mode="replicate")
    across = functional.conv2d(framed, kernel[:, :, None, :], groups=images.shape[1])
    return functional.conv2d(across, kernel[:, :, :, None], groups=images.shape[1])


def noisy(images: Tensor, sigma: float) -> Tensor:
    """Add the same Gaussian noise each time, `sigma` for images that span 0..1, and clip."""
    generator = torch.Generator(images.device).manual_seed(0)
    noise = torch.randn(images.shape, generator=generator, device=images.device)
    return (images + 2 * sigma * noise).clamp(-1, 1)


SHIFTS = {"rotation": rotated, "blur": blurred, "noise": noisy}
