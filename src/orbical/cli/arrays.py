"""Arrays that a command is given as files: `.npz` with names, or one `.npy`; never code."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..errors import InputError


def read_npz(path: Path, argument: str) -> dict[str, Any]:
    """Read every array of an `.npz` file; `argument` begins the message where it is none.

    >>> read_npz(Path("gone.npz"), "--data")
    Traceback (most recent call last):
    orbical.errors.InputError: --data: there is no file 'gone.npz'
    """
    found = _loaded(path, argument, ".npz")
    if not hasattr(found, "files"):
        raise InputError(
            f"{argument}: {str(path)!r} holds one array without a name; an .npz with named arrays "
            "expected, as numpy.savez writes it"
        )
    with found as file:
        return {name: _member(path, argument, file, name) for name in file.files}


def read_npy(path: Path, argument: str) -> Any:
    """Read the one array of an `.npy` file.

    >>> read_npy(Path("gone.npy"), "--orbits")
    Traceback (most recent call last):
    orbical.errors.InputError: --orbits: there is no file 'gone.npy'
    """
    found = _loaded(path, argument, ".npy")
    if hasattr(found, "files"):
        with found as file:
            names = ", ".join(file.files)
        raise InputError(
            f"{argument}: {str(path)!r} holds {names}; an .npy with one array expected, as "
            "numpy.save writes it"
        )
    return found


def _loaded(path: Path, argument: str, kind: str) -> Any:
    import numpy as np

    if not path.is_file():
        raise InputError(f"{argument}: there is no file {str(path)!r}")
    try:
        return np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise InputError(f"{argument}: {str(path)!r} cannot be read as {kind}{_why(error)}") from (
            error
        )


def _member(path: Path, argument: str, file: Any, name: str) -> Any:
    try:
        return file[name]
    except (OSError, ValueError, EOFError) as error:
        raise InputError(
            f"{argument}: {name} of {str(path)!r} cannot be read{_why(error)}"
        ) from error


def _why(error: Exception) -> str:
    """Say why in words of this program; numpy's own would advise to load what may hold code."""
    text = str(error)
    if "Object arrays" in text:
        return (
            ": it holds Python objects, not numbers; samples of unequal sizes are padded with a "
            "mask (orbical.datasets.padded)"
        )
    return "" if "pickle" in text else f" ({text})"
