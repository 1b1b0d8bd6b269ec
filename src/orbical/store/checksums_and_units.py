"""Checksums of files and documents, finished units, and a Zarr store that verifies every read."""

from __future__ import annotations

import hashlib
import json
import re
import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, field
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import zarr
from google_crc32c import value as crc32c
from numcodecs import Blosc
from zarr.abc.store import ByteRequest, RangeByteRequest
from zarr.codecs import BloscCodec
from zarr.core.array_spec import ArraySpec
from zarr.core.buffer import Buffer, BufferPrototype
from zarr.registry import register_codec
from zarr.storage import FsspecStore, LocalStore, WrapperStore

from ..errors import StoreError
from .file_access import (
    FOLDER,
    MOST_DOCUMENT_BYTES,
    behind_link,
    irregular_file,
    is_remote,
    listed_store_files,
    read_store_files,
    replace_file,
    write_file,
)
from .record import Json

_CHECKSUM = "checksum"


CRC_BYTES = 4
"""Of the checksum that Zarr's codec `crc32c` appends to each chunk."""


def checksum(content: bytes) -> str:
    """Return what binds a chunk to its unit: the checksum that it ends with, and its size.

    >>> checksum(bytes([1, 2, 3, 4, 5]))
    '02030405-5'
    """
    return f"{content[-CRC_BYTES:].hex()}-{len(content)}"


def is_sound_chunk(content: bytes, known: str) -> bool:
    """Check whether a chunk is the known one, and agrees with the checksum that it ends with."""
    tail = crc32c(content[:-CRC_BYTES]).to_bytes(CRC_BYTES, "little")
    return checksum(content) == known and content[-CRC_BYTES:] == tail


def checksum_size(known: str) -> int:
    """Return the size that a checksum states."""
    return int(known.partition("-")[2])


def json_digest(document: object) -> str:
    """Return a hash of a JSON document that does not depend on its layout."""
    text = json.dumps(document, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def sealed_json(document: Json) -> bytes:
    """Return a JSON document with a hash of itself."""
    return json.dumps({**document, _CHECKSUM: json_digest(dict(document))}).encode()


def unsealed_json(content: bytes) -> Json:
    """Read what `sealed_json` wrote; anything else raises `ValueError`."""
    document = json.loads(content)
    if not isinstance(document, dict) or document.pop(_CHECKSUM, None) != json_digest(document):
        raise ValueError("the checksum does not match")
    return document


def _is_chunk(key: str) -> bool:
    """Check whether a key names a file of numbers, not of metadata."""
    return not key.endswith("zarr.json")


class Ledger:
    """What is known about the chunks of a scan; by itself, what this process has written."""

    def __init__(self) -> None:
        self.known: dict[str, str] = {}  # checksums

    def mark_of(self, key: str) -> str | None:
        """Return the file that has the checksum of a chunk, if it has to be read first."""
        return None

    def learn(self, key: str, content: bytes | None) -> None:
        """Take the checksums of the unit of a chunk from its file."""

    def lost(self, key: str, why: str) -> StoreError:
        """Return the error for a file that is missing or damaged."""
        return StoreError(f"{key} is {why}")


class ChecksummedStore(WrapperStore[Any]):
    """The files of a scan: each chunk is verified when it is read, and hashed when it is written.

    Without this, a lost chunk reads as fill values. Chunks that the ledger does not know belong to
    unfinished units and are read as missing.
    """

    def __init__(self, store: object, root: Path, ledger: Ledger | None = None) -> None:
        super().__init__(store)
        self.root = root
        self.ledger = ledger or Ledger()
        self._token = uuid.uuid4().hex
        self._folders: set[str] = set()  # those that are no links

    @classmethod
    def at(cls, root: Path) -> ChecksummedStore:
        """Return the files in a folder, local or remote."""
        if not is_remote(root):
            return cls(LocalStore(root), root)
        options = dict(root.storage_options)  # type: ignore[attr-defined]
        return cls(FsspecStore.from_url(str(root), options), root)

    def _with_store(self, store: object) -> ChecksummedStore:
        return ChecksummedStore(store, self.root, self.ledger)

    def __dask_tokenize__(self) -> str:
        return self._token  # what was read before a repair is not what is read after it

    async def get(
        self, key: str, prototype: BufferPrototype, byte_range: ByteRequest | None = None
    ) -> Buffer | None:
        """Read a file; refuse one that is missing or has changed."""
        if not _is_chunk(key):
            return await super().get(key, prototype, byte_range)
        mark = self.ledger.mark_of(key)
        if mark is not None:
            said = await super().get(mark, prototype)
            self.ledger.learn(key, None if said is None else said.to_bytes())
        known = self.ledger.known.get(key)
        if known is None:
            return None
        self.refuse_odd(key)
        found = await super().get(key, prototype, RangeByteRequest(0, checksum_size(known) + 1))
        self._verify(key, known, None if found is None else found.to_bytes())
        return found

    def read_local(self, key: str) -> bytes | None:
        """Read a local file in the calling thread, verified like others."""
        mark = self.ledger.mark_of(key)
        if mark is not None:
            self.ledger.learn(key, next(read_store_files([self.root / mark], MOST_DOCUMENT_BYTES)))
        known = self.ledger.known.get(key)
        if known is None:
            return None
        self.refuse_odd(key)
        return self._verify(
            key, known, next(read_store_files([self.root / key], checksum_size(known)))
        )

    def refuse_odd(self, key: str) -> None:
        """Raise if a file is none, or lies behind a link."""
        why = "" if is_remote(self.root) else irregular_file(self.root, key, self._folders)
        if why:
            raise self.ledger.lost(key, why)

    def _verify(self, key: str, known: str, content: bytes | None) -> bytes:
        if content is None:
            raise self.ledger.lost(key, "missing")
        if not is_sound_chunk(content, known):
            raise self.ledger.lost(key, "damaged")
        return content

    def write_local(self, key: str, content: bytes) -> None:
        """Write a local file in the calling thread, atomically like others."""
        self._refuse_link(key)
        path = self.root / key
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, content)
        self.ledger.known[key] = checksum(content)

    def _refuse_link(self, key: str) -> None:
        if why := behind_link(self.root, key, self._folders):
            raise self.ledger.lost(key, why)

    async def set(self, key: str, value: Buffer) -> None:
        """Write a file atomically."""
        self._refuse_link(key)
        await super().set(key, value)
        if _is_chunk(key):
            self.ledger.known[key] = checksum(value.to_bytes())

    async def _set_many(self, values: Iterable[tuple[str, Buffer]]) -> None:
        for key, value in values:
            await self.set(key, value)


def packed_chunk(values: np.ndarray, codecs: Sequence[Json]) -> bytes:
    """Return numbers as a chunk, as Zarr writes it by `bytes`, `blosc` and `crc32c`."""
    blosc: Json = codecs[1]["configuration"]
    shuffle = getattr(Blosc, blosc["shuffle"].upper())
    coder = Blosc(blosc["cname"], blosc["clevel"], shuffle, blosc["blocksize"])
    content: bytes = coder.encode(values)
    tail: bytes = crc32c(content).to_bytes(CRC_BYTES, "little")
    return content + tail


class CheckedBlosc(BloscCodec):
    """The compression of a store's chunks: what is not of the expected size is not unpacked.

    Zarr unpacks whatever size a chunk states, and what is damaged raises errors of its compressor.
    """

    async def decode(
        self, chunks_and_specs: Iterable[tuple[Buffer | None, ArraySpec]]
    ) -> Iterable[Buffer | None]:
        """Unpack chunks."""
        chunks = list(chunks_and_specs)
        for chunk, spec in chunks:
            kind = spec.dtype.to_native_dtype()
            size = None if kind.hasobject or kind.kind == "T" else prod(spec.shape) * kind.itemsize
            check_chunk_bytes(b"" if chunk is None else chunk[:_HEADER_BYTES].to_bytes(), size)
        try:
            return await super().decode(chunks)
        except RuntimeError as error:
            raise StoreError(f"a chunk is damaged ({error})") from error


_HEADER_BYTES = 16


def check_chunk_bytes(content: bytes, size: int | None) -> None:
    """Raise if a chunk unpacks to another size than expected, or for texts to a very large one."""
    stated = int.from_bytes(content[4:8], "little")
    if content and (stated > MOST_DOCUMENT_BYTES if size is None else stated != size):
        raise StoreError(f"a chunk is damaged (it states {stated:,} bytes)")


_CHECKED = f"{CheckedBlosc.__module__}.{CheckedBlosc.__qualname__}"
register_codec("blosc", CheckedBlosc, qualname=_CHECKED)


def zarr_settings() -> AbstractContextManager[object]:
    """Return how Zarr opens arrays here: it unpacks with care, and writes chunks of fill values.

    A missing file is therefore a loss.
    """
    settings = {"array.write_empty_chunks": True, "codecs.blosc": _CHECKED}
    chosen: AbstractContextManager[object] = zarr.config.set(settings)
    return chosen


_NAME = re.compile(r"(shared|\d{1,9})\.(\d{1,9})\.([0-9a-f]{32})(\.note)?\.json", re.ASCII)
_FAILURE = {"sample", "element", "places", "error"}

UnitKey = tuple[int | None, int]
"""The number of a model and of a chunk; None for the arrays that all models share."""


@dataclass(frozen=True)
class UnitFile:
    """A finished unit: the checksums of its files by array, and where the model failed.

    `origin` is a hash of the scan and the model that made it, `data` one of the samples that it was
    made from. What opening a scan needs is in the name of the file: the unit, its origin, and
    whether there is something to note, so that a list of names is enough.
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

    def name(self, usual_batch: int) -> str:
        """Return the name of the file; failures and smaller batches are noted in it."""
        noted = self.failures or (self.batch_size or usual_batch) < usual_batch
        return unit_mark_name(self.key, self.origin, bool(noted))


def unit_mark_name(key: UnitKey, origin: str, noted: bool) -> str:
    """Return the name of the file of a unit."""
    lead = "shared" if key[0] is None else key[0]
    return f"{lead}.{key[1]}.{origin}{'.note' if noted else ''}.json"


def unit_has_note(name: str) -> bool:
    """Check whether the file of a unit notes a failure or a smaller batch."""
    return name.endswith(".note.json")


def write_unit(folder: Path, unit: UnitFile, usual_batch: int, durable: bool) -> str:
    """Call a unit finished; all its arrays have been written before."""
    name = unit.name(usual_batch)
    write_file(folder / FOLDER / name, sealed_json(asdict(unit)), durable)
    return name


def listed_units(folder: Path, expected: Iterable[str]) -> Iterator[tuple[UnitKey, str, str]]:
    """Yield the units that have a file: the unit, its origin and the name of its file.

    `expected` are the names to ask for on file systems that cannot be listed.
    """
    for name in listed_store_files(folder / FOLDER, expected):
        found = _NAME.fullmatch(name)
        if found:
            model, chunk, origin, _ = found.groups()
            yield (None if model == "shared" else int(model), int(chunk)), origin, name


def parsed_unit(content: bytes | None, key: UnitKey, origin: str) -> UnitFile | None:
    """Return what the file of a unit says; None if it is damaged, or that of another unit."""
    try:
        unit = UnitFile(**unsealed_json(content or b""))
    except (ValueError, TypeError, RecursionError):
        return None
    return unit if (unit.key, unit.origin) == (key, origin) and _unit_is_sound(unit) else None


def _unit_is_sound(unit: UnitFile) -> bool:
    """Check the types of what a file holds; its hash may be right all the same."""
    return (
        isinstance(unit.files, dict)
        and all(isinstance(known, str) for known in unit.files.values())
        and isinstance(unit.failures, list)
        and all({*one} >= _FAILURE and type(one["sample"]) is int for one in unit.failures)
        and (unit.batch_size is None or type(unit.batch_size) is int)
        and isinstance(unit.data, str | None)
    )
