"""Regression bounds on random worlds under C2, C4, S3 and samples of SO(2), with any density."""

from __future__ import annotations

import math

import numpy as np
import pytest
from equivariant_worlds import world
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from orbical import groups
from orbical.bounds import (
    ValueTable,
    best_equivariant,
    regression,
)

ROUNDING = 1e-7


def random_equivariant(
    table: ValueTable, matrices: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """A random equivariant function: any vector at the representative that its stabilizer fixes."""
    size, dimension = table.value.shape
    mean = np.zeros((size, dimension))
    free = rng.normal(size=(table.orbit.max() + 1, dimension)) * 3
    for o in range(len(free)):
        rows = np.flatnonzero(table.orbit[table.point] == o)
        first = table.point[rows[0]]
        same = [matrices[table.element[r]] for r in rows if table.point[r] == first]
        start = np.mean([np.linalg.inv(m) for m in same], axis=0) @ matrices[table.element[rows[0]]]
        fixed = start @ free[o]
        for r in rows:
            mean[table.point[r]] = matrices[table.element[r]] @ fixed
    return mean


def with_predictions(table: ValueTable, **predictions: np.ndarray) -> ValueTable:
    return ValueTable(
        table.orbit,
        table.value,
        table.mass,
        point=table.point,
        element=table.element,
        **predictions,
    )


def variances(table: ValueTable, matrices: np.ndarray, form: str, rng: np.random.Generator):
    """Random variances of a form that transform along the orbits as they must."""
    size, dimension = table.value.shape
    few = rng.choice([0.05, 0.3, 1.0, 4.0], table.orbit.max() + 1)
    if form == "scalar":
        return few[table.orbit]
    start = np.zeros((len(few), dimension, dimension))
    result = np.zeros((size, dimension, dimension))
    for o in range(len(few)):
        rows = np.flatnonzero(table.orbit[table.point] == o)
        root = rng.normal(size=(dimension, dimension))
        free = few[o] * (np.eye(dimension) + (0 if form == "diagonal" else root @ root.T))
        if form == "diagonal":
            free = np.diag(rng.choice([0.5, 2.0], dimension) * few[o])
        first = table.point[rows[0]]
        same = [
            np.linalg.inv(matrices[table.element[r]]) @ matrices[table.element[rows[0]]]
            for r in rows
            if table.point[r] == first
        ]
        start[o] = np.mean([m @ free @ m.T for m in same], axis=0)
        for r in rows:
            m = matrices[table.element[r]]
            result[table.point[r]] = m @ start[o] @ m.T
    return result if form == "full" else np.diagonal(result, axis1=1, axis2=2)


WORLDS = st.tuples(st.sampled_from(["C2", "C4", "S3", "SO(2)"]), st.integers(0, 2**32 - 1))


def check_world(name: str, seed: int) -> None:
    table, matrices = world(name, seed)
    rng = np.random.default_rng(seed + 1)
    forms = ["scalar", "full"] if name == "SO(2)" else ["scalar", "full", "diagonal"]
    form = forms[rng.integers(len(forms))]
    trivial = rng.random() < 0.3
    representation = "invariant" if trivial else matrices
    acting = np.broadcast_to(np.eye(table.value.shape[1]), matrices.shape) if trivial else matrices
    variance = variances(table, acting, form, rng)
    mean = random_equivariant(table, acting, rng)
    model = with_predictions(table, mean=mean, variance=variance)
    bounds = regression(model, representation)
    assert bounds["mahalanobis_floor"].applies  # these predictions count as equivariant
    check_bounds(bounds, at_minimizer=False)
    best = with_predictions(table, mean=best_equivariant(table, representation), variance=variance)
    check_bounds(regression(best, representation), at_minimizer=True)


def check_bounds(bounds, *, at_minimizer: bool) -> None:
    truth = {b.quantity: b.value for b in bounds.values() if b.kind == "exact" and b.applies}
    if at_minimizer:
        assert truth["error"] == pytest.approx(float(bounds["thm3"]), abs=ROUNDING)
        if "gence" in truth:
            truth["gence_of_minimizer"] = truth["gence"]
    for name, bound in bounds.items():
        assert bound.applies == (bound.value is not None), name
        if not bound.applies or bound.quantity not in truth or bound.kind == "exact":
            continue
        slack = ROUNDING * max(1, abs(bound.value))
        if bound.kind == "upper":
            assert truth[bound.quantity] <= bound.value + slack, name
        else:
            assert truth[bound.quantity] >= bound.value - slack, name
    if bounds["thm8"].applies:
        assert bounds["thm8"].value <= bounds["thm8_fiberwise"].value + ROUNDING
    assert bounds["thm2"].applies <= bounds["thm3"].applies


@settings(max_examples=50, deadline=None, derandomize=True)
@given(where=WORLDS)
def test_bounds_hold_on_random_worlds(where: tuple[str, int]) -> None:
    check_world(*where)


@pytest.mark.slow
@settings(max_examples=10_000, deadline=None, suppress_health_check=list(HealthCheck))
@given(where=WORLDS)
def test_bounds_hold_on_ten_thousand_random_worlds(where: tuple[str, int]) -> None:
    check_world(*where)


def check_scalar_world(seed: int) -> None:
    """Theorem 8 lives where mean and variance have one coordinate."""
    rng = np.random.default_rng(seed)
    size = int(rng.integers(1, 15))
    orbit = rng.integers(0, 5, size)
    few = rng.choice([0.1, 0.5, 2.0, 8.0], 5)[orbit]
    mean = rng.normal(size=5)[orbit] * 2
    value = rng.normal(size=size) * rng.choice([0.1, 3.0])
    mass = rng.dirichlet(np.ones(size))
    bounds = regression(ValueTable(orbit, value, mass, mean=mean, variance=few))
    check_bounds(bounds, at_minimizer=False)
    assert bounds["thm8"].applies
    fibers = {}
    for s, o in zip(few, orbit, strict=True):
        fibers.setdefault(s, set()).add(o)
    least, share = {}, {}
    for s, members in fibers.items():
        inside = np.isin(orbit, list(members))
        share[s] = mass[inside].sum()
        total = 0.0
        for o in members:
            at = orbit == o
            center = (mass[at] @ value[at]) / mass[at].sum()
            total += mass[at] @ (value[at] - center) ** 2
        least[s] = total / share[s]
    m = min(least.values())
    theorem8 = sum(share[s] * (max(0, m - s) / s) ** 2 for s in fibers)
    fiberwise = sum(share[s] * (max(0, least[s] - s) / s) ** 2 for s in fibers)
    assert bounds["thm8"].value == pytest.approx(theorem8, abs=ROUNDING)
    assert bounds["thm8_fiberwise"].value == pytest.approx(fiberwise, abs=ROUNDING)
    vector = sum(
        share[s] * max(0, math.sqrt(least[s] / (2 * s / math.pi)) - 1) ** 2 for s in fibers
    )
    assert bounds["vector_lower"].value == pytest.approx(vector, abs=ROUNDING)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(seed=st.integers(0, 2**32 - 1))
def test_scalar_bounds_hold_and_equal_their_formulas(seed: int) -> None:
    check_scalar_world(seed)


@pytest.mark.slow
@settings(max_examples=10_000, deadline=None, suppress_health_check=list(HealthCheck))
@given(seed=st.integers(0, 2**32 - 1))
def test_scalar_bounds_hold_on_ten_thousand_worlds(seed: int) -> None:
    check_scalar_world(seed)


def test_minimized_theorem_7_as_printed_is_false_and_ours_is_not() -> None:
    """Two coordinates swapped; f = (10, 0) at both points of an orbit that crosses two fibers."""
    swap = np.array([np.eye(2), [[0, 1], [1, 0]]])
    value = np.array([[10.0, 0.0], [10.0, 0.0]])
    variance = np.array([[1.0, 2.0], [2.0, 1.0]])

    def bounds_of(start: np.ndarray):
        mean = np.stack([start, start[::-1]])
        table = ValueTable.from_permutations([[0, 1], [1, 0]], value, mean=mean, variance=variance)
        return regression(table, swap)

    # Each fiber holds one point, which alone could be fitted exactly: the printed bound is 1.
    printed = 1 + 0.0
    best = min(
        (minimize(lambda v: bounds_of(v)["gence"].value, start, method="Nelder-Mead", tol=1e-3).fun)
        for start in ([5.0, 5.0], [10.0, 0.0], [0.0, 10.0])
    )
    assert best == pytest.approx(17.09, abs=0.01)
    assert best > printed
    ours = bounds_of(np.array([5.0, 5.0]))
    assert (
        ours["gence"].value <= ours["thm7_minimized"].value == pytest.approx(1 + 50 * math.pi / 6)
    )
    assert ours["vector_lower"].value == 0
    assert 16.9 < ours["vector_lower_whole"].value <= best


def test_theorem_6_needs_the_signs_not_the_triangle_inequality() -> None:
    """||a - e||^2 <= ||a||^2 + ||e||^2 fails for vectors of mixed sign; a and e have none."""
    a, e = np.array([1.0]), np.array([-1.0])
    assert np.square(a - e).sum() > np.square(a).sum() + np.square(e).sum()
    rng = np.random.default_rng(0)
    a, e = rng.random((1000, 3)), rng.random((1000, 3))
    assert (np.square(a - e).sum(1) <= np.square(a).sum(1) + np.square(e).sum(1)).all()


def test_calibrated_gaussian_scores_its_floor_in_any_dimension() -> None:
    rng = np.random.default_rng(0)
    for dimension in (1, 3):
        size = 40_000
        s = rng.uniform(0.5, 2, (size, dimension))
        mean = np.zeros((size, dimension))
        value = rng.normal(size=(size, dimension)) * np.sqrt(s)
        table = ValueTable(np.arange(size), value, mean=mean, variance=s)
        bounds = regression(table)
        assert bounds["gence"].value == pytest.approx(math.pi / 2 - 1, abs=0.02)
        assert bounds["gence_sq"].value == pytest.approx(2, abs=0.12)
        assert bounds["mahalanobis"].value == pytest.approx(dimension, abs=0.05)
        assert bounds.about["gence_if_calibrated"] == math.pi / 2 - 1


def test_measures_agree_with_those_of_calibration() -> None:
    from orbical.bounds import nll_optimal_bleed
    from orbical.calibration import aleatoric_bleed, gence, gence_sq

    rng = np.random.default_rng(0)
    orbit = np.arange(30)
    value, mean, s = (
        rng.normal(size=(30, 2)),
        rng.normal(size=(30, 2)),
        rng.uniform(0.5, 2, (30, 2)),
    )
    bounds = regression(ValueTable(orbit, value, mean=mean, variance=s))
    assert bounds["gence"].value == pytest.approx(float(gence(mean, s, value)))
    assert bounds["gence_sq"].value == pytest.approx(float(gence_sq(mean, s, value)))
    assert bounds["bleed"].value == pytest.approx(float(aleatoric_bleed(s).total))
    shared = regression(ValueTable(orbit // 3, value))
    expected = nll_optimal_bleed(ValueTable(orbit // 3, value)).sum()
    assert shared["nll_bleed_diagonal"].value == pytest.approx(expected)


def test_gence_depends_on_the_frame_and_the_mahalanobis_distance_does_not() -> None:
    rng = np.random.default_rng(0)
    value, root = rng.normal(size=(50, 2)), rng.normal(size=(50, 2, 2))
    covariance = root @ root.transpose(0, 2, 1) + 0.1 * np.eye(2)
    turn = groups.cyclic(8).linear("plane")[1]

    def measured(matrix: np.ndarray):
        turned = np.einsum("ij,njk,lk->nil", matrix, covariance, matrix)
        full = ValueTable(np.arange(50), value @ matrix.T, mean=np.zeros((50, 2)), variance=turned)
        diagonal = np.diagonal(turned, axis1=1, axis2=2)
        vector = ValueTable(
            np.arange(50), value @ matrix.T, mean=np.zeros((50, 2)), variance=diagonal
        )
        return regression(full)["mahalanobis"].value, regression(vector)["gence"].value

    here, there = measured(np.eye(2)), measured(turn)
    assert here[0] == pytest.approx(there[0])
    assert abs(here[1] - there[1]) > 0.01


def test_bounds_that_miss_something_say_what() -> None:
    bounds = regression(ValueTable([0, 0], [1.0, 2.0]))
    assert "variances" in bounds["gence"].reason
    assert "mean predictions" in bounds["error"].reason
    assert (
        "mean predictions"
        in regression(ValueTable([0, 0], [1.0, 2.0], variance=[1.0, 1.0]))["thm6"].reason
    )
    full = regression(ValueTable([0], [[1.0, 2.0]], variance=[np.eye(2)]))
    assert "mahalanobis" in full["gence"].reason
    assert (
        "one coordinate" in regression(ValueTable([0], [[1.0, 2.0]], variance=[1.0]))["thm8"].reason
    )
