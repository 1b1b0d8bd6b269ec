"""Checksums of files and documents, finished units, and a Zarr store that verifies every read."""

from __future__ import annotations

import hashlib
import json
import os
import re
import uuid
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from zarr.abc.store import ByteRequest
from zarr.core.buffer import Buffer, BufferPrototype
from zarr.storage import FsspecStore, LocalStore, WrapperStore

from ..errors import StoreError
from .file_access import FOLDER, is_remote, write_file
from .record import Json

_CHECKSUM = "checksum"


def checksum(content: bytes) -> str:
    """Return the CRC-32 and the size of a file.

    >>> checksum(b"orbit")
    'b4720513-5'
    """
    return f"{zlib.crc32(content):08x}-{len(content)}"


def size_in(known: str) -> int:
    """Return the size that a checksum states."""
    return int(known.partition("-")[2])


def digest(document: object) -> str:
    """Return a hash of a JSON document that does not depend on its layout."""
    text = json.dumps(document, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def sealed(document: Json) -> bytes:
    """Return a JSON document with a hash of itself."""
    return json.dumps({**document, _CHECKSUM: digest(dict(document))}).encode()


def unsealed(content: bytes) -> Json:
    """Read what `sealed` wrote; anything else raises `ValueError`."""
    document = json.loads(content)
    if not isinstance(document, dict) or document.pop(_CHECKSUM, None) != digest(document):
        raise ValueError("the checksum does not match")
    return document


def is_chunk(key: str) -> bool:
    """Check whether a key names a file of numbers, not of metadata."""
    return not key.endswith("zarr.json")


class CheckedStore(WrapperStore[Any]):
    """The files of a scan: each chunk is verified when it is read, and hashed when it is written.

    Without this, a lost chunk reads as fill values. `known` has the checksums of all chunks of
    finished units; other chunks belong to unfinished units and are read as missing.
    """

    def __init__(
        self,
        store: object,
        root: Path,
        known: dict[str, str] | None = None,
        lost: Callable[[str, str], StoreError] | None = None,
    ) -> None:
        super().__init__(store)
        self.root = root
        self.known = {} if known is None else known
        self.lost = lost or (lambda key, why: StoreError(f"{key} is {why}"))
        self._token = uuid.uuid4().hex

    @classmethod
    def at(cls, root: Path) -> CheckedStore:
        """Return the files in a folder, local or remote."""
        if not is_remote(root):
            return cls(LocalStore(root), root)
        options = dict(root.storage_options)  # type: ignore[attr-defined]
        return cls(FsspecStore.from_url(str(root), options), root)

    def _with_store(self, store: object) -> CheckedStore:
        return CheckedStore(store, self.root, self.known, self.lost)

    def __dask_tokenize__(self) -> str:
        return self._token  # what was read before a repair is not what is read after it

    async def get(
        self, key: str, prototype: BufferPrototype, byte_range: ByteRequest | None = None
    ) -> Buffer | None:
        """Read a file; refuse one that is missing or has changed."""
        if not is_chunk(key):
            return await super().get(key, prototype, byte_range)
        if key not in self.known:
            return None
        found = await super().get(key, prototype)
        self._verify(key, None if found is None else found.to_bytes())
        return found

    def read_local(self, key: str) -> bytes:
        """Read the local file of a finished chunk in the calling thread, verified like others."""
        try:
            found: bytes | None = (self.root / key).read_bytes()
        except FileNotFoundError:
            found = None
        return self._verify(key, found)

    def _verify(self, key: str, content: bytes | None) -> bytes:
        if content is None:
            raise self.lost(key, "missing")
        if checksum(content) != self.known[key]:
            raise self.lost(key, "damaged")
        return content

    async def set(self, key: str, value: Buffer) -> None:
        """Write a file atomically."""
        await super().set(key, value)
        if is_chunk(key):
            self.known[key] = checksum(value.to_bytes())

    async def _set_many(self, values: Iterable[tuple[str, Buffer]]) -> None:
        for key, value in values:
            await self.set(key, value)


_NAME = re.compile(r"(shared|\d{1,9})\.(\d{1,9})\.json", re.ASCII)
_FAILURE = {"sample", "element", "places", "error"}

UnitKey = tuple[int | None, int]
"""The number of a model and of a chunk; None for the arrays that all models share."""


@dataclass(frozen=True)
class UnitFile:
    """A finished unit: the checksums of its files by array, and where the model failed.

    `origin` is a hash of the scan and the model that made it, `data` one of the samples that it was
    made from.
    """

    model: int | None
    chunk: int
    origin: str
    files: dict[str, str]
    failures: list[Json] = field(default_factory=list)
    batch_size: int | None = None
    data: str | None = None

    @property
    def key(self) -> UnitKey:
        """The unit."""
        return self.model, self.chunk


def unit_path(folder: Path, key: UnitKey) -> Path:
    """Return the file of a unit."""
    model, chunk = key
    return folder / FOLDER / f"{'shared' if model is None else model}.{chunk}.json"


def write_unit(folder: Path, unit: UnitFile, durable: bool) -> None:
    """Call a unit finished; all its arrays have been written before."""
    write_file(unit_path(folder, unit.key), sealed(asdict(unit)), durable)


def read_units(folder: Path, keys: Iterable[UnitKey]) -> Iterator[tuple[UnitKey, UnitFile | None]]:
    """Yield those of the units that have a file; None for a file that is damaged."""
    contents = (_remote if is_remote(folder) else _local)(folder, {*keys})
    for key, content in contents:
        yield key, _parsed(content, key)


def _local(folder: Path, keys: set[UnitKey]) -> Iterator[tuple[UnitKey, bytes | None]]:
    """Read what lies in the folder, which is faster than to ask for each unit."""
    try:
        entries = sorted(os.scandir(folder / FOLDER), key=lambda entry: entry.name)
    except FileNotFoundError:
        return
    for entry in entries:
        named = _NAME.fullmatch(entry.name)
        if named:
            model, chunk = named.groups()
            key = (None if model == "shared" else int(model), int(chunk))
            if key in keys:
                try:
                    regular = entry.is_file(follow_symlinks=False)  # a pipe would be read for ever
                    yield key, Path(entry.path).read_bytes() if regular else None
                except OSError:
                    yield key, None


def _remote(folder: Any, keys: set[UnitKey]) -> Iterator[tuple[UnitKey, bytes | None]]:
    """Request all units at once; not every remote file system lists its folders."""
    paths = {unit_path(folder, key).path: key for key in keys}  # type: ignore[attr-defined]
    for path, content in folder.fs.cat([*paths], on_error="return").items():
        if isinstance(content, FileNotFoundError):
            continue
        if isinstance(content, Exception):
            raise content
        yield paths[path], content


def _parsed(content: bytes | None, key: UnitKey) -> UnitFile | None:
    try:
        unit = UnitFile(**unsealed(content or b""))
        return unit if unit.key == key and _is_sound(unit) else None
    except (ValueError, TypeError, RecursionError):
        return None


def _is_sound(unit: UnitFile) -> bool:
    """Check the types of what a file holds; its hash may be right all the same."""
    return (
        isinstance(unit.files, dict)
        and all(isinstance(known, str) for known in unit.files.values())
        and isinstance(unit.failures, list)
        and all({*one} >= _FAILURE and type(one["sample"]) is int for one in unit.failures)
        and (unit.batch_size is None or type(unit.batch_size) is int)
        and isinstance(unit.data, str | None)
    )
