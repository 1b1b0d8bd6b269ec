"""Clouds of furniture: files made up for the test, and the real ones if they exist."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch

from orbical.errors import InputError
from orbical_studies.data import modelnet10, sweethome3d


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
        with pytest.raises(InputError, match=r"least: .* got 5, which leaves 0"):
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
        with pytest.raises(InputError, match=r"most: .* got 0"):
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
        with pytest.raises(InputError, match=r"with the file 'chair\.npz'"):
            modelnet10(tmp_path)
