"""A Keras model in a file of TensorFlow.js gives what its layers say."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch

from orbical_audits.tfjs_layers import read_layers


def layer(kind, name, *inputs, **config):
    return {
        "class_name": kind,
        "name": name,
        "config": config,
        "inbound_nodes": [[[node, 0, 0, {}] for node in inputs]] if inputs else [],
    }


def written(folder, layers, weights, kind="layers-model"):
    """Write a model whose output is its last layer."""
    entries = [{"name": k, "shape": [*w.shape], "dtype": "float32"} for k, w in weights.items()]
    config = {"layers": layers, "output_layers": [[layers[-1]["name"], 0, 0]]}
    content = {
        "format": kind,
        "modelTopology": {"model_config": {"config": config}},
        "weightsManifest": [{"paths": ["all.bin"], "weights": entries}],
    }
    (folder / "model.json").write_text(json.dumps(content), "utf-8")
    data = b"".join(np.asarray(w, np.float32).tobytes() for w in weights.values())
    (folder / "all.bin").write_bytes(data)
    return folder / "model.json"


def test_each_layer_does_what_its_name_says(tmp_path):
    same = {"padding": "same", "strides": [1, 1], "activation": "linear", "groups": 1}
    layers = [
        layer("InputLayer", "in"),
        layer("Conv2D", "right", "in", **same),
        layer("Activation", "positive", "right", activation="relu"),
        layer("Add", "sum", "positive", "in"),
        layer("Concatenate", "both", "sum", "in"),
        layer("UpSampling2D", "large", "both", size=[2, 2], interpolation="nearest"),
    ]
    kernel = np.zeros((3, 3, 1, 1))
    kernel[1, 0] = 1.0  # the pixel to the left, so content moves to the right
    model = read_layers(
        written(tmp_path, layers, {"right/kernel": kernel, "right/bias": np.ones(1)})
    )
    given = torch.tensor([[[[2.0, -3.0]]]])
    moved = torch.tensor([[[[1.0, 3.0]]]])
    wanted = torch.cat([moved + given, given], 1).repeat_interleave(2, 2).repeat_interleave(2, 3)
    assert torch.equal(model(given), wanted)


def test_what_cannot_be_read_is_named(tmp_path):
    with pytest.raises(ValueError, match=r"expected a layers model, got the format 'graph-model'"):
        read_layers(written(tmp_path, [layer("InputLayer", "in")], {}, "graph-model"))
    with pytest.raises(ValueError, match=r"got \['Lambda'\]; add them to LAYERS"):
        read_layers(written(tmp_path, [layer("InputLayer", "in"), layer("Lambda", "f", "in")], {}))
    wide = {"padding": "same", "strides": [2, 2], "activation": "linear", "groups": 1}
    layers = [layer("InputLayer", "in"), layer("Conv2D", "c", "in", **wide)]
    model = read_layers(written(tmp_path, layers, {}))
    with pytest.raises(ValueError, match=r"got \{'strides': \[2, 2\]\}"):
        model(torch.zeros(1, 1, 2, 2))
