"""Labels from quantum chemistry on given geometries: the same each time, so without noise."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from orbical.errors import InputError, Interrupted, MissingExtra
from orbical.tasks.structures import complete_batch

from .bars import counted
from .cached_arrays import cache_folder, writable
from .label_store import LabelStore, molecule_key

METHOD = "GFN2-xTB"
BOHR = 0.529177210903
"""One bohr in Å."""
SAVE_EVERY_SECONDS = 20.0
_NAMED = 5

Calculate = Callable[[NDArray, NDArray[np.float64]], NDArray[np.float64]]
"""What makes the label of one molecule, finite numbers `[any length]`, of its elements `[a]` and
positions `[a, 3]` in Å; it raises RuntimeError where it cannot."""


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

    What is done is in the cache by the molecule's elements and positions, every 20 seconds and when
    stopped; a later call calculates what is new, and needs no tblite where nothing is. Several
    processes may share the cache: give each a part of the molecules, then one call has them all.

    Args:
        kind: of label, for the name of the file and for what is said.
        function: makes what calculates a label; called only where something is missing.
        inputs: `pos [n, most, 3]` in Å and `numbers [n, most]` (0 for padding), and maybe `mask`.
        names: of the molecules, for what is said of those left out; None for their places.
        cache: the folder for what is done; None for `ORBICAL_CACHE` or the system's own.
        progress: show a progress bar on the error stream.

    Returns:
        the molecules and their labels. One that fails is left out, and named in a warning.
    """
    whole = complete_batch(inputs)
    count = len(whole["numbers"])
    if names is not None and len(names) != count:
        raise InputError(f"names: {len(names)} given for {count} molecules")
    if bool(whole["pbc"].any()):
        place = int(whole["pbc"].any(1).nonzero()[0])
        raise InputError(f"inputs: molecule {place} is periodic, free molecules expected")
    molecules = [
        (numbers[mask].cpu().numpy(), pos[mask].double().cpu().numpy())
        for numbers, pos, mask in zip(whole["numbers"], whole["pos"], whole["mask"], strict=True)
    ]
    keys = [molecule_key(*molecule) for molecule in molecules]
    store = LabelStore(cache_folder(cache) / f"{kind}-gfn2-xtb.npz", "tblite")
    done = {*store.known, *store.failed}
    missing = [row for row, key in enumerate(keys) if key not in done]
    if missing:
        calculate = function()
        writable(store.path.parent)
        with _one_thread(), counted(kind, len(missing), progress) as advance:
            _fill(store, kind, calculate, molecules, keys, missing, advance)
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
    """Open a molecule in tblite: what is given takes positions in Å, and answers tblite's result.

    The second call and the later ones start from the electrons of the one before: a small move
    takes fewer iterations, and answers that are the same for the same sequence of calls.

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
    """Name the extra to install where tblite is missing."""
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
    advance: Callable[[], None],
) -> None:
    """Calculate what is missing into the store."""
    saved = time.monotonic()
    try:
        for row in missing:
            key = keys[row]
            try:
                if key not in store.known:  # the same molecule twice, or another process
                    store.known[key] = _finite(calculate(*molecules[row]))
            except RuntimeError as error:
                store.failed[key] = str(error)
            advance()
            if time.monotonic() - saved > SAVE_EVERY_SECONDS:
                store.save()
                saved = time.monotonic()
    except KeyboardInterrupt:
        done = sum(keys[row] in store.known or keys[row] in store.failed for row in missing)
        raise Interrupted(
            f"{kind}: stopped after {done} of {len(missing)} molecules, which are kept; the "
            "same call goes on from there"
        ) from None
    finally:
        store.save()


def _finite(label: NDArray[np.float64]) -> NDArray[np.float64]:
    if not np.isfinite(label).all():
        raise RuntimeError("the label is NaN or infinite")
    return label


@contextmanager
def _one_thread() -> Iterator[None]:
    """Hold numerical libraries to one thread: sums in one order, and faster on small molecules."""
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):
        yield


def _warn(failed: Mapping[int, str], count: int, names: Sequence[str] | None) -> None:
    called = [f"{names[row]!r}" if names is not None else f"molecule {row}" for row in failed]
    reasons = [f"{one} ({why})" for one, why in zip(called, failed.values(), strict=True)]
    more = f" and {len(reasons) - _NAMED} more" if len(reasons) > _NAMED else ""
    warnings.warn(
        f"{len(failed)} of {count} molecules left out: {', '.join(reasons[:_NAMED])}{more}",
        stacklevel=4,
    )
