"""A detector of one's own, scanned with one command: import path or ONNX, COCO folder."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import orbical as ob

DETECTOR = """
import torch
def raw(x):
    assert float(x.max()) > 1, "the images must have been brightened"
    n = len(x)
    box = torch.tensor([[4.0, 4.0, 20.0, 20.0]]).expand(n, 4)
    return {"anything": box, "sure": torch.full((n,), 0.7)}
def read(out):
    cls = torch.ones_like(out["sure"])
    return torch.cat([out["anything"], out["sure"][:, None], cls[:, None]], 1)[:, None]
def brighter(x):
    return x * 255
"""


def onnx_detector(path: Path) -> None:
    """Write a detector that always answers one box: left, top, right, bottom, confidence, class."""
    onnx = pytest.importorskip("onnx", reason="onnx is not installed")
    pytest.importorskip("onnxruntime", reason="onnxruntime is not installed: extra onnx")
    from onnx import TensorProto, helper, numpy_helper

    answer = np.array([[[6, 6, 26, 26, 0.5, 1]]], np.float32)
    nodes = [
        helper.make_node("ReduceMean", ["x", "axes"], ["mean"], keepdims=0),
        helper.make_node("Mul", ["mean", "zero"], ["nothing"]),
        helper.make_node("Unsqueeze", ["nothing", "tail"], ["column"]),
        helper.make_node("Add", ["column", "answer"], ["boxes"]),
    ]
    constants = {
        "axes": np.array([1, 2, 3], np.int64),
        "zero": np.array(0, np.float32),
        "tail": np.array([1, 2], np.int64),
        "answer": answer,
    }
    graph = helper.make_graph(
        nodes,
        "detector",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 3, 32, 32])],
        [helper.make_tensor_value_info("boxes", TensorProto.FLOAT, ["n", 1, 6])],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    onnx.save(model, path)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    from PIL import Image

    (tmp_path / "mine.py").write_text(DETECTOR)
    place = tmp_path / "photos"
    place.mkdir()
    pixels = np.random.default_rng(0).integers(0, 255, (100, 120, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(place / "a.png")
    content = {
        "images": [{"id": 1, "file_name": "a.png", "width": 120, "height": 100}],
        "annotations": [{"image_id": 1, "category_id": 9, "bbox": [50, 40, 20, 20]}],
        "categories": [{"id": 5, "name": "cup"}, {"id": 9, "name": "chair"}],
    }
    (place / "annotations.json").write_text(json.dumps(content))
    return tmp_path


def test_a_detector_of_ones_own_is_scanned_with_one_command(
    orbical: Callable[..., str], folder: Path
) -> None:
    orbical(
        folder, "scan", "-m", "mine=mine:raw", "--read", "mine:read", "--preprocess",
        "mine:brighter", "-d", "coco:photos:32:8", "-t", "detection", "--input", "window:32",
        "-g", "translations:8:4", "--score", "iou", "-o", "run.zarr", "-q",
    )  # fmt: skip
    scan = ob.load(folder / "run.zarr")
    assert scan.record.task.settings["score"] == "iou"
    assert scan.record.task.settings["classes"] == ["cup", "chair"]
    truth = scan.data["objects"].values[0, 0]
    assert truth.tolist() == [6, 6, 26, 26, 1]
    group = scan.group
    for element in range(len(group)):
        dx, dy = group.coords["dx"][element], group.coords["dy"][element]
        left, top = 6 + dx, 6 - dy
        seen = [max(left, 0), max(top, 0), min(left + 20, 32), min(top + 20, 32)]
        width = max(0.0, min(20, seen[2]) - max(4, seen[0]))
        height = max(0.0, min(20, seen[3]) - max(4, seen[1]))
        both = width * height
        either = 256 + (seen[2] - seen[0]) * (seen[3] - seen[1]) - both
        assert float(scan.data["iou"][0, 0, element]) == pytest.approx(both / either, abs=1e-5)


def test_an_onnx_detector_is_scanned_with_one_command(
    orbical: Callable[..., str], folder: Path
) -> None:
    onnx_detector(folder / "net.onnx")
    orbical(
        folder, "scan", "-m", "net=net.onnx", "-d", "coco:photos:32:8", "-t", "detection",
        "--input", "window:32", "-g", "translations:4:4", "-o", "run.zarr", "-q",
    )  # fmt: skip
    scan = ob.load(folder / "run.zarr")
    assert float(scan.data["iou"][0, 0, scan.group.identity]) == pytest.approx(1)
    assert float(scan.data["score"][0, 0, scan.group.identity]) == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ("coco:photos:x", "coco:FOLDER:WINDOW:RADIUS"),
        ("coco:gone", "got no folder at 'gone'"),
        ("coco:photos:32:8:tree", "classes: unknown name 'tree'"),
    ],
)
def test_data_that_cannot_be_read_are_one_clear_line(
    orbical: Callable[..., str], folder: Path, data: str, message: str
) -> None:
    said = orbical(
        folder, "scan", "-m", "mine=mine:raw", "-d", data, "-t", "detection", "-g",
        "translations:8:4", "-o", "run.zarr", expect=2,
    )  # fmt: skip
    assert message in " ".join(said.split())
