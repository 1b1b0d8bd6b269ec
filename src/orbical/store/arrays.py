"""Results of a scan on disk: arrays that are filled unit by unit and survive a kill.

A store is a Zarr v3 folder. Its unit of work and of resumption is (model, chunk of samples, all
elements): the arrays of a unit are written first, then its done-flag, each file by an atomic rename
and with a checksum. A run that was killed therefore loses at most the unit it was in.
"""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import zarr
from zarr.codecs import BloscCodec, Crc32cCodec
from zarr.core.sync import sync
from zarr.storage import LocalStore, MemoryStore

from ..errors import StoreError
from ..groups import Group
from .group_arrays import describe_group
from .record import FORMAT, ModelEntry, Record

_RECORD = "orbical"
_MISSING = {"f": np.nan, "i": -1, "u": 0, "b": False}


@dataclass(frozen=True)
class ArraySpec:
    """An array of a store: its dimensions, shape, type and attributes."""

    dims: tuple[str, ...]
    shape: tuple[int, ...]
    dtype: str
    attributes: dict[str, Any]


class Store:
    """The arrays of a scan while it is being made."""

    def __init__(self, root: zarr.Group, path: Path | None) -> None:
        self.root = root
        self.path = path

    @property
    def name(self) -> str:
        """The name of the store in messages."""
        return "the scan in memory" if self.path is None else repr(str(self.path))

    @property
    def record(self) -> Record:
        """What was scanned, by which models, and how."""
        written: Any = self.root.attrs[_RECORD]
        return Record.from_json(written)

    def write_record(self, record: Record) -> None:
        """Replace the record."""
        with self.explained():
            self.root.attrs[_RECORD] = record.to_json()

    @property
    def arrays(self) -> dict[str, zarr.Array[Any]]:
        """The arrays of results, by name."""
        return {name: array for name, array in self.root.arrays() if name != "done"}

    @property
    def done(self) -> np.ndarray:
        """Which units are done, `[model, chunk]`."""
        return np.asarray(self.root["done"][:], bool)  # type: ignore[index]

    def shape(self, name: str) -> tuple[int, ...]:
        """Return the shape of an array, `()` if there is none."""
        array: Any = self.root.get(name)
        return () if array is None else tuple(array.shape)

    def write(self, name: str, chunk: int, values: np.ndarray, model: int | None = None) -> None:
        """Write one array of a unit."""
        rows = self.record.rows(chunk)
        with self.explained(), _every_file_written():
            self.root[name][rows if model is None else (model, rows)] = values  # type: ignore[index]

    def write_missing(self, chunk: int, values: Mapping[str, Any], model: int) -> None:
        """Write the variables that a model does not return as missing, to complete a unit."""
        rows = self.record.rows(chunk)
        for name in self._model_arrays - {*values}:
            with self.explained(), _every_file_written():
                array: Any = self.root[name]
                array[model, rows] = array.fill_value

    def write_failures(self, chunk: int, failures: list[dict[str, Any]], model: int) -> None:
        """Write into the record on which samples of a unit a model failed, and why."""
        record = self.record
        rows, known = record.rows(chunk), record.models[model].failures
        others = [one for one in known if not rows.start <= one["sample"] < rows.stop]
        if failures or len(others) < len(known):
            failed = sorted(others + failures, key=lambda one: one["sample"])
            self.write_record(record.with_model(model, failures=failed))

    @cached_property
    def _model_arrays(self) -> frozenset[str]:
        return frozenset(name for name, array in self.arrays.items() if self._by_model(array))

    def mark_done(self, model: int, chunk: int, done: bool = True) -> None:
        """Set a unit's flag, after all its arrays are written."""
        with self.explained(), _every_file_written():
            self.root["done"][model, chunk] = done  # type: ignore[index]

    def add_models(self, entries: list[ModelEntry]) -> None:
        """Make room for more models, then name them in the record."""
        record = self.record
        count = len(record.models) + len(entries)
        with self.explained():
            for name, array in self.root.arrays():
                if name == "done" or self._by_model(array):
                    array.resize((count, *array.shape[1:]))
        self.write_record(replace(record, models=(*record.models, *entries)))

    def verify(self) -> list[tuple[int, int]]:
        """Read every finished unit; unset and return those whose files are damaged or gone."""
        damaged = []
        for model, chunk in np.argwhere(self.done):
            if not self._unit_is_sound(int(model), int(chunk)):
                self.mark_done(int(model), int(chunk), False)
                damaged.append((int(model), int(chunk)))
        return damaged

    def _unit_is_sound(self, model: int, chunk: int) -> bool:
        for array in self.arrays.values():
            if "sample" not in _dims(array):
                continue
            lead = [model, chunk] if self._by_model(array) else [chunk]
            cell = (*lead, *[0] * (array.ndim - len(lead)))
            key = f"{array.path}/{array.metadata.encode_chunk_key(cell)}"
            if not sync(array.store.exists(key)):
                return False
            try:
                array.get_block_selection(cell)
            except Exception:  # a checksum, a codec or the file system: the unit is recomputed
                return False
        return True

    @staticmethod
    def _by_model(array: zarr.Array[Any]) -> bool:
        return _dims(array)[:1] == ("model",)

    @contextmanager
    def explained(self) -> Iterator[None]:
        """Raise errors of the file system as `StoreError`."""
        try:
            yield
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                raise StoreError(
                    f"no space left on the device for {self.name}; all finished units are kept: "
                    "free some space and run the same scan again to continue"
                ) from error
            raise StoreError(f"{self.name} cannot be written: {error}") from error


def _every_file_written() -> Any:
    """Write chunks of fill values too, so that a missing file always means a loss.

    Zarr reads this setting when an array is opened and does not store it.
    """
    return zarr.config.set({"array.write_empty_chunks": True})


def _dims(array: zarr.Array[Any]) -> tuple[str | None, ...]:
    return getattr(array.metadata, "dimension_names", None) or ()


def create(
    path: Path | None, record: Record, specs: Mapping[str, ArraySpec], group: Group
) -> Store:
    """Create an empty store in memory, or on disk in a temporary folder that is then renamed."""
    if path is None:
        return _fill(Store(zarr.open_group(MemoryStore(), mode="w"), None), record, specs, group)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        building = Path(tempfile.mkdtemp(prefix=f".{path.name}."[:100], dir=path.parent))
    except OSError as error:
        raise StoreError(f"{str(path)!r} cannot be created: {error}") from error
    try:
        store = Store(zarr.open_group(LocalStore(building), mode="w"), path)
        _fill(store, record, specs, group)
        building.chmod(0o755)
        _put(building, path)
    except BaseException:
        shutil.rmtree(building, ignore_errors=True)
        raise
    return open_store(path)


def _put(building: Path, path: Path) -> None:
    """Rename a finished folder; if another scan was faster, its store stays."""
    try:
        building.rename(path)
    except OSError as error:
        if path.exists():
            raise StoreError(
                f"{str(path)!r} was created by another scan in the meantime; run this one again"
            ) from error
        raise StoreError(f"{str(path)!r} cannot be created: {error}") from error


def _fill(store: Store, record: Record, specs: Mapping[str, ArraySpec], group: Group) -> Store:
    with store.explained():
        for name, spec in specs.items():
            sizes = {"model": 1, "sample": record.run.chunk}
            shape = tuple(
                min(sizes.get(dim, size), max(size, 1))
                for dim, size in zip(spec.dims, spec.shape, strict=True)
            )
            _create_array(store.root, name, spec, shape)
        done = ArraySpec(("model", "chunk"), (len(record.models), record.chunks), "bool", {})
        _create_array(store.root, "done", done, (1, record.chunks))
        folder = store.root.create_group("group")
        for name, part in group.parts.items():
            folder.create_array(name, data=np.ascontiguousarray(part), chunks=part.shape)
        folder.create_array("weights", data=group.weights, chunks=group.weights.shape)
        folder.create_array("index", data=group.layout.index, chunks=group.layout.index.shape)
        folder.attrs["group"] = describe_group(group)
    store.write_record(record)
    return store


def _create_array(root: zarr.Group, name: str, spec: ArraySpec, chunks: tuple[int, ...]) -> None:
    root.create_array(
        name,
        shape=spec.shape,
        dtype=spec.dtype,
        chunks=chunks,
        dimension_names=spec.dims,
        fill_value=_MISSING[np.dtype(spec.dtype).kind],
        compressors=[
            BloscCodec(cname="zstd", clevel=1, shuffle="bitshuffle"),
            Crc32cCodec(),
        ],
        attributes=spec.attributes,
    )


def open_store(path: Path) -> Store:
    """Open a store for reading and writing."""
    if not path.exists():
        raise StoreError(
            f"path: expected a saved scan, got {str(path)!r}, which does not exist; save one with "
            "orbical.scan(..., out=...)"
        )
    try:
        root = zarr.open_group(LocalStore(path), mode="r+")
        written: Any = root.attrs[_RECORD]
        version = dict(written).get("format")
    except Exception as error:
        raise StoreError(
            f"{str(path)!r} is not an orbical store, or is too damaged to read "
            f"({type(error).__name__}); it is left unchanged"
        ) from error
    if version != FORMAT:
        raise StoreError(f"{str(path)!r} has format {version!r}, this version reads {FORMAT}")
    store = Store(root, path)
    if not _is_whole(store):
        raise StoreError(
            f"{str(path)!r} is too damaged to read: part of its record, its group or its flags is "
            "missing; it is left unchanged"
        )
    return store


def _is_whole(store: Store) -> bool:
    """Check whether a store has its record, its flags and its group."""
    root: Any = store.root
    try:
        store.record  # noqa: B018 - reading it checks every field
        return "done" in root and {"weights", "index"} <= {*root["group"].array_keys()}
    except (KeyError, TypeError, AttributeError):
        return False


def remove(path: Path) -> None:
    """Delete a store, unless it is being written; anything else is refused."""
    if path.exists():
        with locked(open_store(path)):
            try:
                shutil.rmtree(path)
            except OSError as error:
                raise StoreError(f"{str(path)!r} cannot be deleted: {error}") from error


@contextmanager
def locked(store: Store) -> Iterator[None]:
    """Keep a second scan from writing to the same store at the same time."""
    if store.path is None:
        yield
        return
    try:
        import fcntl
    except ImportError:  # pragma: no cover - no such locks on this system
        yield
        return
    folder = os.open(store.path, os.O_RDONLY)
    try:
        try:
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise StoreError(f"{store.name} is being written by another scan") from None
        yield
    finally:
        os.close(folder)
