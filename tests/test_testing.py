"""assert_equivariant: passes, fails, follows the precision, names the worst element."""

from __future__ import annotations

import pytest
import torch

import orbical as ob
from orbical.errors import InputError
from orbical.testing import TOLERANCE

POOL = torch.nn.Sequential(torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten())


@pytest.mark.parametrize("dtype", list(TOLERANCE))
def test_an_invariant_network_passes_in_every_precision(dtype):
    images = torch.rand(4, 3, 8, 8).to(dtype)
    ob.testing.assert_equivariant(POOL, images, group="dihedral:4", task="classification")


def test_the_worst_element_is_named():
    def half_blind(x):  # looks at the upper half only, so half turns are worst
        return x[:, :, :4].mean((2, 3))

    images = torch.zeros(1, 2, 8, 8)
    images[0, 0, :4] = 5
    with pytest.raises(AssertionError, match=r"at angle 180 \(element 2\), 3 of 4 elements"):
        ob.testing.assert_equivariant(half_blind, images, group="cyclic:4", task="classification")


def test_a_tolerance_can_be_given():
    images = torch.rand(2, 2, 8, 8)

    def nearly(x):
        return x.mean((2, 3)) + 1e-3 * x[:, :, 0, 0]

    error = ob.testing.equivariance_error(nearly, images, group="cyclic:4", task="classification")
    assert 1e-5 < error.largest < 1e-2
    ob.testing.assert_equivariant(
        nearly, images, group="cyclic:4", task="classification", tolerance=1e-2
    )


def slopes(pair):
    """The slope of the change between two frames: dx to the right, dy down."""
    change = torch.nn.functional.pad(pair[:, 1] - pair[:, 0], (1, 1, 1, 1))
    across = change[..., 1:-1, 2:] - change[..., 1:-1, :-2]
    down = change[..., 2:, 1:-1] - change[..., :-2, 1:-1]
    return torch.cat([across, down], 1)


def test_the_slope_of_a_change_is_a_vector_field_that_reversed_time_turns_round():
    pairs = torch.rand(2, 2, 1, 9, 9)
    ob.testing.assert_equivariant(slopes, pairs, group="dihedral:4*time_reversal", task="flow")


def test_two_channels_of_a_change_are_no_vector_field():
    """They turn as images, but nothing turns their vectors."""
    pairs = torch.rand(2, 2, 2, 9, 9)
    with pytest.raises(AssertionError, match="not equivariant under cyclic:4"):
        ob.testing.assert_equivariant(
            lambda pair: pair[:, 1] - pair[:, 0], pairs, group="cyclic:4", task="flow"
        )


def test_no_samples_are_refused():
    with pytest.raises(InputError, match="x: no samples given"):
        ob.testing.equivariance_error(
            POOL, torch.rand(0, 3, 8, 8), group="cyclic:4", task="classification"
        )


def test_data_of_the_wrong_kind_are_refused():
    with pytest.raises(InputError, match="can be moved by plane"):
        ob.testing.assert_equivariant(
            POOL, torch.rand(1, 3, 8, 8), group="rotations3d:4", task="classification"
        )
