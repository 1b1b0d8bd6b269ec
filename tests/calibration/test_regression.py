"""Regression calibration against brute force, scipy, and what is known of a calibrated Gaussian."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import torch
from gaussian_predictions import covariances, predictions
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats
from torch import Tensor

from orbical.calibration.measures import gaussian, variance_errors
from orbical.calibration.numerics import equal_mass
from orbical.errors import InputError


def rotation(d: int, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.linalg.qr(torch.randn(d, d, generator=generator, dtype=torch.float64))[0]


def by_hand_bins(variance: Tensor, bins: int) -> list[np.ndarray]:
    return np.array_split(np.argsort(variance.numpy(), kind="stable"), bins)


def test_ence_and_uce_equal_a_loop_over_bins() -> None:
    mean, variance, target = predictions(300)
    target = target * 1.3
    squares = ((mean - target) ** 2).numpy()
    groups = by_hand_bins(variance, 15)
    rmv = np.array([np.sqrt(variance.numpy()[g].mean()) for g in groups])
    rmse = np.array([np.sqrt(squares[g].mean()) for g in groups])
    gaps = np.array([squares[g].mean() - variance.numpy()[g].mean() for g in groups])
    ence = variance_errors.ence(mean, variance, target, bins=15)
    uce = variance_errors.uce(mean, variance, target, bins=15)
    assert ence.item() == pytest.approx(np.mean(np.abs(rmv - rmse) / rmv), rel=1e-13)
    assert uce.item() == pytest.approx(np.mean(np.abs(gaps)), rel=1e-13)


@pytest.mark.peers
def test_ence_and_uce_are_netcals_where_its_bins_of_equal_width_have_equal_mass() -> None:
    netcal = pytest.importorskip("netcal.metrics.regression")
    even = (torch.arange(1500, dtype=torch.float64) + 0.5) / 1500
    generator = torch.Generator().manual_seed(4)
    noise = 1.2 * torch.randn(1500, generator=generator, dtype=torch.float64)
    mean = torch.zeros_like(noise)
    # netcal has bins of the deviation in one and of the variance in the other
    for ours, theirs, deviation in (
        (variance_errors.ence, netcal.ENCE, even),
        (variance_errors.uce, netcal.UCE, even.sqrt()),
    ):
        target = deviation * noise
        given = (mean.numpy(), deviation.numpy())
        expected = theirs(bins=15).measure(given, target.numpy(), range_=[(0.0, 1.0)])
        value = ours(mean, deviation.square(), target, bins=15)
        assert value.item() == pytest.approx(float(expected), rel=1e-10)


def test_one_variance_for_all_samples_is_one_bin_in_any_order() -> None:
    mean, _, target = predictions(100)
    variance = torch.full_like(mean, 2.0)
    mean_square = (mean - target).square().mean()
    assert variance_errors.uce(mean, variance, target).item() == pytest.approx(
        abs(mean_square.item() - 2.0), rel=1e-13
    )
    order = torch.randperm(100, generator=torch.Generator().manual_seed(3))
    torch.testing.assert_close(
        variance_errors.ence(mean, variance, target),
        variance_errors.ence(mean[order], variance[order], target[order]),
    )


def test_bins_more_than_samples_are_empty_and_harmless() -> None:
    mean, variance, target = predictions(5)
    expected = ((mean - target).square() - variance).abs().mean()
    torch.testing.assert_close(variance_errors.uce(mean, variance, target, bins=40), expected)
    assert torch.isfinite(variance_errors.ence(mean, variance, target, bins=200))


@settings(max_examples=60, deadline=None)
@given(
    data=st.data(),
    dtype=st.sampled_from([torch.float32, torch.float64]),
    spread=st.floats(0, 30),
    distinct=st.integers(1, 1000),
)
def test_selection_finds_the_values_that_a_sort_finds(
    data: st.DataObject, dtype: torch.dtype, spread: float, distinct: int
) -> None:
    seed = data.draw(st.integers(0, 2**31))
    rng = np.random.default_rng(seed)
    exponents = rng.normal(size=distinct) * spread
    pool = torch.as_tensor(np.exp2(np.clip(exponents, -120, 120))).to(dtype)
    size = equal_mass._SELECT_FROM + data.draw(st.integers(0, 50))
    values = pool[torch.as_tensor(rng.integers(0, distinct, size))]
    places = torch.as_tensor(np.sort(rng.integers(0, size, 9)))
    found = equal_mass.equal_mass_order_statistics(values[None], places)[0]
    assert torch.equal(found, values.sort().values[places])


@pytest.mark.parametrize("bins", [7, 100])
def test_bins_of_equal_mass_hold_equal_numbers(bins: int) -> None:
    key = torch.rand(2, 700, generator=torch.Generator().manual_seed(0)) + 0.1
    index = equal_mass.equal_mass_index(key, bins)
    for row in index:
        assert torch.equal(torch.bincount(row, minlength=bins), torch.full((bins,), 700 // bins))


def test_quantile_calibration_counts_against_scipys_normal() -> None:
    mean, variance, target = predictions(777)
    result = variance_errors.quantile_calibration(mean, variance, target + 0.3, levels=9)
    np.testing.assert_allclose(result.levels.numpy(), np.arange(1, 10) / 10)
    expected = [
        (
            (target + 0.3).numpy() <= stats.norm.ppf(p, mean.numpy(), np.sqrt(variance.numpy()))
        ).mean()
        for p in result.levels.numpy()
    ]
    np.testing.assert_allclose(result.observed.numpy(), expected, atol=1e-12)
    assert result.error.item() == pytest.approx(np.mean(np.abs(expected - result.levels.numpy())))


def test_coverage_of_a_calibrated_model_is_its_level() -> None:
    size, d = 100_000, 3
    covariance = covariances(size, d, seed=5)
    generator = torch.Generator().manual_seed(6)
    noise = torch.randn(size, d, 1, generator=generator, dtype=torch.float64)
    target = (torch.linalg.cholesky(covariance) @ noise)[..., 0]
    result = variance_errors.mahalanobis_calibration(torch.zeros_like(target), covariance, target)
    assert (result.observed - result.levels).abs().max() < 4 * math.sqrt(0.25 / size)
    marginal = covariance.diagonal(dim1=-2, dim2=-1)
    quantile = variance_errors.quantile_calibration(torch.zeros(d, size), marginal.T, target.T)
    assert quantile.observed.shape == (d, 99)
    assert (quantile.observed - quantile.levels).abs().max() < 4 * math.sqrt(0.25 / size)


def quadratic_esd(difference: np.ndarray, key: np.ndarray) -> float:
    size = len(difference)
    total = 0.0
    for i, j, k in itertools.permutations(range(size), 3):
        total += difference[j] * difference[k] * (key[j] <= key[i]) * (key[k] <= key[i])
    return total / (size * (size - 1) * (size - 2))


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10_000), size=st.integers(3, 9), tied=st.booleans())
def test_regression_esd_equals_the_cubic_sum_with_ties(seed: int, size: int, tied: bool) -> None:
    mean, variance, target = predictions(size, seed=seed)
    if tied:
        variance = variance.ceil()
    squares = ((mean - target) ** 2).numpy()
    expected = quadratic_esd(squares - variance.numpy(), variance.numpy())
    value = variance_errors.regression_esd(mean, variance, target).item()
    assert value == pytest.approx(expected, rel=1e-9, abs=1e-10)
    expected = quadratic_esd(squares / variance.numpy() - 1, variance.numpy())
    value = variance_errors.regression_esd_normalized(mean, variance, target).item()
    assert value == pytest.approx(expected, rel=1e-9, abs=1e-10)


@pytest.mark.parametrize("size", [3, 4, 5])
def test_regression_esd_is_unbiased_over_every_sample_of_a_small_world(size: int) -> None:
    """Three kinds of point (variance, error, probability); all samples of the size, enumerated."""
    variance = torch.tensor([1.0, 1.0, 3.0], dtype=torch.float64)
    error = torch.tensor([0.5, 2.0, 1.0], dtype=torch.float64)
    chance = torch.tensor([0.5, 0.2, 0.3], dtype=torch.float64)
    draws = torch.tensor(list(itertools.product(range(3), repeat=size)))
    values = variance_errors.regression_esd(torch.zeros(draws.shape), variance[draws], error[draws])
    expected = (chance[draws].prod(-1) * values).sum()
    gap = error.square() - variance
    population = sum(
        chance[i] * (chance * gap * (variance <= variance[i])).sum() ** 2 for i in range(3)
    )
    torch.testing.assert_close(expected, population, rtol=1e-12, atol=1e-14)


def test_regression_esd_sees_what_quantile_calibration_averages_away() -> None:
    """Too sure where the variance is small, not sure enough where it is large."""
    generator = torch.Generator().manual_seed(0)
    variance = torch.tensor([0.5, 2.0], dtype=torch.float64).repeat_interleave(20_000)
    target = torch.randn(40_000, generator=generator, dtype=torch.float64)
    mean = torch.zeros_like(target)
    calibrated = torch.ones_like(target)
    assert variance_errors.regression_esd(mean, calibrated, target) < 1e-3
    assert variance_errors.regression_esd(mean, variance, target) > 0.05
    assert variance_errors.ence(mean, variance, target) > 0.25


def test_crps_is_the_integral_of_the_squared_distance_of_distributions() -> None:
    for mu, variance, y in [(0.0, 1.0, 0.3), (2.0, 0.04, 1.7), (-1.0, 9.0, 6.0)]:
        below = integrate.quad(lambda x: stats.norm.cdf(x, mu, variance**0.5) ** 2, -60, y)[0]  # noqa: B023
        above = integrate.quad(lambda x: stats.norm.sf(x, mu, variance**0.5) ** 2, y, 60)[0]  # noqa: B023
        value = gaussian.gaussian_crps(
            *(torch.tensor([v], dtype=torch.float64) for v in (mu, variance, y))
        )
        assert value.item() == pytest.approx(below + above, abs=1e-8)


def test_nll_is_scipys_for_one_target_diagonal_and_full_covariance() -> None:
    mean, variance, target = predictions(30, 3)
    full = covariances(30, 3)
    joint = [
        -stats.multivariate_normal.logpdf(y, m, c)
        for y, m, c in zip(target.numpy(), mean.numpy(), full.numpy(), strict=True)
    ]
    assert gaussian.gaussian_nll(mean, full, target).item() == pytest.approx(np.mean(joint))
    single = -stats.norm.logpdf(target.numpy(), mean.numpy(), np.sqrt(variance.numpy()))
    assert gaussian.gaussian_nll(mean, variance, target).item() == pytest.approx(
        single.sum(1).mean()
    )
    column = (mean[:, 0], variance[:, 0], target[:, 0])
    assert gaussian.gaussian_nll(*column).item() == pytest.approx(single[:, 0].mean())


@pytest.mark.parametrize("measure", ["ence", "uce", "quantile_calibration"])
def test_a_column_of_predictions_is_pointed_out(measure: str) -> None:
    column = torch.ones(5, 1)
    with pytest.warns(UserWarning, match=r"in shape \(5, 1\); pass one target as \[N\]"):
        getattr(variance_errors, measure)(column, column, column)
    with pytest.raises(InputError, match=r"pass one target as \[N\]"):
        variance_errors.regression_esd(column, column, column)
