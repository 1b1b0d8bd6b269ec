"""GENCE and Mahalanobis distances: formulas, floors, fibers and frames."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from gaussian_predictions import covariances, predictions
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from orbical.calibration.measures import gaussian, variance_errors


@pytest.mark.parametrize("d", [1, 3, 8])
def test_a_calibrated_gaussian_scores_the_floors_and_its_fibers_score_zero(d: int) -> None:
    size = 200_000
    mean, variance, target = predictions(size, d, seed=d)
    for measure, floor in (
        (variance_errors.gence, variance_errors.gence_floor),
        (variance_errors.gence_sq, variance_errors.gence_sq_floor),
    ):
        parts = [measure(m, s, y).item() for m, s, y in zip(
            mean.chunk(20), variance.chunk(20), target.chunk(20), strict=True
        )]  # fmt: skip
        error = np.std(parts, ddof=1) / math.sqrt(20)
        assert measure(mean, variance, target).item() == pytest.approx(floor, abs=4 * error)
    noise = 15 / size
    assert (
        variance_errors.gence_fiber(mean, variance, target)
        < 4 * noise * variance_errors.gence_floor
    )
    assert variance_errors.gence_sq_fiber(mean, variance, target) < 6 * noise * 2
    assert variance_errors.ence(mean.T, variance.T, target.T).max() < 0.02


def test_gence_is_its_formula_written_out() -> None:
    mean, variance, target = predictions(50, 3)
    total = total_sq = 0.0
    for m, s, y in zip(mean.numpy(), variance.numpy(), target.numpy(), strict=True):
        a, e = np.sqrt(2 * s / np.pi), np.abs(m - y)
        total += np.sum((a - e) ** 2) / np.sum(a**2) / 50
        total_sq += np.sum((s - e**2) ** 2) / np.sum(s**2) / 50
    assert variance_errors.gence(mean, variance, target).item() == pytest.approx(total, rel=1e-13)
    assert variance_errors.gence_sq(mean, variance, target).item() == pytest.approx(
        total_sq, rel=1e-13
    )


def test_a_fiber_mean_on_exact_fibers_is_the_papers_ratio() -> None:
    generator = torch.Generator().manual_seed(1)
    levels = torch.tensor([0.5, 2.0, 7.0], dtype=torch.float64)
    variance = levels.repeat_interleave(40)
    target = torch.randn(120, generator=generator, dtype=torch.float64)
    expected = 0.0
    for level in levels:
        a = math.sqrt(2 * level / math.pi)
        e = target[variance == level].abs().mean()
        expected += float((a - e) ** 2 / a**2) / 3
    value = variance_errors.gence_fiber(torch.zeros(120), variance, target, bins=3)
    assert value.item() == pytest.approx(expected, rel=1e-12)


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    size=st.integers(1, 40),
    d=st.integers(1, 4),
    bins=st.integers(1, 20),
    factor=st.floats(0.01, 30),
)
def test_averaging_over_fibers_never_raises_gence(
    seed: int, size: int, d: int, bins: int, factor: float
) -> None:
    mean, variance, target = predictions(size, d, seed=seed)
    variance = variance * factor
    for whole, fiber in (
        (variance_errors.gence, variance_errors.gence_fiber),
        (variance_errors.gence_sq, variance_errors.gence_sq_fiber),
    ):
        limit = whole(mean, variance, target) * (1 + 1e-12)
        assert fiber(mean, variance, target, bins=bins) <= limit


def test_gence_depends_on_the_frame_and_mahalanobis_does_not() -> None:
    """One model, one set of errors, seen from two frames: its covariance turns with it."""
    size = 4000
    covariance = torch.diag_embed(torch.tensor([4.0, 0.01], dtype=torch.float64)).expand(size, 2, 2)
    generator = torch.Generator().manual_seed(0)
    target = torch.randn(size, 2, generator=generator, dtype=torch.float64)
    mean = torch.zeros_like(target)
    angle = math.pi / 4
    turn = torch.tensor(
        [[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]],
        dtype=torch.float64,
    )
    turned = (mean @ turn.T, turn @ covariance @ turn.T, target @ turn.T)
    here = variance_errors.gence(mean, covariance, target)
    there = variance_errors.gence(*turned)
    assert (here - there).abs() > 0.05
    for measure in (
        gaussian.gaussian_nll,
        variance_errors.regression_esd_normalized,
        lambda *given: variance_errors.mahalanobis_calibration(*given).observed,
    ):
        torch.testing.assert_close(measure(mean, covariance, target), measure(*turned))


@pytest.mark.parametrize("d", [1, 2, 5])
def test_mahalanobis_calibration_counts_against_scipys_chi_squared(d: int) -> None:
    covariance = covariances(500, d)
    generator = torch.Generator().manual_seed(2)
    target = torch.randn(500, d, generator=generator, dtype=torch.float64)
    mean = torch.zeros_like(target)
    squared = np.einsum(
        "ni,nij,nj->n", target.numpy(), np.linalg.inv(covariance.numpy()), target.numpy()
    )
    result = variance_errors.mahalanobis_calibration(mean, covariance, target, levels=19)
    expected = [(squared <= stats.chi2.ppf(level, d)).mean() for level in result.levels.numpy()]
    np.testing.assert_allclose(result.observed.numpy(), expected, atol=1e-12)
