"""Arrays in one compressed file, for a machine that has no other."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from .paths import existing_file


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


def read_pack(path: Path, step: str = "pack") -> dict[str, NDArray]:
    """Read what `write_pack` wrote; without the file, name the step that writes it."""
    with np.load(existing_file(path, "work", f"run the step {step!r} first")) as file:
        return dict(file)


def arrays_under(arrays: Mapping[str, NDArray], head: str) -> dict[str, NDArray]:
    """Choose the arrays whose names begin with a head, and leave the head out.

    >>> arrays_under({"weights/bias": np.zeros(1), "labels": np.zeros(2)}, "weights/")
    {'bias': array([0.])}
    """
    return {n.removeprefix(head): part for n, part in arrays.items() if n.startswith(head)}
