"""Arrays that took long to make, kept in a folder of the user's, written whole or not at all."""

from __future__ import annotations

import os
import tempfile
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from orbical.errors import InputError

VARIABLE = "ORBICAL_CACHE"


def cache_folder(folder: str | Path | None = None) -> Path:
    """Find the folder of the cache; it need not exist.

    The one given, else the environment variable `ORBICAL_CACHE`, else the system's own place,
    such as `~/.cache/orbical`.

    Example:
        >>> cache_folder("labels").name
        'labels'
    """
    given = folder if folder is not None else os.environ.get(VARIABLE)
    if given:
        place = Path(given).expanduser()
    else:
        import platformdirs

        place = platformdirs.user_cache_path("orbical", False)
    if place.exists() and not place.is_dir():
        raise InputError("cache", "a folder", f"the file {str(place)!r}")
    return place


def writable(folder: Path) -> Path:
    """Make a folder if it does not exist, and check that files can be written to it.

    Example:
        >>> with tempfile.TemporaryDirectory() as there:
        ...     writable(Path(there) / "new").is_dir()
        True
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return folder
    except OSError as refused:
        raise InputError(
            "cache",
            "a folder that can be written to",
            f"{str(folder)!r} ({refused.strerror})",
            remedy=f"pass another one, or set {VARIABLE}",
        ) from refused


def write_arrays(path: Path, arrays: Mapping[str, NDArray]) -> None:
    """Write arrays to a compressed npz file, which is there whole or not at all.

    Example:
        >>> with tempfile.TemporaryDirectory() as there:
        ...     write_arrays(Path(there) / "some.npz", {"a": np.arange(3)})
        ...     read_arrays(Path(there) / "some.npz")["a"].tolist()
        [0, 1, 2]
    """
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with unfinished.open("wb") as file:
            np.savez_compressed(file, allow_pickle=False, **arrays)
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)


def read_arrays(path: Path) -> dict[str, NDArray] | None:
    """Read arrays; None if there is no file, or a broken one.

    Example:
        >>> read_arrays(Path("absent.npz")) is None
        True
    """
    try:
        with np.load(path, allow_pickle=False) as file:
            return dict(file)
    except (OSError, ValueError, EOFError, KeyError, zipfile.BadZipFile, zlib.error):
        return None
