"""The smooth reliability curve, against worlds whose accuracy is known."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from scipy.special import expit, logit

from orbical.calibration import reliability_curve
from orbical.calibration.intervals import reliability_curves as curves

Accuracy = Callable[[np.ndarray], np.ndarray]


@pytest.fixture(autouse=True)
def without_the_interval_of_the_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(curves, "interval", lambda *_, **__: None)  # takes most of the time


def sharpened(by: float) -> Accuracy:
    """Return the accuracy of a model whose logits are `1 / by` times too large."""
    return lambda z: expit(by * logit(np.clip(z, 1e-12, 1 - 1e-12)))


TRUTHS: dict[str, Accuracy] = {
    "calibrated": lambda z: z,
    "overconfident": sharpened(0.6),
    "underconfident": sharpened(1.6),
    "squared": np.square,
    "guessing": lambda z: np.full_like(z, 0.1),
}


def sharp_confidences(size: int, random: np.random.Generator) -> np.ndarray:
    top = expit(random.normal(5, 2.5, size))
    return np.maximum(top, 1 - top)


def lumped_confidences(size: int, random: np.random.Generator) -> np.ndarray:
    """Return confidences of which 95 % are 1 but for less than a thousandth."""
    at_one = 1 - 10.0 ** -random.uniform(3, 8, size)
    return np.where(random.random(size) < 0.95, at_one, random.uniform(0.5, 1, size))


WORLDS = {
    "sharp": sharp_confidences,
    "lumped": lumped_confidences,
    "uniform": lambda size, random: random.uniform(0.5, 1, size),
}


def test_a_mass_at_one_does_not_swamp_its_neighbors() -> None:
    random = np.random.default_rng(1)
    lump, rest = 1 - 10.0 ** -random.uniform(3, 6, 1900), random.uniform(0.85, 0.95, 100)
    correct = np.concatenate([random.random(1900) < 0.999, random.random(100) < 0.78])
    curve = reliability_curve(np.concatenate([lump, rest]), correct)
    near = (curve.place >= 0.86) & (curve.place <= 0.94)
    assert float((curve.accuracy[near] - 0.78).abs().max()) < 0.05
    assert float(curve.high[near].max()) < 0.9
    assert float(curve.accuracy[-1]) > 0.99
    assert float(curve.low[-1]) > 0.99


def covered(world: str, truth: str, size: int, repeats: int) -> float:
    """Return the mean share of places at which the band holds the true accuracy."""
    random, shares = np.random.default_rng(0), []
    for _ in range(repeats):
        confidence = WORLDS[world](size, random)
        correct = random.random(size) < TRUTHS[truth](confidence)
        curve = reliability_curve(confidence, correct, points=101)
        # The last place stands for all confidences that the picture cannot tell from 1.
        seen = curve.accuracy.isfinite().numpy() & (curve.place.numpy() < 0.99)
        expected = TRUTHS[truth](curve.place.numpy()[seen])
        low, high = curve.low.numpy()[seen], curve.high.numpy()[seen]
        shares.append(((low <= expected) & (expected <= high)).mean())
    return float(np.mean(shares))


@pytest.mark.parametrize("truth", TRUTHS)
@pytest.mark.parametrize("world", WORLDS)
def test_the_band_holds_the_true_accuracy(world: str, truth: str) -> None:
    assert covered(world, truth, 1000, 12) > 0.87  # 0.9 within the noise of twelve repeats


@pytest.mark.slow
@pytest.mark.parametrize("size", [300, 1000, 3000])
@pytest.mark.parametrize("truth", TRUTHS)
@pytest.mark.parametrize("world", WORLDS)
def test_the_band_holds_the_true_accuracy_in_many_worlds(world: str, truth: str, size: int) -> None:
    share = covered(world, truth, size, 150)
    print(f"{world}, {truth}, N = {size}: the band holds the accuracy at {share:.1%} of places")
    assert share > 0.9


def test_the_curve_of_a_calibrated_model_has_no_bias() -> None:
    random, size = np.random.default_rng(3), 1000
    mean = 0.0
    for _ in range(40):
        confidence = lumped_confidences(size, random)
        curve = reliability_curve(confidence, random.random(size) < confidence)
        mean = mean + (curve.accuracy - curve.place)[140:195].nanmean() / 40
    assert abs(float(mean)) < 0.015


def test_few_samples_that_are_all_correct_have_a_wide_band() -> None:
    curve = reliability_curve(np.full(5, 0.8), np.ones(5, bool))
    at = int((curve.place - 0.8).abs().argmin())
    assert float(curve.low[at]) < 0.6
    assert float(curve.high[at]) == 1.0
