"""Correct, incorrect and extrinsic by hand; and which symmetry is safe on which data."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orbical import groups
from orbical.bounds import (
    Density,
    OrbitTable,
    compare_groups,
    confidence_density,
    taxonomy,
)
from orbical.bounds._near_points import Nearest
from orbical.errors import InputError


def brute_shares(x, label, mass, matrices, radius):
    shares = np.zeros((len(matrices), len(x), 3))
    for k, matrix in enumerate(matrices):
        for i in range(len(x)):
            gap = np.linalg.norm(x - matrix @ x[i], axis=1)
            near = np.flatnonzero(gap <= gap.min() + 1e-9)
            if gap.min() > radius:
                shares[k, i, 2] = 1
            else:
                shares[k, i, 0] = mass[near] @ (label[near] == label[i]) / mass[near].sum()
                shares[k, i, 1] = 1 - shares[k, i, 0]
    return shares


@settings(max_examples=60, deadline=None, derandomize=True)
@given(seed=st.integers(0, 2**32 - 1), radius=st.sampled_from([1e-6, 0.3, 1.0]))
def test_taxonomy_equals_its_definition(seed: int, radius: float) -> None:
    rng = np.random.default_rng(seed)
    x = rng.integers(-2, 3, (12, 2)) + rng.choice([0, 0.01])  # twins and ties abound
    label, mass = rng.integers(0, 3, len(x)), rng.dirichlet(np.ones(len(x)))
    group = groups.dihedral(4)
    found = taxonomy(x, label, group, support=radius, mass=mass)
    expected = brute_shares(x, label, mass, group.linear("plane"), radius)
    assert np.allclose(found.shares, expected)
    totals = found.totals()
    assert sum(totals.values()) == pytest.approx(1)
    assert np.allclose(found.by_sample(), expected.mean(0))
    assert np.allclose(found.by_element().mean(0), list(totals.values()))
    order = rng.permutation(len(x))
    again = taxonomy(x[order], label[order], group, support=radius, mass=mass[order])
    assert again.totals() == pytest.approx(totals)


def test_the_taxonomy_of_coarse_digits_does_not_depend_on_their_order() -> None:
    import torch

    from orbical import actions, datasets

    images, label = datasets.digits()
    x = (torch.nn.functional.avg_pool2d(images, 2) > 0.5).numpy().astype(float)
    expected = None
    for seed in range(3):
        order = np.random.default_rng(seed).permutation(len(x))
        found = taxonomy(
            x[order], label[order], "cyclic:2", support=1e-6, action=actions.Images()
        ).totals()
        expected = expected or found
        assert found == pytest.approx(expected)


@pytest.mark.parametrize("dimensions", [2, 3, 8, 9, 40])
@pytest.mark.parametrize("radius", [1e-3, 2.0, 6.0, np.inf])
def test_nearest_samples_are_nearest_in_any_dimension(dimensions: int, radius: float) -> None:
    rng = np.random.default_rng(0)
    points = rng.normal(size=(60, dimensions))
    near = points[:30] + rng.normal(size=(30, dimensions)) * 1e-5
    queries = np.concatenate([near, rng.normal(size=(30, dimensions))])
    points = np.concatenate([points, points[:20]])  # twins are equally near
    distance, query, sample = Nearest(points, radius)(queries)
    gap = np.linalg.norm(queries[:, None] - points, axis=-1)
    within = gap.min(1) <= radius
    assert (np.isfinite(distance) == within).all()
    assert np.allclose(distance[within], gap.min(1)[within], atol=1e-12)
    expected = (gap <= gap.min(1, keepdims=True) + 1e-12) & within[:, None]
    assert set(zip(query.tolist(), sample.tolist(), strict=True)) == {
        *map(tuple, np.argwhere(expected).tolist())
    }


def test_queries_without_a_neighbor_cost_no_memory() -> None:
    """All samples of a unit cube were once candidates for each of them."""
    points = np.random.default_rng(0).random((1500, 3))
    search = Nearest(points, radius=1e-6)
    tracemalloc.start()
    distance, query, _ = search(points + np.array([0.0, 0.0, 1e-3]))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert np.isinf(distance).all()
    assert len(query) == 0
    assert peak < 2e6


def test_a_known_truth_replaces_the_nearest_sample() -> None:
    x = np.array([[1.0, 0.5], [2.0, -0.5]])

    def above(points: np.ndarray) -> np.ndarray:
        return (points[:, 1] > 0).astype(int)

    everywhere = taxonomy(
        x, above(x), groups.flips(), support=lambda points: points[:, 0] > 0, function=above
    )
    kinds = {
        tuple(np.diag(m)): row.argmax(-1)
        for m, row in zip(groups.flips().linear("plane"), everywhere.shares, strict=True)
    }
    assert kinds[1, 1].tolist() == [0, 0]
    assert kinds[1, -1].tolist() == [1, 1]
    assert kinds[-1, 1].tolist() == [2, 2]
    assert kinds[-1, -1].tolist() == [2, 2]


def test_a_density_threshold_leaves_sparse_places_outside() -> None:
    rng = np.random.default_rng(0)
    crowd = rng.normal([3, 0], 0.2, (400, 2))
    x = np.concatenate([crowd, [[-3.0, 0.0]]])
    label = np.zeros(len(x), int)
    near = taxonomy(x, label, groups.cyclic(2), support=0.5).totals()
    dense = taxonomy(x, label, groups.cyclic(2), support=Density(0.05, 0.5)).totals()
    assert near["extrinsic"] < 0.1
    assert dense["extrinsic"] == pytest.approx(0.5, abs=0.01)


def test_values_that_turn_with_the_group_are_correct_and_others_are_not() -> None:
    group = groups.rotations(8)
    matrices = group.linear("plane")
    x = matrices @ np.array([1.0, 0.0])
    spiral = x @ matrices[2].T
    fixed = np.tile([1.0, 0.0], (8, 1))
    assert (
        taxonomy(x, spiral, group, support=1e-6, representation=matrices).totals()["correct"] == 1
    )
    unmoved = taxonomy(x, fixed, group, support=1e-6, representation=matrices).totals()
    assert unmoved["correct"] == pytest.approx(1 / 8)
    assert taxonomy(x, fixed, group, support=1e-6).totals()["correct"] == 1


def test_weights_and_masses_count() -> None:
    x, label = [[1.0, 0.0], [-1.0, 0.0], [5.0, 0.0]], [0, 1, 0]
    found = taxonomy(x, label, groups.cyclic(2), support=0.1, mass=[0.25, 0.25, 0.5])
    assert found.totals() == pytest.approx({"correct": 0.5, "incorrect": 0.25, "extrinsic": 0.25})


def test_taxonomy_refuses_what_is_no_support() -> None:
    x, label, group = [[1.0, 0.0]], [0], groups.cyclic(2)
    for support in (0, -1.0, True, "near"):
        with pytest.raises(InputError, match="support: expected a distance > 0"):
            taxonomy(x, label, group, support=support)
    with pytest.raises(InputError, match="support: expected a bandwidth > 0"):
        Density(1.0, 0)
    with pytest.raises(InputError, match="return a boolean for each point"):
        taxonomy(x, label, group, support=lambda points: points[:, 0])
    with pytest.raises(InputError, match=r"truth: expected \[sample\] labels"):
        taxonomy(x, [0, 1], group, support=1.0)
    with pytest.raises(InputError, match=r"representation: expected shape \[2, 1, 1\]"):
        taxonomy(x, label, group, support=1.0, representation=np.eye(2))


def test_confidence_density_equals_a_count_by_loops() -> None:
    rng = np.random.default_rng(0)
    confidence, correct = rng.random(200).round(2), rng.integers(0, 2, 200)
    mass = rng.dirichlet(np.ones(200))
    at, window = np.linspace(0, 1, 21), 0.0731
    density, accuracy = confidence_density(
        confidence, at, window=window, mass=mass, correct=correct
    )
    for p, r, right in zip(at, density, accuracy, strict=True):
        inside = np.abs(confidence - p) < window
        length = min(1, p + window) - max(0, p - window)
        assert r == pytest.approx(mass[inside].sum() / length)
        assert right == pytest.approx(mass[inside] @ correct[inside] / mass[inside].sum())


def test_confidence_density_tends_to_the_density() -> None:
    rng = np.random.default_rng(0)
    density, none = confidence_density(rng.beta(2, 2, 200_000), [0.25, 0.5], window=0.01)
    assert none is None
    assert density == pytest.approx([6 * 0.25 * 0.75, 1.5], rel=0.05)


def test_taxonomy_refuses_a_function_of_another_shape() -> None:
    x, group = np.eye(2), groups.cyclic(2)
    for answer in (np.zeros(3), np.zeros((4, 2))):
        with pytest.raises(InputError, match=r"function: expected results of shape \[4, 1\]"):
            taxonomy(x, [0, 1], group, support=0.1, function=lambda _, given=answer: given)


def test_confidence_density_refuses_bad_windows_and_values() -> None:
    with pytest.raises(InputError, match="window: expected a half-width"):
        confidence_density([0.5], [0.5], window=0)
    with pytest.raises(InputError, match=r"confidence: expected values in \[0, 1\]"):
        confidence_density([1.5], [0.5], window=0.1)
    with pytest.raises(InputError, match=r"at: expected values in \[0, 1\]"):
        confidence_density([0.5], [-0.5], window=0.1)
    with pytest.raises(InputError, match="correct: expected one for each"):
        confidence_density([0.5], [0.5], window=0.1, correct=[1, 0])


def test_a_chiral_data_set_is_safe_for_turns_and_not_for_flips() -> None:
    """Handedness decides the label: C4 keeps it, D4 does not."""
    rng = np.random.default_rng(0)
    turns = groups.cyclic(4).linear("plane")
    left = rng.uniform(0.2, 1, (30, 2))
    right = left * [1, -1]
    x = np.concatenate(
        [(turns[rng.integers(0, 4, 30)] @ half[..., None])[..., 0] for half in (left, right)]
    )
    label = np.repeat([0, 1], 30)
    answer = compare_groups((x, label), {"turns": "cyclic:4", "with flips": groups.dihedral(4)})
    base, c4, d4 = answer.candidates
    assert [each.name for each in answer.candidates] == ["trivial", "turns", "with flips"]
    assert base.table.accuracy_ceiling == c4.table.accuracy_ceiling == 1
    assert d4.table.accuracy_ceiling == pytest.approx(0.5)
    assert c4.kinds["incorrect"] == 0
    assert d4.kinds["incorrect"] > 0
    assert answer.rows()[2]["cost"] == pytest.approx(0.5)
    assert np.allclose(d4.forced[0], np.maximum(0, answer.confidence - 0.5))
    assert (c4.forced[0] == 0).all()
    assert "with flips" in repr(answer)


def test_twins_with_different_labels_are_the_fault_of_no_symmetry() -> None:
    x = [[1.0, 0.0], [1.0, 0.0], [0.0, 2.0]]
    answer = compare_groups((x, [0, 1, 0]), ["cyclic:4"])
    base, c4 = answer.candidates
    assert base.table.accuracy_ceiling == pytest.approx(2 / 3)
    assert answer.rows()[1]["cost"] is None  # no two different points share an orbit
    assert base.kinds["incorrect"] == pytest.approx(1 / 3)
    assert c4.table.accuracy_ceiling == base.table.accuracy_ceiling


def test_a_tolerance_can_only_join_more() -> None:
    rng = np.random.default_rng(0)
    x, label = rng.normal(size=(60, 2)), rng.integers(0, 2, 60)
    tolerances = (1e-6, 0.05, 0.1, 0.3)
    rows = [compare_groups((x, label), ["cyclic:4"], tolerance=t).rows()[1] for t in tolerances]
    assert [row["matched"] for row in rows] == sorted(row["matched"] for row in rows)
    assert [row["accuracy_ceiling"] for row in rows] == [1, None, None, None]


def test_comparison_refuses_bad_input() -> None:
    with pytest.raises(InputError, match=r"data: expected a pair \(x, label\)"):
        compare_groups([[1.0, 0.0]], ["cyclic:2"])
    with pytest.raises(InputError, match=r"integers, got float64; .* representation='invariant'"):
        compare_groups(([[1.0, 0.0], [0.0, 1.0]], np.array([151.0, 75.0])), ["cyclic:2"])
    with pytest.raises(InputError, match="groups: expected at least one candidate"):
        compare_groups(([[1.0, 0.0]], [0]), [])
    with pytest.raises(InputError, match="unknown name"):
        compare_groups(([[1.0, 0.0]], [0]), ["cyclik:2"])
    for alone in ("cyclic:2", groups.cyclic(2)):
        with pytest.raises(InputError, match=r"groups: expected a list or a mapping.*; pass \["):
            compare_groups(([[1.0, 0.0]], [0]), alone)


def test_matching_and_taxonomy_tell_one_story() -> None:
    """On data closed under the group, a ceiling below 1 and incorrect pairs come together."""
    rng = np.random.default_rng(1)
    group = groups.cyclic(4)
    x = (group.linear("plane")[None] @ rng.normal(size=(20, 1, 2, 1)))[..., 0].reshape(-1, 2)
    for label in (np.repeat(rng.integers(0, 2, 20), 4), rng.integers(0, 2, 80)):
        ceiling = OrbitTable.from_data(x, label, group).accuracy_ceiling
        shares = taxonomy(x, label, group, support=1e-6).totals()
        assert shares["extrinsic"] == 0
        assert (ceiling < 1) == (shares["incorrect"] > 0)
