"""Point clouds: generated furniture, readers of public files, clouds of unequal sizes."""

import json

import numpy as np
import pytest
import torch

from orbical.datasets import furniture, modelnet10, padded, sweethome3d
from orbical.datasets.furniture_clouds import BUILDERS, Part
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
        part = Part(kind, (1.0, 2.0, 3.0), (2.0, 2.0, 2.0))
        points = np.abs(part.sample(500, np.random.default_rng(0)) - [1, 2, 3])
        radius = {
            "ball": np.linalg.norm(points, axis=1),
            "box": points.max(1),
            "cylinder": np.maximum(np.hypot(points[:, 0], points[:, 2]), points[:, 1]),
        }[kind]
        np.testing.assert_allclose(radius, 1.0, atol=1e-9)

    def test_points_are_spread_in_proportion_to_area(self):
        """A closed cylinder of height h and width w has h / (h + w / 2) of its area on the side."""
        part = Part("cylinder", (0.0, 0.0, 0.0), (1.0, 1.5, 1.0))
        points = part.sample(40_000, np.random.default_rng(0))
        on_side = np.abs(points[:, 1]) < 0.75 - 1e-9
        assert abs(on_side.mean() - 0.75) < 0.01
        assert part.area == pytest.approx(np.pi * (1.5 + 0.5))

    @pytest.mark.parametrize("setting", ["each", "points"])
    def test_no_clouds_or_no_points_are_refused(self, setting):
        with pytest.raises(InputError, match=f"{setting}: got 0"):
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
            ([], "none given"),
            ([np.zeros((0, 3))], "cloud 0 has shape"),
            ([np.zeros((2, 3)), np.zeros((2, 2))], "cloud 1 has shape"),
            ([np.zeros((2, 3)), np.full((2, 3), np.nan)], "cloud 1 holds NaN"),
        ],
    )
    def test_what_is_no_cloud_is_named(self, clouds, words):
        with pytest.raises(InputError, match=words):
            padded(clouds)


class TestSweetHome:
    def write(self, folder, names, points=None):
        if points is None:
            points = np.random.default_rng(0).normal(size=(len(names), 8, 3))
        np.savez(folder / "points2048.npz", points=points.astype(np.float16))
        text = json.dumps([{"class": name} for name in names])
        (folder / "models.json").write_text(text, encoding="utf-8")
        return folder

    def test_small_classes_and_the_rest_are_left_out(self, tmp_path):
        folder = self.write(tmp_path, ["table", "chair"] * 3 + ["sofa"] * 2 + ["other"] * 9)
        clouds = sweethome3d(folder, least=3)
        assert clouds.classes == ("chair", "table")
        assert clouds.labels.tolist() == [1, 0, 1, 0, 1, 0]

    def test_exact_repeats_are_left_out(self, tmp_path):
        points = np.random.default_rng(0).normal(size=(6, 8, 3))
        points[4] = points[0]
        folder = self.write(tmp_path, ["table", "chair"] * 3, points)
        assert len(sweethome3d(folder, least=2).labels) == 5

    def test_too_few_classes_are_refused(self, tmp_path):
        folder = self.write(tmp_path, ["table", "chair"])
        with pytest.raises(InputError, match="least: got 5, which leaves 0 classes"):
            sweethome3d(folder, least=5)

    def test_files_that_do_not_belong_together_are_refused(self, tmp_path):
        folder = self.write(tmp_path, ["table", "chair"], np.zeros((3, 8, 3)))
        with pytest.raises(InputError, match="for 2 models"):
            sweethome3d(folder)

    def test_the_real_files(self, shared_data):
        clouds = sweethome3d(shared_data / "sweethome3d")
        assert clouds.points.shape == (406, 2048, 3)
        assert len(clouds.classes) == 10
        assert clouds.labels.bincount().min() >= 25
        assert float(clouds.points.norm(dim=-1).max()) < 1.001


class TestModelNet:
    def write(self, folder, grids):
        packed = np.packbits(np.stack(grids).reshape(len(grids), -1), axis=1)
        shape = np.array([len(grids), 1, 32, 32, 32])
        for name in ("chair", "monitor"):
            np.savez(folder / f"{name}.npz", packed=packed, shape=shape)
        return folder

    def test_voxels_inside_a_solid_are_no_points(self, tmp_path):
        solid = np.zeros((32, 32, 32), np.uint8)
        solid[4:9, 4:9, 4:9] = 1
        clouds = modelnet10(self.write(tmp_path, [np.zeros_like(solid), solid, solid]))
        assert clouds.points["mask"].sum(1).tolist() == [5**3 - 3**3] * 2  # one a class
        assert clouds.labels.tolist() == [0, 1]

    def test_the_last_axis_of_the_files_stands_up(self, tmp_path):
        pole = np.zeros((32, 32, 32), np.uint8)
        pole[3, 3, :] = 1
        clouds = modelnet10(self.write(tmp_path, [pole]))
        size = clouds.points["pos"][0].amax(0) - clouds.points["pos"][0].amin(0)
        assert size.argmax() == 1

    def test_large_shapes_are_thinned_alike_each_time(self, tmp_path):
        solid = np.zeros((32, 32, 32), np.uint8)
        solid[:20, :20, :20] = 1
        folder = self.write(tmp_path, [solid])
        first, again = modelnet10(folder, most=50), modelnet10(folder, most=50)
        assert first.points["pos"].shape == (2, 50, 3)
        assert torch.equal(first.points["pos"], again.points["pos"])
        with pytest.raises(InputError, match="most: got 0"):
            modelnet10(folder, most=0)

    def test_the_first_points_of_a_cloud_are_a_thinner_cloud(self, tmp_path):
        pole = np.zeros((32, 32, 32), np.uint8)
        pole[3, 3, :] = 1
        heights = modelnet10(self.write(tmp_path, [pole])).points["pos"][0, :10, 1]
        assert float(heights.max() - heights.min()) > 1  # of 2

    def test_the_real_files_hold_clouds_of_unequal_sizes(self, shared_data):
        clouds = modelnet10(shared_data / "modelnet10vox")
        sizes = clouds.points["mask"].sum(1)
        assert clouds.labels.bincount().tolist() == [839, 451]
        assert sizes.min() < sizes.max() == 2048

    def test_a_missing_file_is_named(self, tmp_path):
        with pytest.raises(InputError, match=r"no file 'chair\.npz'"):
            modelnet10(tmp_path)
