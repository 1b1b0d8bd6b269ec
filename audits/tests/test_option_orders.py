"""Measures of multiple-choice answers, against models whose bias is known."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from orbical_audits import Verdict
from orbical_audits.models import gemma
from orbical_audits.option_orders import (
    OptionAnswers,
    averaged,
    bias,
    by_order,
    by_place,
    changes,
    chosen_shares,
)

ORDERS = np.array([*itertools.permutations(range(4))])


def answers(weight_of_place, questions=60, seed=0):
    """Return answers of a model that knows something, and prefers places by their weights."""
    generator = np.random.default_rng(seed)
    right = generator.integers(0, 4, questions)
    merit = generator.normal(size=(questions, 4)) + 1.5 * np.eye(4)[right]
    logits = np.empty((questions, len(ORDERS), 4))
    for k, order in enumerate(ORDERS):
        for place, option in enumerate(order):
            logits[:, k, option] = merit[:, option] + weight_of_place[place]
    odds = np.exp(logits)
    return OptionAnswers(odds / odds.sum(-1, keepdims=True), right, ORDERS)


FAIR, BIASED, BLIND = answers([0, 0, 0, 0]), answers([0, 0, 0, 2]), answers([0, 0, 0, 100])


def test_a_fair_model_never_changes_and_chooses_every_place_equally_often():
    row = changes(FAIR, 0)
    assert row["answer changes"]["value"] == row["two orders disagree"]["value"] == 0
    assert row["largest change of a probability"] < 1e-12
    assert row["accuracy as given"]["value"] == row["accuracy, all orders"]["value"] > 0.5
    assert np.allclose(chosen_shares(FAIR), 0.25)
    assert bias(FAIR, 0)["distance from fair"]["high"] < 1e-12
    assert [row["gain in accuracy"]["value"] for row in averaged(FAIR, 0)] == [0] * 5


def test_a_model_that_always_chooses_one_letter_is_at_chance_with_every_answer_changed():
    row = changes(BLIND, 0)
    assert row["accuracy, all orders"]["value"] == 0.25
    assert row["answer changes"]["value"] == 1
    found = bias(BLIND, 0)
    assert (found["chosen most"], found["chosen"]["value"]) == ("D", 1)
    assert found["distance from fair"]["value"] == 0.75
    assert row["two orders disagree"]["value"] == pytest.approx(1 - 5 / 23)
    places = {row["letter"]: row for row in by_place(BLIND, 0)}
    assert places["D"]["accuracy, right answer here"]["value"] == 1
    assert places["A"]["accuracy, right answer here"]["value"] == 0


def test_a_planted_preference_is_found_at_its_letter_and_averaging_removes_it():
    places = [row["chosen"] for row in by_place(BIASED, 0)]
    assert places[3]["low"] > 0.3 > max(row["high"] for row in places[:3])
    rows = {row["averaged over"]: row for row in averaged(BIASED, 0)}
    assert rows["4 cyclic orders"]["passes"] == 4
    assert rows["all 24 orders"]["gain in accuracy"]["low"] > 0
    one, two, every = (rows[k]["accuracy"]["value"] for k in
                       ("one order", "2 random orders", "all 24 orders"))  # fmt: skip
    assert one < two < every
    assert abs(every - FAIR.correct.mean()) < 0.1


def test_averages_are_those_made_by_hand():
    rows = {row["averaged over"]: row for row in averaged(BIASED, 0)}
    hits = []
    for question in range(len(BIASED.right)):
        total = [0.0] * 4
        for k in range(24):
            for option in range(4):
                total[option] += float(BIASED.probabilities[question, k, option])
        hits.append(total.index(max(total)) == BIASED.right[question])
    assert rows["all 24 orders"]["accuracy"]["value"] == pytest.approx(np.mean(hits))
    classes = [{tuple(np.roll(ORDERS[start], -shift)) for shift in range(4)} for start in range(24)]
    for members in BIASED.cyclic_classes:
        assert {tuple(ORDERS[k]) for k in members} in classes
    assert sorted(np.concatenate(BIASED.cyclic_classes)) == [*range(24)]


def test_the_worst_order_and_the_questions_that_are_right_at_every_order():
    found = by_order(BIASED)
    worst = {" ".join("ABCD"[o] for o in order): k for k, order in enumerate(ORDERS)}
    accuracy = BIASED.correct.mean(0)
    assert accuracy[worst[found["worst order"]]] == found["its accuracy"] == accuracy.min()
    assert found["right at every order"]["value"] <= found["its accuracy"]
    assert found["right at some order"]["value"] >= found["accuracy of the best"]
    assert 0 <= found["ECE from"] <= found["ECE to"]


def test_the_rule_reaches_its_verdicts_and_decides_by_limits():
    def verdict(change, low, high, surplus):
        row = {
            "model": "m",
            "questions": "q",
            "largest change of a probability": change,
            "answer changes": {"low": low, "high": high},
            "confidence minus accuracy": {"low": surplus[0], "high": surplus[1]},
        }
        return gemma.decide({"models": [row]})["m, q"]

    assert verdict(1e-6, 0, 0.04, (0, 0)) is Verdict.INVARIANT
    assert verdict(0.2, 0, 0.04, (0.3, 0.4)) is Verdict.TOLERATED
    assert verdict(0.2, 0.04, 0.1, (0.3, 0.4)) is Verdict.OPEN
    assert verdict(0.2, 0.9, 1, (0.11, 0.4)) is Verdict.CONFIDENT
    assert verdict(0.2, 0.9, 1, (-0.04, 0.04)) is Verdict.UNCONFIDENT
    assert verdict(0.2, 0.9, 1, (0.01, 0.2)) is Verdict.NOT_INVARIANT
    assert verdict(0.2, 0.9, 1, (-0.2, 0.01)) is Verdict.NOT_INVARIANT
