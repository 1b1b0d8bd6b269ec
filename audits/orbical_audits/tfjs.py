"""Read TensorFlow.js graph models as torch modules.

A tfjs graph model is a `model.json` (nodes in the order of execution, and a list of weights) beside
binary files that hold the weights one after the other. Its tensors are `[N, H, W, C]`. Convolutions
see them as permuted views, which torch calls `channels_last`: nothing is copied.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

__all__ = ["OPERATIONS", "GraphModel", "read_graph", "read_weights"]

Attributes = dict[str, Any]
Operation = Callable[[list[Tensor], Attributes], "Tensor | Sequence[Tensor]"]
_WHOLE = {"int32": np.int32, "int64": np.int64, "bool": np.bool_, "uint8": np.uint8}
_QUANTIZED = {"uint8": np.uint8, "uint16": np.uint16, "float16": np.float16}
_SIZED = ("ResizeNearestNeighbor", "ResizeBilinear")


class GraphModel(nn.Module):
    """The nodes of a graph, executed in torch for any number of inputs at once.

    Args:
        nodes: the nodes, each after its inputs.
        weights: the constants by the names of their nodes.
        outputs: the names of the nodes to return; others are executed only if these need them.
            A single name returns a tensor, several return a tuple.

    Raises:
        ValueError: if an output does not exist, or an operation is not known.
    """

    def __init__(
        self, nodes: Sequence[dict[str, Any]], weights: dict[str, Tensor], outputs: Sequence[str]
    ) -> None:
        super().__init__()
        known = {node["name"] for node in nodes}
        for name in outputs:
            if name not in known:
                raise ValueError(f"outputs: expected names of nodes, got {name!r}")
        self.steps = [_Step(node) for node in _needed(nodes, outputs)]
        unknown = sorted({step.kind for step in self.steps} - {*OPERATIONS, "Placeholder", "Const"})
        if unknown:
            raise ValueError(
                f"model: expected operations of orbical_audits.tfjs, got {unknown}; add them to "
                "OPERATIONS"
            )
        self.outputs = list(outputs)
        self.places = {
            step.name: f"constant_{index}"
            for index, step in enumerate(self.steps)
            if step.kind == "Const"
        }
        for name, place in self.places.items():
            # Shapes and axes are read by Python: on an accelerator each would be waited for.
            if weights[name].is_floating_point():
                self.register_buffer(place, weights[name])
            else:
                setattr(self, place, weights[name])

    def forward(self, x: Tensor) -> Tensor | tuple[Tensor, ...]:
        """Execute the graph on a batch, in the layout that the model declares."""
        found: dict[str, Tensor] = {}
        for step in self.steps:
            if step.kind == "Placeholder":
                result: Tensor | Sequence[Tensor] = x
            elif step.kind == "Const":
                result = getattr(self, self.places[step.name])
            else:
                inputs = [found[name] for name in step.inputs]
                result = OPERATIONS[step.kind](inputs, step.attributes)
            many = [result] if isinstance(result, Tensor) else result
            found |= {f"{step.name}:{index}": part for index, part in enumerate(many)}
        chosen = tuple(found[f"{name}:0"] for name in self.outputs)
        return chosen[0] if len(chosen) == 1 else chosen


def read_graph(
    path: str | Path, outputs: Sequence[str] | None = None, enlarged: float = 1.0
) -> GraphModel:
    """Read a `model.json` and its weights.

    Args:
        path: the JSON file.
        outputs: names of the nodes to return; by default those of the signature, sorted by name.
        enlarged: ratio of the inputs' sides to the declared ones. A fully convolutional graph
            accepts another size, except for the sizes to which it upsamples: these are multiplied.

    Returns:
        The model, in evaluation mode.

    Raises:
        ValueError: if the file is not a graph model, or its weights do not fit.
    """
    path = Path(path)
    content = json.loads(path.read_text(encoding="utf-8"))
    if content.get("format") != "graph-model":
        raise ValueError(f"path: expected a graph model, got the format {content.get('format')!r}")
    nodes = content["modelTopology"]["node"]
    weights = read_weights(path.parent, content["weightsManifest"])
    for node in nodes:
        if node["op"] in _SIZED:
            name = _place(node["input"][1])[:-2]
            weights[name] = (weights[name] * enlarged).round().to(weights[name].dtype)
    if outputs is None:
        declared = content["signature"]["outputs"].values()
        outputs = sorted(entry["name"].split(":")[0] for entry in declared)
    return GraphModel(nodes, weights, outputs).eval()


def read_weights(folder: Path, manifest: Sequence[dict[str, Any]]) -> dict[str, Tensor]:
    """Read all weights of a manifest; quantized ones become float32 again.

    Raises:
        ValueError: if the files hold fewer or more bytes than the manifest says.
    """
    weights = {}
    for group in manifest:
        data = b"".join((folder / name).read_bytes() for name in group["paths"])
        start = 0
        for entry in group["weights"]:
            values, start = _values(data, start, entry)
            weights[entry["name"]] = torch.from_numpy(values.reshape(entry["shape"]).copy())
        if start != len(data):
            raise ValueError(
                f"weights: expected {start} bytes in {group['paths']}, got {len(data)}"
            )
    return weights


def _values(data: bytes, start: int, entry: dict[str, Any]) -> tuple[np.ndarray, int]:
    """Return the values of a weight, and where the next one starts."""
    packed = entry.get("quantization")
    stored = np.dtype(
        _QUANTIZED[packed["dtype"]]
        if packed
        else (_WHOLE | {"float32": np.float32})[entry["dtype"]]
    )
    count = int(np.prod(entry["shape"], dtype=np.int64))
    end = start + count * stored.itemsize
    if end > len(data):
        raise ValueError(f"weights: expected {end} bytes for {entry['name']!r}, got {len(data)}")
    values = np.frombuffer(data, stored.newbyteorder("<"), count, start)
    if packed:
        values = values.astype(np.float32) * packed.get("scale", 1.0) + packed.get("min", 0.0)
        values = values.astype(entry["dtype"])
    return values, end


class _Step:
    """A node: its name, its operation, where its inputs are found, its attributes in plain form."""

    def __init__(self, node: dict[str, Any]) -> None:
        self.name, self.kind = node["name"], node["op"]
        self.inputs = [_place(name) for name in node.get("input", ()) if not name.startswith("^")]
        self.attributes = {name: _plain(value) for name, value in node.get("attr", {}).items()}


def _place(name: str) -> str:
    return name if ":" in name else f"{name}:0"


def _needed(nodes: Sequence[dict[str, Any]], outputs: Sequence[str]) -> list[dict[str, Any]]:
    """Keep the nodes on which the outputs depend, in an order in which inputs come first."""
    by_name = {node["name"]: node for node in nodes}
    ordered: dict[str, dict[str, Any]] = {}
    waiting = [(name, False) for name in reversed(outputs)]
    while waiting:
        name, ready = waiting.pop()
        if name in ordered:
            continue
        if ready:
            ordered[name] = by_name[name]
            continue
        inputs = [_place(given) for given in by_name[name].get("input", ()) if given[0] != "^"]
        waiting += [(name, True), *((place.rsplit(":", 1)[0], False) for place in inputs)]
    return list(ordered.values())


def _plain(value: dict[str, Any]) -> Any:
    """Return the value of an attribute: text, number, truth value or a list of these."""
    if "list" in value:
        kinds = [(kind, part) for kind, parts in value["list"].items() for part in parts]
        return [_plain({kind: part}) for kind, part in kinds]
    (kind, content), *_ = value.items()
    if kind == "s":
        return base64.b64decode(content).decode()
    return int(content) if kind == "i" else content


def _same_padding(
    x: Tensor, kernel: Sequence[int], stride: Sequence[int], fill: float, dilation: Sequence[int]
) -> Tensor:
    """Pad `[N, C, H, W]` as TensorFlow's SAME does: the odd pixel goes below and to the right."""
    sides: list[int] = []
    for length, size, step, gap in zip(x.shape[2:], kernel, stride, dilation, strict=True):
        total = max((-(-length // step) - 1) * step + (size - 1) * gap + 1 - length, 0)
        sides = [total // 2, total - total // 2, *sides]
    return F.pad(x, sides, value=fill) if any(sides) else x


def _convolved(inputs: list[Tensor], attributes: Attributes) -> Tensor:
    x, kernel = inputs[0].permute(0, 3, 1, 2), inputs[1].permute(3, 2, 0, 1)
    bias = inputs[2] if len(inputs) > 2 else None
    stride, dilation = attributes["strides"][1:3], attributes.get("dilations", [1, 1, 1, 1])[1:3]
    if attributes["padding"] == "SAME":
        x = _same_padding(x, kernel.shape[2:], stride, 0.0, dilation)
    groups = x.shape[1] // kernel.shape[1]
    return F.conv2d(x, kernel, bias, stride, 0, dilation, groups).permute(0, 2, 3, 1)


def _by_channel(inputs: list[Tensor], attributes: Attributes) -> Tensor:
    """A convolution of each channel by kernels `[h, w, channel, multiple]` of its own."""
    x, kernel, *bias = inputs
    return _convolved([x, kernel.flatten(2)[:, :, None], *bias], attributes)


def _fused(convolved: Callable[[list[Tensor], Attributes], Tensor]) -> Operation:
    """A convolution with a bias, and maybe an activation."""
    activations = {"Relu": torch.relu, "Relu6": F.relu6, "Elu": F.elu}

    def fused(inputs: list[Tensor], attributes: Attributes) -> Tensor:
        first, *rest = attributes["fused_ops"]
        if first != "BiasAdd" or len(rest) > 1 or any(name not in activations for name in rest):
            raise ValueError(f"fused_ops: expected BiasAdd and an activation, got {[first, *rest]}")
        y = convolved(inputs[:3], attributes)
        return activations[rest[0]](y) if rest else y

    return fused


def _pooled(inputs: list[Tensor], attributes: Attributes) -> Tensor:
    x, size, stride = inputs[0].permute(0, 3, 1, 2), attributes["ksize"], attributes["strides"]
    if attributes["padding"] == "SAME":
        x = _same_padding(x, size[1:3], stride[1:3], -torch.inf, [1, 1])
    return F.max_pool2d(x, size[1:3], stride[1:3]).permute(0, 2, 3, 1)


def _padded(inputs: list[Tensor], attributes: Attributes) -> Tensor:
    sides = [side for pair in reversed(inputs[1].tolist()) for side in pair]
    return F.pad(inputs[0], sides, value=float(inputs[2]) if len(inputs) > 2 else 0.0)


def _reshaped(inputs: list[Tensor], attributes: Attributes) -> Tensor:
    """Reshape to the constant shape, whose first number is that of a single input."""
    x, (first, *rest) = inputs[0], inputs[1].tolist()
    single = x.numel() == math.prod(rest)
    return x.reshape([x.shape[0] if first == 1 and not single else first, *rest])


def _resized(mode: str) -> Operation:
    def resized(inputs: list[Tensor], attributes: Attributes) -> Tensor:
        if attributes.get("align_corners") or not attributes.get("half_pixel_centers"):
            raise ValueError("resize: expected half_pixel_centers, which torch's sampling has")
        size = inputs[1].tolist()
        return F.interpolate(inputs[0].permute(0, 3, 1, 2), size=size, mode=mode).permute(
            0, 2, 3, 1
        )

    return resized


def _sliced(inputs: list[Tensor], attributes: Attributes) -> Tensor:
    x, *ends = inputs
    masks = {name: attributes.get(f"{name}_mask", 0) for name in ("begin", "end", "ellipsis")}
    others = [attributes.get(f"{name}_mask", 0) for name in ("new_axis", "shrink_axis")]
    if any(others) or bool((ends[2] < 1).any()):
        raise ValueError("StridedSlice: expected positive steps, no new axis and no dropped axis")
    index: list[Any] = []
    for bit, (begin, end, step) in enumerate(zip(*(part.tolist() for part in ends), strict=True)):
        given = {name: mask >> bit & 1 for name, mask in masks.items()}
        chosen = slice(None if given["begin"] else begin, None if given["end"] else end, step)
        index.append(Ellipsis if given["ellipsis"] else chosen)
    return x[tuple(index)]


def _dense(inputs: list[Tensor], attributes: Attributes) -> Tensor:
    """A tensor with given values at given indices, and another elsewhere."""
    index, shape, values, fill = inputs
    result = fill.expand(shape.tolist()).clone()
    places = index.reshape(-1, 1) if index.ndim < 2 else index
    result[tuple(places.long().unbind(-1))] = values.to(result.dtype)
    return result


_TYPES = {"DT_FLOAT": torch.float32, "DT_INT32": torch.int32}

OPERATIONS: dict[str, Operation] = {
    "Add": lambda inputs, _: inputs[0] + inputs[1],
    "AddV2": lambda inputs, _: inputs[0] + inputs[1],
    "ArgMax": lambda inputs, _: inputs[0].argmax(int(inputs[1])),
    "Cast": lambda inputs, given: inputs[0].to(_TYPES[given["DstT"]]),
    "ConcatV2": lambda inputs, _: torch.cat(inputs[:-1], int(inputs[-1])),
    "Conv2D": _convolved,
    "DepthwiseConv2dNative": _by_channel,
    "ExpandDims": lambda inputs, _: inputs[0].unsqueeze(int(inputs[1])),
    "FloorDiv": lambda inputs, _: inputs[0] // inputs[1],
    "FusedDepthwiseConv2dNative": _fused(_by_channel),
    "GatherNd": lambda inputs, _: inputs[0][inputs[1].unbind(-1)],
    "Identity": lambda inputs, _: inputs[0],
    "LeakyRelu": lambda inputs, given: F.leaky_relu(inputs[0], given.get("alpha", 0.2)),
    "MaxPool": _pooled,
    "Mul": lambda inputs, _: inputs[0] * inputs[1],
    "Pack": lambda inputs, given: torch.stack(inputs, given["axis"]),
    "Pad": _padded,
    "PadV2": _padded,
    "RealDiv": lambda inputs, _: inputs[0] / inputs[1],
    "Reshape": _reshaped,
    "ResizeBilinear": _resized("bilinear"),
    "ResizeNearestNeighbor": _resized("nearest-exact"),
    "Sigmoid": lambda inputs, _: torch.sigmoid(inputs[0]),
    "SparseToDense": _dense,
    "SplitV": lambda inputs, _: inputs[0].split(inputs[1].tolist(), int(inputs[2])),
    "Sqrt": lambda inputs, _: inputs[0].sqrt(),
    "Square": lambda inputs, _: inputs[0] ** 2,
    "SquaredDifference": lambda inputs, _: (inputs[0] - inputs[1]) ** 2,
    "Squeeze": lambda inputs, given: inputs[0].squeeze(given["squeeze_dims"]),
    "StridedSlice": _sliced,
    "Sub": lambda inputs, _: inputs[0] - inputs[1],
    "Transpose": lambda inputs, _: inputs[0].permute(inputs[1].tolist()),
    "Unpack": lambda inputs, given: inputs[0].unbind(given["axis"]),
    "_FusedConv2D": _fused(_convolved),
}
"""The operations that can be executed, by their names in TensorFlow."""
