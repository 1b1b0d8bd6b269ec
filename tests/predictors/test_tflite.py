"""TensorFlow Lite files, generated here: layouts, batches, quantization."""

from __future__ import annotations

import os
import random
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

import orbical as ob
from orbical.errors import InputError, MissingExtra, ModelError
from orbical.predictors import as_predictor, model_files

NEEDS = "ai-edge-litert is not installed: extra litert"


def test_the_missing_extra_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "ai_edge_litert.interpreter", None)
    (tmp_path / "net.tflite").touch()
    with pytest.raises(
        MissingExtra, match=r"needs the package 'ai-edge-litert'.*orbical\[litert\]"
    ):
        as_predictor(str(tmp_path / "net.tflite"))


def save(
    path: Path,
    operation: str,
    shape: list[int],
    answer: list[int],
    free: bool = False,
    kind: str = "FLOAT32",
    steps: tuple[float, int] | None = None,
) -> str:
    """Write a network of one operation: MEAN over rows and columns, or NEG."""
    flatbuffers = pytest.importorskip("flatbuffers", reason="flatbuffers is not installed")
    schema = pytest.importorskip("ai_edge_litert.schema_py_generated", reason=NEEDS)

    def tensor(name: str, sides: list[int], buffer: int, of: str = kind) -> object:
        made = schema.TensorT()
        made.name, made.shape, made.buffer = name, sides, buffer
        made.type = getattr(schema.TensorType, of)
        if free and buffer == 0:
            made.shapeSignature = [-1, *sides[1:]]
        if steps and of == kind:
            made.quantization = schema.QuantizationParametersT()
            made.quantization.scale, made.quantization.zeroPoint = [steps[0]], [steps[1]]
        return made

    code = schema.OperatorCodeT()
    code.builtinCode = code.deprecatedBuiltinCode = getattr(schema.BuiltinOperator, operation)
    code.version = 1
    operator = schema.OperatorT()
    operator.opcodeIndex, operator.inputs, operator.outputs = 0, [0], [1]
    graph = schema.SubGraphT()
    graph.tensors = [tensor("images", shape, 0), tensor("answers", answer, 0)]
    buffers = [schema.BufferT(), schema.BufferT()]
    if operation == "MEAN":
        buffers[1].data = np.frombuffer(np.array([1, 2], np.int32).tobytes(), np.uint8)
        graph.tensors.append(tensor("axes", [2], 1, "INT32"))
        operator.inputs = [0, 2]
        operator.builtinOptionsType = schema.BuiltinOptions.ReducerOptions
        operator.builtinOptions = schema.ReducerOptionsT()
    graph.inputs, graph.outputs, graph.operators = [0], [1], [operator]
    model = schema.ModelT()
    model.version, model.operatorCodes, model.subgraphs, model.buffers = 3, [code], [graph], buffers
    builder = flatbuffers.Builder(1024)
    builder.Finish(model.Pack(builder), file_identifier=b"TFL3")
    path.write_bytes(builder.Output())
    return str(path)


@pytest.fixture
def images():
    return torch.rand(5, 3, 4, 6, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize(("free", "batch"), [(False, 1), (False, 2), (True, 1)])
def test_images_are_passed_with_channels_last_in_any_number(images, tmp_path, free, batch):
    path = save(tmp_path / "net.tflite", "MEAN", [batch, 4, 6, 3], [batch, 3], free)
    predictor = as_predictor(path)
    torch.testing.assert_close(predictor(images), images.mean((2, 3)))
    torch.testing.assert_close(predictor(images[:2].permute(0, 2, 3, 1)), images[:2].mean((2, 3)))
    assert predictor.declared_inputs == {
        "images": ([None if free else batch, 4, 6, 3], "tensor(float)")
    }
    assert predictor.fingerprint() == as_predictor(path).fingerprint()


def test_maps_come_back_with_channels_first(images, tmp_path):
    predictor = as_predictor(save(tmp_path / "net.tflite", "NEG", [1, 4, 6, 3], [1, 4, 6, 3]))
    torch.testing.assert_close(predictor(images), -images)
    last = images.permute(0, 2, 3, 1)
    torch.testing.assert_close(predictor(last), -last, msg="as they were given")


@pytest.mark.parametrize(("kind", "zero"), [("UINT8", 0), ("INT8", -128)])
def test_quantized_values_stand_for_real_numbers(images, tmp_path, kind, zero):
    steps = (1 / 255, zero)
    path = save(tmp_path / "net.tflite", "MEAN", [1, 4, 6, 3], [1, 3], kind=kind, steps=steps)
    predictor = as_predictor(path)
    torch.testing.assert_close(predictor(images), images.mean((2, 3)), atol=1.01 / 255, rtol=0)
    torch.testing.assert_close(predictor(images + 7), torch.ones(5, 3), msg="the largest step")
    assert predictor.declared_inputs["images"][1] == "tensor(float)"


def test_a_file_is_scanned(tmp_path):
    path = save(tmp_path / "net.tflite", "MEAN", [1, 4, 4, 3], [1, 3])
    squares = torch.rand(4, 3, 4, 4)
    scan = ob.scan(path, squares, group="dihedral:4", task="classification", progress=False)
    assert float(scan.data["invariance_gap"].max()) < 1e-6


def test_a_damaged_file_does_not_end_this_process(tmp_path):
    """LiteRT 2 dies of this one; other versions may refuse it."""
    content = bytearray(
        Path(save(tmp_path / "net.tflite", "MEAN", [1, 4, 4, 3], [1, 3])).read_bytes()
    )
    rng = random.Random(2430)
    for _ in range(rng.randrange(1, 6)):
        content[rng.randrange(len(content))] = rng.randrange(256)
    (tmp_path / "net.tflite").write_bytes(content)
    with pytest.raises(ModelError, match="expected a readable TensorFlow Lite file"):
        as_predictor(str(tmp_path / "net.tflite"))


def test_a_crash_of_the_runtime_is_an_error(tmp_path, monkeypatch):
    path = save(tmp_path / "net.tflite", "MEAN", [1, 4, 4, 3], [1, 3])
    monkeypatch.setattr(model_files, "_FIRST_RUN", "import os; os.abort()")
    with pytest.raises(ModelError, match="which makes LiteRT crash"):
        as_predictor(path)


def test_what_a_file_cannot_take_is_named(images, tmp_path):
    predictor = as_predictor(save(tmp_path / "net.tflite", "MEAN", [1, 4, 6, 3], [1, 3]))
    words = r"expected \[1, 4, 6, 3\], or images \[N, 3, 4, 6\] for the input 'images'.*1, 4, 6\]"
    with pytest.raises(InputError, match=words):
        predictor(images[:, :1])
    with pytest.raises(
        InputError, match=r"expected the inputs \['images'\] of the TensorFlow Lite"
    ):
        predictor({"pixels": images})
    (tmp_path / "broken.tflite").write_bytes(b"not a model")
    with pytest.raises(ModelError, match=r"expected a readable TensorFlow Lite file, got .*broken"):
        as_predictor(str(tmp_path / "broken.tflite"))


def test_a_published_network_answers_masks_in_the_layout_of_the_images():
    """MediaPipe's selfie segmentation: `[1, 256, 256, 3]` in, `[1, 256, 256, 1]` out."""
    path = Path(os.environ.get("ORBICAL_TFLITE", ".")) / "selfie_segmentation.tflite"
    if not path.is_file():
        pytest.skip("selfie_segmentation.tflite of mediapipe 0.10.14 is not in $ORBICAL_TFLITE")
    pytest.importorskip("ai_edge_litert", reason=NEEDS)
    predictor = as_predictor(str(path))
    pair = torch.rand(2, 3, 256, 256, generator=torch.Generator().manual_seed(0))
    masks = predictor(pair)
    assert masks.shape == (2, 1, 256, 256)
    assert float(masks.min()) >= 0
    assert float(masks.max()) <= 1
    torch.testing.assert_close(masks[1:], predictor(pair[1:]))
