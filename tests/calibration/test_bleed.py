"""Aleatoric bleed: where it stands, and where likelihood leads an invariant model."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from orbical.calibration.measures import bleed
from orbical.errors import InputError


def test_bleed_adds_up_over_coordinates_and_says_where() -> None:
    aleatoric = torch.tensor([[1.0, 0.0, 2.0], [3.0, 0.0, 0.0]])
    truth = torch.tensor([[1.0, 0.0, 0.0], [1.0, 0.0, 0.0]])
    total, per_coordinate = bleed.aleatoric_bleed(aleatoric, truth)
    assert per_coordinate.tolist() == [2.0, 0.0, 2.0]
    assert total.item() == 4.0
    assert bleed.aleatoric_bleed(torch.tensor([1.0, 3.0])).total.item() == 5.0
    stacked = bleed.aleatoric_bleed(torch.stack([aleatoric, 2 * aleatoric]), truth)
    assert stacked.per_coordinate.shape == (2, 3)


def test_bleed_refuses_what_is_no_variance() -> None:
    with pytest.raises(InputError, match="aleatoric: expected variances >= 0, got -1"):
        bleed.aleatoric_bleed([[1.0, -1.0]])
    with pytest.raises(InputError, match="aleatoric: expected finite values, got NaN"):
        bleed.aleatoric_bleed([1.0, math.nan])
    with pytest.raises(InputError, match="truth: expected a number or the shape"):
        bleed.aleatoric_bleed([[1.0, 1.0]], [[1.0, 1.0, 1.0]])


def test_bleed_of_covariances_is_the_same_in_every_frame() -> None:
    generator = torch.Generator().manual_seed(0)
    root = torch.randn(50, 3, 3, generator=generator, dtype=torch.float64)
    turn = torch.linalg.qr(torch.randn(3, 3, generator=generator, dtype=torch.float64)).Q
    whole = root @ root.mT  # with negative entries off the diagonal
    assert bool((whole < 0).any())
    for truth in (None, 0.7, 0.5 * whole):
        still = bleed.covariance_bleed(whole, truth)
        turned = truth if truth is None or isinstance(truth, float) else turn @ truth @ turn.T
        moved = bleed.covariance_bleed(turn @ whole @ turn.T, turned)
        assert moved.total.item() == pytest.approx(still.total.item())
        assert still.per_coordinate.sum().item() == pytest.approx(still.total.item())
    expected = np.square(np.linalg.eigvalsh(whole.numpy())).sum(1).mean()
    assert bleed.covariance_bleed(whole).total.item() == pytest.approx(expected)


def test_the_bleed_of_a_covariance_is_its_squared_distance_from_the_true_one() -> None:
    found = bleed.covariance_bleed([[[3.0, 1.0], [1.0, 2.0]]], [[[1.0, 0.0], [0.0, 2.0]]])
    assert found.per_coordinate.tolist() == [5, 1]  # of the excess [[2, 1], [1, 0]]
    assert found.total.item() == 6


def test_bleed_of_diagonal_covariances_is_that_of_their_variances() -> None:
    variance = torch.rand(20, 3, dtype=torch.float64)
    for truth in (None, 0.3):
        whole = bleed.covariance_bleed(torch.diag_embed(variance), truth)
        torch.testing.assert_close(tuple(whole), tuple(bleed.aleatoric_bleed(variance, truth)))
    stacked = bleed.covariance_bleed(torch.diag_embed(variance).expand(4, 20, 3, 3))
    assert stacked.per_coordinate.shape == (4, 3)


def test_bleed_refuses_what_is_no_covariance() -> None:
    with pytest.raises(InputError, match=r"aleatoric: expected covariances \[..., N, d, d\]"):
        bleed.covariance_bleed(torch.ones(5, 2))
    with pytest.raises(InputError, match=r"aleatoric: expected covariances, got .* not sym"):
        bleed.covariance_bleed([[[1.0, 0.5], [0.0, 1.0]]])
    with pytest.raises(
        InputError, match="aleatoric: expected covariances with eigenvalues >= 0, got -1"
    ):
        bleed.covariance_bleed([[[1.0, 2.0], [2.0, 1.0]]])
    with pytest.raises(InputError, match="truth: expected a number or the shape"):
        bleed.covariance_bleed(torch.eye(2).expand(3, 2, 2), torch.eye(2).expand(4, 2, 2))
    with pytest.raises(InputError, match="truth: expected variances >= 0, got -1"):
        bleed.covariance_bleed(torch.eye(2)[None], -1.0)
