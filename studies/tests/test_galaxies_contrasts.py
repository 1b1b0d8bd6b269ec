"""The galaxy study's statistics: contrasts of networks, matched copies, bounds and coverage."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from orbical.calibration import top_label
from orbical_studies.data import galaxies
from orbical_studies.galaxies import (
    contrasts,
    coverage,
    matching,
)
from orbical_studies.galaxies.numbers import read
from orbical_studies.galaxies.settings import SEEDS

DOCS = Path(__file__).parents[2] / "docs" / "studies" / "galaxies.md"


def pairs_of(shift: float, seed: int, count: int = 400):
    """Three seeds of answers that are right more often by a shift."""
    random = np.random.default_rng(seed)
    easy = random.random(count)  # shared by the networks, as a galaxy's difficulty is
    return [
        (torch.full((count,), 0.7), torch.from_numpy(easy + 0.1 * random.random(count) < shift))
        for _ in SEEDS
    ]


def test_networks_that_answer_alike_do_not_differ_and_better_ones_do():
    answers = {
        ("cyclic:1", 0.0): pairs_of(0.7, 1),
        ("cyclic:4", 0.0): pairs_of(0.8, 1),
        ("dihedral:4", 0.0): pairs_of(0.7, 1),
    }
    rows = contrasts.contrast_rows("some", answers, "none")
    gain = {r["family"]: r for r in rows if (r["contrast"], r["measure"]) == ("gain", "accuracy")}
    assert gain["cyclic"]["low"] > 0.05
    assert gain["dihedral"]["low"] <= 0 <= gain["dihedral"]["high"]
    middle = (gain["cyclic"]["value"] + gain["dihedral"]["value"]) / 2
    assert gain["both"]["value"] == pytest.approx(middle)


def test_the_interval_of_a_difference_is_that_of_paired_samples():
    one, other = pairs_of(0.7, 1)[:1], pairs_of(0.8, 2)[:1]
    rows = contrasts.contrast_rows("some", {("cyclic:1", 0.0): one, ("cyclic:4", 0.0): other}, "")
    (gain,) = (
        r for r in rows
        if (r["family"], r["contrast"], r["measure"]) == ("cyclic", "gain", "accuracy")
    )  # fmt: skip
    each = other[0][1].double() - one[0][1].double()
    reach = 1.96 * float(each.std()) / len(each) ** 0.5
    assert gain["high"] - gain["value"] == pytest.approx(reach, rel=0.15)


def test_draws_of_few_seeds_vary_as_their_mean_does():
    seeds = np.array([0.1, 0.4, 0.2])
    chosen = np.random.default_rng(0).integers(3, size=(40_000, 3))
    drawn = contrasts.with_drawn_seeds(np.tile(seeds, (len(chosen), 1)), chosen)
    assert drawn.var() == pytest.approx(seeds.var(ddof=1) / 3, rel=0.03)
    alone = contrasts.with_drawn_seeds(np.full((5, 1), 0.3), np.zeros((5, 1), int))
    assert np.allclose(alone, 0.3)


def test_the_signed_contrast_is_the_difference_of_confidence_less_accuracy():
    sure = [(torch.full((400,), 0.9), correct) for _, correct in pairs_of(0.7, 1)]
    answers = {("cyclic:1", 0.0): pairs_of(0.7, 1), ("cyclic:4", 0.0): sure}
    rows = contrasts.contrast_rows("some", answers, "none")
    (row,) = (
        r for r in rows
        if (r["family"], r["contrast"], r["measure"]) == ("cyclic", "gain", "overconfidence")
    )  # fmt: skip
    assert row["value"] == pytest.approx(0.2, abs=1e-6)
    assert row["low"] > 0.1


def test_slopes_are_those_of_least_squares():
    values = {1: 0.3, 2: 0.5, 4: 0.4, 12: 0.9}
    found = contrasts.slope({n: contrasts.Estimate(v, np.zeros(2)) for n, v in values.items()})
    expected = np.polyfit(np.log2([*values]), [*values.values()], 1)[0]
    assert found.value == pytest.approx(expected)


def test_a_turned_copy_is_matched_and_costs_accuracy_where_its_label_differs():
    images, _ = galaxies(12, size=32, noise=0.1, seed=3)
    both = torch.cat([images, images.rot90(1, (2, 3))])
    labels = torch.arange(24) // 12  # the turned copy is of the other class
    rows = {row["group"]: row for row in matching.neighbour_rows("some", both, labels)}
    assert rows["trivial"]["matched"] == 0
    assert rows["C_4"]["matched"] == 24
    assert rows["C_4"]["orbits"] == 12
    assert rows["C_4"]["ceiling"] == pytest.approx(0.5)
    assert rows["C_4"]["wrong"] == 1


def test_a_mirror_invariant_classifier_lies_within_its_bounds():
    images, labels = galaxies(30, size=32, seed=1)
    both = torch.cat([images, images.flip(-1)])
    truth = torch.cat([labels, torch.tensor([0, 2, 1])[labels]])
    logits = torch.randn(30, 3).repeat(2, 1)
    answer = logits.softmax(-1).max(-1)
    (row,) = matching.bound_rows("generated", both, truth, {"dihedral:1": [answer]})
    correct = top_label(logits=logits, labels=truth)[1]
    assert row["orbits"] == 30
    assert row["ceiling"] == pytest.approx(2 / 3)
    assert row["accuracy"] == pytest.approx(float(correct.double().mean()))
    assert row["lower"] - 1e-9 <= row["ece"] <= row["upper"] + 1e-9
    assert row["mirror_gap"] == pytest.approx(0, abs=1e-6)


@pytest.mark.slow
def test_intervals_cover_the_difference_of_two_simulated_networks():
    rows = coverage.coverage_rows(worlds=60)
    assert {row["measure"] for row in rows} == {"accuracy", "esd", "overconfidence"}
    assert min(row["covered"] for row in rows) >= 0.88


def test_coverage_falls_where_the_truth_lies_elsewhere(monkeypatch):
    monkeypatch.setattr(coverage, "_truth", lambda *_: dict.fromkeys(coverage.JUDGED, 0.5))
    assert {row["covered"] for row in coverage.coverage_rows(worlds=2, draws=50)} == {0.0}


def test_the_printed_coverage_is_near_the_nominal_one():
    rows = read(DOCS.with_suffix("")).coverage
    assert min(row["covered"] for row in rows) >= 0.9
