"""Where data files lie that are too large, or not free enough, to come inside a package."""

from __future__ import annotations

import os
from pathlib import Path

from orbical.errors import InputError

VARIABLE = "ORBICAL_DATA"


def data_folder() -> Path:
    """Find the folder that holds one subfolder for each data set.

    It is the environment variable `ORBICAL_DATA` where that is set. Otherwise it is
    `../shared/data` beside the checkout, which is the nearest folder with a `pyproject.toml`
    from the current one upwards (the current one where there is none).

    Returns:
        The folder. It exists.

    Raises:
        InputError: neither place is a folder.

    Example:
        >>> import os, tempfile
        >>> from unittest import mock
        >>> with tempfile.TemporaryDirectory() as there:
        ...     with mock.patch.dict(os.environ, {"ORBICAL_DATA": there}):
        ...         str(data_folder()) == there
        True
    """
    given = os.environ.get(VARIABLE)
    if given:
        folder = Path(given).expanduser()
        if not folder.is_dir():
            raise InputError(f"{VARIABLE}: got {given!r}, expected a folder that exists")
        return folder
    here = Path.cwd()
    checkout = next((f for f in (here, *here.parents) if (f / "pyproject.toml").is_file()), here)
    folder = checkout.parent / "shared" / "data"
    if not folder.is_dir():
        raise InputError(
            f"{VARIABLE}: not set, and there is no folder {folder}; "
            f"expected {VARIABLE} to name the folder that holds the data sets"
        )
    return folder


def data_file(name: str, folder: str | Path | None, default: str) -> Path:
    """Find one file of a data set, or say where it was looked for.

    Args:
        name: the file's name.
        folder: the data set's own folder, or None for `data_folder() / default`.
        default: the data set's subfolder of `data_folder()`.

    Returns:
        The path of the file. It exists.

    Example:
        >>> data_file("missing.npz", folder=".", default="piv")
        Traceback (most recent call last):
            ...
        orbical.errors.InputError: folder: there is no file 'missing.npz' in '.'; ...
    """
    place = Path(folder).expanduser() if folder is not None else data_folder() / default
    path = place / name
    if not path.is_file():
        raise InputError(
            f"folder: there is no file {name!r} in {str(place)!r}; "
            f"expected the folder that holds it (as argument, or as {VARIABLE}/{default})"
        )
    return path
