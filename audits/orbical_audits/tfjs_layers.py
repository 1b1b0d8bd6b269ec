"""Read TensorFlow.js layers models, which are Keras models, as torch modules."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import reduce
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .tfjs import read_weights

__all__ = ["LAYERS", "LayersModel", "read_layers"]

Layer = Callable[[list[Tensor], dict[str, Any], dict[str, Tensor]], Tensor]


def _convolved(inputs: list[Tensor], config: dict[str, Any], weights: dict[str, Tensor]) -> Tensor:
    expected = {"strides": [1, 1], "activation": "linear", "groups": 1}
    other = {key: config[key] for key, value in expected.items() if config[key] != value}
    if other:
        raise ValueError(f"model: expected convolutions with {expected}, got {other}")
    kernel = weights["kernel"].permute(3, 2, 0, 1)  # Keras: [row, column, in, out]
    return F.conv2d(inputs[0], kernel, weights.get("bias"), padding=config["padding"])


def _activated(inputs: list[Tensor], config: dict[str, Any], _: dict[str, Tensor]) -> Tensor:
    known: dict[str, Callable[[Tensor], Tensor]] = {
        "relu": F.relu,
        "sigmoid": torch.sigmoid,
        "linear": torch.clone,
    }
    return known[config["activation"]](inputs[0])


def _enlarged(inputs: list[Tensor], config: dict[str, Any], _: dict[str, Tensor]) -> Tensor:
    factor = tuple(map(float, config["size"]))
    return F.interpolate(inputs[0], scale_factor=factor, mode=config["interpolation"])


LAYERS: dict[str, Layer] = {
    "Conv2D": _convolved,
    "Activation": _activated,
    "Concatenate": lambda inputs, config, _: torch.cat(inputs, 1),
    "Add": lambda inputs, config, _: reduce(torch.add, inputs),
    "UpSampling2D": _enlarged,
}
"""What each kind of layer does with maps `[N, C, H, W]`; concatenation is along channels."""


class LayersModel(nn.Module):
    """The layers of a model with one input and one output, executed in torch.

    Args:
        layers: as in the file, each after those that it uses.
        weights: by the names in the manifest, `layer/weight`.
        output: the name of the layer to return.

    Raises:
        ValueError: if a kind of layer is not known.
    """

    def __init__(
        self, layers: list[dict[str, Any]], weights: dict[str, Tensor], output: str
    ) -> None:
        super().__init__()
        unknown = sorted({layer["class_name"] for layer in layers} - {*LAYERS, "InputLayer"})
        if unknown:
            raise ValueError(
                f"model: expected layers of orbical_audits.tfjs_layers, got {unknown}; add them "
                "to LAYERS"
            )
        self.layers, self.weights, self.output = layers, weights, output

    def forward(self, x: Tensor) -> Tensor:
        """Execute the layers on maps `[N, C, H, W]`."""
        found: dict[str, Tensor] = {}
        for layer in self.layers:
            name, kind = layer["name"], layer["class_name"]
            if kind == "InputLayer":
                found[name] = x
                continue
            inputs = [found[node[0]] for node in layer["inbound_nodes"][0]]
            start = f"{name}/"
            own = {k[len(start) :]: w for k, w in self.weights.items() if k.startswith(start)}
            found[name] = LAYERS[kind](inputs, layer["config"], own)
        return found[self.output]


def read_layers(path: str | Path) -> LayersModel:
    """Read a `model.json` and its weights.

    Raises:
        ValueError: if the file is not a layers model, or its weights do not fit.
    """
    path = Path(path)
    content = json.loads(path.read_text(encoding="utf-8"))
    if content.get("format") != "layers-model":
        raise ValueError(f"path: expected a layers model, got the format {content.get('format')!r}")
    config = content["modelTopology"]["model_config"]["config"]
    weights = read_weights(path.parent, content["weightsManifest"])
    return LayersModel(config["layers"], weights, config["output_layers"][0][0]).eval()
