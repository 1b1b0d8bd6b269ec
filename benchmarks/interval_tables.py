"""Coverage of every interval and size of every test of orbical, in simulated worlds: one table.

    python benchmarks/interval_tables.py --workers 2

simulates what is not yet in the file of results (`--results`), a line for each block of data sets,
so that an interrupted run goes on where it was, and writes docs/intervals.md. `--trials 250` makes
a quick version, `--trials 0` the page of what is in the file; `--only compare` restricts it to rows
whose name contains the text; `--minutes 9` begins no block later. Settings of orbical are chosen
with another `--seed` than that of the page.
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
from typing import Any

import numpy as np
import torch

from orbical import bounds, calibration, selective
from orbical.calibration import MEASURES, list_measures
from orbical.calibration.intervals.cautions import first_interval_caution
from orbical.calibration.measure_tables import MeasureTableSettings, TableOutputs, TablePredictions
from orbical.nero.classification_scores import areas_under_roc

Array = np.ndarray
Rng = np.random.Generator
Found = tuple[float, str]
"""The share that is right in a data set (of tests: whether it rejects), and the caution."""
Draw = Callable[[Rng], Found]

TRIALS, BLOCK, RESAMPLES, SEED = 1000, 125, 200, 20261118
LIMIT = 0.07
"""The largest share of wrong results without a caution."""

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
    "many samples": "500 samples, for tests; errors of opposite sign",
    "many classes": "20 classes, calibrated",
    "t8 noise": "300 errors with the tails of a Student t of 8 degrees of freedom and exact "
    "variances",
    "weights": "overconfident, samples with weights from .2 to 1.8",
}
"""Simulated worlds, by the name of their column; 200 samples unless stated otherwise."""

FEW = {"few samples": 20, "t8 noise": 300, "many samples": 500}


def size_of(world: str) -> int:
    return FEW.get(world, 200)


def weights_of(world: str, rng: Rng, size: int | None = None) -> dict[str, Array]:
    """Return the argument `weights` of a world that has them."""
    return {"weights": rng.uniform(0.2, 1.8, size or size_of(world))} if world == "weights" else {}


@dataclass(frozen=True)
class Row:
    """A row of the table.

    Attributes:
        function: the public function, `package.name`.
        what: the measure or the setting.
        cells: simulates a data set of a world, by its name.
        is_test: whether the share of rejections is tabulated, not that of intervals that cover.
    """

    function: str
    what: str
    cells: dict[str, Draw] = field(repr=False)
    is_test: bool = False

    @property
    def name(self) -> str:
        """The name in the file of results."""
        return f"{self.function} {self.what}".strip()


def covers(found: Any, truth: float) -> Found:
    """Return whether an interval contains the truth, up to rounding, and its caution."""
    low, high = (found.low, found.high) if hasattr(found, "low") else found[-2:]
    inside = float(low) <= truth + 1e-9 and truth - 1e-9 <= float(high)
    return float(inside), first_interval_caution(getattr(found, "caution", ""))


def rejects(found: calibration.Comparison) -> Found:
    return float(found.p_value < 0.05), found.caution


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


CLASSIFIERS = [name for name in WORLDS if name not in ("t8 noise", "many samples")]


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


def pair_of(rng: Rng, world: str, size: int | None = None) -> tuple[Array, Array]:
    """Return the confidence and the correctness of predictions."""
    doubt, wrong = doubts(rng, world, (size or size_of(world),))
    return 1 - doubt, rng.random(doubt.shape) >= wrong


def pair_covers(measure: str, world: str, rng: Rng) -> Found:
    sure, right = pair_of(rng, world)
    given = weights_of(world, rng)
    found = calibration.interval(measure, sure, right, resamples=RESAMPLES, **given)
    if measure == "ece_max":  # of the bins that hold samples
        return covers(found, gaps_of_bins(world)[np.ceil(15 * sure).astype(int)].max())
    return covers(found, pair_truth(measure, world))


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


def outputs_cover(measure: str, world: str, rng: Rng) -> Found:
    size = size_of(world)
    stated, true = probabilities(rng, world, (size,))
    labels = (rng.random((size, 1)) > true.cumsum(-1)).sum(-1).clip(max=true.shape[-1] - 1)
    given = TableOutputs(
        torch.from_numpy(stated), None, torch.from_numpy(labels), **weights_of(world, rng)
    )
    table = MEASURES[measure].table_interval
    assert table is not None
    found = table(
        given, MeasureTableSettings(resamples=5 * RESAMPLES)
    )  # a fifth of it for each class
    return covers(found, outputs_truth(measure, world))


# Regressors.

SCALE = {"overconfident": 1.3, "underconfident": 0.75, "few samples": 1.3, "weights": 1.3}
REGRESSORS = [name for name in WORLDS if name not in ("sharp", "many classes", "many samples")]
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


def regression_covers(measure: str, world: str, rng: Rng) -> Found:
    given, weights = gaussians(rng, world, (size_of(world),)), weights_of(world, rng)
    table = {"only": [measure], "resamples": 5 * RESAMPLES // 2}  # a fifth of it is drawn
    found = calibration.regression_table(*given, **table, **weights)[measure]
    return covers(found, regression_truth(measure, world))


def bleed_covers(world: str, rng: Rng) -> Found:
    noise = torch.from_numpy(rng.gamma(2.0, 0.5, (size_of(world), 1)))
    given = TablePredictions(noise, noise, noise, noise)
    return covers(MEASURES["aleatoric_bleed"].table_interval(given, MeasureTableSettings()), 1.5)


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
    "many samples": with_gaps(0.84, 0.96, 0.04, -0.04),
    "weights": with_gaps(0.84, 0.96, 0.04, -0.04),
}
"""Two models with equal errors; where nothing else is said, of opposite sign."""


def compare_rejects(measure: str, world: str, rng: Rng) -> Found:
    models = TWO_MODELS[world](rng, size_of(world))
    options = {"resamples": RESAMPLES, "seed": int(rng.integers(1 << 30))}
    return rejects(calibration.compare(measure, *models, **options, **weights_of(world, rng)))


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


def regressors(measure: str, world: str, rng: Rng, size: int) -> tuple[list[Pair], Array]:
    """Return two regressors and the target: equal up to a little noise, or opposite errors."""
    alike = world in ("calibrated", "t8 noise")
    mean, variance, target = gaussians(rng, world if alike else "calibrated", (size,))
    noise = rng.uniform(0.98, 1.02, size)
    factors = (noise, 1 / noise) if alike else (1.3, opposite_factor(measure))
    return [(mean, variance * times) for times in factors], target


def regressors_reject(measure: str, world: str, rng: Rng) -> Found:
    models, target = regressors(measure, world, rng, size_of(world))
    options = {"resamples": RESAMPLES, "seed": int(rng.integers(1 << 30))}
    given = weights_of(world, rng)
    return rejects(calibration.regression_compare(measure, *models, target, **options, **given))


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


def terms_of(world: str, rng: Rng) -> Array:
    return TERMS[world][0](rng, (5 if world == "few samples" else size_of(world),))


@cache
def moments_of(world: str) -> tuple[float, float]:
    """Return the second and the third central moment of the terms of a world."""
    draw, truth = TERMS[world]
    apart = draw(np.random.default_rng(0), (400_000,)) - truth
    return float(np.square(apart).mean()), float((apart**3).mean())


def mean_covers(world: str, rng: Rng) -> Found:
    """The interval of NLL and Brier, whose calibrated model is the true one here."""
    values, truth = terms_of(world, rng), TERMS[world][1]
    usual, second, third = (np.full_like(values, one) for one in (truth, *moments_of(world)))
    given = weights_of(world, rng)
    found = calibration.mean_interval(values, usual, second, calibrated_third=third, **given)
    return covers(found, truth)


def terms_cover(function: Callable[[Array], Any], world: str, rng: Rng) -> Found:
    return covers(function(terms_of(world, rng)), TERMS[world][1])


def of_sums(function: Callable[..., Any], powers: int) -> Callable[[Array], Any]:
    """Return a function of sums of powers as one of terms."""
    return lambda terms: function(
        *(np.asarray((terms**power).sum()) for power in range(powers + 1))
    )


PLAIN: dict[str, Callable[[Array], Any]] = {
    "unbounded_mean_interval": calibration.unbounded_mean_interval,
    "interval_of_sums": of_sums(calibration.interval_of_sums, 4),
    "share_interval_of_sums": of_sums(calibration.share_interval_of_sums, 2),
    "bounded_mean_interval": calibration.bounded_mean_interval,
    "share_interval": lambda terms: calibration.share_interval(terms, np.full_like(terms, 0.9)),
    "wilson_interval": lambda terms: calibration.wilson_interval(terms.mean(), len(terms)),
    "bootstrap_interval": lambda terms: calibration.bootstrap_interval(terms, resamples=200),
}
"""Functions of the terms of a mean alone."""


def means_reject(world: str, rng: Rng) -> Found:
    return rejects(calibration.compare_means(terms_of(world, rng), terms_of(world, rng)))


def any_rejects(world: str, rng: Rng) -> Found:
    """Whether any of five comparisons without a difference is found, after Holm's correction."""
    pairs = [(terms_of(world, rng), terms_of(world, rng)) for _ in range(5)]
    p_values = np.array([float(calibration.compare_means(*pair).p_value) for pair in pairs])
    return float((calibration.holm(p_values) < 0.05).any()), ""


# What has an interval of its own.


def pooled_covers(world: str, rng: Rng) -> Found:
    """Four positions of an orbit, whose outputs have the same label."""
    columns = [pair_of(rng, world)] * 4
    _, error = calibration.pooled_reliability(columns, np.full(4, 0.25))
    return covers(error, pair_truth("ece", world))


def curve_covers(world: str, rng: Rng) -> Found:
    """The share of places at which the band of a reliability curve contains the accuracy."""
    curve = calibration.reliability_curve(*pair_of(rng, world), resamples=20, points=51)
    truth = 1 - EXCESS.get(world, 2.0) * (1 - curve.place)
    known = ~curve.accuracy.isnan()
    inside = (curve.low <= truth + 1e-9) & (truth - 1e-9 <= curve.high)
    return float(inside[known].double().mean()) if bool(known.any()) else 1.0, curve.caution


@cache
def aurc_truth(world: str) -> float:
    doubt, chance = doubts(np.random.default_rng(99), world, (1_000_000,))
    order = np.argsort(doubt)
    return float((chance[order].cumsum() / np.arange(1, len(order) + 1)).mean())


def aurc_covers(world: str, rng: Rng) -> Found:
    return covers(selective.risk_coverage(*pair_of(rng, world)), aurc_truth(world))


def oracle_covers(world: str, rng: Rng) -> Found:
    doubt, chance = doubts(rng, world, (size_of(world),))
    error, reach = np.abs(chance - doubt).mean(), calibration.oracle_bound(size_of(world))
    return covers((error - reach, error + reach), pair_truth("ece", world))


SHARE = {"sharp": 0.94, "rare failures": 0.987}


def ceiling_covers(world: str, rng: Rng) -> Found:
    """Forty orbits; the label of an orbit is right in the given share of its samples."""
    share, size = SHARE.get(world, 0.8), size_of(world)
    orbit = rng.integers(0, 40, size)
    label = orbit % 2 ^ (rng.random(size) >= share)
    table = bounds.OrbitTable.from_labels(orbit, label, labels=2)
    return covers(bounds.certified_ceiling(table), share)


def neighbors_cover(world: str, rng: Rng) -> Found:
    """Labels of points in the plane that are right in the given share, without a symmetry."""
    share, size = SHARE.get(world, 0.8), size_of(world)
    x = rng.normal(size=(size, 2))
    label = (x[:, 0] > 0).astype(int) ^ (rng.random(size) >= share)
    return covers(bounds.neighbor_ceiling(x, label, "trivial"), share)


def floor_covers(world: str, rng: Rng) -> Found:
    """Values that are noise of variance .25 around a smooth function of points in the plane."""
    x = rng.normal(size=(size_of(world), 2))
    value = 0.05 * x[:, :1] + rng.normal(0, 0.5, (len(x), 1))
    return covers(bounds.neighbor_floor(x, value, "trivial"), 0.25)


def points_apart(rng: Rng, size: int) -> tuple[bounds.Estimate, bounds.Estimate]:
    """Return estimates without and with a half turn, of ten points with labels it changes."""
    x = rng.normal(size=(size, 10, 2))
    label = (x[:, 0, 0] > 0).astype(int)
    trivial, turned = (
        bounds.neighbor_ceiling(x, label, group) for group in ("trivial", "cyclic:2")
    )
    return turned, trivial


@cache
def difference_truth(size: int) -> float:
    rng = np.random.default_rng(99)
    pairs = (points_apart(rng, size) for _ in range(600))
    return float(np.mean([turned.value - trivial.value for turned, trivial in pairs]))


def difference_covers(world: str, rng: Rng) -> Found:
    turned, trivial = points_apart(rng, size_of(world))
    return covers(turned.difference(trivial), difference_truth(size_of(world)))


AREAS = {
    "calibrated": (1, 0.5),
    "sharp": (3, 0.5),
    "rare failures": (1, 0.05),
    "few samples": (1, 0.5),
}
"""How far the scores of positive samples are shifted, in deviations, and their share."""


def area_covers(world: str, rng: Rng) -> Found:
    """Normal scores of two classes."""
    (shift, share), size = AREAS[world], size_of(world)
    label = np.arange(size) < share * size
    score = rng.standard_normal(size) + shift * label
    _, low, high = areas_under_roc(score[None], label[None].astype(int), 0.95)
    return covers((low[0], high[0]), float(torch.special.ndtr(torch.tensor(shift / 2**0.5))))


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

    def row(
        function: str, what: str, draw: Callable[..., Found], worlds: Any, *given: Any, **kind: bool
    ) -> Row:
        cells = {world: partial(draw, *given, world) for world in worlds}
        return Row(function if "." in function else f"calibration.{function}", what, cells, **kind)

    takes_none = ("brier_calibration", "brier_refinement")
    tested = ["calibrated", "underconfident", "few samples", "t8 noise", "weights"]
    quick = {"ence", "uce", "quantile_calibration"}  # many samples take long
    several = list(TERMS)[:-1]
    worlds_of = dict.fromkeys(PLAIN, UNIT) | {
        "unbounded_mean_interval": several,
        "interval_of_sums": several,
        "bootstrap_interval": several,
        "share_interval": SHARE,
        "wilson_interval": SHARE,
    }
    unweighted = CLASSIFIERS[:-1]
    return (
        *(row("interval", name, pair_covers, CLASSIFIERS, name) for name in pairs),
        *(
            row("brier_part_intervals", name, outputs_cover, unweighted, name)
            if name in takes_none
            else row("classification_table", name, outputs_cover, CLASSIFIERS, name)
            for name in outputs
        ),
        *(
            row("regression_interval", name, regression_covers, REGRESSORS, name)
            for name in regression
        ),
        row("regression_table", "aleatoric_bleed", bleed_covers, ["calibrated", "few samples"]),
        *(
            row("compare", name, compare_rejects, TWO_MODELS, name, is_test=True)
            for name in listed["pair"]
        ),
        *(
            row("regression_compare", name, regressors_reject, worlds, name, is_test=True)
            for name in listed["regression"]
            for worlds in [[*tested, "many samples"] if name in quick else tested]
        ),
        row("compare_means", "", means_reject, several, is_test=True),
        row("holm", "of 5 comparisons", any_rejects, several, is_test=True),
        row("mean_interval", "", mean_covers, TERMS),
        *(
            row(name, "", terms_cover, worlds_of[name], function)
            for name, function in PLAIN.items()
        ),
        row("pooled_reliability", "", pooled_covers, unweighted),
        row("reliability_curve", "band", curve_covers, unweighted),
        row("oracle_bound", "", oracle_covers, unweighted),
        row("selective.risk_coverage", "", aurc_covers, unweighted),
        row("bounds.certified_ceiling", "", ceiling_covers, _ORBITS),
        row("bounds.neighbor_ceiling", "2-D", neighbors_cover, _ORBITS),
        row("bounds.neighbor_floor", "2-D", floor_covers, ["calibrated"]),
        row("bounds.Estimate.difference", "20-D", difference_covers, ["calibrated", "few samples"]),
        row("nero.binary_rates", "auroc", area_covers, AREAS),
    )


_ORBITS = ["calibrated", "sharp", "rare failures", "few samples"]

SHOWN_BY = {
    "calibration.along_orbit": "calibration.interval",
    "calibration.at_places": "calibration.interval",
    "calibration.classification_table": "calibration.interval",
    "calibration.compare_outputs": "calibration.compare",
    "calibration.error_curve": "calibration.interval",
    "calibration.judge": "calibration.interval",
    "calibration.measure_table": "calibration.interval",
    "calibration.pair_table": "calibration.interval",
    "calibration.pooled_over_orbit": "calibration.pooled_reliability",
    "calibration.regression_table": "calibration.regression_interval",
    "calibration.samples_to_decide": "calibration.bounded_mean_interval",
    "calibration.samples_to_decide_by_width": "calibration.bounded_mean_interval",
    "calibration.scan_table": "calibration.interval",
    "calibration.verdict": "calibration.interval",
    "bounds.classification": "bounds.certified_ceiling",
    "bounds.compare_groups": "bounds.certified_ceiling",
    "advice.advise": "calibration.bounded_mean_interval",
    "advice.cause": "calibration.bounded_mean_interval",
    "calibration.mean_over_orbit": "calibration.interval",
    "calibration.bounded_interval_of_sums": "calibration.share_interval_of_sums",
    "nero.aggregate": "calibration.interval_of_sums",
    "nero.averaging": "calibration.compare_means",
    "nero.failures": "calibration.bounded_mean_interval",
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
    "adversarial.worst_case": "calibration.unbounded_mean_interval",
}
"""Functions whose intervals or p-values are those of another, which has the row."""


# Running, and the page.

Cell = tuple[int, str, int, int]
"""The place of a row, a world, the number of a block of data sets, and the seed."""


@dataclass(frozen=True)
class Share:
    """What a block, or all blocks, of a cell found.

    Attributes:
        right: the share of intervals that cover, or of rejections.
        caution: the share of results with a caution.
        unsaid: the share of results that are wrong, without a caution.
    """

    right: float
    caution: float
    unsaid: float


Results = dict[tuple[str, str, int], Share]


def simulate(cell: Cell) -> dict[str, Any]:
    """Simulate one block of a cell; the same seed always draws the same data sets."""
    torch.set_num_threads(1)
    place, world, block, seed = cell
    row, started = rows()[place], time.perf_counter()
    rng = np.random.default_rng([seed, block, *f"{row.name} {world}".encode()])
    each = [row.cells[world](rng) for _ in range(BLOCK)]
    right, said = np.array([one for one, _ in each]), np.array([text != "" for _, text in each])
    wrong = right if row.is_test else 1 - right
    shares = Share(right.mean(), said.mean(), (wrong * ~said).mean())
    seconds = round(time.perf_counter() - started, 2)
    named = {"row": row.name, "world": world, "block": block, "seconds": seconds}
    return named | {name: float(value) for name, value in vars(shares).items()}


def read_results(path: Path) -> Results:
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    each = (json.loads(line) for line in lines)
    names = Share.__dataclass_fields__
    return {
        (one["row"], one["world"], one["block"]): Share(*(one[name] for name in names))
        for one in each
    }


def _turn(name: str) -> int:
    """Return when a row begins: slow ones first, so that they are not left over at the end."""
    slow = ("smooth", "regression_compare", "classwise", "brier_", "difference")
    return next((turn for turn, part in enumerate(slow) if part in name), len(slow))


def run(
    path: Path, trials: int, workers: int, only: str, seed: int = SEED, minutes: float = np.inf
) -> None:
    """Simulate what is missing among the results, until it is too late to begin a block."""
    known, ends_at = read_results(path), time.monotonic() + 60 * minutes
    places = sorted(range(len(rows())), key=lambda place: _turn(rows()[place].name))
    missing = [
        (place, world, block, seed)
        for part in range(0, -(-trials // BLOCK), 8)
        for place in places
        for world in sorted(rows()[place].cells, key=size_of, reverse=True)
        for block in range(part, min(part + 8, -(-trials // BLOCK)))
        if only in rows()[place].name and (rows()[place].name, world, block) not in known
    ]
    # Blocks of a cell stay together, so that few processes compute its truth.
    with multiprocessing.get_context("fork").Pool(workers) as pool, path.open("a") as out:
        for found in pool.imap_unordered(simulate, missing, chunksize=2):
            out.write(json.dumps(found) + "\n")
            out.flush()
            if time.monotonic() > ends_at:
                break


def joined(results: Results) -> dict[tuple[str, str], tuple[Share, int]]:
    """Return the shares of each cell over its blocks, and the number of its data sets."""
    cells: dict[tuple[str, str], list[Share]] = {}
    for (row, world, _), found in results.items():
        cells.setdefault((row, world), []).append(found)
    return {
        cell: (Share(*np.mean([list(vars(one).values()) for one in each], 0)), BLOCK * len(each))
        for cell, each in cells.items()
    }


def fewer_draws(shares: dict[tuple[str, str], tuple[Share, int]]) -> str:
    """Return a sentence about the cells with fewer data sets than `TRIALS`, or none."""
    few = [count for _, count in shares.values() if count < TRIALS]
    if not few:
        return ""
    error = 100 * (LIMIT * (1 - LIMIT) / min(few)) ** 0.5
    return (
        f" Cells with fewer data sets, {len(few)} of {len(shares)}, have their number in brackets;"
        f" the standard error of {min(few)} is up to {error:.1f} points."
    )


def table(shares: dict[tuple[str, str], tuple[Share, int]]) -> Iterator[str]:
    """Yield the lines of the table; a cell outside of its range is bold."""
    yield f"| function | {' | '.join(WORLDS)} |"
    yield "|---|" + "---|" * len(WORLDS)
    for row in rows():
        cells = []
        for world in WORLDS:
            if (row.name, world) not in shares:
                cells.append("" if world not in row.cells else "?")
                continue
            found, count = shares[row.name, world]
            said = f" ({100 * found.caution:.0f} %)" if found.caution >= 0.005 else ""
            text = f"{100 * found.right:.1f} %"
            fewer = f" [{count}]" if count < TRIALS else ""
            cells.append((text if found.unsaid <= LIMIT else f"**{text}**") + said + fewer)
        what = f" `{row.what}`" if row.what in MEASURES else f" {row.what}" if row.what else ""
        kind = ", size" if row.is_test else ""
        yield f"| `{row.function}`{what}{kind} | {' | '.join(cells)} |"


def power_of(name: str, measure: str) -> float:
    torch.set_num_threads(1)
    return rejection_rate(measure, GAPS[name], 500, trials=300)


def powers(workers: int) -> Iterator[str]:
    """Yield the rows of the table of power."""
    each = [(name, measure) for name in GAPS for measure in ("ece", "ks")]
    with multiprocessing.get_context("fork").Pool(workers) as pool:
        shares = [f"{100 * share:.1f} %" for share in pool.starmap(power_of, each)]
    for row, name in enumerate(GAPS):
        yield f"| {name} | {' | '.join(shares[2 * row : 2 * row + 2])} |"


def page(results: Results, workers: int) -> str:
    text = TEMPLATE.read_text(encoding="utf-8")
    worlds = "\n".join(f"- *{name}*: {meaning}." for name, meaning in WORLDS.items())
    shares = joined(results)
    outside = sum(one.unsaid > LIMIT for one, _ in shares.values())
    none = "No cell of the table is outside of these ranges without a caution."
    some = f"{outside} of the cells are outside of these ranges without one, and bold."
    return text.format(
        trials=f"{TRIALS:,}",
        fewer=fewer_draws(shares),
        cells=len(shares),
        error=100 * (LIMIT * (1 - LIMIT) / TRIALS) ** 0.5,
        bold=some if outside else none,
        resamples=RESAMPLES,
        worlds=worlds,
        table="\n".join(table(shares)),
        powers="\n".join(powers(workers)),
        sharp=100 * most_power(0.84, 0.92),
        spread=100 * most_power(0.5, 0.92),
        shown="\n".join(f"| `{name}` | `{other}` |" for name, other in sorted(SHOWN_BY.items())),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--trials", type=int, default=TRIALS)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--minutes", type=float, default=np.inf)
    parser.add_argument("--only", default="", help="rows whose name contains this text")
    parser.add_argument("--results", type=Path, default=Path("interval_tables.jsonl"))
    parser.add_argument("--no-page", action="store_true", help="only simulate")
    given = parser.parse_args()
    run(given.results, given.trials, given.workers, given.only, given.seed, given.minutes)
    if not given.no_page:
        found = page(read_results(given.results), given.workers)
        PAGE.write_text(found, encoding="utf-8")


if __name__ == "__main__":
    main()
