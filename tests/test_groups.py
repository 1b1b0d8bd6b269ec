"""Groups: axioms, measures, names, drawings, text."""

from __future__ import annotations

import dataclasses
import re

import numpy as np
import pytest
import torch
from scipy.spatial.transform import Rotation

import orbical as ob
from orbical import groups
from orbical.errors import InputError
from orbical.groups.making import is_closed

SPECS = [
    "trivial",
    "cyclic:1",
    "cyclic:4",
    "cyclic:12",
    "dihedral:1",
    "dihedral:4",
    "dihedral:5",
    "rotations:72",
    "rotations:7",
    "flips",
    "translations:4:2",
    "translations:1.5:0.5",
    "scales:0.5:2:9",
    "rotations3d:64",
    "slices3d:24:7",
    "permutations:4",
    "permutations:20:30:1",
    "euclidean:4:1:1",
    "time_reversal",
    "columns:-x:x=y",
    "columns:a=b=c:-x,-y",
    "decibels:12:3",
    "semitones:6:2",
    "speeds:0.8:1.25:5",
    "longitudes:5",
    "longitudes:6:full",
    "periodic:4",
    "periodic:4:3:full",
    "dihedral:4*time_reversal",
    "rotations3d:8*permutations:3",
    "inversion",
    "reflections3d",
    "translations3d:2:1",
    "o3:16",
    "tetrahedral",
    "tetrahedral:full",
    "octahedral",
    "octahedral:full",
    "icosahedral:full",
    "pointgroup:-6m2",
    "pointgroup:-1",
    "octahedral*translations3d:1",
    "so3_quadrature:3",
    "sphere:5",
    "se2:16:2",
    "se3:16:0.5",
    "affine:16:10:1.5:0.25:2",
    "shear:0.5:5",
    "shifts:4:2",
    "gains:0.5:2:5",
    "sign*time_reversal",
    "hue:12",
    "brightness:0.25:2:6",
    "hue:3*brightness",
    "homographies:20:3:50",
    "homographies:20:3:50*time_reversal",
]
CLOSED = [
    "trivial",
    "cyclic:4",
    "cyclic:12",
    "dihedral:4",
    "dihedral:5",
    "rotations:7",
    "flips",
    "permutations:4",
    "time_reversal",
    "dihedral:4*time_reversal",
    "cyclic:4*permutations:3",
    "reflections3d",
    "pointgroup:-6m2*time_reversal",
    "so3_quadrature:1",
    "hue:6",
    "sign*time_reversal",
]


@pytest.fixture(params=SPECS)
def group(request):
    return groups.parse(request.param)


def test_a_group_prints_what_it_was_parsed_from(group):
    again = groups.parse(str(group))
    assert again.spec == group.spec
    assert again.fingerprint() == group.fingerprint()


def test_weights_are_a_probability_measure(group):
    assert group.weights.shape == (len(group),)
    assert (group.weights >= 0).all()
    assert group.weights.sum() == pytest.approx(1, abs=1e-12)
    assert group.measure


def test_every_coordinate_names_every_element(group):
    for values in group.coords.values():
        assert len(values) == len(group)
    assert isinstance(group.name(len(group) - 1), str)


def test_the_drawing_shows_every_element_and_nothing_else(group):
    assert group.layout.kind in {"circle", "plane", "slices", "ball", "line", "tiles"}
    assert set(group.layout.index.ravel()) == set(range(len(group)))
    for size, values in zip(group.layout.index.shape, group.layout.axes.values(), strict=False):
        assert len(values) == size


def test_the_identity_is_neutral(group):
    neutral = group[[group.identity] * len(group)]
    assert (group.index_of(neutral.compose(group)) == _first_equal(group)).all()
    assert (group.index_of(group.compose(neutral)) == _first_equal(group)).all()


def _first_equal(group):
    """Each element's index as the lookup sees it."""
    return group.index_of(group)


def test_an_element_times_its_inverse_is_the_identity(group):
    for result in (group.compose(group.inverse()), group.inverse().compose(group)):
        assert (group.index_of(result) == group.index_of(group[[group.identity]])).all()


def test_composition_is_associative(group):
    generator = np.random.default_rng(0)
    f, g, h = (group[generator.integers(len(group), size=50)] for _ in range(3))
    left, right = f.compose(g).compose(h), f.compose(g.compose(h))
    for name in group.parts:
        if left.parts[name].dtype.kind == "U":  # words
            np.testing.assert_array_equal(left.parts[name], right.parts[name])
        else:
            np.testing.assert_allclose(left.parts[name], right.parts[name], atol=1e-12)


@pytest.mark.parametrize("spec", CLOSED)
def test_a_closed_sample_holds_every_product_once_per_row(spec):
    group = groups.parse(spec)
    assert group.closed
    assert group.contains_inverses
    first, second = np.divmod(np.arange(len(group) ** 2), len(group))
    table = group.index_of(group[first].compose(group[second])).reshape(len(group), len(group))
    assert (np.sort(table, axis=1) == np.arange(len(group))).all()


@pytest.mark.parametrize("spec", ["translations:4:2", "rotations3d:64", "permutations:20:30:1"])
def test_a_sample_that_is_not_a_group_says_so(spec):
    assert not groups.parse(spec).closed


def test_symmetric_windows_contain_inverses():
    assert groups.translations(4, 2).contains_inverses
    assert not groups.rotations3d(64).contains_inverses


def test_quarter_turns_are_exact_and_counter_clockwise():
    quarter = groups.cyclic(4).parts["plane"][1]
    assert quarter[:2, :2].tolist() == [[0, -1], [1, 0]]


@pytest.mark.parametrize(
    ("spec", "exact"),
    [
        ("cyclic:4", True),
        ("dihedral:4", True),
        ("flips", True),
        ("time_reversal", True),
        ("dihedral:4*time_reversal", True),
        ("rotations:4", True),
        ("rotations:8", False),
        ("dihedral:5", False),
        ("translations:2:1", False),
        ("scales:0.5:2:3", False),
    ],
)
def test_only_groups_within_d4_move_pixels_exactly(spec, exact):
    group = groups.parse(spec)
    assert group.exact_on_grid is exact
    assert group[:1].exact_on_grid is exact, "a slice is treated as the group it comes from"


def test_a_shear_is_resampled_although_its_entries_are_whole():
    shear = groups.from_matrices(plane=[np.eye(2), [[1, 1], [0, 1]]])
    assert not shear.exact_on_grid
    moved = ob.actions.Images().apply(shear, torch.ones(1, 1, 8, 8))
    assert moved.shape == (2, 1, 1, 8, 8)


@pytest.mark.parametrize(
    "group",
    [
        groups.translations(1, 1 / 3),
        groups.scales(0.123456789, 2.2, 5),
        groups.euclidean(4, 0.3, 0.1),
    ],
    ids=str,
)
def test_numbers_with_many_digits_survive_printing(group):
    assert groups.parse(str(group)).fingerprint() == group.fingerprint()


def test_so3_grid_covers_all_rotations_and_starts_at_the_identity():
    group = groups.rotations3d(512)
    grid = Rotation.from_matrix(group.linear("space"))
    assert group.identity == 0
    assert grid[0].magnitude() == pytest.approx(0, abs=1e-7)
    quaternions, everywhere = grid.as_quat(), Rotation.random(4000, rng=1).as_quat()
    nearest = np.abs(everywhere @ quaternions.T).max(1).clip(max=1)
    covering = np.rad2deg(2 * np.arccos(nearest)).max()
    # A ball of angle a holds the share (a - sin a) / pi of SO(3), so no 512 rotations cover it
    # within less than 19 degrees.
    assert covering < 31
    at_random = np.abs(everywhere @ Rotation.random(512, rng=2).as_quat().T).max(1).clip(max=1)
    assert covering < np.rad2deg(2 * np.arccos(at_random)).max()


def test_so3_grid_gets_finer_with_the_cube_root():
    def covering(n):
        quaternions = Rotation.from_matrix(groups.rotations3d(n).linear("space")).as_quat()
        everywhere = Rotation.random(2000, rng=1).as_quat()
        return np.arccos(np.abs(everywhere @ quaternions.T).max(1).clip(max=1)).max()

    assert covering(4096) < 0.62 * covering(512)


def test_slices_hold_each_rotation_once_and_the_drawing_repeats_it():
    group = groups.slices3d(72, 13)
    assert len(group) == 2416
    assert group.layout.index.shape == (3, 72, 13)
    assert len(np.unique(np.round(group.parts["space"], 6).reshape(len(group), -1), axis=0)) == 2416
    turns = Rotation.from_matrix(group.linear("space")[group.layout.index[2, 18, 6]])
    np.testing.assert_allclose(np.rad2deg(turns.as_rotvec()), [0, 0, 90], atol=1e-9)
    assert (group.layout.index[:, :, 0] == group.identity).all()


def test_translations_are_drawn_as_on_the_page():
    group = groups.translations(2, 1)
    top_right = group.layout.index[0, -1]
    assert (group.coords["dx"][top_right], group.coords["dy"][top_right]) == (2, 2)
    assert len(groups.translations(32, 2)) == 33 * 33


def test_scales_are_log_uniform_with_the_identity_among_them():
    group = groups.scales(0.5, 4, 10)
    assert group.coords["scale"][group.identity] == 1
    assert group.weights[0] < group.weights[1]


def test_permutation_samples_are_distinct_and_seeded():
    group = groups.permutations(20, 50, seed=3)
    assert len(np.unique(group.parts["rows"], axis=0)) == 50
    assert group.fingerprint() == groups.permutations(20, 50, seed=3).fingerprint()
    assert group.fingerprint() != groups.permutations(20, 50, seed=4).fingerprint()


@pytest.mark.parametrize("spec", ["dihedral:6", "permutations:4", "cyclic:4*time_reversal"])
def test_a_part_of_a_group_is_closed_where_all_its_products_are_in_it(spec):
    """Also where elements are given twice; counted by all pairs, which is slow but plain."""
    whole, draw = groups.parse(spec), np.random.default_rng(0)
    found = set()
    for _ in range(60):
        chosen = np.append(draw.choice(len(whole), draw.integers(1, 6)), whole.identity)
        if draw.random() < 0.5:  # the powers of one element are closed
            one = whole[chosen[:1]]
            powers = [whole[[whole.identity]]]
            while whole.index_of(powers[-1].compose(one))[0] != whole.identity:
                powers.append(powers[-1].compose(one))
            chosen = np.array([whole.index_of(power)[0] for power in powers])
        some = dataclasses.replace(
            whole,
            parts=whole[chosen].parts,
            weights=whole.weights[chosen],
            coords={name: values[chosen] for name, values in whole.coords.items()},
            count=len(chosen),
            identity=int(np.flatnonzero(chosen == whole.identity)[0]),
        )
        first, second = np.divmod(np.arange(len(some) ** 2), len(some))
        plain = bool((some.index_of(some[first].compose(some[second])) >= 0).all())
        assert is_closed(some) == plain
        found.add(plain)
    assert found == {True, False}


def test_large_groups_of_given_matrices_are_made_in_no_time():
    assert groups.from_matrices(plane=groups.rotations(5000).parts["plane"]).closed


def test_elements_of_space_are_named_in_words():
    """They read "rx 0, ry 0, rz 0, inversion -1", and the identity "inversion 1"."""
    assert [groups.inversion().name(place) for place in (0, 1)] == ["identity", "inversion"]
    group = groups.o3(64)
    assert [group.name(place) for place in (0, 1)] == ["identity", "inversion"]
    turned, both = group.name(2), group.name(3)
    assert re.fullmatch(r"[0-9.]+° about \((-?[01]\.\d\d(, )?){3}\)", turned)
    assert both == f"{turned}, inversion"
    assert len({group.name(place) for place in range(len(group))}) == len(group)
    own = groups.from_matrices(space=[np.eye(3)], coords={"inversion": ["none"], "rx": [2]})
    assert own.name(0) == "inversion none, rx 2"


def test_given_matrices_make_a_group():
    group = groups.from_matrices(plane=[np.eye(2), -np.eye(2)], coords={"turn": [0, 180]})
    assert group.closed
    assert group.name(1) == "turn 180"
    half = groups.from_matrices(space=[np.eye(3), 0.5 * np.eye(3)], weights=[3, 1])
    assert not half.closed
    assert half.weights.tolist() == [0.75, 0.25]


def test_an_element_that_is_given_twice_is_listed_once_with_the_sum_of_its_weights():
    """As in a product; a pair of equal elements would otherwise count as one that agrees."""
    turn = [np.eye(2), -np.eye(2), np.eye(2)]
    group = groups.from_matrices(plane=turn, coords={"turn": [0, 180, 360]})
    assert group.coords["turn"].tolist() == [0, 180]
    np.testing.assert_allclose(group.weights, [2 / 3, 1 / 3])
    assert group.closed
    line = groups.Layout("tiles", np.array([[2, 1, 0]]))
    signs = groups.from_parts("signs", {"time": [1, -1, 1]}, weights=[1, 2, 5], layout=line)
    assert (len(signs), signs.weights.tolist()) == (2, [0.75, 0.25])
    assert signs.layout.index.tolist() == [[0, 1, 0]]


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: groups.parse("rotation:72"), "did you mean 'rotations'"),
        (lambda: groups.parse("rotations:many"), "expected 'rotations:N[:TO][:SAMPLES]'"),
        (lambda: groups.parse("rotations:4:4"), "expected 'rotations:N[:TO][:SAMPLES]'"),
        (lambda: groups.parse("rotations:2.5"), "N: expected an integer >= 1, got 2.5"),
        (lambda: groups.parse("rotations:nan"), "expected"),
        (lambda: groups.parse(""), "unknown name"),
        (lambda: groups.parse("flips*"), "group: expected a name on each side of *, got 'flips*'"),
        (lambda: groups.rotations(0), "got 0"),
        (lambda: groups.translations(5, 2), "a multiple of the step"),
        (lambda: groups.translations(-1, 1), "a radius >= 0"),
        (lambda: groups.scales(2, 4), "0 < low <= 1 <= high"),
        (lambda: groups.permutations(12), "elements, got None"),
        (lambda: groups.permutations(3, 7), "at most 6"),
        (lambda: groups.from_matrices(plane=[[[0, 1], [1, 0]]]), "identity among"),
        (lambda: groups.from_matrices(plane=np.zeros((1, 2, 2))), "invertible"),
        (lambda: groups.from_matrices(plane=np.eye(4)[None]), "[K, 2, 2] or [K, 3, 3]"),
        (
            lambda: groups.from_matrices(space=[np.eye(4), np.eye(4) + 0.1 * np.eye(4, k=-1)]),
            "got a homography, by which no action moves data",
        ),
        (lambda: groups.from_matrices(), "exactly one of plane= and space="),
        (lambda: groups.from_matrices(plane=np.eye(2)[None], weights=[-1]), "weights"),
        (lambda: groups.from_matrices(plane=np.eye(2)[None], weights=[0]), "not all 0"),
        (lambda: groups.from_matrices(plane=np.eye(2)[None], coords={"a": [1, 2]}), "(1,)"),
        (lambda: groups.parse("from_matrices:plane:0123abcd"), "that its text defines"),
        (lambda: groups.as_group(72), "got int"),
        (
            lambda: groups.from_matrices(plane=np.eye(2)[None], coords={"a": [1j]}),
            "numbers or strings for 'a'",
        ),
        (
            lambda: groups.from_matrices(plane=np.eye(2)[None], coords={"a": [1, [2]]}),
            "numbers or strings for 'a'",
        ),
        (lambda: groups.rotations("four"), "got 'four'"),
        (lambda: groups.rotations(np.inf), "got inf"),
        (lambda: groups.translations(np.inf), "radius: expected a number, got inf"),
        (lambda: groups.scales("half"), "low: expected a number, got 'half'"),
        (lambda: groups.permutations(3000), "S_3000 has 3000! elements"),
        (lambda: groups.permutations(5, 3, seed=-1), "got -1"),
        (lambda: groups.from_matrices(plane=[[1, 0], [1]]), "plane: expected an array of numbers"),
        (lambda: groups.parse("rotations:1e9"), "got 1,000,000,000 in"),
        (lambda: groups.parse("translations:1e5:0.1"), "at most 1,048,576 elements"),
        (lambda: groups.parse("rotations:2000*translations:20"), "got 3,362,000 in"),
        (lambda: groups.parse("slices3d:99999:99"), "at most"),
        (
            lambda: groups.from_matrices(plane=[np.eye(3), [[1, 0, 0], [0, 1, 0], [0.1, 0, -1]]]),
            "in front of the horizon, with a last entry > 0, got -1",
        ),
        (lambda: groups.product(groups.cyclic(2), groups.rotations(3)), "different coordinates"),
    ],
)
def test_bad_arguments_are_named(make, words):
    with pytest.raises(InputError) as caught:
        make()
    assert words in str(caught.value)


@pytest.mark.parametrize(
    "spec",
    ["rotations3d:2048", "slices3d:24:7", "rotations:7", "translations:4:0.5", "scales:0.5:2:33"],
)
def test_names_are_short_and_different(spec):
    group = groups.parse(spec)
    names = [group.name(element) for element in range(len(group))]
    assert len({*names}) == len(names)
    assert max(map(len, names)) <= 34


def test_names_have_more_digits_where_four_tell_too_little():
    group = groups.scales(0.9999, 1.0001, 5)
    assert [group.name(element) for element in (0, 1)] == ["scale 0.9999", "scale 0.99995"]


@pytest.mark.parametrize(
    ("spec", "count"), [("flips*cyclic:4", 8), ("cyclic:4*flips", 8), ("flips*rotations:6", 12)]
)
def test_a_product_lists_each_element_once(spec, count):
    group = groups.parse(spec)
    assert len(group) == count
    assert len({tuple(np.round(m, 6).ravel() + 0.0) for m in group.parts["plane"]}) == count
    assert group.closed
    np.testing.assert_allclose(group.weights, 1 / count)
    assert {*group.layout.index.ravel().tolist()} == {*range(count)}
    assert np.allclose(group.parts["plane"][group.identity], np.eye(3))


def test_a_product_names_each_measure_once():
    assert groups.parse("scales:0.5:2:3*cyclic:4*permutations:2").measure == (
        "log-uniform on the sampled window; Haar"
    )
