"""Tables from ids, permutations and matched points agree with brute force; bad input is refused."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orbical import actions, groups
from orbical.bounds import (
    OrbitTable,
    ValueTable,
    classification,
    fibers_from_errors,
    match_elements,
    match_invariants,
    match_orbits,
    matching,
    normalize,
    orbits_of_permutations,
    regression,
    taxonomy,
)
from orbical.bounds._near_points import _equal_points, link_within
from orbical.errors import InputError


def closure(linked: np.ndarray) -> np.ndarray:
    """Number connected parts of a symmetric boolean matrix by repeated spreading."""
    ids = np.arange(len(linked))
    while True:
        spread = np.array([ids[row].min() for row in linked | np.eye(len(linked), dtype=bool)])
        if (spread == ids).all():
            return np.unique(ids, return_inverse=True)[1]
        ids = spread


def brute_orbits(x: np.ndarray, matrices: np.ndarray, tolerance: float) -> np.ndarray:
    """Compare every image of every point with every image of every other point."""
    images = np.einsum("kij,nj->nki", matrices, x)
    gap = np.linalg.norm(images[:, None, :, None] - images[None, :, None, :], axis=-1)
    return closure(gap.min((2, 3)) <= tolerance)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    cells=st.lists(st.tuples(st.integers(-3, 3), st.integers(-3, 3)), min_size=1, max_size=30),
    name=st.sampled_from(["trivial", "cyclic:2", "cyclic:4", "dihedral:4", "flips"]),
)
def test_matching_equals_brute_force_on_a_lattice(cells: list, name: str) -> None:
    group = groups.parse(name)
    x = np.array(cells, float)
    matrices = group.linear("plane") if "plane" in group.parts else np.eye(2)[None]
    assert (match_orbits(x, group).orbit == brute_orbits(x, matrices, 1e-6)).all()


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 2**32 - 1),
    tolerance=st.sampled_from([0.003, 0.03, 0.1, 0.4]),
    name=st.sampled_from(["cyclic:3", "cyclic:8", "dihedral:4", "rotations:12"]),
)
def test_matching_equals_brute_force_within_a_tolerance(
    seed: int, tolerance: float, name: str
) -> None:
    group = groups.parse(name)
    x = np.random.default_rng(seed).normal(size=(40, 2))
    assert (
        match_orbits(x, group, tolerance=tolerance).orbit
        == brute_orbits(x, group.linear("plane"), tolerance)
    ).all()


def test_matching_a_window_of_translations_equals_brute_force() -> None:
    group = groups.translations(2, 1)
    x = np.random.default_rng(0).integers(0, 12, (30, 2)).astype(float)
    shifts = group.parts["plane"][:, :2, 2]
    images = x[:, None] + shifts
    gap = np.linalg.norm(images[:, None, :, None] - images[None, :, None, :], axis=-1)
    assert (match_orbits(x, group).orbit == closure(gap.min((2, 3)) < 1e-6)).all()


def test_matching_sets_of_points_under_permutations() -> None:
    group = groups.permutations(3)
    rng = np.random.default_rng(0)
    clouds = rng.normal(size=(4, 3, 2))
    order = rng.permuted(np.tile(np.arange(3), (20, 1)), axis=1)
    which = rng.integers(0, 4, 20)
    x = np.take_along_axis(clouds[which], order[..., None], axis=1)
    orbit = match_orbits(x, group).orbit
    assert ((orbit[:, None] == orbit) == (which[:, None] == which)).all()


def test_matching_images_that_exact_turns_move() -> None:
    from orbical.actions import Images

    rng = np.random.default_rng(0)
    pictures = rng.integers(0, 3, (5, 1, 8, 8)).astype(float)
    which, turns = rng.integers(0, 5, 40), rng.integers(0, 4, 40)
    x = np.stack([np.rot90(pictures[w], t, (1, 2)) for w, t in zip(which, turns, strict=True)])
    orbit = match_orbits(x, groups.cyclic(4), action=Images()).orbit
    assert ((orbit[:, None] == orbit) == (which[:, None] == which)).all()


@settings(max_examples=100, deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 2**32 - 1),
    dimensions=st.integers(1, 6),
    spread=st.sampled_from([0.1, 1.0, 4.0]),
    count=st.integers(1, 120),
)
def test_linking_equals_brute_force_in_crowds_and_in_the_open(
    seed: int, dimensions: int, spread: float, count: int
) -> None:
    rng = np.random.default_rng(seed)
    centers = rng.normal(size=(5, dimensions)) * 3
    points = centers[rng.integers(0, 5, count)] + rng.normal(size=(count, dimensions)) * spread
    gap = np.linalg.norm(points[:, None] - points, axis=-1)
    ours, theirs = link_within(points, 0.7), closure(gap <= 0.7)
    assert ((ours[:, None] == ours) == (theirs[:, None] == theirs)).all()


@pytest.mark.parametrize("tolerance", [0.5, 1.5, 3.0, 5.0])
def test_linking_in_many_dimensions_within_a_wide_tolerance_equals_brute_force(
    tolerance: float,
) -> None:
    rng = np.random.default_rng(0)
    centers = rng.normal(size=(12, 20))
    points = centers[rng.integers(0, 12, 300)] + rng.normal(size=(300, 20)) * rng.choice(
        [0.01, 0.3, 0.6], (300, 1)
    )
    gap = np.linalg.norm(points[:, None] - points, axis=-1)
    assert (link_within(points, tolerance) == closure(gap <= tolerance)).all()


def test_rows_whose_keys_collide_are_told_apart() -> None:
    """Keys are sums of odd multiples: each multiplier times the other is a collision."""
    one, other = 2 * np.random.default_rng(1).integers(1, 2**62, size=2, dtype=np.int64) + 1
    rows = np.array([(1, 0), (other, 0), (0, one), (other, 0), (0, one), (-1, 0)])
    order, start = _equal_points(rows)
    assert len(start) == 4
    kinds = [{*map(tuple, part)} for part in np.split(rows[order], start[1:])]
    assert all(len(kind) == 1 for kind in kinds)


def test_crowded_cells_are_linked_by_their_nearest_points() -> None:
    rng = np.random.default_rng(3)
    left = rng.uniform([0, 0], [1, 1], (400, 2))
    right = rng.uniform([1.6, 0], [2.6, 1], (400, 2))
    points = np.concatenate([left, right])
    for tolerance in (0.3, 0.55, 0.6, 0.65, 0.9):
        parts = link_within(points, tolerance)
        gap = np.linalg.norm(left[:, None] - right, axis=-1).min()
        assert (parts.max() + 1) == (1 if gap <= tolerance else 2)


def test_invariants_of_all_rotations_find_what_many_samples_of_them_find() -> None:
    rng = np.random.default_rng(0)
    step = 360 / 48
    angle = np.deg2rad(rng.integers(0, 48, 60) * step)
    x = rng.choice([1.0, 1.5, 2.0], 60)[:, None] * np.stack([np.cos(angle), np.sin(angle)], 1)
    sampled = match_orbits(x, groups.rotations(48)).orbit
    assert (match_invariants(np.linalg.norm(x, axis=1), tolerance=1e-9).orbit == sampled).all()
    far = match_invariants([[0.0, 0.0], [3.0, 4.0], [9.0, 9.0]], tolerance=5)
    assert far.orbit.tolist() == [0, 0, 1]
    assert not far.exact
    with pytest.raises(InputError, match="invariants: expected finite values"):
        match_invariants([np.nan], tolerance=1)
    with pytest.raises(InputError, match="tolerance: expected a distance"):
        match_invariants([1.0], tolerance=0)


def test_a_tolerance_bounds_nothing() -> None:
    """Labels are a function of x here, so every accuracy is possible; single linkage joins all."""
    x, label = np.linspace(0, 1, 101)[:, None], (np.linspace(0, 1, 101) > 0.5).astype(int)
    joined = OrbitTable.from_data(
        x, label, "trivial", tolerance=0.02, confidence=np.full(101, 0.9), predicted=label * 0
    )
    for name, bound in classification(joined).items():
        assert not bound.applies, name
        assert bound.value is None or bound.kind == "estimate", name
        assert "joined" in bound.reason or bound.value is None, name
        with pytest.raises(TypeError, match="does not apply"):
            float(bound)
    assert "no bounds" in repr(joined)
    values = ValueTable.from_data(x, x, "trivial", tolerance=0.02)
    assert not any(bound.applies for bound in regression(values).values())
    ids = OrbitTable.from_labels(match_orbits(x, "trivial", tolerance=0.02), label)
    assert ids.tolerance == 0.02
    for tolerance in (None, 1e-9, 1e-7):
        exact = OrbitTable.from_data(x, label, "trivial", tolerance=tolerance)
        assert float(classification(exact)["accuracy_ceiling"]) == 1


def test_stabilizers_are_counted() -> None:
    x = [[0.0, 0.0], [1.0, 0.0], [1.0, 2.0]]
    assert match_orbits(x, groups.dihedral(4)).stabilizer.tolist() == [8, 2, 1]


@settings(max_examples=40, deadline=None, derandomize=True)
@given(cells=st.lists(st.tuples(st.integers(-2, 2), st.integers(-2, 2)), min_size=1, max_size=20))
def test_match_elements_list_every_way_from_the_representative(cells: list) -> None:
    x, group = np.array(cells, float), groups.dihedral(4)
    orbits = match_orbits(x, group)
    point, element, undone = match_elements(x, group, orbits)
    assert (undone == group.identity).all()
    start = x[orbits.representative[orbits.orbit]]
    expected = {
        (i, k)
        for i in range(len(x))
        for k in range(len(group))
        if np.allclose(group.linear("plane")[k] @ start[i], x[i])
    }
    assert set(zip(point.tolist(), element.tolist(), strict=True)) == expected
    assert (np.bincount(point) == orbits.stabilizer).all()


def test_match_elements_count_a_stabilizer_within_the_tolerance() -> None:
    x, group = [[1.0, 1e-3], [0.0, 1.0]], groups.dihedral(4)
    orbits = match_orbits(x, group, tolerance=0.01)
    point, _, _ = match_elements(x, group, orbits)
    assert orbits.stabilizer.tolist() == [2, 2]
    assert np.bincount(point).tolist() == [2, 2]


@settings(max_examples=60, deadline=None, derandomize=True)
@given(seed=st.integers(0, 2**32 - 1), size=st.integers(1, 12), generators=st.integers(1, 3))
def test_orbits_of_a_finite_action_equal_brute_force(seed: int, size: int, generators: int) -> None:
    rng = np.random.default_rng(seed)
    moves = np.stack([rng.permutation(size) for _ in range(generators)])
    linked = np.zeros((size, size), dtype=bool)
    for move in moves:
        linked[np.arange(size), move] = linked[move, np.arange(size)] = True
    assert (orbits_of_permutations(moves) == closure(linked)).all()


@settings(max_examples=60, deadline=None, derandomize=True)
@given(seed=st.integers(0, 2**32 - 1), size=st.integers(1, 30), labels=st.integers(2, 6))
def test_table_from_ids_equals_a_count_by_loops(seed: int, size: int, labels: int) -> None:
    rng = np.random.default_rng(seed)
    orbit, label = rng.integers(0, 6, size) * 5, rng.integers(0, labels, size)
    mass = rng.dirichlet(np.ones(size))
    answer = rng.random(30)
    table = OrbitTable.from_labels(orbit, label, mass=mass, labels=labels, confidence=answer[orbit])
    for row, name in enumerate(sorted(set(orbit.tolist()))):
        for y in range(labels):
            expected = sum(mass[i] for i in range(size) if orbit[i] == name and label[i] == y)
            assert table.mass[row, y] == pytest.approx(expected)
        assert table.confidence[row] == answer[name]


def test_builders_agree_on_one_world() -> None:
    rng = np.random.default_rng(0)
    group = groups.cyclic(4)
    seeds = rng.normal(size=(6, 2))
    x = np.einsum("kij,nj->nki", group.linear("plane"), seeds).reshape(-1, 2)
    label = rng.integers(0, 3, len(x))
    index = np.arange(len(x)).reshape(6, 4)
    moves = np.stack([np.roll(index, -k, axis=1).ravel() for k in range(4)])
    tables = [
        OrbitTable.from_labels(np.repeat(np.arange(6), 4), label),
        OrbitTable.from_orbits(index.tolist(), label),
        OrbitTable.from_permutations(moves, label),
        OrbitTable.from_data(x, label, group),
    ]
    for table in tables:
        assert np.allclose(table.mass, tables[0].mass)
        assert table.samples == 24


def test_a_label_that_never_occurs_lowers_the_floor() -> None:
    orbit, label = [0, 0], [0, 1]
    assert OrbitTable.from_labels(orbit, label).accuracy_floor == 0.5
    assert OrbitTable.from_labels(orbit, label, labels=3).accuracy_floor == 0


@pytest.mark.parametrize("merged", [0.2, 0.4, 0.6, 1.0])
@pytest.mark.parametrize("level", [0.0, 0.25, 0.5])
def test_unit_square_world_has_the_ceiling_of_wang_et_al(merged: float, level: float) -> None:
    assert unit_square(merged, level).accuracy_ceiling == pytest.approx(
        1 - (1 - merged) * (1 - level)
    )


@pytest.mark.parametrize("merged", [0.0, 0.04, 0.12, 0.16])
def test_unit_square_world_below_one_fifth_is_ruled_by_the_other_stripes(merged: float) -> None:
    level = 0.25
    expected = level + (1 - level) * (1 - merged) / 4
    assert unit_square(merged, level).accuracy_ceiling == pytest.approx(expected)
    assert expected > 1 - (1 - merged) * (1 - level)


def unit_square(merged: float, level: float) -> OrbitTable:
    """100 x 8 points; label 0 below y = level, above it stripes, of which one takes `merged`."""
    columns, rows = 100, 8
    x, y = np.meshgrid((np.arange(columns) + 0.5) / columns, (np.arange(rows) + 0.5) / rows)
    others = np.clip((x - merged) / max(1e-9, 1 - merged) * 4, 0, 3.999).astype(int)
    stripe = np.where(x < merged, 1, 2 + others)
    label = np.where(y < level, 0, stripe).ravel()
    index = np.arange(rows * columns).reshape(rows, columns)
    shifts = np.stack([np.roll(index, -k, axis=1).ravel() for k in range(columns)])
    return OrbitTable.from_permutations(shifts, label, labels=6)


def test_normalizing_happens_on_request_only() -> None:
    with pytest.raises(InputError, match=r"mass: expected masses that sum to 1, got a sum of 4"):
        OrbitTable([[1, 1], [2, 0]])
    assert OrbitTable(normalize([[1, 1], [2, 0]])).accuracy_ceiling == 0.75
    with pytest.raises(InputError, match="at least one positive mass"):
        normalize([[0, 0]])
    with pytest.raises(InputError, match="finite masses >= 0"):
        normalize([[-1, 2]])


@pytest.mark.parametrize(
    ("given_arguments", "message"),
    [
        ({"mass": [["much", "little"]]}, "mass: expected an array of numbers"),
        ({"mass": [[-0.5, 1.5]]}, r"mass: expected masses >= 0, got -0.5"),
        ({"mass": [[0.5, 0.6]]}, r"mass: expected masses that sum to 1"),
        ({"mass": [0.5, 0.5]}, r"mass: expected shape \[orbit, label\], got shape \(2,\)"),
        ({"mass": [[1.0]]}, r"mass: expected at least 2 labels"),
        ({"mass": [[np.nan, 1.0]]}, r"mass: expected finite numbers"),
        ({"mass": np.zeros((0, 2))}, r"mass: expected at least one value"),
        ({"confidence": [1.5]}, r"confidence: expected values in \[0, 1\], got .*1.5"),
        ({"confidence": [-0.1]}, r"confidence: expected values in \[0, 1\]"),
        ({"confidence": [0.5, 0.5]}, r"confidence: expected one for each of 1 orbits, got 2"),
        ({"predicted": [2]}, r"predicted: expected whole numbers from 0 below 2"),
        ({"predicted": [0.5]}, r"predicted: expected whole numbers"),
        ({"predicted": ["a"]}, r"predicted: expected whole numbers, got names; number them"),
        ({"predicted": [0, 1]}, r"predicted: expected shape \[1\]"),
        ({"predicted": [[0, 1]]}, r"predicted: expected shape \[1\].*one-hot rows"),
    ],
)
def test_a_table_refuses_what_is_no_table(given_arguments: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        OrbitTable(**{"mass": [[0.5, 0.5]], **given_arguments})


def test_orbits_that_do_not_partition_the_data_are_refused() -> None:
    with pytest.raises(InputError, match="got 1 samples in none and 1 in more than one"):
        OrbitTable.from_orbits([[0, 1], [1]], label=[0, 1, 1])
    with pytest.raises(InputError, match=r"sample indices in \[0, 2\)"):
        OrbitTable.from_orbits([[0, 5]], label=[0, 1])
    with pytest.raises(InputError, match="orbits: expected lists of sample indices, got none"):
        OrbitTable.from_orbits([], label=[0, 1])
    with pytest.raises(InputError, match="2 samples without an orbit"):
        OrbitTable.from_labels([0, -1, -1], [0, 1, 0])
    with pytest.raises(InputError, match="1 samples without an orbit"):
        OrbitTable.from_labels([0, np.nan], [0, 1])
    with pytest.raises(InputError, match=r"label: expected shape \[2\]"):
        OrbitTable.from_labels([0, 0], [0])
    with pytest.raises(InputError, match=r"orbit: expected shape \[sample\]"):
        OrbitTable.from_labels([[0, 0]], [0])
    with pytest.raises(InputError, match="mass: expected one for each of 2 samples"):
        OrbitTable.from_labels([0, 0], [0, 1], mass=[1.0])
    with pytest.raises(InputError, match="every point exactly once"):
        OrbitTable.from_permutations([[0, 0]], [0, 1])
    with pytest.raises(InputError, match=r"permutations: expected whole numbers of shape"):
        orbits_of_permutations([0, 1])


def test_confidences_alone_that_vary_along_an_orbit_are_refused() -> None:
    with pytest.raises(InputError, match=r"confidence: expected the same value.* up to 0.2"):
        OrbitTable.from_labels([0, 0], [0, 1], confidence=[0.5, 0.7])
    with pytest.raises(InputError, match="confidence: expected one for each of 2 samples"):
        OrbitTable.from_labels([0, 0], [0, 1], confidence=[0.5])


def test_matching_refuses_what_it_cannot_match() -> None:
    with pytest.raises(InputError, match="tolerance: expected a distance above the rounding"):
        match_orbits([[1.0, 0.0]], groups.cyclic(4), tolerance=0)
    with pytest.raises(InputError, match="x: expected finite numbers"):
        match_orbits([[np.nan, 0.0]], groups.cyclic(4))
    with pytest.raises(InputError, match=r"x: expected points of shape"):
        match_orbits([1.0, 2.0], groups.cyclic(4))


def test_given_fiber_errors_are_checked() -> None:
    good = {
        "mass": [1.0],
        "confidence": [0.5],
        "least_error": [0.1],
        "greatest_error": [0.9],
        "accuracy": [0.5],
    }
    assert classification(fibers_from_errors(**good))["sharp_upper"].applies
    wrong = {
        "expected one value for each fiber": {"confidence": [0.5, 0.6]},
        "least_error: expected values in": {"least_error": [-0.1]},
        "at most greatest_error": {"least_error": [0.95]},
        "accuracy: expected values that": {"accuracy": [0.95]},
        "mass: expected masses that sum to 1": {"mass": [0.5]},
    }
    for message, change in wrong.items():
        with pytest.raises(InputError, match=message):
            fibers_from_errors(**{**good, **change})


def test_a_table_without_answers_says_what_is_missing() -> None:
    table = OrbitTable([[0.5, 0.5]])
    with pytest.raises(InputError, match="confidence: expected confidences in the table"):
        table.fibers()
    with pytest.raises(InputError, match="predicted: expected predictions in the table"):
        _ = table.accuracy


def test_groups_may_be_named_by_their_text() -> None:
    x = [[1.0, 0.0], [-1.0, 0.0], [0.0, 2.0]]
    for build in (
        lambda group: OrbitTable.from_data(x, [0, 1, 1], group).mass,
        lambda group: taxonomy(x, [0, 1, 1], group, support=0.1).shares,
    ):
        assert (build("cyclic:2") == build(groups.cyclic(2))).all()
    with pytest.raises(InputError, match="group: expected"):
        OrbitTable.from_data(x, [0, 1, 1], 2)


def test_images_without_an_action_are_told_about_it() -> None:
    with pytest.raises(InputError, match=r"such as actions.Images\(\)"):
        match_orbits(np.zeros((3, 1, 4, 4)), groups.cyclic(4))


def test_a_bound_that_does_not_exist_is_answered_with_those_that_do() -> None:
    bounds = classification(OrbitTable(mass=[[0.5, 0.0], [0.2, 0.3]]))
    with pytest.raises(KeyError, match="accuracy_ceiling, accuracy_floor"):
        bounds["ceiling"]
    assert bounds.get("ceiling") is None


def test_images_that_do_not_fit_into_memory_are_refused_before_the_work(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    images = np.random.default_rng(0).random((20, 1, 8, 8))
    monkeypatch.setattr(matching, "_free_memory", lambda: 1e5)
    with pytest.raises(InputError, match=r"0.0001 GB are free, got 20 samples x 8 elements x 64"):
        match_orbits(images, "rotations:8", action=actions.Images())


def test_distances_cannot_see_handedness_and_a_signed_volume_can() -> None:
    """Two mirror images with different labels: an invariant of motions must tell them apart."""
    rng = np.random.default_rng(0)
    shape = rng.normal(size=(4, 3))
    turn = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    turn *= np.sign(np.linalg.det(turn))
    shapes = np.stack([shape, shape @ turn.T + 1, shape * [1, 1, -1]])
    pairs = np.triu_indices(4, 1)
    gaps = np.sort(np.linalg.norm(shapes[:, pairs[0]] - shapes[:, pairs[1]], axis=-1), axis=1)
    volume = np.linalg.det(shapes[:, 1:] - shapes[:, :1])
    assert match_invariants(gaps, tolerance=1e-9).orbit.tolist() == [0, 0, 0]
    signed = np.concatenate([gaps, volume[:, None]], 1)
    assert match_invariants(signed, tolerance=1e-9).orbit.tolist() == [0, 0, 1]
