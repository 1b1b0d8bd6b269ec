"""What a reader saves beside a scan: findings, that is views with a title and a note, and sets."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from operator import attrgetter
from typing import TYPE_CHECKING, Generic, TypeVar

import numpy as np

from ..._text import printable
from ...errors import InputError, StoreError, check_name
from ...store import Json
from ..selection import Selection, set_name
from .scan_view import ScanView
from .subset_request import ALL, Answer, SubsetRequest, UnknownSubset, mask_of_subset, packed_subset

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Array = np.ndarray
MOST_ENTRIES = 200
MOST_NAME = 80
MOST_TITLE = 200
MOST_NOTE = 4_000
MOST_VIEW = 20_000
_ID = re.compile(r"[0-9a-f]{8,32}")
_Entry = TypeVar("_Entry", bound="DataclassInstance")
Change = Callable[[list[_Entry]], list[_Entry]]


@dataclass(frozen=True)
class SavedList(Generic[_Entry]):
    """A list in a document beside the scan.

    Attributes:
        name: The document, and the field of an answer.
        entry: Reads an entry of a file; what it refuses raises an `InputError`.
        changes: What a request can `do`: from the request to a change of the list.
    """

    name: str
    entry: Callable[[object], _Entry]
    changes: Mapping[str, Callable[[SubsetRequest], Change[_Entry]]]

    def answer(self, request: SubsetRequest) -> Answer:
        """Answer the list, after a change if the request has any."""
        do, view = request.message.get("do"), request.view
        if do is None:
            entries = self.saved(view)
        else:
            check_name("do", do, self.changes)
            entries = self.update(view, self.changes[do](request))
        return {self.name: [asdict(one) for one in entries], "unsaved": view.sidecar.unsaved}, {}

    def saved(self, view: ScanView) -> list[_Entry]:
        """Read the list beside a scan."""
        return self._read(view.sidecar.read(self.name, []))

    def update(self, view: ScanView, change: Change[_Entry]) -> list[_Entry]:
        """Change the list beside a scan, and return it."""

        def changed(document: object) -> object:
            after = change(self._read(document))
            if len(after) > MOST_ENTRIES:
                raise InputError(self.name, f"at most {MOST_ENTRIES}", len(after))
            return [asdict(one) for one in after]

        return self._read(view.sidecar.update(self.name, [], changed))

    def _read(self, document: object) -> list[_Entry]:
        """Read a document; what is no list of entries raises `StoreError` with the remedy."""
        try:
            if not isinstance(document, list):
                raise InputError(self.name, "a list", type(document))
            return [self.entry(one) for one in document[:MOST_ENTRIES]]
        except InputError as error:
            raise StoreError(f"{self.name}.json: {error}; repair or remove the file") from None


@dataclass(frozen=True)
class Finding:
    """One finding.

    Attributes:
        id: Its name, chosen by the page, so that a request sent twice adds it once.
        title: One line.
        note: Plain text, several lines.
        view: The selection as the fragment of an address, without the name of the scan.
    """

    id: str
    title: str
    note: str
    view: str

    @classmethod
    def from_json(cls, given: object) -> Finding:
        """Read a finding of a request or a file; wrong types and lengths raise an `InputError`."""
        if not isinstance(given, Mapping):
            raise InputError("finding", "an object", type(given))
        if not _ID.fullmatch(_text(given, "id", 32)):
            raise InputError("finding id", "8 to 32 hexadecimal digits", repr(given.get("id")))
        title = printable(_text(given, "title", MOST_TITLE).strip())
        if not title:
            raise InputError("finding title", "one or more characters", "none")
        lines = _text(given, "note", MOST_NOTE).strip().splitlines()
        view = Selection.from_fragment(_text(given, "view", MOST_VIEW))
        note = "\n".join(printable(line) for line in lines)
        return cls(given["id"], title, note, replace(view, scan="").to_fragment())

    @property
    def selection(self) -> Selection:
        """What its view shows."""
        return Selection.from_fragment(self.view)


@dataclass(frozen=True)
class NamedSet:
    """A set of samples with its name, the hash of its contents and the number of its samples."""

    name: str
    hash: str
    count: int

    @classmethod
    def from_json(cls, given: object) -> NamedSet:
        """Read a named set of a file; anything else raises an `InputError`."""
        if not isinstance(given, Mapping) or not isinstance(given.get("count"), int):
            raise InputError("sets", "objects with a name, a hash and a count")
        return cls(_name(given.get("name")), set_name("hash", given.get("hash")), given["count"])


def set_names(request: SubsetRequest) -> Answer:
    """Answer the named sets of a scan, after a change (`do`: save, tag, delete) if any.

    The samples of sets that lost their names are deleted, unless a finding shows them.
    """
    before = SETS.saved(request.view) if request.message.get("do") else []
    about, arrays = SETS.answer(request)
    if before:
        held = {one.hash for one in SETS.saved(request.view)}
        held |= {one.selection.subset for one in FINDINGS.saved(request.view)}
        for key in {one.hash for one in before} - held:
            request.view.sidecar.drop_bits(key)
    return {**about, "tags": tags_of(request.view, request.sample)}, arrays


def tags_of(view: ScanView, sample: int) -> list[str]:
    """Return the tags of a sample: the names of the sets that hold it."""
    return [one.name for one in SETS.saved(view) if mask_of_subset(view, one.hash)[sample]]


def tagged(view: ScanView) -> dict[str, Array]:
    """Return which samples have each tag `[N]`; sets whose samples were lost are left out."""
    found: dict[str, Array] = {}
    for one in SETS.saved(view):
        with contextlib.suppress(UnknownSubset):
            found[one.name] = mask_of_subset(view, one.hash)
    return found


def tag(view: ScanView, name: str, samples: Array) -> None:
    """Save samples `[N]` under a name, in place of those that had it; none remove the name."""
    SETS.update(view, _tagged(view, _name(name), samples))


def _save_finding(request: SubsetRequest) -> Change[Finding]:
    """Add a finding at the end, or change the one of the same id where it is."""
    finding = Finding.from_json(request.message.get("finding"))
    if finding.selection.subset != ALL:  # which its view only names
        mask = mask_of_subset(request.view, finding.selection.subset)
        request.view.sidecar.keep_bits(packed_subset(mask).tobytes())
    return _with(finding, "id")


def _move_saved_finding(request: SubsetRequest) -> Change[Finding]:
    """Move a finding to another place."""
    to = request.message.get("to")
    if isinstance(to, bool) or not isinstance(to, int):
        raise InputError("to", "an integer", repr(to))

    def moved(before: list[Finding]) -> list[Finding]:
        rest = [one for one in before if one.id != request.message.get("id")]
        place = min(max(to, 0), len(rest))
        return [*rest[:place], *(one for one in before if one not in rest), *rest[place:]]

    return moved


def _save_set(request: SubsetRequest) -> Change[NamedSet]:
    """Save a set under a name, in place of one that had it."""
    name, known = _name(request.message.get("name")), set_name("set", request.message.get("set"))
    if known == ALL:
        raise InputError("set", "a part of the samples", "all of them")
    return _named(request.view, name, mask_of_subset(request.view, known))


def _tag_sample(request: SubsetRequest) -> Change[NamedSet]:
    """Add the selected sample to the set of a name, or take it out (`on`: false)."""
    name, view = _name(request.message.get("name")), request.view
    held = next((one.hash for one in SETS.saved(view) if one.name == name), None)
    mask = np.zeros(view.samples, bool) if held is None else mask_of_subset(view, held)
    mask[request.sample] = request.message.get("on") is not False
    return _tagged(view, name, mask)


def _tagged(view: ScanView, name: str, mask: Array) -> Change[NamedSet]:
    """Keep samples under a name; none remove it."""
    return _named(view, name, mask) if mask.any() else _without("name", name)


def _named(view: ScanView, name: str, mask: Array) -> Change[NamedSet]:
    key = view.sidecar.keep_bits(packed_subset(mask).tobytes())
    return _with(NamedSet(name, key, int(mask.sum())), "name")


def _with(entry: _Entry, field: str) -> Change[_Entry]:
    """Put an entry where the one with the same value of a field is, else at the end."""
    key = attrgetter(field)
    return lambda before: [*({key(one): one for one in (*before, entry)}.values())]


def _without(field: str, unwanted: object) -> Change[_Entry]:
    """Leave out what has a value of a field."""
    return lambda before: [one for one in before if getattr(one, field) != unwanted]


def _name(given: object) -> str:
    name = printable(given.strip()) if isinstance(given, str) else ""
    if not 0 < len(name) <= MOST_NAME:
        raise InputError("name", f"1 to {MOST_NAME} characters", f"{given!r:.60}")
    return name


def _text(given: Json | Mapping[str, object], name: str, most: int) -> str:
    value = given.get(name, "")
    if not isinstance(value, str):
        raise InputError(f"finding {name}", "text", type(value))
    if len(value) > most:
        raise InputError(f"finding {name}", f"at most {most:,} characters", f"{len(value):,}")
    return value


FINDINGS = SavedList(
    "findings",
    Finding.from_json,
    {
        "save": _save_finding,
        "delete": lambda request: _without("id", request.message.get("id")),
        "move": _move_saved_finding,
    },
)
"""The findings of a scan; a request can save, delete or move one."""
SETS = SavedList(
    "sets",
    NamedSet.from_json,
    {
        "save": _save_set,
        "tag": _tag_sample,
        "delete": lambda request: _without("name", request.message.get("name")),
    },
)
"""The named sets of a scan; a request can save or delete one, or tag a sample."""
