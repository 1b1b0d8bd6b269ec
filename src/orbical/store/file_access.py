"""Files and locks: atomic writes, syncing to the disk, one writer at a time, errors explained."""

from __future__ import annotations

import errno
import glob
import os
import shutil
import stat
import tempfile
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path

from ..errors import OrbicalError, StoreError

try:
    import fcntl
except ImportError:  # pragma: no cover - no such locks on this system
    fcntl = None  # type: ignore[assignment]

FOLDER = "units"
"""The folder of a store with a file for each finished unit, and for each part that is running."""

_PART = "part."
_MOST_BYTES = 1 << 31
MOST_DOCUMENT_BYTES = 1 << 28
"""Of a file that is parsed whole."""


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
    with explained_store_errors(repr(str(path)), "cannot be reached"):
        return (path / "zarr.json" if is_remote(path) else path).exists()


@contextmanager
def explained_store_errors(name: str, failed: str) -> Iterator[None]:
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
    replace_file(path, content, durable)


def replace_file(path: Path, content: bytes, durable: bool = False) -> None:
    """Write a local file in a folder that exists, so that it is seen whole or not at all."""
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


def create_file(path: Path, content: bytes) -> bool:
    """Write a file unless there is one; return whether it was written.

    Of all processes that try, on any machine, one succeeds: object stores create on a condition.
    In a folder, with or without locks, the file has a folder of its own, which is renamed and
    cannot replace another.
    """
    if is_remote(path):
        try:
            path.fs.pipe_file(path.path, content, mode="create")  # type: ignore[attr-defined]
        except FileExistsError:
            return False
        return True
    building = path.parent.with_name(f"{path.parent.name}.{uuid.uuid4().hex}.partial")
    try:
        building.mkdir(parents=True)
        (building / path.name).write_bytes(content)
        building.rename(path.parent)
    except OSError:
        if path.exists():
            return False
        raise
    finally:
        shutil.rmtree(building, ignore_errors=True)
    return True


def irregular_file(root: Path, key: str, folders: set[str]) -> str:
    """Return what is wrong with a file of a store that is none, or that lies behind a link.

    A pipe would be read for ever, and a link leads out of the store. `folders` are those that were
    looked at before.
    """
    if is_remote(root):  # objects are files, and asking for each costs a request
        return ""
    with suppress(OSError):
        if not stat.S_ISREG((root / key).lstat().st_mode):
            return "not a file but a link, a folder or a device"
    return behind_link(root, key, folders)


def behind_link(root: Path, key: str, folders: set[str]) -> str:
    """Return what is wrong with a file of a store of which a folder is a link."""
    seen, folder = [], "" if is_remote(root) else key.rpartition("/")[0]
    while folder and folder not in folders:
        if (root / folder).is_symlink():
            return "not in the store but behind a link"
        seen.append(folder)
        folder = folder.rpartition("/")[0]
    folders.update(seen)
    return ""


def read_store_files(paths: Sequence[Path], most: int = _MOST_BYTES) -> Iterator[bytes | None]:
    """Read files, remote ones all at once; None for one that is missing, too large or no file."""
    if paths and is_remote(paths[0]):
        places = [path.path for path in paths]  # type: ignore[attr-defined]
        system = paths[0].fs  # type: ignore[attr-defined]
        # A range, because some ask for the size of a file before they read all of it.
        for content in system.cat_ranges(places, 0, most, on_error="return"):
            gone = isinstance(content, FileNotFoundError)
            empty = isinstance(content, OSError) and content.errno == errno.EINVAL
            if isinstance(content, Exception) and not (gone or empty):
                raise content
            yield None if isinstance(content, Exception) else content
        return
    for path in paths:
        try:
            about = path.lstat()
            sound = stat.S_ISREG(about.st_mode) and about.st_size <= most
            yield path.read_bytes() if sound else None
        except OSError:
            yield None


def listed_store_files(folder: Path, expected: Iterable[str]) -> Iterator[str]:
    """Yield the names of the files in a folder; those of `expected` where none can be listed."""
    if not is_remote(folder):
        with suppress(FileNotFoundError):
            yield from sorted(entry.name for entry in os.scandir(folder))
        return
    system, place = folder.fs, folder.path  # type: ignore[attr-defined]
    if "http" in system.protocol:  # a web server need not list its folders
        names = [*expected]
        read = read_store_files([folder / name for name in names])
        yield from (name for name, content in zip(names, read, strict=True) if content is not None)
        return
    with suppress(FileNotFoundError):
        yield from (one.rstrip("/").rpartition("/")[2] for one in system.ls(place, detail=False))


def file_sizes_below(folder: Path) -> Callable[[str], int | None] | None:
    """Return the size of any file in a folder, None if it is missing; None if none can be known.

    Remote files are listed once.
    """
    if not is_remote(folder):
        return partial(_local_size, folder)
    system, place = folder.fs, folder.path  # type: ignore[attr-defined]
    if "http" in system.protocol:
        return None
    found = system.find(place, detail=True).items()
    sizes = {name.partition(place.strip("/") + "/")[2]: one["size"] for name, one in found}
    return sizes.get


def _local_size(folder: Path, key: str) -> int | None:
    try:
        return (folder / key).lstat().st_size
    except OSError:
        return None


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

    It is gone in the end, whatever is left of it; `remove_leftovers` removes those of processes
    that were killed.
    """
    with ExitStack() as stack:
        while True:  # another process may delete a folder before it is locked
            folder = Path(tempfile.mkdtemp(prefix=_hidden(path), dir=path.parent))
            stack.callback(shutil.rmtree, folder, ignore_errors=True)
            try:
                stack.enter_context(_lock_file(path, folder, None))
            except StoreError:
                if folder.exists():
                    raise
            if folder.exists():
                break
        yield folder


def remove_leftovers(path: Path | None) -> None:
    """Remove the temporary folders of a path whose processes were killed."""
    if path is None or is_remote(path):
        return
    for other in path.parent.glob(f"{glob.escape(_hidden(path))}*"):
        if other.is_dir():
            with suppress(StoreError), _lock_file(other, other, "taken") as held:
                if held:  # until it is gone, so that nobody begins to use it
                    shutil.rmtree(other, ignore_errors=True)


def _hidden(path: Path) -> str:
    return f".{path.name[:50]}.new."


@contextmanager
def locked(path: Path | None, shared: bool = False) -> Iterator[None]:
    """Keep a second scan from writing to the same store; parts of one scan share the lock.

    Remote file systems have no locks. Units share nothing, so two scans would only do work twice.
    """
    if path is None or is_remote(path):
        yield
        return
    taken = f"{str(path)!r} is being written by another scan; wait until it ends"
    with _lock_file(path, path, taken, shared):
        yield


@contextmanager
def claimed_part(path: Path, part: str) -> Iterator[None]:
    """Claim a part `i/n` of a scan whose store this process has locked for parts.

    The file of a part is locked as long as its process lives, so those of others say into how many
    parts the scan is divided. Remote file systems have no locks: a part that runs twice writes
    the same units twice.
    """
    if is_remote(path):
        yield
        return
    number, count = part.split("/")
    own = path / FOLDER / f"{_PART}{number}.{count}"
    with explained_store_errors(repr(str(path)), "cannot be written"):
        for other in (path / FOLDER).glob(f"{_PART}*"):
            if _is_free(other):
                other.unlink(missing_ok=True)
            elif other.suffix != f".{count}":
                raise StoreError(
                    f"part: expected a part of {other.suffix[1:]}, as in other processes that "
                    f"write to {str(path)!r} now, got {part}; wait until they end, or divide this "
                    "scan alike"
                )
        own.touch()
    busy = f"part {part} of {str(path)!r} is being scanned by another process"
    with _lock_file(path, own, f"{busy}; wait until it ends"):
        try:
            yield
        finally:
            own.unlink(missing_ok=True)


@contextmanager
def in_turn(path: Path | None) -> Iterator[None]:
    """Wait until no other process changes what all units of a store share."""
    if path is None or is_remote(path):
        yield
        return
    with explained_store_errors(repr(str(path)), "cannot be written"):
        (path / FOLDER).mkdir(exist_ok=True)
    with waiting_lock(path / FOLDER):
        yield


@contextmanager
def waiting_lock(folder: Path) -> Iterator[None]:
    """Wait until no other process or thread has locked a folder, and lock it."""
    with _lock_file(folder, folder, None):
        yield


@contextmanager
def _lock_file(path: Path, place: Path, taken: str | None, shared: bool = False) -> Iterator[bool]:
    """Lock a file or a folder; raise `taken` if another process has done so, or else wait.

    Yields whether it is locked: some file systems have no locks.
    """
    if fcntl is None:  # pragma: no cover
        yield False
        return
    with explained_store_errors(repr(str(path)), "cannot be locked"):
        handle = os.open(place, os.O_RDONLY)
    try:
        kind, held = fcntl.LOCK_SH if shared else fcntl.LOCK_EX, True
        try:
            fcntl.flock(handle, kind if taken is None else kind | fcntl.LOCK_NB)
        except BlockingIOError:
            raise StoreError(taken or "") from None
        except OSError:  # units share nothing, so this is safe
            held = False
        yield held
    finally:
        os.close(handle)


def _is_free(place: Path) -> bool:
    try:
        with _lock_file(place, place, "taken"):
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
