"""Sets of samples: how they are made, what they are called, and what is said of unknown ones."""

from __future__ import annotations

import base64
import hashlib
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from talking import ask, decode, lassoed

from orbical.errors import InputError, StoreError
from orbical.interface import open_session
from orbical.interface.session import Session, sample_maps

SQUARE = [[-0.4, -1.1], [0.6, -1.1], [0.6, 0.5], [-0.4, 0.5]]


def make(session: Session, recipe: Any, **selection: Any) -> tuple[str, set[int]]:
    """Make a set: its name and its samples."""
    header, arrays = ask(session, "set", {"recipe": recipe}, **selection)
    mask = np.unpackbits(arrays["bits"], count=120, bitorder="little")
    assert header["count"] == mask.sum()
    return header["hash"], {*np.flatnonzero(mask).tolist()}


def test_a_set_is_named_by_its_contents(session: Session) -> None:
    name, members = make(session, {"samples": [3, 0, 119]})
    assert members == {0, 3, 119}
    bits = bytearray(15)
    bits[0], bits[14] = 0b1001, 0b10000000
    assert name == hashlib.sha256(bits).hexdigest()[:16]
    assert make(session, {"samples": [119, 3, 3, 0]})[0] == name
    assert make(session, name) == (name, members)


def test_union_intersection_and_difference(session: Session) -> None:
    one, _ = make(session, {"samples": [1, 2, 3]})
    two = {"samples": [3, 4]}
    assert make(session, {"union": [one, two]})[1] == {1, 2, 3, 4}
    assert make(session, {"intersection": [one, two]})[1] == {3}
    assert make(session, {"difference": [one, two]})[1] == {1, 2}
    assert make(session, {"difference": ["", one]})[1] == {*range(120)} - {1, 2, 3}
    assert make(session, {"union": ["", one]})[0] == ""


def test_the_samples_shown_become_a_set(session: Session) -> None:
    label = session.scan_view().label
    assert label is not None
    few, _ = make(session, {"samples": [*range(60)]})
    _, members = make(session, {"shown": True}, filter=["label:3"], subset=few)
    assert members == {*np.flatnonzero(label[:60] == 3).tolist()}


def test_a_lasso_is_of_the_map_that_it_states_whatever_map_is_shown(session: Session) -> None:
    stated = {"method": "ica", "of": "second", "reference": "consensus"}
    xy = ask(session, "embedding", **stated)[1]["xy"]
    inside = (xy[:, 0] > -0.4) & (xy[:, 0] < 0.6) & (xy[:, 1] < 0.5)
    recipe = {"lasso": {"polygon": SQUARE, **stated}}
    _, members = make(session, recipe, method="pca", of="first")
    assert members == {*np.flatnonzero(inside).tolist()}
    assert make(session, recipe)[0] != lassoed(session, SQUARE)


def test_an_embedding_says_which_map_it_is(session: Session) -> None:
    header, _ = ask(session, "embedding", method="ica", of="first")
    assert [header[name] for name in ("method", "of", "reference")] == ["ica", "first", "truth"]


def test_a_forgotten_set_is_refused_by_a_code_until_its_bits_are_sent_again(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, later = (open_session(folder / "digits.zarr") for _ in range(2))
    name = lassoed(first, SQUARE)
    _, arrays = ask(first, "set", {"recipe": name})
    request = {"kind": "aggregate", "sequence": 9, "selection": {"subset": name}}
    header, _ = decode(later.answer(request))
    assert (header["code"], header["set"], header["sequence"]) == ("unknown-set", name, 9)
    assert "selection subset: expected a set of samples that is known here" in header["error"]
    monkeypatch.setattr(sample_maps, "sample_map", None)  # the map is not needed any more
    bits = base64.b64encode(arrays["bits"].tobytes()).decode()
    assert ask(later, "set", {"recipe": {"bits": bits}})[0]["hash"] == name
    assert decode(later.answer(request))[0]["count"] == decode(first.answer(request))[0]["count"]


def test_a_set_beside_the_scan_is_known_after_a_restart(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder / "digits.zarr", tmp_path / "run.zarr")
    first = open_session(tmp_path / "run.zarr")
    name = lassoed(first, SQUARE)
    _, arrays = ask(first, "subset", subset=name)
    first.scan_view().sidecar.keep_bits(np.packbits(arrays["mask"], bitorder="little").tobytes())
    later = open_session(tmp_path / "run.zarr")
    np.testing.assert_array_equal(ask(later, "subset", subset=name)[1]["mask"], arrays["mask"])


@pytest.mark.parametrize(
    ("recipe", "message"),
    [
        (None, "recipe: expected a hash or an object with one field, got NoneType"),
        ("not a hash", "recipe: expected 16 hexadecimal digits"),
        ({}, "one field"),
        ({"unoin": ["", ""]}, "did you mean 'union'"),
        ({"union": [""]}, "expected two recipes"),
        ({"samples": [120]}, "expected 0 to 119, got 120 to 120"),
        ({"samples": [0.5]}, "expected a list of sample numbers"),
        ({"samples": "12"}, "expected a list of sample numbers"),
        ({"samples": [[1]]}, "expected a list of sample numbers"),
        ({"samples": [2**70]}, "expected a list of sample numbers"),
        ({"bits": "AAAA"}, "expected 15 bytes for 120 samples, got 3"),
        ({"bits": "?"}, "expected bits in base64"),
        ({"bits": 5}, "expected bits in base64"),
        ({"lasso": SQUARE}, "expected a polygon with its map, got list"),
        ({"lasso": {"polygon": SQUARE[:2]}}, "polygon: expected 3 to 1024 corners"),
        ({"lasso": {"polygon": [[0, 1], [2]]}}, "polygon: expected corners"),
        ({"lasso": {"polygon": [[0, float("nan")]] * 3}}, "polygon: expected a number"),
        ({"lasso": {"polygon": [[0, 0]] * 2000}}, "polygon: expected a list of at most 1024"),
        ({"lasso": {"polygon": SQUARE, "method": "no"}}, "selection method"),
    ],
)
def test_a_recipe_that_is_none_is_refused_by_name(
    session: Session, recipe: Any, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        session.handle({"kind": "set", "recipe": recipe})


@pytest.fixture
def store(folder: Path, tmp_path: Path) -> Path:
    """A scan of its own, to write beside."""
    return Path(shutil.copytree(folder / "digits.zarr", tmp_path / "run.zarr"))


def test_named_sets_are_saved_beside_the_scan_and_known_after_a_restart(store: Path) -> None:
    first = open_session(store)
    name, members = make(first, {"samples": [3, 7]})
    saved, _ = ask(first, "names", {"do": "save", "name": " sixes ", "set": name})
    assert saved["sets"] == [{"name": "sixes", "hash": name, "count": 2}]
    assert saved["unsaved"] == ""
    later = open_session(store)
    assert ask(later, "names")[0]["sets"] == saved["sets"]
    assert make(later, name) == (name, members)
    other, _ = make(later, {"samples": [9]})
    again, _ = ask(later, "names", {"do": "save", "name": "sixes", "set": other})
    assert again["sets"] == [{"name": "sixes", "hash": other, "count": 1}]
    assert [path.stem for path in store.with_name(store.name + ".view").glob("*.bits")] == [other]
    assert ask(later, "names", {"do": "delete", "name": "sixes"})[0]["sets"] == []
    assert not [*store.with_name(store.name + ".view").glob("*.bits")]


def test_the_samples_of_a_deleted_name_stay_if_a_finding_shows_them(store: Path) -> None:
    session = open_session(store)
    name, _ = make(session, {"samples": [3, 7]})
    ask(session, "names", {"do": "save", "name": "sixes", "set": name})
    finding = {"id": "00000001", "title": "sixes", "note": "", "view": f"subset={name}"}
    ask(session, "findings", {"do": "save", "finding": finding})
    ask(session, "names", {"do": "delete", "name": "sixes"})
    assert session.scan_view().sidecar.bits(name) is not None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"do": "save", "name": "", "set": "0" * 16}, "name: expected 1 to 80 characters"),
        ({"do": "save", "name": "x" * 81, "set": "0" * 16}, "name: expected 1 to 80 characters"),
        ({"do": "save", "name": 3, "set": "0" * 16}, "name: expected 1 to 80 characters"),
        ({"do": "save", "name": "a", "set": ""}, "expected a part of the samples"),
        ({"do": "save", "name": "a", "set": "0" * 16}, "known here"),
        ({"do": "rename"}, "do: unknown name 'rename'"),
    ],
)
def test_a_name_that_cannot_be_given_is_refused(
    session: Session, change: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        ask(session, "names", change)


def test_a_damaged_file_of_names_is_named(store: Path) -> None:
    beside = store.with_name("run.zarr.view")
    beside.mkdir()
    (beside / "sets.json").write_text('[{"name": "a", "hash": "x", "count": 1}]')
    with pytest.raises(StoreError, match=r"sets\.json: .*repair or remove"):
        ask(open_session(store), "names")
