"""Findings: views that a reader bookmarked, with a title and a note, saved beside the scan."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from ..._text import printable
from ...errors import InputError
from ...store import Json
from ..selection import Selection
from .sample_sets import ALL, Answer, Change, SavedList, mask_of_set, packed
from .scan_view import ScanView

MOST_FINDINGS = 200
MOST_TITLE = 200
MOST_NOTE = 4_000
MOST_VIEW = 20_000
_ID = re.compile(r"[0-9a-f]{8,32}")


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
    def from_json(cls, given: Any) -> Finding:
        """Read a finding of a request or a file; wrong types and lengths raise an `InputError`."""
        if not isinstance(given, Mapping):
            raise InputError("finding", "an object", type(given).__name__)
        if not _ID.fullmatch(_text(given, "id", 32)):
            raise InputError("finding id", "8 to 32 hexadecimal digits", repr(given["id"]))
        title = printable(_text(given, "title", MOST_TITLE).strip())
        if not title:
            raise InputError("finding title", "one or more characters", "none")
        lines = _text(given, "note", MOST_NOTE).strip().splitlines()
        view = Selection.from_fragment(_text(given, "view", MOST_VIEW))
        note = "\n".join(printable(line) for line in lines)
        return cls(given["id"], title, note, replace(view, scan="").to_fragment())


def findings(view: ScanView, selection: Selection, message: Json) -> Answer:
    """Answer the findings of a scan, after a change (`do`: save, delete, move) if any."""
    return _FINDINGS.answer(view, message)


def saved_findings(view: ScanView) -> list[Finding]:
    """Read the findings beside a scan."""
    return _FINDINGS.saved(view)


def _save(view: ScanView, message: Mapping[str, Any]) -> Change[Finding]:
    """Add a finding at the end, or change the one of the same id where it is."""
    given = Finding.from_json(message.get("finding"))
    _keep_subset(view, given)

    def saved(found: list[Finding]) -> list[Finding]:
        if given.id in [one.id for one in found]:
            return [given if one.id == given.id else one for one in found]
        return [*found, given]

    return saved


def _keep_subset(view: ScanView, finding: Finding) -> None:
    """Save the samples of a finding's subset, which its view only names."""
    subset = Selection.from_fragment(finding.view).subset
    if subset != ALL:
        view.sidecar.keep_bits(packed(mask_of_set(view, subset)).tobytes())


def _delete(view: ScanView, message: Mapping[str, Any]) -> Change[Finding]:
    return lambda found: [one for one in found if one.id != message.get("id")]


def _move(view: ScanView, message: Mapping[str, Any]) -> Change[Finding]:
    """Move a finding to another place."""
    to, rest_of = message.get("to"), _delete(view, message)
    if isinstance(to, bool) or not isinstance(to, int):
        raise InputError("to", "an integer", repr(to))

    def moved(found: list[Finding]) -> list[Finding]:
        rest = rest_of(found)
        place = min(max(to, 0), len(rest))
        return [*rest[:place], *(one for one in found if one not in rest), *rest[place:]]

    return moved


def _text(given: Mapping[str, Any], name: str, most: int) -> str:
    value = given.get(name, "")
    if not isinstance(value, str):
        raise InputError(f"finding {name}", "text", type(value).__name__)
    if len(value) > most:
        raise InputError(f"finding {name}", f"at most {most:,} characters", f"{len(value):,}")
    return value


_FINDINGS = SavedList(
    "findings",
    Finding.from_json,
    MOST_FINDINGS,
    {"save": _save, "delete": _delete, "move": _move},
)
