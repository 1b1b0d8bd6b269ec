"""Find what is lost or damaged in a store, and repair what can be repaired."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from ..errors import StoreError
from .checksums_and_units import CRC_BYTES, UnitKey, checksum_size, is_sound_chunk, unit_mark_name
from .file_access import (
    FOLDER,
    MOST_DOCUMENT_BYTES,
    being_written,
    explained_store_errors,
    file_sizes_below,
    in_turn,
    irregular_file,
    is_remote,
    listed_store_files,
    read_store_files,
)
from .layout import Fixed, array_dims
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


Files = list[tuple[str, str]]
"""Files of a store, with their checksums."""
Faults = Iterator[tuple[str, str]]
"""Files, and what is wrong with them."""
Sizes = Callable[[str], int | None] | None


_LITTLE_BYTES = 1 << 26


def _everywhere(chunk: int) -> bool:
    return True


def _verified_damages(
    store: Store, look: Callable[[Path, Sizes, Files], Faults], own: Callable[[int], bool]
) -> Iterator[Damage]:
    """Find the files with a fault, of what is written once and of the units in `own` chunks."""
    if store.path is None:
        return
    sizes = file_sizes_below(store.path)
    fixed = store.fixed.items()
    once = [(f"{name}/c/{cell}", known) for name, one in fixed for cell, known in one.items()]
    yield from (Damage(key, why) for key, why in look(store.path, sizes, once))
    for unit, mark in [*store.read_units([key for key in store.units if own(key[1])])]:
        if mark is None:
            yield Damage(f"{FOLDER}/{store.units[unit]}", "missing or damaged", unit)
            continue
        files = [(store.chunk_key(name, *unit), known) for name, known in mark.files.items()]
        yield from (Damage(key, why, unit) for key, why in look(store.path, sizes, files))
    yield from _damaged_metadata(store)


def _absent_files(store: Store, own: Callable[[int], bool]) -> Iterator[Damage]:
    """Find what a list of a bucket lacks: it loses no part of an object, so nothing is read."""
    assert store.path is not None
    sizes = file_sizes_below(store.path)
    if sizes is None:
        return
    once = [f"{name}/c/{cell}" for name, cells in store.fixed.items() for cell in cells]
    once += [f"{name}/zarr.json" for name in store.nodes]
    yield from (Damage(key, "missing") for key in once if not sizes(key))
    for unit in store.units:
        if own(unit[1]):
            keys = (store.chunk_key(name, *unit) for name in store.arrays_of(unit[0]))
            yield from (Damage(key, "missing", unit) for key in keys if not sizes(key))


def _faults_by_size(path: Path, sizes: Sizes, files: Files) -> Faults:
    """Look at what is seen without reading: the size of a file, and that it is one."""
    if sizes is None:
        return
    folders: set[str] = set()
    for key, known in files:
        size = sizes(key)
        odd = "" if is_remote(path) else irregular_file(path, key, folders)
        if size is None or odd or size != checksum_size(known):
            yield key, "missing" if size is None else odd or "damaged"


def _faults_by_tail(path: Path, sizes: Sizes, files: Files) -> Faults:
    """Look at the size of files and, where that costs no request, at the checksum at their end."""
    faults = dict(_faults_by_size(path, sizes, files))
    yield from faults.items()
    for key, known in files if not is_remote(path) else ():
        if key not in faults:
            with (path / key).open("rb") as file:
                file.seek(-CRC_BYTES, os.SEEK_END)
                if file.read().hex() != known.partition("-")[0]:
                    yield key, "damaged"


def _by_content(path: Path, sizes: Sizes, files: Files) -> Faults:
    """Read files and compare them with their checksums."""
    faults = dict(_faults_by_size(path, sizes, files))
    yield from faults.items()
    sized = [(key, known) for key, known in files if key not in faults]
    contents = read_store_files([path / key for key, _ in sized])
    for (key, known), content in zip(sized, contents, strict=True):
        if content is None or not is_sound_chunk(content, known):
            yield key, "damaged"


def _damaged_metadata(store: Store) -> Iterator[Damage]:
    """Find arrays whose own metadata differ from those in the root, which xarray reads."""
    assert store.path is not None
    paths = [store.path / f"{name}/zarr.json" for name in store.nodes]
    contents = read_store_files(paths, MOST_DOCUMENT_BYTES)
    for (name, expected), content in zip(store.nodes.items(), contents, strict=True):
        key = f"{name}/zarr.json"
        try:
            own = json.loads(content or b"")
        except (ValueError, RecursionError):
            own = None
        if _damage_of_metadata(own, expected) != _damage_of_metadata(expected, expected):
            yield Damage(key, "damaged")


def _damage_of_metadata(metadata: object, expected: Json) -> Json | None:
    """Return what of metadata must be as expected: not members, and room for a further model.

    A scan that adds one makes room for it before the root says so.
    """
    if not isinstance(metadata, dict):
        return None
    found = {key: value for key, value in metadata.items() if key != "consolidated_metadata"}
    shape, known = found.get("shape"), expected.get("shape")
    if isinstance(shape, list) and known and array_dims(expected)[:1] == ("model",):
        more = bool(shape) and type(shape[0]) is int and shape[0] > known[0]
        found["shape"] = [*known[:1], *shape[1:]] if more else shape
    return found


def refuse_missing_files(store: Store) -> None:
    """Refuse a store that has lost a file; those of many or remote units when they are read."""
    if store.path is not None and not is_remote(store.path):
        own = _everywhere if store.is_small else lambda chunk: False
        for damage in _verified_damages(store, _faults_by_size, own):
            raise store.lost(damage.key, damage.why)


def units_without_mark(store: Store) -> list[UnitKey]:
    """Find units whose arrays all exist but which are not known to be finished.

    A scan that is writing now, or was killed between the two, leaves one for a moment.
    """
    path = store.path
    if path is None or is_remote(path):  # a question for each file; a scan asks them itself
        return []
    found = list(_unmarked_units(store, _everywhere))
    if found and being_written(path):
        return []
    # A unit that another process finished since this store was opened has its mark by now.
    names = {*listed_store_files(path / FOLDER, ())} if found else set()
    marks = {key: unit_mark_name(key, store.origin(key[0]), False) for key in found}
    return [key for key in found if key in store.unreadable or marks[key] not in names]


def _unmarked_units(store: Store, own: Callable[[int], bool]) -> Iterator[UnitKey]:
    """Yield unfinished units whose arrays exist, by lists of what exists."""
    yield from (key for key in store.unreadable if own(key[1]))
    path = store.path
    if path is None or is_remote(path):
        return
    for model in [*range(len(store.record.models)), None]:
        names = store.arrays_of(model)
        if not names:
            continue
        first = Path(store.chunk_key(names[0], model, 0))
        depth = first.parts.index("c") + (1 if model is None else 2)
        for chunk in listed_store_files(path.joinpath(*first.parts[:depth]), ()):
            key = (model, int(chunk)) if chunk.isdecimal() else None
            if key is None or key in store.units or key in store.unreadable or not own(key[1]):
                continue
            if all((path / store.chunk_key(name, *key)).exists() for name in names):
                yield key


def verify(store: Store) -> list[Damage]:
    """Read everything; return what is missing or damaged. Nothing is changed."""
    damages = _verified_damages(store, _by_content, _everywhere)
    return [*damages, *(_lost_flag(store, key) for key in units_without_mark(store))]


def _lost_flag(store: Store, unit: UnitKey) -> Damage:
    foreign = store.unreadable.get(unit) == FOREIGN
    mark = f"{FOLDER}/{unit_mark_name(unit, store.origin(unit[0]), False)}"
    return Damage(mark, FOREIGN if foreign else "missing or damaged", unit)


@dataclass(frozen=True)
class Repair:
    """What a repair did.

    Attributes:
        restored: files that were written again.
        unfinished: units that the next scan computes again.
    """

    restored: list[str]
    unfinished: list[UnitKey]


def _is_little(store: Store, own: Callable[[int], bool]) -> bool:
    """Check whether the files of units are few megabytes, as the first suggests."""
    keys = [key for key in store.units if own(key[1])]
    first = next((unit for _, unit in store.read_units(keys[:1])), None)
    size = 0 if first is None else sum(map(checksum_size, first.files.values()))
    return size * len(keys) < _LITTLE_BYTES


def repair(
    store: Store, fixed: Mapping[str, Fixed] | None = None, own: Callable[[int], bool] = _everywhere
) -> Repair:
    """Repair a store that this process has locked, or the chunks of it that are its `own`.

    Units that are damaged, or whose mark is lost or that of another scan, are called unfinished:
    nothing else binds arrays to this scan. What is written once comes from `fixed`; without it,
    damage there is refused, and everything is read. A scan, which has it, reads again what is
    little; of more it looks at sizes and at the checksums that files end with, and of a bucket at a
    list, since what else is wrong with them is seen when they are read.
    """
    lost = [_lost_flag(store, key) for key in _unmarked_units(store, own)]
    if fixed is not None and store.path is not None and is_remote(store.path):
        seen = _absent_files(store, own)
    else:
        look = _by_content if fixed is None or _is_little(store, own) else _faults_by_tail
        seen = _verified_damages(store, look, own)
    found = [*seen, *lost]
    if not found:
        return Repair([], [])
    once = [damage for damage in found if damage.unit is None and "/c/" in damage.key]
    if once and fixed is None:
        raise StoreError(
            f"{store.name}: {once[0].key} is {once[0].why} and can only be written again by the "
            "scan; run the same scan again"
        )
    # Others wait meanwhile, and may have added models since this store was opened.
    with explained_store_errors(store.name, "cannot be repaired"), in_turn(store.path):
        store.grow()
        store.write_metadata()
        if once and fixed is not None:
            store.write_fixed(fixed)
            store.seal()
            store.grow()  # buckets have no locks
        restored = [one.key for one in found if one.unit is None]
        unfinished = list(dict.fromkeys(one.unit for one in found if one.unit is not None))
        marked = {one.unit for one in found if one not in lost}
        for key in unfinished:
            if fixed is None or key in marked:  # others may be writing those without a mark
                store.forget(key)
    return Repair(restored, unfinished)
