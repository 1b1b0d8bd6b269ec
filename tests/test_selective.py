"""Risk-coverage curves: counted by hand, with ties, intervals that cover, and along the orbit."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import orbical as ob
from orbical.errors import InputError
from orbical.selective import along_orbit, aurc, rejection, risk_coverage


def test_the_curve_is_that_counted_sample_by_sample():
    rng = np.random.default_rng(0)
    score, correct = rng.random(50), rng.random(50) < 0.7
    found = risk_coverage(score, correct)
    order = np.argsort(-score)
    risks = [1 - correct[order[: k + 1]].mean() for k in range(50)]
    np.testing.assert_allclose(found.risk, risks)
    assert found.aurc == pytest.approx(np.mean(risks)) == aurc(torch.tensor(score), correct)
    assert found.risk_at(0.5) == pytest.approx(risks[24])
    assert found.low <= found.aurc <= found.high
    ideal = risk_coverage(correct.astype(float) + 1e-3 * score, correct)
    assert ideal.aurc == pytest.approx(ideal.best) == found.best
    assert ideal.best < found.aurc


def test_ties_have_the_mean_of_all_orders():
    rng = np.random.default_rng(1)
    score, correct = rng.integers(0, 3, 12) / 2, rng.random(12) < 0.6
    orders = [aurc(score + 1e-6 * rng.random(12), correct) for _ in range(1000)]
    assert aurc(score, correct) == pytest.approx(np.mean(orders), abs=6e-3)


def test_the_interval_covers():
    rng = np.random.default_rng(2)
    score = rng.random(200_000)
    truth = aurc(score, rng.random(200_000) < 0.5 + 0.5 * score)
    hits = 0
    for world in range(150):
        score = rng.random(300)
        found = risk_coverage(score, rng.random(300) < 0.5 + 0.5 * score, seed=world)
        hits += found.low <= truth <= found.high
    assert hits / 150 > 0.89


@pytest.fixture(scope="module")
def scan():
    from orbical.cli.demos.digits import enlarged_digits

    images, labels = enlarged_digits()
    nets = {name: ob.zoo.digits.load(name) for name in ob.zoo.digits.NAMES}
    return ob.scan(
        nets, (images[:150], labels[:150]), group="cyclic:4", task="classification", progress=False
    )


def test_scores_of_a_scan_reject_errors_with_and_without_labels(scan):
    curves = rejection(scan, "augmented")
    data = scan.data.sel(model="augmented").isel(element=0)
    assert curves["confidence"].aurc == pytest.approx(
        aurc(data["confidence"].values, data["correct"].values)
    )
    error = 1 - float(data["correct"].mean())
    for name in ("confidence", "agreement", "stability", "orbit confidence"):
        assert curves[name].aurc < 0.8 * error, name  # a random order has the error rate
    figure = ob.figures.risk_coverage_plot(curves)
    assert len(figure.axes[0].lines) == 4
    with pytest.raises(InputError, match="model: expected one of plain, augmented, got None"):
        rejection(scan)


def test_the_area_along_the_orbit_is_that_of_each_position(scan):
    found = along_orbit(scan, resamples=20)
    one = scan.data.isel(model=0, element=2)
    expected = aurc(one["confidence"].values, one["correct"].values)
    assert float(found[0, 2]) == pytest.approx(expected)
    assert float(found[0, 1]) > float(found[0, 0])
    assert ob.figures.calibration.error_along_orbit(found).axes


@pytest.mark.parametrize(
    ("score", "correct"), [([0.1], [2]), ([np.nan], [1]), ([[0.1]], [[1]]), ([], [])]
)
def test_what_is_no_score_is_refused(score, correct):
    with pytest.raises(InputError, match="score, correct: expected"):
        aurc(np.array(score, dtype=float), np.array(correct))
