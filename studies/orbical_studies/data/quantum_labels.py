"""Labels from quantum chemistry on given geometries: the same each time, so without noise."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from orbical.errors import InputError, Interrupted, MissingExtra

from .bars import tracked
from .cached_arrays import cache_folder, writable
from .label_store import LabelStore, molecule_key

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
    keys = [molecule_key(*molecule) for molecule in molecules]
    store = LabelStore(cache_folder(cache) / f"{kind}-gfn2-xtb.npz", "tblite")
    done = {*store.known, *store.failed}
    missing = [row for row, key in enumerate(keys) if key not in done]
    if missing:
        from threadpoolctl import threadpool_limits

        calculate = function()  # in one thread: sums in one order, and faster on small molecules
        writable(store.path.parent)
        with threadpool_limits(1):
            _fill(store, kind, calculate, molecules, keys, missing, progress)
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
    store: LabelStore,
    kind: str,
    calculate: Calculate,
    molecules: Sequence[tuple[NDArray, NDArray]],
    keys: Sequence[bytes],
    missing: Sequence[int],
    shown: bool,
) -> None:
    """Calculate what is missing into the store."""
    saved = time.monotonic()
    try:
        for row in tracked(missing, kind, shown):
            key = keys[row]
            try:
                if key not in store.known:  # the same molecule twice, or another process
                    store.known[key] = calculate(*molecules[row])
                    if not np.isfinite(store.known[key]).all():
                        del store.known[key]
                        raise RuntimeError("the label is NaN or infinite")
            except RuntimeError as error:
                store.failed[key] = str(error)
            if time.monotonic() - saved > SAVE_EVERY_SECONDS:
                store.save()
                saved = time.monotonic()
    except KeyboardInterrupt:
        done = sum(keys[row] in store.known or keys[row] in store.failed for row in missing)
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
