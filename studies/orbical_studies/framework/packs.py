"""Arrays in one compressed file, for a machine that has no other."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from orbical.errors import InputError


def write_pack(path: Path, arrays: Mapping[str, NDArray]) -> None:
    """Write the arrays of a study's step `pack`.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     write_pack(Path(folder) / "work" / "some.npz", {"labels": np.arange(3)})
        ...     read_pack(Path(folder) / "work" / "some.npz")["labels"].tolist()
        [0, 1, 2]
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(path, **arrays)  # type: ignore[arg-type]


def read_pack(path: Path) -> dict[str, NDArray]:
    """Read what `write_pack` wrote."""
    if not path.is_file():
        raise InputError(
            "work", problem=f"there is no file {str(path)!r}", remedy="run the step 'pack' first"
        )
    with np.load(path, allow_pickle=False) as file:
        return dict(file)
