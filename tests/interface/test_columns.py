"""Columns of the samples: what filters keep, on every path that they take."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import pytest
import torch

import orbical as ob
from orbical.errors import InputError
from orbical.groups import translations
from orbical.interface.clauses import Clause
from orbical.interface.session import Session
from orbical.interface.session.orbit_failures import near_to_far, reach_of
from orbical.interface.session.text_columns import Texts, matching

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
        assert str(Clause.parse(text)) == text


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
    reach, unit = reach_of(translations(4, 4)) or (np.zeros(0), "")
    assert (reach.max(), unit) == (pytest.approx(32**0.5), "px")
    assert near_to_far(translations(4, 4))[0] == translations(4, 4).identity
    assert reach_of(ob.groups.flips()) is None


def test_texts_are_searched_across_no_line(session: Session) -> None:
    texts = Texts.of(["ab\ncd", "", "ÄB", "b"])
    assert matching(texts, ["b c"]).tolist() == [True, False, False, False]
    assert matching(texts, ["äb"]).tolist() == [False, False, True, False]
    assert matching(texts, ["b\nb"]).tolist() == [False] * 4
    assert matching(texts, [""]).tolist() == [True] * 4
    assert matching(Texts.of([]), ["a"]).tolist() == []
