"""Key points: scores against plain references, mirrors that exchange them, and calibration."""

from __future__ import annotations

import io
import json
import zipfile
from dataclasses import asdict

import numpy as np
import pytest
import torch
from PIL import Image

import orbical as ob
from orbical.errors import InputError, ModelError

SIZE = 16


def task_of(**settings):
    return ob.tasks.KeyPoints((SIZE, SIZE), **settings)


def random_points(seed, samples=3, count=4):
    """Points near the center, which no rotation takes out of the view."""
    random = torch.Generator().manual_seed(seed)
    return SIZE / 2 + 6 * (torch.rand(samples, count, 2, generator=random) - 0.5)


def with_visibility(points, *unlabeled):
    seen = torch.full((*points.shape[:2], 1), 2.0)
    for sample, point in unlabeled:
        seen[sample, point] = 0
    return torch.cat([points, seen], -1)


def summarized(task, outputs, target, group):
    target = None if target is None else task.check_target(target, len(target))
    return task.summarize(outputs, target, group, torch.as_tensor(group.weights))


def scanned(model, points, group="cyclic:4", **settings):
    numbers = torch.arange(len(points)).reshape(-1, 1, 1, 1)
    images = numbers.expand(-1, 1, SIZE, SIZE).float()  # each knows which sample it is
    return ob.scan(model, (images, points), group=group, task=task_of(**settings), progress=False)


def test_scores_equal_their_definitions():
    answer, truth = random_points(1), with_visibility(random_points(2), (0, 1), (2, 3))
    sigmas = [0.03, 0.05, 0.1, 0.2]
    task = task_of(sigmas=sigmas, radius=0.5)
    found = summarized(task, {"points": answer[None]}, truth, ob.groups.cyclic(1))
    for sample in range(3):
        known = truth[sample, :, 2].numpy() > 0
        true = truth[sample, :, :2].numpy()[known]
        away = np.linalg.norm(answer[sample].numpy()[known] - true, axis=-1)
        side = np.ptp(true, axis=0)
        area = max(side.prod(), side.max() ** 2 / 4)
        spread = 2 * np.array(sigmas)[known]
        oks = np.exp(-(away**2) / (2 * area * spread**2)).mean()
        assert float(found["oks"][sample, 0]) == pytest.approx(oks, rel=1e-4)
        assert float(found["pck"][sample, 0]) == pytest.approx((away <= 0.5 * side.max()).mean())
        assert float(found["distance"][sample, 0]) == pytest.approx(away.mean(), rel=1e-5)
        assert bool(found["point_correct"][sample, 0].isnan().numpy()[~known].all())


def test_mirrors_exchange_left_and_right_in_truth_and_prediction():
    points = torch.tensor([[[2.0, 8.0], [12.0, 8.0], [7.0, 3.0]]])
    swapped = ob.actions.PixelPoints(SIZE, SIZE, swaps=[(0, 1)])
    mirrored = swapped.apply(ob.groups.flips(), points)[1, 0]
    np.testing.assert_allclose(mirrored, [[4, 8], [14, 8], [9, 3]])
    for group in (ob.groups.dihedral(4), ob.groups.flips()):
        there = swapped.apply(group, points)
        back = swapped.move(group.inverse(), there)
        np.testing.assert_allclose(back, points[None].expand_as(back), atol=1e-5)


@pytest.mark.parametrize("group", ["dihedral:4", "rotations:8", "scales:0.8:1.2:3"])
def test_a_model_that_copies_the_truth_is_right_at_every_element(group):
    task, group = task_of(swaps=[(0, 1)]), ob.groups.parse(group)
    truth = random_points(3)
    moved = {"points": task.output.apply(group, truth)}
    found = summarized(task, moved, truth, group)
    np.testing.assert_allclose(found["oks"], 1.0, atol=1e-4)
    np.testing.assert_allclose(found["consensus"], truth, atol=1e-4)
    assert float(found["invariance_gap"].max()) < 1e-4
    blind = summarized(task_of(swaps=[]), moved, truth, group)
    if "dihedral" in group.spec:  # a model that exchanges hands is wrong if hands are not exchanged
        assert float(blind["oks"].min()) < 0.9


def test_sizes_grow_with_the_image():
    """An error of the same share of the person has the same score at every scale."""
    task, group = task_of(radius=0.3), ob.groups.scales(0.8, 1.2, 5)
    truth, answer = random_points(4), random_points(4) + 0.3
    found = summarized(task, {"points": task.output.apply(group, answer)}, truth, group)
    assert float(found["oks"].std(1).max()) < 1e-5
    assert float(found["distance"].std(1).max()) > 0.01


def test_a_point_that_leaves_the_view_is_not_judged_nor_part_of_the_consensus():
    task, group = task_of(), ob.groups.translations(4, 4)
    truth = torch.tensor([[[2.0, 8.0], [8.0, 8.0]]])
    outputs = task.output.apply(group, truth)
    inside = (outputs >= 0).all(-1) & (outputs <= SIZE).all(-1)
    outputs = outputs.where(inside[..., None], 99.0)  # nobody can know where they are
    found = summarized(task, {"points": outputs}, truth, group)
    np.testing.assert_allclose(found["oks"], 1.0, atol=1e-5)
    assert int(found["point_correct"][0].isnan().sum()) == int((~inside).sum()) == 3
    np.testing.assert_allclose(found["consensus"], truth, atol=1e-5)


def test_confidence_is_calibrated_by_point_and_by_pose():
    truth = random_points(5, 6)
    places = torch.cat([truth, torch.full((6, 4, 1), 0.75)], -1)
    places[:, 0, :2] += 9.0  # one point of four is wrong

    def three_of_four(images):
        return places[images[:, 0, 0, 0].long()]

    scan = scanned(three_of_four, truth, "cyclic:1")
    found = ob.calibration.pairs_within(scan)
    assert found["confidence"].shape == (1, 24, 1)
    np.testing.assert_allclose(ob.calibration.along_orbit(found, "ece"), 0.0, atol=1e-6)
    np.testing.assert_allclose(scan.data["confidence"], 0.75)
    np.testing.assert_allclose(scan.data["correct"], 1.0)  # an OKS of 0.75
    assert ob.calibration.along_orbit(scan, "ece").shape == (1, 1)


def test_a_mirror_without_declared_pairs_is_refused_before_any_work():
    def never(images):
        raise AssertionError("the model was run")

    for group in ("flips", "dihedral:4"):
        with pytest.raises(InputError, match="has mirrors, which exchange left and right"):
            scanned(never, random_points(1), group)
    images = torch.zeros(1, 1, SIZE, SIZE)
    with pytest.raises(InputError, match="has mirrors"):
        ob.testing.equivariance_error(never, images, group="flips", task=task_of())
    found = scanned(lambda x: torch.zeros(len(x), 4, 2), random_points(1), "flips", swaps=[])
    assert found.complete


@pytest.mark.parametrize(
    ("truth", "words"),
    [
        (lambda y: y[:2], "one for each of 3 samples"),
        (lambda y: y[:, :3], "expected 4 points, as the model predicts, got 3"),
        (lambda y: y[..., 0], r"points \[sample, point, 3\]"),
        (lambda y: torch.cat([y, y[..., :1]], -1), "visibility of 0 .* 1 .* or 2"),
        (lambda y: with_visibility(y * torch.nan), "finite places of labeled points"),
    ],
)
def test_wrong_truths_are_named_before_any_work(truth, words):
    points = random_points(1)

    def model(images):
        return points[:1].expand(len(images), -1, -1)

    images = torch.zeros(3, 1, SIZE, SIZE)
    with pytest.raises(InputError, match=words):
        ob.scan(model, (images, truth(points)), group="cyclic:4", task=task_of(), progress=False)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (lambda n: torch.zeros(n, 8), r"points \[sample, point, 2 or 3\]"),
        (lambda n: torch.full((n, 4, 2), torch.nan), "NaN or infinite output"),
        (lambda n: torch.full((n, 4, 3), 7.0), "confidence outside 0 .. 1"),
        (lambda n: {"keypoints": torch.zeros(n, 4, 2), "scores": torch.zeros(n)}, "of each point"),
    ],
)
def test_wrong_outputs_are_named(answer, words):
    with pytest.raises(ModelError, match=words):
        scanned(lambda images: answer(len(images)), random_points(1))


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"swaps": [(0, 1), (1, 2)]}, "each index from 0 in one pair only"),
        ({"swaps": [0, 1]}, "pairs of indices"),
        ({"swaps": [(0, 9)]}, "indices of the 4 points, got 9"),
        ({"sigmas": [0.1, 0.2]}, "one for each of 4 points, got 2"),
        ({"sigmas": -1}, "sigmas: expected a number > 0"),
        ({"radius": 0}, "radius: expected a number > 0"),
        ({"score": "ap"}, "score"),
    ],
)
def test_wrong_settings_are_named(settings, words):
    with pytest.raises(InputError, match=words):
        scanned(lambda images: torch.zeros(len(images), 4, 2), random_points(1), **settings)


def test_calibration_without_confidences_names_what_is_missing():
    scan = scanned(lambda images: torch.zeros(len(images), 4, 2), random_points(1))
    with pytest.raises(InputError, match="let the model return a confidence with each prediction"):
        ob.calibration.along_orbit(scan, "ece")


def test_the_size_of_the_view_must_be_known():
    with pytest.raises(InputError, match="height and width of the view"):
        ob.tasks.KeyPoints()
    assert ob.tasks.KeyPoints(input=ob.actions.Window(32)).size == (32, 32)


def test_the_size_of_the_view_is_that_of_the_images():
    images, answer = torch.zeros(2, 1, SIZE, SIZE), random_points(1, 2)
    for wrong in ((SIZE, SIZE + 1), (2 * SIZE, SIZE)):
        task = ob.tasks.KeyPoints(wrong, swaps=[])
        with pytest.raises(InputError, match=r"size: expected that of the images, \(16, 16\), got"):
            ob.scan(
                lambda seen: answer[:1].expand(len(seen), -1, -1),
                (images, answer),
                group="flips",
                task=task,
                progress=False,
            )


def test_too_few_points_of_a_model_are_its_own_fault():
    with pytest.raises(ModelError, match=r"model output: expected 4 points, .* sigmas=, got 3"):
        scanned(lambda images: torch.zeros(len(images), 3, 2), random_points(1), sigmas=[0.1] * 4)
    with pytest.raises(ModelError, match=r"model output: expected at least 4 points, .*, got 3"):
        scanned(lambda images: torch.zeros(len(images), 3, 2), random_points(1), swaps=[(0, 3)])


def test_a_scan_is_stored_and_its_task_restored(tmp_path):
    points = random_points(1, 1)
    task = task_of(swaps=[(0, 1)], score="pck", edges=[(0, 2)])
    images = torch.zeros(1, 1, SIZE, SIZE)
    ob.scan(lambda x: points.expand(len(x), -1, -1), (images, points), group="flips", task=task,
            out=tmp_path / "run.zarr", progress=False)  # fmt: skip
    record = ob.load(tmp_path / "run.zarr").record.task
    assert repr(ob.tasks.Task.from_record(asdict(record))) == repr(task)


def test_real_persons_have_their_labeled_points_in_the_picture(shared_data):
    images, points = ob.datasets.coco_persons(shared_data / "coco_val2017", size=32, least=14)
    assert images.shape[1:] == (3, 32, 32)
    known = points[..., 2] > 0
    assert int(known.sum(1).min()) >= 14
    places = points[..., :2][known]
    assert float(((places > 0) & (places < 32)).float().mean()) > 0.99
    left, right = points[:, 5], points[:, 6]  # of persons, most of whom face the camera
    both = known[:, 5] & known[:, 6]
    assert float((left[both, 0] > right[both, 0]).float().mean()) > 0.5


def test_the_largest_persons_of_each_photograph_come_with_a_chosen_margin(tmp_path):
    photo = io.BytesIO()
    Image.new("RGB", (40, 40), "white").save(photo, "jpeg")
    with zipfile.ZipFile(tmp_path / "coco_val_400px.zip", "w") as archive:
        archive.writestr("one.jpg", photo.getvalue())
    persons = [
        {"box": [0.5, 0.5, side, side], "kp": [[0.5 + side / 4, 0.5, 2]] * 17}
        for side in (0.2, 0.6, 0.4)
    ]
    (tmp_path / "annotations.json").write_text(json.dumps({"one": {"keypoints": persons}}))
    images, points = ob.datasets.coco_persons(tmp_path, size=20, margin=2.0, most=2)
    assert images.shape == (2, 3, 20, 20)
    # A quarter of the box, of which two fill the side, to the right of the middle.
    np.testing.assert_allclose(points[:, 0, :2], [[12.5, 10], [12.5, 10]], rtol=1e-5)
    assert (images[1] > 0.9).all()
    assert images[0, :, 0].max() < 0.1  # 24 pixels of box, twice: black beyond the photograph
    assert len(ob.datasets.coco_persons(tmp_path)[0]) == 3
