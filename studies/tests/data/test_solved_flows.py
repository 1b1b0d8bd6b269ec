"""Flows of the spectral solvers obey their equations."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from orbical_studies.data import solved_flows
from orbical_studies.data.solved_flows import cube_slices, plane_flows

STEPS = 60


def scalar_of(flow: Tensor, power: float) -> Tensor:
    """Return the scalar of a plane flow: its vorticity, smoothed for a power below 2."""
    down, across = solved_flows._waves(flow.shape[-1], 2)
    spectrum = torch.fft.rfft2(flow)
    curl = 1j * (across * spectrum[:, 1] - down * spectrum[:, 0])
    length = (down.square() + across.square()).clamp_min(1).sqrt()
    return torch.fft.irfft2(curl * length ** (power - 2))


@pytest.mark.parametrize("power", [1, 2])
def test_without_viscosity_a_plane_flow_moves_its_scalar_and_keeps_its_variance(power: int) -> None:
    first, last = (plane_flows(power, 2, 0, 0.0, size=64, steps=n) for n in (0, STEPS))
    before, after = (scalar_of(flow, power) for flow in (first, last))
    assert torch.allclose(after.square().mean((1, 2)), before.square().mean((1, 2)), rtol=0.01)
    assert float((after - before).norm() / before.norm()) > 0.3  # it has moved
    thick = scalar_of(plane_flows(power, 2, 0, 1e-2, size=64, steps=STEPS), power)
    assert float(thick.square().mean() / before.square().mean()) < 0.9


def test_plane_flows_have_no_divergence_and_planes_of_a_cube_have() -> None:
    def divergence(flow: Tensor) -> float:
        down, across = solved_flows._waves(flow.shape[-1], 2)
        spectrum = torch.fft.rfft2(flow)
        found = torch.fft.irfft2(1j * (across * spectrum[:, 0] + down * spectrum[:, 1]))
        return float(found.std() / scalar_of(flow, 2).std())

    assert divergence(plane_flows(2, 1, 0, 1e-3, size=64, steps=3)) < 1e-4
    sliced = cube_slices(6, 0, size=24, steps=3)
    assert sliced.shape == (6, 2, 24, 24)
    assert divergence(sliced) > 0.1


def test_finer_flows_pass_through_the_coarse_ones() -> None:
    flow = plane_flows(2, 1, 0, 1e-2, size=32, steps=2)
    finer = solved_flows._finer(flow, 64) * 4
    assert torch.allclose(finer[..., ::2, ::2], flow, atol=1e-4)
