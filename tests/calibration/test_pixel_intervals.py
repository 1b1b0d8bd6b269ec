"""Intervals of the calibration error of pixels: images are drawn, not pixels."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import orbical as ob
from orbical.calibration.orbit.pooled import pooled_ece_interval

PIXELS = 256


def world(rng: np.random.Generator, images: int, spread: float) -> tuple[np.ndarray, ...]:
    """Draw sums over the pixels of images in two bins; images differ in how hard they are."""
    count = rng.multinomial(PIXELS, [0.4, 0.6], images)
    easy = np.clip(rng.normal(0.0, spread, (images, 1)), -0.25, 0.25)
    right = rng.binomial(count, np.array([0.6, 0.75]) + easy)
    return count, count * np.array([0.7, 0.75]), right  # the true error is 0.4 x 0.1


def coverage(runs: int, images: int, spread: float) -> tuple[float, float]:
    """Return how often intervals that draw images, and pixels, cover the true error."""
    rng, hits = np.random.default_rng(0), np.zeros(2)
    for _ in range(runs):
        count, sure, right = world(rng, images, spread)
        sums = (right - sure, count.sum(1), right.sum(), count.sum(0))
        ends = pooled_ece_interval(*sums, 0.95, 0)
        hits[0] += bool(ends.low <= 0.04 <= ends.high)
        bins = np.repeat([0, 1], count.sum(0))
        both = zip(count.sum(0), right.sum(0), strict=True)
        correct = np.concatenate([np.arange(n) < r for n, r in both])
        pair = torch.tensor([0.7, 0.75])[bins], torch.from_numpy(correct)
        alone = ob.calibration.interval("ece", *pair, bins=50, resamples=100)
        hits[1] += bool(alone.low <= 0.04 <= alone.high)
    return float(hits[0] / runs), float(hits[1] / runs)


def test_intervals_that_draw_images_cover_and_those_that_draw_pixels_do_not() -> None:
    images, pixels = coverage(60, 40, 0.15)
    assert images > 0.9
    assert pixels < 0.8


@pytest.mark.slow
def test_intervals_that_draw_images_cover_at_their_level() -> None:
    for images, spread in ((20, 0.15), (40, 0.05), (200, 0.15)):
        assert coverage(400, images, spread)[0] > 0.92


@pytest.fixture(scope="module")
def scan() -> ob.Scan:
    images = torch.rand(12, 1, 8, 8, generator=torch.Generator().manual_seed(0))
    labels = (images[:, 0] > 0.5).long()
    labels[:, :2] = 255  # not judged
    task = ob.tasks.Segmentation()

    def net(x: torch.Tensor) -> torch.Tensor:
        x = x + 0.4 * torch.rand(x.shape, generator=torch.Generator().manual_seed(1)) - 0.2
        return torch.cat([0.5 - x, x - 0.5], 1) * 8

    return ob.scan(net, (images, labels), group="rotations:5", task=task, progress=False)


def test_values_are_those_without_an_interval_and_lie_inside(scan: ob.Scan) -> None:
    plain = ob.calibration.along_orbit(scan, "ece", bins=5)
    found = ob.calibration.along_orbit(scan, "ece", bins=5, interval=True)
    np.testing.assert_allclose(found, plain, atol=1e-6)
    assert ((found["low"] <= found) & (found <= found["high"])).all()
    assert found.attrs["layout"] == "circle"  # figures can draw it
    assert ob.figures.calibration.error_along_orbit(found).axes


def test_pixels_of_all_positions_are_pooled_with_their_weights(scan: ob.Scan) -> None:
    found = ob.calibration.pooled_over_orbit(scan, "ece", interval=True)
    over = ("sample", "element")
    sums = [scan.data[f"pixel_{name}"].sum(over)[0] for name in ("correct", "confidence")]
    expected = abs(sums[0] - sums[1]).sum() / scan.data["pixel_count"].sum()
    assert float(found[0]) == pytest.approx(float(expected), abs=1e-6)
    assert float(found["low"][0]) <= float(found[0]) <= float(found["high"][0])
    assert float(ob.calibration.pooled_over_orbit(scan, "ece")[0]) == float(found[0])
