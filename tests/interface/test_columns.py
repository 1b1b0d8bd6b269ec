"""Columns of the samples: what filters keep, on every path that they take."""

from __future__ import annotations

import io
from typing import Any, ClassVar

import numpy as np
import pytest
import torch

import orbical as ob
from orbical.errors import InputError
from orbical.groups import translations
from orbical.interface.selection import SelectionClause
from orbical.interface.session import Session
from orbical.interface.session.element_columns import near_to_far
from orbical.interface.session.filter_columns import FilterTexts, texts_matching_filter

SAMPLES = 60


class Photos(ob.data.Source):
    """Digits with names and metadata of each kind."""

    names = tuple(f"IMG_{i:04d}.jpg" for i in range(SAMPLES))
    columns: ClassVar = {
        "species": np.array(["red fox", "wolf", "a..b,c"])[np.arange(SAMPLES) % 3],
        "mass": np.where(np.arange(SAMPLES) == 5, np.nan, np.arange(SAMPLES) / 2),
        "note": np.array([f"seen at {i} o'clock" for i in range(SAMPLES)]),
        "day": np.arange(SAMPLES) % 2 == 0,
    }

    def __len__(self) -> int:
        return SAMPLES

    def read(self, start: int, stop: int) -> tuple[Any, Any]:
        images, labels = ob.datasets.digits()
        return images[start:stop], labels[start:stop]


@pytest.fixture(scope="module")
def scan(nets: dict[str, torch.nn.Module]) -> ob.Scan:
    return ob.scan(nets, Photos(), group="rotations:8", task="classification", progress=False)


@pytest.fixture(scope="module")
def session(scan: ob.Scan) -> Session:
    return Session({"photos": scan})


def kept(session: Session, *clauses: str) -> np.ndarray:
    _, arrays = session.handle({"kind": "subset", "selection": {"filter": [*clauses]}})
    return np.flatnonzero(arrays["mask"])


def test_a_range_keeps_its_ends_and_nothing_that_is_missing(session: Session) -> None:
    assert kept(session, "mass:1..3").tolist() == [2, 3, 4, 6]
    assert kept(session, "mass:..1").tolist() == [0, 1, 2]
    assert kept(session, "mass:0.5,3").tolist() == [1, 6]


def test_categories_texts_and_truths_are_kept_by_name(session: Session) -> None:
    assert kept(session, "species:red%20fox").tolist() == [*range(0, SAMPLES, 3)]
    assert kept(session, "species:wolf,a%2E%2Eb%2Cc").tolist() == [
        i for i in range(SAMPLES) if i % 3
    ]
    assert kept(session, "day:True").tolist() == [*range(0, SAMPLES, 2)]
    assert kept(session, "name:img_003").tolist() == [*range(30, 40)]
    assert kept(session, "note:AT%207%20").tolist() == [7]
    assert kept(session, "species:cat").tolist() == []


def test_columns_of_a_model_are_those_of_the_scan(session: Session, scan: ob.Scan) -> None:
    second = scan.data.sel(model="second")
    upright, right = second.isel(element=0), second["correct"].values > 0
    assert (
        kept(session, "confidence@second:0.5..").tolist()
        == np.flatnonzero(upright["confidence"].values >= 0.5).tolist()
    )
    assert (
        kept(session, "correct@second:incorrect").tolist() == np.flatnonzero(~right[:, 0]).tolist()
    )
    assert (
        kept(session, "predicted@second:3,4").tolist()
        == np.flatnonzero(np.isin(upright["predicted"].values, [3, 4])).tolist()
    )
    gap = second["confidence"].values.mean(1) - right.mean(1)
    assert kept(session, "gap@second:0.1..").tolist() == np.flatnonzero(gap >= 0.1).tolist()
    assert (
        kept(session, "share_correct@second:..0.5").tolist()
        == np.flatnonzero(right.mean(1) <= 0.5).tolist()
    )
    far = np.array([0, 45, 90, 135, 180, 135, 90, 45])
    first = np.where(right.all(1), np.inf, np.where(right, np.inf, far).min(1))
    for low, high in ((0, 0), (45, 90), (90, np.inf)):
        asked = f"first_failure@second:{low}..{'' if high == np.inf else high}"
        assert (
            kept(session, asked).tolist()
            == np.flatnonzero((first >= low) & (first <= high)).tolist()
        )


def test_all_clauses_must_keep_a_sample(session: Session) -> None:
    both = {*kept(session, "species:wolf")} & {*kept(session, "mass:5..9")}
    assert {*kept(session, "species:wolf", "mass:5..9")} == both


@pytest.mark.parametrize(
    ("clause", "named"),
    [
        ("height:1..", "height"),
        ("confidence@nobody:0..", "nobody"),
        ("species:1..2", "species"),
        ("name:1..2", "name"),
        ("mass:heavy", "mass"),
    ],
)
def test_a_filter_that_does_not_fit_is_refused_by_name(
    session: Session, clause: str, named: str
) -> None:
    with pytest.raises(InputError, match=named):
        kept(session, clause)


def test_clauses_are_written_as_they_are_read() -> None:
    for text in ("label:6,9", "a%20b@m%3A1:..0.25", "x:", "t:a%2E%2Eb,c", "gap:-1..2"):
        assert str(SelectionClause.parse(text)) == text


def test_the_map_is_colored_by_any_column(session: Session) -> None:
    for name, scale in (("species", "classes"), ("mass", "sequential"), ("gap", "diverging")):
        header, arrays = session.handle({"kind": "color", "selection": {"color": name}})
        assert header["scale"] == scale
        assert arrays["values"].shape == (SAMPLES,)
    header, _ = session.handle({"kind": "color", "selection": {"color": "species"}})
    assert header["names"] == ["a..b,c", "red fox", "wolf"]
    with pytest.raises(InputError, match="color"):
        session.handle({"kind": "color", "selection": {"color": "name"}})


def test_reach_is_measured_from_the_identity() -> None:
    assert near_to_far(translations(4, 4))[0] == translations(4, 4).identity


def test_texts_are_searched_across_no_line(session: Session) -> None:
    texts = FilterTexts.of(["ab\ncd", "", "ÄB", "b"])
    assert texts_matching_filter(texts, ["b c"]).tolist() == [True, False, False, False]
    assert texts_matching_filter(texts, ["äb"]).tolist() == [False, False, True, False]
    assert texts_matching_filter(texts, ["b\nb"]).tolist() == [False] * 4
    assert texts_matching_filter(texts, [""]).tolist() == [True] * 4
    assert texts_matching_filter(FilterTexts.of([]), ["a"]).tolist() == []


def ask(session: Session, kind: str, **request: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    return session.handle({"kind": kind, **request})


def test_histograms_count_what_the_other_clauses_keep(session: Session) -> None:
    asked = [
        {"column": "species"},
        {"column": "mass"},
        {"column": "first_failure", "model": "first"},
    ]
    selection = {"filter": ["species:wolf", "mass:..10"]}
    header, arrays = ask(session, "columns", selection=selection, columns=asked)
    assert arrays["0/all"].tolist() == [20, 20, 20]
    light = kept(session, "mass:..10")
    assert arrays["0/kept"].tolist() == np.bincount((light + 1) % 3, minlength=3).tolist()
    assert arrays["1/all"].sum() == SAMPLES - 1  # one has no mass
    assert arrays["1/kept"].sum() == 20  # of the wolves, whatever their mass
    assert len(header["columns"][1]["edges"]) == len(arrays["1/all"]) + 1
    assert arrays["2/all"].sum() == SAMPLES
    with pytest.raises(InputError, match="columns"):
        ask(session, "columns", columns=["mass"])


def test_the_list_is_sorted_by_a_column_and_has_no_end(session: Session) -> None:
    header, arrays = ask(session, "list", selection={"order": "-mass"}, start=0, count=5)
    assert (header["total"], arrays["samples"].tolist()) == (SAMPLES, [59, 58, 57, 56, 55])
    _, last = ask(session, "list", selection={"order": "-mass"}, start=55, count=50)
    assert last["samples"].tolist() == [4 - 1, 2, 1, 0, 5]  # without a mass: at the end
    pages = [
        ask(session, "list", selection={"order": "worst"}, start=start, count=7)[1]["samples"]
        for start in range(0, SAMPLES, 7)
    ]
    assert sorted(np.concatenate(pages).tolist()) == [*range(SAMPLES)]
    whole = ask(session, "list", selection={"order": "worst"})[1]
    np.testing.assert_array_equal(np.concatenate(pages), whole["samples"])
    assert (np.diff(whole["values"]) >= 0).all()
    for wrong in ({"start": -1}, {"count": "all"}):
        with pytest.raises(InputError, match="expected an integer >= 0"):
            ask(session, "list", **wrong)
    with pytest.raises(InputError, match="order"):
        ask(session, "list", selection={"order": "species"})


def test_names_and_metadata_come_with_a_sample(session: Session) -> None:
    header, _ = ask(session, "sample", selection={"sample": 4})
    assert header["name"] == "IMG_0004.jpg"
    expected = {"species": "wolf", "mass": 2.0, "note": "seen at 4 o'clock", "day": "True"}
    assert header["facts"] == expected
    header, _ = ask(session, "hover", samples=[3, 4])
    assert header["names"] == ["IMG_0003.jpg", "IMG_0004.jpg"]
    assert header["facts"][1] == expected


def test_a_search_finds_name_class_and_number(session: Session, scan: ob.Scan) -> None:
    labels = scan.data["label"].values
    assert kept(session, "search:img_0012").tolist() == [12]
    assert kept(session, "search:%2312").tolist() == [12]
    named = Session({"photos": scan}, classes=[f"digit{c}" for c in range(10)])
    assert kept(named, "search:digit7").tolist() == np.flatnonzero(labels == 7).tolist()


def test_names_given_to_the_view_replace_those_of_the_scan(scan: ob.Scan) -> None:
    classes = ["crane", *"bcdefgh", "crane", "j"]
    session = Session({"photos": scan}, classes=classes, names=[f"p{i}" for i in range(SAMPLES)])
    state, _ = session.state()
    assert state["classes"][:2] + state["classes"][8:] == ["crane (0)", "b", "crane (8)", "j"]
    assert state["names"][3] == "p3"


@pytest.fixture(scope="module")
def many() -> ob.Scan:
    """A scan without labels of more classes than a consensus is stored for."""
    net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 300))
    images = torch.rand(6, 1, 8, 8, generator=torch.Generator().manual_seed(0))
    return ob.scan(net, images, group="cyclic:4", task="classification", progress=False)


def test_predictions_among_many_unnamed_classes_are_a_column(many: ob.Scan) -> None:
    assert "consensus" not in many.data
    session = Session({"many": many})
    assert session.state()[0]["classes"] == [*range(300)]
    upright = many.data["predicted"].values[0, :, 0]
    assert kept(session, f"predicted:{upright[2]}").tolist() == [
        *np.flatnonzero(upright == upright[2])
    ]
    with pytest.raises(InputError, match="classes: expected 300 names, one for each class, got 1"):
        Session({"many": many}, classes=["a"])


@pytest.mark.parametrize("said", [10**12, "300", 2.5])
def test_a_number_of_classes_that_cannot_be_is_not_believed(many: ob.Scan, said: Any) -> None:
    array = many.arrays["predicted"]
    before = dict(array.attrs)
    array.attrs["classes"] = said
    try:
        assert Session({"many": many}).state()[0]["classes"] == []
    finally:
        array.attrs.update(before)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"classes": ["a"]}, "classes: expected 10 names, one for each class, got 1"),
        ({"classes": "abcdefghij"}, "classes: expected a list of texts"),
        ({"classes": [*range(10)]}, "classes: expected a list of texts"),
        ({"names": ["a", "b"]}, "names: expected 60, one for each sample, got 2"),
        ({"names": "a" * SAMPLES}, "names: expected a list of texts"),
    ],
)
def test_names_that_do_not_fit_are_refused_before_any_work(
    scan: ob.Scan, given: dict[str, Any], words: str
) -> None:
    with pytest.raises(InputError, match=words):
        Session({"photos": scan}, **given)


def test_names_and_metadata_are_exported(session: Session) -> None:
    pq = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
    request = {"kind": "export", "what": "parquet", "selection": {"filter": ["species:wolf"]}}
    _, arrays = session.handle(request)
    table = pq.read_table(io.BytesIO(arrays["file"].tobytes())).to_pydict()
    assert table["name"][:2] == ["IMG_0001.jpg", "IMG_0004.jpg"]
    assert set(table["species"]) == {"wolf"}
    assert table["mass"][1] == 2.0


def test_outcomes_are_missing_where_the_score_is_however_often_they_are_read(monkeypatch):
    images, labels = ob.datasets.digits()
    net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 10))
    scan = ob.scan(
        net, (images[:20], labels[:20]), group="cyclic:4", task="classification", progress=False
    )
    reader, rows = Session(scan).scan_view().reader, slice(0, 20)
    read = type(reader).read
    for missing in (True, False):
        asked: list[str] = []

        def seen(self, name, *place, missing=missing, asked=asked):
            asked.append(name)
            values = read(self, name, *place)
            lost = np.where(np.arange(20)[:, None] == 3, np.nan, values)
            return lost if missing and name == "score_vs_consensus" else values

        monkeypatch.setattr(type(reader), "read", seen)
        for _ in range(2):
            found = reader.responses("correct", rows, 0)
            assert np.isnan(found).any(1).nonzero()[0].tolist() == ([3] if missing else [])
        assert asked.count("score_vs_consensus") == (2 if missing else 1)
        assert np.nanmax(reader.responses("score_vs_consensus", rows, 0)) > 0
