"""Angles as outputs: turned and mirrored with the input, compared around the circle."""

from __future__ import annotations

import math

import pytest
import torch

import orbical as ob
from orbical.errors import InputError, ModelError


def clouds() -> torch.Tensor:
    return torch.randn(20, 5, 2, generator=torch.Generator().manual_seed(0))


def heading(points: torch.Tensor) -> torch.Tensor:
    """The direction from the first point to the second."""
    x, y = (points[:, 1] - points[:, 0]).unbind(-1)
    return torch.rad2deg(torch.atan2(y, x))


def scanned(model, group="rotations:8", form="angle", truth=heading, **about) -> ob.Scan:
    x = clouds()
    task = ob.tasks.Regression(ob.actions.Points(), form, **about)
    return ob.scan(model, (x, truth(x)), group=group, task=task, progress=False)


@pytest.mark.parametrize("group", ["rotations:12", "dihedral:5", "translations:2", "se2:16:2"])
def test_an_exact_heading_has_no_gap_and_no_error(group):
    data = scanned(heading, group).data
    assert float(data["score"].max()) < 1e-3
    assert float(data["invariance_gap"].max()) < 1e-3


def test_errors_go_the_short_way_around_at_every_element():
    data = scanned(lambda points: heading(points) + 359.0).data
    assert data["score"].values == pytest.approx(1.0, abs=1e-3)
    assert data["invariance_gap"].values == pytest.approx(0.0, abs=2e-3)
    assert data["score"].attrs["units"] == "°"


def test_the_gap_is_that_of_differences_on_the_circle_by_hand():
    def upright(points):  # does not turn with the points
        return torch.full((len(points),), 170.0)

    data = scanned(upright, "cyclic:4").data
    # At home: 170, 80, -10, -100, which cancel: cut before the first of them, their mean is 305. Of
    # three elements with the weights of a small arc the mean is their middle.
    assert data["invariance_gap"].values == pytest.approx(math.hypot(45, 135) / 2**0.5, rel=1e-5)
    assert data["consensus"].values % 360 == pytest.approx(305.0, abs=1e-3)
    arc = scanned(upright, "rotations:-10:10:3").data
    assert arc["invariance_gap"].values == pytest.approx(math.sqrt(200 / 3), rel=1e-4)
    assert arc["consensus"].values == pytest.approx(170.0, abs=1e-3)


def test_axes_have_half_a_turn_and_radians_their_unit():
    flipped = scanned(lambda points: heading(points) + 180.0, form="angle:degrees:180").data
    assert float(flipped["score"].max()) < 1e-3

    def radians(points):
        return torch.deg2rad(heading(points))

    data = scanned(lambda p: radians(p) + 0.1, "dihedral:4", "angle:radians", radians).data
    assert data["score"].values[..., :4] == pytest.approx(0.1, abs=1e-5)
    assert data["score"].attrs["units"] == "rad"


def test_the_mean_of_angles_is_on_the_circle_and_exact_if_all_agree():
    action, weights = ob.actions.Angles(), torch.tensor([0.5, 0.5])
    assert float(action.mean(torch.tensor([[359.0], [1.0]]), weights)) % 360 == pytest.approx(0.0)
    same = torch.tensor([[123.4567], [123.4567]])
    assert torch.equal(action.mean(same, weights), same[0])


@pytest.mark.parametrize("kind", [torch.float32, torch.float64])
@pytest.mark.parametrize("unit", ["degrees", "radians"])
@pytest.mark.parametrize("count", [2, 3, 4, 7])
def test_directions_that_cancel_have_a_mean_that_turns_with_them(count, unit, kind):
    action = ob.actions.Angles(unit)
    spaced = action.period * torch.arange(count, dtype=torch.float64) / count
    turns = torch.linspace(-2, 2, 25, dtype=torch.float64) * action.period
    noise = torch.randn(count, 25, generator=torch.Generator().manual_seed(count))
    x = (spaced[:, None] + turns + 1e-16 * noise).to(kind)
    mean = action.mean(x, torch.full((count,), 1 / count))
    # Half of the way from the first to the last, which no mean is nearer to the directions than.
    expected = turns + action.period * (count - 1) / (2 * count)
    near = 20 * torch.finfo(kind).eps * 3 * action.period
    assert action.difference(mean.double(), expected).abs().max() < near
    others = torch.linspace(0, 1, 361, dtype=torch.float64) * action.period
    spread = [action.difference(x[:, 0].double(), of).square().mean() for of in [mean[0], *others]]
    assert spread[0] <= min(spread[1:]) * (1 + 1e-6)


def test_directions_that_hardly_differ_from_opposite_ones_have_the_mean_of_their_sum():
    action, weights = ob.actions.Angles(), torch.tensor([0.5, 0.5])
    for to, expected in ((179.9, 89.95), (180.1, 270.05)):
        mean = action.mean(torch.tensor([[0.0], [to]]), weights)
        assert float(mean) % 360 == pytest.approx(expected, abs=1e-3)


def test_a_heading_beside_a_position_is_compared_around_the_circle():
    x = clouds()
    task = ob.tasks.Mixed(ob.actions.Points(), {"place": "position", "heading": "angle"})
    truth = {"place": x.mean(1), "heading": heading(x)}

    def model(points):
        return {"place": points.mean(1) + 1, "heading": heading(points) - 358}

    data = ob.scan(model, (x, truth), group="rotations:6", task=task, progress=False).data
    assert data["error_heading"].values == pytest.approx(2.0, abs=1e-3)
    assert data["error_heading"].attrs["units"] == "°"
    assert data["gap_heading"].values == pytest.approx(0.0, abs=1e-3)
    assert data["score"].values[..., 0] == pytest.approx(math.sqrt(2), abs=1e-4)


def test_variances_of_angles_do_not_turn():
    def model(points):
        return heading(points), torch.full((len(points), 1), 400.0)

    data = scanned(model, "dihedral:3", uncertainty="variance").data
    assert data["consensus_variance"].values == pytest.approx(400.0)
    assert float(data["variance_gap"].max()) == 0.0
    assert float(abs(data["error"]).max()) < 1e-3


@pytest.mark.parametrize(
    ("group", "form", "words"),
    [
        ("shear:0.5:3", "angle", "shears or stretches"),
        ("rotations:4", "angle:turns", "unit"),
        ("rotations:4", "angle:degrees:-1", "an angle > 0"),
        ("rotations:4", "angle:degrees:half", "angle:UNIT:PERIOD"),
    ],
)
def test_what_is_no_angle_is_refused(group, form, words):
    with pytest.raises((InputError, ModelError), match=words):
        scanned(heading, group, form)


def test_a_scan_of_angles_loads_with_its_task(tmp_path):
    task = ob.tasks.Regression(ob.actions.Points(), ob.actions.Angles("radians"))
    ob.scan(heading, clouds(), group="cyclic:4", task=task, out=tmp_path / "a.zarr", progress=False)
    record = ob.load(tmp_path / "a.zarr").record.to_json()["task"]
    assert ob.tasks.Task.from_record(record).output.period == pytest.approx(2 * math.pi)
