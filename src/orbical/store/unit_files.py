"""Finished units: a small file for each (model, chunk of samples), so that units share nothing."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from .checksums import sealed, unsealed
from .file_access import FOLDER, is_remote, write_file
from .record import Json

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
