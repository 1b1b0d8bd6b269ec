"""Homographies: images, points and boxes move by them alike; what cannot, refuses."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.ndimage import map_coordinates

import orbical as ob
from orbical import groups
from orbical.actions import Boxes, Images, PairWindow, Points, VectorField, Vectors, Window
from orbical.errors import InputError

GROUP = groups.homographies(15, 3, 40)


def smooth(size=33):
    line = np.linspace(-1, 1, size)
    x, y = np.meshgrid(line, line)
    return np.sin(2 * x + 1) * np.cos(3 * y) + 0.5 * x * y


def test_a_panned_camera_composes_as_its_rotations_do():
    group = groups.homographies(20, 5, 70)
    small, large = (group.layout.index[2, column] for column in (3, 4))
    assert (group.coords["pan"][small], group.coords["pan"][large]) == (10, 20)
    assert group.index_of(group[[small]].compose(group[[small]]))[0] == large
    middle = group.parts["plane"][large] @ [0, 0, 1]
    assert middle[0] / middle[2] == pytest.approx(70 * np.tan(np.deg2rad(20)))
    up = group.parts["plane"][group.layout.index[0, 2]] @ [0, 0, 1]
    assert up[1] / up[2] == pytest.approx(70 * np.tan(np.deg2rad(20)))


def test_images_come_from_where_the_inverse_map_says():
    image = smooth()
    moved = Images().apply(GROUP, torch.as_tensor(image)[None, None])[:, 0, 0].numpy()
    valid = Images().valid(GROUP, torch.as_tensor(image)[None, None]).numpy()
    rows, columns = np.mgrid[:33, :33] - 16.0
    places = np.stack([columns.ravel(), -rows.ravel(), np.ones(33 * 33)])
    for k, matrix in enumerate(GROUP.parts["plane"]):
        x, y, w = np.linalg.inv(matrix) @ places
        source = np.stack([-y / w + 16, x / w + 16])
        expected = map_coordinates(image, source, order=1, mode="constant")
        inside = (np.abs(source - 16) <= 16).all(0)
        np.testing.assert_array_equal(valid[k].ravel(), inside)
        # Where the view shrinks, an image is averaged over a pixel, and at its border with zeros.
        deep = (np.abs(source - 16) <= 15).all(0)
        np.testing.assert_allclose(moved[k].ravel()[deep], expected[deep], atol=5e-3)
    assert not valid.all()


def test_points_and_boxes_move_with_the_image():
    image = torch.zeros(1, 1, 41, 41)
    image[0, 0, 10, 27] = 1.0
    moved = Images("nearest").apply(GROUP, image)[:, 0, 0]
    point = Points().apply(GROUP, torch.tensor([[[27.0 - 20, 20 - 10.0]]]))[:, 0, 0]
    box = Boxes(41, 41).apply(GROUP, torch.tensor([[[27.0, 10, 28, 11]]]))[:, 0, 0]
    for k in range(len(GROUP)):
        seen = moved[k].nonzero().double()
        if not len(seen):  # moved out, or between the places that are read
            continue
        row, column = seen.mean(0)
        assert abs(float(point[k, 0]) + 20 - column) < 1
        assert abs(20 - float(point[k, 1]) - row) < 1
        assert box[k, 0] - 1 < column + 0.5 < box[k, 2] + 1
        assert box[k, 1] - 1 < row + 0.5 < box[k, 3] + 1


def test_points_return():
    points = torch.randn(2, 5, 2, dtype=torch.float64) * 5
    there = Points().apply(GROUP, points)
    back = Points().move(GROUP.inverse(), there)
    torch.testing.assert_close(back, points.expand_as(back))


def test_a_window_inside_a_larger_image_sees_real_pixels():
    image = torch.as_tensor(smooth(65)).float()[None, None]
    moved = Window(17).apply(GROUP, image)
    whole = Images().apply(GROUP, image)[..., 24:41, 24:41]
    torch.testing.assert_close(moved, whole, atol=1e-5, rtol=0)
    with pytest.raises(InputError, match="moves the window of 61 pixels out"):
        Window(61).check(GROUP, image)


def test_a_homography_without_a_turn_is_not_a_crop():
    tilted = groups.from_matrices(plane=[np.eye(3), [[1, 0, 0], [0, 1, 0], [0.01, 0, 1]]])
    image = torch.rand(1, 1, 16, 16)
    assert Window(8)._offsets(tilted, image) is None
    assert not torch.equal(*Images().apply(tilted, image))


def test_scaled_matrices_are_the_same_homography():
    tilt = np.array([[1, 0, 0], [0, 1, 0], [0.01, 0, 1]])
    a, b = (groups.from_matrices(plane=[np.eye(3), factor * tilt]) for factor in (1, 5))
    np.testing.assert_allclose(a.parts["plane"], b.parts["plane"])


@pytest.mark.parametrize(
    ("action", "x", "words"),
    [
        (Vectors(), torch.rand(2, 2), "affine maps for the action Vectors"),
        (VectorField(), torch.rand(1, 2, 8, 8), "affine maps for the action VectorField"),
        (PairWindow(4), torch.rand(1, 2, 1, 8, 8), "affine maps for the action PairWindow"),
        (Boxes(600, 600), torch.rand(1, 1, 4).sort().values, "in front of the camera"),
        (Points(), torch.full((1, 1, 2), 300.0), "in front of the horizon"),
    ],
)
def test_what_cannot_move_by_homographies_refuses(action, x, words):
    with pytest.raises(InputError) as caught:
        ob.actions.check_group(action, GROUP, x)
    assert words in str(caught.value)


def test_a_classifier_is_scanned_over_views():
    net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 3))
    data = (torch.rand(4, 1, 8, 8), [0, 1, 2, 0])
    scan = ob.scan(net, data, group="homographies:20:3:8", task="classification", progress=False)
    assert scan.data.sizes["element"] == 9
    assert float(scan.data["confidence"].std("element").max()) > 0
    assert not ob.tasks.Regression(Points(), "vector").isometric(scan.group)
    assert not ob.tasks.Detection(input=Images(), size=(8, 8)).isometric(scan.group)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("homographies:20:4", "N: expected an odd number"),
        ("homographies:90:3", "LIMIT: expected an angle between 0 and 90"),
        ("homographies:20:3:0", "FOCAL: expected a number > 0"),
    ],
)
def test_bad_views_are_named(text, words):
    with pytest.raises(InputError) as caught:
        groups.parse(text)
    assert words in str(caught.value)
