"""Estimates from neighbors equal brute force and cover; certified ceilings hold."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import numpy as np
import pytest
import torch

from orbical import actions, groups
from orbical.bounds import (
    OrbitTable,
    certified_ceiling,
    compare_groups,
    match_orbits,
    neighbor_ceiling,
    neighbor_floor,
    neighbors,
    price_from_pairs,
)
from orbical.errors import InputError


def quotient(images: np.ndarray, flat: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The least distance of images `[K, N, D]` from samples `[N, D]`, and the element, by loops."""
    size = len(flat)
    distance, element = np.full((size, size), np.inf), np.zeros((size, size), int)
    for i in range(size):
        for j in range(size):
            gaps = np.linalg.norm(images[:, i] - flat[j], axis=1)
            if i != j:
                distance[i, j], element[i, j] = gaps.min(), gaps.argmin()
    return distance, element


def brute_error(distance: np.ndarray, label: np.ndarray, mass: np.ndarray) -> float:
    error = 0.0
    for i, row in enumerate(distance):
        near = np.flatnonzero(row <= row.min() + 1e-6)
        error += mass[i] * mass[near] @ (label[near] != label[i]) / mass[near].sum()
    return error


@pytest.mark.parametrize("name", ["cyclic:2", "dihedral:4", "rotations:5", "translations:1:1"])
def test_neighbors_across_orbits_equal_brute_force_with_ties(name: str) -> None:
    group = groups.parse(name)
    for seed in range(8):
        rng = np.random.default_rng(seed)
        x = rng.integers(-2, 3, (25, 2)).astype(float) if seed % 2 else rng.normal(size=(25, 2))
        label, mass = rng.integers(0, 3, 25), rng.dirichlet(np.ones(25))
        images = actions.Points().apply(group, torch.from_numpy(x[:, None])).numpy()[:, :, 0]
        distance, element = quotient(images, x)
        found = neighbor_ceiling(x, label, name, mass=mass)
        assert found.value == pytest.approx(brute_error(distance, label, mass))
        if not seed % 2:  # without ties the element is the nearest one too
            value, turns = rng.normal(size=(25, 2)), group.linear("plane")
            near = distance.argmin(1)
            moved = np.einsum("nij,nj->ni", turns[element[np.arange(25), near]], value)
            expected = mass @ np.square(moved - value[near]).sum(1) / 2
            floor = neighbor_floor(x, value, group, representation=turns, mass=mass)
            assert floor.value == pytest.approx(expected)


def test_images_and_molecules_have_neighbors_too() -> None:
    rng = np.random.default_rng(0)
    images, label = rng.random((12, 1, 4, 4)), rng.integers(0, 2, 12)
    moved = actions.Images().apply(groups.cyclic(4), torch.from_numpy(images)).numpy()
    distance, _ = quotient(moved.reshape(4, 12, -1), images.reshape(12, -1))
    equal = np.full(12, 1 / 12)
    found = neighbor_ceiling(images, label, "cyclic:4", action=actions.Images())
    assert found.value == pytest.approx(brute_error(distance, label, equal))
    turns = groups.rotations3d(9)
    x = {"pos": rng.normal(size=(12, 5, 3)), "numbers": rng.integers(1, 9, (12, 5))}
    action = {"pos": actions.Points(), "numbers": actions.Trivial()}
    pos = actions.Points().apply(turns, torch.from_numpy(x["pos"])).numpy().reshape(9, 12, -1)
    kinds = np.broadcast_to(x["numbers"], (9, 12, 5))
    flat = np.concatenate([x["numbers"], x["pos"].reshape(12, -1)], 1)
    distance, _ = quotient(np.concatenate([kinds, pos], 2), flat)
    found = neighbor_ceiling(x, label, turns, action=action)
    assert found.value == pytest.approx(brute_error(distance, label, equal))
    rows = compare_groups((x, label), {"SO(3)": turns}, action=action).rows()
    assert [row["matched"] for row in rows] == [0, 0]


def test_blocks_and_a_limit_of_time_change_little(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    x, label = rng.normal(size=(400, 2)), rng.integers(0, 2, 400)
    whole = neighbor_ceiling(x, label, "cyclic:4")
    monkeypatch.setattr(neighbors, "_BLOCK_VALUES", 1000)
    again = neighbor_ceiling(x, label, "cyclic:4")
    for name in ("value", "low", "high", "spacing"):
        assert getattr(again, name) == pytest.approx(getattr(whole, name))
    per_sample = 400 * 4 * (2 + neighbors._PRODUCTS_PER_PAIR)
    monkeypatch.setattr(neighbors, "_MOST_PRODUCTS", 150 * per_sample)
    some = neighbor_ceiling(x, label, "cyclic:4")
    assert some.samples == 150
    assert some.high - some.low > whole.high - whole.low


def test_progress_is_shown_where_a_search_is_long(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    x, label = np.random.default_rng(0).normal(size=(40, 2)), np.arange(40) % 2
    neighbor_ceiling(x, label, "cyclic:2", progress=True)
    assert capsys.readouterr().err == ""  # over in a moment
    monkeypatch.setattr(neighbors, "_LONG", 0.0)
    neighbor_ceiling(x, label, "cyclic:2")
    assert capsys.readouterr().err == ""
    neighbor_ceiling(x, label, "cyclic:2", progress=True)
    assert "40/40 samples" in capsys.readouterr().err


def test_neighbors_nearer_than_the_rounding_of_squares_are_told_apart() -> None:
    """Far pairs of points, in single precision: a point's twin is nearer than a third one."""
    rng = np.random.default_rng(0)
    place = 1000 * rng.normal(size=(20, 1, 2))
    offsets = np.array([[0.0, 0.0], [0.25, 0.0], [0.75, 0.0]])
    x = torch.from_numpy((place + offsets).reshape(-1, 2)).float()
    label = np.tile([0, 0, 1], 20)
    found = neighbor_ceiling(x, label, "trivial")
    assert found.value == pytest.approx(1 / 3)  # only the third of each has a wrong neighbor


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU here")
def test_tensors_are_compared_on_their_device() -> None:
    rng = np.random.default_rng(0)
    x, label = torch.from_numpy(rng.random((200, 1, 8, 8))), rng.integers(0, 3, 200)
    here, there = (
        compare_groups((x.to(device), label), ["dihedral:4"], action=actions.Images()).rows()
        for device in ("cpu", "cuda")
    )
    for a, b in zip(here, there, strict=True):
        assert a == pytest.approx(b)


def disputed(ceiling: float, size: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """A half turn changes the label on some orbits: the truth is the low end of Cover and Hart."""
    x = rng.normal(size=(size, 2))
    uniform = np.exp(-np.square(x).sum(1) / 2)
    return x, np.where(uniform < 2 * (1 - ceiling), x[:, 0] > 0, uniform > 0.9).astype(int)


def noisy(ceiling: float, size: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Labels are noise everywhere: the truth is the high end of Cover and Hart."""
    return rng.normal(size=(size, 2)), (rng.random(size) > ceiling).astype(int)


def covered(worlds: int, size: int, world, ceiling: float) -> float:
    hits = []
    for seed in range(worlds):
        x, label = world(ceiling, size, np.random.default_rng(seed))
        found = neighbor_ceiling(x, label, "cyclic:2")
        hits.append(found.low <= ceiling <= found.high)
    return float(np.mean(hits))


@pytest.mark.parametrize("world", [disputed, noisy])
@pytest.mark.parametrize("ceiling", [0.9, 0.7, 0.5])
def test_the_estimated_ceiling_covers_the_truth_of_continuous_worlds(world, ceiling: float) -> None:
    assert covered(30, 300, world, ceiling) >= 0.9


@pytest.mark.slow
@pytest.mark.parametrize("world", [disputed, noisy])
@pytest.mark.parametrize("ceiling", [0.9, 0.7, 0.5])
def test_the_estimated_ceiling_covers_in_many_worlds(world, ceiling: float) -> None:
    assert covered(300, 1000, world, ceiling) >= 0.95


def in_dimension(dimension: int, noise: float, size: int, rng: np.random.Generator):
    """Labels that a half turn keeps, with a boundary through the densest region, and noise."""
    x = rng.normal(size=(size, dimension // 2, 2))
    return x, ((x[:, 0, 0] * x[:, 0, 1] > 0) ^ (rng.random(size) < noise)).astype(int)


@pytest.mark.parametrize("dimension", [2, 4, 20])
@pytest.mark.parametrize("noise", [0.0, 0.2])
def test_the_estimate_covers_in_high_dimension_and_says_that_it_is_not_dense(
    dimension: int, noise: float
) -> None:
    """The interval of the error alone covered at most one world in nine in 20 dimensions."""
    rng, size = np.random.default_rng(dimension), 700
    found = [
        neighbor_ceiling(*in_dimension(dimension, noise, size, rng), "cyclic:2") for _ in range(30)
    ]
    assert np.mean([one.low <= 1 - noise <= one.high for one in found]) >= 0.93
    limit = 2 * noise * (1 - noise)  # what neighbors without a distance would err
    far = np.mean([one.value for one in found]) - limit
    assert {one.dense for one in found} == {dimension == 2}
    assert (far < 0.05) == (dimension == 2)
    if dimension == 20:  # the error of neighbors says next to nothing
        assert np.mean([one.high for one in found]) > 0.97


@pytest.mark.parametrize("dimension", [2, 20])
@pytest.mark.parametrize("kept", [True, False])
def test_the_cost_of_a_symmetry_has_an_interval_that_covers(dimension: int, kept: bool) -> None:
    found = []
    for seed in range(100):
        rng = np.random.default_rng(seed)
        x, label = in_dimension(dimension, 0.1, 200, rng)
        if not kept:
            label = (x[:, 0, 0] + 0.5 * rng.normal(size=200) > 0).astype(int)
        found.append(compare_groups((x, label), ["cyclic:2"]).rows()[1])
    costs = np.array([row["neighbor_cost"] for row in found])
    truth = costs.mean()
    lows, highs = (
        np.array([row[f"neighbor_cost_{end}"] for row in found]) for end in ("low", "high")
    )
    assert ((lows <= truth) & (truth <= highs)).mean() >= 0.93
    assert (highs - lows).mean() / 2 / 1.96 < 1.6 * costs.std()  # and is not much too wide
    assert (truth < 0) == kept  # what a half turn keeps brings more neighbors; else it costs
    # Unpaired, the deviation of the difference would be larger.
    alone = neighbor_ceiling(x, label, "cyclic:2")
    other = neighbor_ceiling(x, label, "trivial")
    paired = alone.difference(other)
    assert paired[0] == alone.value - other.value
    assert alone.difference(alone)[1:] == (0, 0)


def test_representations_that_change_lengths_have_no_floor_from_neighbors() -> None:
    x = np.random.default_rng(0).normal(size=(20, 2))
    stretched = np.stack([np.eye(2), np.diag([-2.0, -0.5])])
    with pytest.raises(InputError, match="representation: expected orthogonal matrices"):
        neighbor_floor(x, x, "cyclic:2", representation=stretched)
    scaled = 1e-6 * np.stack([np.eye(2), np.eye(2)])  # small, but well conditioned
    with pytest.raises(InputError, match="representation: expected orthogonal matrices"):
        neighbor_floor(x, x, "cyclic:2", representation=scaled)


def test_the_estimated_floor_covers_the_variance_along_orbits() -> None:
    hits = []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        x = rng.normal(size=(300, 2))
        found = neighbor_floor(x, np.sign(x[:, 0]), "cyclic:2")
        hits.append(found.low <= 1 <= found.high)
    assert np.mean(hits) >= 0.9


def random_world(rng: np.random.Generator) -> tuple[float, np.ndarray, np.ndarray, int]:
    orbits, labels, size = rng.integers(1, 60), int(rng.integers(2, 5)), int(rng.integers(10, 300))
    mass = rng.dirichlet(np.full(labels, 0.7), orbits) * rng.dirichlet(np.ones(orbits))[:, None]
    counts = rng.multinomial(size, mass.ravel())
    orbit, label = (np.repeat(i.ravel(), counts) for i in np.indices(mass.shape))
    return float(mass.max(1).sum()), orbit, label, labels


def check_certificates(worlds: int) -> None:
    rng, missed = np.random.default_rng(0), 0
    for _ in range(worlds):
        ceiling, orbit, label, labels = random_world(rng)
        low, high = certified_ceiling(OrbitTable.from_labels(orbit, label, labels=labels))
        missed += not low <= ceiling <= high
    assert missed / worlds <= 0.05


def test_the_certified_ceiling_holds_on_random_worlds() -> None:
    check_certificates(200)


@pytest.mark.slow
def test_the_certified_ceiling_holds_on_many_random_worlds() -> None:
    check_certificates(5_000)


def test_the_certificate_sees_through_the_bias_of_the_plain_ceiling() -> None:
    """True ceiling .7 over 1,000 orbits."""
    rng = np.random.default_rng(0)
    for size, plain in ((300, 0.947), (1_000, 0.869), (10_000, 0.714)):
        orbit, label = rng.integers(0, 1000, size), (rng.random(size) > 0.7).astype(int)
        table = OrbitTable.from_labels(orbit, label)
        low, high = certified_ceiling(table)
        assert table.accuracy_ceiling == pytest.approx(plain, abs=0.02)
        assert low < 0.7 < high
        hoeffding = np.sqrt(np.log(40) / 2 / size)
        assert high < table.accuracy_ceiling + hoeffding
    assert certified_ceiling(OrbitTable.from_labels(np.arange(50), np.arange(50) % 2))[1] == 1


def test_certificates_do_not_depend_on_the_order_and_need_counted_samples() -> None:
    _, orbit, label, labels = random_world(np.random.default_rng(5))
    shuffled = np.random.default_rng(0).permutation(len(orbit))
    first = certified_ceiling(OrbitTable.from_labels(orbit, label, labels=labels))
    again = OrbitTable.from_labels(99 - orbit[shuffled], label[shuffled], labels=labels)
    assert certified_ceiling(again) == first
    with pytest.raises(InputError, match="counted from two or more samples"):
        certified_ceiling(OrbitTable([[0.5, 0.5]]))
    with pytest.raises(InputError, match="level: expected"):
        certified_ceiling(again, level=1)


def test_continuous_data_get_an_estimate_and_no_free_symmetry() -> None:
    x, label = disputed(0.7, 600, np.random.default_rng(0))
    found = compare_groups((x, label), ["cyclic:2", "flips"])
    base, turn, _ = found.rows()
    assert turn["matched"] == 0
    assert turn["cost"] is None
    assert turn["neighbor_low"] < 0.7 < turn["neighbor_high"] < base["neighbor_low"]
    assert turn["neighbor_cost"] == pytest.approx(0.3, abs=0.06)
    assert turn["certified_high"] == 1
    assert "estimate" in repr(found)
    shuffled = np.random.default_rng(1).permutation(600)
    again = compare_groups((x[shuffled], label[shuffled]), ["cyclic:2", "flips"]).rows()
    for row, same in zip(found.rows(), again, strict=True):
        assert row == pytest.approx(same)


def test_masses_count_in_a_comparison() -> None:
    x = [[1.0, 0.0], [-1.0, 0.0], [3.0, 1.0]]
    found = compare_groups((x, [0, 1, 0]), ["cyclic:2"], mass=[0.2, 0.1, 0.7]).rows()[1]
    assert found["matched"] == pytest.approx(0.3)
    assert found["accuracy_ceiling"] == pytest.approx(0.9)
    assert found["incorrect"] == pytest.approx(0.15)
    assert found["certified_low"] is None


def test_values_are_compared_by_the_floor_of_their_error() -> None:
    rng = np.random.default_rng(0)
    half = rng.normal(size=(150, 2))
    x = np.concatenate([half, -half])
    rows = compare_groups((x, x), ["cyclic:2"], representation="vector").rows()
    assert [row["error_floor"] for row in rows] == pytest.approx([0, 0], abs=1e-12)
    still = compare_groups((x, x), ["cyclic:2"], representation="invariant").rows()[1]
    assert still["error_floor"] == still["cost"] == pytest.approx(np.square(x).sum(1).mean())
    assert still["neighbor_floor"] == pytest.approx(2 * still["error_floor"])  # twins are opposite
    own = compare_groups((x, x), ["cyclic:2"], representation=lambda group: group.linear("plane"))
    assert own.rows()[1]["incorrect"] == 0
    more = rng.normal(size=(600, 2))
    apart = compare_groups((more, more), ["flips"], representation="invariant").rows()[1]
    assert apart["cost"] is None
    assert apart["neighbor_low"] > 0.2
    with pytest.raises(InputError, match="representation: expected 'invariant', 'vector'"):
        compare_groups((x, x), ["cyclic:2"], representation="spinor")


def test_within_a_tolerance_no_column_of_bounds_has_a_value() -> None:
    x = np.linspace(0, 1, 101)[:, None] * [[1.0, 0.0]]
    for row in compare_groups((x, x[:, 0] > 0.5), ["cyclic:2"], tolerance=0.02).rows():
        assert row["accuracy_ceiling"] is row["cost"] is row["accuracy_floor"] is None
        assert row["certified_low"] is row["forced_at_full_confidence"] is None
        assert row["neighbor_high"] > 0.95


def test_neighbors_need_two_samples_that_fit() -> None:
    with pytest.raises(InputError, match="x: expected two or more samples, got 1"):
        neighbor_ceiling([[1.0, 0.0]], [0], "cyclic:2")
    with pytest.raises(InputError, match="value: expected one for each of 2 samples"):
        neighbor_floor(np.eye(2), [1.0], "cyclic:2")
    with pytest.raises(InputError, match="level: expected a probability"):
        neighbor_ceiling(np.eye(2), [0, 1], "cyclic:2", level=0)


def test_a_part_of_a_group_that_moves_nothing_is_refused_here_too() -> None:
    points, label = np.random.default_rng(0).normal(size=(6, 4, 3)), np.arange(6) % 2
    group, said = "rotations3d:8*flips", r"plane part of rotations3d:8\*flips moves nothing"
    with pytest.raises(InputError, match=said):
        match_orbits(points, group)
    with pytest.raises(InputError, match=said):
        neighbor_ceiling(points, label, group)
    with pytest.raises(InputError, match=said):
        compare_groups((points, label), [group])


def test_a_list_of_molecules_is_told_how_to_be_passed() -> None:
    molecule = pytest.importorskip("ase.build").molecule
    for names in (["H2O", "H2O"], ["H2O", "CH4"]):
        with pytest.raises(InputError, match=r"got a list of molecules; pass their fields"):
            match_orbits([molecule(name) for name in names], "rotations3d:8")


def shared(name: str) -> Path:
    beside = Path(__file__).parents[3] / "shared" / "data"
    folder = Path(os.environ.get("ORBICAL_DATA", beside)) / name
    if not folder.is_dir():
        pytest.skip(f"the data set {name} is not here")
    return folder


@pytest.mark.slow
def test_symmetries_hurt_handwritten_digits() -> None:
    """The errors of 1,500 digits: .097 without a symmetry, .113 C2, .119 C4, .141 D4."""
    folder = shared("mnist")
    pixels = gzip.decompress((folder / "train-images-idx3-ubyte.gz").read_bytes())[16:]
    kinds = gzip.decompress((folder / "train-labels-idx1-ubyte.gz").read_bytes())[8:]
    x = np.frombuffer(pixels, np.uint8).reshape(-1, 1, 28, 28)[:1500].astype(np.float32) / 255
    label = np.frombuffer(kinds, np.uint8)[:1500]
    found = compare_groups(
        (x, label), ["cyclic:2", "cyclic:4", "dihedral:4"], action=actions.Images()
    )
    errors = [row["neighbor_error"] for row in found.rows()]
    assert errors == pytest.approx([0.097, 0.113, 0.119, 0.141], abs=0.02)
    assert errors == sorted(errors)


def test_pairs_of_every_enumerated_orbit_bracket_its_error() -> None:
    """All label masses on a grid: 1 - max p lies between Cover and Hart's end and 1 - sum p^2."""
    from orbical.bounds.price_and_ceiling import least_error_of_pairs

    for labels, steps in ((2, 60), (3, 24), (4, 12)):
        grid = np.indices((steps + 1,) * labels).reshape(labels, -1).T
        p = grid[grid.sum(1) == steps] / steps
        error, differs = 1 - p.max(1), 1 - np.square(p).sum(1)
        assert (error <= differs + 1e-12).all()
        least = np.array([least_error_of_pairs(value, labels) for value in differs])
        assert (least <= error + 1e-9).all()
        assert (least >= differs / 2 - 1e-12).all()
        assert np.isclose(least, error).any()  # attained: one label and equal others
        # It is convex, so it holds for mixtures of orbits too.
        ends = np.linspace(0, (labels - 1) / labels, 50)
        curve = np.array([least_error_of_pairs(value, labels) for value in ends])
        assert (np.diff(curve, 2) >= -1e-12).all()


@pytest.mark.parametrize("pairs", [1, 5, 30, 300])
def test_the_price_from_pairs_holds_for_the_population(pairs: int) -> None:
    rng, missed, worlds = np.random.default_rng(pairs), 0, 400
    for _ in range(worlds):
        labels = int(rng.integers(2, 5))
        sharp = rng.choice([0.05, 0.5, 5.0])
        orbits = rng.dirichlet(np.full(labels, sharp), 40)
        mass = rng.dirichlet(np.ones(40))
        ceiling = float(mass @ orbits.max(1))
        chosen = rng.choice(40, pairs, p=mass)
        first, second = (
            (orbits[chosen].cumsum(1) < rng.random((pairs, 1))).sum(1).clip(max=labels - 1)
            for _ in range(2)
        )
        found = price_from_pairs(first, second, labels=labels)
        assert found.ceiling_low <= found.ceiling_high
        missed += not found.ceiling_low <= ceiling <= found.ceiling_high
    assert missed / worlds <= 0.05


def test_the_price_of_pairs_that_agree_or_differ_is_that_of_their_binomial() -> None:
    same = price_from_pairs([0] * 72, [0] * 72, labels=2)
    assert (same.low, same.ceiling_high) == (0, 1)
    assert same.high == pytest.approx(1 - 0.025 ** (1 / 72))
    assert same.ceiling_low == pytest.approx(1 - same.high)
    apart = price_from_pairs([0] * 50, [1] * 50)
    assert apart.ceiling_low == 0.5 == pytest.approx(apart.ceiling_high, abs=0.2)
    with pytest.raises(InputError, match="second"):
        price_from_pairs([0, 1], [0])
    with pytest.raises(InputError, match="first: expected at least one pair"):
        price_from_pairs([], [])
