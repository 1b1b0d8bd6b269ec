"""`orbical scan --task` with an answer for each pixel or point, on arrays in a file."""

from __future__ import annotations

import numpy as np

import orbical as ob


def test_the_command_scans_class_maps(orbical, tmp_path):
    images = np.random.default_rng(0).random((3, 1, 8, 8), np.float32)
    np.savez(tmp_path / "maps.npz", x=images, y=(images[:, 0] > 0.5).astype(int))
    words = ["scan", "-m", "mine=torch.nn:Identity()", "-d", "maps.npz", "-t", "segmentation"]
    words += ["--outputs", "probabilities", "-g", "cyclic:4", "-o", "run.zarr"]
    said = orbical(tmp_path, *words)
    assert "share of correct pixels" in said
    assert float(ob.load(tmp_path / "run.zarr").data["score"].min()) == 1.0
    said = orbical(tmp_path, "calibration", "run.zarr", "--figure", "ece.png")
    assert "mine, pixels, along the orbit" in said
    assert "mine, regions, at the identity" in said
    assert (tmp_path / "ece.png").is_file()


def test_the_command_names_classes_and_the_label_that_is_not_judged(orbical, tmp_path):
    images = np.random.default_rng(0).random((3, 1, 8, 8), np.float32)
    maps = (images[:, 0] > 0.5).astype(int)
    maps[:, 0] = 7
    np.savez(tmp_path / "maps.npz", x=images, y=maps)
    words = ["scan", "-m", "mine=torch.nn:Identity()", "-d", "maps.npz", "-g", "cyclic:4"]
    words += ["--outputs", "probabilities", "-t"]
    assert "--ignore-index" in orbical(tmp_path, *words, "segmentation", expect=2)
    named = ["--ignore-index", "7", "--classes", "sky,road", "-o", "run.zarr"]
    orbical(tmp_path, *words, "segmentation", *named)
    assert "sky, road" in orbical(tmp_path, "info", "run.zarr")
    assert "segmentation" in orbical(
        tmp_path, *words, "classification", "--ignore-index", "7", expect=2
    )


def test_the_command_scans_maps_of_values(orbical, tmp_path):
    depth = np.random.default_rng(0).random((3, 3, 8, 8), np.float32)
    np.savez(tmp_path / "depth.npz", x=depth, y=depth)
    words = ["scan", "-m", "mine=torch.nn:Identity()", "-d", "depth.npz", "-t", "dense_regression"]
    words += ["-g", "flips", "--representation", "normal", "-o", "run.zarr"]
    assert "angle to the true normal" in orbical(tmp_path, *words)


HEIGHTS = """
import torch
def heights(pos, mask):
    return torch.stack([-pos[..., 2], pos[..., 2]], -1)
"""


def test_the_command_scans_classes_of_points(orbical, tmp_path):
    (tmp_path / "clouds.py").write_text(HEIGHTS)
    pos = np.random.default_rng(0).normal(size=(3, 6, 3)).astype(np.float32)
    np.savez(tmp_path / "clouds.npz", x_pos=pos, x_mask=np.ones((3, 6), bool), y=pos[..., 2] > 0)
    words = ["scan", "-m", "mine=clouds:heights", "-d", "clouds.npz", "-t", "point_classification"]
    said = orbical(tmp_path, *words, "-g", "rotations3d:3", "-o", "run.zarr")
    assert "share of correct points" in said
    said = orbical(tmp_path, "calibration", "run.zarr")
    assert "mine, points, at the identity" in said
    assert "regions" not in said


CENTER = """
import torch
def center(images):
    return torch.full((len(images), 2, 2), 4.0)
"""


def test_the_command_scans_key_points(orbical, tmp_path):
    (tmp_path / "poses.py").write_text(CENTER)
    np.savez(
        tmp_path / "poses.npz", x=np.zeros((3, 1, 8, 8), np.float32), y=np.full((3, 2, 2), 4.0)
    )
    words = ["scan", "-m", "mine=poses:center", "-d", "poses.npz", "-t", "key_points"]
    assert "has mirrors" in orbical(tmp_path, *words, "-g", "flips", "--points", "8x8", expect=2)
    said = orbical(tmp_path, *words, "-g", "flips", "--points", "8x8:0-1")
    assert "object key-point similarity" in said
    wrong = orbical(tmp_path, *words, "-g", "flips", "--points", "8:0-1", expect=2)
    assert "--points: expected HEIGHTxWIDTH" in wrong
    words[words.index("key_points")] = "segmentation"
    wrong = orbical(tmp_path, *words, "-g", "flips", "--points", "8x8", expect=2)
    assert "--points: expected none for the task segmentation" in wrong
