"""Texts: edit distances against brute force, consensus by majority, calibration, bad input."""

from __future__ import annotations

import random
from collections import Counter
from functools import cache

import numpy as np
import pytest
import torch

import orbical as ob
from orbical.errors import InputError, ModelError
from orbical.tasks.answers import answer_codes, majority_of_answer_codes
from orbical.tasks.text_lines import edit_distance, text_code_points

IMAGES = torch.arange(3.0).reshape(-1, 1, 1, 1) + torch.tensor([[0.25, 0.0], [0.0, 0.0]])
"""Three images that know their number, with a mark that shows how they are turned."""
TRUTH = ["2026", "", "naïve ☃"]


@cache
def brute_force(a: str, b: str) -> int:
    if not a or not b:
        return len(a) + len(b)
    return min(
        brute_force(a[1:], b) + 1,
        brute_force(a, b[1:]) + 1,
        brute_force(a[1:], b[1:]) + (a[0] != b[0]),
    )


def scanned(model, truth=TRUTH, **settings):
    task = ob.tasks.Text(length=12, **settings)
    return ob.scan(model, (IMAGES, truth), group="cyclic:4", task=task, progress=False)


def upright_only(images):
    """The truth where the mark is in its place, else with a mistake, and how sure it is."""
    sample = images.flatten(1).amin(-1).long()
    upright = (images[:, 0, 0, 0] - sample) > 0.1
    texts = [TRUTH[n] if ok else "x" + TRUTH[n][1:] for n, ok in zip(sample, upright, strict=True)]
    return texts, torch.where(upright, 0.9, 0.2)


def test_edit_distances_are_those_of_brute_force():
    draw = random.Random(0)
    words = ["".join(draw.choices("abc", k=draw.randint(0, 5))) for _ in range(80)]
    first, second = text_code_points(words[:40], 5), text_code_points(words[40:], 8)
    found = edit_distance(first, second).tolist()
    assert found == [brute_force(*pair) for pair in zip(words[:40], words[40:], strict=True)]
    every = edit_distance(first[:5, None], second[None, :5])
    assert every.shape == (5, 5)
    assert every.diagonal().tolist() == found[:5]
    assert ["".join(map(chr, row[row >= 0])) for row in first] == words[:40]


def test_the_consensus_is_the_most_frequent_text():
    draw = torch.Generator().manual_seed(0)
    rows = torch.randint(0, 2, (9, 50, 2), generator=draw)
    found = majority_of_answer_codes(answer_codes(rows), torch.full((9,), 1 / 9))
    for sample in range(50):
        column = [tuple(row) for row in rows[:, sample].tolist()]
        often = Counter(column)
        most = max(often.values())
        expected = next(k for k, row in enumerate(column) if often[row] == most)
        assert int(found[sample]) == expected


def test_scores_consensus_and_gap():
    scan = scanned(upright_only)
    away = scan.data["edit_distance"].values[0]
    assert away.tolist() == [[0, 1, 1, 1]] * 3
    np.testing.assert_allclose(scan.data["cer"].values[0, :, 1], [1 / 4, 1 / 1, 1 / 7])
    np.testing.assert_array_equal(scan.data["score"], scan.data["cer"])
    assert scan.data["consensus"].values[0].tolist() == [
        "x026",
        "x",
        "xaïve ☃",
    ]  # three of four positions
    np.testing.assert_allclose(scan.data["invariance_gap"], np.sqrt(1 / 4))
    assert scan.data["text"].values[0, :, 0].tolist() == TRUTH
    assert scan.data["true_text"].values.tolist() == TRUTH
    assert float(ob.nero.consistency(scan)["changed"][0]) == 1.0


def test_the_confidence_of_a_text_is_calibrated():
    scan = scanned(upright_only)
    found = ob.calibration.along_orbit(scan, "ece").values[0]
    np.testing.assert_allclose(found, [0.1, 0.2, 0.2, 0.2], atol=1e-6)
    without = scanned(lambda images: upright_only(images)[0])
    assert "confidence" not in without.data
    with pytest.raises(InputError, match="confidence"):
        ob.calibration.along_orbit(without, "ece")


def test_a_dictionary_is_read_and_a_scan_restored_from_its_record():
    def named(images):
        texts, sure = upright_only(images)
        return {"text": np.array(texts), "confidence": sure[:, None]}

    scan = scanned(named, score="edit_distance")
    assert float(scan.data["score"].sum()) == 9.0
    again = ob.tasks.Task.from_record(scan.record.to_json()["task"])
    assert again.settings() == {"length": 12, "score": "edit_distance"}


@pytest.mark.parametrize(
    ("truth", "words"),
    [
        ([1, 2, 3], "a string for each sample, got int64"),
        (["a", "b"], "one for each of 3 samples, got 2"),
        (["a", "b", "c" * 13], "at most 12 characters, got 13; pass length="),
    ],
)
def test_a_truth_that_is_no_text_is_refused(truth, words):
    with pytest.raises(InputError, match=words):
        scanned(lambda images: [""] * len(images), truth)


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (lambda x: x.mean((2, 3)), "a string for each sample, or .strings, confidences., got"),
        (lambda x: ["a" * 13] * len(x), "at most 12 characters, got 13; pass length="),
        (lambda x: (["a"] * len(x), torch.ones(2)), "a confidence of each of"),
        (lambda x: (["a"] * len(x), torch.full((len(x),), 2.0)), "a confidence outside 0 .. 1"),
        (lambda x: ["a"], "expected 12 outputs|expected .* outputs for as many inputs"),
    ],
)
def test_outputs_that_are_no_text_are_refused(model, words):
    with pytest.raises(ModelError, match=words):
        scanned(model)


def test_settings_are_checked():
    with pytest.raises(InputError, match="length: expected an integer >= 1"):
        ob.tasks.Text(length=0)
    with pytest.raises(InputError, match="score: "):
        ob.tasks.Text(score="wer")


def test_equal_texts_are_equivariant_and_have_no_mean():
    def level(images):
        return [f"{value:.1f}" for value in images.mean((1, 2, 3)).tolist()]

    task = ob.tasks.Text(length=12)
    ob.testing.assert_equivariant(level, IMAGES, group="cyclic:4", task=task)
    with pytest.raises(AssertionError):
        ob.testing.assert_equivariant(
            lambda images: upright_only(images)[0], IMAGES, group="cyclic:4", task=task
        )
    with pytest.raises(InputError, match="expected outputs with a mean, got text"):
        ob.predictors.OrbitAverage(level, "cyclic:4", task=task)
