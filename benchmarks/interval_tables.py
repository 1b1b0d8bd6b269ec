"""Size and power of comparisons, and coverage of intervals, in simulated worlds.

    python benchmarks/interval_tables.py > docs/intervals.md

Every number of the page is a share of simulated data sets; TRIALS of them make each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import torch

from orbical.calibration import MEASURES, compare, interval
from orbical.calibration.measure_tables import Outputs, Settings

TRIALS = 300
RESAMPLES = 100

Pair = tuple[np.ndarray, np.ndarray]
World = Callable[[np.random.Generator, int], tuple[Pair, Pair]]


def drawn(rng: np.random.Generator, accuracy: np.ndarray, *gaps: float) -> list[Pair]:
    """Return one pair for each gap between confidence and accuracy; labels are shared."""
    correct = rng.random(len(accuracy)) < accuracy
    return [(np.clip(accuracy + gap, 0, 1), correct) for gap in gaps]


def with_gaps(low: float, high: float, first: float, second: float) -> World:
    """Return a world of two models whose confidences differ from a uniform accuracy by gaps."""

    def world(rng: np.random.Generator, size: int) -> tuple[Pair, Pair]:
        a, b = drawn(rng, rng.uniform(low, high, size), first, second)
        return a, b

    return world


def blurred(rng: np.random.Generator, size: int) -> tuple[Pair, Pair]:
    (confidence, correct), *_ = drawn(rng, rng.uniform(0.5, 1, size), 0.0)
    noise = rng.normal(0, 0.02, size)
    return (confidence, correct), (np.clip(confidence + noise, 0.5, 1), correct)


def blunt(rng: np.random.Generator, size: int) -> tuple[Pair, Pair]:
    (confidence, correct), *_ = drawn(rng, rng.uniform(0.5, 1, size), 0.0)
    return (confidence, correct), (np.full(size, 0.75), correct)


def apart(rng: np.random.Generator, size: int) -> tuple[Pair, Pair]:
    sharp, spread = 1 - rng.beta(1, 30, size), rng.uniform(0.5, 1, size)
    return drawn(rng, sharp, 0.0)[0], drawn(rng, spread, 0.0)[0]


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
OPPOSITE: dict[str, World] = {
    "accuracy .84 to .96": with_gaps(0.84, 0.96, 0.04, -0.04),
    "accuracy .5 to .95": with_gaps(0.5, 0.95, 0.05, -0.05),
}


def rejection_rate(
    measure: str, world: World, size: int, trials: int = TRIALS, resamples: int = RESAMPLES
) -> float:
    """Return the share of data sets in which two models differ at the 5 % level."""
    found = (
        compare(measure, *world(np.random.default_rng(seed), size), resamples=resamples, seed=seed)
        for seed in range(trials)
    )
    return float(np.mean([float(one.p_value) < 0.05 for one in found]))


def most_power(low: float, high: float, gap: float = 0.08, size: int = 500) -> float:
    """Return the power of the likelihood ratio against equal and opposite errors of half the gap.

    It is a test of 2.5 % for that world, and the most powerful one.
    """
    rng = np.random.default_rng(0)
    z = rng.uniform(low, high, (10_000, size))

    def ratio(accuracy: np.ndarray) -> np.ndarray:
        correct = rng.random(z.shape) < accuracy
        shares = np.where(correct, z / (z + gap / 2), (1 - z) / (1 - z - gap / 2))
        return np.log(shares).sum(1)

    limit = np.quantile(ratio(z + gap / 2), 0.975)
    return float((ratio(z) > limit).mean())


def comparisons() -> Iterator[str]:
    """Yield the rows of the table of comparisons."""
    for title, worlds, size in (
        ("both calibrated", NULLS, 500),
        ("both calibrated", NULLS, 2000),
        ("gap of .08", GAPS, 500),
        ("errors of .04 or .05, opposite in sign", OPPOSITE, 500),
    ):
        for name, world in worlds.items():
            shares = [f"{rejection_rate(one, world, size):.1%}" for one in ("ece", "ks")]
            yield f"| {title}: {name} | {size:,} | {' | '.join(shares)} |"


SHARPNESS: dict[str, Callable[[np.random.Generator, tuple[int, ...]], np.ndarray]] = {
    "spread": lambda rng, shape: rng.uniform(0, 0.4, shape),
    "sharp": lambda rng, shape: rng.beta(1, 30, shape),
    "very sharp": lambda rng, shape: rng.beta(1, 150, shape),
}
"""The probability of the wrong one of two classes."""

EXCESS = {"calibrated": 1.0, "overconfident": 2.0}
"""How much more often than its probability the wrong class is true."""

COVERED = {"accuracy": 1000, "nll": 1000, "brier": 1000, "ece": 300, "ks": 60, "smooth_ece": 40}
"""Measures, and the number of data sets for each."""


def coverage(measure: str, sharpness: str, excess: float, size: int, trials: int) -> float:
    """Return the share of nominal 95 % intervals that contain the population's value."""
    rng, entry = np.random.default_rng(0), MEASURES[measure]
    doubt = SHARPNESS[sharpness](rng, (trials, size))
    wrong = rng.random(doubt.shape) < excess * doubt
    many = SHARPNESS[sharpness](rng, (200_000,))
    if entry.kind == "pair":
        found = interval(measure, 1 - doubt, ~wrong, resamples=RESAMPLES)
        truth = float(entry(1 - many, 1 - excess * many))
        truth = truth if excess > 1 or measure == "accuracy" else 0.0
    else:
        probs = torch.from_numpy(np.stack([1 - doubt, doubt], -1))
        given = Outputs(probs, None, torch.from_numpy(wrong).long())
        found = entry.table_interval(given, Settings())
        terms = {"nll": lambda p: -np.log(p), "brier": lambda p: 2 * (1 - p) ** 2}[measure]
        truth = ((1 - excess * many) * terms(1 - many) + excess * many * terms(many)).mean()
    inside = (found.low <= truth + 1e-9) & (truth - 1e-9 <= found.high)
    return float(inside.double().mean())


def coverages() -> Iterator[str]:
    """Yield the rows of the table of coverage."""
    for sharpness in SHARPNESS:
        for name, excess in EXCESS.items():
            for size in (50, 200, 1000):
                shares = [
                    f"{coverage(measure, sharpness, excess, size, trials):.1%}"
                    for measure, trials in COVERED.items()
                ]
                yield f"| {sharpness}, {name} | {size:,} | {' | '.join(shares)} |"


PAGE = """# How reliable are intervals and comparisons?

`compare` rarely reports a difference between two calibrated models, and detects a gap of .08
between confidence and accuracy in most data sets of 500 samples. Nominal 95 % intervals have about
the stated coverage, except for the ECE of very sharp predictions, whose errors are rare.

This page is generated by `python benchmarks/interval_tables.py > docs/intervals.md`. Unless stated
otherwise, a number is a share of {trials} simulated data sets, with {resamples} resamples each.

## Comparisons of two models: size and power

The table shows the share of data sets in which `compare` rejects at the 5 % level. If both models
are calibrated, it should reject in at most 5 %. If the confidence of one model exceeds its
accuracy by .08 and the other is calibrated, it should reject as often as possible. Both models
are evaluated on the same labels unless stated otherwise.

| simulation | samples | `ece` | `ks` |
|---|---|---|---|
{comparisons}

The last two rows show a limitation. Two models with equal errors of opposite sign have the same
calibration error, and the labels can hardly distinguish this case from one in which one model is
calibrated and the other is off by twice as much. With 500 samples and an accuracy of .84 to .92,
any test that rejects errors of .04 and -.04 in 5 % of cases (2.5 % on each side) detects a gap of
.08 in at most {sharp:.0%} (Neyman and Pearson); with an accuracy of .5 to .92, in at most
{spread:.0%}. `compare` accepts more false rejections there in exchange for power. If errors of
opposite sign are plausible, look at the reliability curves and not only at the p-value.

## Coverage of intervals

The table shows the share of nominal 95 % intervals that contain the population value, for two
classes. The probability of the wrong class is uniform up to .4 (*spread*), or .03 (*sharp*) or
.007 (*very sharp*) on average; overconfident models are wrong twice as often as they predict. A
data set of 50 sharp predictions has one or two errors, and one of 50 very sharp predictions often
none, so intervals based only on the observed errors would be far too narrow. The columns use
{covered} data sets, respectively.

| predictions | samples | {measures} |
|---|---|{lines}|
{coverages}

The intervals of scores (NLL, Brier) use the variance of a calibrated model where the observed
variance is smaller, and correct the upper end for skewness. Accuracy uses Wilson's interval.
Calibration errors are resampled, and their upper end is raised by what resamples of rare errors
miss.

For the two parts of the Brier score, with 500 predictions for two classes in 400 data sets, the
coverage is 95.5 % (calibration) and 96.2 % (refinement) for calibrated models, and 100 % and 95.0
% if the accuracy is .1 below the confidence (`pytest -m slow -s
tests/calibration/test_intervals.py -k brier`).
"""


if __name__ == "__main__":
    print(
        PAGE.format(
            trials=TRIALS,
            resamples=RESAMPLES,
            comparisons="\n".join(comparisons()),
            sharp=most_power(0.84, 0.92),
            spread=most_power(0.5, 0.92),
            covered=", ".join(map(str, COVERED.values())),
            measures=" | ".join(f"`{name}`" for name in COVERED),
            lines="|".join("---" for _ in COVERED),
            coverages="\n".join(coverages()),
        ),
        end="",
    )
