"""The confusion matrix at a position, and conformal sets along the orbit."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import orbical as ob
from orbical.conformal import along_orbit
from orbical.errors import InputError
from orbical.interface.session import Session, class_answers


def asked(session, kind, **selection):
    return session.handle({"kind": kind, "sequence": 1, "selection": selection})


def test_a_matrix_counts_expected_and_predicted_classes(session, digits):
    about, arrays = asked(session, "confusion", element=6)
    label = digits.data["label"].values
    predicted = digits.data["predicted"].values[1, :, 6]
    expected = np.zeros((10, 10), int)
    np.add.at(expected, (label, predicted), 1)
    np.testing.assert_array_equal(arrays["counts"][1], expected)
    assert about["count"] == 120
    first = arrays["pairs"][1, 0]
    wrong = expected - np.diag(np.diag(expected))
    assert first[2] == wrong.max() == expected[first[0], first[1]]


def test_against_the_consensus_rows_are_its_classes(session, digits):
    _, arrays = asked(session, "confusion", reference="consensus", element=4)
    consensus = digits.data["consensus"].values[0].argmax(-1)
    np.testing.assert_array_equal(arrays["counts"][0].sum(1), np.bincount(consensus, minlength=10))


def test_many_classes_have_a_list_of_confusions(session, monkeypatch):
    monkeypatch.setattr(class_answers, "MOST_CLASSES", 5)
    _, arrays = asked(session, "confusion")
    assert "counts" not in arrays
    assert arrays["pairs"].shape == (2, class_answers.MOST_PAIRS, 3)


@pytest.mark.parametrize("recipe", ["cell", "band"])
def test_what_is_counted_can_be_chosen(session, digits, recipe):
    here = {"element": 6, "filter": ["label:3,5,8"]}
    given = {"cell": {"model": "second", "expected": 3, "predicted": 8}}
    given |= {"band": {"model": "second", "band": 0}}
    message = {"kind": "set", "sequence": 1, "selection": here, "recipe": {recipe: given[recipe]}}
    about, arrays = session.handle(message)
    mask = np.unpackbits(arrays["bits"], count=120, bitorder="little").astype(bool)
    label = digits.data["label"].values
    if recipe == "cell":
        expected = (label == 3) & (digits.data["predicted"].values[1, :, 6] == 8)
    else:
        score = digits.data["score"].values[1, :, 6]
        among = np.isin(label, [3, 5, 8])
        expected = among & (score <= np.quantile(score[among], 0.05).astype(np.float32))
    np.testing.assert_array_equal(mask, expected)
    assert about["count"] == expected.sum()


@pytest.mark.parametrize(
    "given", [None, {"model": "first", "expected": 3, "predicted": 10}, {"model": "x"}]
)
def test_a_cell_that_does_not_exist_is_named(session, given):
    message = {"kind": "set", "sequence": 1, "selection": {}, "recipe": {"cell": given}}
    with pytest.raises(InputError, match="cell"):
        session.handle(message)


@pytest.mark.parametrize(("scope", "calibrate"), [("element", "identity"), ("orbit", "pooled")])
def test_sets_are_those_of_the_library(session, digits, scope, calibrate):
    about, arrays = asked(session, "coverage", scope=scope)
    found = along_orbit(digits, calibrate=calibrate)
    np.testing.assert_allclose(arrays["coverage"], found.coverage.values)
    np.testing.assert_allclose(arrays["size"], found.size.values)
    np.testing.assert_allclose(arrays["coverage_low"], found.coverage["low"].values, atol=1e-6)
    assert (about["held"], about["count"], about["wanted"]) == (60, 60, 0.9)


def test_of_a_subset_the_tested_samples_count(session, digits):
    about, arrays = asked(session, "coverage", filter=["label:1,2,3"])
    assert 0 < about["count"] < int(np.isin(digits.data["label"].values, [1, 2, 3]).sum())
    assert np.isfinite(arrays["coverage"]).all()


def test_what_is_missing_is_said():
    images, labels = ob.datasets.digits()
    net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 10))
    common = {"group": "rotations:4", "task": "classification", "progress": False}
    session = Session(ob.scan(net, (images[:8], labels[:8]), **common))
    about, _ = asked(session, "coverage")
    assert not about["available"]
    assert "--keep probabilities" in about["reason"]
    few = Session(ob.scan(net, (images[:8], labels[:8]), keep="probabilities", **common))
    assert "calibration samples" in asked(few, "coverage")[0]["reason"]
    without = Session(ob.scan(net, images[:8], **common))
    assert not asked(without, "confusion")[0]["available"]
