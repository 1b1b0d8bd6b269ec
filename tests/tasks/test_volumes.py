"""Classification, regression, segmentation and dense regression of volumes."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import orbical as ob
from orbical.errors import InputError, ModelError

FULL = ob.groups.octahedral("full")


def noise(*shape, seed=0):
    return torch.rand(shape, generator=torch.Generator().manual_seed(seed))


def scanned(model, data, group="octahedral", task="segmentation", **settings):
    return ob.scan(model, data, group=group, task=task, progress=False, **settings)


def of_moments(volumes):
    """Classify by the mean and the heavier end along the columns: not invariant."""
    ends = volumes.mean((1, 2, 3))
    return torch.stack([ends[:, 0] - ends[:, -1], volumes.mean((1, 2, 3, 4))], 1)


def of_channels(volumes):
    """Take the channels as logits: equivariant under every group."""
    return 8 * volumes


def of_depth(volumes):
    """Answer class 1 where a voxel is bright, or at small depth: not equivariant."""
    bright = 8 * (volumes[:, :1] - 0.5)
    bright[:, :, : volumes.shape[2] // 2] += 2
    return torch.cat([-bright, bright], 1)


def test_five_dimensions_are_volumes_unless_an_action_is_given():
    x, labels = noise(6, 1, 4, 4, 4), torch.tensor([0, 1] * 3)
    scan = scanned(of_moments, (x, labels), "octahedral:full", "classification")
    assert scan.record.task.input["action"] == "Volumes"
    moved = ob.actions.Volumes().apply(FULL, x)
    for place in (0, 5, 30, 47):
        expected = of_moments(moved[place]).softmax(1)[torch.arange(6), labels]
        found = scan.data["score"].isel(model=0, element=place).values
        np.testing.assert_allclose(found, expected, atol=1e-6)
    assert float(ob.nero.invariance_gap(scan)["total"][0]) > 1e-3
    for task in (ob.tasks.MultiLabel(), ob.tasks.Ordinal(), ob.tasks.Segmentation()):
        assert isinstance(task.for_inputs(x).input, ob.actions.Volumes)
    named = ob.tasks.Classification(ob.actions.Volumes("nearest"))
    assert named.for_inputs(x) is named
    with pytest.raises(InputError, match="expected samples of shape"):
        scanned(of_moments, (x, labels), task=ob.tasks.Classification(ob.actions.Images()))


def test_images_under_a_group_of_space_are_told_the_shape_of_volumes():
    with pytest.raises(InputError, match=r"volumes are \[sample, channel, depth.* x\[:, None\]"):
        scanned(of_moments, noise(2, 4, 4, 4), task="classification")
    with pytest.raises(InputError, match=r"is read as volumes .*ImagePair"):
        scanned(of_moments, noise(2, 2, 1, 4, 4), "rotations:4", "classification")


@pytest.mark.parametrize("group", ["octahedral:full", "rotations3d:5"])
def test_regression_of_volumes(group):
    x = noise(3, 1, 5, 5, 5)
    scan = scanned(lambda v: v.mean((1, 2, 3, 4)), (x, x.mean((1, 2, 3, 4))), group, "regression")
    assert scan.record.task.input["action"] == "Volumes"
    assert (float(scan.data["score"].max()) < 1e-6) == group.startswith("octahedral")
    direction = ob.tasks.Regression(ob.actions.Volumes(), "vector")
    ramp = torch.linspace(-1, 1, 5)

    def center_of_mass(volumes):
        v = volumes[:, 0]
        along = torch.einsum("bzyx,x->b", v, ramp), -torch.einsum("bzyx,y->b", v, ramp)
        return torch.stack([*along, torch.einsum("bzyx,z->b", v, ramp)], 1)

    error = ob.testing.equivariance_error(center_of_mass, x, group="octahedral", task=direction)
    assert error.largest < 1e-5  # x along the columns, y up, z along the depth


def test_averages_over_the_orbit_take_volumes():
    average = ob.predictors.OrbitAverage(of_moments, "pointgroup:mm2")
    x = noise(2, 1, 4, 4, 4)
    torch.testing.assert_close(average(x.flip(4)), average(x))
    assert float(average.spread(x).min()) > 1e-5
    segments = ob.predictors.OrbitAverage(of_depth, "inversion", ob.tasks.Segmentation())
    torch.testing.assert_close(segments(x.flip(2, 3, 4)), segments(x).flip(2, 3, 4))


def test_scores_of_segments_equal_their_definitions():
    outputs, labels = noise(2, 3, 4, 5, 6).softmax(1), torch.randint(0, 3, (2, 4, 5, 6))
    labels[0, :2] = 255
    task = ob.tasks.Segmentation(ob.actions.Volumes())
    group = ob.groups.pointgroup("1")
    target = task.check_target(labels[:, None], 2)
    found = task.summarize(outputs[None], target, group, torch.ones(1))
    for sample in range(2):
        judged = (labels[sample] != 255).numpy()
        answer, truth = outputs[sample].argmax(0).numpy()[judged], labels[sample].numpy()[judged]
        assert float(found["score"][sample, 0]) == pytest.approx((answer == truth).mean())
        iou = [
            ((answer == c) & (truth == c)).sum() / ((answer == c) | (truth == c)).sum()
            for c in range(3)
        ]
        np.testing.assert_allclose(found["class_iou"][sample, 0], iou, rtol=1e-6)
        assert float(found["pixel_count"][sample, 0].sum()) == judged.sum()


def test_segments_move_with_the_volume_and_the_consensus_is_that_of_the_group():
    x = noise(3, 2, 6, 6, 6)
    truth = x.argmax(1)
    scan = scanned({"same": of_channels, "depth": of_depth}, (x, truth), "octahedral:full")
    same, other = (scan.data.sel(model=name) for name in ("same", "depth"))
    assert float(same["score"].min()) == 1 == float(same["consensus_vs_truth"].min())
    assert float(same["changed_pixels"].max()) == 0
    assert float(same["invariance_gap"].max()) < 1e-6  # probabilities are rounded
    np.testing.assert_array_equal(same["consensus"], truth)
    moved = ob.actions.Volumes().apply(FULL, x)
    home = ob.actions.ClassMaps(ob.actions.Volumes()).move(
        FULL.inverse(), torch.stack([of_depth(one).softmax(1) for one in moved])
    )
    np.testing.assert_array_equal(other["consensus"], home.mean(0).argmax(1))
    changed = (home.argmax(2) != home[0].argmax(1)).any(0).float().mean((1, 2, 3))
    np.testing.assert_allclose(other["changed_pixels"], changed, rtol=1e-6)
    assert float(changed.min()) > 0.01


def test_voxels_from_outside_are_never_judged():
    """A constant answer is right in every voxel that was seen, and wrong nowhere."""
    x = torch.ones(1, 1, 8, 8, 8)
    truth = torch.ones(1, 8, 8, 8, dtype=torch.long)

    def inside(volumes):  # the padding is class 0
        bright = 40 * (volumes - 0.5)
        return torch.cat([-bright, bright], 1)

    scan = scanned(inside, (x, truth), "translations3d:2:2")
    assert float(scan.data["score"].min()) == 1
    assert float(scan.data["changed_pixels"].max()) == 0
    counts = scan.data["pixel_count"].sum("bin").values.ravel()
    seen = {8 * 8 * 8, 6 * 8 * 8, 6 * 6 * 8, 6 * 6 * 6}
    assert {int(count) for count in counts} == seen
    assert bool(np.isnan(scan.data["entropy_map"]).any())


def test_slices_show_the_middle_of_the_volume():
    x, group = noise(1, 2, 4, 6, 8), ob.groups.inversion()
    scan = scanned(of_channels, (x, x.argmax(1)), group)
    shown = scan.data["class_map"].values[0, 0, 0]
    classes = x.argmax(1)[0].numpy()
    assert shown.shape == (6 + 1 + 4, 8 + 1 + 4)
    np.testing.assert_array_equal(shown[:6, :8], classes[2])
    np.testing.assert_array_equal(shown[:6, 9:], classes[:, :, 4].T)
    np.testing.assert_array_equal(shown[7:, :8], classes[:, 3])
    assert (shown[7:, 8:] == -1).all()
    np.testing.assert_array_equal(scan.data["truth_map"].values[0, 0, 0], shown)
    large = ob.tasks._maps.map_of_volume_slices(torch.zeros(2, 96, 48, 64), -1)
    assert large.shape == (2, 16 + 1 + 32, 21 + 1 + 32)


def test_a_scan_of_segmented_volumes_is_stored_opened_and_calibrated(tmp_path):
    x = noise(4, 1, 5, 5, 5)
    scanned(of_depth, (x, (x[:, 0] > 0.5).long()), out=tmp_path / "v.zarr", keep="inputs")
    scan = ob.load(tmp_path / "v.zarr")
    assert scan.data["label_map"].dims == ("sample", "depth", "row", "column")
    task = ob.tasks.Task.from_record(vars(scan.record.task))
    assert isinstance(task.output.of, ob.actions.Volumes)
    error = ob.calibration.along_orbit(scan, "ece")
    assert error.shape == (1, 24)
    assert 0 < float(error.min()) < 1


@pytest.mark.parametrize(
    ("model", "labels", "said"),
    [
        (of_depth, torch.zeros(2, 1, 4, 4), r"label maps \[sample, depth, row, column\]"),
        (of_depth, torch.zeros(2, 2, 4, 4, 4), r"labels.argmax\(1\)"),
        (of_depth, torch.zeros(2, 4, 4, 3).long(), "expected maps of"),
        (of_depth, torch.full((2, 4, 4, 4), 2), "expected class indices below 2"),
    ],
)
def test_label_maps_of_the_wrong_kind_are_refused(model, labels, said):
    with pytest.raises(InputError, match=said):
        scanned(model, (noise(2, 1, 4, 4, 4), labels))


def test_answers_and_settings_of_the_wrong_kind_are_refused():
    x = noise(2, 1, 4, 4, 4)
    with pytest.raises(ModelError, match=r"\[sample, class, depth, row, column\]"):
        scanned(lambda v: v[:, 0], x)
    with pytest.raises(ModelError, match="resize them with read="):
        scanned(lambda v: v[..., :2], x)
    with pytest.raises(InputError, match=r"interpolation: .*bicubic"):
        ob.tasks.Segmentation(ob.actions.Volumes(), interpolation="bicubic")
    with pytest.raises(InputError, match=r"interpolation: .*bicubic"):
        ob.tasks.DenseRegression(ob.actions.Volumes(), interpolation="bicubic")
    x[1, 0, 0, 1, 2] = torch.inf
    with pytest.raises(InputError, match="at depth 0, row 1, column 2 of sample 1"):
        scanned(of_depth, x)


def shifted(volumes):
    """Return every voxel's value at its neighbor along the columns: not equivariant."""
    return volumes.roll(1, -1)


def test_numbers_of_voxels_are_compared_where_they_belong():
    x = noise(2, 1, 4, 4, 4)
    truth = x.clone()
    truth[0, 0, :, 0] = torch.nan
    group = ob.groups.pointgroup("mmm")
    scan = scanned(shifted, (x, truth[:, 0]), group, "dense_regression", keep="predicted_maps")
    data = scan.data.isel(model=0)
    assert data["consensus"].dims == ("sample", "component", "depth", "row", "column")
    maps = data["predicted_maps"]
    for place in range(len(group)):
        moved = ob.actions.Volumes().apply(group[[place]], x)[0]
        np.testing.assert_array_equal(maps.isel(element=place).values, shifted(moved).numpy())
        unknown = ob.actions.Volumes().apply(group[[place]], truth.isnan().float())[0] > 0
        error = (shifted(moved) - moved).abs().masked_fill(unknown, torch.nan)
        expected = error.flatten(1).nanmean(1)
        np.testing.assert_allclose(data["score"].isel(element=place), expected, rtol=1e-5)
    # Shifts to the left and to the right, as often each.
    agreed = (x.roll(1, -1) + x.roll(-1, -1)) / 2
    np.testing.assert_allclose(data["consensus"].values, agreed, atol=1e-6)
    assert data["value_map"].shape[-2:] == data["error_map"].shape[-2:] == (9, 9)


def test_vectors_of_voxels_turn_with_the_volume():
    x = noise(2, 3, 4, 4, 4) - 0.5

    def gradient(volumes):  # columns, rows down, depth: equivariant
        value = volumes.square().sum(1)
        return torch.stack([value.roll(-1, d) - value.roll(1, d) for d in (3, 2, 1)], 1)

    for spec in ("octahedral:full", "pointgroup:mmm"):
        for kind in ("vector", "normal"):
            task = ob.tasks.DenseRegression(representation=kind)
            data = scanned(gradient, (x[:, :1], gradient(x[:, :1])), spec, task).data
            assert float(data["score"].max()) < 1e-2
            assert float(data["invariance_gap"].max()) < 1e-2
    trivial = scanned(gradient, (x[:, :1], gradient(x[:, :1])), task="dense_regression").data
    assert float(trivial["score"].max()) > 0.05
    with pytest.raises(ModelError, match="expected 3 components of each vector, got 1"):
        scanned(shifted, x[:, :1], task=ob.tasks.DenseRegression(representation="vector"))


def test_variances_of_voxels_are_stored_at_points():
    x = noise(3, 1, 8, 8, 8)
    task = ob.tasks.DenseRegression(uncertainty="variance")

    def sure(volumes):
        return shifted(volumes), 0.1 + volumes

    data = scanned(sure, (x, x), task=task).data.isel(model=0)
    assert data["error"].sizes["point"] == 6**3
    at = [0, 2, 3, 4, 6, 7]  # the middles of 6 blocks of 8 voxels
    upright = (x - shifted(x))[:, 0][:, at][:, :, at][:, :, :, at].flatten(1)
    np.testing.assert_allclose(data["error"].isel(element=0, component=0), upright, atol=1e-6)
    spread = data["variance"].isel(variance_component=0)
    np.testing.assert_allclose(spread.isel(element=5), spread.isel(element=0), atol=1e-6)
    found = scanned(sure, x, "rotations3d:3", task).data
    assert "error" not in found
    assert bool(np.isnan(found["variance"]).any())


def test_maps_of_volumes_that_do_not_fit_are_refused_by_their_voxels():
    x = noise(2, 1, 4, 4, 4)
    with pytest.raises(ModelError, match=r"\[sample, component, depth, row, column\]"):
        scanned(lambda volumes: volumes.mean((2, 3, 4)), x, task="dense_regression")
    for task in ("segmentation", "dense_regression"):
        with pytest.raises(ModelError, match=r"maps of \(4, 4, 4\) voxels, as the volumes"):
            scanned(lambda volumes: volumes[..., ::2], x, task=task)
    with pytest.raises(InputError, match=r"maps of \(4, 4, 4\) voxels, as the model predicts"):
        scanned(shifted, (x, x[..., 1:]), task="dense_regression")
    with pytest.raises(InputError, match=r"labels: expected maps \[sample, component, depth"):
        scanned(shifted, (x, x[:, 0, 0]), task="dense_regression")
