"""A report with a model inside: dragging between the scanned angles is live, from one file."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
import torch

import orbical as ob

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def traveled(tmp_path_factory):
    """The report, the session of the scan, and the network."""
    pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    onnx = pytest.importorskip("onnx", reason="onnx is not installed")
    kept = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "orbical"
    if not (kept / "node_modules" / "onnxruntime-web").is_dir():
        pytest.skip(f"onnxruntime-web is not installed in {kept}")
    folder = tmp_path_factory.mktemp("traveled")
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 10)).eval()
    path = folder / "net.onnx"
    make, kind = onnx.helper, onnx.TensorProto.FLOAT
    weights = {"w": net[1].weight.detach().numpy().T.copy() * 4, "b": net[1].bias.detach().numpy()}
    with torch.no_grad():
        net[1].weight *= 4
    graph = make.make_graph(
        [make.make_node("Flatten", ["x"], ["f"]), make.make_node("Gemm", ["f", "w", "b"], ["y"])],
        "net",
        [make.make_tensor_value_info("x", kind, ["n", 1, 8, 8])],
        [make.make_tensor_value_info("y", kind, ["n", 10])],
        [onnx.numpy_helper.from_array(array, name) for name, array in weights.items()],
    )
    opsets = [make.make_opsetid("", 17)]
    onnx.save(make.make_model(graph, opset_imports=opsets, ir_version=8), path)
    images, labels = ob.datasets.digits()
    scan = ob.scan(
        {"net": net},
        (images[:30], labels[:30]),
        group="rotations:8",
        task="classification",
        keep="inputs",
        progress=False,
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(kept)
        page = ob.report(scan, folder / "report.html", methods=("pca",), with_models={"net": path})
    return page, scan, net


def test_a_model_in_a_report_answers_between_the_scanned_angles(paged, traveled):
    path, scan, net = traveled
    page = paged(path.as_uri(), "sample=4&element=1&position=50")
    assert 4e6 < path.stat().st_size < 7e6
    page.until("() => document.querySelector('.badge').textContent === 'live'")
    page.until("() => document.querySelectorAll('.bar-row').length === 10")
    from orbical.interface.session import Session

    request = {"kind": "place", "selection": {"sample": 4, "element": 1, "position": [50.0]}}
    _, arrays = Session({"digits": scan}, {"net": net}).handle(request)
    page.shows(".where", "50°")
    page.tab.click(".individual .info")
    assert "fine steps need orbical view" in page.tab.locator(":popover-open").inner_text()
    np.testing.assert_allclose(
        page.bars()["net"], arrays["detail/probabilities"][0], atol=6e-3
    )  # the page shows two decimals, and holds pixels in 256 steps
