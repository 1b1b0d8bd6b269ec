"""Limits: a scan passes or fails them, or has too few samples to tell."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
import xarray as xr

from orbical import calibration
from orbical.calibration import judge, verdict
from orbical.calibration.intervals.interval_ends import tail_interval_ends
from orbical.errors import InputError


def pairs(size: int, elements: int, gap: float, seed: int) -> xr.Dataset:
    """A model whose confidence exceeds its accuracy by a gap at the last element."""
    rng = np.random.default_rng(seed)
    accuracy = rng.uniform(0.5, 0.7, (1, size, elements))
    confidence = accuracy.copy()
    confidence[..., -1] += gap
    dims = ("model", "sample", "element")
    arrays = {"confidence": confidence, "correct": (rng.random(accuracy.shape) < accuracy) * 1.0}
    arrays["score_vs_consensus"] = confidence
    coords = {
        "model": ["net"],
        "weight": ("element", np.full(elements, 1 / elements)),
        "angle": ("element", np.arange(elements)),
    }
    data = xr.Dataset({name: (dims, part) for name, part in arrays.items()}, coords)
    data.attrs = {"group": f"cyclic:{elements}", "task": "classification"}
    return data.chunk()


def test_an_interval_below_passes_above_fails_and_around_is_inconclusive() -> None:
    for ends, at_most, at_least in (
        ((0.0, 0.04), "pass", "fail"),
        ((0.06, 0.09), "fail", "pass"),
        ((0.0, 0.09), "inconclusive", "inconclusive"),
    ):
        assert judge(0.05, *ends, maximum=0.05).outcome == at_most
        assert judge(0.05, *ends, minimum=0.05).outcome == at_least
    assert judge(math.nan, math.nan, math.nan, maximum=1.0).outcome == "fail"
    for value in (0.04, 0.06):  # without an interval nothing is decided
        assert judge(value, math.nan, math.nan, maximum=0.05).outcome == "inconclusive"
    with pytest.raises(InputError, match=r"maximum, minimum: .* got both"):
        judge(0.0, 0.0, 0.0, maximum=1.0, minimum=0.0)


@pytest.mark.parametrize("size", [200, 500])
def test_a_calibrated_model_hardly_ever_fails_at_the_worst_of_many_positions(size: int) -> None:
    outcomes = [
        verdict(pairs(size, 36, 0.0, seed), "ece", maximum=0.05, resamples=200)["net"].outcome
        for seed in range(8)
    ]
    assert outcomes.count("fail") == 0
    assert "inconclusive" in outcomes


def test_a_bad_position_fails_and_many_samples_pass() -> None:
    bad = verdict(pairs(800, 12, 0.25, 0), "ece", maximum=0.05, resamples=200)["net"]
    assert bad.outcome == "fail"
    assert bad.low > 0.05
    assert bad.positions == 12
    good = verdict(pairs(20_000, 4, 0.0, 0), "ece", maximum=0.05, resamples=200)["net"]
    assert good.outcome == "pass"
    assert "of 4 positions, limit <= 0.05" in str(good)


def test_other_places_have_one_value_and_accuracy_has_a_minimum() -> None:
    data = pairs(2000, 4, 0.0, 1)
    for place in ("mean", "pooled"):
        found = verdict(data, "ece", maximum=0.2, place=place, resamples=100)["net"]
        assert (found.outcome, found.positions) == ("pass", 1)
    assert math.isnan(verdict(data, "ks", maximum=0.2, place="pooled")["net"].low)
    worst = verdict(data, "accuracy", minimum=0.4)["net"]
    assert worst.outcome == "pass"
    assert worst.low < worst.value < worst.high
    with pytest.raises(InputError, match="place"):
        verdict(data, "ece", maximum=0.1, place="elsewhere")


def test_the_interval_of_the_worst_position_is_corrected_for_their_number() -> None:
    data = pairs(300, 20, 0.0, 2)
    found = verdict(data, "accuracy", minimum=0.4)["net"]
    each, alone = (
        calibration.along_orbit(data, "accuracy", interval=True, level=level)["low"].min().item()
        for level in (1 - 0.05 / 20, 0.95)
    )
    assert found.low == pytest.approx(each)
    assert found.low < alone


@pytest.mark.slow
def test_the_worst_position_is_covered_together() -> None:
    covered = []
    for seed in range(200):
        found = verdict(pairs(300, 24, 0.1, seed), "ece", maximum=0.1, resamples=200)["net"]
        covered.append(found.low <= 0.1 <= found.high)
    assert np.mean(covered) >= 0.93


def test_quantiles_beyond_the_draws_are_extrapolated() -> None:
    rng = np.random.default_rng(0)
    draws = torch.from_numpy(rng.normal(size=1000))
    low, _, high = tail_interval_ends(draws, 1 - 1e-4)
    assert float(high) == pytest.approx(3.89, abs=0.6)
    assert float(low) == pytest.approx(-3.89, abs=0.6)


def test_a_finding_says_what_could_have_been_missed() -> None:
    rng = np.random.default_rng(0)
    confidence = rng.uniform(0.5, 1, 300)
    fine = calibration.interval("ece", confidence, rng.random(300) < confidence)
    assert fine.finding.startswith("no error detected; one of up to 0.")
    off = calibration.interval("ece", confidence, rng.random(300) < confidence - 0.3)
    assert off.finding.startswith("error detected (at least 0.")
