"""Files and locks: atomic writes, syncing to the disk, one writer at a time, errors explained."""

from __future__ import annotations

import errno
import os
import uuid
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from ..errors import OrbicalError, StoreError

_BROKEN = (
    OSError,
    ValueError,  # of JSON, Unicode, zarr and its codecs
    TypeError,
    LookupError,
    RuntimeError,
    RecursionError,
    MemoryError,
    ArithmeticError,
    AttributeError,
    zipfile.BadZipFile,
    zlib.error,
)


@contextmanager
def explained(name: str, failed: str) -> Iterator[None]:
    """Raise what zarr, JSON, the file system or memory raise as `StoreError`."""
    try:
        yield
    except OrbicalError:
        raise
    except _BROKEN as error:
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
    """Wait until files and folders are on the disk."""
    for path in paths:
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


@contextmanager
def locked(path: Path | None) -> Iterator[None]:
    """Keep a second scan from writing to the same store at the same time."""
    try:
        import fcntl
    except ImportError:  # pragma: no cover - no such locks on this system
        path = None
    if path is None:
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
