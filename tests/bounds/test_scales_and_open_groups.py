"""No threshold is absolute, and what an open or inexact matching finds is marked in the table."""

from __future__ import annotations

import numpy as np
import pytest

from orbical import groups
from orbical.bounds import (
    OrbitTable,
    ValueTable,
    certified_ceiling,
    classification,
    compare_groups,
    match_elements,
    match_invariants,
    match_orbits,
    regression,
    taxonomy,
)

SCALES = [10.0**power for power in (-12, -9, -6, -3, 0, 3, 6, 9, 12)]


def opposite_points(size: int = 40) -> tuple[np.ndarray, np.ndarray]:
    """Points and their opposites, with labels that C2 leaves as they are."""
    rng = np.random.default_rng(0)
    half = rng.uniform(0.5, 2, (size, 2)) * rng.choice([-1, 1], (size, 2))
    return np.concatenate([half, -half]), np.tile(rng.integers(0, 2, size), 2)


@pytest.mark.parametrize("scale", SCALES)
def test_orbits_do_not_depend_on_the_unit_of_length(scale: float) -> None:
    x, label = opposite_points()
    expected = match_orbits(x, "cyclic:2")
    found = match_orbits(scale * x, "cyclic:2")
    assert (found.orbit == expected.orbit).all()
    assert (found.stabilizer == expected.stabilizer).all()
    assert found.exact
    assert OrbitTable.from_data(scale * x, label, "cyclic:2").accuracy_ceiling == 1


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("column", [0, 1])
def test_columns_have_their_own_units(scale: float, column: int) -> None:
    rng = np.random.default_rng(1)
    x = rng.uniform(0, 1, (50, 2))
    x[:, column] = scale * rng.choice([1.0, 1.6], 50)
    assert match_orbits(x, groups.trivial()).count == 50
    both = np.concatenate([x, -x])
    found = match_orbits(both, "cyclic:2")
    assert found.count == 50
    assert (found.orbit[:50] == found.orbit[50:]).all()
    point, element, _ = match_elements(both, "cyclic:2", found)
    assert (np.sort(point) == np.arange(100)).all()
    assert (element[np.argsort(point)] == np.repeat([0, 1], 50)).all()


@pytest.mark.parametrize("scale", SCALES)
def test_bounds_of_regression_do_not_depend_on_the_unit_of_the_values(scale: float) -> None:
    """A model that is not invariant is recognized as such, however small its values are."""
    rng = np.random.default_rng(2)
    value, mean = rng.normal(size=(2, 12, 1))
    orbit, variance = np.arange(12) // 2, np.full(12, 0.01)
    expected = regression(ValueTable(orbit, value, mean=mean, variance=variance))
    table = ValueTable(orbit, scale * value, mean=scale * mean, variance=scale**2 * variance)
    found = regression(table)
    for name, bound in expected.items():
        assert (found[name].applies, found[name].vacuous) == (bound.applies, bound.vacuous), name
    assert not found["vector_lower"].applies
    assert found["thm3"].value == pytest.approx(scale**2 * expected["thm3"].value)
    assert found["gence"].value == pytest.approx(expected["gence"].value)


@pytest.mark.parametrize("scale", SCALES)
def test_kinds_of_invariance_do_not_depend_on_units(scale: float) -> None:
    x, value = np.array([[1.0, 0.0], [-1.0, 0.0]]), np.array([1.0, -1.0])
    kinds = taxonomy(x, scale * value, "cyclic:2", support=0.1).totals()
    assert kinds["incorrect"] == pytest.approx(0.5)
    rows = compare_groups((scale * x, scale * value), ["cyclic:2"], representation="invariant")
    assert rows.rows()[1]["incorrect"] == pytest.approx(0.5)


def test_an_open_group_certifies_no_lower_end() -> None:
    """Labels are noise on spheres: no model that SO(3) leaves invariant exceeds one half."""
    rng = np.random.default_rng(3)
    x = rng.normal(size=(400, 3))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    table = OrbitTable.from_data(x, rng.integers(0, 2, 400), groups.rotations3d(32))
    assert not table.closed
    low, high = certified_ceiling(table)
    assert low == 0
    assert high == 1
    assert not table.with_predictions(np.full(len(table.mass), 0.9)).closed
    bounds = classification(table.with_predictions(np.full(len(table.mass), 0.9)))
    assert not bounds["least_ece_upper"].applies
    assert bounds["accuracy_ceiling"].applies
    values = ValueTable.from_data(x, x[:, :1], groups.rotations3d(8))
    assert not regression(values)["nll_bleed_full"].applies
    closed = OrbitTable.from_data(x[:, :2], rng.integers(0, 2, 400), "cyclic:4")
    assert closed.closed


def test_invariants_within_a_tolerance_give_estimates_not_bounds() -> None:
    rng = np.random.default_rng(4)
    radius, label = rng.uniform(0, 1, 300), rng.integers(0, 2, 300)
    joined = OrbitTable.from_labels(match_invariants(radius, tolerance=0.02), label)
    assert joined.tolerance == 0.02
    ceiling = classification(joined)["accuracy_ceiling"]
    assert not ceiling.applies
    assert ceiling.kind == "estimate"
    exact = OrbitTable.from_labels(match_invariants(radius, tolerance=1e-12), label)
    assert classification(exact)["accuracy_ceiling"].applies
