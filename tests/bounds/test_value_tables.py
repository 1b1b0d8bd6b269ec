"""A table of values refuses what is none, and fits what its symmetry allows."""

from __future__ import annotations

import numpy as np
import pytest
from equivariant_worlds import world
from scipy.optimize import minimize

from orbical import groups
from orbical.bounds import (
    ValueTable,
    best_equivariant,
    regression,
)
from orbical.errors import InputError


@pytest.mark.parametrize("name", ["C2", "C4", "S3", "SO(2)"])
def test_best_fit_is_the_least_squares_solution_of_the_stacked_system(name: str) -> None:
    for seed in range(10):
        table, matrices = world(name, seed)
        fitted = best_equivariant(table, matrices)
        for o in range(table.orbit.max() + 1):
            rows = np.flatnonzero(table.orbit[table.point] == o)
            ways = np.bincount(table.point)[table.point[rows]]
            weight = np.sqrt(table.mass[table.point[rows]] / ways)
            system = (weight[:, None, None] * matrices[table.element[rows]]).reshape(
                -1, 2 + (name == "S3")
            )
            target = (weight[:, None] * table.value[table.point[rows]]).ravel()
            start = np.linalg.lstsq(system, target, rcond=None)[0]
            for r in rows:
                expected = matrices[table.element[r]] @ start
                assert np.allclose(fitted[table.point[r]], expected, atol=1e-6)


def test_the_best_fit_is_a_plain_mean_only_for_uniform_masses_and_orthogonal_matrices() -> None:
    moves = [[0, 1], [1, 0]]
    value = np.array([[1.0, 2.0], [5.0, 3.0]])
    swap = np.array([np.eye(2), [[0, 1], [1, 0]]])
    shear = np.array([np.eye(2), [[1, 3], [0, -1]]])  # of order two, not orthogonal
    for matrices, mass, plain in (
        (swap, [0.5, 0.5], True),
        (swap, [0.2, 0.8], False),
        (shear, [0.5, 0.5], False),
    ):
        table = ValueTable.from_permutations(moves, value, mass=mass)
        mean = (value[0] + np.linalg.inv(matrices[1]) @ value[1]) / 2
        start = best_equivariant(table, matrices)[0]
        assert np.allclose(start, mean) == plain
        best = minimize(
            lambda v, m=matrices, w=mass: sum(
                w[i] * np.square(value[i] - m[i] @ v).sum() for i in range(2)
            ),
            np.zeros(2),
        )
        assert np.allclose(start, best.x, atol=1e-4)


def test_a_stabilizer_confines_the_fit_to_what_it_fixes() -> None:
    """At the origin an equivariant vector field is 0, so all of f's square is unavoidable there."""
    group = groups.cyclic(4)
    table = ValueTable.from_data([[0.0, 0.0]], [[3.0, 4.0]], group)
    assert len(table.point) == 4
    assert np.allclose(best_equivariant(table, group.linear("plane")), 0)
    assert regression(table, group.linear("plane"))["thm3"].value == pytest.approx(25)
    once = ValueTable([0], [[3.0, 4.0]], point=[0], element=[0])
    assert regression(once, group.linear("plane"))["thm3"].value == pytest.approx(0)


def test_products_of_elements_link_points_under_a_group_that_does_not_contain_them() -> None:
    """The truth f(x) = x is exactly equivariant, so nothing is unavoidable."""
    group = groups.rotations3d(32)
    matrices = group.linear("space")
    rng = np.random.default_rng(0)
    starts = rng.normal(size=(3, 3))
    turns = np.linalg.solve(matrices[[5, 9, 0, 3]], matrices[[7, 20, 4, 0]])
    x = np.concatenate([starts, np.einsum("kij,nj->nki", turns, starts).reshape(-1, 3)])
    table = ValueTable.from_data(x, x, group)
    assert table.orbit.max() == 2
    reached = np.linalg.solve(
        matrices[table.undone],
        (matrices[table.element] @ starts[table.orbit[table.point], :, None]),
    )
    assert np.allclose(reached[..., 0], x[table.point], atol=1e-7)
    assert regression(table, matrices)["thm3"].value == pytest.approx(0, abs=1e-12)
    twisted = ValueTable.from_data(x, x[:, [1, 2, 0]], group)
    assert regression(twisted, matrices)["thm3"].value > 0.1


def test_floors_under_products_never_exceed_the_error_of_an_equivariant_model() -> None:
    group = groups.translations(2, 1)
    matrices = np.broadcast_to(np.eye(2), (len(group), 2, 2))
    rng = np.random.default_rng(1)
    for _ in range(20):
        x = rng.integers(0, 5, (12, 2)).astype(float)  # within two steps of each other
        value, mass = rng.normal(size=(12, 2)), rng.dirichlet(np.ones(12))
        table = ValueTable.from_data(x, value, group, mass=mass)
        floor = regression(table, matrices)["thm3"].value
        assert floor == pytest.approx(mass @ np.square(value - mass @ value).sum(1))


def test_points_linked_only_through_others_have_no_elements() -> None:
    group = groups.translations(1, 1)
    x = np.array([[0.0, 0.0], [2.0, 0.0], [4.0, 0.0]])
    table = ValueTable.from_data(x, x, group)
    assert table.orbit.tolist() == [0, 0, 0]
    assert table.element is None
    assert regression(table)["thm2"].value == pytest.approx(8 / 3)
    with pytest.raises(InputError, match="elements that reach each point"):
        regression(table, np.broadcast_to(np.eye(2), (len(group), 2, 2)))


def test_a_diagonal_variance_cannot_turn() -> None:
    group = groups.rotations(8)
    x = [[1.0, 0.0], [0.0, 1.0]]
    for name in ("variance", "aleatoric"):
        table = ValueTable.from_data(x, x, group, **{name: [[1.0, 1.0], [1.0, 1.0]]})
        with pytest.raises(InputError, match=f"{name}: expected an invariant scalar"):
            regression(table, group.linear("plane"))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"variance": [1.0, 0.0]}, "variance: expected positive variances"),
        ({"variance": [1.0, -2.0]}, "got -2"),
        ({"variance": [[[1.0]], [[-1.0]]]}, "positive definite"),
        ({"variance": [[1.0, 2.0], [1.0, 2.0]]}, r"variance: expected shape \[2\] \(scalar\)"),
        ({"variance": [np.nan, 1.0]}, "variance: expected finite numbers"),
        ({"aleatoric": [-1.0, 1.0]}, "aleatoric: expected variances >= 0"),
        ({"mean": [1.0]}, r"mean: expected shape \[2, 1\]"),
        ({"mass": [0.5, 0.6]}, "mass: expected masses that sum to 1"),
        ({"mass": [-0.5, 1.5]}, "mass: expected masses >= 0"),
        ({"orbit": [0, -1]}, "got 1 samples without an orbit"),
        ({"orbit": [0]}, r"orbit: expected shape \[2\]"),
        ({"point": [0, 1]}, "point, element: expected both or neither"),
        ({"point": [0], "element": [0]}, "point: expected an element for every"),
        ({"point": [0, 2], "element": [0, 0]}, "point: expected whole numbers from 0 below 2"),
    ],
)
def test_a_value_table_refuses_what_is_none(arguments: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        ValueTable(**{"orbit": [0, 0], "value": [1.0, 2.0], **arguments})


def test_covariances_must_be_symmetric() -> None:
    with pytest.raises(InputError, match="variance: expected symmetric covariances"):
        ValueTable([0], [[1.0, 2.0]], variance=[[[1.0, 0.5], [0.0, 1.0]]])


def test_a_representation_that_does_not_fit_is_refused() -> None:
    table = ValueTable.from_permutations([[0, 1], [1, 0]], [1.0, 2.0])
    wrong = {
        r"expected 'invariant' or matrices \[K, 1, 1\], got 'vector'": "vector",
        r"expected matrices of shape \[K, 1, 1\]": np.eye(2)[None],
        "finite and invertible": np.zeros((2, 1, 1)),
        "up to 1, got 1": np.ones((1, 1, 1)),
    }
    for message, representation in wrong.items():
        with pytest.raises(InputError, match=message):
            regression(table, representation)
    with pytest.raises(InputError, match="table: expected group elements"):
        regression(ValueTable([0, 0], [1.0, 2.0]), np.ones((2, 1, 1)))
    with pytest.raises(InputError, match="table: expected a ValueTable"):
        regression([1.0])
