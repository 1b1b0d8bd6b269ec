"""Flips of predictions, between the elements of a scan and refined with the model."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch

import orbical as ob
from orbical.errors import InputError, ModelError

ANGLES = torch.tensor([20.0, 50.0, 80.0])


def sector(points: torch.Tensor) -> torch.Tensor:
    """Name the sector of a point: 0 below an angle of 100 degrees, 2 from 200, 1 between."""
    angle = torch.rad2deg(torch.atan2(points[:, 1], points[:, 0])) % 360
    classes = (angle >= 100).long() + (angle >= 200).long()
    return 9.0 * torch.nn.functional.one_hot(classes, 3)


@pytest.fixture
def points() -> torch.Tensor:
    """Points at known angles, so that the rotation at which each changes its sector is known."""
    radian = torch.deg2rad(ANGLES)
    return torch.stack([radian.cos(), radian.sin()], 1)


def scanned(points, group="rotations:24", **settings) -> ob.Scan:
    task = ob.tasks.Classification(input=ob.actions.Vectors())
    labels = sector(points).argmax(1)
    return ob.scan(
        {"sector": sector}, (points, labels), group=group, task=task, progress=False,
        **{"keep": "inputs", **settings},
    )  # fmt: skip


def test_flips_are_refined_to_the_exact_angle(points):
    scan = scanned(points)
    coarse, fine = ob.flips(scan), ob.flips(scan, models=sector, rounds=20)
    assert len(coarse) == len(fine) == 9
    for sample, angle in enumerate(ANGLES.tolist()):
        exact = sorted((turn - angle) % 360 for turn in (100, 200, 360))
        found = sorted(flip.at % 360 for flip in fine if flip.sample == sample)
        assert found == pytest.approx(exact, abs=1e-3)
        near = sorted(flip.at % 360 for flip in coarse if flip.sample == sample)
        assert near == pytest.approx(exact, abs=7.5 + 1e-9)
    assert {flip.width for flip in coarse} == {15.0}
    assert {flip.width for flip in fine} == {15.0 / 2**20}


def test_another_model_than_the_one_that_was_scanned_is_refused(points):
    with pytest.raises(ModelError, match="'sector': expected the outputs of the scan for its fir"):
        ob.flips(scanned(points), models=lambda points: -sector(points))


def test_classes_before_and_after_and_the_nearest_sample_of_the_class(points):
    others = torch.tensor([[-1.0, 0.5], [0.0, -1.0]])  # of classes 1 and 2
    scan = scanned(torch.cat([points, others]))
    flips = ob.flips(scan, 0, models={"sector": sector})
    assert [(flip.before, flip.after, flip.nearest) for flip in flips] == [
        (0, 1, 3),
        (1, 2, 4),
        (2, 0, 1),
    ]
    assert json.loads(json.dumps(flips[0].to_dict()))["after"] == 1


def test_a_line_does_not_close(points):
    scan = scanned(points, group="rotations:-90:90:13")
    ends = [flip.at for flip in ob.flips(scan, 0, models=sector)]
    assert ends == pytest.approx([-20.0, 80.0], abs=0.02)


def test_data_can_be_passed_where_inputs_are_not_stored(points):
    scan = scanned(points, keep=())
    labels = sector(points).argmax(1)
    found = ob.flips(scan, 1, models=sector, data=(points, labels), rounds=12)
    assert found[0].at == pytest.approx(50.0, abs=0.01)
    with pytest.raises(InputError, match="keep='inputs'"):
        ob.flips(scan, models=sector)


def test_scans_without_flips_to_find_are_refused(points):
    with pytest.raises(InputError, match="one continuous coordinate"):
        ob.flips(scanned(points, group="dihedral:4"))
    with pytest.raises(InputError, match="indices below 3"):
        ob.flips(scanned(points), [7])
    assert ob.flips(scanned(points), np.array([], int)) == []


def test_the_models_of_a_search_see_what_those_of_the_scan_saw():
    """A scan knows its preprocessing by name; a function of the user's must be passed again."""
    images = torch.zeros(1, 3, 8, 8)
    images[..., 2:6, :3] = 1.0

    def side(x: torch.Tensor) -> torch.Tensor:  # predicts 0 and 1 only where pixels are prepared
        left, right = (part.sum((1, 2, 3)) for part in x.chunk(2, -1))
        other = torch.where(x.amin((1, 2, 3)) < 0, -1e9, 1e9)
        return torch.stack([left, right, other], 1)

    options = {"group": "rotations:9", "task": "classification", "keep": "inputs"}
    scan = ob.scan(side, images, preprocess="imagenet", progress=False, **options)
    assert [round(flip.at) for flip in ob.flips(scan, models=side)] == [90, 270]
    scan = ob.scan(side, images, preprocess=lambda x: x - 0.5, progress=False, **options)
    with pytest.raises(InputError, match="that of the scan"):
        ob.flips(scan, models=side)
    with pytest.raises(InputError, match="that of the scan"):
        ob.worst_case(side, scan, progress=False)
    assert len(ob.flips(scan, models=side, preprocess=lambda x: x - 0.5)) == 2
    with pytest.raises(InputError, match="indices of samples"):
        ob.flips(scan, "0.png")
