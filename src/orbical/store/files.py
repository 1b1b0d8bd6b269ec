"""Files and locks: atomic writes, syncing to the disk, one writer at a time, errors explained."""

from __future__ import annotations

import errno
import os
import shutil
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from ..errors import OrbicalError, StoreError


def is_remote(path: Path) -> bool:
    """Check whether a path lies on another file system: a `UPath`, as an URL becomes.

    >>> is_remote(Path("run.zarr"))
    False
    """
    return not isinstance(path, Path)


def exists(path: Path) -> bool:
    """Check whether there is something at the path of a store.

    A remote store is written file by file, its root last; without a root there is none.
    """
    with explained(repr(str(path)), "cannot be reached"):
        return (path / "zarr.json" if is_remote(path) else path).exists()


@contextmanager
def explained(name: str, failed: str) -> Iterator[None]:
    """Raise what zarr, JSON, memory and local or remote file systems raise as `StoreError`."""
    try:
        yield
    except OrbicalError:
        raise
    except Exception as error:
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise StoreError(
                f"no space left on the device for {name}; all finished units are kept: "
                "free some space and run the same scan again to continue"
            ) from error
        words = " ".join(str(error).split())[:200]
        why = words if isinstance(error, OSError) else f"{type(error).__name__}: {words}"
        raise StoreError(f"{name} {failed} ({why})") from error


def write_file(path: Path, content: bytes, durable: bool = False) -> None:
    """Write a file so that it is seen whole or not at all."""
    if is_remote(path):  # object stores have no folders, and would make a bucket
        path.write_bytes(content)
        return
    path.parent.mkdir(exist_ok=True)
    building = path.with_name(f"{path.name}.{uuid.uuid4().hex}.partial")
    try:
        with building.open("wb") as file:
            file.write(content)
            if durable:
                file.flush()
                os.fsync(file.fileno())
        building.replace(path)
    except BaseException:
        building.unlink(missing_ok=True)
        raise
    if durable:
        sync_files([path.parent])


def sync_files(paths: Iterable[Path]) -> None:
    """Wait until files and folders are on the disk; what is remote was sent when it was written."""
    for path in paths:
        if is_remote(path):
            continue
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def remove_folder(path: Path) -> None:
    """Delete a folder and all that it holds."""
    if is_remote(path):
        path.fs.rm(path.path, recursive=True)  # type: ignore[attr-defined]
    else:
        shutil.rmtree(path)


@contextmanager
def locked(path: Path | None) -> Iterator[None]:
    """Keep a second scan from writing to the same store at the same time.

    Remote file systems have no locks. Units share nothing, so two scans would only do work twice.
    """
    try:
        import fcntl
    except ImportError:  # pragma: no cover - no such locks on this system
        path = None
    if path is None or is_remote(path):
        yield
        return
    with explained(repr(str(path)), "cannot be locked"):
        folder = os.open(path, os.O_RDONLY)
    try:
        try:
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise StoreError(f"{str(path)!r} is being written by another scan") from None
        except OSError:  # a file system without locks: units share nothing, so this is safe
            pass
        yield
    finally:
        os.close(folder)


def being_written(path: Path) -> bool:
    """Check whether a scan is writing to a store now."""
    try:
        with locked(path):
            return False
    except StoreError:
        return True
