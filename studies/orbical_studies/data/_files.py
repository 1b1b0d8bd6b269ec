"""Find the files of a data set."""

from __future__ import annotations

from pathlib import Path

from orbical.datasets import data_folder
from orbical.errors import InputError


def data_file(name: str, folder: str | Path | None, default: str) -> Path:
    """Return the path of a file in `folder`, or in `data_folder() / default` if that is None."""
    place = Path(folder).expanduser() if folder is not None else data_folder() / default
    if not (place / name).is_file():
        raise InputError(
            f"folder: expected a folder with the file {name!r}, got {str(place)!r}; pass it, or "
            f"set ORBICAL_DATA to the folder that contains {default!r}"
        )
    return place / name
