"""Stores come and go: create one, whole or not at all, and delete one."""

from __future__ import annotations

import json
import shutil
import tempfile
import warnings
from collections.abc import Mapping
from pathlib import Path

import zarr
from zarr.core.buffer import default_buffer_prototype
from zarr.core.sync import sync
from zarr.storage import MemoryStore

from ..errors import StoreError
from ..groups import Group
from .checksums import CheckedStore
from .file_access import exists, explained, is_remote, locked, remove_folder, write_file
from .layout import (
    ArraySpec,
    Fixed,
    create_fixed,
    create_result,
    data_attributes,
    describe_group,
    fixed_arrays,
)
from .record import Record
from .zarr_store import RECORD, Store, open_store, root_document

__all__ = ["create", "remove"]


def create(
    path: Path | None,
    record: Record,
    specs: Mapping[str, ArraySpec],
    group: Group,
    facts: Mapping[str, Fixed],
) -> Store:
    """Create a store in memory; or in a temporary folder, which is then renamed or sent away."""
    fixed = fixed_arrays(record.names, group, facts)
    if path is None:
        return _filled(MemoryStore(), record, specs, group, fixed)
    with explained(repr(str(path)), "cannot be created"):
        beside = None if is_remote(path) else path.parent
        if beside is not None:
            beside.mkdir(parents=True, exist_ok=True)
        building = Path(tempfile.mkdtemp(prefix=f".{path.name}."[:100], dir=beside))
    try:
        with explained(repr(str(path)), "cannot be created"):
            _filled(CheckedStore.at(building), record, specs, group, fixed)
            building.chmod(0o755)
            if is_remote(path):
                _send(building, path)
        if not is_remote(path):
            _put(building, path)
    except BaseException:
        shutil.rmtree(building, ignore_errors=True)
        raise
    return open_store(path)


def _send(building: Path, path: Path) -> None:
    """Copy a finished folder to a remote place, its root last: without it there is no store."""
    root = building / "zarr.json"
    files = [one for one in building.rglob("*") if one.is_file() and one != root]
    for file in [*files, root]:
        write_file(path / file.relative_to(building).as_posix(), file.read_bytes())
    shutil.rmtree(building)


def _put(building: Path, path: Path) -> None:
    """Rename a finished folder; if another scan was faster, its store stays."""
    try:
        building.rename(path)
    except OSError as error:
        if path.exists():
            raise StoreError(
                f"{str(path)!r} was created by another scan in the meantime; run this one again"
            ) from error
        raise StoreError(f"{str(path)!r} cannot be created: {error}") from error


def _filled(
    files: CheckedStore | MemoryStore,
    record: Record,
    specs: Mapping[str, ArraySpec],
    group: Group,
    fixed: Mapping[str, Fixed],
) -> Store:
    root = zarr.open_group(files, mode="w")
    for name, spec in specs.items():
        create_result(root, name, spec, record.run.chunk)
    for name, one in fixed.items():
        create_fixed(root, name, one)
    root["group"].attrs["group"] = json.dumps(describe_group(group))
    about = {"record": record.to_json(), "files": {name: {} for name in fixed}}
    root.attrs.update(
        {**data_attributes(record, group, {**specs, **fixed}), RECORD: json.dumps(about)}
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # consolidated, and zarr's own extension
        zarr.consolidate_metadata(files)
    content = sync(files.get("zarr.json", default_buffer_prototype()))
    assert content is not None
    store = Store(files, json.loads(content.to_bytes()))
    store.write_fixed(fixed)
    store.seal()
    return store


def remove(path: Path) -> None:
    """Delete a store, damaged or not, unless it is being written; anything else is refused."""
    if exists(path):
        with explained(repr(str(path)), "is not an orbical store; it is left unchanged"):
            root_document(path)
        with locked(path), explained(repr(str(path)), "cannot be deleted"):
            remove_folder(path)
