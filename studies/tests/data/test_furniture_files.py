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
    def write(self, folder, points):
        arrays = {"classes": np.array(["bathtub", "bed"])}
        for part in ("train", "test"):
            arrays |= {f"{part}_points": points.astype(np.float16), f"{part}_labels": [0, 1]}
        np.savez(folder / "modelnet10_512.npz", **arrays)
        return folder

    def test_the_last_axis_of_the_files_stands_up_and_nothing_is_mirrored(self, tmp_path):
        points = np.stack([np.eye(3), 2 * np.eye(3)])
        _, test = modelnet10(self.write(tmp_path, points))
        assert test.classes == ("bathtub", "bed")
        assert test.labels.tolist() == [0, 1]
        assert test.points[0, 2].tolist() == [0, 1, 0]
        assert float(torch.linalg.det(test.points[0])) == 1

    def test_the_real_files(self, shared_data):
        train, test = modelnet10(shared_data / "modelnet10")
        assert train.points.shape == (700, 512, 3)
        assert test.points.shape == (908, 512, 3)
        assert train.labels.bincount().tolist() == [70] * 10
        assert test.labels.bincount().min() == 50
        assert float(test.points.norm(dim=-1).max()) < 1.001

    def test_a_missing_file_is_named(self, tmp_path):
        with pytest.raises(InputError, match=r"with the file 'modelnet10_512\.npz'"):
            modelnet10(tmp_path)
