"""The result of a scan, complete or not, as a labeled data set."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
import zarr

from .._imports import as_path
from ..errors import StoreError
from ..groups import Group
from .arrays import Store, open_store
from .group_arrays import read_group
from .record import Record


class Scan:
    """The result of a scan: a thin wrapper around `data`, an `xarray.Dataset`.

    Attributes:
        data: dimensions `model`, `sample` and `element`, with the elements' names and weights as
            coordinates. It is read from disk when it is used.
        group: the sampled group.
        record: what was scanned, by which models, and how.
        path: the folder; None for a scan in memory.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self.record = store.record
        self.group = read_group(store.root)
        self.path = store.path
        try:
            self.data = _dataset(store, self.record, self.group)
        except ValueError as error:
            if "conflicting sizes for dimension 'model'" not in str(error):
                raise
            raise StoreError(
                f"{store.name}: a model is being added, or a scan was killed while adding one; "
                "run that scan again"
            ) from error

    @property
    def models(self) -> list[str]:
        """The names of the models."""
        return self.record.names

    @property
    def labeled(self) -> bool:
        """Whether the data have targets."""
        return "score" in self.data

    @property
    def failures(self) -> dict[str, list[dict[str, Any]]]:
        """The samples on which each model raised an error.

        An entry has the number of the `sample`, the first `element`, the number of `places` on the
        orbit, and the `error`.
        """
        return {entry.name: entry.failures for entry in self.record.models}

    @property
    def arrays(self) -> dict[str, zarr.Array[Any]]:
        """The stored arrays, to be read a block at a time; `data` is the labeled view of them."""
        return self._store.arrays

    @property
    def done(self) -> np.ndarray:
        """Which units are finished, `[model, chunk]`."""
        return self._store.done

    @property
    def share_done(self) -> float:
        """How much of the scan is done, 0 to 1."""
        return float(self.done.mean())

    @property
    def complete(self) -> bool:
        """Whether every unit is done."""
        return bool(self.done.all())

    def verify(self) -> list[tuple[int, int]]:
        """Check every finished unit's files; return the (model, chunk) units found damaged."""
        return self._store.verify()

    def __repr__(self) -> str:
        sizes = self.data.sizes
        state = "complete" if self.complete else f"{self.share_done:.0%} done"
        return (
            f"Scan({self.record.task.name}, {self.group.spec}: {sizes['model']} models x "
            f"{sizes['sample']} samples x {sizes['element']} elements, {state})"
        )


def _dataset(store: Store, record: Record, group: Group) -> xr.Dataset:
    data = xr.open_zarr(
        store.root.store, chunks={}, consolidated=False, zarr_format=3, mask_and_scale=False
    ).drop_vars("done")
    coords: dict[str, Any] = {"model": record.names}
    coords |= {name: ("element", values) for name, values in group.coords.items()}
    coords["weight"] = ("element", group.weights)
    data = data.assign_coords(coords)
    if "label" in data:
        data = data.assign_coords(label=("sample", np.asarray(data["label"])))
    elif "objects" in data:  # of several the first, around which the view is centered
        first = np.asarray(data["objects"])[:, 0, -1]
        data = data.assign_coords(label=("sample", first.astype(np.int64)))
    data.attrs = {
        "group": group.spec,
        "layout": group.layout.kind,
        "task": record.task.name,
        "score": record.score.meaning,
        "higher_is_better": record.score.higher_is_better,
    }
    result: xr.Dataset = data
    return result


def load(path: str | Path) -> Scan:
    """Open a stored scan, complete or not. Unfinished units are read as missing.

    Args:
        path: the folder that `orbical.scan` wrote.

    Returns:
        The scan.

    Raises:
        StoreError: there is no store, or it cannot be read.

    Example:
        >>> import orbical as ob
        >>> ob.load("no-such-scan.zarr")
        Traceback (most recent call last):
        orbical.errors.StoreError: path: expected a saved scan, got 'no-such-scan.zarr', which ...
    """
    return Scan(open_store(as_path("path", path)))
