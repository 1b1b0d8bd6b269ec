"""A position as output: it is shifted, where a vector is only turned."""

from __future__ import annotations

import pytest
import torch

import orbical as ob


def clouds() -> torch.Tensor:
    return torch.randn(12, 7, 3, generator=torch.Generator().manual_seed(0))


def gap(model, x, group, **task) -> float:
    scan = ob.scan(model, x, group=group, task=ob.tasks.Regression(**task), progress=False)
    return float(scan.data["invariance_gap"].max())


@pytest.mark.parametrize("group", ["se3:16:2", "translations3d:2:2", "rotations3d:8*inversion"])
def test_an_exact_centroid_has_no_gap_as_a_position_and_one_as_a_vector(group):
    def centroid(points):
        return points.mean(1)

    arguments = {"model": centroid, "x": clouds(), "group": group}
    about = {"input": ob.actions.Points()}
    assert gap(**arguments, **about, representation="position") < 1e-5
    if "se3" in group or "translations" in group:
        assert gap(**arguments, **about, representation="vector") > 0.5


def test_the_order_of_points_leaves_their_centroid():
    arguments = {"input": ob.actions.Points(), "representation": "position"}
    assert gap(lambda points: points.mean(1), clouds(), "permutations:7:6", **arguments) < 1e-5


def test_the_brightest_pixel_of_an_image_moves_with_it():
    images = torch.zeros(5, 1, 16, 12)
    for k in range(5):
        images[k, 0, 6 + k % 3, 4 + k % 4] = 1.0

    def brightest(images):
        place = images[:, 0].flatten(1).argmax(1)
        return torch.stack([place % 12 + 0.5, place // 12 + 0.5], 1)

    for group in ("translations:3", "flips"):
        assert gap(brightest, images, group, representation="position:16:12") < 1e-5
    assert gap(brightest, images, "translations:3") > 1


def test_scores_and_records_of_positions(tmp_path):
    x = clouds()
    task = ob.tasks.Regression(ob.actions.Points(), "position")
    scan = ob.scan(
        lambda p: p.mean(1) + torch.tensor([3.0, 0, 0]), (x, x.mean(1)), group="se3:8:2", task=task,
        out=tmp_path / "p.zarr", progress=False,
    )  # fmt: skip
    assert scan.data["score"].values == pytest.approx(3.0, abs=1e-4)
    restored = ob.tasks.Task.from_record(ob.load(tmp_path / "p.zarr").record.to_json()["task"])
    assert repr(restored) == "Regression(representation='position')"


def test_a_size_that_is_none():
    with pytest.raises(ob.errors.InputError, match="position:HEIGHT:WIDTH"):
        ob.tasks.Regression(representation="position:64")
