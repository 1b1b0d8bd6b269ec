"""Means of bounded terms: intervals that hold at every number of samples, and what decides."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from scipy.stats import binomtest

from orbical.calibration import (
    bounded_mean_interval,
    compare_means,
    compare_outputs,
    samples_to_decide,
    samples_to_decide_by_width,
)
from orbical.errors import InputError

Array = np.ndarray
Draw = Callable[[np.random.Generator, tuple[int, int]], Array]
DRAWS = 2000
WORLDS: dict[str, tuple[float, Draw]] = {
    "rare failures": (0.98, lambda rng, shape: 1 - (rng.random(shape) < 0.02)),
    "rare, graded": (
        0.98 + 0.02 * 0.25,
        lambda rng, shape: np.where(rng.random(shape) < 0.02, rng.random(shape) * 0.5, 1.0),
    ),
    "very rare": (0.998, lambda rng, shape: 1 - (rng.random(shape) < 0.002)),
    "beta": (0.75, lambda rng, shape: rng.beta(6, 2, shape)),
    "two values": (0.5, lambda rng, shape: rng.integers(0, 2, shape)),
    "narrow": (0.5, lambda rng, shape: rng.beta(200, 200, shape)),
}


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("size", [1, 2, 5, 10, 30, 100])
def test_both_ends_hold_at_every_number_of_samples(world: str, size: int) -> None:
    truth, draw = WORLDS[world]
    terms = draw(np.random.default_rng(size), (DRAWS, size)).astype(float)
    for values in (terms, terms > 0.5) if world in ("rare failures", "two values") else (terms,):
        mean, low, high = bounded_mean_interval(values)
        assert (low > truth).mean() <= 0.025 + 3 * np.sqrt(0.025 / DRAWS)
        assert (high < truth).mean() <= 0.025 + 3 * np.sqrt(0.025 / DRAWS)
        assert ((low <= mean) & (mean <= high)).all()
        assert (high > low).all()


def test_the_guarantee_is_that_of_every_enumerated_sample() -> None:
    """All outcomes of five terms with three values: the probabilities of a miss, added up."""
    values = np.array([0.0, 0.6, 1.0])
    places = np.indices((3,) * 5).reshape(5, -1).T
    _, low, high = bounded_mean_interval(values[places])
    for rare in np.linspace(0, 0.6, 13):
        for middle in np.linspace(0, 1 - rare, 7):
            chance = np.array([rare, middle, 1 - rare - middle])
            truth, mass = chance @ values, chance[places].prod(1)
            assert mass[low > truth + 1e-9].sum() <= 0.025
            assert mass[high < truth - 1e-9].sum() <= 0.025


def test_terms_need_not_have_the_same_mean() -> None:
    rng = np.random.default_rng(0)
    chances = np.linspace(0, 0.4, 40)
    drawn = (rng.random((DRAWS, 40)) < chances).astype(float)
    _, low, high = bounded_mean_interval(drawn)
    assert ((low <= chances.mean()) & (chances.mean() <= high)).mean() >= 0.97


def test_shares_have_the_exact_interval() -> None:
    for right, size in ((0, 1), (1, 1), (3, 30), (30, 30), (97, 100)):
        values = np.arange(size) < right
        expected = binomtest(right, size).proportion_ci(method="exact")
        mean, low, high = bounded_mean_interval(values)
        assert (low, high) == pytest.approx((expected.low, expected.high), abs=1e-12)
        assert mean == right / size


def test_equal_values_leave_the_doubt_that_rare_failures_leave() -> None:
    for size in (5, 30, 200):
        mean, low, high = bounded_mean_interval(np.ones(size))
        # All bets stake everything here, so the bound is that of Clopper and Pearson.
        assert low == pytest.approx(0.025 ** (1 / size), abs=0.005)
        assert mean == high == 1
    _, low, high = bounded_mean_interval([0.058])
    assert low < 0.01 < 0.95 < high


def test_order_missing_values_shifts_and_units_change_nothing() -> None:
    rng = np.random.default_rng(1)
    values = rng.beta(3, 1, 50)
    found = np.array(bounded_mean_interval(values))
    shuffled = np.append(rng.permutation(values), [np.nan] * 7)
    assert np.array(bounded_mean_interval(shuffled)) == pytest.approx(found, abs=1e-5)
    for scale in (1e-12, 1.0, 1e12):
        moved = bounded_mean_interval(scale * (2 * values - 1), low=-scale, high=scale)
        assert np.array(moved) / scale == pytest.approx(2 * found - 1, abs=1e-5)
    mirrored = bounded_mean_interval(1 - values)
    assert mirrored[1:] == pytest.approx((1 - found[2], 1 - found[1]), abs=1e-5)
    several = bounded_mean_interval(np.stack([values, values / 2])[None])
    assert [part.shape for part in several] == [(1, 2)] * 3
    assert several[1][0, 0] == pytest.approx(found[1], abs=1e-5)


def test_width_adapts_to_the_variance() -> None:
    rng = np.random.default_rng(2)
    narrow, wide = rng.beta(200, 200, 1000), rng.integers(0, 2, 1000).astype(float)
    spans = [high - low for _, low, high in map(bounded_mean_interval, (narrow, wide))]
    assert spans[0] < 0.01 < 0.08 < spans[1] < 0.11


def test_no_value_has_no_interval_and_values_outside_are_refused() -> None:
    assert np.isnan(bounded_mean_interval(np.full((2, 3), np.nan))).all()
    with pytest.raises(InputError, match=r"values: expected numbers from 0 to 1"):
        bounded_mean_interval([0.5, 1.1])
    with pytest.raises(InputError, match=r"high: expected a number above low"):
        bounded_mean_interval([0.5], low=1.0)
    with pytest.raises(InputError, match=r"values: expected shape"):
        bounded_mean_interval(0.5)


def test_the_number_that_decides_is_the_least_that_can_where_nothing_fails() -> None:
    for limit in (0.5, 0.1, 0.05, 0.01):
        least = samples_to_decide([False] * 3, limit)
        assert least == np.ceil(np.log(0.025) / np.log(1 - limit))
        assert least is not None
        assert bounded_mean_interval(np.zeros(least, bool))[2] <= limit
        assert bounded_mean_interval(np.zeros(least - 1, bool))[2] > limit
        assert samples_to_decide([0.0] * 3, limit) == pytest.approx(least, rel=0.25)


@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize(("share", "limit"), [(0.02, 0.05), (0.2, 0.1), (0.95, 0.9)])
def test_the_number_that_decides_decides_four_times_in_five(
    exact: bool, share: float, limit: float
) -> None:
    seen = np.arange(1000) < 1000 * share
    needed = samples_to_decide(seen if exact else seen.astype(float), limit)
    assert needed is not None
    rng = np.random.default_rng(3)
    drawn = rng.random((1000, needed)) < share
    _, low, high = bounded_mean_interval(drawn if exact else drawn.astype(float))
    assert 0.72 <= ((low > limit) | (high < limit)).mean() <= 0.9


def test_a_mean_at_its_limit_is_decided_by_no_number() -> None:
    assert samples_to_decide([0.0, 1.0], 0.5) is None
    assert samples_to_decide([0.2, 0.2], 0.0) is None
    assert samples_to_decide([0.2, 0.2], 1.5) is None
    assert samples_to_decide([np.nan], 0.5) is None
    assert samples_to_decide_by_width(0.5, 0.6, 0.5, 10) is None
    assert samples_to_decide_by_width(0.5, np.nan, 0.4, 10) is None


def test_the_width_of_a_normal_mean_decides_four_times_in_five() -> None:
    rng, reach = np.random.default_rng(4), 1.959964
    needed = samples_to_decide_by_width(0.3, 0.3 - reach / np.sqrt(20), 0.0, 20)
    assert needed == pytest.approx(((reach + 0.8416) / 0.3) ** 2, abs=1)
    drawn = rng.normal(0.3, 1, (4000, needed)).mean(1)
    assert (drawn - reach / np.sqrt(needed) > 0).mean() == pytest.approx(0.8, abs=0.03)


def test_a_comparison_says_how_many_samples_would_show_its_difference() -> None:
    rng = np.random.default_rng(5)
    labels = np.arange(200) % 2

    def outputs(right: np.ndarray) -> dict[str, Array]:
        predicted = np.where(right, labels, 1 - labels)
        return {"probs": np.eye(2)[predicted] * 0.6 + 0.2, "labels": labels}

    first, second = np.arange(200) < 164, np.arange(200)[::-1] < 156
    rows = compare_outputs({"a": outputs(first), "b": outputs(second)}, resamples=20)
    row = rows[rows["measure"] == "accuracy"].iloc[0]
    assert row["low"] < 0 < row["high"]
    needed = int(row["needed"])
    each = first.astype(float) - second
    drawn = rng.choice(each, (400, needed))
    shown = [compare_means(one, np.zeros(needed)).low > 0 for one in drawn]
    assert np.mean(shown) == pytest.approx(0.8, abs=0.07)
    apart = compare_outputs({"a": outputs(first), "b": outputs(~first)}, resamples=20)
    assert np.isnan(apart[apart["measure"] == "accuracy"]["needed"].astype(float)).all()
