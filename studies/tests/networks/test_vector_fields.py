"""Networks of vector fields: equivariance of mean and covariance, form, size, refusals."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import orbical as ob
from orbical_studies.networks import parameters_of
from orbical_studies.networks.vector_fields import VectorFieldNet, VectorPerceptron


def points(count: int = 40) -> torch.Tensor:
    return 3 * torch.randn(count, 3, generator=torch.Generator().manual_seed(0)).double()


def of_space() -> ob.groups.Group:
    """Rotations, inversion, and so mirrors."""
    inversion = ob.groups.from_matrices(space=[np.eye(3), -np.eye(3)])
    return ob.groups.product(ob.groups.rotations3d(20), inversion)


def made(kind: type[torch.nn.Module], variance: str) -> torch.nn.Module:
    torch.manual_seed(1)
    return kind(variance).double()


@pytest.mark.parametrize(("variance", "form"), [("scalar", "variance"), ("full", "covariance")])
def test_the_mean_turns_with_the_points(variance: str, form: str) -> None:
    task = ob.tasks.Regression(ob.actions.Vectors(), "vector", uncertainty=form)
    network = made(VectorFieldNet, variance)
    ob.testing.assert_equivariant(network, points(), group=of_space(), task=task)


@pytest.mark.parametrize("variance", ["scalar", "full"])
def test_the_variance_stays_and_the_covariance_turns(variance: str) -> None:
    network, x = made(VectorFieldNet, variance), points()
    for matrix in torch.from_numpy(of_space().parts["space"][:, :3, :3].copy()):
        before, after = network(x)[1], network(x @ matrix.T)[1]
        turned = before if variance == "scalar" else matrix @ before @ matrix.T
        assert torch.allclose(after, turned, atol=1e-9)


def test_the_perceptron_is_not_equivariant() -> None:
    task = ob.tasks.Regression(ob.actions.Vectors(), "vector", uncertainty="variance")
    with pytest.raises(AssertionError, match="not equivariant"):
        ob.testing.assert_equivariant(
            made(VectorPerceptron, "scalar"), points(), group=of_space(), task=task
        )


def test_the_mean_is_a_multiple_of_the_point_that_varies_with_its_length() -> None:
    network, x = made(VectorFieldNet, "scalar"), points()
    mean = network(x).mean.detach()
    factor = (mean * x).sum(1) / x.square().sum(1)
    assert torch.allclose(mean, factor[:, None] * x, atol=1e-10)
    assert float(factor.std()) > 1e-3 * float(factor.abs().mean())


def test_the_covariance_differs_along_and_across_the_point() -> None:
    network, x = made(VectorFieldNet, "full"), points(5)
    covariance = network(x).covariance.detach()
    outward = x / x.norm(dim=1, keepdim=True)
    along = torch.einsum("ni,nij,nj->n", outward, covariance, outward)
    across = (covariance.diagonal(dim1=1, dim2=2).sum(1) - along) / 2
    expected = (
        across[:, None, None] * torch.eye(3)
        + (along - across)[:, None, None] * outward[:, :, None] * outward[:, None, :]
    )
    assert torch.allclose(covariance, expected, atol=1e-9)
    assert float((along - across).abs().max()) > 1e-4


def test_all_networks_are_of_like_size() -> None:
    sizes = [
        parameters_of(network)
        for network in (
            *(VectorFieldNet("scalar"), VectorFieldNet("full")),
            *(VectorPerceptron("scalar"), VectorPerceptron("diagonal")),
        )
    ]
    assert max(sizes) < 1.15 * min(sizes)


def test_gradients_are_finite_at_the_origin() -> None:
    for variance in ("scalar", "full"):
        network = made(VectorFieldNet, variance)
        sum(part.sum() for part in network(torch.zeros(2, 3).double())).backward()
        assert all(bool(values.grad.isfinite().all()) for values in network.parameters())


def test_a_variance_for_each_coordinate_cannot_rotate() -> None:
    with pytest.raises(KeyError, match="diagonal"):
        VectorFieldNet("diagonal")
