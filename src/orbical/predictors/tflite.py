"""Predictors from TensorFlow Lite files, run by LiteRT."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import torch

from .._imports import import_extra, words_of
from .._trees import Tree
from ..errors import InputError, ModelError
from .model_files import file_hash, in_fixed_batches, named_inputs
from .predictor import Predictor, Raw, Shape

Entry = dict[str, Any]
"""What the interpreter tells about a tensor."""


class TflitePredictor(Predictor):
    """A `.tflite` file, run by LiteRT on the CPU. Needs the extra `litert`.

    A batch with one tensor feeds the only input; a dictionary feeds inputs by name. One output is
    returned as a tensor, several as a tuple. Where the file takes images `[N, H, W, C]`, images
    `[N, C, H, W]` are passed so, and maps `[N, H, W, C]` come back as `[N, C, H, W]`. Quantized
    inputs and outputs are converted from and to the real numbers that they stand for. A file made
    for one batch size is run piece by piece; only a file that declares a free one is resized.

    Args:
        path: the file.
    """

    def __init__(self, path: str) -> None:
        purpose = f"the model {path!r}"
        runtime = import_extra("ai_edge_litert.interpreter", "litert", purpose, "ai-edge-litert")
        self.source = path
        try:
            self._net = runtime.Interpreter(path, num_threads=torch.get_num_threads())
            self._net.allocate_tensors()
        except Exception as error:  # ValueError for no model, RuntimeError for unknown operations
            raise ModelError(
                f"model: expected a readable TensorFlow Lite file, got {path!r} ({words_of(error)})"
            ) from error
        self._one_caller = threading.Lock()  # a first look scans while the page asks
        self._inputs = {entry["name"]: entry for entry in self._net.get_input_details()}
        sizes = {shape[0] for shape, _ in self.declared_inputs.values() if shape}
        self._size = next((size for size in sizes if isinstance(size, int)), None)

    @property
    def declared_inputs(self) -> dict[str, tuple[Shape, str]]:
        """The shape of each input, with None for free sizes, and the type of its values."""
        return {
            name: (_declared_shape(entry), "tensor(float)" if _scale(entry) else _type(entry))
            for name, entry in self._inputs.items()
        }

    @property
    def declared_outputs(self) -> dict[str, Shape]:
        """The shape of each output, with None for free sizes."""
        return {entry["name"]: _declared_shape(entry) for entry in self._net.get_output_details()}

    def __call__(self, batch: Tree) -> Raw:
        """Run the interpreter."""
        with self._one_caller:
            return in_fixed_batches(self._run, batch, self._size)

    def _run(self, batch: Tree) -> Raw:
        moved = False
        given: dict[str, torch.Tensor] = {}
        for name, value in named_inputs(batch, self._inputs, "TensorFlow Lite").items():
            if name in self._inputs:
                given[name], last = self._laid_out(name, value)
                moved |= last
        self._resize(given)
        for name, value in given.items():
            entry = self._inputs[name]
            self._net.set_tensor(entry["index"], _quantized(value.cpu().numpy(), entry))
        self._net.invoke()
        found = tuple(self._output(entry, moved) for entry in self._net.get_output_details())
        return found[0] if len(found) == 1 else found

    def _laid_out(self, name: str, value: torch.Tensor) -> tuple[torch.Tensor, bool]:
        """Return a tensor as an input takes it, and whether its channels were moved last."""
        shape = _declared_shape(self._inputs[name])
        if _fits(value, shape):
            return value, False
        if value.ndim == 4 and _fits(value.permute(0, 2, 3, 1), shape):
            return value.permute(0, 2, 3, 1).contiguous(), True
        images = f", or images [N, {shape[3]}, {shape[1]}, {shape[2]}]" if len(shape) == 4 else ""
        raise InputError(
            "data",
            f"{shape}{images} for the input {name!r} of the TensorFlow Lite model",
            ["N", *value.shape[1:]],
        )

    def _resize(self, given: dict[str, torch.Tensor]) -> None:
        details = {entry["name"]: entry for entry in self._net.get_input_details()}
        others = [name for name in given if [*details[name]["shape"]] != [*given[name].shape]]
        for name in others:
            self._net.resize_tensor_input(details[name]["index"], [*given[name].shape])
        if others:
            self._net.allocate_tensors()

    def _output(self, entry: Entry, channels_last: bool) -> torch.Tensor:
        values, scale = self._net.get_tensor(entry["index"]), _scale(entry)
        if scale:
            values = (values.astype(np.float32) - entry["quantization"][1]) * np.float32(scale)
        found = torch.as_tensor(values)
        return found.permute(0, 3, 1, 2) if channels_last and found.ndim == 4 else found

    def fingerprint(self) -> str | None:
        """Return a hash of the file."""
        return file_hash(self.source)


def _declared_shape(entry: Entry) -> list[int | None]:
    signature = entry["shape_signature"] if len(entry["shape_signature"]) else entry["shape"]
    return [None if side < 0 else int(side) for side in signature]


def _fits(value: torch.Tensor, shape: list[int | None]) -> bool:
    """Check a tensor against a declared shape; the batch size is not part of it."""
    pairs = [*zip(value.shape, shape, strict=False)]
    return value.ndim == len(shape) and all(side in (None, given) for given, side in pairs[1:])


def _type(entry: Entry) -> str:
    name = np.dtype(entry["dtype"]).name
    return f"tensor({'float' if name == 'float32' else name})"


def _scale(entry: Entry) -> float:
    """Return what one step of a quantized tensor stands for, 0 if it is not quantized."""
    whole = np.issubdtype(entry["dtype"], np.integer)
    return float(entry["quantization"][0]) if whole else 0.0


def _quantized(values: np.ndarray, entry: Entry) -> np.ndarray:
    """Return values in the type of an input; where it is quantized, the nearest steps."""
    scale, kind = _scale(entry), entry["dtype"]
    if scale:
        known = np.iinfo(kind)
        values = np.rint(values / scale + entry["quantization"][1]).clip(known.min, known.max)
    return np.ascontiguousarray(values, kind)
