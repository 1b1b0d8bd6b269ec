"""Whether data are those of a stored scan: by what is known without reading, then by chunk."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..data.samples import read_ahead
from ..errors import StoreError
from ..store.record import DataEntry
from .parts import Part
from .recipe import Recipe

if TYPE_CHECKING:
    from ..store.arrays import Store


def refuse_other_data(name: str, stored: DataEntry, given: DataEntry) -> None:
    """Refuse data that differ in number, in labels, in the first samples or in the fingerprint."""
    if stored.contradicts(given):
        raise StoreError(
            f"{name} was made from other data: it holds {_short(stored)}, got {_short(given)}; "
            "choose another store or overwrite this one"
        )


def check_finished(store: Store, recipe: Recipe, part: Part) -> None:
    """Read the chunks of a part that are finished, and refuse data that differ from theirs."""
    asked = [store.record.names.index(name) for name in recipe.models]
    finished = store.done[asked].all(0)
    chunks = [int(chunk) for chunk in np.flatnonzero(finished) if part.holds(int(chunk))]
    rows = [store.record.rows(chunk) for chunk in chunks]
    ahead = read_ahead(recipe.samples, rows, recipe.workers)
    for chunk, found in zip(chunks, ahead, strict=True):
        check_chunk(store, chunk, found.digest)


def check_chunk(store: Store, chunk: int, digest: str | None) -> None:
    """Refuse samples that differ from those that a finished unit was made from."""
    unit = store.units.get((None, chunk))
    if unit is not None and None not in (unit.data, digest) and unit.data != digest:
        rows = store.record.rows(chunk)
        raise StoreError(
            f"{store.name} was made from other data: samples {rows.start} to {rows.stop - 1} "
            "differ; choose another store or overwrite this one"
        )


def _short(entry: DataEntry) -> str:
    fingerprint = entry.fingerprint or entry.first
    return f"samples {entry.samples}, fingerprint {fingerprint}"
