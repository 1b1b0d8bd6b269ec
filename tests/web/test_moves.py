"""Inputs moved in JavaScript are those that Python moves."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import orbical as ob
from orbical.actions import (
    ColorImages,
    ImagePair,
    Images,
    PairWindow,
    Points,
    Signals,
    SignalWindow,
    Trivial,
    Vectors,
    Volumes,
    Window,
)
from orbical.interface.session.input_pictures import MOST_VOXELS
from orbical.tasks._maps import map_of_volume_slices

MODULES = {"moves/index.js": "moveInput, canMove"}
BODY = """
return given.elements.map((element) => moveInput(given.action, element, {
  x: { data: Float32Array.from(given.data), shape: given.shape },
}).x);
"""


def elements_of(group):
    return [
        {
            "exact": group.exact_on_grid,
            **{name: np.ravel(part[k]).tolist() for name, part in group.parts.items()},
            **{
                name: float(group.parts[name][k])
                for name in ("time", "shift", "gain")
                if name in group.parts
            },
        }
        for k in range(len(group))
    ]


def both(in_node, action, group, x):
    """Move one input by every element, in Python and in JavaScript."""
    group = ob.groups.parse(group)
    expected = action.apply(group, x[None])[:, 0]
    if isinstance(action, Volumes) and x[0].numel() > MOST_VOXELS:
        expected = map_of_volume_slices(expected, np.nan, max(x.shape))
    expected = expected.numpy()
    given = {
        "action": action.describe(),
        "elements": elements_of(group),
        "data": x.double().flatten().tolist(),
        "shape": list(x.shape),
    }
    moved = in_node(MODULES, BODY, given)
    found = np.array([one["data"] for one in moved]).reshape(-1, *moved[0]["shape"])
    assert found.shape == expected.shape
    return found, expected


@pytest.mark.parametrize("padding", ["zeros", "border", "reflect"])
@pytest.mark.parametrize("interpolation", ["bilinear", "bicubic"])
@pytest.mark.parametrize(
    "group",
    [
        *("rotations:24", "translations:3:1.5", "scales:0.5:2:5", "dihedral:4", "cyclic:5"),
        "homographies:25:3:8",
    ],
)
def test_images_are_resampled_alike(in_node, group, interpolation, padding):
    x = torch.rand(2, 9, 9, generator=torch.Generator().manual_seed(0))
    found, expected = both(in_node, Images(interpolation, padding), group, x)
    assert np.abs(found - expected).max() < 1e-4
    assert np.abs(expected - expected[0]).max() > 0.1  # the group does move the image


@pytest.mark.parametrize("group", ["rotations:5*scales:0.4:1:3", "scales:0.05:1:2"])
def test_images_that_shrink_are_filtered_alike(in_node, group):
    x = torch.rand(1, 12, 12, generator=torch.Generator().manual_seed(7))
    found, expected = both(in_node, Images(), group, x)
    assert np.abs(found - expected).max() < 1e-4


@pytest.mark.parametrize("shape", [(1, 28, 28), (3, 7, 10), (1, 10, 7)])
def test_sides_of_any_length_are_resampled_alike(in_node, shape):
    x = torch.rand(shape, generator=torch.Generator().manual_seed(1))
    found, expected = both(in_node, Images(), "rotations:16", x)
    assert np.abs(found - expected).max() < 1e-4


@pytest.mark.parametrize("group", ["translations:2", "translations:2:0.5"])
def test_a_window_shows_what_python_shows(in_node, group):
    x = torch.rand(1, 12, 12, generator=torch.Generator().manual_seed(2))
    found, expected = both(in_node, Window(8), group, x)
    assert np.abs(found - expected).max() < 1e-4


@pytest.mark.parametrize("group", ["hue:5", "brightness:0.5:2:3*rotations:3", "cyclic:4*hue:3"])
def test_images_are_recolored_alike(in_node, group):
    x = torch.rand(3, 6, 6, generator=torch.Generator().manual_seed(3))
    found, expected = both(in_node, ColorImages(), group, x)
    assert np.abs(found - expected).max() < 1e-4


def test_reversed_time_swaps_the_frames_of_a_pair(in_node):
    x = torch.rand(2, 1, 6, 6, generator=torch.Generator().manual_seed(3))
    found, expected = both(in_node, ImagePair(), "dihedral:4*time_reversal", x)
    assert np.abs(found - expected).max() < 1e-6


@pytest.mark.parametrize("group", ["rotations:8", "dihedral:4", "cyclic:4*time_reversal"])
def test_a_view_that_turns_inside_larger_pairs(in_node, group):
    x = torch.rand(2, 1, 12, 12, generator=torch.Generator().manual_seed(6))
    found, expected = both(in_node, PairWindow(6), group, x)
    assert np.abs(found - expected).max() < 1e-4


@pytest.mark.parametrize("group", ["rotations3d:12", "permutations:5"])
@pytest.mark.parametrize("action", [Points(), Vectors(), Vectors(per_point=True), Trivial()])
def test_points_and_vectors_are_moved_alike(in_node, action, group):
    x = torch.randn(5, 3, generator=torch.Generator().manual_seed(4))
    found, expected = both(in_node, action, group, x)
    assert np.abs(found - expected).max() < 1e-5


def test_points_in_the_plane_are_shifted(in_node):
    x = torch.randn(4, 2, generator=torch.Generator().manual_seed(5))
    found, expected = both(in_node, Points(), "euclidean:4:1:1", x)
    assert np.abs(found - expected).max() < 1e-5


@pytest.mark.parametrize("action", [Signals(), SignalWindow(5)])
@pytest.mark.parametrize("group", ["shifts:2:0.5", "shifts:2*gains:0.5:2:3", "time_reversal*sign"])
def test_signals_are_moved_alike(in_node, action, group):
    x = torch.randn(2, 10, generator=torch.Generator().manual_seed(7))
    found, expected = both(in_node, action, group, x)
    assert np.abs(found - expected).max() < 1e-6


def test_an_action_that_is_not_known_is_not_claimed(in_node):
    answers = in_node(
        MODULES,
        "return given.map(canMove);",
        [
            {"action": "Images"},
            {"action": "Irreps"},
            {"action": "Fields", "fields": {"a": {"action": "Points"}, "b": {"action": "Boxes"}}},
            {"action": "Fields", "fields": {"a": {"action": "Points"}, "b": {"action": "Rows"}}},
        ],
    )
    assert answers == [True, False, False, True]


@pytest.mark.parametrize(
    ("group", "shape", "settings"),
    [
        ("octahedral:full", (2, 5, 5, 5), ()),
        ("se3:6:1", (1, 6, 5, 7), ("trilinear", "reflect")),
        ("rotations3d:6", (1, 5, 5, 5), ("nearest", "border")),
        ("se3:6:1", (1, 6, 5, 7), ("trilinear", "border", (3.0, 1.0, 0.5))),
    ],
)
def test_volumes_are_moved_as_in_python(in_node, group, shape, settings):
    x = torch.rand(*shape, generator=torch.Generator().manual_seed(3))
    found, expected = both(in_node, Volumes(*settings), group, x)
    np.testing.assert_allclose(found.astype(float), expected, atol=1e-4)
    assert np.nanmax(np.abs(expected - expected[0])) > 0.1


def test_of_large_volumes_the_middle_slices_are_moved(in_node):
    x = torch.rand(1, 64, 64, MOST_VOXELS // 64**2 + 1, generator=torch.Generator().manual_seed(3))
    found, expected = both(in_node, Volumes(), "inversion", x)
    assert found.shape[1:] == (1, 64 + 1 + 64, 65 + 1 + 64)
    np.testing.assert_allclose(found.astype(float), expected, atol=1e-4)
