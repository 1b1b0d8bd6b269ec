"""Errors have fields, and their text follows one grammar."""

from __future__ import annotations

import ast
import copy
import pickle
from pathlib import Path

import pytest

from orbical.errors import InputError, unknown_name


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (InputError("bins", "an integer >= 1", 0), "bins: expected an integer >= 1, got 0"),
        (InputError("out", "a folder"), "out: expected a folder"),
        (InputError("x", "numbers", "text", remedy="encode it"), "x: expected numbers, got text; "
         "encode it"),
        (InputError("data", problem="it is empty"), "data: it is empty"),
    ],
)  # fmt: skip
def test_the_text_names_argument_expected_got_and_remedy(error: InputError, text: str) -> None:
    assert str(error) == text


def test_an_error_about_another_argument_keeps_its_words() -> None:
    error = InputError("data", "numbers", "text", remedy="encode it")
    assert str(error.about("--data")) == "--data: expected numbers, got text; encode it"
    assert error.about("x", remedy="drop it").remedy == "drop it"
    assert (error.argument, error.expected, error.got) == ("data", "numbers", "text")


@pytest.mark.parametrize("clone", [copy.copy, lambda error: pickle.loads(pickle.dumps(error))])
def test_errors_travel_between_processes(clone) -> None:
    error = InputError("data", problem="it is empty", remedy="pass more")
    assert str(clone(error)) == str(error)
    assert clone(error).remedy == "pass more"


def test_a_near_name_is_the_remedy() -> None:
    assert unknown_name("group", "rotation", ["rotations"]).remedy.startswith("did you mean")
    assert not unknown_name("group", "zzz", ["rotations"]).remedy


def test_every_place_that_raises_gives_fields() -> None:
    """A single string would be taken for the name of the argument."""
    root = Path(__file__).resolve().parents[1]
    folders = ("src", "studies", "audits", "examples", "tests")
    whole = [
        f"{path.relative_to(root)}:{node.lineno}"
        for folder in folders
        for path in (root / folder).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call)
        and ast.unparse(node.func).rpartition(".")[2] == "InputError"
        and len(node.args) + len(node.keywords) == 1
    ]
    assert not whole


def test_no_remedy_brings_a_separator_of_its_own() -> None:
    import orbical as ob

    with pytest.raises(InputError) as caught:
        ob.calibration.ece([1.5, 0.2], [1, 0])
    assert "; ;" not in str(caught.value)
    assert "top_label(logits=" in caught.value.remedy


def test_where_nothing_is_known_the_list_says_so() -> None:
    assert str(unknown_name("by", "label", [])).endswith("(known: none)")
