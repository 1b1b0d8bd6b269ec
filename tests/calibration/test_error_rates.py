"""Intervals cover, and tests keep their size, outside the regime of many Gaussian samples."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from interval_tables import rejection_rate, with_gaps

import orbical as ob
from orbical.calibration import (
    MEASURES,
    Measure,
    compare,
    compare_means,
    interval,
    measure_table,
    pairs_within,
    regression_interval,
    scan_table,
)
from orbical.errors import InputError

WORLDS = 400


def noise(kind: str, shape: tuple[int, int], rng: np.random.Generator) -> np.ndarray:
    """Errors of unit variance."""
    return rng.standard_normal(shape) if kind == "normal" else rng.standard_t(8, shape) * 0.75**0.5


def regression_ends(name: str, kind: str, size: int) -> tuple[torch.Tensor, torch.Tensor]:
    rng = np.random.default_rng(3)
    variance = rng.uniform(0.5, 2, (WORLDS, size))
    target = np.sqrt(variance) * noise(kind, variance.shape, rng)
    given = (part[..., None] for part in (np.zeros_like(variance), variance, target))
    found = regression_interval(name, *given, resamples=100)
    return found.low, found.high


@pytest.mark.parametrize("name", ["gence", "gence_sq", "gaussian_nll", "gaussian_crps"])
def test_means_of_skewed_terms_are_covered_at_50_samples(name: str) -> None:
    low, high = regression_ends(name, "normal", 50)
    rng = np.random.default_rng(4)
    variance = rng.uniform(0.5, 2, 400_000)
    truth = MEASURES[name](np.zeros_like(variance), variance, rng.normal(0, np.sqrt(variance)))
    assert float(((low <= truth) & (truth <= high)).double().mean()) >= 0.93


@pytest.mark.parametrize(
    "name", ["ence", "uce", "regression_esd", "regression_esd_normalized", "gence_sq_fiber"]
)
@pytest.mark.parametrize("size", [50, 300])
def test_heavy_tails_are_no_error_of_exact_variances(name: str, size: int) -> None:
    low, _ = regression_ends(name, "t8", size)
    assert float((low > 0).double().mean()) <= 0.025 + 3 * (0.025 / WORLDS) ** 0.5


def test_the_largest_gap_of_any_bin_that_holds_samples_is_covered() -> None:
    rng = np.random.default_rng(5)
    doubt = rng.beta(1, 30, (WORLDS, 50))
    wrong = rng.random(doubt.shape) < 2 * doubt
    found = interval("ece_max", 1 - doubt, ~wrong, resamples=20)
    many = rng.beta(1, 30, 400_000)
    bins = np.ceil(15 * (1 - many)).astype(int)
    gap = np.bincount(bins, many, minlength=16) / np.bincount(bins, minlength=16).clip(1)
    held = np.ceil(15 * (1 - doubt)).astype(int)
    truth = torch.from_numpy(gap[held].max(1))
    assert float(((found.low <= truth) & (truth <= found.high)).double().mean()) >= 0.95
    weighted = interval("ece_max", 1 - doubt[0], ~wrong[0], weights=np.full(50, 3.0), resamples=20)
    for end in ("low", "high"):
        assert float(getattr(weighted, end)) == pytest.approx(float(getattr(found, end)[0]))


@pytest.mark.parametrize("measure", ["ece", "ks"])
def test_equal_errors_of_opposite_sign_are_rarely_told_apart(measure: str) -> None:
    world = with_gaps(0.84, 0.96, 0.04, -0.04)
    assert rejection_rate(measure, world, 200, trials=150, resamples=100) <= 0.07


@pytest.mark.parametrize("size", [2, 3, 5, 8, 20])
def test_means_of_few_samples_keep_their_size(size: int) -> None:
    rng = np.random.default_rng(6)
    for drawn in (rng.normal(size=(2000, size)), rng.integers(-1, 2, (2000, size)).astype(float)):
        shares = [float(compare_means(each, np.zeros(size)).p_value) < 0.05 for each in drawn]
        assert np.mean(shares) <= 0.065


def signed(confidence: torch.Tensor, correct: torch.Tensor) -> torch.Tensor:
    return (confidence - correct.double()).mean(-1)


def test_an_interval_contains_its_value_if_the_measure_is_negative() -> None:
    rng = np.random.default_rng(7)
    confidence = rng.uniform(0.5, 1, (200, 30))
    correct = rng.random(confidence.shape) < confidence
    for name in ("esd", "skce", "ece_debiased", signed):
        found = interval(name, confidence, correct, resamples=50)
        assert bool((found.value < 0).any())
        assert bool(((found.low <= found.value) & (found.value <= found.high)).all())
    timid = interval(signed, confidence[0] - 0.4, correct[0], resamples=100)
    assert bool(timid.high < 0)  # its confidence is below its accuracy


@pytest.mark.parametrize("weights", [None, np.ones(20)])
def test_what_a_calibrated_model_shows_stays_within_bounds(weights: np.ndarray | None) -> None:
    confidence = np.linspace(0.35, 0.65, 20)
    for name in ("ece_max", "ece", "ks"):
        found = interval(name, confidence, np.arange(20) % 2, weights=weights, resamples=40)
        assert 0 <= found.calibrated_low <= found.calibrated_high <= 1


def mean_gap(confidence: torch.Tensor, correct: torch.Tensor) -> float:
    return float((confidence - correct.double()).mean())


def test_a_measure_that_returns_a_number_is_named() -> None:
    confidence, correct = np.linspace(0.5, 1, 30), np.arange(30) % 3 > 0
    entry = Measure("mean_gap", mean_gap, title="gap", meaning="gap")  # type: ignore[arg-type]
    for measure in (mean_gap, entry):
        with pytest.raises(InputError, match="mean_gap, which returns float"):
            interval(measure, confidence, correct, resamples=20)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="mean_gap, which returns float"):
        compare(mean_gap, (confidence, correct), (confidence, correct))  # type: ignore[arg-type]


def labels_scan() -> ob.Scan:
    rng = torch.Generator().manual_seed(0)
    images = torch.rand(30, 1, 8, 8, generator=rng)
    truth = (images.flatten(1)[:, :2] > 0.5).long().tolist()
    return ob.scan(
        lambda x: 4 * x.flatten(1)[:, :2] - 2,
        (images, truth),
        group="cyclic:4",
        task="multilabel",
        progress=False,
    )


def test_pairs_within_samples_have_a_table() -> None:
    pairs = pairs_within(labels_scan())
    table = scan_table(pairs, resamples=40)
    row = table[(table["measure"] == "ece") & (table["place"] == "identity")].iloc[0]
    confidence, correct = ob.calibration.pair_at(pairs, 0)
    assert row["value"] == pytest.approx(float(ob.calibration.ece(confidence, correct)))


def test_a_scan_where_outputs_belong_is_named() -> None:
    scan = labels_scan()
    for call in (measure_table, ob.calibration.compare_outputs):
        with pytest.raises(InputError, match=r"outputs: .* got Scan; scan_table takes a scan"):
            call(scan)
    with pytest.raises(InputError, match="mean: expected an array of numbers, got Scan"):
        ob.calibration.regression_score_terms(scan, scan, scan)
    with pytest.raises(InputError, match="diagram: expected a Reliability, got Scan"):
        ob.calibration.error_of(scan)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="level"):
        ob.calibration.checked_level(scan)  # type: ignore[arg-type]
