"""Planar flows of six kinds, drawn at random: what moves the particles of `particle_pairs`.

Every kind is a function of a `Draws` (random numbers, one a field) and of pixel coordinates. All
are set up as in a laboratory: the stream comes from the left and vortices turn counter-clockwise.
Only turbulence knows no direction.
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
        """Draw one number a field, uniform between two limits."""
        return low + (high - low) * self.rand(1, 1)

    def sign(self) -> Tensor:
        """Draw -1 or +1 for each field."""
        return self.rand(1, 1).sub(0.5).sign()

    def normal(self, *shape: int) -> Tensor:
        """Draw normal numbers `[count, *shape]`."""
        return torch.randn(
            self.count, *shape, generator=self.generator, device=self.generator.device
        )

    def rand(self, *shape: int) -> Tensor:
        """Draw numbers `[count, *shape]`, uniform in 0..1."""
        return torch.rand(
            self.count, *shape, generator=self.generator, device=self.generator.device
        )


def uniform(draws: Draws, x: Tensor, y: Tensor, half: float) -> Tensor:
    """One displacement everywhere, at most 30 degrees from the stream's direction.

    Arguments (of every kind):
        draws: random numbers for the fields.
        x, y: pixel coordinates `[h, w]` from the center of the view, x to the right, y down.
        half: half the side of the view in pixels.

    Returns:
        Displacements `[count, 2, h, w]` (dx to the right, dy down), of any overall size.
    """
    angle = draws.uniform(-math.pi / 6, math.pi / 6)
    return torch.stack([angle.cos() + 0 * x, angle.sin() + 0 * y], 1)


def vortex(draws: Draws, x: Tensor, y: Tensor, half: float) -> Tensor:
    """Two Lamb-Oseen vortices of different strength, both counter-clockwise, carried along."""
    flow = torch.stack([draws.uniform(0, 0.2) + 0 * x, 0 * draws.uniform(0, 1) + 0 * y], 1)
    for strength in (1.0, 0.6):
        center = [draws.uniform(-0.6, 0.6) * half for _ in range(2)]
        core = draws.uniform(0.2, 0.6) * half
        flow = flow + strength * _lamb_oseen(x - center[0], y - center[1], core)
    return flow


def shear(draws: Draws, x: Tensor, y: Tensor, half: float) -> Tensor:
    """A mixing layer: two parallel streams to the right, of different speed, with waves between."""
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
    """A channel that widens behind a step at its lower left, with a recirculation behind it.

    From a stream function: a parabolic stream above a dividing line that falls from the step's
    edge to the floor, and a closed vortex below the line. Like the flow, not a solution of it.
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
    eddy = eddy * (line / step).square()  # or the flow would be fastest where the line ends
    stream = above.square() * (3 - 2 * above) - draws.uniform(0.04, 0.15) * eddy
    rate_y, rate_x = torch.gradient(stream, dim=(-2, -1))
    return torch.stack([-rate_y, rate_x], 1)  # y points down


def cylinder(draws: Draws, x: Tensor, y: Tensor, half: float) -> Tensor:
    """The stream around a cylinder, with a slow wake and a street of alternating vortices."""
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
    """Two-dimensional turbulence with random phases: energy falls as a power of the wave number.

    The slope lies between -5/3 (as in surface quasi-geostrophic flow) and -3.5; waves longer than
    a drawn length and shorter than 8 pixels are left out.
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
"""Views smaller than this have slower flows, or displacements would exceed what moves."""


def flow_fields(kind: str, draws: Draws, size: int, margin: int) -> Tensor:
    """Draw fields of one kind on the view and a margin around it.

    Arguments:
        kind: one of `KINDS`.
        draws: random numbers; as many fields as its `count`.
        size: side of the view in pixels.
        margin: pixels around it.

    Returns:
        Displacements `[count, 2, size + 2 margin, size + 2 margin]` in pixels, whose largest
        length inside the view is uniform in the range of the kind (times `size / 128` in views
        of less than 128 pixels).

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
    """Turn counter-clockwise about 0 (y down), with the largest speed near 1 at the core."""
    square = (x.square() + y.square()) / core.square()
    speed = 1.57 * (1 - (-1.256 * square).exp()) / square.clamp_min(1e-6)
    return torch.stack([speed * y / core, -speed * x / core], 1)
