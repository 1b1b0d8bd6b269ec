"""Send a recipe to other processes: large arrays in memory become files, which processes map."""

from __future__ import annotations

import pickle
import shutil
import sys
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cloudpickle
import numpy as np
import torch
from torch import Tensor

from .._imports_and_paths import words_of
from ..data import ArrayFilePart
from ..errors import InputError
from ..store import explained_store_errors, is_remote
from .description import scan_versions
from .recipe import Recipe

_SMALLEST = 1 << 12  # bytes; what is smaller travels with the recipe
_FILE = "recipe.pickle"


@dataclass(frozen=True)
class Ticket:
    """Where a recipe is, the folder it was written from, and the versions that made it."""

    folder: Path
    origin: str
    versions: tuple[tuple[str, str], ...]

    def load(self) -> Recipe:
        """Read the recipe; this runs the code that it names.

        Remote files are fetched, and deleted once they are mapped.
        """
        if not is_remote(self.folder):
            return _read(self.folder)
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            for file in self.folder.iterdir():
                file.fs.get_file(file.path, str(Path(folder) / file.name))  # type: ignore[attr-defined]
            return _read(Path(folder))

    @property
    def valid(self) -> bool:
        """Whether the scan that wrote it goes on: results of an earlier one must not mix in."""
        return (self.folder / _FILE).exists()

    def forget(self) -> None:
        """Delete the recipe."""
        if not is_remote(self.folder):
            shutil.rmtree(self.folder, ignore_errors=True)
        else:
            with suppress(OSError):
                self.folder.fs.rm(self.folder.path, recursive=True)  # type: ignore[attr-defined]


@contextmanager
def spilled_recipe(recipe: Recipe, out: Path) -> Iterator[Ticket]:
    """Write a recipe beside the store, where its workers find it, for as long as a scan runs."""
    folder = out.absolute().with_name(f"{_prefix(out)}{uuid.uuid4().hex}")
    ticket = Ticket(folder, str(Path.cwd()), ticket_versions())
    try:
        with explained_store_errors(repr(str(out)), "cannot be created"):
            if not is_remote(out):
                folder.mkdir(0o700, parents=True)  # the data of others may be private
        with explained_store_errors(repr(str(folder)), "cannot be written"):
            if is_remote(out):
                with tempfile.TemporaryDirectory() as here:
                    _write_spilled_recipe(recipe, Path(here))
                    for file in Path(here).iterdir():
                        folder.fs.put_file(str(file), (folder / file.name).path)  # type: ignore[attr-defined]
            else:
                _write_spilled_recipe(recipe, folder)
        yield ticket
    finally:
        ticket.forget()


def forget_other_tickets(ticket: Ticket, out: Path) -> None:
    """Delete recipes of scans that were killed; the store is locked by this one."""
    if not is_remote(out):  # where nothing is locked, others may be in use
        for folder in out.absolute().parent.glob(f"{_prefix(out)}*"):
            if folder != ticket.folder:
                shutil.rmtree(folder, ignore_errors=True)


def ticket_versions() -> tuple[tuple[str, str], ...]:
    """Return the versions that processes of one scan must share, for equal bits."""
    python = ".".join(map(str, sys.version_info[:2]))  # cloudpickle sends bytecode
    known = scan_versions()
    return tuple({"python": python, **{key: known[key] for key in _COMPARED}}.items())


_COMPARED = ("orbical", "torch", "numpy")
_NOT_SENT = "cannot be sent to other processes"


def _prefix(out: Path) -> str:
    return f".{out.name[:100]}.recipe."


def _write_spilled_recipe(recipe: Recipe, folder: Path) -> None:
    building = folder / f"{_FILE}.partial"
    with building.open("wb") as file:
        try:
            _Spiller(file, folder).dump(recipe)
        except OSError:
            raise
        except Exception as error:
            raise _unsendable_recipe(recipe, error) from error
    building.rename(folder / _FILE)


def _read(folder: Path) -> Recipe:
    with (folder / _FILE).open("rb") as file:
        recipe: Recipe = _TicketReader(file, folder).load()
    return recipe


def _unsendable_recipe(recipe: Recipe, error: Exception) -> InputError:
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

    def persistent_id(self, thing: object) -> Any:
        """Return where a large array is found; all else is written as cloudpickle does."""
        if isinstance(thing, np.ndarray) and type(thing) in (np.ndarray, np.memmap):
            if thing.nbytes >= _SMALLEST and not thing.dtype.hasobject:
                return ArrayFilePart.of(thing) or (self._save(thing),)
        elif type(thing) is Tensor and _is_dense(thing):
            order = sorted(range(thing.ndim), key=thing.stride, reverse=True)
            stored = thing.permute(order)
            if thing.nbytes >= _SMALLEST and stored.is_contiguous():
                file = self._save(stored.reshape(-1).view(torch.uint8).numpy())
                return file, thing.dtype, tuple(stored.shape), tuple(order)
        return None

    def _save(self, array: np.ndarray) -> str:
        name = f"{self.count}.npy"
        self.count += 1
        np.save(self.folder / name, array, allow_pickle=False)
        return name


class _TicketReader(pickle.Unpickler):
    """Reads what `_Spiller` wrote, from the folder where it is now."""

    def __init__(self, file: Any, folder: Path) -> None:
        super().__init__(file)
        self.folder = folder

    def persistent_load(self, place: Any) -> Any:
        """Map an array."""
        if isinstance(place, ArrayFilePart):
            return ArrayFilePart.open(place)
        stored = np.load(self.folder / place[0], mmap_mode="c")  # writable, the file is not changed
        if len(place) == 1:
            return stored
        _, dtype, shape, order = place
        dense = torch.from_numpy(stored).view(dtype).reshape(shape)
        return dense.permute([order.index(dim) for dim in range(len(order))])


def _is_dense(tensor: Tensor) -> bool:
    plain = tensor.layout == torch.strided and tensor.device.type == "cpu" and tensor.ndim > 0
    marked = tensor.requires_grad or tensor.is_quantized or tensor.is_conj() or tensor.is_neg()
    return plain and not marked
