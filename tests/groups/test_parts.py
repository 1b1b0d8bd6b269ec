"""Parts of groups: how elements multiply, and parts that a user adds."""

from __future__ import annotations

import numpy as np
import pytest

import orbical as ob
from orbical import groups
from orbical.errors import InputError
from orbical.groups.group_parts import PARTS

DRAW = np.random.default_rng(0)
KINDS = {
    "matrices": (groups.Part.matrices(), DRAW.normal(size=(3, 6, 4, 4))),
    "maps": (groups.Part.maps(), np.eye(3) + 0.1 * DRAW.normal(size=(3, 6, 3, 3))),
    "permutations": (
        groups.Part.permutations(),
        DRAW.permuted(np.tile(np.arange(5), (3, 6, 1)), axis=-1),
    ),
    "factors": (groups.Part.factors(), DRAW.uniform(0.5, 2, size=(3, 6))),
    "shifts": (groups.Part.shifts(), DRAW.normal(size=(3, 6, 2))),
}


@pytest.fixture
def charge():
    """A part that exists in this test alone."""
    groups.register_part("charge", groups.Part.factors("charges"))
    yield "charge"
    del PARTS["charge"]


@pytest.mark.parametrize("kind", KINDS)
def test_every_rule_is_that_of_a_group(kind):
    rule, (f, g, h) = KINDS[kind]
    if kind == "maps":  # the last entry of a homography is a matter of scale
        f, g, h = (m / m[:, -1:, -1:] for m in (f, g, h))
    left, right = rule.compose(rule.compose(f, g), h), rule.compose(f, rule.compose(g, h))
    np.testing.assert_allclose(left, right, atol=1e-9)
    still = np.repeat(rule.neutral(f), len(f), 0)
    np.testing.assert_allclose(rule.compose(f, still), f, atol=1e-12)
    np.testing.assert_allclose(rule.compose(still, f), f, atol=1e-12)
    np.testing.assert_allclose(rule.compose(f, rule.inverse(f)), still, atol=1e-9)
    np.testing.assert_allclose(rule.compose(rule.inverse(f), f), still, atol=1e-9)


def test_permutations_act_as_they_are_composed():
    rule, (first, second, _) = KINDS["permutations"]
    x = np.arange(5) * 10
    both = rule.compose(second, first)
    for one, two, product in zip(first, second, both, strict=True):
        np.testing.assert_array_equal(x[one][two], x[product])


def test_a_part_of_your_own_multiplies_and_combines(charge):
    group = groups.from_parts("charges", {charge: [1.0, -1.0]}, coords={"sign": ["plus", "minus"]})
    assert group.closed
    assert group.name(group.identity) == "sign plus"
    assert group.layout.kind == "tiles"
    both = groups.product(group, groups.flips())
    assert len(both) == 8
    assert both.closed
    assert both.contains_inverses
    with pytest.raises(InputError, match=r"the charge part of charges .*; charge moves charges"):
        ob.actions.check_group(ob.actions.Trivial(), group, np.zeros(1))


def test_a_part_that_nobody_registered_is_named(charge):
    group = groups.from_parts("charges", {charge: [1.0, -1.0]})
    saved = PARTS.pop("charge")
    try:
        for multiply in (group.inverse, lambda: group.compose(group)):
            with pytest.raises(InputError, match=r"import the file .*register_part\('charge'"):
                multiply()
        assert group.fingerprint()
        assert group[:1].parts["charge"].tolist() == [1]
        with pytest.raises(InputError, match="charge moves no known data"):
            ob.actions.check_group(ob.actions.Trivial(), group, np.zeros(1))
    finally:
        PARTS["charge"] = saved


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: groups.register_part("plane", groups.Part.shifts()), "which is a part of orbical"),
        (lambda: groups.register_part("two words", groups.Part.shifts()), "an identifier"),
        (lambda: groups.register_part("weights", groups.Part.shifts()), "an identifier"),
        (lambda: groups.register_part("gauge", np.add), "expected an orbical.groups.Part"),
        (lambda: groups.from_parts("", {"time": [1.0]}), "name: expected text"),
        (lambda: groups.from_parts("own", {}), "at least one part"),
        (lambda: groups.from_parts("own", {"gauge": [1.0]}), "expected a registered part"),
        (lambda: groups.from_parts("own", {"time": 1.0}), "time: expected an array"),
        (lambda: groups.from_parts("own", {"time": ["a"]}), "time: expected an array"),
        (lambda: groups.from_parts("own", {"time": [1, np.nan]}), "time: expected finite"),
        (lambda: groups.from_parts("own", {"time": [1.0, 0.0]}), "time: expected"),
        (lambda: groups.from_parts("own", {"time": [2.0]}), "identity among the elements of 'own'"),
        (lambda: groups.from_parts("own", {"rows": [[0, 1], [0, 0]]}), "rows: expected elements"),
        (lambda: groups.from_parts("own", {"plane": np.zeros((1, 3, 3))}), "that can be inverted"),
        (lambda: groups.from_parts("own", {"plane": np.zeros((1, 3, 2))}), "that can be inverted"),
        (
            lambda: groups.from_parts("own", {"time": [1.0, -1], "rows": [[0, 1]]}),
            "as many elements in each part, got {'time': 2, 'rows': 1}",
        ),
        (
            lambda: groups.from_parts("own", {"time": [1.0]}, layout=groups.Layout("disc", [0])),
            "layout: unknown name 'disc'",
        ),
        (
            lambda: groups.from_parts("own", {"time": [1.0]}, layout=groups.Layout("line", [1])),
            "every element 0 .. 0",
        ),
        (
            lambda: groups.from_parts(
                "own", {"time": [1.0]}, layout=groups.Layout("line", [0], {"t": [1, 2]})
            ),
            "expected 1 values along 't'",
        ),
        (lambda: ob.actions.register(int), "expected a subclass of Action"),
        (lambda: ob.actions.register(ob.actions.Images), "expected a new name, got 'Images'"),
    ],
)
def test_bad_arguments_are_named(make, words):
    with np.errstate(divide="ignore", invalid="ignore"), pytest.raises(InputError) as caught:
        make()
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("spec", "unit", "farthest"),
    [
        ("rotations:8", "°", 180.0),
        ("cyclic:2", "°", 180.0),
        ("rotations3d:64", "°", None),
        ("slices3d:8:5", "°", 180.0),
        ("octahedral", "°", 180.0),
        ("hue:12", "°", 180.0),
        ("translations:4:4", "px", 32**0.5),
        ("translations3d:1", "", 3**0.5),
        ("shifts:8:2", "samples", 8.0),
        ("scales:0.25:2:5", "×", 4.0),
        ("brightness:0.5:2:3", "×", 2.0),
        ("gains:0.25:4:9", "×", 4.0),
    ],
)
def test_rotations_shifts_and_scalings_have_a_size(spec, unit, farthest):
    group = groups.parse(spec)
    reach, its_unit = group.reach
    assert its_unit == unit
    assert reach.argmin() == group.identity
    assert reach[group.identity] == (1 if unit == "×" else 0)
    if farthest is not None:
        assert reach.max() == pytest.approx(farthest)


def test_the_size_of_a_rotation_of_space_is_its_angle():
    group = groups.rotations3d(64)
    vectors = np.stack([group.coords[name] for name in ("rx", "ry", "rz")])
    np.testing.assert_allclose(group.reach[0], np.linalg.norm(vectors, axis=0), atol=1e-6)


@pytest.mark.parametrize(
    "spec",
    [
        "flips",
        "dihedral:4",
        "sign",
        "permutations:3",
        "se2:8:1",
        "shear",
        "homographies",
        "rotations:4*hue:3",
        "inversion",
        "trivial",
    ],
)
def test_mirrors_permutations_and_mixed_motions_have_no_size(spec):
    assert groups.parse(spec).reach is None


def test_a_part_of_your_own_says_how_far_its_elements_reach(charge):
    group = groups.from_parts("charges", {charge: [0.5, 1.0, 2.0]})
    assert group.reach[0].tolist() == [2.0, 1.0, 2.0]
