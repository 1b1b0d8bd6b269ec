"""Coverage of every interval and size of every test of orbical, in simulated worlds: one table.

    python benchmarks/interval_tables.py --workers 2

simulates what is not yet in the file of results (`--results`), a line for each block of data sets,
so that an interrupted run goes on where it was, and writes docs/intervals.md. `--trials 100` makes
a quick version; `--only compare` restricts it to rows whose name contains the text.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path

import numpy as np
import torch

from orbical import bounds, calibration, selective
from orbical.calibration import MEASURES, list_measures
from orbical.calibration.measure_tables import Outputs, Settings

Array = np.ndarray
Rng = np.random.Generator
Ends = tuple[Array, Array, Array]
"""Lower ends, upper ends and what they should contain, each `[W]`."""

TRIALS, BLOCK, RESAMPLES = 1000, 125, 100
PAGE = Path(__file__).parents[1] / "docs" / "intervals.md"
TEMPLATE = Path(__file__).with_name("interval_page.md")

WORLDS = {
    "calibrated": "the model is calibrated",
    "overconfident": "it errs twice as often as it predicts; errors of a regressor are 1.3 times "
    "as large as predicted",
    "underconfident": "it errs half as often; errors are .75 times as large",
    "sharp": "overconfident, and wrong in 6 % of the samples",
    "rare failures": "overconfident, and wrong in 1.3 %; of a regressor 2 % of the errors are five "
    "times as large as predicted",
    "few samples": "20 overconfident samples (5 of plain means)",
    "many classes": "20 classes, calibrated",
    "t8 noise": "300 errors with the tails of a Student t of 8 degrees of freedom and exact "
    "variances",
    "weights": "overconfident, samples with weights from .2 to 1.8",
}
"""Simulated worlds, by the name of their column; 200 samples unless stated otherwise."""

FEW = {"few samples": 20, "t8 noise": 300}


def size_of(world: str) -> int:
    return FEW.get(world, 200)


@dataclass(frozen=True)
class Row:
    """A row of the table.

    Attributes:
        function: the public function, `package.name`.
        what: the measure or the setting.
        cells: simulates W data sets of a world, by its name.
        is_test: whether the share of rejections is tabulated, not that of intervals that cover.
    """

    function: str
    what: str
    cells: dict[str, Callable[[Rng, int], Array]] = field(repr=False)
    is_test: bool = False

    @property
    def name(self) -> str:
        """The name in the file of results."""
        return f"{self.function} {self.what}".strip()


def covered(draw: Callable[[Rng, int], Ends]) -> Callable[[Rng, int], Array]:
    """Return whether intervals contain the truth, up to rounding."""

    def inside(rng: Rng, worlds: int) -> Array:
        low, high, truth = (np.asarray(part, dtype=float) for part in draw(rng, worlds))
        return (low <= truth + 1e-9) & (truth - 1e-9 <= high)

    return inside


def one_by_one(draw: Callable[[Rng], tuple[float, float, float]]) -> Callable[[Rng, int], Array]:
    """Simulate data sets one at a time."""
    return covered(lambda rng, worlds: np.array([draw(rng) for _ in range(worlds)]).T)


# Classifiers: the probability of the wrong class, and how much more often it is true.

DOUBT: dict[str, Callable[[Rng, tuple[int, ...]], Array]] = {
    "sharp": lambda rng, shape: rng.beta(1, 30, shape),
    "rare failures": lambda rng, shape: rng.beta(1, 150, shape),
    "many classes": lambda rng, shape: rng.uniform(0, 0.95, shape),
}
EXCESS = {"calibrated": 1.0, "underconfident": 0.5, "many classes": 1.0}


def doubts(rng: Rng, world: str, shape: tuple[int, ...]) -> tuple[Array, Array]:
    """Return the stated and the true probability that a prediction is wrong."""
    spread = DOUBT.get(world, lambda rng, shape: rng.uniform(0, 0.4, shape))
    doubt = spread(rng, shape)
    return doubt, EXCESS.get(world, 2.0) * doubt


CLASSIFIERS = [name for name in WORLDS if name != "t8 noise"]


@cache
def pair_truth(measure: str, world: str) -> float:
    doubt, wrong = doubts(np.random.default_rng(99), world, (400_000,))
    if MEASURES[measure].target == 0.0 and EXCESS.get(world) == 1.0:
        return 0.0
    return float(MEASURES[measure](1 - doubt, 1 - wrong))


@cache
def gaps_of_bins(world: str) -> Array:
    """Return the gap of each of 15 bins of confidence."""
    doubt, wrong = doubts(np.random.default_rng(99), world, (2_000_000,))
    bins = np.ceil(15 * (1 - doubt)).astype(int)
    return np.abs(np.bincount(bins, wrong - doubt, 16)) / np.bincount(bins, minlength=16).clip(1)


def pair_ends(measure: str, world: str, rng: Rng, worlds: int) -> Ends:
    doubt, chance = doubts(rng, world, (worlds, size_of(world)))
    right = rng.random(doubt.shape) >= chance
    weights = rng.uniform(0.2, 1.8, doubt.shape) if world == "weights" else None
    found = calibration.interval(measure, 1 - doubt, right, weights=weights, resamples=RESAMPLES)
    truth = np.full(worlds, pair_truth(measure, world))
    if measure == "ece_max":  # of the bins that hold samples
        truth = gaps_of_bins(world)[np.ceil(15 * (1 - doubt)).astype(int)].max(1)
    return found.low.numpy(), found.high.numpy(), truth


def probabilities(rng: Rng, world: str, shape: tuple[int, ...]) -> tuple[Array, Array]:
    """Return stated probabilities `[..., C]` and those by which labels are drawn."""
    if world == "many classes":
        stated = rng.dirichlet(np.full(20, 0.2), shape)
        return stated, stated
    doubt, wrong = doubts(rng, world, shape)
    return np.stack([1 - doubt, doubt], -1), np.stack([1 - wrong, wrong], -1)


@cache
def outputs_truth(measure: str, world: str) -> float:
    entry = MEASURES[measure]
    stated, true = probabilities(np.random.default_rng(99), world, (100_000,))
    if measure in ("nll", "brier"):
        terms = -np.log(stated.clip(1e-300)) if measure == "nll" else 1 - 2 * stated
        extra = 0.0 if measure == "nll" else np.square(stated).sum(-1).mean()
        return float((true * terms).sum(-1).mean() + extra)
    if entry.target == 0.0 and EXCESS.get(world) == 1.0:
        return 0.0
    if measure.startswith("classwise_"):
        base = MEASURES[measure.removeprefix("classwise_")]
        return float(np.mean([float(base(*pair)) for pair in zip(stated.T, true.T, strict=True)]))
    drift = true - stated
    if measure == "brier_calibration":
        return float(np.square(drift).sum(-1).mean())
    return float((1 - np.square(true).sum(-1)).mean())  # what remains after recalibration


def outputs_ends(measure: str, world: str, rng: Rng, worlds: int) -> Ends:
    entry, shape = MEASURES[measure], (worlds, size_of(world))
    stated, true = probabilities(rng, world, shape)
    labels = (rng.random(shape)[..., None] > true.cumsum(-1)).sum(-1).clip(max=true.shape[-1] - 1)
    weights = rng.uniform(0.2, 1.8, shape[1]) if world == "weights" else None
    settings = Settings(resamples=5 * RESAMPLES)  # a fifth of it for each class
    assert entry.table_interval is not None
    sets = [(stated, labels)] if measure in ("nll", "brier") else zip(stated, labels, strict=True)
    ends = []
    for probs, truth in sets:
        given = Outputs(torch.from_numpy(probs), None, torch.from_numpy(truth), weights)
        found = entry.table_interval(given, settings)
        ends.append(torch.stack([found.low, found.high]).reshape(2, -1))
    low, high = torch.cat(ends, 1).numpy()
    return low, high, np.full(worlds, outputs_truth(measure, world))


# Regressors.

SCALE = {"overconfident": 1.3, "underconfident": 0.75, "few samples": 1.3, "weights": 1.3}
REGRESSORS = [name for name in WORLDS if name not in ("sharp", "many classes")]
OF_MOMENTS = ("ence", "uce", "regression_esd", "regression_esd_normalized", "gence_sq_fiber")
"""Measures of squared errors and variances: 0 for exact variances, whatever the tails."""


def gaussians(rng: Rng, world: str, shape: tuple[int, ...]) -> tuple[Array, Array, Array]:
    """Return means, variances and targets."""
    variance = rng.uniform(0.5, 2, shape)
    unit = rng.standard_normal(shape) * SCALE.get(world, 1.0)
    if world == "t8 noise":
        unit = rng.standard_t(8, shape) * 0.75**0.5
    if world == "rare failures":
        unit = np.where(rng.random(shape) < 0.02, 5 * unit, unit)
    return np.zeros(shape), variance, np.sqrt(variance) * unit


@cache
def regression_truth(measure: str, world: str) -> float:
    entry = MEASURES[measure]
    exact = world == "calibrated" and entry.target == 0.0
    if exact or (world == "t8 noise" and measure in OF_MOMENTS):
        return 0.0
    if measure == "gence_sq" and world == "t8 noise":
        return 3.5  # kurtosis - 1; fourth powers of a sample converge too slowly
    return float(entry(*gaussians(np.random.default_rng(99), world, (2_000_000,))))


def regression_ends(measure: str, world: str, rng: Rng, worlds: int) -> Ends:
    shape = (worlds, size_of(world))
    given = [torch.from_numpy(part)[..., None] for part in gaussians(rng, world, shape)]
    weights = rng.uniform(0.2, 1.8, shape[1]) if world == "weights" else None
    if measure == "squared_error":
        table = MEASURES[measure].table_interval
        mass = None if weights is None else torch.from_numpy(weights)
        found = table(calibration.measure_tables.Predictions(*given, None, mass), Settings())
    else:
        found = calibration.regression_interval(
            measure, *given, weights=weights, resamples=RESAMPLES
        )
    return found.low.numpy(), found.high.numpy(), np.full(worlds, regression_truth(measure, world))


def bleed_ends(world: str, rng: Rng, worlds: int) -> Ends:
    noise = torch.from_numpy(rng.gamma(2.0, 0.5, (worlds, size_of(world))))[..., None]
    given = calibration.measure_tables.Predictions(noise, noise, noise, noise)
    found = MEASURES["aleatoric_bleed"].table_interval(given, Settings())
    return found.low.numpy(), found.high.numpy(), np.full(worlds, 1.5)


# Two models on the same samples.

Pair = tuple[Array, Array]
World = Callable[[Rng, int], tuple[Pair, Pair]]


def drawn(rng: Rng, accuracy: Array, *gaps: float) -> list[Pair]:
    """Return one pair for each gap between confidence and accuracy; labels are shared."""
    correct = rng.random(len(accuracy)) < accuracy
    return [(np.clip(accuracy + gap, 0, 1), correct) for gap in gaps]


def with_gaps(low: float, high: float, first: float, second: float) -> World:
    """Return a world of two models whose confidences differ from a uniform accuracy by gaps."""

    def world(rng: Rng, size: int) -> tuple[Pair, Pair]:
        a, b = drawn(rng, rng.uniform(low, high, size), first, second)
        return a, b

    return world


def blurred(rng: Rng, size: int) -> tuple[Pair, Pair]:
    (confidence, correct), *_ = drawn(rng, rng.uniform(0.5, 1, size), 0.0)
    noise = rng.normal(0, 0.02, size)
    return (confidence, correct), (np.clip(confidence + noise, 0.5, 1), correct)


def blunt(rng: Rng, size: int) -> tuple[Pair, Pair]:
    (confidence, correct), *_ = drawn(rng, rng.uniform(0.5, 1, size), 0.0)
    return (confidence, correct), (np.full(size, 0.75), correct)


def apart(rng: Rng, size: int) -> tuple[Pair, Pair]:
    sharp, spread = 1 - rng.beta(1, 30, size), rng.uniform(0.5, 1, size)
    return drawn(rng, sharp, 0.0)[0], drawn(rng, spread, 0.0)[0]


def shuffled(rng: Rng, size: int) -> tuple[Pair, Pair]:
    """Two models with the same error of the same sign, each at other samples."""
    accuracy = rng.uniform(0.5, 0.9, size)
    a, _ = drawn(rng, accuracy, 0.08, 0.0)
    b, _ = drawn(rng, rng.permutation(accuracy), 0.08, 0.0)
    return a, b


def rarely_wrong(rng: Rng, size: int) -> tuple[Pair, Pair]:
    """Two models that state half and one and a half of the probability of an error."""
    doubt = rng.beta(1, 150, size)
    correct = rng.random(size) >= doubt
    return (1 - 0.5 * doubt, correct), (1 - 1.5 * doubt, correct)


NULLS: dict[str, World] = {
    "one adds a little noise to the confidence of the other": blurred,
    "one is constant, the other sharp": blunt,
    "different labels, one much sharper": apart,
}
GAPS: dict[str, World] = {
    "accuracy .84 to .92": with_gaps(0.84, 0.92, 0.08, 0.0),
    "accuracy .8 to .92": with_gaps(0.8, 0.92, 0.08, 0.0),
    "accuracy .5 to .92": with_gaps(0.5, 0.92, 0.08, 0.0),
}
TWO_MODELS: dict[str, World] = {
    "calibrated": blurred,
    "overconfident": shuffled,
    "underconfident": with_gaps(0.84, 0.96, 0.04, -0.04),
    "sharp": apart,
    "rare failures": rarely_wrong,
    "few samples": with_gaps(0.5, 0.95, 0.05, -0.05),
    "many classes": lambda rng, size: tuple(drawn(rng, rng.uniform(0.1, 0.9, size), 0.05, -0.05)),
    "weights": with_gaps(0.84, 0.96, 0.04, -0.04),
}
"""Two models with equal errors; where nothing else is said, of opposite sign."""


def compare_rejects(measure: str, world: str, rng: Rng, worlds: int) -> Array:
    size = size_of(world)
    options = {"weights": rng.uniform(0.2, 1.8, size)} if world == "weights" else {}
    found = (
        calibration.compare(
            measure, *TWO_MODELS[world](rng, size), resamples=RESAMPLES, seed=seed, **options
        )
        for seed in range(worlds)
    )
    return np.array([float(one.p_value) < 0.05 for one in found])


def rejection_rate(
    measure: str, world: World, size: int, trials: int, resamples: int = RESAMPLES
) -> float:
    """Return the share of data sets in which two models differ at the 5 % level."""
    found = (
        calibration.compare(
            measure, *world(np.random.default_rng(seed), size), resamples=resamples, seed=seed
        )
        for seed in range(trials)
    )
    return float(np.mean([float(one.p_value) < 0.05 for one in found]))


def most_power(low: float, high: float, gap: float = 0.08, size: int = 500) -> float:
    """Return the power of the likelihood ratio against equal and opposite errors of half the gap.

    It is a test of 2.5 % for that world, and the most powerful one.
    """
    rng = np.random.default_rng(0)
    z = rng.uniform(low, high, (10_000, size))

    def ratio(accuracy: Array) -> Array:
        correct = rng.random(z.shape) < accuracy
        shares = np.where(correct, z / (z + gap / 2), (1 - z) / (1 - z - gap / 2))
        return np.log(shares).sum(1)

    limit = np.quantile(ratio(z + gap / 2), 0.975)
    return float((ratio(z) > limit).mean())


@cache
def opposite_factor(measure: str, factor: float = 1.3) -> float:
    """Return the factor < 1 of all variances that is as large an error as one > 1."""
    mean, variance, target = gaussians(np.random.default_rng(99), "calibrated", (200_000,))

    def error(times: float) -> float:
        return float(MEASURES[measure](mean, variance * times, target))

    low, high, aim = 0.3, 1.0, error(factor)
    for _ in range(20):
        middle = (low + high) / 2
        low, high = (middle, high) if error(middle) > aim else (low, middle)
    return (low + high) / 2


def regressors_reject(measure: str, world: str, rng: Rng, worlds: int) -> Array:
    """Two regressors: equal up to a little noise, or errors of opposite sign."""
    size, rejected = size_of(world), []
    alike = world in ("calibrated", "t8 noise")
    for seed in range(worlds):
        mean, variance, target = gaussians(rng, world if alike else "calibrated", (size,))
        noise = rng.uniform(0.98, 1.02, size)
        factors = (noise, 1 / noise) if alike else (1.3, opposite_factor(measure))
        given = [(mean, variance * times) for times in factors]
        options = {"weights": rng.uniform(0.2, 1.8, size)} if world == "weights" else {}
        found = calibration.regression_compare(
            measure, *given, target, resamples=RESAMPLES, seed=seed, **options
        )
        rejected.append(float(found.p_value) < 0.05)
    return np.array(rejected)


# Means.

TERMS: dict[str, tuple[Callable[[Rng, tuple[int, ...]], Array], float]] = {
    "calibrated": (lambda rng, shape: rng.normal(0.5, 0.1, shape), 0.5),
    "overconfident": (lambda rng, shape: rng.beta(4, 2, shape), 2 / 3),
    "underconfident": (lambda rng, shape: rng.beta(2, 4, shape), 1 / 3),
    "sharp": (lambda rng, shape: (rng.random(shape) < 0.94).astype(float), 0.94),
    "rare failures": (lambda rng, shape: (rng.random(shape) < 0.987).astype(float), 0.987),
    "few samples": (lambda rng, shape: rng.beta(4, 2, shape), 2 / 3),
    "t8 noise": (lambda rng, shape: rng.standard_t(8, shape), 0.0),
    "weights": (lambda rng, shape: rng.beta(4, 2, shape), 2 / 3),
}
"""Terms of a mean, and the mean; between 0 and 1 but for the first and t8."""

UNIT = [name for name in TERMS if name not in ("calibrated", "t8 noise", "weights")]
SHARES = ("sharp", "rare failures")


def terms_of(world: str, rng: Rng, worlds: int) -> tuple[Array, Array]:
    draw, truth = TERMS[world]
    size = 5 if world == "few samples" else size_of(world)
    return draw(rng, (worlds, size)), np.full(worlds, truth)


def mean_ends(world: str, rng: Rng, worlds: int) -> Ends:
    """The interval of NLL and Brier, whose calibrated model is the true one here."""
    values, truth = terms_of(world, rng, worlds)
    spread = TERMS[world][0](np.random.default_rng(0), (400_000,)) - truth[0]
    moments = {2: np.square(spread).mean(), 3: (spread**3).mean()}
    weights = rng.uniform(0.2, 1.8, values.shape[1]) if world == "weights" else None
    found = calibration.mean_interval(
        values,
        np.full_like(values, truth[0]),
        np.full_like(values, moments[2]),
        calibrated_third=np.full_like(values, moments[3]),
        weights=weights,
    )
    return found.low.numpy(), found.high.numpy(), truth


def sums_ends(function: Callable[..., Ends], world: str, rng: Rng, worlds: int) -> Ends:
    values, truth = terms_of(world, rng, worlds)
    count = np.full(worlds, values.shape[1])
    _, low, high = function(count, values.sum(1), np.square(values).sum(1))
    return low, high, truth


def bounded_ends(world: str, rng: Rng, worlds: int) -> Ends:
    values, truth = terms_of(world, rng, worlds)
    _, low, high = calibration.bounded_mean_interval(values)
    return low, high, truth


def share_ends(world: str, rng: Rng, worlds: int) -> Ends:
    values, truth = terms_of(world, rng, worlds)
    found = calibration.share_interval(values, np.full_like(values, truth[0]))
    return found.low.numpy(), found.high.numpy(), truth


def wilson_ends(world: str, rng: Rng, worlds: int) -> Ends:
    values, truth = terms_of(world, rng, worlds)
    low, high = calibration.wilson_interval(values.mean(1), np.full(worlds, values.shape[1]))
    return low.numpy(), high.numpy(), truth


def bootstrap_ends(world: str, rng: Rng) -> tuple[float, float, float]:
    values, truth = terms_of(world, rng, 1)
    _, low, high = calibration.bootstrap_interval(values[0], resamples=200)
    return low, high, float(truth[0])


def means_reject(world: str, rng: Rng, worlds: int) -> Array:
    (a, _), (b, _) = terms_of(world, rng, worlds), terms_of(world, rng, worlds)
    found = (calibration.compare_means(*pair) for pair in zip(a, b, strict=True))
    return np.array([float(one.p_value) < 0.05 for one in found])


def any_rejects(world: str, rng: Rng, worlds: int) -> Array:
    """Whether any of five comparisons without a difference is found, after Holm's correction."""
    each = []
    for _ in range(worlds):
        (a, _), (b, _) = terms_of(world, rng, 5), terms_of(world, rng, 5)
        p = [calibration.compare_means(*pair).p_value for pair in zip(a, b, strict=True)]
        each.append((calibration.holm(np.array(p)) < 0.05).any())
    return np.array(each)


# What has an interval of its own.


def pooled_ends(world: str, rng: Rng) -> tuple[float, float, float]:
    """Four positions of an orbit, whose outputs have the same label."""
    doubt, chance = doubts(rng, world, (size_of(world),))
    right = rng.random(doubt.shape) >= chance
    columns = [(1 - doubt, right) for _ in range(4)]
    _, error = calibration.pooled_reliability(columns, np.full(4, 0.25))
    return float(error.low), float(error.high), pair_truth("ece", world)


def curve_covers(world: str, rng: Rng, worlds: int) -> Array:
    """The share of places at which the band of a reliability curve contains the accuracy."""
    shares = []
    for _ in range(worlds):
        doubt, chance = doubts(rng, world, (size_of(world),))
        right = rng.random(doubt.shape) >= chance
        curve = calibration.reliability_curve(1 - doubt, right, resamples=20, points=51)
        truth = 1 - EXCESS.get(world, 2.0) * (1 - curve.place)
        known = ~curve.accuracy.isnan()
        inside = (curve.low <= truth + 1e-9) & (truth - 1e-9 <= curve.high)
        shares.append(float(inside[known].double().mean()) if bool(known.any()) else np.nan)
    return np.array(shares)[~np.isnan(shares)]


@cache
def aurc_truth(world: str) -> float:
    doubt, chance = doubts(np.random.default_rng(99), world, (1_000_000,))
    order = np.argsort(doubt)
    return float((chance[order].cumsum() / np.arange(1, len(order) + 1)).mean())


def aurc_ends(world: str, rng: Rng) -> tuple[float, float, float]:
    doubt, chance = doubts(rng, world, (size_of(world),))
    right = rng.random(doubt.shape) >= chance
    found = selective.risk_coverage(1 - doubt, right)
    return found.low, found.high, aurc_truth(world)


def oracle_ends(world: str, rng: Rng, worlds: int) -> Ends:
    doubt, chance = doubts(rng, world, (worlds, size_of(world)))
    error, reach = np.abs(chance - doubt).mean(1), calibration.oracle_bound(size_of(world))
    return error - reach, error + reach, np.full(worlds, pair_truth("ece", world))


def ceiling_ends(world: str, rng: Rng) -> tuple[float, float, float]:
    """Forty orbits; the label of an orbit is right in the given share of its samples."""
    share = {"sharp": 0.94, "rare failures": 0.987}.get(world, 0.8)
    size = size_of(world)
    orbit = rng.integers(0, 40, size)
    label = orbit % 2 ^ (rng.random(size) >= share)
    table = bounds.OrbitTable.from_labels(orbit, label, labels=2)
    return (*bounds.certified_ceiling(table), share)


def neighbors_ends(world: str, rng: Rng) -> tuple[float, float, float]:
    """Labels of points in the plane that are right in the given share, without a symmetry."""
    share, size = {"sharp": 0.94, "rare failures": 0.987}.get(world, 0.8), size_of(world)
    x = rng.normal(size=(size, 2))
    label = (x[:, 0] > 0).astype(int) ^ (rng.random(size) >= share)
    found = bounds.neighbor_ceiling(x, label, "trivial")
    return found.low, found.high, share


def floor_ends(world: str, rng: Rng) -> tuple[float, float, float]:
    """Values that are noise of variance .25 around a smooth function of points in the plane."""
    x = rng.normal(size=(size_of(world), 2))
    value = 0.05 * x[:, :1] + rng.normal(0, 0.5, (len(x), 1))
    found = bounds.neighbor_floor(x, value, "trivial")
    return found.low, found.high, 0.25


def per_world(
    draw: Callable[..., Ends], worlds: list[str], *given: str, single: bool = False
) -> dict[str, Callable[[Rng, int], Array]]:
    """Return the cells of intervals in some worlds."""
    wrapped = one_by_one if single else covered
    return {world: wrapped(partial(draw, *given, world)) for world in worlds}


def tests_in(
    draw: Callable[..., Array], worlds: list[str], *given: str
) -> dict[str, Callable[[Rng, int], Array]]:
    return {world: partial(draw, *given, world) for world in worlds}


@cache
def rows() -> tuple[Row, ...]:
    """Return all rows: one for each measure of `interval` and its relatives, and for the others."""
    pairs, outputs, regression = (
        [one.name for one in list_measures(kind) if one.interval != "none"]
        for kind in ("pair", "outputs", "regression")
    )
    listed = {
        kind: [one.name for one in list_measures(kind, listed="comparison") if one.terms is None]
        for kind in ("pair", "regression")
    }
    takes_none = ("brier_calibration", "brier_refinement")
    of = "calibration."
    found = [Row(of + "interval", name, per_world(pair_ends, CLASSIFIERS, name)) for name in pairs]
    for name in outputs:
        worlds = [one for one in CLASSIFIERS if one != "weights" or name not in takes_none]
        function = "brier_part_intervals" if name in takes_none else "classification_table"
        found.append(Row(of + function, name, per_world(outputs_ends, worlds, name)))
    found += [
        Row(of + "regression_interval", name, per_world(regression_ends, REGRESSORS, name))
        for name in regression
    ]
    bleed = per_world(bleed_ends, ["calibrated", "few samples"])
    found.append(Row(of + "regression_table", "aleatoric_bleed", bleed))
    found += [
        Row(of + "compare", name, tests_in(compare_rejects, list(TWO_MODELS), name), True)
        for name in listed["pair"]
    ]
    worlds = ["calibrated", "underconfident", "few samples", "t8 noise", "weights"]
    found += [
        Row(of + "regression_compare", name, tests_in(regressors_reject, worlds, name), True)
        for name in listed["regression"]
    ]
    several = list(TERMS)[:-1]
    sums = {"interval_of_sums": several, "share_interval_of_sums": UNIT}
    found += [
        Row(of + "compare_means", "", tests_in(means_reject, several), True),
        Row(of + "holm", "of 5 comparisons", tests_in(any_rejects, several), True),
        Row(of + "mean_interval", "", per_world(mean_ends, list(TERMS))),
        *(
            Row(
                of + name,
                "",
                {
                    world: covered(partial(sums_ends, getattr(calibration, name), world))
                    for world in worlds
                },
            )
            for name, worlds in sums.items()
        ),
        Row(of + "bounded_mean_interval", "", per_world(bounded_ends, UNIT)),
        Row(of + "share_interval", "", per_world(share_ends, list(SHARES))),
        Row(of + "wilson_interval", "", per_world(wilson_ends, list(SHARES))),
        Row(of + "bootstrap_interval", "mean", per_world(bootstrap_ends, several, single=True)),
        Row(of + "pooled_reliability", "", per_world(pooled_ends, CLASSIFIERS[:-1], single=True)),
        Row(of + "reliability_curve", "band", tests_in(curve_covers, CLASSIFIERS[:-1])),
        Row(of + "oracle_bound", "", per_world(oracle_ends, CLASSIFIERS[:-1])),
        Row("selective.risk_coverage", "", per_world(aurc_ends, CLASSIFIERS[:-1], single=True)),
        Row("bounds.certified_ceiling", "", per_world(ceiling_ends, _ORBITS, single=True)),
        Row("bounds.neighbor_ceiling", "2-D", per_world(neighbors_ends, _ORBITS, single=True)),
        Row("bounds.neighbor_floor", "2-D", per_world(floor_ends, ["calibrated"], single=True)),
    ]
    return tuple(found)


_ORBITS = ["calibrated", "sharp", "rare failures", "few samples"]

SHOWN_BY = {
    "calibration.along_orbit": "calibration.interval",
    "calibration.at_places": "calibration.interval",
    "calibration.classification_table": "calibration.interval",
    "calibration.compare_outputs": "calibration.compare",
    "calibration.error_curve": "calibration.interval",
    "calibration.judge": "calibration.interval",
    "calibration.outputs_table": "calibration.interval",
    "calibration.pair_table": "calibration.interval",
    "calibration.pooled_over_orbit": "calibration.pooled_reliability",
    "calibration.regression_table": "calibration.regression_interval",
    "calibration.samples_to_decide": "calibration.bounded_mean_interval",
    "calibration.samples_to_decide_by_width": "calibration.bounded_mean_interval",
    "calibration.scan_table": "calibration.interval",
    "calibration.verdict": "calibration.interval",
    "bounds.classification": "bounds.certified_ceiling",
    "bounds.compare_groups": "bounds.certified_ceiling",
    "nero.aggregate": "calibration.interval_of_sums",
    "nero.averaging": "calibration.compare_means",
    "bounds.price_from_pairs": "bounds.certified_ceiling",
    "nero.order_averages": "calibration.bounded_mean_interval",
    "nero.position_bias": "calibration.bounded_mean_interval",
    "nero.worst_orders": "calibration.bounded_mean_interval",
    "selective.along_orbit": "selective.risk_coverage",
    "selective.rejection": "selective.risk_coverage",
    "nero.consistency": "calibration.bounded_mean_interval",
    "conformal.along_orbit": "calibration.wilson_interval",
    "conformal.coverage_table": "calibration.wilson_interval",
    "checks.check": "calibration.bounded_mean_interval",
    "adversarial.worst_case": "calibration.interval_of_sums",
}
"""Functions whose intervals or p-values are those of another, which has the row."""


# Running, and the page.

Cell = tuple[int, str, int]
"""The place of a row, a world, and the number of a block of data sets."""


def simulate(cell: Cell) -> dict[str, object]:
    """Simulate one block of a cell; the same seed always draws the same data sets."""
    torch.set_num_threads(1)
    place, world, block = cell
    row, started = rows()[place], time.perf_counter()
    seed = np.random.SeedSequence([block, *f"{row.name} {world}".encode()])
    shares = row.cells[world](np.random.default_rng(seed), BLOCK)
    return {
        "row": row.name,
        "world": world,
        "block": block,
        "share": float(np.mean(shares)),
        "seconds": round(time.perf_counter() - started, 2),
    }


def read_results(path: Path) -> dict[tuple[str, str, int], float]:
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    each = (json.loads(line) for line in lines)
    return {(one["row"], one["world"], one["block"]): one["share"] for one in each}


def run(path: Path, trials: int, workers: int, only: str) -> None:
    """Simulate what is missing among the results."""
    known = read_results(path)
    blocks = range(-(-trials // BLOCK))
    missing = [
        (place, world, block)
        for block in blocks
        for place, row in enumerate(rows())
        for world in row.cells
        if only in row.name and (row.name, world, block) not in known
    ]
    with multiprocessing.get_context("fork").Pool(workers) as pool, path.open("a") as out:
        for found in pool.imap_unordered(simulate, missing, chunksize=1):
            out.write(json.dumps(found) + "\n")
            out.flush()


def table(results: dict[tuple[str, str, int], float]) -> Iterator[str]:
    """Yield the lines of the table; a cell outside of its range is bold."""
    yield f"| function | {' | '.join(WORLDS)} |"
    yield "|---|" + "---|" * len(WORLDS)
    for row in rows():
        cells = []
        for world in WORLDS:
            shares = [share for key, share in results.items() if key[:2] == (row.name, world)]
            if not shares:
                cells.append("" if world not in row.cells else "?")
                continue
            share = float(np.mean(shares))
            good = share <= 0.07 if row.is_test else share >= 0.93
            cells.append(f"{share:.1%}" if good else f"**{share:.1%}**")
        what = f" `{row.what}`" if row.what in MEASURES else f" {row.what}" if row.what else ""
        kind = ", size" if row.is_test else ""
        yield f"| `{row.function}`{what}{kind} | {' | '.join(cells)} |"


def powers(trials: int) -> Iterator[str]:
    """Yield the rows of the table of power."""
    for name, world in GAPS.items():
        shares = [f"{rejection_rate(one, world, 500, trials):.1%}" for one in ("ece", "ks")]
        yield f"| {name} | {' | '.join(shares)} |"


def fewer_draws(results: dict[tuple[str, str, int], float], trials: int) -> str:
    """Return a sentence about the functions with fewer data sets than asked for, or none."""
    counts: dict[str, dict[str, int]] = {}
    for name, world, _ in results:
        of_row = counts.setdefault(name.split()[0], {})
        of_row[f"{name} {world}"] = of_row.get(f"{name} {world}", 0) + BLOCK
    least = {name: min(each.values()) for name, each in counts.items()}
    few = [f"`{name}` ({count})" for name, count in sorted(least.items()) if count < trials]
    return f" Functions with fewer data sets in some cell: {', '.join(few)}." if few else ""


def page(results: dict[tuple[str, str, int], float], trials: int) -> str:
    text = TEMPLATE.read_text(encoding="utf-8")
    worlds = "\n".join(f"- *{name}*: {meaning}." for name, meaning in WORLDS.items())
    return text.format(
        trials=f"{trials:,}",
        fewer=fewer_draws(results, trials),
        resamples=RESAMPLES,
        worlds=worlds,
        table="\n".join(table(results)),
        powers="\n".join(powers(min(trials, 300))),
        sharp=most_power(0.84, 0.92),
        spread=most_power(0.5, 0.92),
        shown="\n".join(f"| `{name}` | `{other}` |" for name, other in sorted(SHOWN_BY.items())),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--trials", type=int, default=TRIALS)
    parser.add_argument("--only", default="", help="rows whose name contains this text")
    parser.add_argument("--results", type=Path, default=Path("interval_tables.jsonl"))
    parser.add_argument("--no-page", action="store_true", help="only simulate")
    given = parser.parse_args()
    run(given.results, given.trials, given.workers, given.only)
    if not given.no_page:
        PAGE.write_text(page(read_results(given.results), given.trials), encoding="utf-8")


if __name__ == "__main__":
    main()
