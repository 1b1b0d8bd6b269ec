"""Models inside a report: what cannot travel is refused by name before any work."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

import orbical as ob
from orbical.errors import InputError
from orbical.interface.reports import report, traveling
from orbical.interface.reports.traveling import check_traveling_models, traveling_runtime_folder
from orbical.interface.session import Session


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory, nets: dict[str, torch.nn.Module]) -> Path:
    """The first network of the scan as an ONNX file."""
    onnx = pytest.importorskip("onnx", reason="onnx is not installed")
    pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    layer = nets["first"][1]
    helper, numpy_helper = onnx.helper, onnx.numpy_helper
    weights = [
        numpy_helper.from_array(layer.weight.detach().numpy().T.copy(), "w"),
        numpy_helper.from_array(layer.bias.detach().numpy(), "b"),
    ]
    nodes = [
        helper.make_node("Flatten", ["x"], ["flat"], axis=1),
        helper.make_node("Gemm", ["flat", "w", "b"], ["y"]),
    ]
    kind = onnx.TensorProto.FLOAT
    graph = helper.make_graph(
        nodes,
        "first",
        [helper.make_tensor_value_info("x", kind, ["n", 1, 8, 8])],
        [helper.make_tensor_value_info("y", kind, ["n", 10])],
        weights,
    )
    path = tmp_path_factory.mktemp("onnx") / "first.onnx"
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(made, path)
    return path


def test_a_model_of_the_scan_may_travel(digits: ob.Scan, model: Path) -> None:
    check_traveling_models(Session({"digits": digits}).scan_view(), {"first": model})


def test_what_cannot_travel_is_refused_by_name(
    digits: ob.Scan, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    view = Session({"digits": digits}).scan_view()
    with pytest.raises(InputError, match="with_models: unknown name 'frist'"):
        check_traveling_models(view, {"frist": model})
    with pytest.raises(
        InputError, match=r"first: expected an .onnx file, got 'net.pt2'; write one"
    ):
        check_traveling_models(view, {"first": "net.pt2"})
    with pytest.raises(InputError, match="second: expected the model that was scanned"):
        check_traveling_models(view, {"second": model})
    monkeypatch.setattr(traveling, "MOST_BYTES", 10)
    with pytest.raises(InputError, match="first: expected at most 10 bytes"):
        check_traveling_models(view, {"first": model})
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=r"expected the npm package onnxruntime-web.*npm install"):
        traveling_runtime_folder()


def test_a_scan_that_preprocesses_or_has_no_positions_keeps_its_models_at_home(
    nets: dict[str, torch.nn.Module], tmp_path: Path
) -> None:
    images, labels = ob.datasets.digits()
    for more, words in (
        (
            {"group": "rotations:8", "preprocess": torch.neg},
            "expected inputs as they are, got prep",
        ),
        ({"group": "flips"}, "expected a group with positions between its elements, got flips"),
    ):
        scan = ob.scan(
            nets,
            (images[:12], labels[:12]),
            task="classification",
            keep="inputs",
            progress=False,
            **more,
        )
        with pytest.raises(InputError, match=words):
            report(scan, tmp_path / "r.html", with_models={"first": "first.onnx"})
