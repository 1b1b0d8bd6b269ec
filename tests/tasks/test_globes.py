"""Globes and other grids whose ends meet: moves by index, areas by the integral of the sphere."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import orbical as ob
from orbical.actions import Globe, Periodic
from orbical.errors import InputError, ModelError
from orbical.groups import longitudes, parse, periodic

RANDOM = torch.Generator().manual_seed(0)
MAPS = torch.rand(3, 2, 6, 12, generator=RANDOM)


def test_turns_of_the_globe_roll_columns_and_mirrors_reverse_them():
    group = longitudes(12, "full")
    for element, moved in enumerate(Globe().apply(group, MAPS)):
        expected = MAPS
        if group.coords["mirror"][element] in ("east-west", "both"):
            expected = expected.flip(-1)
        if group.coords["mirror"][element] in ("north-south", "both"):
            expected = expected.flip(-2)
        steps = round(group.coords["longitude"][element] / 30)
        assert torch.equal(moved, expected.roll(steps, -1))
    assert group.closed
    assert float(Globe().defect(group, MAPS).max()) == 0


def test_shifts_around_a_box_are_those_of_torch():
    group = periodic(4, 3)
    for element, moved in enumerate(Periodic().apply(group, MAPS)):
        right, up = (
            round(group.coords[f"share_{axis}"][element] * n) for axis, n in (("x", 12), ("y", 6))
        )
        assert torch.equal(moved, MAPS.roll((-up, right), (-2, -1)))
    signals = MAPS[:, :, 0]
    for element, moved in enumerate(Periodic().apply(periodic(6), signals)):
        assert torch.equal(moved, signals.roll(2 * element, -1))


def test_a_shift_between_columns_interpolates_around_the_end():
    moved = Globe().apply(longitudes(24), MAPS)[1]
    np.testing.assert_allclose(moved, (MAPS + MAPS.roll(1, -1)) / 2, atol=1e-6)
    assert float(Globe().defect(longitudes(24), MAPS)[1].min()) > 0.1
    labels = Globe("cells", "nearest").apply(longitudes(24), MAPS.round())
    assert {*labels.unique().tolist()} <= {0.0, 1.0}


@pytest.mark.parametrize("group", ["longitudes:7:full", "periodic:5:3:full", "periodic:4"])
def test_products_and_inverses_act_as_such(group):
    group, x = parse(group), torch.rand(2, 1, 15, 140, generator=RANDOM)
    action = Periodic()
    moved = action.apply(group, x)
    torch.testing.assert_close(action.move(group.inverse(), moved), x[None].expand_as(moved))
    for one in range(0, len(group), 3):
        both = group.compose(group[np.full(len(group), one)])
        there = action.move(group, moved[one][None].expand_as(moved))
        torch.testing.assert_close(action.apply(both, x), there)
        assert (group.index_of(both) >= 0).all()


@pytest.mark.parametrize("rows", ["cells", "poles"])
def test_areas_integrate_functions_over_the_sphere(rows):
    count = 180
    edges = np.linspace(90, -90, count + 1)
    latitude = (edges[1:] + edges[:-1]) / 2 if rows == "cells" else np.linspace(90, -90, count)
    areas = Globe(rows).areas((count, 3)).numpy()[:, 0]
    assert areas.mean() == pytest.approx(1)
    sine = np.sin(np.radians(latitude))
    assert (areas * sine**2).mean() == pytest.approx(1 / 3, abs=1e-4)  # the mean over the sphere
    inner = slice(1, -1)
    cosine = np.cos(np.radians(latitude[inner]))
    np.testing.assert_allclose(areas[inner] / cosine, (areas[inner] / cosine)[0], rtol=1e-4)


def test_scores_of_maps_count_areas_and_unknown_places_do_not():
    truth = torch.zeros(2, 1, 6, 12)
    truth[1, 0, 0] = torch.nan

    def polar(x):  # wrong by 1 in the first and the last row
        off = torch.zeros_like(x)
        off[:, :, [0, -1]] = 1.0
        return off

    task = ob.tasks.DenseRegression(Globe())
    data = ob.scan(polar, (truth.nan_to_num(0), truth), group="longitudes:12:full", task=task,
                   progress=False).data  # fmt: skip
    cap = 1 - np.sin(np.radians(60))  # the area of a cap, of 2
    np.testing.assert_allclose(data["score"].values[0, 0], cap, rtol=1e-5)
    np.testing.assert_allclose(data["rmse"].values[0, 0], np.sqrt(cap), rtol=1e-5)
    np.testing.assert_allclose(data["score"].values[0, 1], (cap / 2) / (1 - cap / 2), rtol=1e-5)


def test_shares_of_pixels_count_areas():
    labels = torch.zeros(1, 6, 12, dtype=torch.long)
    labels[:, 0] = 1

    def nowhere(x):
        return torch.stack([torch.ones_like(x[:, 0]), torch.zeros_like(x[:, 0])], 1)

    data = ob.scan(nowhere, (MAPS[:1], labels), group="longitudes:4", progress=False,
                   task=ob.tasks.Segmentation(Globe())).data  # fmt: skip
    expected = 1 - (1 - np.sin(np.radians(60))) / 2
    np.testing.assert_allclose(data["score"].values, expected, rtol=1e-5)


def test_the_gap_of_classes_is_a_mean_over_areas():
    group, fields = longitudes(4), MAPS[:2, :1]

    def seam(x):  # differs in one column of the map, and more so at the equator
        level = torch.zeros_like(x[:, 0])
        level[:, :, 0] = torch.tensor([0.0, 1, 2, 2, 1, 0])
        return torch.stack([level, -level], 1)

    data = ob.scan(
        seam, fields, group=group, progress=False, task=ob.tasks.Segmentation(Globe())
    ).data
    shares = seam(fields).softmax(1)
    home = torch.stack([shares.roll(-3 * k, -1) for k in range(4)])
    apart = (home - home.mean(0)).square().sum(2).mean(0)  # [B, H, W]
    expected = (apart * Globe().areas((6, 12))).mean((1, 2)).sqrt()
    np.testing.assert_allclose(data["invariance_gap"].values[0], expected, rtol=1e-5)


def test_a_network_that_pads_with_zeros_has_a_seam_and_one_around_the_globe_has_none():
    kernel = torch.ones(1, 1, 3, 3) / 9
    fields = MAPS[:, :1]

    def padded(x):
        return torch.nn.functional.conv2d(x, kernel, padding=1)

    def around(x):
        wide = torch.nn.functional.pad(x, (1, 1, 0, 0), mode="circular")
        return torch.nn.functional.conv2d(wide, kernel, padding=(1, 0))

    task = ob.tasks.DenseRegression(Globe())
    scan = ob.scan({"padded": padded, "around": around}, fields, group="longitudes:12:full",
                   task=task, progress=False)  # fmt: skip
    gap = scan.data["invariance_gap"].max("sample").values
    assert gap[0] > 0.02
    assert gap[1] < 1e-6


def test_winds_turn_with_mirrors():
    wind = torch.rand(2, 2, 6, 12, generator=RANDOM)
    group = longitudes(4, "full")
    moved = ob.actions.ValueMaps("vector", Globe()).apply(group, wind)
    plain = Globe().apply(group, wind)
    for element, mirror in enumerate(group.coords["mirror"]):
        signs = {"none": (1, 1), "east-west": (-1, 1), "north-south": (1, -1), "both": (-1, -1)}
        sign = torch.tensor(signs[mirror]).reshape(2, 1, 1)
        torch.testing.assert_close(moved[element], plain[element] * sign)


def test_records_texts_and_refusals(tmp_path):
    task = ob.tasks.DenseRegression(Globe("poles"))
    ob.scan(
        lambda x: x, MAPS, group="longitudes:3", task=task, out=tmp_path / "g.zarr", progress=False
    )
    loaded = ob.load(tmp_path / "g.zarr")
    assert loaded.group.closed
    assert ob.tasks.Task.from_record(loaded.record.to_json()["task"]).input.rows == "poles"
    assert ob.tasks.parse_input("globe:poles").rows == "poles"
    with pytest.raises((InputError, ModelError), match="shifts of latitudes"):
        Globe().check(periodic(2, 2), MAPS)
    with pytest.raises(InputError, match="along the axis of a signal"):
        Periodic().check(periodic(2, 2), MAPS[:, :, 0])
    with pytest.raises(InputError, match="cell moves Globe and Periodic"):
        ob.scan(lambda x: x, MAPS, group="longitudes:3", task="dense_regression")
    with pytest.raises(InputError, match="'full' or nothing"):
        longitudes(3, "half")
