"""Vector fields on a plane: where the points lie, and which symmetries the fields have."""

from __future__ import annotations

import math

import pytest
import torch

from orbical.groups import rotations3d
from orbical_studies.data import vector_fields
from orbical_studies.data.planar_fields import DOMAINS, FIELDS, REACH, sinusoid, spiral, whole_field


def points(count: int = 50) -> torch.Tensor:
    return torch.randn(count, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


def about_z(angle: float) -> torch.Tensor:
    c, s = math.cos(angle), math.sin(angle)
    return torch.tensor([[c, -s, 0], [s, c, 0], [0, 0, 1]], dtype=torch.float64)


def test_the_fields_are_their_formulas() -> None:
    x = torch.tensor([[3.0, 4.0, 0.0]], dtype=torch.float64)
    assert torch.equal(spiral(x), torch.tensor([[-4.0, 3.0, 0.0]], dtype=torch.float64))
    assert torch.allclose(sinusoid(x), -(math.sin(5.0) ** 2) * x)


def test_the_sinusoid_commutes_with_every_rotation_and_with_inversion() -> None:
    x = points()
    matrices = torch.from_numpy(rotations3d(16).parts["space"][:, :3, :3].copy()).double()
    for matrix in (*matrices, -torch.eye(3, dtype=torch.float64)):
        assert torch.allclose(sinusoid(x @ matrix.T), sinusoid(x) @ matrix.T, atol=1e-12)


def test_the_spiral_commutes_with_turns_of_the_plane_and_reverses_in_a_mirror() -> None:
    x = points()
    turn, mirror = about_z(0.7), torch.diag(torch.tensor([1.0, -1.0, 1.0], dtype=torch.float64))
    assert torch.allclose(spiral(x @ turn.T), spiral(x) @ turn.T)
    assert torch.allclose(spiral(x @ mirror.T), -spiral(x) @ mirror.T)


@pytest.mark.parametrize("field", FIELDS)
@pytest.mark.parametrize("domain", DOMAINS)
def test_drawn_points_fill_their_domain_evenly_without_noise(field: str, domain: str) -> None:
    x, y = vector_fields(field, domain, samples=20_000, seed=3)
    assert x.dtype == y.dtype == torch.float32
    assert torch.equal(x[:, 2], torch.zeros(len(x)))
    assert torch.allclose(FIELDS[field](x), y, atol=1e-4)
    squared = x.double().square().sum(1)
    expected = 2 * REACH**2 / 3 if domain == "square" else REACH**2 / 2
    assert float(squared.mean()) == pytest.approx(expected, rel=0.02)
    if domain == "disc":
        assert float(squared.max()) <= REACH**2 + 1e-4
    else:
        assert float(x.abs().max()) <= REACH
        assert float(squared.max()) > 1.8 * REACH**2
    again, _ = vector_fields(field, domain, samples=20_000, seed=3)
    other, _ = vector_fields(field, domain, samples=20_000, seed=4)
    assert torch.equal(x, again)
    assert not torch.equal(x, other)


def test_the_whole_disc_is_made_of_whole_rings() -> None:
    x, _ = whole_field("spiral", "disc", side=12)
    turned = x @ about_z(2 * math.pi / 12).T
    assert float(torch.cdist(turned, x).amin(1).max()) < 1e-6


def test_the_whole_square_has_the_moments_of_a_square() -> None:
    x, y = whole_field("sinusoid", "square", side=200)
    assert float(x.square().sum(1).mean()) == pytest.approx(50 / 3, rel=1e-4)
    assert float(x.square().sum(1).square().mean()) == pytest.approx(250 + 2 * 625 / 9, rel=1e-3)
    assert y.dtype == torch.float64
