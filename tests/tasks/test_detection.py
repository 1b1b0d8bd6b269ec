"""Detection: matching, average precision, consensus and what a scan stores of them."""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import pytest
import torch

import orbical as ob
from orbical.errors import InputError, ModelError
from orbical.tasks import Detection
from orbical.tasks.detection_matching import (
    Detections,
    average_precision,
    box_area,
    clipped_detection_boxes,
    detection_pairs,
    detection_scores,
    greedy_matches,
    iou,
    key_match,
)

VIEW = torch.tensor([0.0, 0, 64, 64])
NOTHING = [np.nan] * 5


def random_boxes(random: np.random.Generator, count: int, low: float = 0) -> np.ndarray:
    corner = random.uniform(low, 44, (count, 2))
    return np.concatenate([corner, corner + random.uniform(4, 24, (count, 2))], 1)


def random_case(seed: int) -> tuple[Detections, torch.Tensor]:
    """One view with six objects of two classes and eight detections near some of them."""
    random = np.random.default_rng(seed)
    boxes = random_boxes(random, 6)
    objects = np.concatenate([boxes, random.integers(0, 2, (6, 1))], 1)
    objects[5] = np.nan
    which = random.integers(0, 5, 8)
    near = boxes[which] + random.normal(0, 1.5, (8, 4))
    near[:, 2:] = np.maximum(near[:, 2:], near[:, :2] + 1)
    confidence = np.sort(random.uniform(0.05, 1, 8))[::-1].copy()
    label = np.where(random.uniform(size=8) < 0.8, objects[which, 4], 1 - objects[which, 4])
    label[6:] = -1
    confidence[6:] = 0
    found = Detections(
        torch.tensor(near).float(), torch.tensor(confidence).float(), torch.tensor(label).long()
    )
    return found, torch.tensor(objects).float()


def slow_iou(a: list[float], b: list[float]) -> float:
    width = min(a[2], b[2]) - max(a[0], b[0])
    height = min(a[3], b[3]) - max(a[1], b[1])
    if width <= 0 or height <= 0:
        return 0.0
    both = width * height
    return both / ((a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - both)


def slow_greedy(found: Detections, objects: torch.Tensor, threshold: float) -> list[bool]:
    """The usual greedy matching, with lists."""
    left = [row for row in objects.tolist() if row[4] == row[4]]
    right = []
    for box, label in zip(found.box.tolist(), found.label.tolist(), strict=True):
        box = [min(max(edge, 0), 64) for edge in box]
        best = max(
            (row for row in left if row[4] == label),
            key=lambda row, box=box: slow_iou(box, row[:4]),
            default=None,
        )
        hit = best is not None and slow_iou(box, best[:4]) >= threshold
        right.append(hit)
        if hit:
            left.remove(best)
    return right


def test_iou_equals_the_count_of_pixels() -> None:
    random = np.random.default_rng(0)
    boxes = np.round(random_boxes(random, 12)).astype(int)
    grids = np.zeros((12, 80, 80), bool)
    for grid, (left, top, right, bottom) in zip(grids, boxes, strict=True):
        grid[top:bottom, left:right] = True
    tensors = torch.tensor(boxes).float()
    got = iou(tensors[:, None], tensors[None])
    for i, j in itertools.product(range(12), repeat=2):
        expected = (grids[i] & grids[j]).sum() / max(1, (grids[i] | grids[j]).sum())
        assert got[i, j] == pytest.approx(expected, abs=1e-6)


def test_what_a_view_does_not_show_has_no_area() -> None:
    assert box_area(clipped_detection_boxes(torch.tensor([70.0, 0, 90, 10]), VIEW)) == 0


@pytest.mark.parametrize("seed", range(12))
def test_greedy_matching_equals_the_one_with_lists(seed: int) -> None:
    found, objects = random_case(seed)
    correct, judged = greedy_matches(found, detection_pairs(found, objects, VIEW), 0.5)
    assert correct.tolist() == slow_greedy(found, objects, 0.5)
    assert judged.tolist() == (found.label >= 0).tolist()


def test_matching_of_many_views_at_once_equals_one_by_one() -> None:
    cases = [random_case(seed) for seed in range(12)]
    found = Detections(*(torch.stack(part) for part in zip(*(c[0] for c in cases), strict=True)))
    objects = torch.stack([case[1] for case in cases])
    together, _ = greedy_matches(found, detection_pairs(found, objects, VIEW), 0.5)
    for place, (one, truth) in enumerate(cases):
        assert (
            together[place].tolist()
            == greedy_matches(one, detection_pairs(one, truth, VIEW), 0.5)[0].tolist()
        )


def slow_average_precision(correct: list[bool], objects: int) -> float:
    """The area under the interpolated precision-recall curve, recall level by recall level."""
    points = []
    for end in range(1, len(correct) + 1):
        right = sum(correct[:end])
        points.append((right / objects, right / end))
    levels = sorted({recall for recall, _ in points if recall > 0})
    total, before = 0.0, 0.0
    for level in levels:
        total += (level - before) * max(p for recall, p in points if recall >= level)
        before = level
    return total


@pytest.mark.parametrize("seed", range(8))
def test_average_precision_is_the_area_under_the_interpolated_curve(seed: int) -> None:
    random = np.random.default_rng(seed)
    correct = random.uniform(size=15) < 0.5
    confidence = np.sort(random.uniform(size=15))[::-1].copy()
    objects = int(correct.sum()) + 3
    shuffle = random.permutation(15)
    got = average_precision(
        torch.tensor(confidence[shuffle]), torch.tensor(correct[shuffle]), torch.tensor(objects)
    )
    assert float(got) == pytest.approx(slow_average_precision(correct.tolist(), objects), abs=1e-6)


def test_precision_recall_and_f1_count_confident_detections() -> None:
    found, objects = random_case(3)
    pairing = detection_pairs(found, objects, VIEW)
    correct, judged = greedy_matches(found, pairing, 0.5)
    scores = detection_scores(found, correct, judged, pairing.counted, 0.4)
    sure = (found.confidence >= 0.4) & (found.label >= 0)
    right, answered, there = int((correct & sure).sum()), int(sure.sum()), 5
    assert float(scores["precision"]) == pytest.approx(right / answered)
    assert float(scores["recall"]) == pytest.approx(right / there)
    assert float(scores["f1"]) == pytest.approx(2 * right / (answered + there))


def test_a_missed_key_object_has_no_overlap_and_no_confidence() -> None:
    wrong_class = Detections(
        torch.tensor([[10.0, 10, 20, 20]]), torch.tensor([0.9]), torch.tensor([1])
    )
    objects = torch.tensor([[10.0, 10, 20, 20, 0]])
    values = key_match(wrong_class, detection_pairs(wrong_class, objects, VIEW))
    assert [float(value) for value in values] == [0, 0]


def test_the_iou_of_the_most_confident_box_falls_where_two_boxes_change_their_order() -> None:
    objects = torch.tensor([[[4.0, 4, 14, 14, 0]]])
    boxes = torch.tensor([[4.0, 4, 14, 14], [6, 8, 20, 20]])

    def scored(*confidences: float) -> dict[str, torch.Tensor]:
        raw = {"boxes": boxes[None], "scores": torch.tensor([confidences])}
        found = Detections.of(task().read(raw | {"labels": torch.zeros(1, 2)}))
        return task().measures(found, objects)

    right, swapped = scored(0.8, 0.7), scored(0.7, 0.8)
    assert right["top_iou"] == right["iou"] == swapped["iou"] == 1
    expected = slow_iou(boxes[1].tolist(), [4, 4, 14, 14])
    assert float(swapped["top_iou"]) == pytest.approx(expected, rel=1e-6)
    assert expected < 0.5
    assert swapped["recall"] == right["recall"]


def test_an_object_that_hardly_shows_is_neither_missed_nor_found() -> None:
    at_edge = torch.tensor([[60.0, 10, 80, 20, 0], [5, 5, 25, 25, 0]])
    found = Detections(
        torch.tensor([[60.0, 10, 64, 20], [5, 5, 25, 25]]),
        torch.tensor([0.9, 0.8]),
        torch.tensor([0, 0]),
    )
    pairing = detection_pairs(found, at_edge, VIEW)
    correct, judged = greedy_matches(found, pairing, 0.5)
    assert correct.tolist() == [False, True]
    assert judged.tolist() == [False, True]
    assert all(value.isnan() for value in key_match(found, pairing))


def test_a_box_that_ends_at_the_border_is_as_good_as_one_that_guesses_beyond() -> None:
    objects = torch.tensor([[50.0, 10, 70, 30, 0]])
    for right in (64.0, 70.0):
        found = Detections(
            torch.tensor([[50.0, 10, right, 30]]), torch.tensor([0.9]), torch.tensor([0])
        )
        assert float(key_match(found, detection_pairs(found, objects, VIEW))[0]) == pytest.approx(1)


# Scans with detectors whose answers are known.


def blobs(count: int = 4, size: int = 48) -> tuple[torch.Tensor, torch.Tensor]:
    """Bright rectangles in the middle of dark images, and their boxes in a view of 32 pixels."""
    images = torch.zeros(count, 1, size, size)
    objects = torch.full((count, 2, 5), torch.nan)
    for number in range(count):
        images[number, 0, 20:27, 19 : 26 + number] = 1
        objects[number, 0] = torch.tensor([11.0, 12, 18 + number, 19, 0])
    return images, objects


def bright(views: torch.Tensor) -> list[dict[str, torch.Tensor]]:
    """Find the bright rectangle: exactly equivariant, ended at the border."""
    answers = []
    for view in views[:, 0]:
        rows, columns = (view > 0.5).nonzero(as_tuple=True)
        edges = (
            [[columns.min(), rows.min(), columns.max() + 1, rows.max() + 1]] if len(rows) else []
        )
        answers.append(
            {
                "boxes": torch.tensor(edges).float().reshape(-1, 4),
                "scores": torch.full((len(edges),), 0.8),
                "labels": torch.zeros(len(edges), dtype=torch.long),
            }
        )
    return answers


def nothing(views: torch.Tensor) -> torch.Tensor:
    return torch.zeros(len(views), 3, 6)


def task(**settings: object) -> Detection:
    return Detection(ob.actions.Window(32), **{"most": 4, **settings})  # type: ignore[arg-type]


def test_an_exact_detector_is_flat_and_agrees_with_itself_and_the_truth() -> None:
    images, objects = blobs()
    scan = ob.scan(
        bright, (images, objects), group="translations:8:2", task=task(), progress=False
    ).data
    assert np.allclose(scan["iou"], 1, atol=1e-6)
    assert np.allclose(scan["score"], 0.8, atol=1e-6)
    assert np.allclose(scan["score_vs_consensus"], 0.8, atol=1e-6)
    assert np.allclose(scan["consensus_vs_truth"], 0.8, atol=1e-6)
    assert np.allclose(scan["invariance_gap"], 0, atol=1e-5)
    assert np.allclose(scan["consensus"][0, :, 0, [0, 1, 2, 3, 5]], objects[:, 0], atol=1e-4)
    assert bool(scan["consensus"][0, :, 1:].isnull().all())
    assert bool((scan["count"] == 1).all())
    assert bool(scan["correct"].all())
    assert bool(scan["box"][..., 1:, :].isnull().all())  # no box, not a box at zero


def test_sides_cut_off_at_the_border_do_not_shrink_the_consensus() -> None:
    images, objects = blobs()
    far = ob.scan(
        bright, (images, objects), group="translations:8:8", task=task(), progress=False
    ).data
    # At shifts of 8 the box ends at 0 or 32 in some views; the consensus keeps its whole size.
    objects[..., :4] += 9
    shifted = torch.roll(images, (9, 9), (2, 3))
    near = ob.scan(
        bright, (shifted, objects), group="translations:8:8", task=task(), progress=False
    ).data
    size = [box_area(torch.tensor(data["consensus"].values[0, :, 0, :4])) for data in (far, near)]
    assert torch.allclose(size[0], size[1], rtol=1e-5)


def test_a_detection_of_what_hardly_shows_is_neither_right_nor_wrong() -> None:
    barely = torch.tensor(
        [[[-18.0, 0, 2, 20, 1], NOTHING], [[-18, 0, 2, 20, 1], [30, 30, 50, 50, 0]]]
    )
    boxes = barely[..., :4].nan_to_num(0)
    found = Detections(
        boxes, torch.tensor([[0.9, 0.0], [0.9, 0.6]]), torch.tensor([[1, -1], [1, 0]])
    )
    told = Detection(ob.actions.Window(64)).measures(found, barely)
    assert told["correct"].isnan().tolist() == [True, False]
    assert told["confidence"].isnan().tolist() == [True, False]
    assert (told["correct"][1], told["confidence"][1]) == (1, torch.tensor(0.6))
    none = found._replace(label=torch.full((2, 2), -1))
    assert torch.equal(
        Detection(ob.actions.Window(64)).measures(none, barely)["correct"].nan_to_num(9),
        torch.tensor([9.0, 0.0]),  # nothing to find, and something missed
    )


def test_what_is_agreed_upon_but_never_in_view_has_no_gap() -> None:
    def huge(views: torch.Tensor) -> torch.Tensor:
        return torch.tensor([[[-300.0, -300, 300, 300, 0.9, 0]]]).expand(len(views), -1, -1)

    images, objects = blobs()
    scan = ob.scan(huge, (images, objects), group="translations:8:8", task=task(), progress=False)
    assert bool(scan.data["invariance_gap"].isnull().all())


def test_a_model_without_any_detection_scores_nothing_and_has_no_consensus() -> None:
    images, objects = blobs()
    scan = ob.scan(
        nothing, (images, objects), group="translations:8:4", task=task(), progress=False
    ).data
    for name in ("score", "iou", "precision", "recall", "f1", "ap", "score_vs_consensus"):
        assert bool((scan[name] == 0).all()), name
    assert bool(scan["consensus"].isnull().all())
    assert bool(scan["box"].isnull().all())
    assert bool(scan["confidence"].isnull().all())
    assert not bool(scan["correct"].any())
    assert bool((scan["count"] == 0).all())
    assert bool((scan["invariance_gap"] == 0).all())


def test_boxes_that_are_shares_of_the_view_are_warned_of() -> None:
    images, objects = blobs()

    def shares(views: torch.Tensor) -> list[dict[str, torch.Tensor]]:
        return [one | {"boxes": one["boxes"] / 32} for one in bright(views)]

    with pytest.warns(UserWarning, match=r"all of their sides are in 0 .. 1; .* width and height"):
        ob.scan(shares, (images, objects), group="cyclic:4", task=task(), progress=False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ob.scan(bright, (images, objects), group="cyclic:4", task=task(), progress=False)
        ob.scan(nothing, (images, objects), group="cyclic:4", task=task(), progress=False)


def test_all_three_forms_of_answers_are_read_alike() -> None:
    boxes = torch.tensor([[[1.0, 2, 9, 12], [3, 3, 20, 20]], [[0, 0, 8, 8], [0, 0, 0, 0]]])
    scores, labels = torch.tensor([[0.3, 0.9], [0.5, 0.0]]), torch.tensor([[2, 1], [0, -1]])
    tensor = torch.cat([boxes, scores[..., None], labels[..., None].float()], -1)
    lists = [
        {"boxes": boxes[0], "scores": scores[0], "labels": labels[0]},
        {"boxes": boxes[1, :1], "scores": scores[1, :1], "labels": labels[1, :1]},
    ]
    forms = [tensor, {"boxes": boxes, "scores": scores, "labels": labels}, lists]
    first, *others = (task().read(form) for form in forms)
    assert first[..., 5].tolist() == [[1, 2, -1, -1], [0, -1, -1, -1]]
    for other in others:
        assert torch.equal(first, other)


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (torch.zeros(2, 3, 5), "6"),
        ({"boxes": torch.zeros(1, 2, 4), "scores": torch.zeros(1, 2)}, "labels"),
        (
            [{"boxes": torch.zeros(2, 4), "scores": torch.zeros(1), "labels": torch.zeros(2)}],
            "for a view",
        ),
        ([], "empty list"),
    ],
)
def test_answers_that_are_no_detections_are_refused(raw: object, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        task().read(raw)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ([9.0, 0, 2, 4, 0.5, 1], "a box whose left > right"),
        ([0.0, 0, 2, 4, 7.5, 1], "a confidence outside 0 .. 1"),
        ([0.0, 0, 2, 4, -0.5, 1], "a confidence outside 0 .. 1"),
    ],
)
def test_detections_that_cannot_be_are_named_with_their_place(
    row: list[float], message: str
) -> None:
    good = torch.tensor([5.0, 5, 9, 9, 0.4, 0])
    answers = good.repeat(2, 3, 12, 1)  # more than are kept: the wrong one must not be lost
    answers[1, 2, 7] = torch.tensor(row)
    outputs = task().read(answers.flatten(0, 1)).unflatten(0, (2, 3))
    found = {words: marks.nonzero().tolist() for words, marks in task().faults(outputs).items()}
    assert next(places for words, places in found.items() if message in words) == [[1, 2]]
    assert not any(marks.any() for marks in task().faults(outputs[:1]).values())


def test_nan_boxes_of_a_model_are_named_with_their_place() -> None:
    images, objects = blobs()

    def breaks(views: torch.Tensor) -> torch.Tensor:
        answer = torch.tensor([[[5.0, 5, 9, 9, 0.5, 0]]]).repeat(len(views), 1, 1)
        answer[views.flatten(1).amax(1) > 2] = torch.nan
        return answer

    images[-1, :, :8, :8] = 3.0  # comes into view with the last samples alone, at one corner
    where = f"'model': NaN or infinite output for sample {len(images) - 1} at dx 8, dy -8"
    with pytest.raises(ModelError, match=where):
        ob.scan(breaks, (images, objects), group="translations:8:8", task=task(), progress=False)


def test_boxes_without_area_or_outside_the_view_are_no_detections() -> None:
    answer = torch.tensor(
        [[[5.0, 5, 5, 9, 0.9, 0], [40, 40, 50, 50, 0.8, 0], [1, 1, 9, 9, 0.3, 1]]]
    )
    read = task().read(answer)
    assert (read[..., 5] >= 0).sum() == 1


def with_first(row: list[float]) -> torch.Tensor:
    return torch.tensor([[row, [5.0, 5, 9, 9, 1]]])


@pytest.mark.parametrize(
    ("objects", "message"),
    [
        (with_first([np.nan, 5, 9, 9, 0]), "got NaN in part for object 0 of sample 0"),
        (with_first([5, 5, np.inf, 9, 0]), "got infinity"),
        (with_first([9, 5, 5, 9, 0]), "no area"),
        (with_first([5, 5, 5, 9, 0]), "no area"),
        (with_first([5, 5, 9, 9, 0.5]), "class"),
        (with_first([50, 50, 60, 60, 0]), "inside the view of 32 x 32 pixels"),
        (with_first(NOTHING), "expected a key object.* got NaN for object 0 of sample 0"),
        (torch.zeros(1, 2, 4), r"\[sample, object, 5\]"),
        (torch.zeros(2, 1, 5), "expected one for each of 1 samples, got 2"),
        ([{"boxes": [[5.0, 5, 9, 9]]}], r"boxes \[n, 4\] and labels \[n\], got fields \['boxes'\]"),
        ([{"boxes": [[5.0, 5, 9, 9]], "labels": [0, 1]}], r"got shapes \(1, 4\) and \(2,\)"),
    ],
)
def test_truth_that_cannot_be_used_is_refused(objects: torch.Tensor, message: str) -> None:
    with pytest.raises(InputError, match=message):
        task().check_target(objects, 1)


def test_targets_of_torchvision_give_the_scan_of_the_same_array() -> None:
    images, objects = blobs()
    listed = [
        {"boxes": found[:, :4], "labels": found[:, 4].long()}
        for found in (rows[~rows[:, 0].isnan()] for rows in objects)
    ]
    scans = [
        ob.scan(bright, (images, truth), group="translations:8:8", task=task(), progress=False)
        for truth in (objects, listed)
    ]
    np.testing.assert_array_equal(*(scan.data["score"] for scan in scans))


def test_images_smaller_than_the_window_name_the_way_out() -> None:
    with pytest.raises(InputError, match=r"size of the window.*Window\(size\)"):
        ob.scan(bright, torch.rand(2, 1, 16, 16), group="flips", task=task(), progress=False)


def test_a_group_that_moves_the_view_out_of_the_image_names_the_largest_radius() -> None:
    with pytest.raises(InputError, match="largest admissible radius is 8"):
        ob.scan(bright, blobs()[0], group="translations:9:3", task=task(), progress=False)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"score": "iuo"}, "did you mean 'iou'"),
        ({"threshold": 1.5}, "threshold"),
        ({"most": 0}, "most"),
        ({"confident": -1}, "confident"),
        ({"threshold": "half"}, "threshold: expected a number in \\[0, 1\\], got 'half'"),
        ({"size": 128}, "size: expected height and width of the view in whole pixels, .* got 128"),
        ({"size": (128, 0)}, r"got \(128, 0\)"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        task(**settings)


def test_the_size_of_the_view_is_asked_for_where_the_input_does_not_tell() -> None:
    with pytest.raises(InputError, match=r"size: expected height and width .* got None"):
        Detection(ob.actions.Images())


def test_every_score_can_be_chosen_and_is_stored_under_its_name() -> None:
    images, objects = blobs(2)
    for name in ("iou", "match_confidence", "top_iou", "precision", "recall", "f1", "ap"):
        scan = ob.scan(
            bright,
            (images, objects),
            group="translations:4:4",
            task=task(score=name),
            progress=False,
        ).data
        assert np.array_equal(scan["score"], scan[name])


def test_flips_move_boxes_exactly() -> None:
    images, objects = blobs()
    flat = Detection(ob.actions.Images(), size=(48, 48))
    objects[..., :4] += 8
    scan = ob.scan(bright, (images, objects), group="flips", task=flat, progress=False).data
    assert np.allclose(scan["iou"], 1, atol=1e-6)
    assert np.allclose(scan["score_vs_consensus"], 0.8, atol=1e-6)
    assert flat.isometric(ob.groups.flips())
    assert flat.isometric(ob.groups.dihedral(4))
    assert not flat.isometric(ob.groups.rotations(8))


def test_samples_carry_the_class_of_their_key_object() -> None:
    images, objects = blobs()
    objects[2:, 0, 4] = 3
    scan = ob.scan(bright, (images, objects), group="translations:4:4", task=task(), progress=False)
    assert scan.data["label"].values.tolist() == [0, 0, 3, 3]
    by_class = ob.nero.aggregate(scan, by="label")
    assert by_class.sel(label=0).mean() > 0.7
    assert by_class.sel(label=3).mean() == 0  # the detector knows only class 0
