"""Named sets of samples, saved beside the scan."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..._text import printable
from ...errors import InputError
from ...store import Json
from ..selection import Selection, set_name
from .findings import saved_findings
from .sample_sets import ALL, Answer, Change, SavedList, mask_of_set, packed
from .scan_view import ScanView

MOST_SETS = 200
MOST_NAME = 80


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
            raise InputError("sets", "objects with a name, a hash and a count")
        return cls(_name(given.get("name")), set_name("hash", given.get("hash")), given["count"])


def set_names(view: ScanView, selection: Selection, message: Json) -> Answer:
    """Answer the named sets of a scan, after a change (`do`: save, delete) if any."""
    before = saved_sets(view) if message.get("do") else []
    answer = _SETS.answer(view, message)
    if before:
        _drop_unused(view, {one.hash for one in before} - {one.hash for one in saved_sets(view)})
    return answer


def saved_sets(view: ScanView) -> list[NamedSet]:
    """Read the named sets beside a scan."""
    return _SETS.saved(view)


def _drop_unused(view: ScanView, hashes: set[str]) -> None:
    """Delete the samples of sets that lost their names, unless a finding shows them."""
    shown = {Selection.from_fragment(one.view).subset for one in saved_findings(view)}
    for key in hashes - shown:
        view.sidecar.drop_bits(key)


def _save(view: ScanView, message: Mapping[str, Any]) -> Change[NamedSet]:
    """Save a set under a name, in place of one that had it."""
    name, known = _name(message.get("name")), set_name("set", message.get("set"))
    if known == ALL:
        raise InputError("set", "a part of the samples", "all of them")
    mask = mask_of_set(view, known)
    view.sidecar.keep_bits(packed(mask).tobytes())
    given = NamedSet(name, known, int(mask.sum()))
    return lambda found: [*(one for one in found if one.name != name), given]


def _delete(view: ScanView, message: Mapping[str, Any]) -> Change[NamedSet]:
    return lambda found: [one for one in found if one.name != message.get("name")]


def _name(given: Any) -> str:
    name = printable(given.strip()) if isinstance(given, str) else ""
    if not 0 < len(name) <= MOST_NAME:
        raise InputError("name", f"1 to {MOST_NAME} characters", f"{given!r:.60}")
    return name


_SETS = SavedList("sets", NamedSet.from_json, MOST_SETS, {"save": _save, "delete": _delete})
