"""Turbulence that obeys its equations, from small spectral solvers in a periodic box.

Random waves of one scale evolve freely for about one turnover time. Steps are of second order, with
viscosity exact and products free of aliasing (two thirds of the waves).
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional

SIZE, CUBE, SLICES = 160, 64, 5
"""Grid of a plane flow and of a cube, and how many planes of a cube are taken."""
SPEEDS = (1.0, 5.0)
"""Range of the largest displacement in pixels."""


def _waves(size: int, dimensions: int) -> Tensor:
    """Return whole wave numbers `[dimensions, size, ..., size // 2 + 1]`."""
    whole, half = torch.fft.fftfreq(size) * size, torch.fft.rfftfreq(size) * size
    return torch.stack(torch.meshgrid(*[whole] * (dimensions - 1), half, indexing="ij"))


def _random(waves: Tensor, scale: float, count: int, draw: torch.Generator) -> Tensor:
    """Return spectra `[count, ...]` of smooth noise whose waves are about `scale` to a box."""
    size, axes = waves.shape[1], tuple(range(-len(waves), 0))
    noise = torch.randn(count, *[size] * len(waves), generator=draw)
    length = waves.square().sum(0)
    band = length.sqrt() * (-length / scale**2).exp()
    return torch.fft.rfftn(noise, dim=axes) * band


def _evolved(
    spectrum: Tensor,
    rate: Callable[[Tensor], Tensor],
    waves: Tensor,
    viscosity: float,
    step: float,
    steps: int,
) -> Tensor:
    """Integrate `rate` and viscosity by the midpoint rule."""
    size = waves.shape[1]
    kept = (waves.abs().amax(0) < size / 3).float()
    half = (-viscosity * waves.square().sum(0) * step / 2).exp() * kept
    for _ in range(steps):
        middle = half * (spectrum + step / 2 * rate(spectrum))
        spectrum = half * (half * spectrum + step * rate(middle))
    return spectrum


def plane_flows(
    power: float, count: int, seed: int, viscosity: float, size: int = SIZE, steps: int = 500
) -> Tensor:
    """Return flows `[count, 2, size, size]` (x first) that carry the scalar which makes them.

    The stream function is the scalar divided by the wave number to a power: 2 is the vorticity of
    the Navier-Stokes equation in the plane, 1 the surface quasi-geostrophic equation.

    >>> flow = plane_flows(2, 1, 0, 1e-3, size=32, steps=2)
    >>> float(torch.gradient(flow[0, 0], dim=1)[0].std()) > 0
    True
    """
    waves = _waves(size, 2)
    down, across = waves
    inverse = waves.square().sum(0).clamp_min(1).pow(-power / 2)

    def back(spectrum: Tensor) -> Tensor:
        return torch.fft.irfftn(spectrum, s=(size, size), dim=(-2, -1))

    def velocity(scalar: Tensor) -> Tensor:
        stream = -inverse * scalar
        return back(torch.stack([-1j * down * stream, 1j * across * stream], 1))

    def rate(scalar: Tensor) -> Tensor:
        flow = velocity(scalar)
        slope = back(torch.stack([1j * across * scalar, 1j * down * scalar], 1))
        return -torch.fft.rfftn((flow * slope).sum(1), dim=(-2, -1))

    scalar = _random(waves, 5, count, torch.Generator().manual_seed(seed))
    speed = velocity(scalar).square().sum(1).mean((-2, -1)).sqrt()
    scalar = scalar / speed[:, None, None]
    step = 0.1 * 2 * math.pi / size
    return velocity(_evolved(scalar, rate, waves, viscosity, step, steps))


def cube_slices(count: int, seed: int, size: int = CUBE, steps: int = 120) -> Tensor:
    """Return planes `[count, 2, size, size]` of isotropic turbulence in space, x first.

    A plane holds the two components in it, which need not be free of divergence.
    """
    waves = _waves(size, 3)
    square = waves.square().sum(0).clamp_min(1)
    axes, shape = (-3, -2, -1), (size,) * 3

    def curl(field: Tensor) -> Tensor:
        return 1j * torch.linalg.cross(waves.expand_as(field.real).to(field.dtype), field, dim=1)

    def projected(field: Tensor) -> Tensor:
        return field - waves * ((waves * field).sum(1, keepdim=True) / square)

    def rate(field: Tensor) -> Tensor:
        both = (torch.fft.irfftn(part, s=shape, dim=axes) for part in (field, curl(field)))
        return projected(torch.fft.rfftn(torch.linalg.cross(*both, dim=1), dim=axes))

    draw = torch.Generator().manual_seed(seed)
    planes: list[Tensor] = []
    while len(planes) * SLICES < count:
        field = projected(_random(waves, 4, 3, draw)[None])
        speed = torch.fft.irfftn(field, s=shape, dim=axes).square().sum(1).mean().sqrt()
        step = 0.15 * 2 * math.pi / size
        field = _evolved(field / speed, rate, waves, 8e-3, step, steps)
        flow = torch.fft.irfftn(field, s=shape, dim=axes)[0]  # z, y, x
        planes.append(flow[[2, 1]][:, :: -(-size // SLICES)].transpose(0, 1)[:SLICES])
    return torch.cat(planes)[:count]


def _finer(flow: Tensor, size: int) -> Tensor:
    """Interpolate a periodic flow to more pixels, by its waves."""
    before = flow.shape[-1]
    spectrum = torch.fft.fftshift(torch.fft.fft2(flow), dim=(-2, -1))
    more = (size - before) // 2
    wider = functional.pad(spectrum, (more,) * 4)
    return torch.fft.ifft2(torch.fft.ifftshift(wider, dim=(-2, -1))).real


SOLVERS: dict[str, Callable[[int, int], Tensor]] = {
    "DNS": lambda count, seed: plane_flows(2, count, seed, 4e-4),
    "SQG": lambda count, seed: plane_flows(1, count, seed, 1e-3),
    "isotropic": lambda count, seed: _finer(cube_slices(count, seed), SIZE),
}


def solved_flows(kind: str, count: int, side: int, seed: int = 0) -> Tensor:
    """Return flows in pixels `[count, 2, side, side]` (dx to the right, dy down) of one kind.

    Args:
        kind: `DNS` (Navier-Stokes in the plane), `SQG` or `isotropic` (planes of a cube).
        count: Number of flows.
        side: In pixels, at most `SIZE`.
        seed: Of the random numbers.
    """
    flow = SOLVERS[kind](count, seed)[..., :side, :side]
    fastest = flow.norm(dim=1).amax((-2, -1))
    draw = torch.Generator().manual_seed(seed)
    speed = SPEEDS[0] + (SPEEDS[1] - SPEEDS[0]) * torch.rand(count, generator=draw)
    return flow * (speed / fastest)[:, None, None, None]
