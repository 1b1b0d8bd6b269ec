"""All rows of the study: what was trained, what it answers, what the data allow."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from orbical.calibration import nll_optimal_bleed
from orbical.errors import InputError
from orbical_studies.data.qm9_molecules import PROPERTIES as KNOWN

from ..pages import Row
from ..trials import FILE, read_lines
from .measures import Array, rank_correlation, scores
from .packing import Pack, Scale, scale_of, unpack
from .paper import TABLE
from .settings import ALL, COMPARED, LIKELIHOOD, NETWORKS, PROPERTIES, SHOWN, Trial, trials

MOLECULES = 800
EDGES = np.linspace(-12, 2, 113)
"""Edges of the bins of log10 variance, in squared deviations."""

Tables = dict[str, list[Row]]


class Training(NamedTuple):
    """A finished training: its row, and its answers `[4, n, targets]` to the test molecules.

    `turned` are those to the same molecules turned, of a network that sees it, else None;
    `curve [epochs, 3, targets]` as `training.run` gives it.
    """

    row: Row
    test: Array
    turned: Array | None
    curve: Array

    @property
    def trial(self) -> Trial:
        """What was trained."""
        return Trial(**{name: self.row[name] for name in Trial.__dataclass_fields__})


class Truth(NamedTuple):
    """What answers are measured against.

    Attributes:
        pack: all molecules.
        scale: centre and width in which properties were learnt.
        plain: mean and deviation, the z-score of the report.
        test: `[n, 11]`, targets of the test molecules in their own units.
    """

    pack: Pack
    scale: Scale
    plain: Scale
    test: Array

    def unit(self, name: str) -> float:
        """How many deviations the width is in which a property was learnt."""
        place = PROPERTIES.index(name)
        return float(self.scale.width[place] / self.plain.width[place])

    def scaled(self, name: str) -> Array:
        """Targets of the test molecules as they were learnt."""
        place = PROPERTIES.index(name)
        return (self.test[:, place] - float(self.scale.centre[place])) / float(
            self.scale.width[place]
        )


def collect(packed: Path, results: Path) -> Tables:
    """Measure every training of a folder of results."""
    truth = truth_of(unpack(packed, torch.device("cpu")))
    trained = read_trials(results)
    checked(trained, len(truth.test))
    main = [
        entry for entry in trained if (entry.trial.target, entry.trial.loss) == (ALL, LIKELIHOOD)
    ]
    return {
        "limits": limits(truth),
        "results": [row for entry in trained for row in result_rows(truth, entry)],
        "consistency": [
            head_of(entry.trial) | consistency(truth, entry.test)
            for entry in trained
            if entry.trial.target == ALL
        ],
        "curves": [
            row
            for entry in trained
            if entry.trial.target == ALL
            for row in curve_rows(entry, truth)
        ],
        "agreement": agreements(main),
        "molecules": shown_molecules(truth, main),
        "histogram": histograms(truth, main),
    }


def checked(trained: list[Training], count: int) -> None:
    """Refuse answers to other molecules, and results that lack what the page compares."""
    for entry in trained:
        if (answered := entry.test.shape[1]) != count:
            raise InputError(
                f"results: {entry.trial} answers {answered} molecules, the pack tests {count}; "
                "they belong to another pack"
            )
    there = {_kind(entry.trial) for entry in trained}
    missing = [
        str(trial) for trial in trials() if trial.network in COMPARED and _kind(trial) not in there
    ]
    if missing:
        raise InputError(
            f"results: there is no training like {missing[0]!r}; run the step 'train' without "
            "--only first"
        )


def _kind(trial: Trial) -> tuple[str, str, str]:
    return trial.network, trial.target, trial.loss


def head_of(trial: Trial) -> Row:
    """Say which training a row is of."""
    return {
        "network": trial.network,
        "target": trial.target,
        "loss": trial.loss,
        "seed": trial.seed,
    }


def result_rows(truth: Truth, entry: Training) -> list[Row]:
    """Measure a training: one row a property, and one more on turned molecules where it differs."""
    kept = {k: entry.row[k] for k in ("epochs", "steps", "parameters", "backbone", "seconds")}
    rows = []
    for place, name in enumerate(entry.trial.properties):
        unit = truth.unit(name)
        trained = {
            "seen_mae": entry.row["seen_mae"][place] * unit,
            "gain": last_gain(entry.curve[:, 1, place]),
            **kept,
        }
        if "defect" in entry.row:
            trained["defect"] = entry.row["defect"][place] * unit
        for frame, answers in (("given", entry.test), ("turned", entry.turned)):
            if answers is not None:
                found = scores(answers[:, :, place], truth.scaled(name), unit, entry.trial.seed)
                head = head_of(entry.trial) | {"property": name, "frame": frame}
                rows.append(head | found | trained)
    return rows


def truth_of(pack: Pack) -> Truth:
    """Take scales from the training molecules, and the truth of the test molecules."""
    learnt = pack.targets[pack.rows("train")]
    plain = Scale(learnt.mean(0), learnt.std(0, correction=0))
    return Truth(pack, scale_of(learnt), plain, pack.targets[pack.rows("test")].numpy())


def read_trials(results: Path) -> list[Training]:
    """Read all trainings of a folder, by name."""
    found = []
    for row in read_lines(results / FILE):
        with np.load(results / f"{row['name'].replace('/', '-').replace(' ', '')}.npz") as file:
            kept = {name: file[name].astype(float) for name in file.files}
        found.append(Training(row, kept["test"], kept.get("turned"), kept["curve"]))
    return sorted(found, key=lambda entry: str(entry.row["name"]))


def limits(truth: Truth) -> list[Row]:
    """One row a property: the errors of constants, and what bonds alone leave open.

    A network on bonds gives one answer to all molecules of one bond graph, so over each such class
    its least squared error is the variance, and likelihood makes it report that variance; its least
    absolute error is that of the median.
    """
    pack = truth.pack
    kept = ~pack.linear
    classes = pack.bond_class[kept]
    _, index, sizes = torch.unique(classes, return_inverse=True, return_counts=True)
    rows = []
    for place, name in enumerate(PROPERTIES):
        mean, deviation = float(truth.plain.centre[place]), float(truth.plain.width[place])
        z = (pack.targets[kept, place] - mean) / deviation
        tested = (truth.test[:, place] - mean) / deviation
        learnt = pack.targets[pack.rows("train"), place]
        median = (float(learnt.median()) - mean) / deviation
        every = pack.targets[:, place]
        own = torch.zeros(len(sizes), dtype=z.dtype).index_add(0, index, z) / sizes
        left = z - own[index]
        row: Row = {
            "property": name,
            "unit": KNOWN[name].unit,
            "mean": mean,
            "deviation": deviation,
            "width": float(truth.scale.width[place]),
            "mean_mae": float(np.abs(tested).mean()),
            "median_mae": float(np.abs(tested - median).mean()),
            "mean_mae_all": float(((every - every.mean()) / every.std(correction=0)).abs().mean()),
            "deviation_all": float(every.std(correction=0)),
            "shared": float((sizes[index] > 1).double().mean()),
            "bond_mae": float(np.abs(z.numpy() - medians(z.numpy(), index.numpy())).mean()),
            "bond_rmse": float(left.square().mean().sqrt()),
            "bond_bleed": float(nll_optimal_bleed(z, classes).total),
        }
        if name in TABLE:
            row |= {f"paper_{k}": v for k, v in TABLE[name]._asdict().items()}
        rows.append(row)
    return rows


def medians(values: Array, index: NDArray[np.int64]) -> Array:
    """Give each value the median of its class.

    >>> medians(np.array([0.0, 1.0, 5.0, 7.0]), np.array([0, 0, 0, 1])).tolist()
    [1.0, 1.0, 1.0, 7.0]
    """
    ordered = values[np.lexsort((values, index))]
    sizes = np.bincount(index)
    start = np.cumsum(sizes) - sizes
    return ((ordered[start + (sizes - 1) // 2] + ordered[start + sizes // 2]) / 2)[index]


def last_gain(curve: Array) -> float:
    """Give the share by which an error still fell in the last tenth of the epochs.

    >>> round(last_gain(np.array([1.0] * 9 + [0.9])), 3)
    0.1
    """
    before = curve[max(0, len(curve) - 1 - max(1, len(curve) // 10))]
    return float(1 - curve[-1] / before)


def consistency(truth: Truth, evidence: Array) -> Row:
    """What physics ties together, and how far answers obey it, in the units of the data.

    U0 and the energy of atomisation differ by energies of free atoms that are known, so a network
    that knows one knows the other; U and U0 differ by a little heat; A >= B >= C > 0.
    """
    physical = {
        name: float(truth.scale.centre[place])
        + float(truth.scale.width[place]) * evidence[0, :, place]
        for place, name in enumerate(PROPERTIES)
    }
    error = {name: physical[name] - truth.test[:, place] for place, name in enumerate(PROPERTIES)}
    a, b, c = (physical[f"rotational_{axis}"] for axis in "abc")
    return {
        "u0": float(np.abs(error["u0"]).mean()),
        "u": float(np.abs(error["u"]).mean()),
        "u0_atom": float(np.abs(error["u0_atom"]).mean()),
        "u_less_u0": float(np.abs(error["u"] - error["u0"]).mean()),
        "u0_less_atoms": float(np.abs(error["u0"] - error["u0_atom"]).mean()),
        "heat": float((truth.test[:, PROPERTIES.index("u")] - truth.test[:, 2]).mean()),
        "disordered": float(((a < b) | (b < c)).mean()),
        "negative": float(np.mean([physical[n] < 0 for n in ("dipole", "r2", "gap")])),
    }


def curve_rows(entry: Training, truth: Truth, most: int = 26) -> list[Row]:
    """Validation errors of each property along the training, at most so many epochs."""
    curve = entry.curve
    epochs = np.unique(np.linspace(0, len(curve) - 1, most).round().astype(int))
    return [
        head_of(entry.trial)
        | {"epoch": int(epoch) + 1}
        | {
            name: float(curve[epoch, 1, place]) * truth.unit(name)
            for place, name in enumerate(PROPERTIES)
        }
        for epoch in epochs
    ]


def agreements(main: list[Training]) -> list[Row]:
    """Rank correlations over the test molecules of the shown property's variances.

    Between every seed of one network and every seed of the other; and between two seeds of one
    network, which is as much as two networks can be asked for.
    """
    rows: list[Row] = []
    for one, other in product(main, main):
        pair = (one.trial.network, other.trial.network)
        again = pair[0] == pair[1] and one.trial.seed < other.trial.seed
        if pair == COMPARED or (again and pair[0] in COMPARED):
            head = {"first": pair[0], "second": pair[1]}
            seeds = {"first_seed": one.trial.seed, "second_seed": other.trial.seed}
            parts = zip(("aleatoric", "epistemic"), _parts(one), _parts(other), strict=True)
            rows.append(head | seeds | {name: rank_correlation(a, b) for name, a, b in parts})
    return rows


def _parts(entry: Training) -> tuple[Array, Array]:
    """Aleatoric and epistemic variance of the shown property, in the units of training."""
    _, nu, alpha, beta = entry.test[:, :, PROPERTIES.index(SHOWN)]
    return beta / (alpha - 1), beta / (nu * (alpha - 1))


def shown_molecules(truth: Truth, main: list[Training]) -> list[Row]:
    """Truth and answers of the first seed for some test molecules, in units of the property."""
    place = PROPERTIES.index(SHOWN)
    centre, width = float(truth.scale.centre[place]), float(truth.scale.width[place])
    rows: list[Row] = [{"truth": float(value)} for value in truth.test[:MOLECULES, place]]
    first = min((entry.trial.seed for entry in main), default=0)
    for entry in main:
        if entry.trial.seed != first:
            continue
        gamma, nu, alpha, beta = entry.test[:, :, place]
        aleatoric = width**2 * beta / (alpha - 1)
        for sample, kept in enumerate(rows):
            kept[f"{entry.trial.network}_mean"] = float(centre + width * gamma[sample])
            kept[f"{entry.trial.network}_aleatoric"] = float(aleatoric[sample])
            kept[f"{entry.trial.network}_epistemic"] = float(aleatoric[sample] / nu[sample])
    return rows


def histograms(truth: Truth, main: list[Training]) -> list[Row]:
    """Share of test molecules in bins of log10 variance, over all seeds."""
    rows = []
    for network in NETWORKS:
        chosen = [entry.test for entry in main if entry.trial.network == network]
        if not chosen:
            continue
        for place, name in enumerate(PROPERTIES):
            _, nu, alpha, beta = np.concatenate(chosen, 1)[:, :, place]
            aleatoric = truth.unit(name) ** 2 * beta / (alpha - 1)
            parts = {"aleatoric": aleatoric, "epistemic": aleatoric / nu}
            counts = {
                part: np.histogram(np.clip(np.log10(v), EDGES[0], EDGES[-1]), EDGES)[0] / len(v)
                for part, v in parts.items()
            }
            rows += [
                {"network": network, "property": name, "from": float(EDGES[k])}
                | {part: float(values[k]) for part, values in counts.items()}
                for k in range(len(EDGES) - 1)
                if any(values[k] for values in counts.values())
            ]
    return rows
