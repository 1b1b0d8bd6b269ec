"""Checksums of files and JSON documents, and a Zarr store that verifies them on every read."""

from __future__ import annotations

import hashlib
import json
import uuid
import zlib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from zarr.abc.store import ByteRequest
from zarr.core.buffer import Buffer, BufferPrototype
from zarr.storage import FsspecStore, LocalStore, WrapperStore

from ..errors import StoreError
from .file_access import is_remote
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


def digest(document: Any) -> str:
    """Return a hash of a JSON document that does not depend on its layout."""
    text = json.dumps(document, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def sealed(document: Mapping[str, Any]) -> bytes:
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
        store: Any,
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

    def _with_store(self, store: Any) -> CheckedStore:
        return CheckedStore(store, self.root, self.known, self.lost)

    def __dask_tokenize__(self) -> str:
        return self._token  # what was read before a repair is not what is read after it

    async def get(
        self,
        key: str,
        prototype: BufferPrototype,
        byte_range: ByteRequest | None = None,
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
