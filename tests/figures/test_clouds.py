"""Pictures of point clouds."""

import numpy as np
import pytest

from orbical.errors import InputError
from orbical.figures.pictures import cloud_picture, look_from


def test_every_look_is_a_rotation():
    for yaw in (0, 40, 200):
        for pitch in (-90, 10, 60):
            look = look_from(yaw, pitch)
            np.testing.assert_allclose(look @ look.T, np.eye(3), atol=1e-12)
            assert np.linalg.det(look) == pytest.approx(1)


def test_what_is_up_is_drawn_above_and_what_is_near_is_darker():
    points = [[0, 0.9, 0], [0, -0.5, 1.0], [0, 0, -1.0]]
    picture = cloud_picture(points, size=64, yaw_deg=0, pitch_deg=0)
    rows = np.flatnonzero((picture < 1).any(1))
    top, bottom = picture[rows[0]].min(), picture[rows[-1]].min()
    assert rows[0] < 16
    assert rows[-1] > 40
    assert bottom < top  # the lowest point is the nearest


def test_few_points_are_discs_that_can_be_seen_in_a_small_picture():
    corners = [[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)]
    drawn = (cloud_picture(corners, size=56) < 1).sum()
    assert 8 * 30 <= drawn <= 8 * 64
    one = np.argwhere(cloud_picture([[0, 0, 0]], size=56) < 1)
    np.testing.assert_allclose(one.mean(0), 27.5, atol=0.6)  # in the middle
    assert len(one) < np.ptp(one[:, 0] + 1) * (np.ptp(one[:, 1]) + 1)  # round: without corners


def test_masked_points_are_not_drawn():
    points = np.random.default_rng(0).normal(size=(10, 3))
    assert (cloud_picture(points, np.zeros(10, bool)) == 1).all()
    some = np.arange(10) < 4
    np.testing.assert_array_equal(cloud_picture(points, some), cloud_picture(points[:4]))


def test_what_is_no_cloud_is_refused():
    with pytest.raises(InputError, match=r"points: expected .* got shape \(4, 2\)"):
        cloud_picture(np.zeros((4, 2)))
    with pytest.raises(InputError, match="size: expected an integer >= 8"):
        cloud_picture(np.zeros((4, 3)), size=2)
