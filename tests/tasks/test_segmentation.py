"""Segmentation: scores against plain references, truth that moves alike, and calibration."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import torch

import orbical as ob
from orbical.data import Samples
from orbical.errors import InputError, ModelError
from orbical.scanning import checked_recipe_data

CLASSES = 3


def random_maps(seed, size=12, samples=2):
    random = torch.Generator().manual_seed(seed)
    scores = torch.randn(samples, CLASSES, size, size, generator=random)
    return scores.softmax(1), torch.randint(0, CLASSES, (samples, size, size), generator=random)


def summarized(task, outputs, labels, group):
    target = None if labels is None else task.check_target(labels, len(labels))
    return task.summarize(outputs, target, group, torch.as_tensor(group.weights))


def scanned(model, data, group="dihedral:4", task=None, **settings):
    task = ob.tasks.Segmentation() if task is None else task
    return ob.scan(model, data, group=group, task=task, progress=False, **settings)


def of_channels(images):
    """Take the channels of an image as its logits: equivariant under every group."""
    return 8 * images


def one_hot(labels):
    return torch.nn.functional.one_hot(labels, CLASSES).movedim(-1, 1).float()


def test_scores_equal_their_definitions():
    outputs, labels = random_maps(1)
    labels[0, :3] = 255
    found = summarized(ob.tasks.Segmentation(), outputs[None], labels, ob.groups.cyclic(1))
    for sample in range(2):
        judged = (labels[sample] != 255).numpy()
        answer, truth = outputs[sample].argmax(0).numpy()[judged], labels[sample].numpy()[judged]
        assert float(found["score"][sample, 0]) == pytest.approx((answer == truth).mean())
        iou, dice = [], []
        for c in range(CLASSES):
            both = ((answer == c) & (truth == c)).sum()
            iou.append(both / ((answer == c) | (truth == c)).sum())
            dice.append(2 * both / ((answer == c).sum() + (truth == c).sum()))
        np.testing.assert_allclose(found["class_iou"][sample, 0], iou, rtol=1e-6)
        np.testing.assert_allclose(found["class_dice"][sample, 0], dice, rtol=1e-6)
        assert float(found["mean_iou"][sample, 0]) == pytest.approx(np.mean(iou), rel=1e-5)
        assert float(found["dice"][sample, 0]) == pytest.approx(np.mean(dice), rel=1e-5)


def test_a_class_that_does_not_occur_has_no_overlap_and_does_not_count():
    labels = torch.zeros(1, 4, 4, dtype=torch.long)
    found = summarized(ob.tasks.Segmentation(), one_hot(labels)[None], labels, ob.groups.cyclic(1))
    assert bool(found["class_iou"][0, 0, 1:].isnan().all())
    assert float(found["mean_iou"][0, 0]) == 1.0


@pytest.mark.parametrize("group", ["dihedral:4", "rotations:8", "scales:0.7:1.4:3"])
def test_a_model_that_copies_the_truth_is_right_at_every_element(group):
    """Labels of whole blocks: interpolated probabilities and nearest labels agree inside them."""
    labels = torch.zeros(1, 24, 24, dtype=torch.long)
    labels[:, :, 12:] = 2
    scan = scanned(of_channels, (one_hot(labels), labels), group)
    assert float(scan.data["score"].min()) > 0.95
    exact = group == "dihedral:4"
    assert float(scan.data["consensus_vs_truth"].min()) == 1.0 if exact else True
    assert float(scan.data["changed_pixels"].max()) < 0.12


def test_label_maps_move_by_the_nearest_neighbor():
    _, labels = random_maps(2)
    action = ob.tasks.Segmentation().output
    moved = action.apply(ob.groups.rotations(7), labels)
    assert moved.dtype == labels.dtype
    assert {*moved.unique().tolist()} <= {0, 1, 2}
    exact = action.apply(ob.groups.cyclic(4), labels)[1]
    assert torch.equal(exact, torch.rot90(labels, 1, (-2, -1)))


def test_pixels_from_outside_the_image_are_not_judged():
    """A model that is wrong only in the corners that no camera saw is right everywhere."""
    task, group = ob.tasks.Segmentation(), ob.groups.rotations(8)
    labels = torch.zeros(1, 16, 16, dtype=torch.long)
    inside = task.output.valid(group, labels)[:, None]
    outputs = torch.stack([inside.float(), 1 - inside.float()], 2)
    found = summarized(task, outputs, labels, group)
    assert float(found["score"].min()) == 1.0
    assert int(found["pixel_count"].sum(-1).max()) == 256
    assert float(found["pixel_count"][0, 1].sum()) == int(inside[1].sum()) < 256
    assert (found["truth_map"][0, 1][~inside[1, 0]] == -1).all()


def test_a_window_judges_real_pixels_only_and_takes_a_larger_truth():
    random = torch.Generator().manual_seed(3)
    labels = torch.randint(0, CLASSES, (2, 20, 20), generator=random)
    task = ob.tasks.Segmentation(ob.actions.Window(12))
    scan = scanned(of_channels, (one_hot(labels), labels), "translations:2:1", task)
    np.testing.assert_allclose(scan.data["score"], 1.0)
    np.testing.assert_allclose(scan.data["score_vs_consensus"], 1.0)
    np.testing.assert_allclose(scan.data["changed_pixels"], 0.0)
    assert int(scan.data["pixel_count"].sum("bin").min()) == 144
    assert scan.data["consensus"].shape == (1, 2, 12, 12)
    np.testing.assert_array_equal(scan.data["consensus"].values[0], labels[:, 4:16, 4:16])


def test_the_consensus_is_the_class_of_the_mean_of_the_probabilities():
    outputs, labels = random_maps(4)
    task, group = ob.tasks.Segmentation(), ob.groups.dihedral(4)
    noise = torch.rand(8, *outputs.shape, generator=torch.Generator().manual_seed(5))
    moved = (task.output.apply(group, outputs) + noise) / (1 + noise.sum(2, keepdim=True))
    found = summarized(task, moved, labels, group)
    home = task.output.move(group.inverse(), moved)
    np.testing.assert_array_equal(found["consensus"], home.mean(0).argmax(1))
    differs = home.argmax(2) != home.argmax(2)[:1]
    np.testing.assert_allclose(
        found["changed_pixels"], differs.any(0).float().mean((-2, -1)), rtol=1e-6
    )
    gap = (home - home.mean(0)).square().sum(2).mean((-2, -1)).mean(0).sqrt()
    np.testing.assert_allclose(found["invariance_gap"], gap, rtol=1e-4)


def test_the_calibration_error_of_pixels_is_that_of_all_pixels_at_once():
    images = torch.randn(5, CLASSES, 8, 8, generator=torch.Generator().manual_seed(6))
    labels = random_maps(7, 8, 5)[1]
    labels[:, 0] = 255
    scan = scanned(lambda x: x, (images, labels), "flips")
    found = ob.calibration.along_orbit(scan, "ece")
    sure, winner = images.softmax(1).max(1)
    judged = labels != 255
    pair = sure[judged], winner[judged] == labels[judged]
    expected = ob.calibration.ece(*pair)
    np.testing.assert_allclose(found.values[0], float(expected), atol=1e-6)
    largest = ob.calibration.along_orbit(scan, "ece", bins=5, norm="max")
    expected = ob.calibration.ece(
        sure[judged], winner[judged] == labels[judged], bins=5, norm="max"
    )
    np.testing.assert_allclose(largest.values[0], float(expected), atol=1e-6)
    with pytest.raises(InputError, match="bins: expected one of 1, 3, 5, 15"):
        ob.calibration.along_orbit(scan, "ece", bins=10)
    with pytest.raises(InputError, match="for pixels, which are stored by bin"):
        ob.calibration.along_orbit(scan, "ks")
    with pytest.raises(InputError, match=r"pass pairs_within\(scan\)"):
        ob.calibration.pair_at(scan, 0)
    with pytest.raises(InputError, match="'ece', because an interval is asked for, for pixels"):
        ob.calibration.along_orbit(scan, "ece", norm="max", interval=True)


def test_a_region_is_all_pixels_of_a_predicted_class():
    labels = torch.zeros(1, 8, 8, dtype=torch.long)
    labels[:, :, 4:] = 1
    images = one_hot(labels)
    images[:, 1, :2, 4:] = -1.0  # a quarter of class 1 is given to class 0
    scan = scanned(of_channels, (images, labels), "flips")
    found = ob.calibration.pairs_within(scan)
    sure = (8 * images).softmax(1)[0]
    winner = sure.argmax(0)
    for c in (0, 1):
        region = float(sure[c][winner == c].mean())
        np.testing.assert_allclose(found["confidence"].values[0, c], region, rtol=1e-5)
        np.testing.assert_array_equal(found["correct"].values[0, c], 1.0)
    assert np.isnan(found["confidence"].values[0, 2]).all()
    assert ob.calibration.along_orbit(found, "ece").shape == (1, 4)


def test_one_channel_is_class_one_of_two():
    images = torch.randn(2, 1, 6, 6, generator=torch.Generator().manual_seed(8))
    scan = scanned(lambda x: x, (images, images[:, 0] > 0))
    np.testing.assert_allclose(scan.data["score"], 1.0)
    half = ob.tasks.Segmentation(outputs="probabilities")
    shares = scanned(torch.sigmoid, (images, images[:, 0] > 0), task=half)
    np.testing.assert_allclose(
        shares.data["mean_confidence"], scan.data["mean_confidence"], rtol=1e-5
    )


def test_a_scan_without_labels_has_consensus_and_maps():
    images = torch.rand(2, CLASSES, 40, 20)
    scan = scanned(of_channels, images, "flips", keep=("segments", "consensus_probabilities"))
    assert scan.data["class_map"].shape == (1, 2, 4, 32, 16)
    assert scan.data["segments"].shape == (1, 2, 4, 40, 20)
    np.testing.assert_allclose(scan.data["map_vs_consensus"], 0.0)
    assert "pixel_count" not in scan.data


def test_true_maps_are_converted_a_unit_at_a_time():
    labels = torch.randint(0, 3, (6, 8, 8))
    task = ob.tasks.Segmentation()
    samples = Samples((torch.rand(6, 1, 8, 8), labels))
    _, first, whole = checked_recipe_data(samples, ob.groups.rotations(4), task)
    assert whole.data_ptr() == labels.data_ptr()
    assert first.dtype == torch.int16
    scan = ob.scan(
        lambda x: x.repeat(1, 3, 1, 1),
        (torch.rand(6, 1, 8, 8), labels),
        group="rotations:4",
        task=task,
        chunk=4,
        progress=False,
    )
    assert scan.data.label_map.dtype == np.int16
    assert np.array_equal(scan.data.label_map, labels)


def test_a_scan_is_stored_and_its_task_restored(tmp_path):
    images, labels = one_hot(random_maps(9)[1]), random_maps(9)[1]
    task = ob.tasks.Segmentation(classes=["sky", "road", "car"], ignore_index=2)
    scanned(of_channels, (images, labels), task=task, out=tmp_path / "run.zarr")
    record = ob.load(tmp_path / "run.zarr").record.task
    from dataclasses import asdict

    assert repr(ob.tasks.Task.from_record(asdict(record))) == repr(task)


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        (lambda y: y.float(), r"integer label maps .* got float32"),
        (lambda y: y.float() * torch.nan, "integer label maps"),
        (lambda y: one_hot(y).long(), r"labels\.argmax\(1\)"),
        (lambda y: y[:1], "one for each of 2 samples"),
        (lambda y: y[:, :6], r"expected maps of \(12, 12\) pixels, as the model predicts, got"),
        (lambda y: y - 1, r"class indices from 0, or ignore_index=255, got -1 .. 1"),
        (lambda y: y + 1, "class indices below 3, as the model has, got 3"),
    ],
)
def test_wrong_label_maps_are_named_before_any_work(labels, words):
    images, truth = one_hot(random_maps(1)[1]), random_maps(1)[1]
    with pytest.raises(InputError, match=words):
        scanned(of_channels, (images, labels(truth)))


def test_masks_of_black_and_white_are_not_taken_for_background_alone():
    images, truth = one_hot(random_maps(1)[1]), random_maps(1)[1]
    with pytest.warns(UserWarning, match=r"only 0 and 255, .* labels // 255"):
        scanned(of_channels, (images, (truth > 0).long() * 255))
    ignored = torch.where(truth == 2, 255, truth)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        scanned(of_channels, (images, ignored))
        scanned(of_channels, (images, torch.zeros_like(truth)))


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (lambda x: x[:, 0], r"class scores \[sample, class, row, column\]"),
        (lambda x: x[..., ::2, ::2], r"maps of \(12, 12\) pixels, as the images have"),
        (lambda x: x[:, :2], "names of the model's 2 classes, got 3"),
        (lambda x: x * torch.nan, "NaN or infinite output"),
    ],
)
def test_wrong_outputs_are_named(model, words):
    images, labels = one_hot(random_maps(1)[1]), random_maps(1)[1]
    task = ob.tasks.Segmentation(classes=["a", "b", "c"])
    with pytest.raises((ModelError, InputError), match=words):
        scanned(model, (images, labels), task=task)


def test_probabilities_that_are_none_and_wrong_settings_are_named():
    images = one_hot(random_maps(1)[1])
    with pytest.raises(ModelError, match="for logits pass outputs='logits'"):
        scanned(of_channels, images, task=ob.tasks.Segmentation(outputs="probabilities"))
    with pytest.raises(InputError, match="ignore_index: expected an integer"):
        ob.tasks.Segmentation(ignore_index=0.5)
    with pytest.raises(InputError, match="interpolation"):
        ob.tasks.Segmentation(interpolation="cubic")


def test_an_equivariant_network_passes_the_unit_test():
    images = one_hot(random_maps(1)[1])
    ob.testing.assert_equivariant(of_channels, images, group="dihedral:4", task="segmentation")


def test_real_nuclei_are_found_by_a_threshold_at_every_quarter_turn(shared_data):
    """A threshold finds most pixels of real nuclei, at every quarter turn alike."""
    images, maps = ob.datasets.nuclei(shared_data / "nuclei", count=4)
    images, maps = images[..., ::4, ::4], maps[:, ::4, ::4]
    scan = scanned(lambda x: 20 * (x - 0.35), (images, maps))
    assert float(scan.data["score"].mean()) > 0.9
    assert np.ptp(scan.data["mean_iou"].values, axis=-1).max() < 1e-6
    assert float(scan.data["invariance_gap"].max()) < 1e-6
