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


def missing(store: Store) -> Iterator[Damage]:
    """Find files that must exist and do not, or have another size, without reading them."""
    if store.path is None:
        return
    for name, chunks in store.fixed.items():
        for cell, known in chunks.items():
            yield from _compared(store, f"{name}/c/{cell}", known, None)
    for key, unit in store.units.items():
        for name, known in unit.files.items():
            yield from _compared(store, store.chunk_key(name, *key), known, key)
    yield from _other_metadata(store)


def _compared(store: Store, key: str, known: str, unit: UnitKey | None) -> Iterator[Damage]:
    assert store.path is not None
    try:
        path = store.path / key
        about = path.stat() if is_remote(path) else path.lstat()
    except OSError:
        yield Damage(key, "missing", unit)
        return
    if not stat.S_ISREG(about.st_mode):
        yield Damage(key, "not a file but a link, a folder or a device", unit)
    elif about.st_size != size_in(known):
        yield Damage(key, "damaged", unit)


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
    for damage in missing(store):
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
    return [*_damaged(store), *(_lost_flag(store, key) for key in lost_flags(store))]


def _damaged(store: Store) -> list[Damage]:
    found = list(missing(store))
    if store.path is None:
        return found
    reported = {damage.key for damage in found}
    known = getattr(store.files, "known", {})
    units = {
        store.chunk_key(name, *key): key for key in store.units for name in store.units[key].files
    }
    for key, expected in known.items():
        if key not in reported:
            try:
                sound = checksum((store.path / key).read_bytes()) == expected
            except OSError:
                sound = False
            if not sound:
                found.append(Damage(key, "damaged", units.get(key)))
    return found


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
    own: Callable[[int], bool] = lambda chunk: True,
) -> Repair:
    """Repair a store that this process has locked, or the chunks of it that are its `own`.

    Units that are damaged, or whose mark is lost or that of another scan, are called unfinished:
    nothing else binds arrays to this scan. What is written once comes from `fixed`; without it,
    damage there is refused.
    """
    found = [*_damaged(store), *(_lost_flag(store, key) for key in _unmarked(store))]
    found = [one for one in found if one.unit is None or own(one.unit[1])]
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
