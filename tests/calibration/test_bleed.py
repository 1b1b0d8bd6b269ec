"""Aleatoric bleed: where it stands, and where likelihood leads an invariant model."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy import optimize
from torch import Tensor

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
    with pytest.raises(InputError, match="orbit: expected 2 integers"):
        bleed.nll_optimal_bleed([1.0, 2.0], [0.0, 1.0])
    with pytest.raises(InputError, match="fit: expected the shape"):
        bleed.nll_optimal_bleed([1.0, 2.0], [0, 0], fit=[1.0])
    with pytest.raises(InputError, match="weights: expected finite"):
        bleed.nll_optimal_bleed([1.0, 2.0], [0, 0], weights=[-1.0, 2.0])


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


def test_nll_optimal_bleed_is_where_likelihood_leads_an_invariant_model() -> None:
    """Minimize the likelihood over one mean and one variance for each orbit and coordinate."""
    rng = np.random.default_rng(0)
    target, orbit = rng.normal(size=(9, 2)), np.array([0, 0, 0, 1, 1, 1, 1, 2, 2])
    mass = rng.uniform(0.5, 1.5, size=9)

    def loss(parameters: np.ndarray) -> float:
        mean, log_variance = parameters.reshape(2, 3, 2)[:, orbit]
        density = (target - mean) ** 2 / np.exp(log_variance) + log_variance
        return float((mass[:, None] * density).sum())

    best = optimize.minimize(loss, np.zeros(12), tol=1e-14).x.reshape(2, 3, 2)
    reported = np.exp(best[1])[orbit]
    expected = (mass[:, None] * reported**2).sum(0) / mass.sum()
    result = bleed.nll_optimal_bleed(target, orbit, weights=mass)
    np.testing.assert_allclose(result.per_coordinate.numpy(), expected, rtol=1e-4)
    assert result.total.item() == pytest.approx(result.per_coordinate.sum().item())


def test_nll_optimal_bleed_of_a_field_that_turns_against_the_symmetry() -> None:
    """f(x) = (x rotated by 90 degrees) is equivariant; a constant field is not, and bleeds."""
    angle = torch.arange(8, dtype=torch.float64) * (2 * math.pi / 8)
    turns = torch.stack([
        torch.stack([angle.cos(), -angle.sin()], -1), torch.stack([angle.sin(), angle.cos()], -1)
    ], -2)  # fmt: skip

    def best_equivariant(field: Tensor) -> Tensor:
        canonical = torch.einsum("kji,kj->ki", turns, field).mean(0)
        return turns @ canonical

    orbit = torch.zeros(8, dtype=torch.long)
    swirl = torch.stack([-angle.sin(), angle.cos()], -1)
    constant = torch.tensor([1.0, 0.0], dtype=torch.float64).expand(8, 2)
    right = bleed.nll_optimal_bleed(swirl, orbit, fit=best_equivariant(swirl))
    wrong = bleed.nll_optimal_bleed(constant, orbit, fit=best_equivariant(constant))
    assert right.total.item() == pytest.approx(0, abs=1e-28)
    # The best equivariant fit of a constant field is 0, so all of it becomes variance.
    assert wrong.per_coordinate.tolist() == pytest.approx([1.0, 0.0])
