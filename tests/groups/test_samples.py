"""Rigid motions, affine maps, shears, shifts in time, colors: windows about the identity."""

from __future__ import annotations

from contextlib import suppress

import numpy as np
import pytest
import torch

import orbical as ob
from orbical import groups
from orbical.errors import InputError


def test_rigid_motions_are_rigid_and_fill_their_window():
    for group, part, size in ((groups.se2(256, 3), "plane", 2), (groups.se3(256, 3), "space", 3)):
        assert group.identity == 0
        linear, shift = group.linear(part), group.parts[part][:, :size, size]
        np.testing.assert_allclose(linear @ linear.transpose(0, 2, 1), [np.eye(size)] * 256,
                                   atol=1e-12)  # fmt: skip
        np.testing.assert_allclose(np.linalg.det(linear), 1)
        assert np.abs(shift).max() <= 3
        assert np.abs(shift).max() > 2.9
        assert np.abs(shift.mean(0)).max() < 0.05
        # Uniform rotations average to 0, and sampled evenly they nearly do.
        assert np.abs(linear.mean(0)).max() < 0.02


def test_affine_maps_stay_in_their_window():
    group = groups.affine(128, 20, 1.5, 0.25, 2)
    assert group.identity == 0
    assert np.abs(group.coords["angle"]).max() <= 20
    assert group.coords["scale_x"].max() <= 1.5
    assert group.coords["scale_y"].min() >= 1 / 1.5
    determinant = np.linalg.det(group.linear("plane"))
    np.testing.assert_allclose(determinant, group.coords["scale_x"] * group.coords["scale_y"])
    assert len(groups.affine(1)) == 1


def test_shears_add_up():
    group = groups.shear(0.4, 5)
    assert group.contains_inverses
    assert group.index_of(group[[3]].compose(group[[3]]))[0] == 4
    points = ob.actions.Points().apply(group, torch.tensor([[[1.0, 2.0]]]))
    torch.testing.assert_close(points[4, 0, 0], torch.tensor([1.8, 2.0]))


def test_shifts_in_time_add_up_and_combine():
    group = groups.shifts(4, 2)
    assert group.parts["shift"].tolist() == [-4, -2, 0, 2, 4]
    assert group.inverse().parts["shift"].tolist() == [4, 2, 0, -2, -4]
    assert group.contains_inverses
    assert not group.closed
    assert len(groups.parse("shifts:4:2*time_reversal")) == 10


def test_a_third_of_a_turn_of_the_hue_exchanges_the_channels():
    image = torch.rand(2, 3, 4, 5)
    moved = ob.actions.ColorImages().apply(groups.hue(3), image)
    torch.testing.assert_close(moved[1], image.roll(1, 1))
    assert groups.hue(12).closed
    gray = torch.rand(2, 1, 4, 5).expand(-1, 3, -1, -1)
    kept = ob.actions.ColorImages().apply(groups.hue(7), gray)
    torch.testing.assert_close(kept, gray.expand(7, -1, -1, -1, -1))


def test_brightness_multiplies_and_colors_commute_with_moves():
    image, group = torch.rand(2, 3, 6, 6), groups.parse("brightness:0.5:2:3*cyclic:4")
    action = ob.actions.ColorImages()
    moved = action.apply(group, image)
    turned = ob.actions.Images().apply(group, image)
    torch.testing.assert_close(
        moved, turned * torch.as_tensor(group.coords["brightness"]).float().reshape(-1, 1, 1, 1, 1)
    )
    assert float(action.defect(group, image).max()) < 1e-6


def test_colors_need_an_action_on_colors():
    image = torch.rand(2, 3, 4, 4)
    with pytest.raises(InputError, match=r"the color part of hue:12 .*; color moves ColorImages"):
        ob.actions.check_group(ob.actions.Images(), groups.hue(12), image)
    with pytest.raises(InputError, match=r"\[sample, 3, row, column\] in red, green and blue"):
        ob.actions.check_group(ob.actions.ColorImages(), groups.hue(12), image[:, :1])
    task = ob.tasks.Classification(input=ob.tasks.parse_input("color-images"))
    net = torch.nn.Sequential(torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten())
    scan = ob.scan(net, (image, [0, 1]), group="hue:6", task=task, progress=False)
    assert scan.data["hue"].values.tolist() == [0, 60, 120, 180, 240, 300]
    assert float(scan.data["confidence"].std()) > 0


@pytest.mark.parametrize(
    "text",
    [
        *("affine:4:1e308", "affine:4:1:1e308", "affine:2:1:1:1e308", "se2:4:1e308"),
        *("se3:4:1e308", "homographies:20:3:1e308", "homographies:20:3:1e-300", "shear:1e308:3"),
    ],
)
def test_windows_of_any_size_are_made_or_refused_by_name(text):
    with np.errstate(all="ignore"), suppress(InputError):
        assert groups.parse(text).weights.sum() == pytest.approx(1)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("shear:0.5:4", "N: expected an odd number"),
        ("shear:0:3", "LIMIT: expected a number > 0"),
        ("se2:0", "N: expected an integer >= 1"),
        ("se3:8:-1", "RADIUS: expected a number >= 0, got -1"),
        ("affine:8:10:0.5", "SCALE: expected a number >= 1, got 0.5"),
        ("affine:1e9", "got 1,000,000,000 in affine:1000000000"),
        ("shifts:3:2", "a multiple of the step"),
        ("brightness:2:3", "0 < low <= 1 <= high"),
        ("hue:x", "expected 'hue:N'"),
    ],
)
def test_windows_that_hold_no_identity_are_named(text, words):
    with pytest.raises(InputError) as caught:
        groups.parse(text)
    assert words in str(caught.value)


def test_an_arc_of_rotations_is_a_window_with_the_identity():
    group = ob.groups.parse("rotations:-15:15:7")
    assert group.spec == "rotations:-15:15:7"
    assert group.coords["angle"].tolist() == [-15, -10, -5, 0, 5, 10, 15]
    assert group.identity == 3
    assert not group.closed
    whole = ob.groups.rotations(72)
    assert group.index_of(whole[[1]]).tolist() == [4]
    chart = ob.groups.chart_of(group)
    assert (chart.low.tolist(), chart.high.tolist()) == ([-15.0], [15.0])
    assert ob.groups.chart_of(whole).high.tolist() == [np.inf]


@pytest.mark.parametrize("text", ["rotations:5:15:3", "rotations:-10:15:3", "rotations:-270:0:4"])
def test_an_arc_without_the_identity_or_beyond_a_turn_is_refused(text):
    with pytest.raises(ob.errors.InputError, match="0 among them"):
        ob.groups.parse(text)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("circle", [0, 1], {"phase": [0.0, 180.0]}), "'angle' of a circle"),
        (("line", [0.5, 1.5]), "indices of elements"),
        (("line", [0, 1], {"t": [0.0]}), "2 values along 't'"),
        (("disc", [0]), "unknown name 'disc'"),
    ],
)
def test_layouts_are_checked_when_they_are_made(arguments, message):
    with pytest.raises(ob.errors.InputError, match=message):
        ob.groups.Layout(*arguments)


@pytest.mark.parametrize("count", [1, 2, 5, 64, 1000])
def test_points_that_cover_a_window_are_those_of_scipy(count):
    from scipy.stats.qmc import Sobol

    sequence = Sobol(3, scramble=False)
    sequence.fast_forward(1)
    group = groups.se2(count, 2.0)
    expected = 2 * sequence.random(count) - 1
    assert np.array_equal(group.coords["angle"], 180 * expected[:, 0])
    assert np.array_equal(group.coords["dx"], 2 * expected[:, 1])
