"""Equation 5, Remark 3 and the Jacobian of appendix A, as the theory page states them."""

from __future__ import annotations

import numpy as np
import pytest

from orbical.bounds import ValueTable, confidence_density, regression


def test_equation_5_is_the_coarea_formula() -> None:
    """On the unit square with h_P = (x + y) / 2 the fiber at p < 1/2 has the length 2 sqrt(2) p."""
    axis = (np.arange(600) + 0.5) / 600
    confidence = (axis[:, None] + axis).ravel() / 2
    at = np.array([0.1, 0.25, 0.4])
    density, _ = confidence_density(confidence, at, window=0.05)
    gradient = np.sqrt(2) / 2
    assert density == pytest.approx(2 * np.sqrt(2) * at / gradient, rel=0.02)


def test_equation_5_asks_for_a_gradient_that_invariance_forbids_at_fixed_points() -> None:
    """A smooth function that a half turn leaves unchanged is flat at the center."""

    def invariant(x: np.ndarray) -> np.ndarray:
        return 1 / (1 + np.exp(-(x[..., 0] * x[..., 1] + np.cos(x).sum(-1))))

    x = np.random.default_rng(0).normal(size=(20, 2))
    assert invariant(x) == pytest.approx(invariant(-x))
    step = 1e-5 * np.eye(2)
    assert (invariant(step) - invariant(-step)) / 2e-5 == pytest.approx([0, 0], abs=1e-9)


def bound_of_theorem_6(variance: np.ndarray, squared_error: np.ndarray) -> float:
    points = np.arange(len(variance))
    table = ValueTable(points, np.sqrt(squared_error), mean=points * 0.0, variance=variance)
    return float(regression(table)["thm6"])


def test_remark_3_small_variances_diverge_and_large_ones_do_not() -> None:
    """Errors that grow faster than log s are harmless, constant ones near s = 0 are not."""
    grid = {n: (np.arange(n) + 0.5) / n for n in (100, 10_000)}
    near_zero = [bound_of_theorem_6(s, np.ones(n)) for n, s in grid.items()]
    assert near_zero[1] > near_zero[0] + 0.9 * np.pi / 2 * np.log(100)
    far_out = [bound_of_theorem_6(1 / s, 1 / s) for s in grid.values()]
    assert far_out == pytest.approx([1 + np.pi / 2] * 2)


@pytest.mark.parametrize("radius", [0.5, 2.0])
def test_the_jacobian_of_appendix_a_divides_by_the_stabilizer_not_by_the_orbit(
    radius: float,
) -> None:
    """Rotations of space on a sphere: the stabilizer is a circle of rotations."""
    whole_group, stabilizer, orbit = 8 * np.pi**2, 2 * np.pi, 4 * np.pi * radius**2
    jacobian = radius**2  # of G / G_x, the unit sphere, onto the orbit
    assert whole_group * jacobian / stabilizer == pytest.approx(orbit)
    assert whole_group * jacobian / orbit == pytest.approx(2 * np.pi)  # whatever the radius
