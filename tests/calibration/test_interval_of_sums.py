"""The interval of a mean from sums: that of the samples themselves."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from orbical.calibration import bounded_mean_interval, interval_of_sums, share_interval_of_sums


@pytest.mark.parametrize("level", [0.8, 0.95])
def test_it_is_the_interval_of_students_t(level: float) -> None:
    values = np.random.default_rng(0).normal(3.0, 2.0, (50, 4))
    mean, low, high = interval_of_sums(
        np.full(4, 50), values.sum(0), np.square(values).sum(0), level=level
    )
    ends = stats.t.interval(level, 49, values.mean(0), stats.sem(values, axis=0))
    np.testing.assert_allclose(mean, values.mean(0))
    np.testing.assert_allclose([low, high], ends)


def test_one_sample_has_a_mean_and_no_interval_and_none_has_neither() -> None:
    mean, low, high = interval_of_sums(np.array([1, 0]), np.array([2.0, 0]), np.array([4.0, 0]))
    assert mean[0] == 2.0
    assert np.isnan([mean[1], *low, *high]).all()


def test_shares_stay_in_bounds_and_near_the_normal_interval_of_many() -> None:
    rng = np.random.default_rng(1)
    sure, usual = np.append(np.ones(19), 0.9), rng.beta(4, 2, 5000)
    for values in (sure, usual):
        sums = len(values), values.sum(), np.square(values).sum()
        plain, ends = (
            np.array(of(*map(np.array, sums))) for of in (interval_of_sums, share_interval_of_sums)
        )
        assert ends[0] == plain[0] == pytest.approx(values.mean())
        assert 0 <= ends[1] < ends[0] < ends[2] <= 1
    assert ends == pytest.approx(np.array(bounded_mean_interval(usual)), abs=1e-12)
    assert plain[1] - ends[1] < 0.7 * (plain[2] - plain[0])  # the price of holding at every n


def test_shares_that_are_all_equal_leave_doubt() -> None:
    count, total = np.array([20, 1]), np.array([20.0, 1.0])
    mean, low, high = share_interval_of_sums(count, total, total)
    assert mean.tolist() == [1, 1]
    assert low == pytest.approx([0.025 ** (1 / 20), 0.025])
    assert high.tolist() == [1, 1]
