"""Point groups: orders, classes and names against the tables of crystallography."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from orbical import groups
from orbical.errors import InputError

# Hermann-Mauguin, Schoenflies, order, Laue class (the group with inversion added).
TABLE = """
1 C1 1 -1;        -1 Ci 2 -1;       2 C2 2 2/m;       m Cs 2 2/m;       2/m C2h 4 2/m
222 D2 4 mmm;     mm2 C2v 4 mmm;    mmm D2h 8 mmm;    4 C4 4 4/m;       -4 S4 4 4/m
4/m C4h 8 4/m;    422 D4 8 4/mmm;   4mm C4v 8 4/mmm;  -42m D2d 8 4/mmm; 4/mmm D4h 16 4/mmm
3 C3 3 -3;        -3 C3i 6 -3;      32 D3 6 -3m;      3m C3v 6 -3m;     -3m D3d 12 -3m
6 C6 6 6/m;       -6 C3h 6 6/m;     6/m C6h 12 6/m;   622 D6 12 6/mmm;  6mm C6v 12 6/mmm
-6m2 D3h 12 6/mmm; 6/mmm D6h 24 6/mmm; 23 T 12 m-3;   m-3 Th 24 m-3;    432 O 24 m-3m
-43m Td 24 m-3m;  m-3m Oh 48 m-3m
"""
ROWS = [entry.split() for entry in TABLE.replace("\n", ";").split(";") if entry.strip()]


def test_there_are_32_crystallographic_point_groups():
    assert len(ROWS) == 32
    prints = {tuple(sorted(groups.pointgroup(name).coords["operation"])) for name, *_ in ROWS}
    assert len(prints) == 32


@pytest.mark.parametrize(("name", "schoenflies", "order", "laue"), ROWS, ids=lambda word: word)
def test_order_names_and_laue_class_are_those_of_the_table(name, schoenflies, order, laue):
    group = groups.parse(f"pointgroup:{name}")
    assert len(group) == int(order)
    assert group.closed
    assert _holds_every_product(group)
    assert groups.parse(f"pointgroup:{schoenflies}").fingerprint() == group.fingerprint()
    assert str(group) == f"pointgroup:{name}"
    with_inversion = groups.product(group, groups.inversion())
    same = groups.pointgroup(laue)
    assert len(with_inversion) == len(same)
    assert (same.index_of(with_inversion) >= 0).all()


def _holds_every_product(group):
    first, second = np.divmod(np.arange(len(group) ** 2), len(group))
    table = group.index_of(group[first].compose(group[second])).reshape(len(group), -1)
    return (np.sort(table, axis=1) == np.arange(len(group))).all()


@pytest.mark.parametrize("name", [name for name, *_ in ROWS])
def test_the_names_of_operations_say_what_they_do(name):
    """`-4+ [001]` has order 4, determinant -1, and an axis that it keeps up to sign."""
    group = groups.pointgroup(name)
    names = group.coords["operation"]
    assert len({*names}) == len(group)
    for matrix, symbol in zip(group.linear("space"), names, strict=True):
        kind, _, axis = symbol.partition(" ")
        improper = kind.startswith(("-", "m"))
        assert np.sign(np.linalg.det(matrix)) == (-1 if improper else 1)
        turn = -matrix if improper else matrix
        order = 2 if kind == "m" else int(kind.strip("+-"))
        np.testing.assert_allclose(np.linalg.matrix_power(turn, order), np.eye(3), atol=1e-12)
        angle = np.rad2deg(np.arccos(np.clip((np.trace(turn) - 1) / 2, -1, 1)))
        assert angle == pytest.approx(360 / order if order > 1 else 0, abs=1e-5)
        if " " in axis:
            u = np.array(axis.strip("[]").split(), float)
            np.testing.assert_allclose(turn @ u, u, atol=0.02)


def test_senses_of_rotation_are_counter_clockwise_about_the_named_axis():
    group = groups.pointgroup("4")
    plus = list(group.coords["operation"]).index("4+ [001]")
    np.testing.assert_array_equal(group.linear("space")[plus] @ [1, 0, 0], [0, 1, 0])


@pytest.mark.parametrize(
    ("text", "order", "classes"),
    [
        ("tetrahedral", 12, {"1": 1, "2": 3, "3": 8}),
        ("tetrahedral:full", 24, {"1": 1, "2": 3, "3": 8, "m": 6, "-4": 6}),
        ("octahedral", 24, {"1": 1, "2": 9, "3": 8, "4": 6}),
        (
            "octahedral:full",
            48,
            {"1": 1, "2": 9, "3": 8, "4": 6, "-1": 1, "m": 9, "-3": 8, "-4": 6},
        ),
        ("icosahedral", 60, {"1": 1, "2": 15, "3": 20, "5": 12, "5^2": 12}),
    ],
)
def test_the_regular_solids_have_the_classes_of_the_table(text, order, classes):
    group = groups.parse(text)
    assert len(group) == order
    assert group.closed
    assert _holds_every_product(group)
    kinds = Counter(name.split()[0].rstrip("+") for name in group.coords["operation"])
    merged = Counter()
    for kind, count in kinds.items():
        merged[kind.rstrip("-") or kind] += count
    assert merged == classes


def test_all_symmetries_of_an_icosahedron_are_its_rotations_and_their_inversions():
    full, turns = groups.icosahedral("full"), groups.icosahedral()
    assert len(full) == 120
    assert _holds_every_product(full)
    both = groups.product(turns, groups.inversion())
    assert sorted(full.index_of(both)) == [*range(120)]


@pytest.mark.parametrize("text", ["octahedral:full", "tetrahedral", "reflections3d", "inversion"])
def test_groups_of_the_cube_keep_a_grid_of_voxels(text):
    group = groups.parse(text)
    assert group.exact_on_grid
    assert np.isin(group.linear("space"), (-1, 0, 1)).all()
    assert (groups.octahedral("full").index_of(group) >= 0).all()


@pytest.mark.parametrize(
    "text", ["rotations3d:8", "pointgroup:3", "icosahedral", "translations3d:1"]
)
def test_other_groups_of_space_do_not(text):
    assert not groups.parse(text).exact_on_grid


def test_mirrors_of_space_are_the_point_group_mmm():
    mirrors = groups.reflections3d()
    assert sorted(groups.pointgroup("mmm").index_of(mirrors)) == [*range(8)]
    assert mirrors.coords["flip"][mirrors.identity] == "none"


def test_shifts_of_space_are_drawn_plane_by_plane():
    group = groups.translations3d(2, 1)
    assert len(group) == 125
    assert group.contains_inverses
    top_right = group.layout.index[0, -1]
    assert group.name(top_right) == "dx 2, dy 2, dz 2"
    shift = group.parts["space"][top_right, :3, 3]
    np.testing.assert_array_equal(shift, [2, 2, 2])


def test_o3_holds_each_rotation_and_its_inversion():
    group = groups.o3(16)
    assert len(group) == 32
    determinant = np.linalg.det(group.linear("space"))
    np.testing.assert_allclose(np.sort(determinant), np.repeat([-1, 1], 16))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("pointgroup:mmmm", "did you mean 'mmm'"),
        ("pointgroup:d6H", "did you mean 'D6h'"),
        ("pointgroup:5", "NAME: unknown name '5'"),
        ("pointgroup", "expected 'pointgroup:NAME'"),
        ("polarity", "such as 'sign', got 'polarity'"),
        ("rotation:8", "did you mean 'rotations'"),
        ("octahedral:ful", "did you mean 'full'"),
        ("octahedral:2", "KIND: unknown name '2'"),
        ("translations3d:100", "got 8,120,601 in"),
        ("translations3d:1:0.3", "a multiple of the step"),
    ],
)
def test_names_that_do_not_exist_suggest_the_nearest(text, words):
    with pytest.raises(InputError) as caught:
        groups.parse(text)
    assert words in str(caught.value)


def test_a_constructor_of_your_own_has_a_text():
    from orbical.groups.group_names import CATALOG

    @groups.register("weighted:2:last")
    def weighted(first: float, name: str = "half"):
        """Return a half turn that counts differently."""
        turns = [np.eye(2), -np.eye(2)]
        return groups.from_matrices(plane=turns, weights=[first, 1], coords={name: [0, 180]})

    try:
        group = groups.parse("weighted:3:turn*time_reversal")
        assert {"turn", "time"} == {*group.coords}
        assert group.weights.max() == 0.375
        assert CATALOG["weighted"].usage == "weighted:FIRST:NAME"
        assert CATALOG["weighted"].summary == "Return a half turn that counts differently."
        with pytest.raises(InputError, match=r"expected 'weighted:FIRST:NAME', got 'weighted:x'"):
            groups.parse("weighted:x")
    finally:
        del CATALOG["weighted"]
    with pytest.raises(InputError, match="expected a new name, got 'flips'"):

        @groups.register()
        def flips():
            """Return another group of this name."""


def test_operations_are_shown_by_what_they_do_with_the_symbol_second():
    group = groups.pointgroup("mmm")
    shown = [groups.spoken_name(group, place) for place in range(len(group))]
    assert shown[:2] == ["identity (1)", "180° about [100] (2)"]
    assert shown[4:6] == ["inversion (-1)", "mirror across [100] (m)"]
    assert groups.spoken_name(groups.rotations(4), 1) == "angle 90"
