"""Send a recipe to other processes: large arrays in memory become files, which processes map."""

from __future__ import annotations

import shutil
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cloudpickle
import numpy as np
import torch
from torch import Tensor

from .._imports import words_of
from ..data import FilePart
from ..errors import InputError
from .description import versions
from .recipe import Recipe

_SMALLEST = 1 << 12  # bytes; what is smaller travels with the recipe
_FILE = "recipe.pickle"


@dataclass(frozen=True)
class Ticket:
    """Where a recipe is, the folder it was written from, and the versions that made it."""

    folder: str
    origin: str
    versions: tuple[tuple[str, str], ...]

    def load(self) -> Recipe:
        """Read the recipe; this runs the code that it names."""
        recipe: Recipe = cloudpickle.loads((Path(self.folder) / _FILE).read_bytes())
        return recipe

    @property
    def valid(self) -> bool:
        """Whether the scan that wrote it goes on: results of an earlier one must not mix in."""
        return (Path(self.folder) / _FILE).exists()


@contextmanager
def spilled(recipe: Recipe, out: Path) -> Iterator[Ticket]:
    """Write a recipe beside the store, where its workers find it, for as long as a scan runs."""
    from ..store import explained

    folder = out.absolute().with_name(f"{_prefix(out)}{uuid.uuid4().hex}")
    try:
        with explained(repr(str(out)), "cannot be created"):
            folder.mkdir(0o700, parents=True)  # the data of others may be private
        with explained(repr(str(folder)), "cannot be written"):
            _write(recipe, folder)
        yield Ticket(str(folder), str(Path.cwd()), own_versions())
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def forget_others(ticket: Ticket, out: Path) -> None:
    """Delete recipes of scans that were killed; the store is locked by this one."""
    for folder in out.absolute().parent.glob(f"{_prefix(out)}*"):
        if str(folder) != ticket.folder:
            shutil.rmtree(folder, ignore_errors=True)


def own_versions() -> tuple[tuple[str, str], ...]:
    """Return the versions that processes of one scan must share, for equal bits."""
    python = ".".join(map(str, sys.version_info[:2]))  # cloudpickle sends bytecode
    known = versions()
    return tuple({"python": python, **{key: known[key] for key in _COMPARED}}.items())


_COMPARED = ("orbical", "torch", "numpy")
_NOT_SENT = "cannot be sent to other processes"


def _prefix(out: Path) -> str:
    return f".{out.name[:100]}.recipe."


def _write(recipe: Recipe, folder: Path) -> None:
    building = folder / f"{_FILE}.partial"
    with building.open("wb") as file:
        try:
            _Spiller(file, folder).dump(recipe)
        except OSError:
            raise
        except Exception as error:
            raise _unsendable(recipe, error) from error
    building.rename(folder / _FILE)


def _unsendable(recipe: Recipe, error: Exception) -> InputError:
    """Return the error that names the part that cannot be sent to another process."""
    why = f"{type(error).__name__}: {words_of(error)}"[:200]
    for name, model in recipe.models.items():
        if not _is_sendable(model):
            remedy = (
                "pass the import path of a function that makes it, package.module:function(), or "
                "its file"
            )
            return InputError(f"model {name!r}", problem=f"{_NOT_SENT} ({why})", remedy=remedy)
    part = "preprocess" if not _is_sendable(recipe.preprocess) else "data"
    return InputError(part, problem=f"{_NOT_SENT} ({why})", remedy="pass arrays or paths")


def _is_sendable(thing: object) -> bool:
    try:
        cloudpickle.dumps(thing)
    except Exception:
        return False
    return True


class _Spiller(cloudpickle.Pickler):  # type: ignore[misc]
    """A pickler that writes large arrays and tensors to files of their own, wherever they are."""

    def __init__(self, file: object, folder: Path) -> None:
        super().__init__(file)
        self.folder = folder
        self.count = 0

    def reducer_override(self, thing: object) -> Any:
        """Return how a large array is read again; all else as cloudpickle does."""
        if isinstance(thing, np.ndarray) and type(thing) in (np.ndarray, np.memmap):
            if thing.nbytes >= _SMALLEST and not thing.dtype.hasobject:
                place = FilePart.of(thing)
                return (
                    (_mapped_array, (self._save(thing),))
                    if place is None
                    else (FilePart.open, (place,))
                )
        elif type(thing) is Tensor and _is_dense(thing):
            order = sorted(range(thing.ndim), key=thing.stride, reverse=True)
            stored = thing.permute(order)
            if thing.nbytes >= _SMALLEST and stored.is_contiguous():
                file = self._save(stored.reshape(-1).view(torch.uint8).numpy())
                return _mapped_tensor, (file, thing.dtype, tuple(stored.shape), tuple(order))
        return super().reducer_override(thing)

    def _save(self, array: np.ndarray) -> str:
        path = self.folder / f"{self.count}.npy"
        self.count += 1
        np.save(path, array, allow_pickle=False)
        return str(path)


def _is_dense(tensor: Tensor) -> bool:
    plain = tensor.layout == torch.strided and tensor.device.type == "cpu" and tensor.ndim > 0
    marked = tensor.requires_grad or tensor.is_quantized or tensor.is_conj() or tensor.is_neg()
    return plain and not marked


def _mapped_array(file: str) -> Any:
    return np.load(file, mmap_mode="c")  # writable, without changing the file


def _mapped_tensor(
    file: str, dtype: torch.dtype, shape: tuple[int, ...], order: tuple[int, ...]
) -> Tensor:
    stored = torch.from_numpy(np.load(file, mmap_mode="c")).view(dtype).reshape(shape)
    return stored.permute([order.index(dim) for dim in range(len(order))])
