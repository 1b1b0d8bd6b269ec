"""Results of a scan on disk: arrays that are filled unit by unit and survive a kill.

A store is a consolidated Zarr v3 folder that xarray opens by itself. Its unit of work and of
resumption is (model, chunk of samples, all elements): the arrays of a unit are written first, then
a small file that calls it finished, with the checksums of its arrays. Each file is written by an
atomic rename. A run that was killed therefore loses at most the unit it was in, and units share
nothing. The root has a hash of itself: of the record, of the checksums of everything that is
written once (coordinates, truth, group) and of the metadata of all arrays.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import zarr
from numcodecs import Blosc
from zarr.core.buffer import default_buffer_prototype
from zarr.core.sync import sync
from zarr.storage import MemoryStore

from ..errors import StoreError
from .checksums import CheckedStore, UnitFile, UnitKey, digest, read_units, unit_path, write_unit
from .file_access import FOLDER, exists, explained, is_remote, sync_files, write_file
from .layout import Fixed, by_model, check_sizes, dims_of
from .record import FORMAT, Json, ModelEntry, Record

__all__ = ["Store", "open_store", "root_document"]

RECORD, _HASH = "orbical", "orbical_checksum"
CODECS = ["bytes", "blosc", "crc32c"]
"""How numbers are written; the checksum of the last one is at the end."""
_CRC_BYTES = 4
_NAME = re.compile(r"(group/)?(?![A-Za-z]:)[^./\\\0][^/\\\0]*")
_CELL = re.compile(r"\d{1,9}(/\d{1,9})*", re.ASCII)
FOREIGN = "of another scan or model"
"""Why a unit is not read: its file is sound, but it was not made here."""


class Store:
    """The arrays of a scan: written unit by unit, read with their checksums verified."""

    def __init__(self, files: CheckedStore | MemoryStore, document: Json) -> None:
        self.files = files
        self.path = files.root if isinstance(files, CheckedStore) else None
        self.document = document
        self.durable = False
        about = json.loads(document["attributes"][RECORD])
        self.record = Record.from_json(about["record"])
        self.fixed: dict[str, dict[str, str]] = about["files"]  # {array: {chunk: checksum}}
        self.units: dict[UnitKey, UnitFile] = {}
        self.unreadable: dict[UnitKey, str] = {}  # and why
        self._origins: dict[int | None, str] = {}
        if isinstance(files, CheckedStore):
            files.lost = self.lost
            self.reload()

    @property
    def name(self) -> str:
        """The name of the store in messages."""
        return "the scan in memory" if self.path is None else repr(str(self.path))

    @cached_property
    def metadata(self) -> Json:
        """The metadata of all arrays, by name."""
        consolidated = self.document["consolidated_metadata"]["metadata"]
        return {name: one for name, one in consolidated.items() if one["node_type"] == "array"}

    @cached_property
    def root(self) -> zarr.Group:
        """The Zarr group; chunks of fill values are written too, so a missing file is a loss."""
        with zarr.config.set({"array.write_empty_chunks": True}):
            return zarr.open_group(self.files, mode="r+", use_consolidated=True)

    @cached_property
    def arrays(self) -> dict[str, zarr.Array[Any]]:
        """The arrays of results and of the truth, by name."""
        with zarr.config.set({"array.write_empty_chunks": True}):
            return {
                name: array
                for name, array in self.root.arrays()
                if name in self._results or array.attrs.get("meaning") == "truth"
            }

    @cached_property
    def _results(self) -> dict[str, bool]:
        """The arrays that units fill, and whether they have a model dimension."""
        return {
            name: by_model(metadata)
            for name, metadata in self.metadata.items()
            if name not in self.fixed
        }

    def arrays_of(self, model: int | None) -> list[str]:
        """Return the arrays of a unit: those of a model, or those that all models share."""
        return [name for name, of_model in self._results.items() if of_model is (model is not None)]

    def chunk_key(self, name: str, model: int | None, chunk: int) -> str:
        """Return the file of an array of a unit."""
        lead = [chunk] if model is None else [model, chunk]
        rest = [0] * (len(self.metadata[name]["shape"]) - len(lead))
        return "/".join([name, "c", *map(str, lead + rest)])

    def origin(self, model: int | None) -> str:
        """Return the mark of this scan and a model in its units; an entry never changes."""
        if model not in self._origins:
            self._origins[model] = self.record.origin(model)
        return self._origins[model]

    @property
    def keys(self) -> list[UnitKey]:
        """All units, finished or not."""
        models = [*range(len(self.record.models)), *([None] if self.arrays_of(None) else [])]
        return [(model, chunk) for chunk in range(self.record.chunks) for model in models]

    @property
    def done(self) -> np.ndarray:
        """Which units are done, `[model, chunk]`."""
        shared = self.arrays_of(None)
        done = np.zeros((len(self.record.models), self.record.chunks), bool)
        for model, chunk in self.units:
            if model is not None:
                done[model, chunk] = not shared or (None, chunk) in self.units
        return done

    def reload(self) -> None:
        """Read from disk which units are finished."""
        assert isinstance(self.files, CheckedStore)
        self.units.clear()
        self.unreadable.clear()
        for key, unit in read_units(self.files.root, self.keys):
            if unit is not None and unit.origin != self.origin(key[0]):
                self.unreadable[key] = FOREIGN
            elif unit is None or {*unit.files} != {*self.arrays_of(key[0])}:
                self.unreadable[key] = "damaged"
            else:
                self.units[key] = unit
        self.files.known.clear()
        for name, chunks in self.fixed.items():
            self.files.known.update({f"{name}/c/{cell}": known for cell, known in chunks.items()})
        for (model, chunk), unit in self.units.items():
            for name, known in unit.files.items():
                self.files.known[self.chunk_key(name, model, chunk)] = known

    def shape(self, name: str) -> tuple[int, ...]:
        """Return the shape of an array, `()` if there is none."""
        return tuple(self.metadata[name]["shape"]) if name in self.metadata else ()

    def read(self, name: str, chunk: int, model: int | None = None) -> np.ndarray:
        """Read one array of a unit.

        Zarr hands each file through its event loop and several threads, which takes longer than to
        read a small one; a local file of a finished unit is read and decoded in this thread.
        """
        array: Any = self.arrays[name]
        key, rows = self.chunk_key(name, model, chunk), self.record.rows(chunk)
        usual = [codec["name"] for codec in self.metadata[name]["codecs"]] == CODECS
        content = self._local_file(key) if usual and name in self._results else None
        if content is None:
            return np.asarray(array[rows if model is None else (model, rows)])
        numbers = Blosc().decode(content[:-_CRC_BYTES])
        whole = np.frombuffer(numbers, array.dtype).reshape(array.chunks)
        return (whole if model is None else whole[0])[: rows.stop - rows.start]

    def _local_file(self, key: str) -> bytes | None:
        """Read the file of a finished unit, None if there is none on this machine."""
        files = self.files
        if not isinstance(files, CheckedStore) or is_remote(files.root) or key not in files.known:
            return None
        return files.read_local(key)

    def write(self, name: str, chunk: int, values: np.ndarray, model: int | None = None) -> None:
        """Write one array of a unit; a single number fills it."""
        rows, array = self.record.rows(chunk), self.arrays[name]
        expected = (rows.stop - rows.start, *array.shape[1 if model is None else 2 :])
        if np.shape(values) not in ((), expected):  # Zarr would repeat some of them
            raise StoreError(
                f"{self.name}: {name} of {self.unit_name(model, chunk)} has the shape {expected}, "
                f"got {np.shape(values)}"
            )
        with explained(self.name, "cannot be written"):
            array[rows if model is None else (model, rows)] = values

    def finish(
        self,
        model: int | None,
        chunk: int,
        written: Mapping[str, np.ndarray],
        failures: list[Json] | None = None,
        batch_size: int | None = None,
        data: str | None = None,
    ) -> None:
        """Write the arrays of a unit, then the file that calls it finished.

        Variables that a model does not return are written as missing.
        """
        names = self.arrays_of(model)
        self._check_there()
        values = [written.get(name, self.arrays[name].fill_value) for name in names]
        with ThreadPoolExecutor() as threads:  # they wait for the disk and for compression
            list(threads.map(lambda name, one: self.write(name, chunk, one, model), names, values))
        keys = [self.chunk_key(name, model, chunk) for name in names]
        known = self.files.known if isinstance(self.files, CheckedStore) else {}
        files = {name: known.get(key, "") for name, key in zip(names, keys, strict=True)}
        unit = UnitFile(model, chunk, self.origin(model), files, failures or [], batch_size, data)
        if self.path is not None:
            with explained(self.name, "cannot be written"):
                self._check_there()
                if self.durable:
                    written_to = [self.path / key for key in keys]
                    sync_files([*written_to, *{path.parent for path in written_to}])
                write_unit(self.path, unit, self.durable)
        self.units[unit.key] = unit

    def _check_there(self) -> None:
        if self.path is not None and not (self.path / "zarr.json").exists():
            raise StoreError(f"{self.name} was deleted during the scan")

    def forget(self, key: UnitKey) -> None:
        """Call a unit unfinished, and delete its arrays."""
        self.units.pop(key, None)
        self.unreadable.pop(key, None)
        if isinstance(self.files, CheckedStore):
            root, chunks = (
                self.files.root,
                [self.chunk_key(n, *key) for n in self.arrays_of(key[0])],
            )
            with explained(self.name, "cannot be written"):
                for path in (unit_path(root, key), *(root / chunk for chunk in chunks)):
                    path.unlink(missing_ok=True)
            for chunk in chunks:
                self.files.known.pop(chunk, None)

    def failures(self, model: int) -> list[Json]:
        """Return the samples on which a model raised an error."""
        of_model = [unit for unit in self.units.values() if unit.model == model]
        failed = [one for unit in of_model for one in unit.failures]
        return sorted(failed, key=lambda one: one["sample"])

    def add_models(self, entries: list[ModelEntry]) -> None:
        """Make room for more models; the new root makes it valid."""
        record = replace(self.record, models=(*self.record.models, *entries))
        with explained(self.name, "cannot be written"):
            for name, metadata in self.metadata.items():
                if dims_of(metadata)[:1] == ("model",):
                    metadata["shape"][0] = len(record.models)
                    self._put(f"{name}/zarr.json", metadata)
            names: Any = zarr.open_array(self.files, path="model", mode="r+")  # not the old root
            names[len(self.record.models) :] = np.array([e.name for e in entries], dtype=object)
        self.record = record
        self.seal()

    def write_fixed(self, fixed: Mapping[str, Fixed]) -> None:
        """Write the arrays that are written once."""
        with explained(self.name, "cannot be written"):
            for name, one in fixed.items():
                text = one.values.dtype.kind in "UO"
                array: Any = self.root[name]
                array[...] = one.values.astype(object) if text else one.values

    def write_metadata(self) -> None:
        """Write the metadata of each array as the root has it."""
        for name, metadata in self.document["consolidated_metadata"]["metadata"].items():
            own = {key: one for key, one in metadata.items() if key != "consolidated_metadata"}
            self._put(f"{name}/zarr.json", own)

    def seal(self) -> None:
        """Write the root with the record, the checksums of what is written once, and its hash."""
        if isinstance(self.files, CheckedStore):
            for key, known in self.files.known.items():
                name, _, cell = key.partition("/c/")
                if name in self.fixed:
                    self.fixed[name][cell] = known
        attributes = self.document["attributes"]
        attributes.pop(_HASH, None)
        about = {"record": self.record.to_json(), "files": self.fixed}
        attributes[RECORD] = json.dumps(about)
        attributes[_HASH] = digest(self.document)
        with explained(self.name, "cannot be written"):
            self._put("zarr.json", self.document)
        self._reopen()

    def _put(self, key: str, document: object) -> None:
        content = json.dumps(document).encode()
        if self.path is not None:
            write_file(self.path / key, content)
        else:
            buffer = default_buffer_prototype().buffer.from_bytes(content)
            sync(self.files.set(key, buffer))

    def _reopen(self) -> None:
        for name in ("root", "arrays"):
            self.__dict__.pop(name, None)

    def unit_name(self, model: int | None, chunk: int) -> str:
        """Return the name of a unit in messages."""
        rows = self.record.rows(chunk)
        who = "all models" if model is None else f"model {self.record.names[model]!r}"
        return f"{who}, samples {rows.start} to {rows.stop - 1}"

    def lost(self, key: str, why: str) -> StoreError:
        """Return the error for a file of a finished unit that is missing or damaged."""
        name, _, cell = key.partition("/c/")
        unit = ""
        if name in self._results:
            numbers = [int(number) for number in cell.split("/")]
            place = (numbers[0], numbers[1]) if self._results[name] else (None, numbers[0])
            unit = f" ({self.unit_name(*place)})"
        return StoreError(
            f"{self.name} is damaged: {key}{unit} is {why}; run the same scan again to compute it "
            f"again, or call it unfinished with: orbical info --repair {self.path}"
        )


def open_store(path: Path) -> Store:
    """Open a store for reading and writing."""
    if not exists(path):
        or_hidden = " or cannot be reached" if is_remote(path) else ""
        raise StoreError(
            f"path: expected a saved scan, got {str(path)!r}, which does not exist{or_hidden}; "
            "save one with orbical.scan(..., out=...)"
        )
    if not is_remote(path) and path.is_file():
        raise StoreError(
            f"path: expected the folder of a saved scan, got the file {str(path)!r}; if a scan is "
            "packed in it, unpack it first"
        )
    name = repr(str(path))
    damaged = "is not an orbical store, or is too damaged to read; it is left unchanged"
    with explained(name, damaged):
        document = root_document(path)
        attributes = document["attributes"]
        hashed = attributes.pop(_HASH, None)
        if hashed != digest(document):
            raise ValueError("the checksum of its root does not match")
        attributes[_HASH] = hashed
        _check_names(path, document)
        store = Store(CheckedStore.at(path), document)
        check_sizes(store.record, store.metadata, store.fixed)
    return store


def _check_names(path: Path, document: Json) -> None:
    """Refuse names that lead out of the folder, before any path is made of them."""
    names = {*document["consolidated_metadata"]["metadata"]}
    files = json.loads(document["attributes"][RECORD])["files"]
    if not (files.keys() <= names and all(map(_NAME.fullmatch, names))):
        raise ValueError("its arrays have impossible names")
    if not all(_CELL.fullmatch(cell) for chunks in files.values() for cell in chunks):
        raise ValueError("its chunks have impossible names")
    if not is_remote(path) and any((path / name).is_symlink() for name in (*names, FOLDER)):
        raise ValueError("a folder in it is a link")


def root_document(path: Path) -> Json:
    """Return the root of a folder that is a store of this format, sound or not."""
    document: Json = json.loads((path / "zarr.json").read_bytes())
    written = document["attributes"][RECORD]
    about = json.loads(written)["record"] if isinstance(written, str) else dict(written)
    if about["format"] != FORMAT:
        raise StoreError(
            f"{str(path)!r} has format {about['format']!r}, this version reads {FORMAT}; scan "
            "again into another store, or delete this one"
        )
    return document
