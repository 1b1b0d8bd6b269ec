"""The selection: what it accepts, and that Python and JavaScript write the same addresses."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from orbical.errors import InputError
from orbical.interface.selection import Selection

CASES = json.loads((Path(__file__).parents[1] / "web" / "selection_cases.json").read_text())


def plain(selection: Selection) -> Any:
    return json.loads(json.dumps(dataclasses.asdict(selection)))


@pytest.mark.parametrize("case", CASES, ids=[case["fragment"] for case in CASES])
def test_addresses_are_written_and_read_as_by_the_page(case: dict[str, Any]) -> None:
    selection = Selection.from_json(case["selection"])
    assert selection.to_fragment() == case["fragment"]
    read = Selection.from_fragment("#" + case["fragment"])
    assert plain(read) == {**plain(Selection()), **case["selection"]}


def test_numbers_in_an_address_have_four_decimals_at_most() -> None:
    assert Selection(position=(12.345678,)).to_fragment() == "position=12.3457"
    assert Selection(position=(-0.00001, 0.1)).to_fragment() == "position=0,0.1"
    # A tie, which JavaScript's toFixed rounds away from zero and Python's format to even.
    assert Selection(position=(0.03125,)).to_fragment() == "position=0.0313"


@pytest.mark.parametrize(
    "text",
    [
        "#sample=one",
        "#color",
        "#who=me",
        "#filter=label",
        "#filter=label:6;gap:x..2",
        "#position=,",
        "#sample=1e3",
        "#sample=1_0",
        "#position=1_0",
        "#position=nan",
        "#subset=all",
    ],
)
def test_an_address_opens_what_it_can(text: str) -> None:
    assert Selection.from_fragment(text) == Selection()
    assert Selection.from_fragment(text + "&element=4").element == 4


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ([], "selection"),
        ({"who": 1}, "who"),
        ({"sample": "3"}, "sample"),
        ({"sample": True}, "sample"),
        ({"sample": 3.5}, "sample"),
        ({"sample": 2**40}, "sample"),
        ({"labels": [3]}, "labels"),
        ({"filter": "label:3"}, "filter"),
        ({"filter": [3]}, "filter"),
        ({"filter": ["label"]}, "filter"),
        ({"filter": [":3"]}, "filter"),
        ({"filter": ["gap@:3"]}, "filter"),
        ({"filter": ["gap:a..b"]}, "filter"),
        ({"filter": ["gap:nan.."]}, "filter"),
        ({"filter": ["label:" + "1," * 40_000]}, "filter"),
        ({"filter": ["label:1"] * 65}, "filter"),
        ({"subset": "0123"}, "subset"),
        ({"subset": "0123456789ABCDEF"}, "subset"),
        ({"subset": 3}, "subset"),
        ({"position": [1, 2, 3, 4]}, "position"),
        ({"reference": "mine"}, "reference"),
        ({"color": ["mean"]}, "color"),
        ({"dense": 1}, "dense"),
        ({"pins": [0.5]}, "pins"),
        ({"marks": "stars"}, "marks"),
        ({"pins": [1, 2, 3, 4, 5, 6, 7, 8, 9]}, "pins"),
        ({"models": "plain"}, "models"),
        ({"scan": "x" * 10_000}, "scan"),
        ({"order": None}, "order"),
    ],
)
def test_a_request_with_another_selection_is_refused_by_name(given: Any, named: str) -> None:
    with pytest.raises(InputError, match=named):
        Selection.from_json(given)
