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


# The mean probability of an error: spread over all samples, rare, very rare, and of few samples.
WORLDS = {
    "spread": lambda rng, n: 0.4 * rng.random(n),
    "sharp": lambda rng, n: (0.03 * rng.exponential(size=n)).clip(0, 0.5),
    "very sharp": lambda rng, n: (0.007 * rng.exponential(size=n)).clip(0, 0.5),
    "two kinds": lambda rng, n: np.where(rng.random(n) < 0.1, 0.4, 0.001),
}


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("size", [2, 10, 50, 200])
def test_the_interval_covers(world, size):
    """The percentile bootstrap covered 72 % (sharp) and 25 % (very sharp) at 50 samples."""
    rng = np.random.default_rng(2)

    def drawn(count):
        chance = WORLDS[world](rng, count)
        return 1 - chance + 1e-9 * rng.random(count), rng.random(count) >= chance

    truth = np.mean([aurc(*drawn(100_000)) for _ in range(4)])
    found = [risk_coverage(*drawn(size)) for _ in range(200)]
    assert np.mean([one.low <= truth <= one.high for one in found]) >= 0.93


def test_samples_without_an_error_leave_the_doubt_of_rare_errors():
    found = risk_coverage(np.arange(20), np.ones(20))
    # The worst that 20 correct samples allow: all errors among the most trusted.
    assert (found.aurc, found.low) == (0, 0)
    assert found.high == pytest.approx(
        (1 / np.arange(1, 21)).sum() * (1 - 0.025 ** (1 / 20)), abs=1e-3
    )


@pytest.fixture(scope="module")
def scan():
    from orbical.cli.demos.digits import enlarged_demo_digits

    images, labels = enlarged_demo_digits()
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
    found = along_orbit(scan)
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
