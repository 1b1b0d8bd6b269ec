"""What a reader adds to a scan: named sets and findings, in a folder `<store>.view` beside it.

The folder holds documents (`NAME.json`) and packed bits (`HASH.bits`, named by their contents).
Files are data only, limited in size, and written so that they are seen whole or not at all; changes
of a document wait for each other, also between processes. Where nothing can be written, changes are
kept in memory and the reason is stated.
"""

from __future__ import annotations

import contextlib
import copy
import hashlib
import json
import re
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..errors import InputError, StoreError
from ..store import explained_store_errors, is_remote, waiting_lock, write_file

SUFFIX = ".view"
MOST_DOCUMENT_BYTES = 1 << 20
MOST_BITS_BYTES = 16 << 20
MOST_FILES = 1000
"""The most files of a folder, so that a page cannot fill a disk."""


class Sidecar:
    """The folder of a scan's view.

    Args:
        store: The scan's own folder; None for a scan in memory.

    Attributes:
        unsaved: Why changes are kept in memory only; empty while they are saved.

    Example:
        >>> beside = Sidecar(None)
        >>> beside.update("findings", [], lambda found: [*found, {"title": "a 6 read as a 9"}])
        [{'title': 'a 6 read as a 9'}]
        >>> beside.unsaved
        'the scan is in memory only'
    """

    def __init__(self, store: Path | None) -> None:
        self.folder = None if store is None else store.with_name(store.name + SUFFIX)
        self.unsaved = ""
        if self.folder is None:
            self.unsaved = "the scan is in memory only"
        elif is_remote(self.folder):
            self.unsaved = "the scan is on a remote file system"
        elif self.folder.is_symlink():
            self.unsaved = f"{self.folder.name!r} is a link"
        self._held: dict[str, bytes] = {}
        self._turn = threading.RLock()

    def read(self, name: str, default: Any) -> Any:
        """Return a document, or `default` if there is none; a damaged one raises `StoreError`."""
        found = self._content(_file(name), MOST_DOCUMENT_BYTES)
        if found is None:
            return copy.deepcopy(default)
        with explained_store_errors(f"{name}.json", "cannot be read; repair or remove it"):
            return json.loads(found)

    def update(self, name: str, default: object, change: Callable[[object], object]) -> Any:
        """Replace a document by a function of it, while others wait, and return the new one."""
        file = _file(name)
        with self._turn:
            if not self.unsaved:
                try:
                    self._place.mkdir(exist_ok=True)
                    with waiting_lock(self._place):
                        return self._replace(file, name, default, change)
                except OSError as error:
                    self._give_up(error)
            return self._replace(file, name, default, change)

    def bits(self, key: str) -> bytes | None:
        """Return the packed bits of a set, None if there are none or they were altered."""
        if not re.fullmatch(r"[0-9a-f]{16}", key):
            return None
        found = self._content(f"{key}.bits", MOST_BITS_BYTES)
        return found if found is not None and bits_key(found) == key else None

    def keep_bits(self, bits: bytes) -> str:
        """Keep the packed bits of a set, and return their key."""
        key = bits_key(bits)
        if self.bits(key) is None:
            with self._turn:
                self._write(f"{key}.bits", bits, MOST_BITS_BYTES)
        return key

    def drop_bits(self, key: str) -> None:
        """Delete the packed bits of a set, which nothing names any more; what cannot be stays."""
        if self.bits(key) is None:
            return
        with self._turn, contextlib.suppress(OSError):
            self._held.pop(f"{key}.bits", None)
            if not self.unsaved:
                (self._place / f"{key}.bits").unlink(missing_ok=True)

    @property
    def _place(self) -> Path:
        assert self.folder is not None
        return self.folder

    def _give_up(self, error: OSError) -> None:
        """Go on in memory, and state why."""
        self.unsaved = f"{self._place.name!r} cannot be written ({error.strerror or error})"

    def _replace(
        self, file: str, name: str, default: object, change: Callable[[object], object]
    ) -> Any:
        made = change(self.read(name, default))
        text = json.dumps(made, ensure_ascii=False, allow_nan=False, indent=1)
        self._write(file, text.encode(), MOST_DOCUMENT_BYTES)
        return made

    def _content(self, file: str, most: int) -> bytes | None:
        if file in self._held:  # newer than the disk, which could not be written
            return self._held[file]
        if self.folder is None or is_remote(self.folder) or self.folder.is_symlink():
            return None
        path = self.folder / file
        if path.is_symlink() or not path.is_file():  # a link could lead to any file
            return None
        with (
            explained_store_errors(f"{self.folder.name}/{file}", "cannot be read"),
            path.open("rb") as content,
        ):
            found = content.read(most + 1)
        if len(found) > most:
            raise StoreError(f"{file}: expected at most {most:,} bytes, got more")
        return found

    def _write(self, file: str, content: bytes, most: int) -> None:
        if len(content) > most:
            raise InputError(file, f"at most {most:,} bytes", f"{len(content):,}")
        files = self._files()
        if file not in files and len(files) >= MOST_FILES:
            raise InputError(file, f"at most {MOST_FILES} files beside a scan", "more")
        if not self.unsaved:
            try:
                self._place.mkdir(exist_ok=True)
                write_file(self._place / file, content)
                self._held.pop(file, None)
                return
            except OSError as error:
                self._give_up(error)
        self._held[file] = content

    def _files(self) -> set[str]:
        if self.unsaved or not self._place.is_dir():
            return {*self._held}
        return {path.name for path in self._place.iterdir()}


def bits_key(bits: bytes) -> str:
    """Return the key of packed bits: the first 16 hexadecimal digits of their SHA-256."""
    return hashlib.sha256(bits).hexdigest()[:16]


def _file(name: str) -> str:
    if not re.fullmatch(r"[a-z][a-z0-9_-]{0,63}", name):
        raise InputError("name", "lowercase letters, digits, - and _", repr(name))
    return f"{name}.json"
