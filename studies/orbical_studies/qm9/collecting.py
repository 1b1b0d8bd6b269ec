"""From the answers of all networks to small tables: what they know, and what the data allow."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from scipy.stats import t

from orbical.bounds import ValueTable, nll_optimal_bleed

from ..data.qm9_molecules import PROPERTIES as KNOWN
from ..framework import Results, rows_of
from ..framework.results import Row
from ..framework.training import read_trained
from ..student_t import student_scale
from .measures import coverage_error, most_bleed, rank_correlation, scores
from .packing import Pack, plain_scale, training_scale, unpack
from .settings import (
    ALL,
    COMPARED,
    CONTRAST,
    LIKELIHOOD,
    NETWORKS,
    PROPERTIES,
    SHOWN,
    Settings,
    Trial,
    trials,
)

Array = np.ndarray
MOLECULES = 800
RESAMPLES = 500
EDGES = np.linspace(-12, 2, 113)
"""Edges of the bins of log10 variance, in squared deviations."""

PAPER = {
    "lumo": (0.4404, 0.6710, 0.0081, 3.0288),
    "gap": (0.6877, 0.7283, 0.0013, 3.0287),
    "u0": (0.2563, 0.0563, 0.0333, 0.0053),
    "u": (0.2558, 0.0563, 0.0323, 0.0053),
    "u0_atom": (0.1908, 0.1458, 0.0193, 0.0052),
    "g_atom": (0.7954, 0.7706, 0.0000, 0.0014),
    "rotational_a": (0.0667, 0.2504, 0.0000, 0.0014),
    "rotational_b": (0.1625, 0.0992, 0.0066, 0.0040),
    "rotational_c": (0.0780, 0.0493, 0.0008, 0.0013),
    "r2": (0.8621, 0.8956, 0.0005, 0.0013),
}
"""Table 1 of the paper: z-scored errors of GIN and of the invariant network, and their bleed."""


class Training(NamedTuple):
    """A finished training: its line of results and its arrays."""

    row: Row
    arrays: Mapping[str, Array]

    @property
    def head(self) -> dict[str, Any]:
        """Which training it is."""
        return {name: self.row[name] for name in ("network", "target", "loss", "seed")}

    def variances(self, place: int) -> tuple[Array, Array]:
        """Return aleatoric and epistemic variance of a property, in the units of training."""
        _, nu, alpha, beta = self.arrays["test"][:, :, place]
        return beta / (alpha - 1), beta / (nu * (alpha - 1))


class Truth:
    """What answers are measured against; arrays over properties unless another shape is given.

    Attributes:
        pack: All molecules.
        mean: Of the training molecules, in the units of the data, like the next three.
        deviation: Of the training molecules; reported errors are in these.
        center: Of the scale of training.
        width: Of the scale of training.
        test: `[n, 11]`, the truth about the test molecules.
        unit: Width in deviations.
        scaled: `[n, 11]`, the truth as it was learned.
    """

    def __init__(self, pack: Pack) -> None:
        learned = pack.targets[pack.rows("train")]
        self.pack = pack
        self.mean, self.deviation = (part.numpy() for part in plain_scale(learned))
        self.center, self.width = (part.numpy() for part in training_scale(learned))
        self.test = pack.targets[pack.rows("test")].numpy()
        self.unit = self.width / self.deviation
        self.scaled = (self.test - self.center) / self.width


def collect(settings: Settings, results: Results) -> None:
    """Measure every training."""
    truth = Truth(unpack(results.work, torch.device("cpu")))
    every = trainings(sorted(trials(settings), key=str), results.work)
    more = [one for one in every if one.row["seed"] in settings.more_seeds]
    trained = [one for one in every if one not in more]
    shared = [one for one in trained if one.row["target"] == ALL]
    main = [one for one in shared if one.row["loss"] == LIKELIHOOD]
    results.write("limits", limits(truth))
    results.write("results", [row for one in trained for row in result_rows(truth, one)])
    results.write("contrast", [row for one in more for row in result_rows(truth, one)])
    paired = [one for one in main + more if one.row["network"] in CONTRAST]
    results.write("resampled", _resampled_ratios(truth, paired))
    results.write("consistency", [one.head | consistency(truth, one) for one in shared])
    results.write("curves", [row for one in shared for row in curve_rows(truth, one)])
    results.write("agreement", _agreements(main))
    results.write("molecules", _shown_molecules(truth, main, settings.seeds[0]))
    results.write("histogram", histograms(truth, main))


def trainings(wanted: Iterable[Trial], work: Path) -> list[Training]:
    """Read trainings, their arrays in double precision."""
    read = read_trained(wanted, work)
    return [Training(row, {k: v.astype(float) for k, v in kept.items()}) for row, kept in read]


def result_rows(truth: Truth, one: Training) -> Iterator[Row]:
    """Measure a training: a row a property, and one more on rotated molecules if it differs."""
    kept = {k: one.row[k] for k in ("epochs", "steps", "parameters", "backbone", "seconds")}
    names = PROPERTIES if one.row["target"] == ALL else (one.row["target"],)
    for place, name in enumerate(names):
        column = PROPERTIES.index(name)
        unit = float(truth.unit[column])
        trained = {
            "seen_mae": one.row["seen_mae"][place] * unit,
            "gain": _last_gain(one.arrays["curve"][:, 1, place]),
            **kept,
        }
        if one.row["network"] not in COMPARED:  # of the others it is rounding
            trained["defect"] = one.row["defect"][place] * unit
        for frame, key in (("given", "test"), ("turned", "turned")):
            if key in one.arrays:
                evidence = one.arrays[key][:, :, place]
                found = scores(evidence, truth.scaled[:, column], unit, one.row["seed"])
                yield one.head | {"property": name, "frame": frame} | found | trained


def _resampled_ratios(truth: Truth, paired: Sequence[Training], seed: int = 0) -> Iterator[Row]:
    """Compare the two networks of the contrast with all trainings fixed, over test molecules.

    Each measure is a geometric mean over properties and trainings, with the symmetry over without;
    the interval is that of the molecules, drawn again with both networks' answers to them.
    """
    draw = np.random.default_rng(seed)
    count = len(truth.test)
    drawn = [np.arange(count), *(draw.integers(count, size=(RESAMPLES, count)))]
    logs: dict[str, Array] = {}
    for one, (place, unit) in product(paired, enumerate(truth.unit.tolist())):
        gamma, nu, alpha, beta = one.arrays["test"][:, :, place]
        error = truth.scaled[:, place] - gamma
        found: dict[str, tuple[Array, Callable[[Array], Any]]] = {
            "mae": (np.abs(error) * unit, np.mean),
            "bleed_99": (beta / (alpha - 1) * unit**2, most_bleed),
            "coverage": (t.cdf(error / student_scale(nu, alpha, beta), 2 * alpha), coverage_error),
        }
        sign = 1 if one.row["network"] == CONTRAST[0] else -1
        for name, (values, measure) in found.items():
            measured = np.log([measure(values[chosen]) for chosen in drawn])
            logs[name] = logs.get(name, 0.0) + sign * measured / len(truth.unit)
    trainings = len(paired) / len(CONTRAST)
    for name, values in logs.items():
        ratio, *others = np.exp(values / trainings)
        low, high = np.quantile(others, (0.025, 0.975)).tolist()
        yield {"measure": name, "trainings": len(paired), "ratio": ratio, "low": low, "high": high}


def limits(truth: Truth) -> Iterator[Row]:
    """Compute for each property the errors of constants, and what bonds alone leave open.

    A network on bonds gives one answer to all molecules of one bond graph, so over each such class
    its least squared error is the variance, and likelihood makes it report that variance; its least
    absolute error is that of the median.
    """
    pack = truth.pack
    kept = ~pack.linear
    classes = pack.bond_class[kept]
    columns = ("gin_mae", "invariant_mae", "gin_bleed", "invariant_bleed")
    _, index, sizes = np.unique(classes, return_inverse=True, return_counts=True)
    for place, name in enumerate(PROPERTIES):
        mean, deviation = float(truth.mean[place]), float(truth.deviation[place])
        z = (pack.targets[kept, place].numpy() - mean) / deviation
        tested = (truth.test[:, place] - mean) / deviation
        median = (float(pack.targets[pack.rows("train"), place].median()) - mean) / deviation
        every = pack.targets[:, place].numpy()
        own = np.bincount(index, z) / sizes
        yield {
            "property": name,
            "unit": KNOWN[name].unit,
            "mean": mean,
            "deviation": deviation,
            "width": float(truth.width[place]),
            "mean_mae": float(np.abs(tested).mean()),
            "median_mae": float(np.abs(tested - median).mean()),
            "mean_mae_all": float(np.abs(every - every.mean()).mean() / every.std()),
            "deviation_all": float(every.std()),
            "shared": float((sizes[index] > 1).mean()),
            "bond_mae": float(np.abs(z - medians(z, index)).mean()),
            "bond_rmse": float(np.sqrt(np.square(z - own[index]).mean())),
            "bond_bleed": float(nll_optimal_bleed(ValueTable(index, z)).sum()),
            **{f"paper_{k}": v for k, v in zip(columns, PAPER.get(name, ()), strict=False)},
        }


def medians(values: Array, index: Array) -> Array:
    """Return for each value the median of its class.

    >>> medians(np.array([0.0, 1.0, 5.0, 7.0]), np.array([0, 0, 0, 1])).tolist()
    [1.0, 1.0, 1.0, 7.0]
    """
    ordered = values[np.lexsort((values, index))]
    sizes = np.bincount(index)
    start = np.cumsum(sizes) - sizes
    return ((ordered[start + (sizes - 1) // 2] + ordered[start + sizes // 2]) / 2)[index]


def _last_gain(curve: Array) -> float:
    """Compute the share by which an error still fell in the last tenth of the epochs.

    >>> round(_last_gain(np.array([1.0] * 9 + [0.9])), 3)
    0.1
    """
    before = curve[max(0, len(curve) - 1 - max(1, len(curve) // 10))]
    return float(1 - curve[-1] / before)


def consistency(truth: Truth, one: Training) -> dict[str, float]:
    """Measure how far answers obey what physics ties together, in the units of the data.

    U0 and the energy of atomization differ by energies of free atoms that are known, so a network
    that knows one knows the other; U and U0 differ by a little heat; A >= B >= C > 0.
    """
    answers = truth.center + truth.width * one.arrays["test"][0]
    physical = dict(zip(PROPERTIES, answers.T, strict=True))
    true = dict(zip(PROPERTIES, truth.test.T, strict=True))
    error = {name: physical[name] - true[name] for name in PROPERTIES}
    a, b, c = (physical[f"rotational_{axis}"] for axis in "abc")
    return {
        **{name: float(np.abs(error[name]).mean()) for name in ("u0", "u", "u0_atom")},
        "u_less_u0": float(np.abs(error["u"] - error["u0"]).mean()),
        "u0_less_atoms": float(np.abs(error["u0"] - error["u0_atom"]).mean()),
        "heat": float((true["u"] - true["u0"]).mean()),
        "disordered": float(((a < b) | (b < c)).mean()),
        "negative": float(np.mean([physical[n] < 0 for n in ("dipole", "r2", "gap")])),
    }


def curve_rows(truth: Truth, one: Training, most: int = 26) -> Iterator[Row]:
    """Return validation errors of each property along the training, at `most` epochs."""
    errors = one.arrays["curve"][:, 1] * truth.unit
    for epoch in np.unique(np.linspace(0, len(errors) - 1, most).round().astype(int)).tolist():
        found = dict(zip(PROPERTIES, errors[epoch].tolist(), strict=True))
        yield one.head | {"epoch": epoch + 1} | found


def _agreements(main: Sequence[Training]) -> Iterator[Row]:
    """Compute rank correlations over the test molecules of the shown property's variances.

    Between every seed of one network and every seed of the other; and between two seeds of one
    network, which is as much as two networks can be expected to agree.
    """
    place = PROPERTIES.index(SHOWN)
    for one, other in product(main, main):
        pair, seeds = ((one.row[key], other.row[key]) for key in ("network", "seed"))
        again = pair[0] == pair[1] and seeds[0] < seeds[1]
        if pair == COMPARED or (again and pair[0] in COMPARED):
            head = {"first": pair[0], "second": pair[1]}
            head |= {"first_seed": seeds[0], "second_seed": seeds[1]}
            both = zip(one.variances(place), other.variances(place), strict=True)
            ranks = (rank_correlation(a, b) for a, b in both)
            yield head | dict(zip(("aleatoric", "epistemic"), ranks, strict=True))


def _shown_molecules(truth: Truth, main: Sequence[Training], seed: int) -> Sequence[Row]:
    """Return truth and answers of one seed for some test molecules, in units of the property."""
    place = PROPERTIES.index(SHOWN)
    columns = {"truth": truth.test[:MOLECULES, place]}
    width = float(truth.width[place])
    for one in main:
        if one.row["seed"] == seed:
            name, gamma = one.row["network"], one.arrays["test"][0, :, place]
            columns[f"{name}_mean"] = float(truth.center[place]) + width * gamma
            for part, values in zip(("aleatoric", "epistemic"), one.variances(place), strict=True):
                columns[f"{name}_{part}"] = width**2 * values
    return rows_of({}, {name: values[:MOLECULES] for name, values in columns.items()})


def histograms(truth: Truth, main: Sequence[Training]) -> Iterator[Row]:
    """Count the share of test molecules in bins of log10 variance, over all seeds."""
    for network, (place, name) in product(NETWORKS, enumerate(PROPERTIES)):
        found = [one.variances(place) for one in main if one.row["network"] == network]
        parts = (np.concatenate(part) for part in zip(*found, strict=True))
        logs = [np.log10(truth.unit[place] ** 2 * part) for part in parts]
        counts = [np.histogram(np.clip(v, EDGES[0], EDGES[-1]), EDGES)[0] / len(v) for v in logs]
        for edge, *shares in zip(EDGES[:-1].tolist(), *map(np.ndarray.tolist, counts), strict=True):
            if any(shares):
                head = {"network": network, "property": name, "from": edge}
                yield head | dict(zip(("aleatoric", "epistemic"), shares, strict=True))
