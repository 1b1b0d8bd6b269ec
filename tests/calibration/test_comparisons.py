"""Two models on the same samples: differences are covered, and chance is not taken for one."""

from __future__ import annotations

import math

import numpy as np
import pytest
from interval_tables import GAPS, NULLS, rejection_rate
from interval_worlds import calibrated, drawn, regression_world, shifted, spotted, waved
from scipy.stats import ttest_rel

from orbical.calibration import (
    compare_means,
    ece,
    esd,
    ks,
    mmce,
)
from orbical.calibration.intervals.comparisons import compare, regression_compare
from orbical.calibration.intervals.measure_intervals import oracle_bound, regression_interval
from orbical.errors import InputError


def test_compare_finds_the_better_of_two_models() -> None:
    confidence, correct = drawn(shifted(0.1), 1, 4000, seed=9)
    worse, better = (confidence[0], correct[0]), (confidence[0] - 0.1, correct[0])
    for name in ("ece", "esd", "mmce"):
        found = compare(name, worse, better)
        assert 0 < found.low <= found.difference <= found.high
        assert found.p_value < 0.01
    mirrored = compare("ece", better, worse)
    assert mirrored.high < 0
    function = compare(ece, worse, better, resamples=200)
    assert float(function.difference) == pytest.approx(-float(mirrored.difference), abs=0.002)
    assert float(function.low) == pytest.approx(-float(mirrored.high), abs=0.01)
    assert function.p_value < 0.01


def test_a_model_is_not_better_than_itself() -> None:
    confidence, correct = drawn(shifted(0.1), 1, 500, seed=9)
    same = (confidence[0], correct[0])
    for measure in ("ece", "ks", ece):
        found = compare(measure, same, same, resamples=100)
        assert found.difference == 0
        assert found.low <= 0 <= found.high
        assert found.p_value > 0.9


def test_weights_of_zero_leave_samples_out_of_a_comparison() -> None:
    confidence, correct = drawn(shifted(0.1), 1, 400, seed=9)
    weights = np.repeat([1.0, 0.0], 200)
    whole = ((confidence[0], correct[0]), (confidence[0] - 0.1, correct[0]))
    half = [(z[:200], y[:200]) for z, y in whole]
    weighted = compare("ece", *whole, weights=weights, resamples=200)
    plain = compare(ece, *half, resamples=200)
    assert float(weighted.difference) == pytest.approx(float(plain.difference), abs=0.01)
    assert float(weighted.high) == pytest.approx(float(plain.high), abs=0.04)


@pytest.mark.parametrize(("measure", "trials"), [("ece", 100), ("ks", 30)])
@pytest.mark.parametrize("world", NULLS)
def test_two_calibrated_models_are_rarely_told_apart(world: str, measure: str, trials: int) -> None:
    share = rejection_rate(measure, NULLS[world], 500, trials, resamples=100)
    assert share <= 0.05 + 2 * math.sqrt(0.05 * 0.95 / trials)


@pytest.mark.parametrize(("measure", "trials"), [("ece", 60), ("ks", 30)])
def test_a_confidence_gap_is_found(measure: str, trials: int) -> None:
    share = rejection_rate(measure, GAPS["accuracy .84 to .92"], 500, trials, resamples=100)
    assert share >= 0.8 - 2 * math.sqrt(0.8 * 0.2 / trials)


@pytest.mark.parametrize(
    ("a_by", "b_by", "truth", "least"),
    [(0.1, 0.0, 0.1, 0.9), (0.1, 0.04, 0.06, 0.9), (0.05, -0.05, 0.0, 0.9)],
)
def test_the_interval_of_a_difference_covers(
    a_by: float, b_by: float, truth: float, least: float
) -> None:
    inside = []
    for seed in range(100):
        confidence, correct = drawn(shifted(a_by), 1, 1000, seed)
        a, b = (confidence[0], correct[0]), (confidence[0] - a_by + b_by, correct[0])
        found = compare("ece", a, b, resamples=100, seed=seed)
        inside.append(bool(found.low <= truth <= found.high))
    assert np.mean(inside) >= least


COMPARED = {
    "both calibrated": (calibrated, 0.0, 0.0),
    "one overconfident": (calibrated, 0.05, 0.0),
    "a wave against its shift": (waved(0.179), 0.05, 0.0),
    "a spot against its shift": (spotted(0.225), 0.0, 0.03),
}


@pytest.mark.slow
@pytest.mark.parametrize("size", [300, 1000])
@pytest.mark.parametrize("measure", ["ece", "ks", "esd", "mmce"])
@pytest.mark.parametrize("world", COMPARED)
def test_differences_are_covered_in_many_worlds(world: str, measure: str, size: int) -> None:
    """Two models see the same labels; the second adds a little noise of its own to confidence."""
    assert difference_coverage(world, measure, size, trials=100) >= 0.9


def difference_coverage(world: str, measure: str, size: int, trials: int) -> float:
    accuracy, a_by, b_by = COMPARED[world]
    z = 0.5 + (np.arange(100_000) + 0.5) / 200_000
    functions = {"ece": ece, "ks": ks, "esd": esd, "mmce": mmce}
    a_truth, b_truth = (
        max(float(functions[measure](np.clip(z + by, 0, 1), accuracy(z))), 0.0)
        for by in (a_by, b_by)
    )
    inside = []
    for seed in range(trials):
        confidence, correct = drawn(accuracy, 1, size, seed)
        a, b = ((np.clip(confidence[0] + by, 0, 1), correct[0]) for by in (a_by, b_by))
        found = compare(measure, a, b, resamples=200, seed=seed)
        inside.append(bool(found.low <= a_truth - b_truth + 1e-9 <= found.high + 2e-9))
    return float(np.mean(inside))


@pytest.mark.parametrize(("a_scale", "b_scale"), [(1.0, 1.0), (1.0, 1.44), (0.6, 1.44)])
def test_the_interval_of_a_regression_difference_covers(a_scale: float, b_scale: float) -> None:
    """Scaling all variances by c gives an ENCE of |1 - 1 / sqrt(c)|."""
    truth = abs(1 - a_scale**-0.5) - abs(1 - b_scale**-0.5)
    mean, variance, target = regression_world(30, 500, 1.0, seed=14)
    inside, low = [], []
    for row in range(30):
        a, b = ((mean[row], variance[row] * scale) for scale in (a_scale, b_scale))
        found = regression_compare("ence", a, b, target[row], resamples=100, bins=10)
        inside.append(bool(found.low <= truth <= found.high))
        low.append(float(found.p_value) < 0.05)
    assert np.mean(inside) >= 0.8  # 92 to 95 % of 150 worlds
    assert a_scale != b_scale or not any(low)


def test_weights_of_zero_leave_samples_out_of_a_regression_comparison() -> None:
    rng = np.random.default_rng(0)
    target, zeros = rng.normal(size=400), np.zeros(400)
    right, timid = (zeros, np.ones(400)), (zeros, np.where(np.arange(400) < 200, 1.0, 9.0))
    first = (np.arange(400) < 200).astype(float)  # where both models say the same
    assert regression_compare("ence", right, timid, target, resamples=100).p_value < 0.05
    found = regression_compare("ence", right, timid, target, weights=first, resamples=100)
    assert found.difference == 0
    assert found.p_value == 1
    again = regression_compare("ence", right, timid, target, weights=3 + zeros, resamples=100)
    plain = regression_compare("ence", right, timid, target, resamples=100)
    assert again.difference.item() == pytest.approx(plain.difference.item())
    with pytest.raises(InputError, match=r"weights"):
        regression_compare("ence", right, timid, target, weights=first[:10])


def test_regression_comparisons_take_vectors_and_name_bad_input() -> None:
    rng = np.random.default_rng(15)
    target = rng.normal(size=(300, 2))
    diagonal = (np.zeros((300, 2)), np.ones((300, 2)))
    full = (np.zeros((300, 2)), np.tile(4 * np.eye(2), (300, 1, 1)))
    found = regression_compare("mahalanobis_calibration", diagonal, full, target, resamples=100)
    assert found.high < 0
    with pytest.raises(InputError, match="a: expected \\(mean, variance\\)"):
        regression_compare("gence_fiber", target, diagonal, target)
    with pytest.raises(InputError, match="got gence, a mean over samples"):
        regression_compare("gence", diagonal, full, target)
    with pytest.raises(InputError, match="got ence, which takes one target, for 2 coordinates"):
        regression_compare("ence", diagonal, full, target)


def test_bad_input_of_a_comparison_is_named() -> None:
    good = ([0.5, 0.6, 0.7], [1, 0, 1])
    with pytest.raises(InputError, match=r"^b: expected the 3 samples of a, got 2"):
        compare("ece", good, ([0.5, 0.6], [1, 0]))
    with pytest.raises(InputError, match=r"^a: expected"):
        compare("ece", [0.5], good)
    with pytest.raises(InputError, match=r"^samples"):
        oracle_bound(0)
    with pytest.raises(InputError, match=r"^variance"):
        regression_interval("ence", [0.0, 0.0], [1.0, -1.0], [0.0, 0.0])


def test_means_are_compared_sample_by_sample() -> None:
    rng = np.random.default_rng(5)
    shared, covered = rng.normal(size=(400, 80)), 0
    for common in shared:  # what both models share is large, and cancels
        a, b = (10 * common + rng.normal(shift, 0.3, 80) for shift in (0.1, 0.0))
        found = compare_means(a, b)
        covered += bool(found.low <= 0.1 <= found.high)
        assert float(found.high - found.low) < 0.3
    assert covered >= 0.92 * 400
    expected = ttest_rel(a, b)
    assert float(found.p_value) == pytest.approx(expected.pvalue, abs=0.01)
    assert bool(found.p_value < 0.05) == bool(found.low > 0 or found.high < 0)


def test_means_of_other_samples_are_not_compared() -> None:
    with pytest.raises(InputError, match="b: expected the 3 samples of a, got 2"):
        compare_means([0.1, 0.2, 0.3], [0.1, 0.2])
    with pytest.raises(InputError, match=r"a: expected real numbers of shape \[N\]"):
        compare_means([[0.1]], [[0.1]])
