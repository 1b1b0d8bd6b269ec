"""Arrays in files, without code: an `.npz` file with names, or a single `.npy`."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Literal

from .._imports import existing_file
from ..errors import InputError


def read_npz(path: Path, argument: str) -> dict[str, Any]:
    """Read every array of an `.npz` file; error messages begin with `argument`.

    >>> read_npz(Path("gone.npz"), "--data")
    Traceback (most recent call last):
    orbical.errors.InputError: --data: expected a file, got 'gone.npz', which does not exist
    """
    found = _load(path, argument)
    if not hasattr(found, "files"):
        raise InputError(
            argument,
            "an .npz file with named arrays, as numpy.savez writes it",
            f"a single array in {str(path)!r}",
        )
    with found as file:
        return {
            name: _checked(partial(file.__getitem__, name), argument, f"{name} of {str(path)!r}")
            for name in file.files
        }


def read_npy(path: Path, argument: str, mapped: bool = False) -> Any:
    """Read the array of an `.npy` file, or map it, so that it stays on disk.

    >>> read_npy(Path("gone.npy"), "--orbits")
    Traceback (most recent call last):
    orbical.errors.InputError: --orbits: expected a file, got 'gone.npy', which does not exist
    """
    found = _load(path, argument, "r" if mapped else None)
    if hasattr(found, "files"):
        with found as file:
            names = ", ".join(file.files)
        raise InputError(
            argument,
            "an .npy file with one array, as numpy.save writes it",
            f"{names} in {str(path)!r}",
        )
    return found


def _load(path: Path, argument: str, mode: Literal["r"] | None = None) -> Any:
    import numpy as np

    existing_file(argument, path)
    return _checked(lambda: np.load(path, mode, allow_pickle=False), argument, repr(str(path)))


def _checked(load: Callable[[], Any], argument: str, name: str) -> Any:
    try:
        return load()
    except Exception as error:  # a file that is damaged, encrypted or no archive may raise anything
        raise InputError(
            argument, problem=f"{name} cannot be read as numbers{_why(error)}"
        ) from error


def _why(error: Exception) -> str:
    """Return the reason; NumPy's own messages suggest loading pickles, which can run code."""
    text = str(error)
    if "Object arrays" in text:
        return (
            ": it contains Python objects; pad samples of unequal sizes, with a mask "
            "(orbical.datasets.padded)"
        )
    return ": it is no .npz or .npy file" if "pickle" in text else f" ({text})"
