"""Point clouds: generated furniture, readers of public files, clouds of unequal sizes."""

import numpy as np
import pytest
import torch

from orbical.datasets import furniture, padded
from orbical.datasets.furniture_clouds import BUILDERS, FurniturePart
from orbical.errors import InputError


class TestFurniture:
    def test_the_same_seed_gives_the_same_clouds_and_another_gives_others(self):
        first, again, other = furniture(2, 64), furniture(2, 64), furniture(2, 64, seed=1)
        assert torch.equal(first.points, again.points)
        assert not torch.allclose(first.points, other.points)

    def test_clouds_fill_the_unit_ball_about_the_middle_of_their_box(self):
        points = furniture(3, 500).points
        assert torch.allclose(points.norm(dim=-1).amax(1), torch.ones(24), atol=1e-6)
        assert torch.allclose(points.amax(1) + points.amin(1), torch.zeros(24, 3), atol=1e-5)

    def test_every_class_is_there_as_often(self):
        clouds = furniture(3, 16)
        assert clouds.classes == tuple(BUILDERS)
        assert clouds.labels.bincount().tolist() == [3] * len(BUILDERS)

    def test_a_lamp_is_higher_than_wide_and_a_bed_is_not(self):
        clouds = furniture(10, 300)
        size = clouds.points.amax(1) - clouds.points.amin(1)
        bed, lamp = (clouds.labels == clouds.classes.index(name) for name in ("bed", "lamp"))
        assert bool((size[lamp][:, 1] > size[lamp][:, 0]).all())
        assert bool((size[bed][:, 1] < size[bed][:, 2]).all())

    @pytest.mark.parametrize("kind", ["ball", "box", "cylinder"])
    def test_points_lie_on_the_surface(self, kind):
        part = FurniturePart(kind, (1.0, 2.0, 3.0), (2.0, 2.0, 2.0))
        points = np.abs(part.sample(500, np.random.default_rng(0)) - [1, 2, 3])
        radius = {
            "ball": np.linalg.norm(points, axis=1),
            "box": points.max(1),
            "cylinder": np.maximum(np.hypot(points[:, 0], points[:, 2]), points[:, 1]),
        }[kind]
        np.testing.assert_allclose(radius, 1.0, atol=1e-9)

    def test_points_are_spread_in_proportion_to_area(self):
        """A closed cylinder of height h and width w has h / (h + w / 2) of its area on the side."""
        part = FurniturePart("cylinder", (0.0, 0.0, 0.0), (1.0, 1.5, 1.0))
        points = part.sample(40_000, np.random.default_rng(0))
        on_side = np.abs(points[:, 1]) < 0.75 - 1e-9
        assert abs(on_side.mean() - 0.75) < 0.01
        assert part.area == pytest.approx(np.pi * (1.5 + 0.5))

    @pytest.mark.parametrize("setting", ["each", "points"])
    def test_no_clouds_or_no_points_are_refused(self, setting):
        with pytest.raises(InputError, match=f"{setting}: .* got 0"):
            furniture(**{setting: 0})


class TestPadded:
    def test_clouds_keep_their_points_and_the_mask_says_which(self):
        clouds = [np.full((size, 3), size) for size in (1, 4, 2)]
        batch = padded(clouds)
        assert batch["mask"].sum(1).tolist() == [1, 4, 2]
        for row, cloud in enumerate(clouds):
            assert batch["pos"][row][batch["mask"][row]].tolist() == cloud.tolist()
        assert not batch["pos"][~batch["mask"]].any()

    @pytest.mark.parametrize(
        ("clouds", "words"),
        [
            ([], "at least one cloud, got none"),
            ([np.zeros((0, 3))], "for cloud 0"),
            ([np.zeros((2, 3)), np.zeros((2, 2))], "for cloud 1"),
            ([np.zeros((2, 3)), np.full((2, 3), np.nan)], "NaN or infinity in cloud 1"),
        ],
    )
    def test_what_is_no_cloud_is_named(self, clouds, words):
        with pytest.raises(InputError, match=words):
            padded(clouds)
