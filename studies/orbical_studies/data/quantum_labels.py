"""Labels from quantum chemistry on given geometries: the same each time, so without noise."""

from __future__ import annotations

import hashlib
import importlib.metadata
import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from orbical.errors import InputError, Interrupted, MissingExtra

from .bars import tracked
from .cached_arrays import cache_folder, read_arrays, writable, write_arrays

METHOD = "GFN2-xTB"
BOHR = 0.529177210903
"""One bohr in Å."""
SAVE_EVERY_SECONDS = 20.0
_NAMED = 5

Calculate = Callable[[NDArray, NDArray[np.float64]], NDArray[np.float64]]
"""Computes the label of one molecule, finite numbers `[any length]`, from its elements `[a]` and
positions `[a, 3]` in Å, or raises RuntimeError."""


class Labelled(NamedTuple):
    """Molecules with their labels.

    Attributes:
        inputs: the molecules given, without those left out.
        labels: one array for each of them.
        rows: `[m]`, their places among those given.
        failed: why molecules were left out, by their place among those given.
    """

    inputs: dict[str, Tensor]
    labels: list[NDArray[np.float64]]
    rows: Tensor
    failed: dict[int, str]


def labelled(
    kind: str,
    function: Callable[[], Calculate],
    inputs: Mapping[str, Any],
    names: Sequence[str] | None,
    cache: str | Path | None,
    progress: bool,
) -> Labelled:
    """Label neutral molecules with tblite, each by itself and in one thread, and keep the labels.

    Labels are cached by the molecule's elements and positions, every 20 seconds and when stopped; a
    later call computes only new ones, and needs no tblite if there are none. Several processes may
    share the cache: give each a part of the molecules, then one call has them all.

    Args:
        kind: Of label, for the file's name and messages.
        function: Makes the function that computes a label; called only if one is missing.
        inputs: `pos [n, most, 3]` in Å and `numbers [n, most]` (0 for padding), and maybe `mask`.
        names: Of the molecules, for warnings; None for their places.
        cache: Folder of the labels; None for `ORBICAL_CACHE` or the system's own.
        progress: Show a progress bar on the error stream.

    Returns:
        The molecules and their labels. One that fails is left out, and named in a warning.
    """
    numbers, pos = torch.as_tensor(inputs["numbers"]), torch.as_tensor(inputs["pos"])
    masks = torch.as_tensor(inputs.get("mask", numbers > 0)).bool()
    count = len(numbers)
    if names is not None and len(names) != count:
        raise InputError("names", f"{count}, one a molecule", len(names))
    if not bool(masks.any(1).all()):
        empty = int((~masks.any(1)).nonzero()[0])
        raise InputError("inputs", "molecules with atoms", f"none in molecule {empty}")
    molecules = [
        (one[mask].numpy(), place[mask].double().numpy())
        for one, place, mask in zip(numbers, pos, masks, strict=True)
    ]
    keys = [_molecule_key(*molecule) for molecule in molecules]
    store = LabelStore(cache_folder(cache) / f"{kind}-gfn2-xtb.npz", "tblite")
    done = {*store.known, *store.failed}
    missing = {k: one for k, one in zip(keys, molecules, strict=True) if k not in done}
    if missing:
        from threadpoolctl import threadpool_limits

        calculate = function()  # in one thread: sums in one order, and faster on small molecules
        writable(store.path.parent)
        with threadpool_limits(1):
            _fill(store, kind, calculate, missing, progress)
    failed = {row: store.failed[key] for row, key in enumerate(keys) if key in store.failed}
    if failed:
        _warn(failed, count, names)
    kept = [row for row in range(count) if row not in failed]
    rows = torch.tensor(kept, dtype=torch.int64)
    left = {name: torch.as_tensor(inputs[name])[rows] for name in inputs}
    return Labelled(left, [store.known[keys[row]] for row in kept], rows, failed)


def single_points(
    numbers: NDArray, positions: NDArray[np.float64], accuracy: float = 1.0
) -> Callable[[NDArray[np.float64]], Any]:
    """Return a function that takes positions of a molecule in Å and returns tblite's result.

    The second call and the later ones start from the electrons of the one before: a small move
    takes fewer iterations, and the same sequence of calls gives the same results.

    Args:
        numbers: `[a]`.
        positions: `[a, 3]` in Å.
        accuracy: of the electrons, as tblite counts it: smaller is more exact.
    """
    from tblite.interface import Calculator

    calculator = Calculator(METHOD, numbers, positions / BOHR)
    calculator.set("verbosity", 0)
    calculator.set("accuracy", accuracy)
    last: list[Any] = []

    def evaluate(place: NDArray[np.float64]) -> Any:
        calculator.update(place / BOHR)
        last[:] = [calculator.singlepoint(*last)]
        return last[0]

    return evaluate


def require_tblite(kind: str) -> None:
    """Name the extra to install if tblite is missing."""
    try:
        import tblite.interface  # noqa: F401
    except ImportError:
        raise MissingExtra("tblite", "chemistry", f"the data set {kind!r}") from None


def _fill(
    store: LabelStore, kind: str, calculate: Calculate, missing: Mapping[bytes, Any], shown: bool
) -> None:
    """Calculate the labels of missing molecules, elements and positions by key, into the store."""
    saved = time.monotonic()
    try:
        for key in tracked([*missing], kind, shown):
            try:
                if key not in store.known:  # by another process
                    store.known[key] = calculate(*missing[key])
                    if not np.isfinite(store.known[key]).all():
                        del store.known[key]
                        raise RuntimeError("the label is NaN or infinite")
            except RuntimeError as error:
                store.failed[key] = str(error)
            if time.monotonic() - saved > SAVE_EVERY_SECONDS:
                store.save()
                saved = time.monotonic()
    except KeyboardInterrupt:
        done = len(missing.keys() & {*store.known, *store.failed})
        raise Interrupted(
            f"{kind}: stopped after {done} of {len(missing)} molecules, which are kept; "
            "repeat the call to continue"
        ) from None
    finally:
        store.save()


def _warn(failed: Mapping[int, str], count: int, names: Sequence[str] | None) -> None:
    shown = [
        f"{f'molecule {row}' if names is None else repr(names[row])} ({why})"
        for row, why in failed.items()
    ]
    more = f" and {len(shown) - _NAMED} more" if len(shown) > _NAMED else ""
    text = f"{len(failed)} of {count} molecules left out: {', '.join(shown[:_NAMED])}{more}"
    warnings.warn(text, stacklevel=4)


def _molecule_key(numbers: NDArray, positions: NDArray[np.float64]) -> bytes:
    """Return a key that identifies a molecule by its elements `[a]` and positions `[a, 3]`.

    Example:
        >>> here = np.zeros((1, 3))
        >>> _molecule_key(np.array([8]), here) == _molecule_key(np.array([8]), -here)
        True
        >>> _molecule_key(np.array([8]), here) == _molecule_key(np.array([8]), here + 1e-12)
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
