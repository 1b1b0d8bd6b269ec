"""The Swiss roll's networks: what they cannot see, and how large they are."""

from __future__ import annotations

import pytest
import torch

from orbical.errors import InputError
from orbical_studies.networks.swiss_roll import (
    HeightInvariant,
    SymmetricSets,
    parameters_of,
    perceptron,
)


def points(count: int = 64) -> torch.Tensor:
    generator = torch.Generator().manual_seed(1)
    plane = torch.rand(count, 2, generator=generator) - 0.5
    return torch.cat([plane, torch.randint(2, (count, 1), generator=generator).float()], 1)


def swapped(x: torch.Tensor) -> torch.Tensor:
    return torch.cat([x[:, :2], 1 - x[:, 2:]], 1)


def test_the_invariant_network_cannot_tell_the_heights_apart() -> None:
    torch.manual_seed(0)
    network, x = HeightInvariant(width=32), points()
    assert torch.allclose(network(x), network(swapped(x)), atol=1e-6)
    assert network(x).std(0).min() > 1e-4  # and yet it is no constant


def test_the_perceptron_can() -> None:
    torch.manual_seed(0)
    network, x = perceptron(), points()
    assert (network(x) - network(swapped(x))).abs().max() > 1e-2


def test_a_layer_on_sets_is_its_formula() -> None:
    torch.manual_seed(0)
    layer, x = SymmetricSets(3, 4), torch.randn(5, 6, 3)
    for i in range(6):
        expected = layer.own(x[:, i]) + layer.shared(x.sum(1))
        assert torch.allclose(layer(x)[:, i], expected, atol=1e-6)


def test_both_networks_are_of_like_size() -> None:
    assert parameters_of(HeightInvariant()) == pytest.approx(parameters_of(perceptron()), rel=1e-3)


def test_a_height_other_than_0_and_1_is_refused() -> None:
    with pytest.raises(InputError, match="z = 0 or 1"):
        HeightInvariant(width=4)(torch.tensor([[0.1, 0.2, 0.5]]))
    with pytest.raises(InputError, match=r"expected \[n, 3\]"):
        HeightInvariant(width=4)(torch.zeros(2, 4))
