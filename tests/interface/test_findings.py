"""Findings: bookmarked views beside the scan, changed by several pages, read as data only."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from talking import ask

from orbical.errors import InputError, StoreError
from orbical.interface.reports.contents import chosen_samples, report_story
from orbical.interface.selection import Selection
from orbical.interface.session import Session
from orbical.interface.session.subset_request import keep_set
from orbical.interface.sidecar import Sidecar, bits_key


@pytest.fixture
def session(scan: Any, tmp_path: Path) -> Session:
    session = Session({"digits": scan})
    session.scan_view().sidecar = Sidecar(tmp_path / "digits.zarr")
    return session


def finding(number: int, **fields: Any) -> dict[str, Any]:
    usual = {"id": f"{number:08x}", "title": f"finding {number}", "note": "", "view": "sample=3"}
    return {**usual, **fields}


def change(session: Session, do: str, **fields: Any) -> list[str]:
    about, _ = ask(session, "findings", {"do": do, **fields})
    return [one["title"] for one in about["findings"]]


def test_findings_are_saved_moved_changed_and_deleted(session: Session) -> None:
    for number in (1, 2, 3):
        change(session, "save", finding=finding(number))
    assert change(session, "move", id="00000003", to=0) == ["finding 3", "finding 1", "finding 2"]
    edited = finding(1, title="upside down", note="a 6\nis a 9")
    assert change(session, "save", finding=edited) == ["finding 3", "upside down", "finding 2"]
    assert change(session, "delete", id="00000003") == ["upside down", "finding 2"]
    folder = session.scan_view().sidecar.folder
    assert folder is not None
    saved = json.loads((folder / "findings.json").read_text())
    assert [one["note"] for one in saved] == ["a 6\nis a 9", ""]


def test_a_request_sent_twice_adds_once(session: Session) -> None:
    change(session, "save", finding=finding(1))
    assert change(session, "save", finding=finding(1)) == ["finding 1"]


def test_a_view_is_kept_without_the_name_of_its_scan_and_without_what_is_unknown(
    session: Session,
) -> None:
    view = "scan=digits&sample=3&element=2&nonsense=1"
    about, _ = ask(session, "findings", {"do": "save", "finding": finding(1, view=view)})
    assert about["findings"][0]["view"] == "sample=3&element=2"


def test_notes_are_plain_text_without_control_characters(session: Session) -> None:
    given = finding(1, title="<b>x</b>\x1b[2J", note="first\n\u202esecond")
    about, _ = ask(session, "findings", {"do": "save", "finding": given})
    one = about["findings"][0]
    assert (one["title"], one["note"]) == ("<b>x</b>?[2J", "first\n?second")


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"title": "  "}, "finding title: expected one or more characters, got none"),
        ({"title": "x" * 201}, "finding title: expected at most 200 characters, got 201"),
        ({"note": 3}, "finding note: expected text, got int"),
        ({"id": "../../x"}, "finding id: expected 8 to 32 hexadecimal digits, got '../../x'"),
    ],
)
def test_bad_findings_are_named(session: Session, fields: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        change(session, "save", finding=finding(1, **fields))
    with pytest.raises(InputError, match="do: unknown name 'erase'"):
        change(session, "erase")
    with pytest.raises(InputError, match="to: expected an integer, got None"):
        change(session, "move", id="00000001")


def test_a_scan_in_memory_says_that_findings_are_not_saved(scan: Any) -> None:
    session = Session({"digits": scan})
    about, _ = ask(session, "findings", {"do": "save", "finding": finding(1)})
    assert about["unsaved"] == "the scan is in memory only"
    assert ask(session, "findings")[0]["findings"] == about["findings"]


def test_a_file_of_something_else_is_named(session: Session) -> None:
    folder = session.scan_view().sidecar.folder
    assert folder is not None
    folder.mkdir()
    (folder / "findings.json").write_text('[{"id": "00000001", "title": 3}]')
    with pytest.raises(
        StoreError, match=r"findings.json: finding title: expected text, got int; rep"
    ):
        ask(session, "findings")


def test_a_report_holds_the_samples_of_its_findings_in_its_own_numbers(session: Session) -> None:
    view = session.scan_view()
    usual = chosen_samples(view, 6)
    absent = [one for one in range(view.samples) if one not in usual.samples][:2]
    fragment = f"sample={absent[0]}&element=3&pins={absent[1]}&method=tsne"
    change(session, "save", finding=finding(1, title="first", note="why", view=fragment))
    chosen = chosen_samples(view, 6)
    assert {*chosen.samples} == {*usual.samples, *absent}
    assert re.search(r"and [23] samples of findings$", chosen.how)  # one may be the headline's
    found, _ = report_story(view, chosen, ["pca"])
    told = Selection.from_fragment(found[0]["view"])
    assert chosen.samples[[told.sample, *told.pins]].tolist() == absent
    assert (told.element, told.method) == (3, "pca")


def test_the_subset_of_a_finding_outlives_the_session_and_is_that_of_the_report(
    session: Session, scan: Any
) -> None:
    mask = np.arange(90) % 3 == 0
    name = keep_set(session.scan_view(), mask)
    change(session, "save", finding=finding(1, view=f"sample=3&subset={name}"))
    later = Session({"digits": scan})
    later.scan_view().sidecar = session.scan_view().sidecar
    assert ask(later, "subset", subset=name)[0]["count"] == 30
    chosen = chosen_samples(later.scan_view(), 12)
    found, sets = report_story(later.scan_view(), chosen, ["pca"])
    here = np.unpackbits(sets[0], count=len(chosen.samples), bitorder="little").astype(bool)
    np.testing.assert_array_equal(here, mask[chosen.samples])
    assert Selection.from_fragment(found[0]["view"]).subset == bits_key(sets[0].tobytes())
    with pytest.raises(InputError, match="expected a set of samples that is known here"):
        change(later, "save", finding=finding(2, view=f"subset={'0' * 16}"))
