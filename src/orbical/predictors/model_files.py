"""Predictors from files: ONNX, TensorFlow Lite, exported programs and TorchScript."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import threading
import warnings
import zipfile
from abc import abstractmethod
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import torch

from .._imports_and_paths import import_extra, words_of
from .._trees import Tree, as_tensors, concatenate, leaves, tree_map
from ..errors import InputError, ModelError, OrbicalError
from . import predictor
from .model_objects import TorchPredictor
from .predictor import Predictor, Raw, Shape

_ONNX, _TFLITE = "a readable ONNX file", "a readable TensorFlow Lite file"


def _file_hash(path: str) -> str:
    """Return a hash of a file's content."""
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:16]


def _named_inputs(batch: Tree, names: Iterable[str], kind: str) -> dict[str, torch.Tensor]:
    """Return the tensors of a batch by the names of a model's inputs, or refuse it."""
    fields, wanted = isinstance(batch, dict), [*names]
    named = batch if fields else dict(zip(wanted, leaves(batch), strict=False))
    if not {*wanted} <= {*named}:
        got = f"fields {sorted(batch)}" if fields else len(named)
        raise InputError("data", f"the inputs {sorted(wanted)} of the {kind} model", got)
    return named


def _fixed_size(shapes: Iterable[Shape]) -> int | None:
    """Return the batch size a program with inputs of these shapes is made for, None if any."""
    return next((shape[0] for shape in shapes if shape and isinstance(shape[0], int)), None)


class _ProgramInFile(Predictor):
    """A model in a file, which may be made for one batch size."""

    _size: int | None

    def __call__(self, batch: Tree) -> Raw:
        """Run the model, piece by piece if it was made for one batch size."""
        count, size = predictor.count_inputs(batch), self._size
        if size is None or count == size:
            return self._run(batch)
        pieces = []
        for start in range(0, count, size):
            rows = torch.arange(start, start + size).clamp(max=count - 1)  # the last one pads
            outputs = self._run(tree_map(lambda leaf, rows=rows: leaf[rows], batch))
            pieces.append(tree_map(lambda leaf, kept=count - start: leaf[:kept], outputs))
        return concatenate(pieces)

    @abstractmethod
    def _run(self, batch: Tree) -> Raw: ...

    def fingerprint(self) -> str | None:
        """Return a hash of the file."""
        return _file_hash(self.source)


class OnnxPredictor(_ProgramInFile):
    """An ONNX file, run by onnxruntime. Needs the extra `onnx`.

    A batch with one tensor feeds the only input; a dictionary feeds inputs by name. One output is
    returned as a tensor, several as a tuple.

    Args:
        path: the file.
    """

    def __init__(self, path: str) -> None:
        onnxruntime = import_extra("onnxruntime", "onnx", f"the model {path!r}")
        self.source = self._path = path
        self._onnxruntime = onnxruntime
        with reading_model(_ONNX, path):  # names in a damaged file may be no text
            self._session = self._open(["CPUExecutionProvider"])
            self._inputs = {entry.name: entry for entry in self._session.get_inputs()}
            self.declared_inputs: dict[str, tuple[Shape, str]] = {
                name: ([*entry.shape], entry.type) for name, entry in self._inputs.items()
            }
            self._size = _fixed_size(entry.shape for entry in self._inputs.values())
            outputs = self._session.get_outputs()
            self.declared_outputs: dict[str, Shape] = {one.name: [*one.shape] for one in outputs}
            # What the author of the file wrote into it, such as the names of classes.
            self.metadata: dict[str, str] = dict(self._session.get_modelmeta().custom_metadata_map)

    def _open(self, providers: list[str]) -> Any:
        with reading_model(_ONNX, self._path):
            return self._onnxruntime.InferenceSession(self._path, providers=providers)

    def ready(self, device: torch.device) -> AbstractContextManager[None]:
        """Use the accelerator where onnxruntime has one."""
        known = self._onnxruntime.get_available_providers()
        if device.type == "cuda" and "CUDAExecutionProvider" in known:
            self._session = self._open(["CUDAExecutionProvider", "CPUExecutionProvider"])
        return nullcontext()

    def _run(self, batch: Tree) -> Raw:
        outputs = as_tensors(self._session.run(None, self._feed(batch)))
        return outputs[0] if len(outputs) == 1 else outputs

    def _feed(self, batch: Tree) -> dict[str, np.ndarray]:
        named = _named_inputs(batch, self._inputs, "ONNX")
        for name, entry in self._inputs.items():
            if not _fits(named[name], entry.shape):
                wanted = f"{entry.shape} for the input {name!r} of the ONNX model"
                raise _misfit_of_model_file(named[name], wanted, entry.shape)
        return {name: _cast(named[name], entry.type) for name, entry in self._inputs.items()}

    def fingerprint(self) -> str | None:
        """Return a hash of the file and of the files beside it that hold its weights."""
        weights = external_files(Path(self._path))
        hashes = [_file_hash(self._path), *(_file_hash(str(path)) for path in weights)]
        whole = hashlib.sha256("".join(hashes).encode()).hexdigest()[:16]
        return whole if weights else hashes[0]


def external_files(path: Path) -> list[Path]:
    """Find the files in the same folder that an ONNX file names, where exporters put weights."""
    content = path.read_bytes()  # at most 2 GB, the limit of the format; weights lie outside
    beside = (other for other in path.resolve().parent.iterdir() if other.is_file())
    return sorted(
        other for other in beside if other.name != path.name and other.name.encode() in content
    )


def _cast(value: torch.Tensor, kind: str) -> np.ndarray:
    """Convert to an ONNX type such as `tensor(float)`, all of which torch has by the same name."""
    name = kind.removeprefix("tensor(").removesuffix(")")
    cast: torch.Tensor = value.to(getattr(torch, name, value.dtype))
    return cast.cpu().numpy()


class ExportedPredictor(_ProgramInFile):
    """A program saved with `torch.export.save`, or one in memory. Loading a file runs its code.

    Args:
        program: the program, or its file.
    """

    def __init__(self, program: str | torch.export.ExportedProgram) -> None:
        self._path = program if isinstance(program, str) else None
        self.source = self._path or "torch.export:ExportedProgram"
        if isinstance(program, str):
            with reading_model("an exported program", program):
                program = torch.export.load(program)
        self._program = program
        self._module = program.module()
        names = set(program.graph_signature.user_inputs)
        self._size = _fixed_size(
            tuple(getattr(node.meta.get("val"), "shape", ()))
            for node in program.graph.nodes
            if node.op == "placeholder" and node.name in names
        )

    def ready(self, device: torch.device) -> AbstractContextManager[None]:
        """Move the program to the device."""
        return predictor.model_on_device(device, self._module, self.source)

    def _run(self, batch: Tree) -> Raw:
        return as_tensors(predictor.call_model(self._module, batch, frozenset()))

    def fingerprint(self) -> str | None:
        """Return a hash of the file, or of the weights of a program in memory."""
        if self._path is not None:
            return _file_hash(self._path)
        return predictor.predictor_state_hash(str(self._program.graph), self._program.state_dict)


class ScriptedPredictor(TorchPredictor):
    """A file of `torch.jit.script(net).save(path)` or `torch.jit.trace(...)`, usually `.pt`.

    Args:
        path: the file.

    Raises:
        ModelError: If the file holds something else, such as weights without a network.
    """

    def __init__(self, path: str) -> None:
        try:
            with warnings.catch_warnings():  # newer versions of torch recommend torch.export
                warnings.filterwarnings("ignore", "`torch.jit")
                module = torch.jit.load(path, map_location="cpu")
        except Exception as error:
            raise ModelError(
                f"model: expected a TorchScript file, got {path!r}, which holds "
                f"{_content(path)}; build the network in a file of your own, load its weights "
                "there, and name it as package.module:network, or save it with torch.export"
            ) from error
        super().__init__(module)
        self.source = path

    def fingerprint(self) -> str | None:
        """Return a hash of the file."""
        return _file_hash(self.source)


def _content(path: str) -> str:
    """Describe what torch saved in a file that is not TorchScript; no code in it is run."""
    try:
        found = torch.load(path, map_location="cpu", weights_only=True)
    except Exception:
        return "a pickled network" if zipfile.is_zipfile(path) else "no model of torch"
    return "weights without a network (a state dict)" if isinstance(found, dict) else "tensors"


Entry = dict[str, Any]
"""What the interpreter tells about a tensor."""


class TflitePredictor(_ProgramInFile):
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
        _check_runtime(path)
        with reading_model(_TFLITE, path):
            self._net = runtime.Interpreter(path, num_threads=torch.get_num_threads())
            self._net.allocate_tensors()
        self._one_caller = threading.Lock()  # a first look scans while the page asks
        self._inputs = {entry["name"]: entry for entry in self._net.get_input_details()}
        self.declared_inputs: dict[str, tuple[Shape, str]] = {
            name: (_declared_shape(entry), "tensor(float)" if _scale(entry) else _onnx_type(entry))
            for name, entry in self._inputs.items()
        }
        self._size = _fixed_size(shape for shape, _ in self.declared_inputs.values())

    @property
    def declared_outputs(self) -> dict[str, Shape]:
        """The shape of each output, with None for free sizes."""
        return {entry["name"]: _declared_shape(entry) for entry in self._net.get_output_details()}

    def __call__(self, batch: Tree) -> Raw:
        """Run the interpreter."""
        with self._one_caller:
            return super().__call__(batch)

    def _run(self, batch: Tree) -> Raw:
        moved = False
        given: dict[str, torch.Tensor] = {}
        for name, value in _named_inputs(batch, self._inputs, "TensorFlow Lite").items():
            if name in self._inputs:
                given[name], last = self._in_layout(name, value)
                moved |= last
        self._resize(given)
        for name, value in given.items():
            entry = self._inputs[name]
            self._net.set_tensor(entry["index"], _quantized(value.cpu().numpy(), entry))
        self._net.invoke()
        found = tuple(self._output(entry, moved) for entry in self._net.get_output_details())
        return found[0] if len(found) == 1 else found

    def _in_layout(self, name: str, value: torch.Tensor) -> tuple[torch.Tensor, bool]:
        """Return a tensor as an input takes it, and whether its channels were moved last."""
        shape = _declared_shape(self._inputs[name])
        if _fits(value, shape):
            return value, False
        if value.ndim == 4 and _fits(value.permute(0, 2, 3, 1), shape):
            return value.permute(0, 2, 3, 1).contiguous(), True
        images = [None, shape[3], shape[1], shape[2]] if len(shape) == 4 else []
        also = f", or images [N, {shape[3]}, {shape[1]}, {shape[2]}]" if images else ""
        wanted = f"{shape}{also} for the input {name!r} of the TensorFlow Lite model"
        raise _misfit_of_model_file(value, wanted, shape, images)

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


_FIRST_RUN = """
import sys
import numpy
from ai_edge_litert.interpreter import Interpreter
net = Interpreter(sys.argv[1], num_threads=1)
net.allocate_tensors()
for one in net.get_input_details():
    net.set_tensor(one["index"], numpy.zeros(one["shape"], one["dtype"]))
net.invoke()
"""
_ERROR_OF_PYTHON = 1


def _check_runtime(path: str) -> None:
    """Run a file once in a process of its own: LiteRT ends the process on some damaged ones."""
    command = [sys.executable, "-c", _FIRST_RUN, path]
    ended = subprocess.run(command, capture_output=True, check=False).returncode
    if ended not in (0, _ERROR_OF_PYTHON):  # of which this process sees the reason itself
        why = f"which makes LiteRT crash (exit status {ended})"
        raise ModelError(f"model: expected {_TFLITE}, got {path!r}, {why}")


def _declared_shape(entry: Entry) -> list[int | None]:
    signature = entry["shape_signature"] if len(entry["shape_signature"]) else entry["shape"]
    return [None if side < 0 else int(side) for side in signature]


def _fits(value: torch.Tensor, shape: Shape) -> bool:
    """Check a tensor against a declared shape; the batch size is not part of it."""
    pairs = [*zip(value.shape, shape, strict=False)][1:]
    same = all(side == given for given, side in pairs if isinstance(side, int))
    return value.ndim == len(shape) and same


def _misfit_of_model_file(value: torch.Tensor, wanted: str, *shapes: Shape) -> InputError:
    """Return the error for inputs that fit none of the shapes, with the step that would help."""
    remedy = ""
    if value.ndim == 4:
        for shape in shapes:
            if _fits(value.permute(0, 2, 3, 1), shape):
                remedy = "pass preprocess='nhwc'"
            elif len(shape) == 4 and _fits(value, [*shape[:2], *value.shape[2:]]):
                height, width = shape[2:]
                size = height if height == width else (height, width)
                remedy = f"resize them, images in files with size={size}"
    return InputError("data", wanted, ["N", *value.shape[1:]], remedy=remedy)


def _onnx_type(entry: Entry) -> str:
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


@contextmanager
def reading_model(kind: str, path: object) -> Iterator[None]:
    """Raise what the reader of a model's file raises as a `ModelError`: libraries raise many kinds.

    >>> with reading_model("a readable ONNX file", "net.onnx"):
    ...     raise ValueError("no graph")
    Traceback (most recent call last):
    orbical.errors.ModelError: model: expected a readable ONNX file, got 'net.onnx' (no graph)
    """
    try:
        yield
    except OrbicalError:
        raise
    except Exception as error:
        raise ModelError(f"model: expected {kind}, got {path!r} ({words_of(error)})") from error
