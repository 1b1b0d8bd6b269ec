"""Intervals of regression measures cover, and take vectors."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from interval_worlds import regression_world

from orbical.calibration import MEASURES, list_measures, regression_table
from orbical.calibration.intervals.measure_intervals import regression_interval


@pytest.mark.parametrize(("scale", "truth"), [(1.0, 0.0), (1.44, 0.2)])
def test_the_interval_of_ence_covers(scale: float, truth: float) -> None:
    mean, variance, target = regression_world(50, 500, scale, seed=10)
    inside = []
    for row in range(50):
        found = regression_interval(
            "ence", mean[row], variance[row], target[row], resamples=100, bins=10
        )
        inside.append(bool(found.low <= truth <= found.high))
    assert np.mean(inside) >= 0.9


def test_regression_intervals_of_leading_axes_are_those_of_each() -> None:
    mean, variance, target = (part[..., None] for part in regression_world(3, 300, 1.2, seed=16))
    together = regression_interval("uce", mean, variance, target, resamples=400)
    assert together.value.shape == (3,)
    alone = regression_interval("uce", mean[1], variance[1], target[1], resamples=400)
    assert together.value[1] == alone.value
    for end in ("low", "high", "calibrated"):
        assert float(getattr(together, end)[1]) == pytest.approx(
            float(getattr(alone, end)), rel=0.15, abs=0.02
        )


@pytest.mark.parametrize("name", [one.name for one in list_measures("regression")])
def test_every_regression_measure_has_an_interval_around_a_calibrated_model(name: str) -> None:
    given = [part[0] for part in regression_world(1, 400, 1.0, seed=11)]
    found = regression_interval(name, *given, resamples=200)
    assert found.low <= max(found.value, torch.tensor(0.0)) <= found.high
    assert found.calibrated_low <= found.calibrated <= found.calibrated_high


def test_the_floor_of_gence_is_its_calibrated_value() -> None:
    given = [part[0] for part in regression_world(1, 1000, 1.44, seed=12)]
    found = regression_interval("gence", *given, resamples=400)
    assert float(found.calibrated) == pytest.approx(math.pi / 2 - 1, abs=0.01)


@pytest.mark.parametrize("shape", ["diagonal", "full"])
def test_regression_intervals_take_vectors(shape: str) -> None:
    rng = np.random.default_rng(13)
    mean, variance = np.zeros((300, 2)), rng.uniform(0.5, 2, (300, 2))
    target = rng.normal(0, np.sqrt(variance))
    if shape == "full":
        variance = variance[:, :, None] * np.eye(2)
    for name in ("gence", "mahalanobis_calibration", "regression_esd_normalized"):
        found = regression_interval(name, mean, variance, target, resamples=100)
        assert found.calibrated_low <= found.value <= found.calibrated_high


@pytest.mark.parametrize(
    "name", ["gaussian_nll", "mahalanobis_calibration", "regression_esd_normalized", "gence"]
)
@pytest.mark.parametrize("full", [False, True])
def test_drawing_distances_is_drawing_targets(name: str, full: bool) -> None:
    """The shortcuts for vectors give the intervals of the plain way, evaluated sample by sample."""
    rng = np.random.default_rng(17)
    root = rng.normal(size=(400, 2, 2)) + 2 * np.eye(2)
    covariance = root @ root.transpose(0, 2, 1)
    target = 1.2 * (root @ rng.normal(size=(400, 2, 1)))[..., 0]
    variance = covariance if full else np.diagonal(covariance, axis1=1, axis2=2).copy()
    chosen = MEASURES[name].bind()
    plain = replace(chosen, whitened=None, marginal=False)
    given = (np.zeros((400, 2)), variance, target)
    found, expected = (regression_interval(one, *given, resamples=400) for one in (chosen, plain))
    assert found.value == expected.value
    width = float(expected.high - expected.low)
    for end in ("low", "high", "calibrated", "calibrated_low", "calibrated_high"):
        ours, theirs = (float(getattr(one, end)) for one in (found, expected))
        assert ours == pytest.approx(theirs, abs=0.2 * width), end


@pytest.mark.parametrize("width", [1, 2])
def test_weights_of_zero_leave_samples_out_of_a_table(width: int) -> None:
    rng = np.random.default_rng(2)
    shape = 60 if width == 1 else (60, width)
    mean, variance = np.zeros(shape), rng.uniform(0.5, 2, shape)
    target = rng.normal(0, np.sqrt(variance))
    weights = np.repeat([1.0, 0.0], 30)
    found = regression_table(mean, variance, target, weights=weights, resamples=20)
    half = (part[:30] for part in (mean, variance, target))
    for name, expected in regression_table(*half, resamples=20).items():
        assert float(found[name].value) == pytest.approx(float(expected.value)), name
        assert bool(found[name].low <= found[name].high), name
