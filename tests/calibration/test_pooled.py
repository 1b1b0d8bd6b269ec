"""Calibration of all positions of an orbit pooled: weights, gaps, and intervals that cover."""

from __future__ import annotations

import numpy as np
import pytest

from orbical.calibration import pooled_reliability, reliability


@pytest.mark.parametrize("too_sure", [0.0, 0.08])
def test_the_interval_over_orbits_covers(too_sure: float) -> None:
    """Worlds in which all answers along an orbit are right or wrong together."""
    generator = np.random.default_rng(7)
    weights, covered = np.full(6, 1 / 6), 0
    for _ in range(100):
        sure = generator.uniform(0.55, 0.95, 250)
        right = generator.random(250) < sure - too_sure
        _, found = pooled_reliability([(sure, right)] * 6, weights, bins=10)
        covered += bool(found.low <= too_sure <= found.high)
    assert covered >= 88  # of 100, at a nominal 95


@pytest.mark.parametrize("accuracy", [0.01, 0.02, 0.99])
def test_the_interval_over_orbits_covers_where_right_or_wrong_is_rare(accuracy: float) -> None:
    """Never right in 120 samples is not never right; 12 copies of a sample are one sample."""
    generator = np.random.default_rng(11)
    weights, covered = np.full(12, 1 / 12), 0
    for _ in range(100):
        sure = np.full(120, 0.7)
        right = generator.random(120) < accuracy
        _, found = pooled_reliability([(sure, right)] * 12, weights)
        covered += bool(found.low <= abs(accuracy - 0.7) <= found.high)
    assert covered >= 90  # of 100, at a nominal 95


def test_orbits_count_by_the_weights_of_their_elements() -> None:
    generator = np.random.default_rng(3)
    columns = [(generator.random(40), generator.random(40) < 0.5) for _ in range(3)]
    weights = np.array([0.7, 0.2, 0.1])
    diagram, pooled = pooled_reliability(columns, weights, bins=5)
    sure, right = (np.concatenate([column[part] for column in columns]) for part in (0, 1))
    expected = reliability(sure, right, bins=5, weights=np.repeat(weights, 40))
    np.testing.assert_allclose(diagram.accuracy, expected.accuracy)
    np.testing.assert_allclose(diagram.confidence, expected.confidence)
    error = float((expected.share * expected.gap.abs()).sum())
    assert float(pooled.value) == pytest.approx(error)


def test_elements_without_any_answer_are_as_if_they_were_not_there() -> None:
    random = np.random.default_rng(0)
    columns = [(random.random(80), random.random(80) < 0.6) for _ in range(6)]
    nothing = np.full(80, np.nan), np.zeros(80, bool)
    given = [nothing, *columns[:3], nothing, nothing]
    diagram, gapped = pooled_reliability(given, np.full(6, 1 / 6), bins=5)
    _, expected = pooled_reliability(columns[:3], np.full(3, 1 / 3), bins=5)
    for end in ("value", "low", "high", "calibrated"):
        np.testing.assert_allclose(getattr(gapped, end), getattr(expected, end), rtol=1e-9)
    assert diagram.count.sum() == 240


def test_the_interval_over_orbits_with_gaps_is_as_wide_as_the_estimates_vary() -> None:
    values, widths = [], []
    for seed in range(60):
        random = np.random.default_rng(seed)
        level = random.random(150)  # a sample is easy or hard along its whole orbit
        columns = []
        for element in range(5):
            sure = np.full(150, 0.9)
            sure[random.random(150) < 0.15 * element * level] = np.nan
            columns.append((sure, random.random(150) < level))
        _, found = pooled_reliability(columns, np.full(5, 0.2), bins=10)
        values.append(float(found.value))
        widths.append(float(found.high - found.low))
    assert np.mean(widths) == pytest.approx(2 * 1.96 * np.std(values), rel=0.25)


@pytest.mark.parametrize("sure", [np.full(1, 0.8), np.full(3, np.nan), np.zeros(0)])
def test_less_than_two_orbits_leave_everything_open(sure: np.ndarray) -> None:
    _, found = pooled_reliability([(sure, np.zeros(len(sure), bool))], np.ones(1))
    assert (found.low, found.high) == (0, 1)
    assert float(found.value) == pytest.approx(
        np.nanmean(sure) if len(sure) == 1 else np.nan, nan_ok=True
    )
