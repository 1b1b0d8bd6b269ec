"""Intervals of means of bounded terms that hold at every number of samples, and how many decide.

A mean of values between 0 and 1 can hide a failure that is too rare for the sample: the variance
that is seen says nothing of it. The intervals here are true at any number of samples, one included,
because they come from a test of each possible mean m. For independent terms with mean mu, each
fixed bet l with `1 + l (x - m) >= 0` on [0, 1] has the wealth

    W(m) = prod_i (1 + l (x_i - m)),   E W(mu) <= 1,   P(W(mu) >= 1 / a) <= a  (Markov)

also where the terms have different means with the average mu, by the inequality of the arithmetic
and the geometric mean. An average over bets has the same property, and does not depend on the order
of the samples. `docs/theory.md` has the proof.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from numbers import Real

import numpy as np

from ..._numpy import ArrayLike, as_numpy
from ...errors import InputError, check_type, real_number
from .levels import checked_level, exact_interval_ends, normal_quantile

__all__ = [
    "bounded_interval_of_sums", "bounded_mean_interval", "samples_to_decide",
    "samples_to_decide_by_width",
]  # fmt: skip

Array = np.ndarray

_BETS = np.array([1.0, 2.5, 6.0, 15.0])
_SHARES = np.array([0.4, 0.3, 0.2, 0.1])
"""Bets, in units of the best one for terms that are 0 or 1, and how the stake is divided: terms
that vary less deserve a larger bet."""
_ROUNDS, _FACTORS, _BLOCK, _MOST = 20, 16, 1 << 20, 1 << 40
_LARGEST = 0.75
"""The largest bet on sums, as a share of what loses all on a term of 0."""
MANY = 4096
"""From more samples, sums of values and of squares decide the interval as well as the values do."""


def bounded_mean_interval(
    values: ArrayLike, level: float = 0.95, *, low: float = 0.0, high: float = 1.0
) -> tuple[Array, Array, Array]:
    """Return a mean of bounded values with an interval that holds at every number of samples.

    For values that are true or false it is the exact interval of Clopper and Pearson. For others
    it is the set of means m against which no bet wins more than `2 / (1 - level)`: both

        sum_j s_j prod_i (1 + l_j (x_i - m))   and   sum_j s_j prod_i (1 - l_j (x_i - m))

    stay below that, with few fixed bets l_j and shares s_j. Samples must be independent. Rare
    failures that a sample does not show are inside the interval: of n values that are all `high`,
    the lower end is that of n successes, `1 - (2 / (1 - level))^(-1/n)` below the upper one.
    Of more than 4,096 samples the products are bounded from below by sums of x_i and of their
    squares, so that one pass over any number of samples suffices (`bounded_interval_of_sums`).

    Args:
        values: `[..., N]`, true or false, or numbers; NaN is a missing one.
        level: the probability with which both ends hold.
        low: what no value can be below.
        high: what no value can be above.

    Returns:
        Mean, lower and upper end, `[...]` each, NaN where there is no value.

    Raises:
        InputError: if a value lies outside of `[low, high]`.

    See Also:
        mean_interval: Of a mean without bounds, for many samples.
        samples_to_decide: How many samples would decide on a limit.

    References:
        Waudby-Smith and Ramdas, Estimating means of bounded random variables by betting, JRSS B
        2024. Clopper and Pearson, The use of confidence or fiducial limits, Biometrika 1934.

    Example:
        >>> [round(float(end), 3) for end in bounded_mean_interval([1.0] * 30)]
        [1.0, 0.884, 1.0]
        >>> [round(float(end), 3) for end in bounded_mean_interval([True] * 28 + [False] * 2)]
        [0.933, 0.779, 0.992]
    """
    tail = (1 - checked_level(level)) / 2
    terms, exact = _bounded_terms(values, low, high)
    rows = terms.reshape(-1, terms.shape[-1])
    mean, least, most = np.full((3, len(rows)), np.nan)
    step = max(1, _BLOCK // max(1, rows.shape[1]))
    lower = _exact_ends if exact else _bets_on_terms
    for start in range(0, len(rows), step):
        some = slice(start, start + step)
        size = (~np.isnan(rows[some])).sum(1)
        total = np.nansum(rows[some], 1)
        mean[some] = total / np.where(size > 0, size, np.nan)
        least[some] = lower(rows[some], size, mean[some], tail)
        most[some] = 1 - lower(1 - rows[some], size, 1 - mean[some], tail)
    shape = terms.shape[:-1]
    mean, least, most = (part.reshape(shape) for part in (mean, least, most))
    ends = np.minimum(least, mean), np.maximum(most, mean)
    return tuple(low + (high - low) * part for part in (mean, *ends))  # type: ignore[return-value]


def _bounded_terms(values: ArrayLike, low: float, high: float) -> tuple[Array, bool]:
    """Return values `[..., N]` on the scale from 0 to 1, and whether they are true or false."""
    given = as_numpy("values", values)
    if given.ndim == 0:
        raise InputError("values", "shape [..., N]", "a number")
    if not real_number("high", high) > real_number("low", low):
        raise InputError("high", f"a number above low = {low}", high)
    terms = (given.astype(np.float64) - low) / (high - low)
    if not (np.isnan(terms) | (abs(terms - 0.5) <= 0.5 + 1e-6)).all():
        raise InputError("values", f"numbers from {low:g} to {high:g}", "others")
    if not terms.shape[-1]:
        terms = np.full((*terms.shape[:-1], 1), np.nan)
    return terms.clip(0, 1), given.dtype.kind == "b"


def _exact_ends(terms: Array, size: Array, mean: Array, tail: float) -> Array:
    """Return the lower ends of Clopper and Pearson, `[K]`."""
    return np.asarray(exact_interval_ends(np.rint(size * mean), size, tail)[0])


def _bets_on_terms(terms: Array, size: Array, mean: Array, tail: float) -> Array:
    """Return the lower ends `[K]` of terms `[K, N]`, of many of them from their sums."""
    if terms.shape[1] <= MANY:
        return _betting_ends(terms, size, mean, tail)
    found = _ends_of_sums(size, size * mean, np.nansum(np.square(terms), 1), tail)
    few = size <= MANY
    if few.any():
        found[few] = _betting_ends(terms[few], size[few], mean[few], tail)
    return found


def bounded_interval_of_sums(
    count: ArrayLike,
    total: ArrayLike,
    squares: ArrayLike,
    level: float = 0.95,
    *,
    low: float = 0.0,
    high: float = 1.0,
) -> tuple[Array, Array, Array]:
    """Return mean, low and high end of a mean of bounded values, from sums made block by block.

    It holds at every number of samples, and is that of `bounded_mean_interval` for more than 4,096.
    Of fewer it is a wider one, because sums tell less than values.

    Args:
        count: `[...]`, the number of samples n.
        total: `[...]`, the sum of their values.
        squares: `[...]`, the sum of the squares of their values.
        level: Nominal coverage.
        low: What no value can be below.
        high: What no value can be above.

    Returns:
        Three arrays `[...]`, NaN where there is no sample.

    Example:
        >>> sums = map(np.array, (100, 50.0, 30.0))
        >>> [round(float(end), 3) for end in bounded_interval_of_sums(*sums)]
        [0.5, 0.405, 0.595]
    """
    tail, width = (1 - checked_level(level)) / 2, high - low
    named = {"count": count, "total": total, "squares": squares}
    size, first, second = (as_numpy(name, part, np.float64) for name, part in named.items())
    second = (second - 2 * low * first + size * low**2) / width**2
    first = (first - size * low) / width
    # Sums of 1 - x and of its squares give the upper end.
    least = _ends_of_sums(size, first, second, tail)
    most = 1 - _ends_of_sums(size, size - first, size - 2 * first + second, tail)
    mean = first / np.where(size > 0, size, np.nan)
    return tuple(low + width * part for part in (mean, least, most))  # type: ignore[return-value]


def _ends_of_sums(size: Array, total: Array, squares: Array, tail: float) -> Array:
    """Return the lower ends `[...]` of means of terms in [0, 1] that their sums alone refute.

    For `y = (x - m) / m >= -1` and a bet 0 <= l < 1 (Fan, Grama and Liu 2015)

        log(1 + l y) >= l y - (-log(1 - l) - l) y^2

    so that the sums bound the wealth of the bets from below.
    """
    size, total, squares = np.broadcast_arrays(size, total, squares)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = total / np.where(size > 0, size, np.nan)
        wealth = partial(_log_wealth_of_sums, size, total, squares)
        return _largest_refuted(wealth, mean, mean / 2, tail, 2 * _ROUNDS)


def _largest_refuted(
    log_wealth: Callable[[Array, float], Array], most: Array, guess: Array, tail: float, rounds: int
) -> Array:
    """Return the largest means up to `most` that bets refute, by bisection from a first guess.

    The wealth decreases in the mean, so what is refuted at one is refuted below it.
    """
    below, above, middle = np.where(np.isnan(most), np.nan, 0.0), most, guess
    for _ in range(rounds):
        refuted = log_wealth(middle, tail) >= -np.log(tail)
        below, above = np.where(refuted, middle, below), np.where(refuted, above, middle)
        middle = (below + above) / 2
    return below


def _log_wealth_of_sums(
    size: Array, total: Array, squares: Array, mean: Array, tail: float
) -> Array:
    """Return a lower bound of the log of the wealth `[...]` of bets on more than `mean`."""
    first = total / mean - size
    second = (squares - 2 * mean * total + size * mean**2) / mean**2
    best = np.sqrt(-2 * np.log(tail) * mean / (size * (1 - mean)))
    bets = np.minimum(np.multiply.outer(_BETS, best), _LARGEST)
    logs = bets * first + (np.log1p(-bets) + bets) * second
    shared = np.moveaxis(np.nan_to_num(logs, nan=-np.inf), 0, -1) + np.log(_SHARES)
    return np.asarray(np.logaddexp.reduce(shared, axis=-1))


def _betting_ends(terms: Array, size: Array, mean: Array, tail: float) -> Array:
    """Return the largest means `[K]` that the terms `[K, N]` refute from below.

    The first guess is what the variance suggests.
    """
    spread = np.nansum(np.square(terms - mean[:, None]), 1) / np.maximum(size, 1) ** 2
    middle = mean - 2 * np.sqrt(-2 * np.log(tail) * spread) + 4 * np.log(tail) / np.maximum(size, 1)
    middle = np.where(middle > 0, middle, mean / 2)
    wealth = partial(_log_wealth_of_bounded_mean, terms, np.isnan(terms))
    return _largest_refuted(wealth, mean, middle, tail, _ROUNDS)


def _bets(size: Array, mean: Array, tail: float) -> Array:
    """Return the bets `[J, K]` on a mean above `mean`: below what loses all on a term of 0."""
    best = np.sqrt(-2 * np.log(tail) / (size * mean * (1 - mean)))
    return np.asarray(np.minimum(_BETS[:, None] * best, (1 - 1e-12) / mean))


def _log_wealth_of_bounded_mean(terms: Array, missing: Array, mean: Array, tail: float) -> Array:
    """Return the log of the wealth `[K]` of the bets that terms `[K, N]` have more than `mean`."""
    apart = terms - mean[:, None]
    apart[missing] = 0.0
    parts = np.arange(0, terms.shape[1], _FACTORS)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        # Products of a few factors, so that there are fewer logarithms.
        logs = [
            np.log(np.multiply.reduceat(1 + bet[:, None] * apart, parts, axis=1)).sum(1)
            for bet in _bets((~missing).sum(1), mean, tail)
        ]
        shared = np.nan_to_num(logs, nan=-np.inf) + np.log(_SHARES)[:, None]
        return np.asarray(np.logaddexp.reduce(shared, axis=0))


def samples_to_decide(
    values: ArrayLike,
    limit: float,
    level: float = 0.95,
    *,
    low: float = 0.0,
    high: float = 1.0,
    power: float = 0.8,
) -> int | None:
    """Return how many samples would decide whether a bounded mean keeps a limit.

    That is the number at which the interval of `bounded_mean_interval` would exclude the limit with
    a probability of `power`, if further samples are like these. It is an estimate, from the values
    seen; if all of them are at the bound beyond the limit it is the least number that can decide.

    Args:
        values: `[N]`, true or false, or numbers; NaN is a missing one.
        limit: the limit of the mean.
        level: nominal coverage of the interval.
        low: what no value can be below.
        high: what no value can be above.
        power: the probability with which it is decided.

    Returns:
        The number of samples, or None if no number decides: the mean is at the limit.

    Example:
        >>> samples_to_decide([False] * 20, 0.05)
        72
        >>> samples_to_decide([True, False] * 20, 0.5) is None
        True
    """
    tail, reach = (1 - checked_level(level)) / 2, normal_quantile(2 * checked_level(power) - 1)
    terms, exact = _bounded_terms(values, low, high)
    terms = terms[~np.isnan(terms)]
    bound = (limit - low) / (high - low)
    if not len(terms) or not 0 <= bound <= 1 or abs(terms.mean() - bound) < 1e-12:
        return None
    if terms.mean() < bound:
        terms, bound = 1 - terms, 1 - bound
    if bound == 0:
        return None  # nothing is below it

    def exact_decides(size: int) -> bool:
        mean = terms.mean()
        right = np.floor(size * mean - reach * np.sqrt(size * mean * (1 - mean)))
        share = np.array([max(0.0, right) / size])
        return bool(_exact_ends(terms, np.array([size]), share, tail)[0] > bound)

    def betting_decides(size: int) -> bool:
        with np.errstate(divide="ignore", invalid="ignore"):
            bets = _bets(np.array([size]), np.array([bound]), tail)
            logs = np.log(1 + bets * (terms - bound))
            wealth = size * logs.mean(1) - reach * np.sqrt(size) * logs.std(1)
            shared = np.nan_to_num(wealth, nan=-np.inf) + np.log(_SHARES)
        return bool(np.logaddexp.reduce(shared) >= -np.log(tail))

    return _least_samples_to_decide(exact_decides if exact else betting_decides)


def samples_to_decide_by_width(
    value: float, end: float, limit: float, samples: int, level: float = 0.95, *, power: float = 0.8
) -> int | None:
    """Return how many samples would decide on a limit, from the width of an interval.

    The width of most intervals decreases with the root of the number of samples. With c and z the
    normal quantiles of level and power,

        n = samples ((1 + z / c) (end - value) / (limit - value))^2

    Args:
        value: the value seen.
        end: the end of its interval that lies towards the limit.
        limit: the limit; 0 for the difference of two models.
        samples: the number of samples of the interval.
        level: nominal coverage of the interval.
        power: the probability with which it is decided.

    Returns:
        The number of samples, or None if no number decides, or there is no interval.

    See Also:
        samples_to_decide: Of a bounded mean, where failures may be rare.

    Example:
        >>> samples_to_decide_by_width(0.03, 0.06, 0.05, 100)
        460
    """
    given = {"value": value, "end": end, "limit": limit, "samples": samples}
    for name, number in given.items():  # NaN where there is no interval
        check_type(name, number, Real, "a number")
    reach = normal_quantile(checked_level(level)), normal_quantile(2 * checked_level(power) - 1)
    ratio = (end - value) / (limit - value) if limit != value else np.nan
    needed = samples * ((1 + reach[1] / reach[0]) * ratio) ** 2
    return int(np.ceil(needed)) if needed < _MOST else None


def _least_samples_to_decide(decides: Callable[[int], bool]) -> int | None:
    """Return the least number from which `decides` is true; None if it is beyond all data."""
    most = 1
    while not decides(most):
        most *= 2
        if most > _MOST:
            return None
    least = most // 2
    while most - least > 1:
        middle = (least + most) // 2
        least, most = (least, middle) if decides(middle) else (middle, most)
    return most
