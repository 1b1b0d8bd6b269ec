"""Stores come and go: create one, whole or not at all, and delete one."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from pathlib import Path

from zarr.storage import MemoryStore

from ..errors import StoreError
from ..groups import Group
from .checksums_and_units import ChecksummedStore
from .file_access import (
    create_file,
    exists,
    explained_store_errors,
    is_remote,
    locked,
    temporary_folder,
    write_file,
)
from .layout import (
    ArraySpec,
    Fixed,
    consolidated_metadata,
    data_attributes,
    fixed_arrays,
    fixed_metadata,
    group_metadata_in_layout,
    result_metadata,
)
from .record import Record
from .zarr_store import RECORD, Store, open_store, root_document

__all__ = ["check_overwritable", "create"]


def create(
    path: Path | None,
    record: Record,
    specs: Mapping[str, ArraySpec],
    group: Group,
    facts: Mapping[str, Fixed],
    overwrite: bool = False,
) -> Store:
    """Create a store, in memory without a path.

    It is made in a temporary folder, which is then renamed or sent away, so that nobody sees half
    of it. What it overwrites is renamed before, and deleted in the end: a kill leaves the old
    store, the new one, or none.
    """
    fixed = fixed_arrays(record.names, group, facts)
    if path is None:
        return _filled_on_creation(MemoryStore(), record, specs, group, fixed)
    with ExitStack() as stack, explained_store_errors(repr(str(path)), "cannot be created"):
        if is_remote(path):
            there = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            there = stack.enter_context(temporary_folder(path))
        building = there / "new"
        building.mkdir()
        _filled_on_creation(ChecksummedStore.at(building), record, specs, group, fixed)
        replaced = overwrite and exists(path)
        if is_remote(path):
            if replaced:
                path.fs.rm(path.path, recursive=True)  # type: ignore[attr-defined]
            _send(building, path)
        else:
            if replaced:
                with locked(path):
                    path.rename(there / "old")
            _put(building, path)
    return open_store(path)


def _send(building: Path, path: Path) -> None:
    """Copy a finished folder to a remote place, its root last: without it there is no store."""
    root = building / "zarr.json"
    files = [one for one in building.rglob("*") if one.is_file() and one != root]
    for file in files:
        write_file(path / file.relative_to(building).as_posix(), file.read_bytes())
    if not create_file(path / "zarr.json", root.read_bytes()):
        raise _created_by_another(path)


def _put(building: Path, path: Path) -> None:
    """Rename a finished folder; if another scan was faster, its store stays."""
    try:
        building.rename(path)
    except OSError as error:
        if path.exists():
            raise _created_by_another(path) from error
        raise


def _created_by_another(path: Path) -> StoreError:
    return StoreError(
        f"{str(path)!r} was created by another scan in the meantime; run this one again"
    )


def _filled_on_creation(
    files: ChecksummedStore | MemoryStore,
    record: Record,
    specs: Mapping[str, ArraySpec],
    group: Group,
    fixed: Mapping[str, Fixed],
) -> Store:
    results = {name: result_metadata(spec, record.run.chunk) for name, spec in specs.items()}
    once = {name: fixed_metadata(one) for name, one in fixed.items()}
    about = {"record": record.to_json(), "files": {name: {} for name in fixed}}
    attributes = data_attributes(record, group, {**specs, **fixed})
    document = {
        "attributes": {**attributes, RECORD: json.dumps(about)},
        "zarr_format": 3,
        "consolidated_metadata": consolidated_metadata(
            {**results, **once, "group": group_metadata_in_layout(group)}
        ),
        "node_type": "group",
    }
    store = Store(files, document)
    store.write_metadata()
    store.write_fixed(fixed)
    store.seal()
    return store


def check_overwritable(path: Path) -> None:
    """Refuse to overwrite what is neither a store, damaged or not, nor an empty folder."""
    kept = "is not an orbical store; it is left unchanged: choose another folder"
    with explained_store_errors(repr(str(path)), kept):
        if not is_remote(path) and path.is_dir():
            if not any(path.iterdir()):
                return
            with suppress(OSError, ValueError, LookupError, TypeError):  # the root may be damaged
                about = json.loads((path / "group" / "zarr.json").read_bytes())["attributes"]
                if isinstance(json.loads(about["group"])["spec"], str):
                    return
        root_document(path)
