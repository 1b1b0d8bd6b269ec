"""Graphs of a few nodes, written as tfjs writes them, against brute force in NumPy."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import numpy as np
import pytest
import torch

from orbical_audits.tfjs import OPERATIONS, GraphModel, read_graph


def text(value):
    return {"s": base64.b64encode(value.encode()).decode()}


def whole(*values):
    return {"list": {"i": [str(value) for value in values]}}


def node(name, op, *inputs, **attr):
    return {"name": name, "op": op, "input": list(inputs), "attr": attr}


def written(folder: Path, nodes, weights, quantized=(), outputs=("out",), shards=1) -> Path:
    """Write a graph model: placeholder `x`, the constants, then the nodes."""
    entries, data = [], b""
    for name, values in weights.items():
        values = np.asarray(values)
        kind = {"f": "float32"}.get(values.dtype.kind, "int32")
        entry = {"name": name, "shape": list(values.shape), "dtype": kind}
        stored = values.astype(kind)
        if name in quantized:
            entry["quantization"] = dict(quantized[name])
            entry["quantization"].pop("stored", None)
            stored = np.asarray(quantized[name]["stored"])
        entries.append(entry)
        data += stored.tobytes()
    cut = -(-len(data) // shards)
    paths = [f"part{place}.bin" for place in range(shards)]
    for place, path in enumerate(paths):
        (folder / path).write_bytes(data[place * cut : (place + 1) * cut])
    content = {
        "format": "graph-model",
        "signature": {"outputs": {name: {"name": f"{name}:0"} for name in outputs}},
        "weightsManifest": [{"paths": paths, "weights": entries}],
        "modelTopology": {
            "node": [node("x", "Placeholder"), *(node(name, "Const") for name in weights), *nodes]
        },
    }
    (folder / "model.json").write_text(json.dumps(content))
    return folder / "model.json"


def run(folder, nodes, weights, x, **options):
    model = read_graph(written(folder, nodes, weights, **options))
    found = model(torch.as_tensor(x))
    return tuple(part.numpy() for part in found) if isinstance(found, tuple) else found.numpy()


@pytest.fixture
def images():
    return np.random.default_rng(0).normal(size=(2, 5, 6, 3)).astype(np.float32)


def same_sides(length, size, stride):
    total = max((-(-length // stride) - 1) * stride + size - length, 0)
    return total // 2, total - total // 2


def windows(x, size, stride, padding, fill):
    """Yield row, column and window of each output pixel."""
    if padding == "SAME":
        sides = [same_sides(length, size, stride) for length in x.shape[1:3]]
        x = np.pad(x, [(0, 0), *sides, (0, 0)], constant_values=fill)
    for row in range((x.shape[1] - size) // stride + 1):
        for column in range((x.shape[2] - size) // stride + 1):
            top, left = row * stride, column * stride
            yield row, column, x[:, top : top + size, left : left + size]


@pytest.mark.parametrize("op", ["DepthwiseConv2dNative", "FusedDepthwiseConv2dNative"])
def test_kernels_of_single_channels_give_several_each(tmp_path, images, op):
    kernel = np.random.default_rng(1).normal(size=(3, 3, 3, 2)).astype(np.float32)
    bias = np.arange(-3, 3, dtype=np.float32)
    attr = {"padding": text("SAME"), "strides": whole(1, 2, 2, 1)}
    weights = {"k": kernel}
    if op.startswith("Fused"):
        attr["fused_ops"] = {"list": {"s": [text("BiasAdd")["s"], text("Relu6")["s"]]}}
        weights["b"] = bias
    found = run(tmp_path, [node("out", op, "x", *weights, **attr)], weights, images)
    for row, column, window in windows(images, 3, 2, "SAME", 0):
        expected = np.einsum("nhwi,hwim->nim", window, kernel).reshape(2, 6)
        expected = (expected + bias).clip(0, 6) if "b" in weights else expected
        np.testing.assert_allclose(found[:, row, column], expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("op", ["Conv2D", "_FusedConv2D", "MaxPool"])
def test_windows_are_those_of_tensorflow(tmp_path, images, op, padding, stride):
    kernel = np.random.default_rng(1).normal(size=(3, 3, 3, 4)).astype(np.float32)
    bias = np.arange(4, dtype=np.float32)
    attr = {"padding": text(padding), "strides": whole(1, stride, stride, 1)}
    if op == "MaxPool":
        nodes, weights = [node("out", op, "x", ksize=whole(1, 3, 3, 1), **attr)], {}
    elif op == "Conv2D":
        nodes, weights = [node("out", op, "x", "k", **attr)], {"k": kernel}
    else:
        attr["fused_ops"] = {"list": {"s": [text("BiasAdd")["s"], text("Relu")["s"]]}}
        nodes, weights = [node("out", op, "x", "k", "b", **attr)], {"k": kernel, "b": bias}
    found = run(tmp_path, nodes, weights, images)
    fill = -np.inf if op == "MaxPool" else 0
    for row, column, window in windows(images, 3, stride, padding, fill):
        expected = {
            "MaxPool": lambda window: window.max((1, 2)),
            "Conv2D": lambda window: np.einsum("nhwi,hwio->no", window, kernel),
            "_FusedConv2D": lambda window: (np.einsum("nhwi,hwio->no", window, kernel) + bias).clip(
                0
            ),
        }[op](window)
        np.testing.assert_allclose(found[:, row, column], expected, rtol=1e-4, atol=1e-5)
    rows = -(-5 // stride) if padding == "SAME" else (5 - 3) // stride + 1
    assert found.shape[1] == rows


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


@pytest.mark.parametrize(
    ("op", "attr", "expected"),
    [
        ("Identity", {}, lambda x: x),
        ("Sigmoid", {}, sigmoid),
        ("Square", {}, lambda x: x * x),
        ("Cast", {"DstT": {"type": "DT_INT32"}}, np.trunc),
        ("LeakyRelu", {"alpha": {"f": 0.1}}, lambda x: np.where(x > 0, x, 0.1 * x)),
    ],
)
def test_functions_of_one_input(tmp_path, images, op, attr, expected):
    found = run(tmp_path, [node("out", op, "x", **attr)], {}, images)
    np.testing.assert_allclose(found, expected(images), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("op", "function"),
    [
        ("Add", np.add),
        ("AddV2", np.add),
        ("Mul", np.multiply),
        ("Sub", np.subtract),
        ("RealDiv", np.divide),
        ("FloorDiv", np.floor_divide),
        ("SquaredDifference", lambda a, b: (a - b) ** 2),
    ],
)
def test_functions_of_two_inputs_broadcast(tmp_path, images, op, function):
    other = np.float32([1, 2, 3])
    found = run(tmp_path, [node("out", op, "x", "c")], {"c": other}, images)
    np.testing.assert_allclose(found, function(images, other), rtol=1e-6)


@pytest.mark.parametrize(
    ("op", "constants", "expected"),
    [
        ("Transpose", [[0, 3, 1, 2]], lambda x: x.transpose(0, 3, 1, 2)),
        (
            "Pad",
            [[[0, 0], [1, 2], [0, 1], [0, 0]]],
            lambda x: np.pad(x, [(0, 0), (1, 2), (0, 1), (0, 0)]),
        ),
        (
            "PadV2",
            [[[0, 0], [1, 0], [0, 0], [0, 0]], np.float32(7)],
            lambda x: np.pad(x, [(0, 0), (1, 0), (0, 0), (0, 0)], constant_values=7),
        ),
        ("Reshape", [[1, 30, 3]], lambda x: x.reshape(2, 30, 3)),
        ("Reshape", [[-1, 90]], lambda x: x.reshape(2, 90)),
    ],
)
def test_shapes_keep_the_number_of_inputs(tmp_path, images, op, constants, expected):
    names = [f"c{place}" for place in range(len(constants))]
    weights = dict(zip(names, constants, strict=True))
    found = run(tmp_path, [node("out", op, "x", *names)], weights, images)
    np.testing.assert_array_equal(found, expected(images))


def test_the_largest_value_is_found_and_gathered(tmp_path, images):
    flat = np.abs(images[:1]).reshape(1, 30, 3)
    nodes = [
        node("best", "ArgMax", "x", "axis"),  # [1, 3]
        node("flat", "Squeeze", "best", squeeze_dims=whole(0)),
        node("place", "Pack", "zeros", "flat", "channels", axis={"i": "1"}),
        node("values", "GatherNd", "x", "place"),
        node("out", "Sqrt", "values"),
    ]
    weights = {"axis": 1, "zeros": [0, 0, 0], "channels": [0, 1, 2]}
    np.testing.assert_allclose(run(tmp_path, nodes, weights, flat), np.sqrt(flat.max((0, 1))))


def test_unpacked_parts_are_packed_again(tmp_path, images):
    nodes = [
        node("parts", "Unpack", "x", axis={"i": "3"}),
        node("wide", "ExpandDims", "parts:2", "axis"),
        node("out", "ConcatV2", "wide", "x", "axis"),
    ]
    found = run(tmp_path, nodes, {"axis": 3}, images)
    np.testing.assert_array_equal(found, images[..., [2, 0, 1, 2]])


def test_a_single_vector_is_not_taken_for_many_inputs(tmp_path):
    vector = np.arange(6, dtype=np.float32)
    found = run(tmp_path, [node("out", "Reshape", "x", "s")], {"s": [1, 6]}, vector)
    assert found.shape == (1, 6)


def test_concatenation_and_both_parts_of_a_split(tmp_path, images):
    nodes = [
        node("parts", "SplitV", "x", "sizes", "axis"),
        node("out", "ConcatV2", "parts:1", "parts", "axis"),
    ]
    found = run(tmp_path, nodes, {"sizes": [1, 2], "axis": 3}, images)
    np.testing.assert_array_equal(found, images[..., [1, 2, 0]])


def test_strided_slices_with_an_ellipsis_and_an_open_end(tmp_path, images):
    masks = {"begin_mask": {"i": "0"}, "end_mask": {"i": "2"}, "ellipsis_mask": {"i": "1"}}
    weights = {"b": [0, 1], "e": [0, 0], "s": [1, 2]}
    found = run(
        tmp_path, [node("out", "StridedSlice", "x", "b", "e", "s", **masks)], weights, images
    )
    np.testing.assert_array_equal(found, images[..., 1::2])


@pytest.mark.parametrize("op", ["ResizeNearestNeighbor", "ResizeBilinear"])
def test_resizing_samples_at_the_middles_of_pixels(tmp_path, images, op):
    attr = {"half_pixel_centers": {"b": True}, "align_corners": {"b": False}}
    found = run(tmp_path, [node("out", op, "x", "size", **attr)], {"size": [10, 12]}, images)
    for row in range(10):
        for column in range(12):
            y, x = (row + 0.5) / 2 - 0.5, (column + 0.5) / 2 - 0.5
            if op == "ResizeNearestNeighbor":
                expected = images[:, row // 2, column // 2]
            else:
                rows = np.clip([int(np.floor(y)), int(np.floor(y)) + 1], 0, 4)
                columns = np.clip([int(np.floor(x)), int(np.floor(x)) + 1], 0, 5)
                down, right = y - np.floor(y), x - np.floor(x)
                corners = images[:, rows][:, :, columns]
                expected = np.einsum("nijc,i,j->nc", corners, [1 - down, down], [1 - right, right])
            np.testing.assert_allclose(found[:, row, column], expected, rtol=1e-4, atol=1e-5)


def test_another_input_size_enlarges_what_is_upsampled(tmp_path, images):
    attr = {"half_pixel_centers": {"b": True}}
    nodes = [node("out", "ResizeNearestNeighbor", "x", "size", **attr)]
    path = written(tmp_path, nodes, {"size": [20, 24]})
    assert read_graph(path, enlarged=0.5)(torch.as_tensor(images)).shape == (2, 10, 12, 3)


def test_sparse_values_make_a_shape(tmp_path, images):
    nodes = [
        node("shape", "SparseToDense", "places", "length", "values", "fill"),
        node("out", "Reshape", "x", "shape"),
    ]
    weights = {"places": [[1], [2]], "length": [3], "values": [-1, 3], "fill": 1}
    assert run(tmp_path, nodes, weights, images).shape == (2, 30, 3)


@pytest.mark.parametrize(
    ("packed", "values"),
    [
        ({"dtype": "float16", "stored": np.float16([0.5, -2])}, [0.5, -2]),
        ({"dtype": "uint8", "scale": 0.1, "min": -1.0, "stored": np.uint8([0, 30])}, [-1, 2]),
        ({"dtype": "uint16", "scale": 0.5, "min": 1.0, "stored": np.uint16([0, 4])}, [1, 3]),
    ],
)
def test_quantized_weights_in_several_files(tmp_path, packed, values):
    nodes = [node("out", "Add", "x", "c")]
    options = {"quantized": {"c": packed}, "shards": 2}
    found = run(tmp_path, nodes, {"c": np.float32([0, 0])}, np.zeros((1, 2), np.float32), **options)
    np.testing.assert_allclose(found, [values], rtol=1e-6)


def test_only_what_the_outputs_need_is_executed(tmp_path, images):
    nodes = [
        node("never", "NoSuchOperation", "x"),
        node("twice", "Add", "x", "x"),
        node("out", "Square", "twice"),
    ]
    path = written(tmp_path, nodes, {})
    both = read_graph(path, ["out", "twice"])(torch.as_tensor(images))
    np.testing.assert_allclose(both[0], (2 * images) ** 2, rtol=1e-6)
    np.testing.assert_array_equal(both[1], 2 * images)
    with pytest.raises(ValueError, match=r"got \['NoSuchOperation'\]; add them to OPERATIONS"):
        read_graph(path, ["never"])
    with pytest.raises(ValueError, match="outputs: expected names of nodes, got 'absent'"):
        read_graph(path, ["absent"])


def test_a_file_that_is_cut_off_or_of_another_format_is_named(tmp_path):
    path = written(tmp_path, [node("out", "Add", "x", "c")], {"c": np.zeros(4, np.float32)})
    part = tmp_path / "part0.bin"
    for data, got in ((part.read_bytes()[:-1], "15"), (part.read_bytes() + b"0", "17")):
        part.write_bytes(data)
        with pytest.raises(ValueError, match=f"weights: expected 16 bytes .*, got {got}"):
            read_graph(path)
        part.write_bytes(bytes(16))
    path.write_text(json.dumps({"format": "layers-model"}))
    with pytest.raises(ValueError, match="expected a graph model, got the format 'layers-model'"):
        read_graph(path)


def test_constants_move_with_the_model_but_shapes_stay_with_python(tmp_path):
    path = written(
        tmp_path,
        [node("out", "Reshape", "y", "s"), node("y", "Add", "x", "c")],
        {"c": np.float32([1, 2]), "s": [-1]},
    )
    model = read_graph(path).double()
    assert isinstance(model, GraphModel)
    assert [buffer.dtype for buffer in model.buffers()] == [torch.float64]
    assert model(torch.zeros(2, dtype=torch.float64)).tolist() == [1, 2]


def test_every_operation_has_a_test():
    tested = Path(__file__).read_text("utf-8")
    assert [name for name in OPERATIONS if f'"{name}"' not in tested] == []
