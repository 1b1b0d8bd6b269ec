"""The molecule study's measures: floors, units, likelihood."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from orbical.losses import nig_nll
from orbical_studies.qm9 import (
    measures,
)


def drawn(count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Evidence, and targets drawn from its own Student t distributions."""
    draw = np.random.default_rng(seed)
    nu, alpha = draw.uniform(0.5, 3, count), draw.uniform(2, 6, count)
    beta = draw.uniform(0.1, 2, count)
    scale = np.sqrt(beta * (1 + nu) / (alpha * nu))
    target = scale * draw.standard_t(2 * alpha)
    return np.stack([0 * nu, nu, alpha, beta]), target


def test_a_calibrated_network_is_at_its_floors():
    evidence, target = drawn(20_000, 0)
    found = measures.scores(evidence, target, 1.0)
    assert found["gence"] == pytest.approx(found["gence_own"], rel=0.05)
    assert found["gence_own"] > math.pi / 2 - 1
    assert found["ence"] < 2 * found["ence_floor"] < 0.06
    assert found["coverage"] < 4 * found["coverage_floor"] < 0.02
    assert found["square"] == pytest.approx(1, abs=0.1)
    sure = measures.scores(evidence, 2 * target, 1.0)
    assert sure["ence"] > 10 * found["ence"]
    assert sure["coverage"] > 10 * found["coverage"]
    assert sure["gence"] > 2 * found["gence"]


def test_measures_are_in_the_units_of_the_report():
    evidence, target = drawn(5_000, 1)
    one, ten = (measures.scores(evidence, target, unit) for unit in (1.0, 10.0))
    for name, power in (("mae", 1), ("bleed", 4), ("bleed_error", 4), ("aleatoric_50", 2)):
        assert ten[name] == pytest.approx(one[name] * 10**power)
    for name in ("gence", "ence", "coverage", "share"):
        assert ten[name] == pytest.approx(one[name])
    assert ten["nll"] == pytest.approx(one["nll"] + math.log(10))


def test_likelihood_of_the_report_is_that_of_the_loss():
    evidence, target = drawn(500, 2)
    loss = nig_nll(*torch.from_numpy(evidence), torch.from_numpy(target))
    assert measures.student_nll(target, *evidence[1:]).mean() == pytest.approx(float(loss))


def test_a_mean_of_squares_without_its_worst_hundredth():
    draw = np.random.default_rng(0)
    calm = draw.uniform(0, 1, 9_900)
    assert measures.most_bleed(np.concatenate([calm, np.full(100, 1e6)])) == pytest.approx(
        np.square(calm).mean()
    )
