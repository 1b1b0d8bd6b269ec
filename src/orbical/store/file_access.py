"""Files and locks: atomic writes, syncing to the disk, one writer at a time, errors explained."""

from __future__ import annotations

import errno
import glob
import os
import shutil
import tempfile
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from ..errors import OrbicalError, StoreError

try:
    import fcntl
except ImportError:  # pragma: no cover - no such locks on this system
    fcntl = None  # type: ignore[assignment]

FOLDER = "units"
"""The folder of a store with a file for each finished unit, and for each part that is running."""

_PART = "part."


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


@contextmanager
def temporary_folder(path: Path) -> Iterator[Path]:
    """Make a folder beside a path, hidden and locked, for what will be renamed to the path.

    It is gone in the end, whatever is left of it. If this process is killed, the next one that
    makes such a folder deletes it.
    """
    for other in path.parent.glob(f"{glob.escape(_hidden(path))}*") if fcntl is not None else ():
        if other.is_dir() and any(other.iterdir()) and _is_free(other):
            shutil.rmtree(other, ignore_errors=True)
    folder = Path(tempfile.mkdtemp(prefix=_hidden(path), dir=path.parent))
    try:
        with _lock(path, folder, "taken"):  # before anything is in it: empty ones are not deleted
            yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _hidden(path: Path) -> str:
    return f".{path.name}.new."[:100]


@contextmanager
def locked(path: Path | None, shared: bool = False) -> Iterator[None]:
    """Keep a second scan from writing to the same store; parts of one scan share the lock.

    Remote file systems have no locks. Units share nothing, so two scans would only do work twice.
    """
    if path is None or is_remote(path):
        yield
        return
    with _lock(path, path, f"{str(path)!r} is being written by another scan", shared):
        yield


@contextmanager
def claimed(path: Path, part: str) -> Iterator[None]:
    """Claim a part `i/n` of a scan whose store this process has locked for parts.

    The file of a part is locked as long as its process lives, so those of others say into how many
    parts the scan is divided.
    """
    number, count = part.split("/")
    own = path / FOLDER / f"{_PART}{number}.{count}"
    with explained(repr(str(path)), "cannot be written"):
        for other in (path / FOLDER).glob(f"{_PART}*"):
            if _is_free(other):
                other.unlink(missing_ok=True)
            elif other.suffix != f".{count}":
                raise StoreError(
                    f"part: expected a part of {other.suffix[1:]}, as in other processes that "
                    f"write to {str(path)!r} now, got {part}"
                )
        own.touch()
    with _lock(path, own, f"part {part} of {str(path)!r} is being scanned by another process"):
        try:
            yield
        finally:
            own.unlink(missing_ok=True)


@contextmanager
def in_turn(path: Path) -> Iterator[None]:
    """Wait until no other part of a scan prepares the store."""
    with explained(repr(str(path)), "cannot be written"):
        (path / FOLDER).mkdir(exist_ok=True)
    with waiting_lock(path / FOLDER):
        yield


@contextmanager
def waiting_lock(folder: Path) -> Iterator[None]:
    """Wait until no other process or thread has locked a folder, and lock it."""
    with _lock(folder, folder, None):
        yield


@contextmanager
def _lock(path: Path, place: Path, taken: str | None, shared: bool = False) -> Iterator[None]:
    """Lock a file or a folder; raise `taken` if another process has done so, or else wait."""
    if fcntl is None:  # pragma: no cover
        yield
        return
    with explained(repr(str(path)), "cannot be locked"):
        handle = os.open(place, os.O_RDONLY)
    try:
        kind = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
        try:
            fcntl.flock(handle, kind if taken is None else kind | fcntl.LOCK_NB)
        except BlockingIOError:
            raise StoreError(taken or "") from None
        except OSError:  # a file system without locks: units share nothing, so this is safe
            pass
        yield
    finally:
        os.close(handle)


def _is_free(place: Path) -> bool:
    try:
        with _lock(place, place, "taken"):
            return True
    except StoreError:
        return not place.exists()


def being_written(path: Path) -> bool:
    """Check whether a scan is writing to a store now."""
    try:
        with locked(path):
            return False
    except StoreError:
        return True
