"""Find what is lost or damaged in a store, and repair what can be repaired."""

from __future__ import annotations

import json
import stat
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from ..errors import StoreError
from .checksums import UnitKey, checksum, size_in, unit_path
from .file_access import being_written, explained, is_remote
from .layout import Fixed
from .record import Json
from .zarr_store import FOREIGN, Store


@dataclass(frozen=True)
class Damage:
    """A part of a store that is missing or damaged.

    Attributes:
        key: the file.
        why: missing, damaged, or what else is wrong.
        unit: the unit of the file; None for what is written once.
    """

    key: str
    why: str
    unit: UnitKey | None = None


def _damages(
    store: Store, fault: Callable[[Path, str], str], own: Callable[[int], bool]
) -> Iterator[Damage]:
    """Find the files with a fault, of what is written once and of the units in `own` chunks."""
    if store.path is None:
        return
    files = [
        (f"{name}/c/{cell}", known, None)
        for name, chunks in store.fixed.items()
        for cell, known in chunks.items()
    ] + [
        (store.chunk_key(name, *unit), known, unit)
        for unit in store.units
        if own(unit[1])
        for name, known in store.units[unit].files.items()
    ]
    for key, known, unit in files:
        why = fault(store.path / key, known)
        if why:
            yield Damage(key, why, unit)
    yield from _other_metadata(store)


def _everywhere(chunk: int) -> bool:
    return True


def _fault_of_size(path: Path, known: str) -> str:
    """Return what is wrong with a file, as far as that is seen without reading it."""
    try:
        about = path.stat() if is_remote(path) else path.lstat()
    except OSError:
        return "missing"
    if not stat.S_ISREG(about.st_mode):
        return "not a file but a link, a folder or a device"
    return "" if about.st_size == size_in(known) else "damaged"


def _fault_of_content(path: Path, known: str) -> str:
    """Return what is wrong with a file, by its checksum."""
    fault = _fault_of_size(path, known)
    try:
        return fault or ("" if checksum(path.read_bytes()) == known else "damaged")
    except OSError:
        return "damaged"


def _other_metadata(store: Store) -> Iterator[Damage]:
    """Find arrays whose own metadata differ from those in the root, which xarray reads."""
    assert store.path is not None
    for name, expected in store.document["consolidated_metadata"]["metadata"].items():
        key = f"{name}/zarr.json"
        try:
            own = json.loads((store.path / key).read_bytes())
        except (OSError, ValueError, RecursionError):
            own = None
        if own is None or _without_members(own) != _without_members(expected):
            yield Damage(key, "damaged, or a scan was killed while adding a model")


def _without_members(metadata: object) -> Json | None:
    if not isinstance(metadata, dict):
        return None
    return {key: value for key, value in metadata.items() if key != "consolidated_metadata"}


def refuse_missing(store: Store) -> None:
    """Refuse a store that has lost a file; remote files are verified when they are read."""
    if store.path is not None and is_remote(store.path):
        return
    for damage in _damages(store, _fault_of_size, _everywhere):
        raise store.lost(damage.key, damage.why)


def lost_flags(store: Store) -> list[UnitKey]:
    """Find units whose arrays all exist but which are not known to be finished.

    A scan that is writing now, or was killed between the two, leaves one for a moment.
    """
    path = store.path
    if path is None or is_remote(path):  # a question for each file; a scan asks them itself
        return []
    found = list(_unmarked(store))
    if found and being_written(path):
        return []
    # A unit that another process finished since this store was opened has its mark by now.
    return [key for key in found if key in store.unreadable or not unit_path(path, key).exists()]


def _unmarked(store: Store) -> Iterator[UnitKey]:
    path = store.path or Path()

    def all_exist(key: UnitKey) -> bool:
        names = store.arrays_of(key[0])
        return all((path / store.chunk_key(name, *key)).exists() for name in names)

    for key in store.keys:
        if key not in store.units and (key in store.unreadable or all_exist(key)):
            yield key


def verify(store: Store) -> list[Damage]:
    """Read everything; return what is missing or damaged. Nothing is changed."""
    damages = _damages(store, _fault_of_content, _everywhere)
    return [*damages, *(_lost_flag(store, key) for key in lost_flags(store))]


def _lost_flag(store: Store, unit: UnitKey) -> Damage:
    foreign = store.unreadable.get(unit) == FOREIGN
    return Damage(str(unit_path(Path(), unit)), FOREIGN if foreign else "missing or damaged", unit)


@dataclass(frozen=True)
class Repair:
    """What a repair did.

    Attributes:
        restored: files that were written again.
        unfinished: units that the next scan computes again.
    """

    restored: list[str]
    unfinished: list[UnitKey]


def repair(
    store: Store,
    fixed: Mapping[str, Fixed] | None = None,
    own: Callable[[int], bool] = _everywhere,
) -> Repair:
    """Repair a store that this process has locked, or the chunks of it that are its `own`.

    Units that are damaged, or whose mark is lost or that of another scan, are called unfinished:
    nothing else binds arrays to this scan. What is written once comes from `fixed`; without it,
    damage there is refused.
    """
    lost = [_lost_flag(store, key) for key in _unmarked(store) if own(key[1])]
    found = [*_damages(store, _fault_of_content, own), *lost]
    if not found:
        return Repair([], [])
    once = [damage for damage in found if damage.unit is None and "/c/" in damage.key]
    if once and fixed is None:
        raise StoreError(
            f"{store.name}: {once[0].key} is {once[0].why} and can only be written again by the "
            "scan; run the same scan again"
        )
    with explained(store.name, "cannot be repaired"):
        store.write_metadata()
        if once and fixed is not None:
            store.write_fixed(fixed)
            store.seal()
        restored = [one.key for one in found if one.unit is None]
        unfinished = list(dict.fromkeys(one.unit for one in found if one.unit is not None))
        for key in unfinished:
            store.forget(key)
    return Repair(restored, unfinished)
