"""The debiased calibration error: by hand, unbiased where the truth is known, and with weights."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch

from orbical.calibration import MEASURES, ece, ece_debiased, interval


def test_it_is_the_formula_bin_by_bin():
    rng = np.random.default_rng(0)
    z, y = rng.random(200), rng.random(200) < 0.6
    expected = 0.0
    for b in range(10):
        mine = (z > b / 10) & (z <= (b + 1) / 10)
        n, difference = mine.sum(), y[mine] - z[mine]
        expected += n / 200 * (difference.mean() ** 2 - difference.var(ddof=1) / n)
    assert float(ece_debiased(z, y, bins=10)) == pytest.approx(expected)


@pytest.mark.parametrize("gap", [0.0, 0.1])
def test_it_is_unbiased_where_the_plug_in_is_not(gap):
    rng = np.random.default_rng(1)
    z = np.broadcast_to((np.arange(150) % 15 + 0.5) / 15, (3000, 150))  # ten in each bin
    z = 0.2 + 0.6 * z
    y = rng.random(z.shape) < z - gap
    found = ece_debiased(z, y)
    error = float(found.std()) / 3000**0.5
    assert abs(float(found.mean()) - gap**2) < 4 * error
    assert float(ece(z, y, norm="l2").square().mean()) > gap**2 + 40 * error


def test_its_mean_over_all_samples_of_a_small_world_is_the_squared_gap():
    """Three samples of a world of two confidences and two outcomes, every one of 64 triples."""
    world = [(0.2, True, 0.4 * 0.5), (0.2, False, 0.4 * 0.5), (0.9, True, 0.6 * 0.7),
             (0.9, False, 0.6 * 0.3)]  # fmt: skip
    triples = list(itertools.product(world, repeat=3))
    z, y, chance = (np.array([[one[k] for one in triple] for triple in triples]) for k in range(3))
    gap = sum(p * (right - sure) for sure, right, p in world)
    mean = float(ece_debiased(z, y, bins=1).numpy() @ chance.prod(1))
    assert mean == pytest.approx(gap**2, abs=1e-12)


def test_equal_weights_change_nothing_and_single_samples_count_as_nothing():
    rng = np.random.default_rng(2)
    z, y = rng.random(100), rng.random(100) < 0.5
    torch.testing.assert_close(ece_debiased(z, y, weights=np.full(100, 3.0)), ece_debiased(z, y))
    zero = np.where(np.arange(100) < 50, 1.0, 0.0)
    torch.testing.assert_close(ece_debiased(z, y, weights=zero), ece_debiased(z[:50], y[:50]))
    assert float(ece_debiased([0.1, 0.9], [True, False])) == 0


def test_it_is_a_measure_like_the_others():
    rng = np.random.default_rng(3)
    z = rng.uniform(0.5, 1, 500)
    found = interval("ece_debiased", z, rng.random(500) < z - 0.2, resamples=100)
    assert float(found.low) > 0
    metric = MEASURES["ece_debiased"].metric(bins=10)
    probs = torch.tensor([[0.2, 0.8], [0.6, 0.4], [0.3, 0.7]])
    metric.update(probs, torch.tensor([1, 0, 0]))
    assert float(metric.compute()) == pytest.approx(
        float(ece_debiased([0.8, 0.6, 0.7], [True, True, False], bins=10)), abs=1e-6
    )
