"""Regression calibration against brute force, scipy, and what is known of a calibrated Gaussian."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, optimize, stats
from torch import Tensor

from orbical.calibration import bleed, gaussian, generalised, quantiles, regression
from orbical.errors import InputError

SCALAR = {
    "ence": regression.ence,
    "uce": regression.uce,
    "regression_esd": regression.regression_esd,
    "gaussian_crps": gaussian.gaussian_crps,
    "quantile_calibration": lambda m, s, y: regression.quantile_calibration(m, s, y).error,
}
VECTOR = {
    "gence": generalised.gence,
    "gence_sq": generalised.gence_sq,
    "gence_fibre": generalised.gence_fibre,
    "gence_sq_fibre": generalised.gence_sq_fibre,
    "gaussian_nll": gaussian.gaussian_nll,
    "regression_esd_normalised": regression.regression_esd_normalised,
    "mahalanobis_calibration": lambda m, s, y: regression.mahalanobis_calibration(m, s, y).error,
}
DIFFERENTIABLE = {
    **{name: SCALAR[name] for name in ("ence", "uce", "regression_esd", "gaussian_crps")},
    **{name: f for name, f in VECTOR.items() if name != "mahalanobis_calibration"},
}


def predictions(size: int, *shape: int, seed: int = 0) -> tuple[Tensor, Tensor, Tensor]:
    """Calibrated Gaussian predictions of shape `[*leading, size, *coordinates]`."""
    generator = torch.Generator().manual_seed(seed)
    mean = torch.randn(size, *shape, generator=generator, dtype=torch.float64)
    variance = torch.rand(size, *shape, generator=generator, dtype=torch.float64) * 4 + 0.05
    noise = torch.randn(size, *shape, generator=generator, dtype=torch.float64)
    return mean, variance, mean + variance.sqrt() * noise


def covariances(size: int, d: int, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    factor = torch.randn(size, d, d, generator=generator, dtype=torch.float64)
    return factor @ factor.mT + 0.2 * torch.eye(d, dtype=torch.float64)


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
    ence = regression.ence(mean, variance, target, bins=15)
    uce = regression.uce(mean, variance, target, bins=15)
    assert ence.item() == pytest.approx(np.mean(np.abs(rmv - rmse) / rmv), rel=1e-13)
    assert uce.item() == pytest.approx(np.mean(np.abs(gaps)), rel=1e-13)


def test_ence_and_uce_are_netcals_where_its_bins_of_equal_width_have_equal_mass() -> None:
    netcal = pytest.importorskip("netcal.metrics.regression")
    even = (torch.arange(1500, dtype=torch.float64) + 0.5) / 1500
    generator = torch.Generator().manual_seed(4)
    noise = 1.2 * torch.randn(1500, generator=generator, dtype=torch.float64)
    mean = torch.zeros_like(noise)
    # netcal has bins of the deviation in one and of the variance in the other
    for ours, theirs, deviation in (
        (regression.ence, netcal.ENCE, even),
        (regression.uce, netcal.UCE, even.sqrt()),
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
    assert regression.uce(mean, variance, target).item() == pytest.approx(
        abs(mean_square.item() - 2.0), rel=1e-13
    )
    order = torch.randperm(100, generator=torch.Generator().manual_seed(3))
    torch.testing.assert_close(
        regression.ence(mean, variance, target),
        regression.ence(mean[order], variance[order], target[order]),
    )


def test_bins_more_than_samples_are_empty_and_harmless() -> None:
    mean, variance, target = predictions(5)
    expected = ((mean - target).square() - variance).abs().mean()
    torch.testing.assert_close(regression.uce(mean, variance, target, bins=40), expected)
    assert torch.isfinite(regression.ence(mean, variance, target, bins=200))


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
    size = quantiles._SELECT_FROM + data.draw(st.integers(0, 50))
    values = pool[torch.as_tensor(rng.integers(0, distinct, size))]
    places = torch.as_tensor(np.sort(rng.integers(0, size, 9)))
    found = quantiles.order_statistics(values[None], places)[0]
    assert torch.equal(found, values.sort().values[places])


@pytest.mark.parametrize("bins", [7, 100])
def test_bins_of_equal_mass_hold_equal_numbers(bins: int) -> None:
    key = torch.rand(2, 700, generator=torch.Generator().manual_seed(0)) + 0.1
    index = quantiles.equal_mass_index(key, bins)
    for row in index:
        assert torch.equal(torch.bincount(row, minlength=bins), torch.full((bins,), 700 // bins))


@pytest.mark.parametrize("d", [1, 3, 8])
def test_a_calibrated_gaussian_scores_the_floors_and_its_fibres_score_zero(d: int) -> None:
    size = 200_000
    mean, variance, target = predictions(size, d, seed=d)
    for measure, floor in (
        (generalised.gence, generalised.gence_floor),
        (generalised.gence_sq, generalised.gence_sq_floor),
    ):
        parts = [measure(m, s, y).item() for m, s, y in zip(
            mean.chunk(20), variance.chunk(20), target.chunk(20), strict=True
        )]  # fmt: skip
        error = np.std(parts, ddof=1) / math.sqrt(20)
        assert measure(mean, variance, target).item() == pytest.approx(floor, abs=4 * error)
    noise = 15 / size
    assert generalised.gence_fibre(mean, variance, target) < 4 * noise * generalised.gence_floor
    assert generalised.gence_sq_fibre(mean, variance, target) < 6 * noise * 2
    assert regression.ence(mean.T, variance.T, target.T).max() < 0.02


def test_gence_is_its_formula_written_out() -> None:
    mean, variance, target = predictions(50, 3)
    total = total_sq = 0.0
    for m, s, y in zip(mean.numpy(), variance.numpy(), target.numpy(), strict=True):
        a, e = np.sqrt(2 * s / np.pi), np.abs(m - y)
        total += np.sum((a - e) ** 2) / np.sum(a**2) / 50
        total_sq += np.sum((s - e**2) ** 2) / np.sum(s**2) / 50
    assert generalised.gence(mean, variance, target).item() == pytest.approx(total, rel=1e-13)
    assert generalised.gence_sq(mean, variance, target).item() == pytest.approx(total_sq, rel=1e-13)


def test_a_fibre_mean_on_exact_fibres_is_the_papers_ratio() -> None:
    generator = torch.Generator().manual_seed(1)
    levels = torch.tensor([0.5, 2.0, 7.0], dtype=torch.float64)
    variance = levels.repeat_interleave(40)
    target = torch.randn(120, generator=generator, dtype=torch.float64)
    expected = 0.0
    for level in levels:
        a = math.sqrt(2 * level / math.pi)
        e = target[variance == level].abs().mean()
        expected += float((a - e) ** 2 / a**2) / 3
    value = generalised.gence_fibre(torch.zeros(120), variance, target, bins=3)
    assert value.item() == pytest.approx(expected, rel=1e-12)


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    size=st.integers(1, 40),
    d=st.integers(1, 4),
    bins=st.integers(1, 20),
    factor=st.floats(0.01, 30),
)
def test_averaging_over_fibres_never_raises_gence(
    seed: int, size: int, d: int, bins: int, factor: float
) -> None:
    mean, variance, target = predictions(size, d, seed=seed)
    variance = variance * factor
    for whole, fibre in (
        (generalised.gence, generalised.gence_fibre),
        (generalised.gence_sq, generalised.gence_sq_fibre),
    ):
        limit = whole(mean, variance, target) * (1 + 1e-12)
        assert fibre(mean, variance, target, bins=bins) <= limit


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
    here = generalised.gence(mean, covariance, target)
    there = generalised.gence(*turned)
    assert (here - there).abs() > 0.05
    for measure in (
        gaussian.gaussian_nll,
        regression.regression_esd_normalised,
        lambda *given: regression.mahalanobis_calibration(*given).observed,
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
    result = regression.mahalanobis_calibration(mean, covariance, target, levels=19)
    expected = [(squared <= stats.chi2.ppf(level, d)).mean() for level in result.levels.numpy()]
    np.testing.assert_allclose(result.observed.numpy(), expected, atol=1e-12)


def test_quantile_calibration_counts_against_scipys_normal() -> None:
    mean, variance, target = predictions(777)
    result = regression.quantile_calibration(mean, variance, target + 0.3, levels=9)
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
    result = regression.mahalanobis_calibration(torch.zeros_like(target), covariance, target)
    assert (result.observed - result.levels).abs().max() < 4 * math.sqrt(0.25 / size)
    marginal = covariance.diagonal(dim1=-2, dim2=-1)
    quantile = regression.quantile_calibration(torch.zeros(d, size), marginal.T, target.T)
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
    value = regression.regression_esd(mean, variance, target).item()
    assert value == pytest.approx(expected, rel=1e-9, abs=1e-10)
    expected = quadratic_esd(squares / variance.numpy() - 1, variance.numpy())
    value = regression.regression_esd_normalised(mean, variance, target).item()
    assert value == pytest.approx(expected, rel=1e-9, abs=1e-10)


@pytest.mark.parametrize("size", [3, 4, 5])
def test_regression_esd_is_unbiased_over_every_sample_of_a_small_world(size: int) -> None:
    """Three kinds of point (variance, error, probability); all samples of the size, enumerated."""
    variance = torch.tensor([1.0, 1.0, 3.0], dtype=torch.float64)
    error = torch.tensor([0.5, 2.0, 1.0], dtype=torch.float64)
    chance = torch.tensor([0.5, 0.2, 0.3], dtype=torch.float64)
    draws = torch.tensor(list(itertools.product(range(3), repeat=size)))
    values = regression.regression_esd(torch.zeros(draws.shape), variance[draws], error[draws])
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
    assert regression.regression_esd(mean, calibrated, target) < 1e-3
    assert regression.regression_esd(mean, variance, target) > 0.05
    assert regression.ence(mean, variance, target) > 0.25


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


@pytest.mark.parametrize("name", [name for name in VECTOR if "fibre" not in name])
def test_a_diagonal_covariance_and_its_matrix_score_alike(name: str) -> None:
    mean, variance, target = predictions(40, 2)
    torch.testing.assert_close(
        VECTOR[name](mean, variance, target),
        VECTOR[name](mean, torch.diag_embed(variance), target),
    )


@pytest.mark.parametrize("name", VECTOR)
def test_one_variance_for_all_coordinates_is_the_repeated_one(name: str) -> None:
    mean, variance, target = predictions(40, 3)
    shared = variance[:, :1]
    torch.testing.assert_close(
        VECTOR[name](mean, shared, target), VECTOR[name](mean, shared.expand(-1, 3), target)
    )


@pytest.mark.parametrize("name", SCALAR)
def test_leading_axes_of_one_target_are_answered_one_by_one(name: str) -> None:
    mean, variance, target = (t.T.reshape(2, 3, 60) for t in predictions(60, 6))
    together = SCALAR[name](mean, variance, target)
    assert together.shape == (2, 3)
    for i, j in itertools.product(range(2), range(3)):
        torch.testing.assert_close(
            together[i, j], SCALAR[name](mean[i, j], variance[i, j], target[i, j])
        )


@pytest.mark.parametrize("name", VECTOR)
def test_leading_axes_of_vectors_are_answered_one_by_one(name: str) -> None:
    mean, variance, _ = (t.reshape(60, 2, 3).transpose(0, 1) for t in predictions(60, 6))
    target = predictions(60, 3, seed=9)[2]
    together = VECTOR[name](mean, variance, target)
    assert together.shape == (2,)
    for i in range(2):
        torch.testing.assert_close(together[i], VECTOR[name](mean[i], variance[i], target))


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_gradients_are_those_of_finite_differences(name: str) -> None:
    mean, variance, target = predictions(12)
    inputs = [tensor.clone().requires_grad_() for tensor in (mean, variance, target)]
    measure: Callable[..., Tensor] = DIFFERENTIABLE[name]
    assert torch.autograd.gradcheck(measure, inputs, eps=1e-7, atol=1e-5)


def test_an_errorless_bin_has_a_finite_gradient() -> None:
    mean = torch.zeros(6, requires_grad=True)
    regression.ence(mean, torch.ones(6), torch.zeros(6), bins=2).backward()
    assert torch.isfinite(mean.grad).all()


def test_half_precision_and_float32_are_summed_in_float64() -> None:
    size = 300_000
    variance = torch.full((size,), 0.1, dtype=torch.float16)
    target = torch.full((size,), 0.5, dtype=torch.float16)
    mean = torch.zeros(size, dtype=torch.float16)
    exact = 0.25 - float(torch.tensor(0.1, dtype=torch.float16))
    assert regression.uce(mean, variance, target).item() == pytest.approx(exact, rel=1e-12)
    assert regression.uce(mean, variance, target).dtype == torch.float64


@pytest.mark.parametrize("name", [*SCALAR, *VECTOR])
@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf])
def test_variances_that_are_none_are_refused(name: str, bad: float) -> None:
    mean, variance, target = predictions(10)
    variance[4] = bad
    with pytest.raises(InputError, match=r"variance: .*expected"):
        {**SCALAR, **VECTOR}[name](mean, variance, target)


@pytest.mark.parametrize("name", [*SCALAR, *VECTOR])
def test_nan_predictions_and_targets_are_refused_by_name(name: str) -> None:
    measure = {**SCALAR, **VECTOR}[name]
    mean, variance, target = predictions(10)
    broken = mean.clone()
    broken[0] = math.nan
    with pytest.raises(InputError, match="mean: contains NaN"):
        measure(broken, variance, target)
    with pytest.raises(InputError, match="target: contains NaN"):
        measure(mean, variance, broken)
    with pytest.raises(InputError, match="target: expected"):
        measure(mean, variance, target[:-1])
    with pytest.raises(InputError, match="variance: "):
        measure(mean, variance[:-1], target)
    with pytest.raises(
        InputError, match=r"mean: an axis is empty|target: an axis is empty|at least"
    ):
        measure(mean[:0], variance[:0], target[:0])


def test_covariances_that_are_none_are_refused() -> None:
    mean, _, target = predictions(10, 2)
    indefinite = covariances(10, 2)
    indefinite[3] = torch.tensor([[1.0, 2.0], [2.0, 1.0]])
    with pytest.raises(InputError, match=r"not positive definite, the first at sample 3"):
        gaussian.gaussian_nll(mean, indefinite, target)
    skewed = covariances(10, 2)
    skewed[0, 0, 1] += 1
    with pytest.raises(InputError, match="variance: covariances are not symmetric"):
        regression.mahalanobis_calibration(mean, skewed, target)
    with pytest.raises(InputError, match=r"variance: .* does not fit mean"):
        gaussian.gaussian_nll(mean, covariances(10, 3), target)
    with pytest.raises(InputError, match="variance: expected as many axes"):
        gaussian.gaussian_nll(mean[:, 0], covariances(10, 2), target[:, 0])


def test_too_few_samples_bins_and_levels_are_refused() -> None:
    mean, variance, target = predictions(2)
    for measure in (regression.regression_esd, regression.regression_esd_normalised):
        with pytest.raises(InputError, match="mean: got 2 samples, expected at least 3"):
            measure(mean, variance, target)
    with pytest.raises(InputError, match="bins: expected a whole number"):
        regression.ence(mean, variance, target, bins=0)
    with pytest.raises(InputError, match="levels: expected a whole number"):
        regression.quantile_calibration(mean, variance, target, levels=0)
    with pytest.raises(InputError, match="mean: expected floating-point"):
        regression.ence([0, 1], [1.0, 1.0], [0.0, 1.0])


def test_bleed_adds_up_over_coordinates_and_says_where() -> None:
    aleatoric = torch.tensor([[1.0, 0.0, 2.0], [3.0, 0.0, 0.0]])
    truth = torch.tensor([[1.0, 0.0, 0.0], [1.0, 0.0, 0.0]])
    total, per_coordinate = bleed.aleatoric_bleed(aleatoric, truth)
    assert per_coordinate.tolist() == [2.0, 0.0, 2.0]
    assert total.item() == 4.0
    assert bleed.aleatoric_bleed(torch.tensor([1.0, 3.0])).total.item() == 5.0
    stacked = bleed.aleatoric_bleed(torch.stack([aleatoric, 2 * aleatoric]), truth)
    assert stacked.per_coordinate.shape == (2, 3)


def test_bleed_refuses_what_is_no_variance() -> None:
    with pytest.raises(InputError, match="aleatoric: the smallest value is -1"):
        bleed.aleatoric_bleed([[1.0, -1.0]])
    with pytest.raises(InputError, match="aleatoric: contains NaN"):
        bleed.aleatoric_bleed([1.0, math.nan])
    with pytest.raises(InputError, match="truth: expected a number or the shape"):
        bleed.aleatoric_bleed([[1.0, 1.0]], [[1.0, 1.0, 1.0]])
    with pytest.raises(InputError, match="orbit: expected 2 integers"):
        bleed.nll_optimal_bleed([1.0, 2.0], [0.0, 1.0])
    with pytest.raises(InputError, match="fit: expected the shape"):
        bleed.nll_optimal_bleed([1.0, 2.0], [0, 0], fit=[1.0])
    with pytest.raises(InputError, match="mass: expected finite"):
        bleed.nll_optimal_bleed([1.0, 2.0], [0, 0], mass=[-1.0, 2.0])


def test_nll_optimal_bleed_is_where_likelihood_leads_an_invariant_model() -> None:
    """Minimise the likelihood over one mean and one variance for each orbit and coordinate."""
    rng = np.random.default_rng(0)
    target, orbit = rng.normal(size=(9, 2)), np.array([0, 0, 0, 1, 1, 1, 1, 2, 2])
    mass = rng.uniform(0.5, 1.5, size=9)

    def loss(parameters: np.ndarray) -> float:
        mean, log_variance = parameters.reshape(2, 3, 2)[:, orbit]
        density = (target - mean) ** 2 / np.exp(log_variance) + log_variance
        return float((mass[:, None] * density).sum())

    best = optimize.minimize(loss, np.zeros(12), tol=1e-14).x.reshape(2, 3, 2)
    reported = np.exp(best[1])[orbit]
    expected = (mass[:, None] * reported**2).sum(0) / mass.sum()
    result = bleed.nll_optimal_bleed(target, orbit, mass=mass)
    np.testing.assert_allclose(result.per_coordinate.numpy(), expected, rtol=1e-4)
    assert result.total.item() == pytest.approx(result.per_coordinate.sum().item())


def test_nll_optimal_bleed_of_a_field_that_turns_against_the_symmetry() -> None:
    """f(x) = (x rotated by 90 degrees) is equivariant; a constant field is not, and bleeds."""
    angle = torch.arange(8, dtype=torch.float64) * (2 * math.pi / 8)
    turns = torch.stack([
        torch.stack([angle.cos(), -angle.sin()], -1), torch.stack([angle.sin(), angle.cos()], -1)
    ], -2)  # fmt: skip

    def best_equivariant(field: Tensor) -> Tensor:
        canonical = torch.einsum("kji,kj->ki", turns, field).mean(0)
        return turns @ canonical

    orbit = torch.zeros(8, dtype=torch.long)
    swirl = torch.stack([-angle.sin(), angle.cos()], -1)
    constant = torch.tensor([1.0, 0.0], dtype=torch.float64).expand(8, 2)
    right = bleed.nll_optimal_bleed(swirl, orbit, fit=best_equivariant(swirl))
    wrong = bleed.nll_optimal_bleed(constant, orbit, fit=best_equivariant(constant))
    assert right.total.item() == pytest.approx(0, abs=1e-28)
    # The best equivariant fit of a constant field is 0, so all of it becomes variance.
    assert wrong.per_coordinate.tolist() == pytest.approx([1.0, 0.0])
