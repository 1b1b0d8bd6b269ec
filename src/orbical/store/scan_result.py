"""The result of a scan, complete or not, as a labeled data set."""

from __future__ import annotations

import math
import warnings
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from .._imports_and_paths import as_path
from .._lazy import xr
from .._text import counted
from .._warnings import warn
from ..errors import InputError, StoreError
from .file_access import explained_store_errors
from .layout import group_from_layout_metadata
from .record import Json

if TYPE_CHECKING:  # a module that takes scans need not wait for zarr
    import zarr

    from .verification import Damage
    from .zarr_store import Store


_NUMBERS = "fiub"
_VALUES_AT_ONCE = 1 << 20
_HELD_BYTES = 1 << 28
_HELD_NUMBERS, _HELD_TEXTS = 1 << 22, 1 << 18
"""Of coordinates: of more samples, labels and names stay on disk."""
_DAMAGED = "is too damaged to read; it is left unchanged"


class Scan:
    """The result of a scan: a thin wrapper around `data`, an `xarray.Dataset`.

    Attributes:
        data: dimensions `model`, `sample` and `element`, with the elements' names and weights as
            coordinates. A scan in memory of up to 256 MB consists of NumPy arrays. A stored one is
            read from disk when it is used, and its checksums are verified then.
        group: the sampled group.
        record: what was scanned, by which models, and how.
        path: the folder; None for a scan in memory.
    """

    def __init__(self, store: Store) -> None:
        from .verification import refuse_missing_files

        self._store = store
        self.record = store.record
        self.path = store.path
        with explained_store_errors(store.name, _DAMAGED):
            refuse_missing_files(store)
            self.group = group_from_layout_metadata(store.nodes["group"], store.read_fixed)
            if self.group.fingerprint() != self.record.group.fingerprint:
                raise StoreError(f"{store.name} is damaged: its group does not match its record")
        _warn_of_lost_flags_of_scan(store)

    @cached_property
    def data(self) -> xr.Dataset:
        """The labeled data set, made when it is first used: a scan of seconds need not wait."""
        with explained_store_errors(self._store.name, _DAMAGED):
            return _dataset_of_scan(self._store)

    @property
    def models(self) -> list[str]:
        """The names of the models."""
        return self.record.names

    @property
    def names(self) -> list[str] | None:
        """The names of the samples, if they have any."""
        return [str(name) for name in self._fixed("name")] if "name" in self.stored else None

    @property
    def classes(self) -> list[str] | None:
        """The names of the classes, in the order of their indices, if they are known."""
        found = self.record.task.settings.get("classes")
        return [str(name) for name in found] if isinstance(found, list) else None

    @property
    def metadata(self) -> dict[str, np.ndarray]:
        """The metadata columns of the data, by the names of their coordinates in `data`."""
        about = self.stored.items()
        return {name: self._fixed(name) for name, one in about if one.get("meaning") == "metadata"}

    @property
    def stored(self) -> dict[str, Json]:
        """The attributes of every stored array, by name; known without opening `data`."""
        return {name: one.get("attributes", {}) for name, one in self._store.metadata.items()}

    @property
    def labeled(self) -> bool:
        """Whether the data have targets."""
        return "score" in self.stored

    @property
    def failures(self) -> dict[str, list[Json]]:
        """The samples on which each model raised an error.

        An entry has the number of the `sample`, the first `element`, the number of `places` on the
        orbit, and the `error`.
        """
        return {name: self._store.failures(number) for number, name in enumerate(self.models)}

    @property
    def arrays(self) -> dict[str, zarr.Array[Any]]:
        """The stored arrays, to be read a block at a time; `data` is the labeled view of them."""
        return self._store.arrays

    def read(self, name: str, chunk: int, model: int | None = None) -> np.ndarray:
        """Read a stored array for one chunk of samples, of one model if models have their own."""
        return self._store.read(name, chunk, model)

    def read_rows(self, name: str, rows: slice, model: int | None = None) -> np.ndarray:
        """Read a stored array for some samples, of one model if models have their own."""
        return self._store.read_rows(name, rows, model)

    @property
    def done(self) -> np.ndarray:
        """Which units were finished when the scan was opened, `[model, chunk]`."""
        return self._store.done

    @property
    def hashes(self) -> list[str | None]:
        """A hash of the samples of each chunk; None if it is not known."""
        found: list[str | None] = [None] * self.record.chunks
        for (_, chunk), unit in self._store.read_units((None, at) for at in range(len(found))):
            found[chunk] = None if unit is None else unit.data
        return found

    def has_samples_of(self, other: Scan) -> bool:
        """Check whether two scans are of the same samples, by what their records and units say."""
        mine, its = self.record, other.record
        if mine.data.contradicts(its.data):
            return False
        if mine.data.confirms(its.data):
            return True
        if mine.run.chunk == its.run.chunk:
            pairs = zip(self.hashes, other.hashes, strict=True)
            return all(None in pair or pair[0] == pair[1] for pair in pairs)
        names = [name for name in ("label", "name") if name in self.stored and name in other.stored]
        return all(np.array_equal(self._fixed(name), other._fixed(name)) for name in names)

    @property
    def share_done(self) -> float:
        """How much of the scan is done, 0 to 1."""
        return float(self.done.mean())

    @property
    def complete(self) -> bool:
        """Whether every unit is done."""
        return bool(self.done.all())

    @property
    def caveat(self) -> str:
        """What readers of an unfinished scan must know; empty if it is complete."""
        if self.complete:
            return ""
        return (
            f"the scan is {self.share_done:.0%} done; the numbers are those of the finished "
            "samples, which may differ between models"
        )

    def __getitem__(self, name: object) -> NoReturn:
        """Raise an error that says where the arrays are."""
        where = f"scan.data[{name!r}]" if isinstance(name, str) else "scan.data"
        raise InputError("scan", problem="has no items", remedy=f"its arrays are in {where}")

    def info(self) -> Json:
        """Return what was scanned and how, in plain values, with what is done and what failed."""
        state = {"share_done": self.share_done, "failures": self.failures}
        return {**self.record.to_json(), **state}

    def verify(self) -> list[Damage]:
        """Read everything and verify its checksums; return what is missing or damaged."""
        from .verification import verify

        return verify(self._store)

    def _fixed(self, name: str) -> np.ndarray:
        """Read an array that was written once."""
        with explained_store_errors(self._store.name, _DAMAGED):
            return _text(self._store.read_fixed(name))

    def __repr__(self) -> str:
        sizes = self.data.sizes
        state = "complete" if self.complete else f"{self.share_done:.0%} done"
        axes = " x ".join(counted(sizes[dim], dim) for dim in ("model", "sample", "element"))
        return f"Scan({self.record.task.name}, {self.group.spec}: {axes}, {state})"


def _warn_of_lost_flags_of_scan(store: Store) -> None:
    from .verification import units_without_mark

    lost = units_without_mark(store)
    if lost:
        warn(
            f"{store.name}: {len(lost)} units have results but no valid mark of this scan that "
            f"they are finished, and are read as missing ({store.unit_name(*lost[0])}); run the "
            f"same scan again, or call them unfinished with: orbical info --repair {store.path}",
        )


def _dataset_of_scan(store: Store) -> xr.Dataset:
    from .checksums_and_units import zarr_settings

    chunks = {"sample": _rows_at_once(store)}
    with zarr_settings(), warnings.catch_warnings():
        # Labels and truth, which are written once, lie in chunks of their own.
        warnings.filterwarnings("ignore", "The specified chunks separate the stored chunks")
        data = xr.open_zarr(
            store.files, chunks=chunks, consolidated=True, zarr_format=3, mask_and_scale=False
        )
    held = {
        name: one
        for name, one in data.coords.items()
        if one.size <= (_HELD_NUMBERS if one.dtype.kind in _NUMBERS else _HELD_TEXTS)
    }
    data = data.assign_coords(
        {name: (one.dims, _text(one.values), one.attrs) for name, one in held.items()}
    )
    for name, one in data.data_vars.items():
        if one.dims[-1:] == ("character",):
            data[name] = xr.apply_ufunc(
                _words,
                one,
                input_core_dims=[["character"]],
                dask="parallelized",
                output_dtypes=[f"U{one.shape[-1]}"],
                keep_attrs=True,
            )
    data.attrs = {key: value for key, value in data.attrs.items() if "orbical" not in key}
    small = store.path is None and data.nbytes <= _HELD_BYTES
    result: xr.Dataset = data.load() if small else data
    return result


def _rows_at_once(store: Store) -> int:
    """Return the samples that are read at once: whole units, a few megabytes of any array."""
    chunk = store.record.run.chunk
    grids = [store.metadata[name]["chunk_grid"] for name in store.results]
    largest = max(math.prod(grid["configuration"]["chunk_shape"]) for grid in grids)
    return int(chunk * max(1, _VALUES_AT_ONCE // largest))


def _words(codes: np.ndarray) -> np.ndarray:
    """Return texts from code points `[..., L]`, of which negative ones are padding.

    >>> _words(np.array([[97, 98, -1], [-1, -1, -1]])).tolist()
    ['ab', '']
    """
    known = np.ascontiguousarray(np.maximum(codes, 0), np.uint32)
    return known.view(f"U{codes.shape[-1]}")[..., 0]


def _text(values: np.ndarray) -> np.ndarray:
    """Return text in NumPy's oldest type, which every package reads."""
    return values if values.dtype.kind in _NUMBERS else np.array(values.tolist())


def load(path: str | Path) -> Scan:
    """Open a stored scan, complete or not. Unfinished units are read as missing.

    Args:
        path: the folder that `orbical.scan` wrote.

    Returns:
        The scan.

    Raises:
        StoreError: there is no store, or part of it is lost or damaged.

    See Also:
        scan: Make a scan.

    Example:
        >>> import orbical as ob
        >>> ob.load("no-such-scan.zarr")
        Traceback (most recent call last):
        orbical.errors.StoreError: path: expected a saved scan, got 'no-such-scan.zarr', which ...
    """
    from .zarr_store import open_store

    return Scan(open_store(as_path("path", path)))
