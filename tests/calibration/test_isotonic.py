"""Isotonic regressions of many rows at once."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import isotonic_regression

from orbical.calibration.measures.proper_scores import isotonic_brier_remainder


@pytest.mark.parametrize("seed", range(20))
def test_the_remainder_is_that_of_scipys_regression_row_by_row(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows, width = rng.integers(1, 5), rng.integers(1, 40)
    count = rng.poisson(3, (rows, width)) * rng.random((rows, width)) ** rng.integers(0, 2)
    hits = count * rng.choice([0.0, 0.2, 1.0], (rows, width), p=[0.7, 0.2, 0.1])
    place = np.flatnonzero(hits)
    before = np.append(0.0, count.cumsum())
    expected = 0.0
    for number, right in zip(count, hits, strict=True):
        some = number > 0
        if some.any():
            fit = isotonic_regression(right[some] / number[some], weights=number[some]).x
            expected += (number[some] * fit**2 - 2 * fit * right[some] + right[some]).sum()
    found = isotonic_brier_remainder(place, hits.ravel()[place], before, int(width))
    assert found == pytest.approx(expected, abs=1e-9)


def test_without_any_hit_nothing_remains() -> None:
    assert isotonic_brier_remainder(np.zeros(0, int), None, np.arange(4.0), 3) == 0.0
