"""Generated pairs of particle images with the flow that moves the particles.

The images follow common practice in synthetic particle image velocimetry (Raffel et al., *Particle
Image Velocimetry*; ranges of Cai et al., 2019): particles are Gaussian spots, integrated over
pixels, in a light sheet with a Gaussian profile; some leave the sheet between the frames; the
sensor adds background and noise.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields

import torch
import torch.nn.functional as F
from torch import Tensor

from orbical.errors import InputError, check_name

from .example_files import ParticlePairs
from .flow_fields import KINDS, Draws, flow_fields

MARGIN = 12
_REACH = 4  # radius of a spot in pixels: 4 standard deviations of the largest


@dataclass(frozen=True)
class Seeding:
    """The appearance of the particles, as ranges from which every pair draws its own values.

    Attributes:
        density: Particles per pixel in the lit part of the sheet.
        diameter: Diameter of a particle image in pixels, at exp(-2) of its peak (4 standard
            deviations).
        peak: Brightness of a particle in the middle of the sheet.
        background: Brightness without particles.
        noise: Standard deviation of the sensor's noise.
        leaving: Motion across the sheet between the frames, relative to its thickness: about the
            share of particles that are seen in one frame only.
    """

    density: tuple[float, float] = (0.04, 0.12)
    diameter: tuple[float, float] = (1.2, 4.0)
    peak: tuple[float, float] = (0.6, 1.0)
    background: tuple[float, float] = (0.0, 0.08)
    noise: tuple[float, float] = (0.0, 0.02)
    leaving: tuple[float, float] = (0.0, 0.1)

    def __post_init__(self) -> None:
        for field in fields(self):
            low, high = getattr(self, field.name)
            if not 0 <= low <= high < math.inf:
                raise InputError(field.name, "0 <= low <= high", (low, high))
        if not 0 < self.diameter[0] <= self.diameter[1] <= _REACH:
            raise InputError("diameter", f"pixels above 0 and at most {_REACH}", self.diameter)


def particle_pairs(
    count: int,
    size: int = 256,
    kinds: Sequence[str] = tuple(KINDS),
    seed: int = 0,
    seeding: Seeding | None = None,
    device: str | torch.device = "cpu",
) -> ParticlePairs:
    """Generate pairs of particle images with the flow between them.

    The true flow is that at half time: a particle at x is at x - u(x)/2 in the first frame and at
    x + u(x)/2 in the second, so that time reversal gives exactly -u.

    Args:
        count: Number of pairs; the kinds alternate.
        size: Side of the images in pixels.
        kinds: Kinds of flow: uniform, vortex, shear, backstep, cylinder, turbulence.
        seed: Seed of the random numbers; results also depend on the device.
        seeding: Appearance of the particles.
        device: Device to generate them on.

    Returns:
        As `piv`: `pair` `[n, 2, 1, h, w]` in 0..1, `flow` `[n, 2, h, w]` (dx to the right, dy
        down), `names` and `kinds`.

    Raises:
        InputError: If the count, the size or a kind cannot be used.

    Example:
        >>> made = particle_pairs(2, size=64, kinds=["vortex", "shear"])
        >>> made["pair"].shape, made["kinds"]
        (torch.Size([2, 2, 1, 64, 64]), ['vortex', 'shear'])
    """
    if count < 1 or size < 16:
        raise InputError("count, size", "at least 1 and 16", f"{count} and {size}")
    for kind in kinds:
        check_name("kinds", kind, KINDS)
    if not kinds:
        raise InputError("kinds", "one or more", "none")
    generator = torch.Generator(device).manual_seed(seed)
    names = [kinds[number % len(kinds)] for number in range(count)]
    draws = Draws(generator, count)
    field = torch.empty(count, 2, *[size + 2 * MARGIN] * 2, device=device)
    for kind in dict.fromkeys(names):
        rows = [number for number, name in enumerate(names) if name == kind]
        field[rows] = flow_fields(kind, Draws(generator, len(rows)), size, MARGIN)
    pair = photograph(field, draws, seeding or Seeding())
    flow = field[..., MARGIN:-MARGIN, MARGIN:-MARGIN].contiguous()
    return ParticlePairs(
        pair=pair,
        flow=flow,
        names=[f"{kind}_{number:05d}" for number, kind in enumerate(names)],
        kinds=names,
    )


def photograph(field: Tensor, draws: Draws, seeding: Seeding) -> Tensor:
    """Seed particles in flow fields and render the two frames.

    Args:
        field: Displacements `[n, 2, h, w]`, `MARGIN` pixels larger than the view on each side.
        draws: Random numbers for n fields.
        seeding: Appearance of the particles.

    Returns:
        Pairs `[n, 2, 1, h - 2 MARGIN, w - 2 MARGIN]` in 0..1.
    """
    whole = field.shape[-1]
    density = draws.uniform(*seeding.density)
    # The sheet fills half of the depth in which particles are drawn.
    most = math.ceil(2 * seeding.density[1] * whole**2)
    place = draws.rand(most, 2) * whole
    depth = draws.rand(most) * 4 - 2  # in half-thicknesses of the sheet
    present = draws.rand(most) < (2 * density * whole**2 / most)[:, 0]
    moved = F.grid_sample(
        field, (place * (2 / whole) - 1)[:, None], align_corners=False, padding_mode="border"
    )[:, :, 0].transpose(1, 2)
    across = 2 * (draws.uniform(*seeding.leaving) * draws.sign())[:, 0]
    peak = draws.uniform(*seeding.peak)[:, 0] * present
    deviation = draws.uniform(*seeding.diameter)[:, 0] / 4
    background, noise = draws.uniform(*seeding.background), draws.uniform(*seeding.noise)
    frames = []
    for time in (-0.5, 0.5):
        bright = peak * (-2 * (depth + time * across).square()).exp()
        frames.append(_spots(place + time * moved, bright, deviation, whole))
    frames_seen = torch.stack(frames, 1)[..., MARGIN:-MARGIN, MARGIN:-MARGIN]
    sensor = noise[:, None] * draws.normal(*frames_seen.shape[1:])
    return (frames_seen + background[:, None] + sensor).clamp(0, 1)[:, :, None]


def _spots(place: Tensor, bright: Tensor, deviation: Tensor, size: int) -> Tensor:
    """Add Gaussian spots at `place[n, p, 2]` (x, y from the corner), integrated over pixels."""
    corner = place.floor()
    steps = torch.arange(-_REACH, _REACH + 1, device=place.device)
    pixel = corner[..., None] + steps  # [n, p, 2, r]
    scale = (deviation * math.sqrt(2))[..., None, None]
    low = (pixel - place[..., None]) / scale
    weight = scale * (math.sqrt(math.pi) / 2) * ((low + 1 / scale).erf() - low.erf())
    value = bright[..., None, None] * weight[:, :, 1, :, None] * weight[:, :, 0, None, :]
    inside = (pixel >= 0) & (pixel < size)
    value = value * (inside[:, :, 1, :, None] & inside[:, :, 0, None, :])
    index = pixel.clamp(0, size - 1).long()
    index = index[:, :, 1, :, None] * size + index[:, :, 0, None, :]
    canvas = torch.zeros(len(place), size * size, device=place.device)
    return canvas.scatter_add_(1, index.flatten(1), value.flatten(1)).reshape(-1, size, size)
