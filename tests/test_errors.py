"""Errors have fields, and their text follows one grammar."""

from __future__ import annotations

import ast
import copy
import pickle
from pathlib import Path

import numpy as np
import pytest

import orbical as ob
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


OUTPUTS = np.full((4, 2), 0.5)


@pytest.mark.parametrize(
    ("call", "works"),
    [
        (lambda: ob.calibration.nll(OUTPUTS, [0] * 4), "call nll(probs=probs, labels=labels)"),
        (
            lambda: ob.calibration.classification_table(OUTPUTS, [0] * 4),
            "call classification_table(probs=probs, labels=labels)",
        ),
        (lambda: ob.calibration.classwise_ece(OUTPUTS, [0] * 4), "call classwise_ece(probs="),
        (lambda: ob.calibration.compare_outputs(OUTPUTS, OUTPUTS), 'compare_outputs({"a": {"pro'),
        (lambda: ob.calibration.compare_outputs({"a": OUTPUTS}), 'compare_outputs({"a": {"probs"'),
        (
            lambda: ob.scan(len, OUTPUTS, interpolation="bicubic"),
            "ob.actions.Images(interpolation=",
        ),
        (lambda: ob.scan(len, OUTPUTS, outputs="logits"), "ob.tasks.Classification(outputs="),
        (lambda: ob.scan(len, OUTPUTS, batchsize=2), "did you mean 'batch_size'?"),
    ],
)
def test_arguments_that_do_not_fit_are_answered_with_the_call_that_works(call, works):
    with pytest.raises(InputError) as raised:
        call()
    assert works in str(raised.value)


@pytest.mark.parametrize(
    ("call", "answer"),
    [
        (lambda: ob.conformal.LAC(alpha=0.1), "LAC: unknown name 'alpha' (known: coverage, out"),
        (lambda: ob.recalibrate.Temperature("probabilities"), "call Temperature(*, outputs='logi"),
        (lambda: ob.tasks.Regression(unit="m"), "Regression: unknown name 'unit' (known: input, "),
        (lambda: ob.tasks.Classification(action=None), "Classification: unknown name 'action' (k"),
        (lambda: ob.data.ImageFolder("photos", image_size=64), "did you mean 'size'?"),
        (lambda: ob.actions.Window(siz=8), "Window: unknown name 'siz'; did you mean 'size'?"),
        (lambda: ob.predictors.TorchPredictor(), "call TorchPredictor(module"),
    ],
)  # fmt: skip
def test_a_constructor_names_its_class_and_what_it_takes(call, answer):
    with pytest.raises(InputError) as raised:
        call()
    assert answer in str(raised.value)


def test_a_p_value_below_what_is_shown_is_not_zero():
    draw = np.random.default_rng(0)
    confidence, correct = np.full(2000, 0.6), draw.random(2000) < 0.6
    worse = ob.calibration.compare("ece", (confidence, correct), (confidence + 0.4, correct))
    assert "p < 0.001" in str(worse)
