"""Labels from quantum chemistry on given geometries: the same each time, so without noise."""

from __future__ import annotations

import hashlib
import importlib.metadata
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
from orbical.tasks.structures import completed

from .bars import counted
from .cached_arrays import cache_folder, read_arrays, writable, write_arrays

METHOD = "GFN2-xTB"
BOHR = 0.529177210903
"""One bohr in Å."""
DEBYE = 2.541746473
"""One atomic unit of dipole, e a0, in debye."""
SAVE_EVERY_SECONDS = 20.0
_NAMED = 5


class Dipoles(NamedTuple):
    """Molecules with their dipole vectors.

    Attributes:
        inputs: the molecules given, without those left out.
        vectors: `[m, 3]`, double precision, in debye; they turn with the positions.
        rows: `[m]`, the places of these molecules among those given.
        failed: why molecules were left out, by their place among those given.
    """

    inputs: dict[str, Tensor]
    vectors: Tensor
    rows: Tensor
    failed: dict[int, str]


def dipoles(
    inputs: Mapping[str, Any],
    names: Sequence[str] | None = None,
    cache: str | Path | None = None,
    progress: bool = True,
) -> Dipoles:
    """Calculate the dipole vectors of neutral molecules with GFN2-xTB, by tblite.

    A function of the geometry alone, calculated from scratch in one thread: two calls agree to the
    last bit, and the true aleatoric uncertainty is zero. One debye is 0.2082 e·Å, the unit of the
    task `atoms`. The geometry is taken as it is, without relaxing it.

    What is done is kept in the cache by the molecule's elements and positions, every 20 seconds and
    when stopped; a later call calculates what is new, and needs no tblite where nothing is. Needs
    the extra `chemistry`.

    Args:
        inputs: `pos [n, most, 3]` in Å and `numbers [n, most]` (0 for padding), and maybe `mask`,
            as `qm9` and `molecules` give them.
        names: of the molecules, for what is said of those left out; None for their places.
        cache: the folder for what is done; None for `ORBICAL_CACHE` or the system's own.
        progress: show a progress bar on the error stream.

    Returns:
        the molecules and their vectors. One whose calculation does not converge is left out, and
        named in a warning. `(found.inputs, found.vectors)` can go to `orbical.scan`.

    Example:
        >>> import tempfile
        >>> water = {"pos": torch.tensor([[[0, 0, 0], [0, 0.76, 0.59], [0, -0.76, 0.59]]]),
        ...          "numbers": torch.tensor([[8, 1, 1]])}
        >>> with tempfile.TemporaryDirectory() as there:
        ...     found = dipoles(water, cache=there, progress=False)
        >>> f"{float(found.vectors.norm()):.1f} D", found.failed
        ('2.3 D', {})

    Paper: Bannwarth et al. 2019 for the method.
    """
    whole = completed(inputs)
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
    keys = [_key(*molecule) for molecule in molecules]
    store = _Store(cache_folder(cache) / "dipoles-gfn2-xtb.npz")
    missing = [row for row, key in enumerate(keys) if key not in store.known]
    failed = _calculated(molecules, keys, missing, store, progress) if missing else {}
    if failed:
        _warn(failed, count, names)
    kept = [row for row in range(count) if row not in failed]
    vectors = np.array([store.known[keys[row]] for row in kept]).reshape(-1, 3)
    rows = torch.tensor(kept, dtype=torch.int64)
    left = {name: torch.as_tensor(inputs[name])[rows] for name in inputs}
    return Dipoles(left, torch.from_numpy(vectors), rows, failed)


def _key(numbers: NDArray, positions: NDArray[np.float64]) -> bytes:
    # Adding 0 makes -0.0 and 0.0 one.
    content = numbers.astype("<u1").tobytes() + (positions + 0.0).astype("<f8").tobytes()
    return hashlib.blake2b(content, digest_size=16).digest()


class _Store:
    """Vectors by key, in memory and in one file that several processes may add to."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.version = _version()
        self.known = self._stored()

    def _stored(self) -> dict[bytes, NDArray[np.float64]]:
        arrays = read_arrays(self.path)
        if arrays is None or not {"keys", "vectors", "version"} <= {*arrays}:
            return {}
        if self.version not in ("", str(arrays["version"])):  # another release may differ
            return {}
        return {key.tobytes(): v for key, v in zip(arrays["keys"], arrays["vectors"], strict=True)}

    def save(self) -> None:
        self.known = self._stored() | self.known
        keys = np.frombuffer(b"".join(self.known), np.uint8).reshape(-1, 16)
        vectors = np.array([*self.known.values()]).reshape(-1, 3)
        write_arrays(
            self.path, {"keys": keys, "vectors": vectors, "version": np.array(self.version)}
        )


def _version() -> str:
    """Give the release of tblite, empty without it: then what is stored is all there is."""
    try:
        return importlib.metadata.version("tblite")
    except importlib.metadata.PackageNotFoundError:
        return ""


def _calculated(
    molecules: Sequence[tuple[NDArray, NDArray]],
    keys: Sequence[bytes],
    missing: Sequence[int],
    store: _Store,
    progress: bool,
) -> dict[int, str]:
    """Calculate what is missing into the store, and say what could not be."""
    calculate = _dipole_function()
    writable(store.path.parent)
    failed: dict[int, str] = {}
    saved = time.monotonic()
    with _one_thread(), counted("dipoles", len(missing), progress) as advance:
        try:
            for row in missing:
                try:
                    store.known[keys[row]] = calculate(*molecules[row])
                except RuntimeError as error:
                    failed[row] = str(error)
                advance()
                if time.monotonic() - saved > SAVE_EVERY_SECONDS:
                    store.save()
                    saved = time.monotonic()
        except KeyboardInterrupt:
            done = sum(keys[row] in store.known for row in missing)
            raise Interrupted(
                f"dipoles: stopped after {done} of {len(missing)} molecules, which are kept; the "
                "same call goes on from there"
            ) from None
        finally:
            store.save()
    return failed


def _dipole_function() -> Callable[[NDArray, NDArray], NDArray[np.float64]]:
    try:
        from tblite.interface import Calculator
    except ImportError:
        raise MissingExtra("tblite", "chemistry", "the data set 'dipoles'") from None

    def calculate(numbers: NDArray, positions: NDArray) -> NDArray[np.float64]:
        calculator = Calculator(METHOD, numbers, positions / BOHR)
        calculator.set("verbosity", 0)
        vector = DEBYE * np.array(calculator.singlepoint().get("dipole"), np.float64)
        if not np.isfinite(vector).all():
            raise RuntimeError("the dipole is NaN or infinite")
        return vector

    return calculate


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
        stacklevel=3,
    )
