"""Results of a scan on disk: arrays that are filled unit by unit and survive a kill.

A store is a consolidated Zarr v3 folder that xarray opens by itself. Its unit of work and of
resumption is (model, chunk of samples, all elements): the arrays of a unit are written first, then
a small file that calls it finished, with the checksums of its arrays. Each file is written by an
atomic rename. A run that was killed therefore loses at most the unit it was in, and units share
nothing. The root has a hash of itself: of the record, of the checksums of everything that is
written once (coordinates, truth, group) and of the metadata of all arrays.

A model that is added claims its place by a file that can be created only once, on object stores
and on folders without locks too; the root follows from these claims.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict, replace
from functools import cached_property
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import zarr
from numcodecs import Blosc
from zarr.core.buffer import default_buffer_prototype
from zarr.core.sync import sync
from zarr.storage import MemoryStore, StorePath

from .._codecs import check_codecs
from ..errors import InputError, StoreError
from .checksums_and_units import (
    CRC_BYTES,
    ChecksummedStore,
    Ledger,
    UnitFile,
    UnitKey,
    check_chunk_bytes,
    json_digest,
    listed_units,
    packed_chunk,
    parsed_unit,
    sealed_json,
    unit_has_note,
    unit_mark_name,
    unsealed_json,
    write_unit,
    zarr_settings,
)
from .file_access import (
    FOLDER,
    MOST_DOCUMENT_BYTES,
    behind_link,
    create_file,
    exists,
    explained_store_errors,
    in_turn,
    irregular_file,
    is_remote,
    read_store_files,
    sync_files,
    write_file,
)
from .layout import Fixed, array_dims, check_array_sizes
from .record import FORMAT, Json, ModelEntry, Record
from .scan_arrays import row_runs

__all__ = ["Store", "open_store", "root_document"]

RECORD, _HASH = "orbical", "orbical_checksum"
CODECS = ["bytes", "blosc", "crc32c"]
"""How numbers are written; the checksum of the last one is at the end."""
_NAME = re.compile(r"(group/)?(?![A-Za-z]:)[^./\\\0][^/\\\0]*")
_CELL = re.compile(r"\d{1,9}(/\d{1,9})*", re.ASCII)
FOREIGN = "of another scan or model"
"""Why a unit is not read: its file is sound, but it was not made here."""


_FEW_UNITS = 4096
"""Of so many, all files are looked at when a store is opened; of more, each when it is read."""


_SMALL_BYTES = 1 << 18
"""Of a chunk that is decoded in less time than it takes to hand it to another thread."""


class Store(Ledger):
    """The arrays of a scan: written unit by unit, read with their checksums verified."""

    def __init__(self, files: ChecksummedStore | MemoryStore, document: Json) -> None:
        super().__init__()
        self.files = files
        self.path = files.root if isinstance(files, ChecksummedStore) else None
        self.document = document
        self.durable = False
        about = json.loads(document["attributes"][RECORD])
        self.record = Record.from_json(about["record"])
        self.fixed: dict[str, dict[str, str]] = about["files"]  # {array: {chunk: checksum}}
        self.units: dict[UnitKey, str] = {}  # those that are finished, and their files
        self.unreadable: dict[UnitKey, str] = {}  # and why
        self._read: dict[UnitKey, UnitFile] = {}  # what their files say
        self._origins: dict[int | None, str] = {}
        if isinstance(files, ChecksummedStore):
            self.known = files.ledger.known
            files.ledger = self
            self.reload()

    @property
    def name(self) -> str:
        """The name of the store in messages."""
        return "the scan in memory" if self.path is None else repr(str(self.path))

    @property
    def nodes(self) -> Json:
        """The metadata of all arrays and folders, by name."""
        found: Json = self.document["consolidated_metadata"]["metadata"]
        return found

    @cached_property
    def metadata(self) -> Json:
        """The metadata of all arrays, by name."""
        return {name: one for name, one in self.nodes.items() if one["node_type"] == "array"}

    def array(self, name: str) -> Any:
        """Open an array by the metadata here: others may add models and write theirs meanwhile."""
        with zarr_settings():
            return zarr.Array.from_dict(StorePath(self.files, name), self.metadata[name])

    def read_fixed(self, name: str) -> np.ndarray:
        """Read an array that was written once."""
        array = self.array(name)
        first = "/".join([name, "c", *["0"] * array.ndim])
        whole = self._local_chunk(array, first) if array.shape == array.chunks else None
        return np.asarray(array[:]) if whole is None else whole.copy()

    @cached_property
    def arrays(self) -> dict[str, zarr.Array[Any]]:
        """The arrays of results and of the truth, by name."""
        return {
            name: self.array(name)
            for name, metadata in self.metadata.items()
            if name in self.results or metadata["attributes"].get("meaning") == "truth"
        }

    @cached_property
    def results(self) -> dict[str, bool]:
        """The arrays that units fill, and whether they have a model dimension."""
        return {
            name: array_dims(metadata)[:2] == ("model", "sample")
            for name, metadata in self.metadata.items()
            if name not in self.fixed
        }

    def arrays_of(self, model: int | None) -> list[str]:
        """Return the arrays of a unit: those of a model, or those that all models share."""
        return [name for name, of_model in self.results.items() if of_model is (model is not None)]

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
        """List which units are finished; few local ones are also looked at."""
        assert self.path is not None
        for known in (self.units, self.unreadable, self._read, self.known):
            known.clear()
        expected = (
            unit_mark_name(key, self.origin(key[0]), noted)
            for key in self.keys
            for noted in (False, True)
        )
        for key, origin, name in listed_units(self.path, expected):
            model, chunk = key
            if chunk >= self.record.chunks or (model or 0) >= len(self.record.models):
                continue
            if origin != self.origin(model):
                self.unreadable[key] = FOREIGN
            else:
                self.units[key] = name
        for key in self.units:
            self.unreadable.pop(key, None)
        for name, chunks in self.fixed.items():
            self.known.update({f"{name}/c/{cell}": known for cell, known in chunks.items()})
        if self.is_small:
            for key, unit in [*self.read_units(self.units)]:
                if unit is None:
                    self.unreadable[key] = "damaged"
                    del self.units[key]

    @property
    def is_small(self) -> bool:
        """Whether all units are looked at when the store is opened."""
        local = self.path is not None and not is_remote(self.path)
        return local and len(self.units) <= _FEW_UNITS

    def read_units(self, keys: Iterable[UnitKey]) -> Iterator[tuple[UnitKey, UnitFile | None]]:
        """Yield what the files of finished units say; None for one that is missing or damaged."""
        asked = [key for key in keys if key in self.units]
        if self.path is not None:
            self._make_room()
            new = [key for key in asked if key not in self._read]
            paths = [self.path / FOLDER / self.units[key] for key in new]
            for key, content in zip(new, read_store_files(paths, MOST_DOCUMENT_BYTES), strict=True):
                self._take(key, content)
        yield from ((key, self._read.get(key)) for key in asked)

    def _take(self, key: UnitKey, content: bytes | None) -> bool:
        unit = parsed_unit(content, key, self.origin(key[0]))
        if unit is None or {*unit.files} != {*self.arrays_of(key[0])}:
            return False
        self._read[key] = unit
        self.known.update({self.chunk_key(name, *key): known for name, known in unit.files.items()})
        return True

    def _make_room(self) -> None:
        """Forget what files of units say, if these are many: they can be read again."""
        if self.path is not None and len(self._read) > _FEW_UNITS:
            for key in [*self._read]:
                for name in self._read.pop(key).files:
                    self.known.pop(self.chunk_key(name, *key), None)

    def unit(self, key: UnitKey) -> UnitFile | None:
        """Return what the file of a unit says, None if it is not finished."""
        return next(self._sound_units([key]), None)

    def _sound_units(self, keys: Iterable[UnitKey]) -> Iterator[UnitFile]:
        for key, unit in self.read_units(keys):
            if unit is None:
                raise self.lost(f"{FOLDER}/{self.units[key]}", "missing or damaged")
            yield unit

    def mark_of(self, key: str) -> str | None:
        """Return the file that has the checksum of a chunk, if it has to be read first."""
        unit = None if key in self.known else self._unit_of(key)
        return f"{FOLDER}/{self.units[unit]}" if unit in self.units else None

    def learn(self, key: str, content: bytes | None) -> None:
        """Take the checksums of the unit of a chunk from its file."""
        unit = self._unit_of(key)
        assert unit is not None
        self._make_room()
        if not self._take(unit, content):
            raise self.lost(f"{FOLDER}/{self.units[unit]}", "missing or damaged")

    def _unit_of(self, key: str) -> UnitKey | None:
        """Return the unit of a chunk, None for what is written once."""
        name, _, cell = key.partition("/c/")
        if name not in self.results:
            return None
        numbers = [int(number) for number in cell.split("/")]
        return (numbers[0], numbers[1]) if self.results[name] else (None, numbers[0])

    def shape(self, name: str) -> tuple[int, ...]:
        """Return the shape of an array, `()` if there is none."""
        return tuple(self.metadata[name]["shape"]) if name in self.metadata else ()

    def read(self, name: str, chunk: int, model: int | None = None) -> np.ndarray:
        """Read one array of a unit."""
        key, rows = self.chunk_key(name, model, chunk), self.record.rows(chunk)
        array: Any = self.arrays[name]
        whole = self._local_chunk(array, key) if name in self.results else None
        if whole is None:
            return np.asarray(array[rows if model is None else (model, rows)])
        return (whole if model is None else whole[0])[: rows.stop - rows.start]

    def read_rows(self, name: str, rows: slice, model: int | None = None) -> np.ndarray:
        """Read some samples of an array; small local files one after another, as `read` does."""
        array: Any = self.arrays[name]
        start, stop, step = rows.indices(self.record.data.samples)
        small = np.prod(array.chunks) * array.dtype.itemsize <= _SMALL_BYTES
        local = self.path is not None and not is_remote(self.path)
        if not (local and small and name in self.results and start < stop and step == 1):
            return np.asarray(array[rows if model is None else (model, rows)])
        size = self.record.run.chunk
        chunks = range(start // size, -(-stop // size))
        parts = [self.read(name, chunk, model) for chunk in chunks]
        return np.concatenate(parts)[start - chunks[0] * size :][: stop - start]

    def _local_chunk(self, array: Any, key: str) -> np.ndarray | None:
        """Read a chunk of numbers in this thread, None if there is none on this machine.

        Zarr hands each file through its event loop and several threads, which takes longer than to
        read a small one.
        """
        files = self._local_files(array.path)
        content = None if files is None else files.read_local(key)
        if content is None:
            return None
        try:
            check_chunk_bytes(content, prod(array.chunks) * array.dtype.itemsize)
            numbers = Blosc().decode(content[:-CRC_BYTES])
        except (RuntimeError, StoreError) as error:
            raise self.lost(key, "damaged") from error
        return np.frombuffer(numbers, array.dtype).reshape(array.chunks)

    def _local_files(self, name: str) -> ChecksummedStore | None:
        """Return the files of an array of numbers on this machine, if its codecs are the usual."""
        usual = [codec["name"] for codec in self.metadata[name]["codecs"]] == CODECS
        local = isinstance(self.files, ChecksummedStore) and not is_remote(self.files.root)
        return self.files if usual and local else None  # type: ignore[return-value]

    def write(self, name: str, chunk: int, values: np.ndarray, model: int | None = None) -> None:
        """Write one array of a unit; a single number fills it."""
        rows, array = self.record.rows(chunk), self.arrays[name]
        expected = (rows.stop - rows.start, *array.shape[1 if model is None else 2 :])
        if np.shape(values) not in ((), expected):  # Zarr would repeat some of them
            raise StoreError(
                f"{self.name}: {name} of {self.unit_name(model, chunk)} has the shape {expected}, "
                f"got {np.shape(values)}; let the model return one shape for all inputs"
            )
        files, lead = self._local_files(name), () if model is None else (1,)
        with explained_store_errors(self.name, "cannot be written"):
            if files is None:
                array[rows if model is None else (model, rows)] = values
                return
            # As Zarr does, without its event loop and threads.
            dtype = array.dtype.newbyteorder("<")
            block = np.full(array.chunks[len(lead) :], array.fill_value, dtype)
            block[: expected[0]] = values
            content = packed_chunk(block, self.metadata[name]["codecs"])
            files.write_local(self.chunk_key(name, model, chunk), content)

    def write_arrays(self, model: int | None, chunk: int, values: Mapping[str, Any]) -> None:
        """Write some arrays of a unit that is not finished; a single number fills one."""
        self._check_there()
        with ThreadPoolExecutor() as threads:  # they wait for the disk and for compression
            list(threads.map(lambda name: self.write(name, chunk, values[name], model), values))

    def finish(
        self,
        model: int | None,
        chunk: int,
        values: Mapping[str, np.ndarray],
        failures: list[Json] | None = None,
        batch_size: int | None = None,
        data: str | None = None,
        written: Collection[str] = (),
    ) -> None:
        """Write the arrays of a unit except those `written`, then the file that calls it finished.

        Variables that a model does not return are written as missing.
        """
        names = self.arrays_of(model)
        lacking = {name: self.arrays[name].fill_value for name in names if name not in written}
        self.write_arrays(model, chunk, {name: values.get(name, lacking[name]) for name in lacking})
        keys = [self.chunk_key(name, model, chunk) for name in names]
        files = {name: self.known.get(key, "") for name, key in zip(names, keys, strict=True)}
        unit = UnitFile(model, chunk, self.origin(model), files, failures or [], batch_size, data)
        if self.path is not None:
            with explained_store_errors(self.name, "cannot be written"):
                self._check_there()
                if self.durable:
                    written_to = [self.path / key for key in keys]
                    sync_files([*written_to, *{path.parent for path in written_to}])
                usual = self.record.run.batch_size
                name = write_unit(self.path, unit, usual, self.durable)
                if self.units.get(unit.key, name) != name:
                    (self.path / FOLDER / self.units[unit.key]).unlink(missing_ok=True)
        self._make_room()
        self.units[unit.key] = unit.name(self.record.run.batch_size)
        self._read[unit.key] = unit

    def _check_there(self) -> None:
        if self.path is not None and not (self.path / "zarr.json").exists():
            raise StoreError(f"{self.name} was deleted during the scan; run it again")

    def forget(self, key: UnitKey) -> None:
        """Call a unit unfinished, and delete its arrays."""
        mark = self.units.pop(key, None)
        self.unreadable.pop(key, None)
        self._read.pop(key, None)
        if self.path is None:
            return
        chunks = [self.chunk_key(name, *key) for name in self.arrays_of(key[0])]
        with explained_store_errors(self.name, "cannot be written"):
            for place in ([] if mark is None else [f"{FOLDER}/{mark}"]) + chunks:
                if not is_remote(self.path) and behind_link(self.path, place, set()):
                    continue
                with suppress(FileNotFoundError):  # remote file systems know no missing_ok
                    (self.path / place).unlink()
        for chunk in chunks:
            self.known.pop(chunk, None)

    def noted(self, model: int | None = None) -> Iterator[UnitFile]:
        """Return the units, of a model or of all, that note failures or a smaller batch."""
        keys = [
            key
            for key, name in self.units.items()
            if (model in (None, key[0])) and (self.path is None or unit_has_note(name))
        ]
        return self._sound_units(keys)

    def failures(self, model: int) -> list[Json]:
        """Return the samples on which a model raised an error."""
        failed = [one for unit in self.noted(model) for one in unit.failures]
        return sorted(failed, key=lambda one: one["sample"])

    def add_models(self, entries: list[ModelEntry]) -> None:
        """Make room for more models, each in a place that it has claimed.

        Another process may have added some of them in the meantime, and others.
        """
        models = [*self.record.models]
        for entry in entries:
            while entry.name not in [one.name for one in models]:
                place = len(models)
                if self.path is None or self._claim(place, entry):
                    models.append(entry)
                elif (other := self._claimed(place)) is not None:
                    models.append(other)
        if len(models) > len(self.record.models) or self._claimed(len(models)) is not None:
            with in_turn(self.path):
                self.grow(models)

    def _claim(self, place: int, entry: ModelEntry) -> bool:
        """Claim the place of a model; return whether nobody else has it."""
        with explained_store_errors(self.name, "cannot be written"):
            return create_file(self._claim_file(place), sealed_json(asdict(entry)))

    def _claimed(self, place: int) -> ModelEntry | None:
        """Return the model that claims a place, if any."""
        if self.path is None:
            return None
        with explained_store_errors(self.name, "is damaged: the claim of a model cannot be read"):
            content = next(read_store_files([self._claim_file(place)], MOST_DOCUMENT_BYTES))
            return None if content is None else ModelEntry(**unsealed_json(content))

    def _claim_file(self, place: int) -> Path:
        assert self.path is not None
        return self.path / FOLDER / f"model.{place}.{self.record.run_id}" / "claim.json"

    def grow(self, models: Sequence[ModelEntry] = ()) -> None:
        """Add models that have claimed their places; the new root makes them valid.

        Whoever claims a place after this has looked for the last time writes the root later too.
        """
        models = [*(models or self.record.models)]
        while True:
            while (other := self._claimed(len(models))) is not None:
                models.append(other)
            old = len(self.record.models)
            if len(models) == old:
                return
            self.record = replace(self.record, models=tuple(models))
            with explained_store_errors(self.name, "cannot be written"):
                for name, metadata in self.metadata.items():
                    if array_dims(metadata)[:1] == ("model",):
                        metadata["shape"][0] = len(models)
                        self._put(f"{name}/zarr.json", metadata)
                added = np.array([one.name for one in models[old:]], dtype=object)
                self.array("model")[old:] = added
            self.seal()

    def write_fixed(self, fixed: Mapping[str, Fixed]) -> None:
        """Write the arrays that are written once."""
        with explained_store_errors(self.name, "cannot be written"):
            for name, one in fixed.items():
                array, text = self.array(name), self.metadata[name]["data_type"] == "string"
                for rows in row_runs(len(one.values), array.chunks[0]):
                    values = np.array(one.values[rows], object if text else None)
                    if not text and not np.can_cast(values.dtype, array.dtype, "same_kind"):
                        expected = f"{array.dtype} in {name!r}, as in its first values"
                        raise InputError("data", expected, str(values.dtype))
                    array[rows] = values

    def write_metadata(self) -> None:
        """Write the metadata of each array as the root has it."""
        for name, metadata in self.nodes.items():
            own = {key: one for key, one in metadata.items() if key != "consolidated_metadata"}
            self._put(f"{name}/zarr.json", own)

    def seal(self) -> None:
        """Write the root with the record, the checksums of what is written once, and its hash."""
        for key, known in self.known.items():
            name, _, cell = key.partition("/c/")
            if name in self.fixed:
                self.fixed[name][cell] = known
        attributes = self.document["attributes"]
        attributes.pop(_HASH, None)
        about = {"record": self.record.to_json(), "files": self.fixed}
        attributes[RECORD] = json.dumps(about)
        attributes[_HASH] = json_digest(self.document)
        with explained_store_errors(self.name, "cannot be written"):
            self._put("zarr.json", self.document)
        self.__dict__.pop("arrays", None)  # whose shapes may have changed

    def _put(self, key: str, document: object) -> None:
        content = json.dumps(document).encode()
        if self.path is not None:
            write_file(self.path / key, content)
        else:
            buffer = default_buffer_prototype().buffer.from_bytes(content)
            sync(self.files.set(key, buffer))

    def unit_name(self, model: int | None, chunk: int) -> str:
        """Return the name of a unit in messages."""
        rows = self.record.rows(chunk)
        who = "all models" if model is None else f"model {self.record.names[model]!r}"
        return f"{who}, samples {rows.start} to {rows.stop - 1}"

    def lost(self, key: str, why: str) -> StoreError:
        """Return the error for a file of a finished unit that is missing or damaged."""
        place = self._unit_of(key)
        if place is None:
            place = next((one for one, mark in self.units.items() if key.endswith(mark)), None)
        unit = "" if place is None else f" ({self.unit_name(*place)})"
        first = "" if place is None else f" to compute it, after: orbical info --repair {self.path}"
        return StoreError(
            f"{self.name} is damaged: {key}{unit} is {why}; run the same scan again{first}"
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
    with explained_store_errors(name, damaged):
        document = root_document(path)
        attributes = document["attributes"]
        hashed = attributes.pop(_HASH, None)
        if hashed != json_digest(document):
            raise ValueError("the checksum of its root does not match")
        attributes[_HASH] = hashed
        _check_names_in_zarr_store(path, document)
        check_codecs(document)
        store = Store(ChecksummedStore.at(path), document)
        check_array_sizes(store.record, store.metadata, store.fixed)
    return store


def _check_names_in_zarr_store(path: Path, document: Json) -> None:
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
    root = path / "zarr.json"
    odd = irregular_file(path, root.name, set())
    if odd:
        raise ValueError(f"its root is {odd}")
    content = next(read_store_files([root], MOST_DOCUMENT_BYTES))
    if content is None:
        if root.exists():
            raise ValueError("its root is too large")
        raise FileNotFoundError(root)
    document: Json = json.loads(content)
    written = document["attributes"][RECORD]
    about = json.loads(written)["record"] if isinstance(written, str) else dict(written)
    if about["format"] != FORMAT:
        raise StoreError(
            f"{str(path)!r} has format {about['format']!r}, this version reads {FORMAT}; scan "
            "again into another store, or replace this one with overwrite=True"
        )
    return document
