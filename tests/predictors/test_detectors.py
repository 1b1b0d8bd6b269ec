"""Detectors in ONNX files, generated here: letterbox, decodings and suppression, by brute force."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch

import orbical as ob
from orbical.errors import InputError, ModelError
from orbical.predictors import DetectorPredictor, OnnxPredictor, as_predictor
from orbical.predictors.detectors import _images_fitted_to_detector

onnx = pytest.importorskip("onnx", reason="onnx is not installed")
pytest.importorskip("onnxruntime", reason="onnxruntime is not installed: extra onnx")
SIZE = (64, 96)
CELLS = sum((64 // s) * (96 // s) for s in (8, 16, 32))  # 96 + 24 + 6


def save(
    path: Path,
    answers: dict[str, np.ndarray],
    images: tuple = ("n", 3, *SIZE),
    kind: str = "FLOAT",
    classes: list[str] | None = None,
    free: bool = False,
) -> str:
    """Write a network that answers the same for every image."""
    from onnx import TensorProto, helper, numpy_helper

    nodes = [
        helper.make_node("Cast", ["x"], ["float"], to=TensorProto.FLOAT),
        helper.make_node("ReduceMean", ["float", "axes"], ["mean"], keepdims=0),
        helper.make_node("Mul", ["mean", "zero"], ["nothing"]),
    ]
    constants = {"axes": np.array([1, 2, 3]), "zero": np.array(0, np.float32)}
    outputs = []
    for name, answer in answers.items():
        tail = np.arange(1, answer.ndim + 1)
        constants |= {f"{name}_tail": tail, f"{name}_answer": answer[None].astype(np.float32)}
        nodes += [
            helper.make_node("Unsqueeze", ["nothing", f"{name}_tail"], [f"{name}_zeros"]),
            helper.make_node("Add", [f"{name}_zeros", f"{name}_answer"], [name]),
        ]
        shape = ["n", *("free" if free and side > 20 else side for side in answer.shape)]
        outputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, shape))
    graph = helper.make_graph(
        nodes,
        "detector",
        [helper.make_tensor_value_info("x", getattr(TensorProto, kind), images)],
        outputs,
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    if classes is not None:
        helper.set_model_props(model, {"names": str(dict(enumerate(classes)))})
    onnx.save(model, path)
    return str(path)


def by_brute_force(boxes, scores, labels, overlap, least=0.01):
    """Decode one image with loops: rows (left, top, right, bottom, score, label), best first."""

    def share(a, b):
        width, height = (min(a[i + 2], b[i + 2]) - max(a[i], b[i]) for i in (0, 1))
        both = max(0, width) * max(0, height)
        areas = [(one[2] - one[0]) * (one[3] - one[1]) for one in (a, b)]
        return both / (sum(areas) - both)

    kept = []
    for place in np.argsort(-scores):
        if scores[place] < least:
            break
        rivals = [one for one in kept if one[5] == labels[place]]
        if all(share(boxes[place], one[:4]) <= overlap for one in rivals):
            kept.append((*boxes[place], scores[place], labels[place]))
    return np.array(kept)


def rows_of(found, image=0):
    there = found["labels"][image] >= 0
    parts = [found["boxes"], found["scores"][..., None], found["labels"][..., None]]
    return torch.cat([part[image][there].double() for part in parts], -1).numpy()


@pytest.fixture(scope="module")
def head():
    """Centers, sizes and scores of crowded boxes: many overlap."""
    rng = np.random.default_rng(0)
    count = 3 * CELLS
    center = rng.uniform([20, 20], [76, 44], (count, 2))
    size = rng.uniform(10, 30, (count, 2))
    sure = rng.uniform(0, 1, (count, 3)) * (rng.uniform(size=(count, 1)) < 0.5)
    return center, size, sure.astype(np.float32)


def corners(center, size):
    return np.concatenate([center - size / 2, center + size / 2], 1)


def test_a_yolov5_head_is_decoded_as_by_brute_force(head, tmp_path):
    center, size, sure = head
    objectness = np.linspace(0.2, 1, len(sure), dtype=np.float32)
    answer = np.concatenate([center, size, objectness[:, None], sure], 1)
    predictor = as_predictor(save(tmp_path / "net.onnx", {"out": answer}))
    assert isinstance(predictor, DetectorPredictor)
    assert predictor.decoding == "yolov5"
    found = predictor(torch.rand(2, 3, *SIZE))
    product = objectness[:, None] * sure
    expected = by_brute_force(corners(center, size), product.max(1), product.argmax(1), 0.45)
    assert 5 < len(expected) < 100, "some are suppressed, none is cut"
    for image in (0, 1):
        np.testing.assert_allclose(rows_of(found, image), expected, atol=1e-4)


def test_a_yolov8_head_is_decoded_as_by_brute_force(head, tmp_path):
    center, size, sure = (part[:CELLS] for part in head)
    answer = np.concatenate([center, size, sure], 1).T
    predictor = as_predictor(save(tmp_path / "net.onnx", {"out": answer}))
    assert predictor.decoding == "yolov8"
    expected = by_brute_force(corners(center, size), sure.max(1), sure.argmax(1), 0.7)
    found = rows_of(predictor(torch.rand(1, 3, *SIZE)))
    np.testing.assert_allclose(found, expected[:100], atol=1e-4)
    shares = np.concatenate([center / SIZE[::-1], size / SIZE[::-1], sure], 1).T
    lite = as_predictor(save(tmp_path / "shares.onnx", {"out": shares}))
    np.testing.assert_allclose(rows_of(lite(torch.rand(1, 3, *SIZE))), found, atol=1e-3)


def test_boxes_come_back_in_pixels_of_the_view(head, tmp_path):
    center, size, sure = (part[:CELLS] for part in head)
    path = save(tmp_path / "net.onnx", {"out": np.concatenate([center, size, sure], 1).T})
    whole = rows_of(as_predictor(path)(torch.rand(1, 3, *SIZE)))
    view = rows_of(as_predictor(path)(torch.rand(1, 3, 32, 32)))  # twice as large inside 64 x 96
    np.testing.assert_allclose(view[:, [0, 2]], (whole[:, [0, 2]] - 16) / 2, atol=1e-4)
    np.testing.assert_allclose(view[:, [1, 3]], whole[:, [1, 3]] / 2, atol=1e-4)


@pytest.mark.parametrize("given", [(32, 32), (100, 40), (64, 96), (30, 200), (7, 5)])
@pytest.mark.parametrize("letterbox", [True, False])
def test_an_image_is_found_where_the_fit_says(given, letterbox):
    fitted, grown, offset = _images_fitted_to_detector(torch.ones(1, 1, *given), SIZE, letterbox)
    assert fitted.shape[2:] == SIZE
    rows, columns = (fitted[0, 0] > 0.9).nonzero().T
    found = [columns.min(), rows.min(), columns.max() + 1, rows.max() + 1]
    height, width = given
    box = np.array([0, 0, width, height]) * [*grown, *grown] + [*offset, *offset]
    np.testing.assert_allclose(found, box, atol=1e-6)
    assert not letterbox or abs(grown[0] / grown[1] - 1) < 0.1, "proportions but for rounding"


BOXES = np.array([[0.25, 0.1, 0.5, 0.3], [0.5, 0.5, 1.0, 1.0], [0, 0, 1, 1]])
SURE, KINDS = np.array([0.9, 0.6, 0.8]), np.array([3.0, 1.0, 2.0])
PARTS = {"a": BOXES, "b": KINDS, "c": SURE, "d": np.array(2.0)}


@pytest.mark.parametrize(
    "names",
    [
        {"a": "a", "b": "b", "c": "c", "d": "d"},
        {"c": "p", "a": "q", "d": "r", "b": "s"},  # another order: classes are whole numbers
        {
            "d": "num_detections",
            "c": "detection_scores",
            "a": "detection_boxes",
            "b": "detection_classes",
        },
    ],
)
@pytest.mark.parametrize(
    ("images", "kind"), [((1, 60, 80, 3), "UINT8"), (("n", 3, 60, 80), "FLOAT")]
)
def test_ssd_outputs_are_read_by_name_or_shape(tmp_path, names, images, kind):
    answers = {name: PARTS[part] for part, name in names.items()}
    predictor = as_predictor(save(tmp_path / "net.onnx", answers, images, kind))
    assert predictor.decoding == "ssd"
    found = rows_of(predictor(torch.rand(2, 3, 30, 20)), image=1)
    expected = [[2, 7.5, 6, 15, 0.9, 3], [10, 15, 20, 30, 0.6, 1]]
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_integers_get_the_images_as_bytes_in_the_layout_of_the_file(tmp_path):
    path = save(tmp_path / "net.onnx", PARTS, (1, 60, 80, 3), "UINT8")
    predictor = DetectorPredictor(path)
    seen = []
    network = predictor.network

    class Spy:
        declared_outputs = network.declared_outputs

        def __call__(self, images):
            seen.append(images)
            return network(images)

    predictor.network = Spy()
    predictor(torch.full((1, 3, 60, 80), 0.5))
    assert seen[0].shape == (1, 60, 80, 3)
    assert torch.equal(seen[0], torch.full((1, 60, 80, 3), 128.0))


def test_boxes_without_suppression_are_returned_as_they_are(tmp_path):
    answer = np.array([[0, 0, 32, 32, 0.9, 1], [1, 0, 32, 32, 0.8, 1], [0, 0, 0, 0, 0, 0]])
    path = save(tmp_path / "net.onnx", {"out": answer})
    assert isinstance(as_predictor(path), OnnxPredictor), "[N, n, 6] may also be a view's own boxes"
    found = rows_of(as_predictor(f"{path}:yolov10")(torch.rand(1, 3, *SIZE)))
    np.testing.assert_allclose(found, answer[:2], atol=1e-5)


def test_the_names_in_a_file_decide_where_the_size_is_free(head, tmp_path):
    center, size, sure = (part[:50] for part in head)
    rows = {"out": np.concatenate([center, size, sure], 1).T}
    images = ("n", 3, "h", "w")
    named = save(tmp_path / "named.onnx", rows, images, classes=["cat", "dog", "cup"], free=True)
    predictor = as_predictor(named)
    assert (predictor.decoding, predictor.classes) == ("yolov8", ["cat", "dog", "cup"])
    assert predictor(torch.rand(1, 3, 32, 32))["boxes"].shape == (1, 50, 4)
    assert isinstance(
        as_predictor(save(tmp_path / "no.onnx", rows, images, free=True)), OnnxPredictor
    )
    sized = DetectorPredictor(str(tmp_path / "no.onnx"), "yolov8", size=SIZE)
    np.testing.assert_allclose(
        rows_of(sized(torch.rand(1, 3, *SIZE))),
        by_brute_force(corners(center, size), sure.max(1), sure.argmax(1), 0.7),
        atol=1e-4,
    )


def test_a_detector_in_a_file_is_scanned(tmp_path):
    answer = np.zeros((5, CELLS))
    answer[:4], answer[4, 7] = np.array([[48], [32], [20], [20]]), 0.75
    path = save(tmp_path / "net.onnx", {"out": answer})
    views, truth = torch.rand(2, 3, 40, 56), torch.tensor([[[11.0, 11, 21, 21, 0]]]).repeat(2, 1, 1)
    task = ob.tasks.Detection(ob.actions.Window(32), classes=["cup"])
    scan = ob.scan(path, (views, truth), group="translations:4:4", task=task, progress=False)
    upright = scan.data.isel(element=scan.group.identity, model=0)
    np.testing.assert_allclose(upright["box"].values[:, 0], [[11, 11, 21, 21]] * 2, atol=1e-4)
    np.testing.assert_allclose(upright["iou"].values, 1, atol=1e-4)
    assert float(upright["confidence"].max()) == 0.75
    raw = as_predictor(f"{path}:raw")
    assert raw(torch.rand(1, 3, *SIZE)).shape == (1, 5, CELLS)


def test_settings_are_part_of_the_fingerprint(head, tmp_path):
    center, size, sure = (part[:CELLS] for part in head)
    path = save(tmp_path / "net.onnx", {"out": np.concatenate([center, size, sure], 1).T})
    made = [DetectorPredictor(path, overlap=overlap).fingerprint() for overlap in (None, 0.7, 0.5)]
    assert made[0] == made[1]
    assert made[1] != made[2]
    assert DetectorPredictor(path, confidence=0.5)(torch.rand(1, 3, *SIZE))["scores"].max() >= 0.5
    few = DetectorPredictor(path, most=3)(torch.rand(1, 3, *SIZE))["scores"]
    assert few.shape == (1, 3)
    assert all(a >= b for a, b in pairwise(few[0].tolist()))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"decoding": "yolov9"}, "did you mean"),
        ({"decoding": None}, "decoding: expected one of yolov5, .* because the outputs"),
        ({"decoding": "yolov8", "confidence": 2}, "confidence: expected a number in"),
        ({"decoding": "yolov8", "overlap": -1}, "overlap: expected a number in"),
        ({"decoding": "yolov8", "most": 0}, "most: expected an integer >= 1"),
    ],
)
def test_settings_that_are_none_are_refused(tmp_path, arguments, words):
    path = save(tmp_path / "net.onnx", {"out": np.zeros((7, 11))})
    with pytest.raises(InputError, match=words):
        DetectorPredictor(path, **arguments)


def test_models_and_outputs_that_are_no_detectors_are_named(tmp_path):
    path = save(tmp_path / "net.onnx", {"out": np.zeros((7, 11))})
    with pytest.raises(InputError, match=r"expected a file ending in .onnx or .tflite"):
        DetectorPredictor("net.pt2")
    with pytest.raises(InputError, match="size: expected height and width"):
        DetectorPredictor(
            save(tmp_path / "b.onnx", {"out": np.zeros((7, 11))}, ("n", 3, "h", "w")),
            "yolov8",
            size=[3],
        )
    with pytest.raises(InputError, match=r"expected images .* for a detector, got dict"):
        DetectorPredictor(path, "yolov8")({"x": torch.rand(1, 3, *SIZE)})
    for decoding in ("yolov10", "ssd"):
        with pytest.raises(ModelError, match=r"model output: expected .*, got .*7, 11"):
            DetectorPredictor(path, decoding)(torch.rand(1, 3, *SIZE))
    with pytest.raises(InputError, match="decoding"):
        as_predictor(f"{path}:yolo")
