"""Named sets of samples, saved beside the scan."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from ..._text import printable
from ...errors import InputError, check_name
from ..selection import Selection, set_name
from ..sidecar import entries
from .sample_sets import ALL, mask_of_set, packed
from .scan_view import ScanView
from .subsets import Answer

MOST_SETS = 200
MOST_NAME = 80
_DOCUMENT = "sets"


@dataclass(frozen=True)
class NamedSet:
    """A set of samples with its name, the hash of its contents and the number of its samples."""

    name: str
    hash: str
    count: int

    @classmethod
    def from_json(cls, given: Any) -> NamedSet:
        """Read a named set of a file; anything else raises an `InputError`."""
        if not isinstance(given, Mapping) or not isinstance(given.get("count"), int):
            raise InputError("sets: expected objects with a name, a hash and a count")
        return cls(_name(given.get("name")), set_name("hash", given.get("hash")), given["count"])


def set_names(view: ScanView, selection: Selection, message: dict[str, Any]) -> Answer:
    """Answer the named sets of a scan, after a change (`do`: save, delete) if any."""
    change = message.get("do")
    if change is None:
        found = saved_sets(view)
    else:
        check_name("do", change, CHANGES)
        made = CHANGES[change](view, message)
        found = _read(
            view.sidecar.update(_DOCUMENT, [], lambda now: [*map(asdict, made(_read(now)))])
        )
    return {"sets": [asdict(one) for one in found], "unsaved": view.sidecar.unsaved}, {}


def saved_sets(view: ScanView) -> list[NamedSet]:
    """Read the named sets beside a scan."""
    return _read(view.sidecar.read(_DOCUMENT, []))


Change = Callable[[list[NamedSet]], list[NamedSet]]


def _save(view: ScanView, message: Mapping[str, Any]) -> Change:
    """Save a set under a name, in place of one that had it."""
    name, known = _name(message.get("name")), set_name("set", message.get("set"))
    if known == ALL:
        raise InputError("set: expected a part of the samples, got all of them")
    mask = mask_of_set(view, known)
    view.sidecar.keep_bits(packed(mask).tobytes())
    given = NamedSet(name, known, int(mask.sum()))

    def saved(found: list[NamedSet]) -> list[NamedSet]:
        after = [*(one for one in found if one.name != name), given]
        if len(after) > MOST_SETS:
            raise InputError(f"sets: expected at most {MOST_SETS}, got {len(after)}")
        return after

    return saved


def _delete(view: ScanView, message: Mapping[str, Any]) -> Change:
    return lambda found: [one for one in found if one.name != message.get("name")]


CHANGES: dict[str, Callable[[ScanView, Mapping[str, Any]], Change]] = {
    "save": _save,
    "delete": _delete,
}


def _name(given: Any) -> str:
    name = printable(given.strip()) if isinstance(given, str) else ""
    if not 0 < len(name) <= MOST_NAME:
        raise InputError(f"name: expected 1 to {MOST_NAME} characters, got {given!r:.60}")
    return name


def _read(document: Any) -> list[NamedSet]:
    return entries(_DOCUMENT, document, NamedSet.from_json, MOST_SETS)
