"""Predictors from files: ONNX models and exported torch programs.

Such programs may have been made for one batch size; then the last batch is padded.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from .._imports import import_extra
from .._trees import Tree, as_tensors, leaves, tree_map
from ..errors import InputError, ModelError
from .predictor import Predictor, Raw, Shape, call_with, count_inputs, moved_to, state_hash


def file_hash(path: str) -> str:
    """Return a hash of a file's content."""
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:16]


def in_fixed_batches(run: Callable[[Tree], Raw], batch: Tree, size: int | None) -> Raw:
    """Run a program made for one batch size on any batch, padding the last piece."""
    count = count_inputs(batch)
    if size is None or count == size:
        return run(batch)
    pieces = []
    for start in range(0, count, size):
        piece = tree_map(lambda leaf, start=start: leaf[start : start + size], batch)
        missing = size - count_inputs(piece)
        padded = tree_map(lambda leaf, missing=missing: _padded(leaf, missing), piece)
        pieces.append(tree_map(lambda leaf, kept=size - missing: leaf[:kept], run(padded)))
    return tree_map(lambda *parts: torch.cat(parts), pieces[0], *pieces[1:])


def _padded(leaf: torch.Tensor, missing: int) -> torch.Tensor:
    return torch.cat([leaf, leaf[-1:].expand(missing, *leaf.shape[1:])])


def named_inputs(batch: Tree, names: Iterable[str], kind: str) -> dict[str, torch.Tensor]:
    """Return the tensors of a batch by the names of a model's inputs, or refuse it."""
    fields, wanted = isinstance(batch, dict), [*names]
    named = batch if fields else dict(zip(wanted, leaves(batch), strict=False))
    if not {*wanted} <= {*named}:
        got = f"fields {sorted(batch)}" if fields else len(named)
        raise InputError("data", f"the inputs {sorted(wanted)} of the {kind} model", got)
    return named


class OnnxPredictor(Predictor):
    """An ONNX file, run by onnxruntime. Needs the extra `onnx`.

    A batch with one tensor feeds the only input; a dictionary feeds inputs by name. One output is
    returned as a tensor, several as a tuple.

    Args:
        path: the file.
    """

    def __init__(self, path: str) -> None:
        onnxruntime = import_extra("onnxruntime", "onnx", f"the model {path!r}")
        self.source = path
        self._path = path
        self._onnxruntime = onnxruntime
        self._session = self._open(["CPUExecutionProvider"])
        self._inputs = {entry.name: entry for entry in self._session.get_inputs()}
        sizes = {entry.shape[0] for entry in self._inputs.values() if entry.shape}
        self._size = next((size for size in sizes if isinstance(size, int)), None)

    @property
    def declared_inputs(self) -> dict[str, tuple[Shape, str]]:
        """The shape of each input, with names or None for free sizes, and its type."""
        return {name: ([*entry.shape], entry.type) for name, entry in self._inputs.items()}

    @property
    def declared_outputs(self) -> dict[str, Shape]:
        """The shape of each output, with names or None for free sizes."""
        return {entry.name: [*entry.shape] for entry in self._session.get_outputs()}

    @property
    def metadata(self) -> dict[str, str]:
        """What the author of the file wrote into it, such as the names of classes."""
        return dict(self._session.get_modelmeta().custom_metadata_map)

    def _open(self, providers: list[str]) -> Any:
        try:
            return self._onnxruntime.InferenceSession(self._path, providers=providers)
        except Exception as error:
            raise ModelError(
                f"model: expected a readable ONNX file, got {self._path!r} ({error})"
            ) from error

    @contextmanager
    def ready(self, device: torch.device) -> Iterator[None]:
        """Use the accelerator where onnxruntime has one."""
        known = self._onnxruntime.get_available_providers()
        if device.type == "cuda" and "CUDAExecutionProvider" in known:
            self._session = self._open(["CUDAExecutionProvider", "CPUExecutionProvider"])
        yield

    def __call__(self, batch: Tree) -> Raw:
        """Run the session."""
        return in_fixed_batches(self._run, batch, self._size)

    def _run(self, batch: Tree) -> Raw:
        outputs = as_tensors(self._session.run(None, self._feed(batch)))
        return outputs[0] if len(outputs) == 1 else outputs

    def _feed(self, batch: Tree) -> dict[str, Any]:
        named = named_inputs(batch, self._inputs, "ONNX")
        return {name: _cast(named[name], entry.type) for name, entry in self._inputs.items()}

    def fingerprint(self) -> str | None:
        """Return a hash of the file and of the files beside it that hold its weights."""
        weights = external_files(Path(self._path))
        hashes = [file_hash(self._path), *(file_hash(str(path)) for path in weights)]
        whole = hashlib.sha256("".join(hashes).encode()).hexdigest()[:16]
        return whole if weights else hashes[0]


def external_files(path: Path) -> list[Path]:
    """Find the files in the same folder that an ONNX file names, where exporters put weights."""
    content = path.read_bytes()  # at most 2 GB, the limit of the format; weights lie outside
    beside = (other for other in path.resolve().parent.iterdir() if other.is_file())
    return sorted(
        other for other in beside if other.name != path.name and other.name.encode() in content
    )


def _cast(value: torch.Tensor, kind: str) -> Any:
    """Convert to an ONNX type such as `tensor(float)`, all of which torch has by the same name."""
    name = kind.removeprefix("tensor(").removesuffix(")")
    return value.to(getattr(torch, name, value.dtype)).cpu().numpy()


class ExportedPredictor(Predictor):
    """A program saved with `torch.export.save`, or one in memory. Loading a file runs its code.

    Args:
        program: the program, or its file.
    """

    def __init__(self, program: str | torch.export.ExportedProgram) -> None:
        self._path = program if isinstance(program, str) else None
        self.source = self._path or "torch.export:ExportedProgram"
        if isinstance(program, str):
            try:
                program = torch.export.load(program)
            except Exception as error:
                message = f"model: expected an exported program, got {self._path!r} ({error})"
                raise ModelError(message) from error
        self._program = program
        self._module = program.module()
        self._size = _fixed_batch(program)

    @contextmanager
    def ready(self, device: torch.device) -> Iterator[None]:
        """Move the program to the device."""
        with moved_to(device, self._module, self.source):
            yield

    def __call__(self, batch: Tree) -> Raw:
        """Run the program."""
        return in_fixed_batches(self._run, batch, self._size)

    def _run(self, batch: Tree) -> Raw:
        return as_tensors(call_with(self._module, batch, frozenset()))

    def fingerprint(self) -> str | None:
        """Return a hash of the file, or of the weights of a program in memory."""
        if self._path is not None:
            return file_hash(self._path)
        return state_hash(str(self._program.graph), self._program.state_dict)


def _fixed_batch(program: torch.export.ExportedProgram) -> int | None:
    """Return the batch size a program was exported for, None if it is free."""
    names = set(program.graph_signature.user_inputs)
    for node in program.graph.nodes:
        if node.op == "placeholder" and node.name in names and "val" in node.meta:
            shape = tuple(getattr(node.meta["val"], "shape", ()))
            if shape[:1] and isinstance(shape[0], int):
                return shape[0]
    return None
