"""The folder of data sets that do not ship with a package."""

from __future__ import annotations

import os
from pathlib import Path

from orbical.errors import InputError

VARIABLE = "ORBICAL_DATA"


def data_folder() -> Path:
    """Return the folder with one subfolder for each data set.

    It is the value of the environment variable `ORBICAL_DATA`, if set. Otherwise it is
    `../shared/data` beside the checkout, the nearest folder with a `pyproject.toml` from the
    current one upwards (or the current one if there is none).

    Returns:
        The path of an existing folder.

    Raises:
        InputError: If that folder does not exist.

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
            raise InputError(VARIABLE, "an existing folder", repr(given))
        return folder
    here = Path.cwd()
    checkout = next((f for f in (here, *here.parents) if (f / "pyproject.toml").is_file()), here)
    folder = checkout.parent / "shared" / "data"
    if not folder.is_dir():
        raise InputError(
            VARIABLE,
            "the folder of the data sets",
            f"no value, and {folder} does not exist",
            remedy="set the variable",
        )
    return folder


def data_file(name: str, folder: str | Path | None, default: str) -> Path:
    """Return the path of one file of a data set.

    Args:
        name: Name of the file.
        folder: Folder of the data set. By default, `data_folder() / default`.
        default: Subfolder of the data set in `data_folder()`.

    Returns:
        The path of an existing file.

    Raises:
        InputError: If the file does not exist.

    Example:
        >>> data_file("missing.npz", folder=".", default="piv")
        Traceback (most recent call last):
            ...
        orbical.errors.InputError: folder: expected a folder with the file 'missing.npz', ...
    """
    place = Path(folder).expanduser() if folder is not None else data_folder() / default
    path = place / name
    if not path.is_file():
        raise InputError(
            "folder",
            f"a folder with the file {name!r}",
            repr(str(place)),
            remedy=f"pass it, or set {VARIABLE} to the folder that contains {default!r}",
        )
    return path
