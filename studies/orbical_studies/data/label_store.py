"""Labels of molecules by what the molecules are, in one file that several processes may add to."""

from __future__ import annotations

import hashlib
import importlib.metadata
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from .cached_arrays import read_arrays, write_arrays


def molecule_key(numbers: NDArray, positions: NDArray[np.float64]) -> bytes:
    """Return a key that identifies a molecule by its elements `[a]` and positions `[a, 3]`.

    Example:
        >>> here = np.zeros((1, 3))
        >>> molecule_key(np.array([8]), here) == molecule_key(np.array([8]), -here)
        True
        >>> molecule_key(np.array([8]), here) == molecule_key(np.array([8]), here + 1e-12)
        False
    """
    # Adding 0 makes -0.0 and 0.0 one.
    content = numbers.astype("<u1").tobytes() + (positions + 0.0).astype("<f8").tobytes()
    return hashlib.blake2b(content, digest_size=16).digest()


class LabelStore:
    """Labels, finite numbers `[any length]`, by key, in memory and in a file.

    The file holds them as rows of one array, each filled up with NaN to the longest, and beside
    them the molecules that have no label, with the reason: they would fail again. What another
    process has added is kept when this one saves.

    Args:
        path: Of the file; it need not exist.
        package: Whose release made the labels: those of another release are not used.

    Attributes:
        known: Labels by key.
        failed: Reasons by key.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as there:
        ...     store = LabelStore(Path(there) / "some.npz", "numpy")
        ...     store.known[b"a" * 16], store.known[b"b" * 16] = np.ones(3), np.zeros(1)
        ...     store.failed[b"c" * 16] = "no minimum"
        ...     store.save()
        ...     again = LabelStore(Path(there) / "some.npz", "numpy")
        >>> [*again.known.values()], [*again.failed.values()]
        ([array([1., 1., 1.]), array([0.])], ['no minimum'])
    """

    def __init__(self, path: Path, package: str) -> None:
        self.path = path
        self.version = _version(package)
        self.known: dict[bytes, NDArray[np.float64]] = {}
        self.failed: dict[bytes, str] = {}
        self._take_in()

    def _take_in(self) -> None:
        """Add the labels of the file."""
        arrays = read_arrays(self.path)
        if arrays is None or not {"keys", "vectors", "version"} <= {*arrays}:
            return
        if self.version not in ("", str(arrays["version"])):
            return
        rows = zip(arrays["keys"], arrays["vectors"], strict=True)
        self.known = {key.tobytes(): row[~np.isnan(row)] for key, row in rows} | self.known
        reasons = zip(arrays.get("failed", ()), arrays.get("reasons", ()), strict=True)
        self.failed = {key.tobytes(): str(reason) for key, reason in reasons} | self.failed

    def save(self) -> None:
        """Write all labels, together with those that other processes have written."""
        self._take_in()
        longest = max((len(row) for row in self.known.values()), default=0)
        rows = np.full((len(self.known), longest), np.nan)
        for row, values in zip(rows, self.known.values(), strict=True):
            row[: len(values)] = values
        write_arrays(
            self.path,
            {
                "keys": _table(self.known),
                "vectors": rows,
                "failed": _table(self.failed),
                "reasons": np.array([*self.failed.values()], np.str_),
                "version": np.array(self.version),
            },
        )


def _table(keys: Iterable[bytes]) -> NDArray[np.uint8]:
    return np.frombuffer(b"".join(keys), np.uint8).reshape(-1, 16)


def _version(package: str) -> str:
    """Return the release of a package; empty without it, when stored labels are all there is."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return ""
