"""Bounds on bleed: what the paper prints, what likelihood reports, what nothing avoids."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy.optimize import minimize
from torch import Tensor

from orbical import groups
from orbical.bounds import (
    ValueTable,
    best_equivariant,
    nll_optimal_bleed,
    nll_optimal_variance,
    normalize,
    regression,
)
from orbical.errors import InputError


def test_bleed_bound_of_the_paper_is_zero_for_a_deterministic_truth_and_ours_is_not() -> None:
    """The spiral: f turns x by 90 degrees, which no model that also respects flips can do."""
    group = groups.dihedral(12)
    angle = np.deg2rad(np.arange(0, 360, 30) + 15.0)  # off every axis of reflection
    x = np.concatenate([r * np.stack([np.cos(angle), np.sin(angle)], 1) for r in (1.0, 2.0)])
    spiral = x @ np.array([[0.0, -1.0], [1.0, 0.0]]).T
    table = ValueTable.from_data(x, spiral, group, variance=np.ones(len(x)))
    bounds = regression(table, group.linear("plane"))
    assert bounds["bleed_floor"].value == 0
    assert bounds["bleed_floor"].vacuous
    assert bounds["thm3"].value == pytest.approx((1 + 4) / 2)
    assert np.allclose(best_equivariant(table, group.linear("plane")), 0)
    # The residual is f itself, perpendicular to x: r^2 along one axis, so r^2 / 2 as a scalar.
    assert bounds["nll_bleed_full"].value == pytest.approx((1 + 16) / 2)
    assert bounds["nll_bleed_scalar"].value == pytest.approx((1 + 16) / 4)
    assert not bounds["nll_bleed_diagonal"].applies
    turns = groups.rotations(12)
    allowed = ValueTable.from_data(x, spiral, turns)
    assert regression(allowed, turns.linear("plane"))["nll_bleed_full"].value == pytest.approx(0)


def test_invariant_likelihood_bleed_is_the_mean_squared_orbit_variance() -> None:
    rng = np.random.default_rng(0)
    orbit, value = rng.integers(0, 4, 40), rng.normal(size=(40, 3))
    mass = rng.dirichlet(np.ones(40))
    bounds = regression(ValueTable(orbit, value, mass))
    expected = 0.0
    for o in range(4):
        at = orbit == o
        q = mass[at].sum()
        center = mass[at] @ value[at] / q
        spread = mass[at] @ np.square(value[at] - center) / q
        expected += q * np.square(spread).sum()
        optimal = nll_optimal_variance(ValueTable(orbit, value, mass))[o]
        assert np.allclose(np.diagonal(optimal), spread)
    assert bounds["nll_bleed_diagonal"].value == pytest.approx(expected)


def test_likelihood_bleed_is_that_of_the_likelihood_optimum() -> None:
    """Minimize the Gaussian likelihood over one orbit directly."""
    swap = np.array([np.eye(2), [[0, 1], [1, 0]]])
    value, mass = np.array([[3.0, 0.0], [1.0, 1.0]]), np.array([0.3, 0.7])
    table = ValueTable.from_permutations([[0, 1], [1, 0]], value, mass=mass)

    def loss(parameters: np.ndarray) -> float:
        mean, log_variance = parameters[:2], parameters[2:]
        total = 0.0
        for i in range(2):
            m, s = swap[i] @ mean, swap[i] @ np.exp(log_variance)
            total += mass[i] * float((np.log(s) + (value[i] - m) ** 2 / s).sum())
        return total

    best = minimize(loss, np.zeros(4), method="BFGS").x
    optimal = nll_optimal_variance(table, swap)[0]
    assert np.allclose(np.diagonal(optimal), np.exp(best[2:]), rtol=1e-3)
    assert regression(table, swap)["nll_bleed_diagonal"].value == pytest.approx(
        np.square(np.diagonal(optimal)).sum()
    )


def test_true_noise_is_part_of_what_the_likelihood_reports_and_no_bleed_by_itself() -> None:
    noisy = ValueTable([0, 0, 1], [1.0, 3.0, 5.0], aleatoric=[0.5, 0.5, 2.0])
    assert np.allclose(nll_optimal_variance(noisy)[:, 0, 0], [1.5, 2.0])
    assert regression(noisy)["nll_bleed_scalar"].value == pytest.approx(2 / 3 * 1.0)
    fitted = ValueTable([0, 0, 1], [1.0, 1.0, 5.0], aleatoric=[0.5, 0.5, 2.0])
    assert regression(fitted)["nll_bleed_scalar"].value == pytest.approx(0)


def test_bleed_floor_is_what_no_invariant_variance_can_avoid() -> None:
    truth = np.array([0.5, 1.5, 2.0])
    table = ValueTable([0, 0, 1], [0.0, 0.0, 0.0], variance=[1.0, 1.0, 2.0], aleatoric=truth)
    bounds = regression(table)
    assert bounds["bleed_floor"].value == pytest.approx(2 / 3 * 0.25)
    assert bounds["bleed"].value == pytest.approx(bounds["bleed_floor"].value)
    swap = np.array([np.eye(2), [[0, 1], [1, 0]]])
    turning = ValueTable.from_permutations(
        [[0, 1], [1, 0]], np.zeros((2, 2)), aleatoric=[[1.0, 2.0], [2.0, 1.0]]
    )
    assert regression(turning, swap)["bleed_floor"].value == pytest.approx(0)
    fixed = ValueTable.from_permutations(
        [[0, 1], [1, 0]], np.zeros((2, 2)), aleatoric=[[1.0, 2.0], [1.0, 2.0]]
    )
    assert regression(fixed, swap)["bleed_floor"].value == pytest.approx(0.5)


def test_nll_optimal_bleed_is_where_likelihood_leads_an_invariant_model() -> None:
    """Minimize the likelihood over one mean and one variance for each orbit and coordinate."""
    rng = np.random.default_rng(0)
    target, orbit = rng.normal(size=(9, 2)), np.array([0, 0, 0, 1, 1, 1, 1, 2, 2])
    mass = rng.uniform(0.5, 1.5, size=9)

    def loss(parameters: np.ndarray) -> float:
        mean, log_variance = parameters.reshape(2, 3, 2)[:, orbit]
        density = (target - mean) ** 2 / np.exp(log_variance) + log_variance
        return float((mass[:, None] * density).sum())

    best = minimize(loss, np.zeros(12), tol=1e-14).x.reshape(2, 3, 2)
    reported = np.exp(best[1])[orbit]
    expected = (mass[:, None] * reported**2).sum(0) / mass.sum()
    result = nll_optimal_bleed(ValueTable(orbit, target, normalize(mass)))
    np.testing.assert_allclose(result, expected, rtol=1e-4)


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
    right = nll_optimal_bleed(ValueTable(orbit, swirl), fit=best_equivariant(swirl))
    wrong = nll_optimal_bleed(ValueTable(orbit, constant), fit=best_equivariant(constant))
    assert right.sum() == pytest.approx(0, abs=1e-28)
    # The best equivariant fit of a constant field is 0, so all of it becomes variance.
    assert wrong.tolist() == pytest.approx([1.0, 0.0])


def test_a_fit_of_another_shape_is_refused() -> None:
    with pytest.raises(InputError, match="fit: expected shape"):
        nll_optimal_bleed(ValueTable([0, 0], [1.0, 2.0]), fit=[1.0])
