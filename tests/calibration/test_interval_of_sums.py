"""The interval of a mean from sums: that of the samples themselves."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from orbical.calibration import (
    bounded_mean_interval,
    interval_of_sums,
    mean_interval,
    share_interval_of_sums,
    unbounded_mean_interval,
)


def sums_of(values: np.ndarray) -> list[np.ndarray]:
    """Sums of the powers 0 to 4 over the last axis."""
    return [np.asarray((values**power).sum(-1)) for power in range(5)]


@pytest.mark.parametrize("level", [0.8, 0.95])
def test_it_is_the_interval_of_students_t_unless_values_are_skewed(level: float) -> None:
    half = np.random.default_rng(0).exponential(2.0, (4, 50))
    even = 3.0 + np.concatenate([half, -half], -1)
    mean, low, high = interval_of_sums(*sums_of(even), level)
    ends = stats.t.interval(level, 99, even.mean(-1), stats.sem(even, axis=-1))
    np.testing.assert_allclose(mean, even.mean(-1))
    np.testing.assert_allclose([low, high], ends)
    mean, low, high = interval_of_sums(*sums_of(half), level)
    assert (high - mean > 1.1 * (mean - low)).all()


@pytest.mark.parametrize("scale", [1e-12, 1e-6, 1.0, 1e6, 1e12])
@pytest.mark.parametrize("shift", [0.0, -3.0, 50.0])
@pytest.mark.parametrize("count", [2, 3, 40, 5000])
def test_sums_and_values_tell_the_same_at_every_scale(
    scale: float, shift: float, count: int
) -> None:
    values = np.random.default_rng(count).lognormal(0, 1, (3, count)) + shift
    none = np.zeros_like(values)
    wanted = mean_interval(values, none, none)
    for found in (
        interval_of_sums(*sums_of(scale * values)),
        unbounded_mean_interval(scale * values),
        unbounded_mean_interval(np.pad(scale * values, ((0, 0), (0, 9)), constant_values=np.nan)),
    ):
        ends = wanted.value, wanted.low, wanted.high
        for part, other in zip(found, ends, strict=True):
            np.testing.assert_allclose(part / scale, other, rtol=1e-6)
        assert [*found.caution] == [*unbounded_mean_interval(values).caution]


@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e12])
def test_what_rounding_hides_is_said(scale: float) -> None:
    values = np.random.default_rng(0).lognormal(0, 1, 2000)
    assert unbounded_mean_interval(scale * values).caution == ""
    for hidden in (values + 1e6, np.full(2000, 0.1)):
        found = unbounded_mean_interval(scale * hidden)
        assert "hardly differ" in found.caution
        assert found[1] <= found[0] <= found[2]


def test_no_value_is_below_a_limit_and_neither_is_the_end() -> None:
    values = np.array([0.0, 0.0, 0.1, 3.0])
    assert unbounded_mean_interval(values)[1] < 0
    assert unbounded_mean_interval(values, low=0.0)[1] == 0


def test_one_sample_has_a_mean_and_no_interval_and_none_has_neither() -> None:
    mean, low, high = unbounded_mean_interval(np.array([[2.0], [np.nan]]))
    assert mean[0] == 2.0
    assert np.isnan([mean[1], *low, *high]).all()


def test_shares_stay_in_bounds_and_near_the_normal_interval_of_many() -> None:
    rng = np.random.default_rng(1)
    sure, usual = np.append(np.ones(19), 0.9), rng.beta(4, 2, 5000)
    for values in (sure, usual):
        plain = np.array(unbounded_mean_interval(values))
        ends = np.array(share_interval_of_sums(*sums_of(values)[:3]))
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
