"""Sets of samples: by hash, in lists beside the scan, and the subset that is shown."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np

from ...errors import InputError, StoreError, check_name
from ...store import Json
from ..selection import Selection
from ..sidecar import bits_key
from .filter_columns import kept_by
from .scan_view import ScanView

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Array = np.ndarray

ALL = ""
"""The name of the set of all samples."""


class UnknownSet(InputError):
    """A set of samples that the session does not hold; the page may send its samples again."""

    code = "unknown-set"

    def __init__(self, name: str) -> None:
        super().__init__(
            f"selection subset: expected a set of samples that is known here, got {name!r}; "
            "send its samples again, or choose them again"
        )
        self.set = name


def packed(mask: Array) -> Array:
    """Return a mask `[N]` as bits, the first sample lowest.

    >>> packed(np.array([True, False, True])).tolist()
    [5]
    """
    return np.packbits(mask, bitorder="little")


def keep_set(view: ScanView, mask: Array) -> str:
    """Keep a set of samples, given as a mask `[N]`, and return its name."""
    if mask.all():
        return ALL
    bits = packed(mask)
    name = bits_key(bits.tobytes())
    view.sets.get_or_compute(name, lambda: bits)
    return name


def mask_of_set(view: ScanView, name: str) -> Array:
    """Return the mask `[N]` of a set; raise `UnknownSet` if neither session nor folder has it."""
    if name == ALL:
        return np.ones(view.samples, bool)
    bits = view.sets.get(name)
    if bits is None:
        saved = view.sidecar.bits(name)
        if saved is None or len(saved) != -(-view.samples // 8):
            raise UnknownSet(name)
        bits = view.sets.get_or_compute(name, lambda: np.frombuffer(saved, np.uint8))
    return np.unpackbits(bits, count=view.samples, bitorder="little").view(bool)


_Entry = TypeVar("_Entry", bound="DataclassInstance")
Change = Callable[[list[_Entry]], list[_Entry]]


@dataclass(frozen=True)
class SavedList(Generic[_Entry]):
    """A list in a document beside the scan.

    Attributes:
        name: The document, and the field of an answer.
        entry: Reads an entry of a file; what it refuses raises an `InputError`.
        most: The most entries.
        changes: What a request can `do`: from the request to a change of the list.
    """

    name: str
    entry: Callable[[Any], _Entry]
    most: int
    changes: Mapping[str, Callable[[ScanView, Mapping[str, Any]], Change[_Entry]]]

    def answer(self, view: ScanView, message: Mapping[str, Any]) -> Answer:
        """Answer the list, after a change if the request has any."""
        do = message.get("do")
        if do is None:
            found = self.saved(view)
        else:
            check_name("do", do, self.changes)
            found = self._update(view, self.changes[do](view, message))
        return {self.name: [asdict(one) for one in found], "unsaved": view.sidecar.unsaved}, {}

    def saved(self, view: ScanView) -> list[_Entry]:
        """Read the list beside a scan."""
        return self._read(view.sidecar.read(self.name, []))

    def _update(self, view: ScanView, change: Change[_Entry]) -> list[_Entry]:
        def changed(document: Any) -> Any:
            after = change(self._read(document))
            if len(after) > self.most:
                raise InputError(self.name, f"at most {self.most}", len(after))
            return [asdict(one) for one in after]

        return self._read(view.sidecar.update(self.name, [], changed))

    def _read(self, document: Any) -> list[_Entry]:
        """Read a document; what is no list of entries raises `StoreError` with the remedy."""
        try:
            if not isinstance(document, list):
                raise InputError(self.name, "a list", type(document).__name__)
            return [self.entry(one) for one in document[: self.most]]
        except InputError as error:
            raise StoreError(f"{self.name}.json: {error}; repair or remove the file") from None


Answer = tuple[Json, Json]


def mask_of(view: ScanView, selection: Selection) -> Array | None:
    """Return the mask `[N]` of the subset, None if it is all samples."""
    if not selection.filter and not selection.subset:
        return None
    key = ("mask", *subset_key(view, selection))
    return view.cache.get_or_compute(key, lambda: _mask(view, selection))


def subset_key(view: ScanView, selection: Selection) -> tuple[Hashable, ...]:
    """Return what the subset depends on, as a key for caches."""
    return (selection.filter, selection.subset)


def _mask(view: ScanView, selection: Selection) -> Array:
    mask = mask_of_set(view, selection.subset)
    for clause in selection.filter:
        mask &= kept_by(view, clause)
    return mask


def subset(view: ScanView, selection: Selection, message: Json) -> Answer:
    """Answer which samples are in the subset."""
    mask = mask_of(view, selection)
    mask = np.ones(view.samples, bool) if mask is None else mask
    return {"count": int(mask.sum())}, {"mask": mask.astype(np.uint8)}
