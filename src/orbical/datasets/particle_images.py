"""Pairs of particle images with known displacements: the flows, the particles and their images."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields

import torch
import torch.nn.functional as F
from torch import Tensor

from orbical.errors import InputError, check_name

from .example_files import ParticlePairs


@dataclass(frozen=True)
class ParticleImageDraws:
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


def uniform(draws: ParticleImageDraws, x: Tensor, y: Tensor, half: float) -> Tensor:
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


def vortex(draws: ParticleImageDraws, x: Tensor, y: Tensor, half: float) -> Tensor:
    """Return two counter-clockwise Lamb-Oseen vortices of different strength in a slow stream."""
    flow = torch.stack([draws.uniform(0, 0.2) + 0 * x, 0 * draws.uniform(0, 1) + 0 * y], 1)
    for strength in (1.0, 0.6):
        center = [draws.uniform(-0.6, 0.6) * half for _ in range(2)]
        core = draws.uniform(0.2, 0.6) * half
        flow = flow + strength * _lamb_oseen(x - center[0], y - center[1], core)
    return flow


def shear(draws: ParticleImageDraws, x: Tensor, y: Tensor, half: float) -> Tensor:
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


def backstep(draws: ParticleImageDraws, x: Tensor, y: Tensor, half: float) -> Tensor:
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


def cylinder(draws: ParticleImageDraws, x: Tensor, y: Tensor, half: float) -> Tensor:
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


def turbulence(draws: ParticleImageDraws, x: Tensor, y: Tensor, half: float) -> Tensor:
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


Kind = Callable[[ParticleImageDraws, Tensor, Tensor, float], Tensor]
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


def flow_fields(kind: str, draws: ParticleImageDraws, size: int, margin: int) -> Tensor:
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
        >>> draws = ParticleImageDraws(torch.Generator().manual_seed(0), 3)
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
    draws = ParticleImageDraws(generator, count)
    field = torch.empty(count, 2, *[size + 2 * MARGIN] * 2, device=device)
    for kind in dict.fromkeys(names):
        rows = [number for number, name in enumerate(names) if name == kind]
        field[rows] = flow_fields(kind, ParticleImageDraws(generator, len(rows)), size, MARGIN)
    pair = _particle_frames(field, draws, seeding or Seeding())
    return _labeled(field, pair, names)


def photograph(flow: Tensor, seed: int = 0, seeding: Seeding | None = None) -> ParticlePairs:
    """Generate pairs of particle images of given flows, such as those of a solver.

    Args:
        flow: Displacements `[n, 2, h, h]` in pixels (dx to the right, dy down) at half time, 12
            pixels larger than the view on each side, from where particles enter.
        seed: Seed of the random numbers.
        seeding: Appearance of the particles.

    Returns:
        As `particle_pairs`, with views of `h - 24` pixels; the kind is `given`.

    Example:
        >>> photograph(torch.zeros(2, 2, 88, 88))["pair"].shape
        torch.Size([2, 2, 1, 64, 64])
    """
    if flow.ndim != 4 or flow.shape[1] != 2 or flow.shape[2] != flow.shape[3]:
        raise InputError("flow", "displacements [n, 2, h, h]", flow)
    draws = ParticleImageDraws(torch.Generator(flow.device).manual_seed(seed), len(flow))
    return _labeled(
        flow, _particle_frames(flow, draws, seeding or Seeding()), ["given"] * len(flow)
    )


def _labeled(field: Tensor, pair: Tensor, kinds: list[str]) -> ParticlePairs:
    return ParticlePairs(
        pair=pair,
        flow=field[..., MARGIN:-MARGIN, MARGIN:-MARGIN].contiguous(),
        names=[f"{kind}_{number:05d}" for number, kind in enumerate(kinds)],
        kinds=kinds,
    )


def _particle_frames(field: Tensor, draws: ParticleImageDraws, seeding: Seeding) -> Tensor:
    """Seed particles in flow fields and render the two frames.

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
        frames.append(_particle_spots(place + time * moved, bright, deviation, whole))
    frames_seen = torch.stack(frames, 1)[..., MARGIN:-MARGIN, MARGIN:-MARGIN]
    sensor = noise[:, None] * draws.normal(*frames_seen.shape[1:])
    return (frames_seen + background[:, None] + sensor).clamp(0, 1)[:, :, None]


def _particle_spots(place: Tensor, bright: Tensor, deviation: Tensor, size: int) -> Tensor:
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
