"""Random planar flows of six kinds, for the particles of `particle_pairs`.

Every kind is a function of a `Draws` (random numbers for each field) and of pixel coordinates. All
are set up as in a laboratory: the stream comes from the left and vortices turn counter-clockwise.
Only turbulence has no direction.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Draws:
    """Random numbers for `count` fields at once, on the generator's device."""

    generator: torch.Generator
    count: int

    def uniform(self, low: float, high: float) -> Tensor:
        """Draw one number per field, uniform between two limits."""
        return low + (high - low) * self.rand(1, 1)

    def sign(self) -> Tensor:
        """Draw -1 or +1 for each field."""
        return self.rand(1, 1).sub(0.5).sign()

    def normal(self, *shape: int) -> Tensor:
        """Draw normal numbers `[count, *shape]`."""
        generator = self.generator
        return torch.randn(self.count, *shape, generator=generator, device=generator.device)

    def rand(self, *shape: int) -> Tensor:
        """Draw numbers `[count, *shape]`, uniform in 0..1."""
        generator = self.generator
        return torch.rand(self.count, *shape, generator=generator, device=generator.device)


def uniform(draws: Draws, x: Tensor, y: Tensor, half: float) -> Tensor:
    """Return a uniform displacement, at most 30 degrees from the direction of the stream.

    Args:
        draws: Random numbers for the fields.
        x: Pixel coordinates `[h, w]` from the center of the view, to the right.
        y: Pixel coordinates `[h, w]` from the center of the view, down.
        half: Half the side of the view in pixels.

    Returns:
        Displacements `[count, 2, h, w]` (dx to the right, dy down), of any magnitude.
    """
    angle = draws.uniform(-math.pi / 6, math.pi / 6)
    return torch.stack([angle.cos() + 0 * x, angle.sin() + 0 * y], 1)


def vortex(draws: Draws, x: Tensor, y: Tensor, half: float) -> Tensor:
    """Return two counter-clockwise Lamb-Oseen vortices of different strength in a slow stream."""
    flow = torch.stack([draws.uniform(0, 0.2) + 0 * x, 0 * draws.uniform(0, 1) + 0 * y], 1)
    for strength in (1.0, 0.6):
        center = [draws.uniform(-0.6, 0.6) * half for _ in range(2)]
        core = draws.uniform(0.2, 0.6) * half
        flow = flow + strength * _lamb_oseen(x - center[0], y - center[1], core)
    return flow


def shear(draws: Draws, x: Tensor, y: Tensor, half: float) -> Tensor:
    """Return a mixing layer: two parallel streams of different speed with waves between them."""
    slow = draws.uniform(0, 0.5)
    thickness = draws.uniform(0.08, 0.8) * half
    wave = draws.uniform(0, 0.06) * half
    length = draws.uniform(1.0, 3.0) * half
    phase = 2 * math.pi * x / length + draws.uniform(0, 2 * math.pi)
    height = (y - draws.uniform(-0.5, 0.5) * half - wave * phase.sin()) / thickness
    profile = slow + (1 - slow) * (1 + draws.sign() * height.tanh()) / 2
    # Streams follow the wave, so that the flow stays nearly free of divergence.
    slope = wave * 2 * math.pi / length * phase.cos()
    return torch.stack([profile, profile * slope], 1)


def backstep(draws: Draws, x: Tensor, y: Tensor, half: float) -> Tensor:
    """Return a channel that widens behind a step at its lower left, with a recirculation.

    From a stream function: a parabolic stream above a dividing line that falls from the edge of the
    step to the floor, and a closed vortex below the line. It resembles the flow, but does not solve
    its equations.
    """
    step = draws.uniform(0.4, 1.0) * half
    edge = draws.uniform(-1.3, -0.3) * half
    length = draws.uniform(1.5, 5.0) * step
    up = half - y  # height above the floor
    along = ((x - edge) / length).clamp(0, 1)
    line = (step * (1 - along.square() * (3 - 2 * along))).clamp_min(1e-3)
    above = ((up - line) / (2 * half - line)).clamp(0, 1)
    below = (up / line).clamp(0, 1)
    eddy = 16 * below.square() * (1 - below).square() * (4 * along * (1 - along))
    eddy = eddy * (line / step).square()  # or the flow would be fastest at the end of the line
    stream = above.square() * (3 - 2 * above) - draws.uniform(0.04, 0.15) * eddy
    rate_y, rate_x = torch.gradient(stream, dim=(-2, -1))
    return torch.stack([-rate_y, rate_x], 1)  # y points down


def cylinder(draws: Draws, x: Tensor, y: Tensor, half: float) -> Tensor:
    """Return the flow around a cylinder, with a slow wake and a vortex street."""
    radius = draws.uniform(0.1, 0.25) * half
    x = x - draws.uniform(-0.8, -0.2) * half
    y = y - draws.uniform(-0.3, 0.3) * half
    square = (x.square() + y.square()).clamp_min(1e-6)
    bend = radius.square() / square.square()
    flow = torch.stack([1 - bend * (x.square() - y.square()), -2 * bend * x * y], 1)
    behind = torch.sigmoid((x - radius) / (0.5 * radius))
    deficit = draws.uniform(0.3, 0.7) * (-(y / (1.3 * radius)).square()).exp()
    flow[:, 0] = flow[:, 0] - behind * deficit * (-x.clamp_min(0) / (8 * radius)).exp()
    spacing, phase = draws.uniform(4.5, 6.0) * radius, draws.uniform(0, 1)
    strength = draws.uniform(0.3, 0.7)
    for number in range(8):
        for side, shift in ((-1.0, 0.0), (1.0, 0.5)):
            place = radius * 2 + (number + shift + phase) * spacing - spacing / 2
            swirl = _lamb_oseen(x - place, y - side * 0.8 * radius, 0.9 * radius)
            # The upper row (negative y) turns clockwise, the lower one counter-clockwise.
            flow = flow + (side * strength * behind)[:, None] * swirl
    solid = torch.sigmoid((square.sqrt() - radius) / 0.7)
    return flow * solid[:, None]


def turbulence(draws: Draws, x: Tensor, y: Tensor, half: float) -> Tensor:
    """Return two-dimensional turbulence with random phases and a power-law energy spectrum.

    The slope is between -5/3 (as in surface quasi-geostrophic flow) and -3.5; waves longer than a
    random length and shorter than 8 pixels are left out.
    """
    rows, columns = x.shape
    waves_y = torch.fft.fftfreq(rows, device=x.device)[:, None]
    waves_x = torch.fft.rfftfreq(columns, device=x.device)[None]
    wave = (waves_x.square() + waves_y.square()).sqrt().clamp_min(1e-6)
    slope = draws.uniform(5 / 3, 3.5)
    longest = draws.uniform(0.4, 2.0) * half
    size = wave.pow(-(slope + 3) / 2)
    size = size * (1 - (-(wave * longest).pow(4)).exp()) * (-(wave * 8).square()).exp()
    noise = torch.view_as_complex(draws.normal(rows, columns // 2 + 1, 2))
    stream = size * noise
    fields = [2j * math.pi * waves_y * stream, -2j * math.pi * waves_x * stream]
    return torch.stack([torch.fft.irfft2(field, s=(rows, columns)) for field in fields], 1)


Kind = Callable[[Draws, Tensor, Tensor, float], Tensor]
KINDS: dict[str, tuple[Kind, tuple[float, float]]] = {
    "uniform": (uniform, (0.5, 8.0)),
    "vortex": (vortex, (1.0, 6.0)),
    "shear": (shear, (1.0, 8.0)),
    "backstep": (backstep, (2.0, 8.0)),
    "cylinder": (cylinder, (2.0, 8.0)),
    "turbulence": (turbulence, (1.0, 5.0)),
}
"""The kinds of flow, each with the range of its largest displacement in pixels."""

FULL_SPEED_SIZE = 128
"""Smaller views have slower flows, so that displacements stay smaller than structures."""


def flow_fields(kind: str, draws: Draws, size: int, margin: int) -> Tensor:
    """Draw fields of one kind on the view and a margin around it.

    Args:
        kind: One of `KINDS`.
        draws: Random numbers for `count` fields.
        size: Side of the view in pixels.
        margin: Width of the margin in pixels.

    Returns:
        Displacements `[count, 2, size + 2 margin, size + 2 margin]` in pixels. Their largest length
        inside the view is uniform in the range of the kind (times `size / 128` in views of less
        than 128 pixels).

    Example:
        >>> draws = Draws(torch.Generator().manual_seed(0), 3)
        >>> flow_fields("vortex", draws, 32, 8).shape
        torch.Size([3, 2, 48, 48])
    """
    make, (least, most) = KINDS[kind]
    place = torch.arange(-margin, size + margin, device=draws.generator.device) - (size - 1) / 2
    y, x = torch.meshgrid(place, place, indexing="ij")
    flow = make(draws, x, y, size / 2)
    inside = flow[..., margin : margin + size, margin : margin + size]
    fastest = inside.norm(dim=1).amax((-2, -1)).clamp_min(1e-12)
    speed = draws.uniform(least, most) * min(1.0, size / FULL_SPEED_SIZE)
    result: Tensor = flow * (speed / fastest[:, None, None])[:, None]
    return result


def _lamb_oseen(x: Tensor, y: Tensor, core: Tensor) -> Tensor:
    """Return a counter-clockwise vortex about 0 (y down), with largest speed about 1."""
    square = (x.square() + y.square()) / core.square()
    speed = 1.57 * (1 - (-1.256 * square).exp()) / square.clamp_min(1e-6)
    return torch.stack([speed * y / core, -speed * x / core], 1)
