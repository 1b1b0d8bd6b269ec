"""From the answers of all networks to small tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from typing import Any

import numpy as np
import torch
from torch import Tensor

from orbical.actions import Points
from orbical.calibration import compare_means, ece, holm
from orbical.groups import Group, parse
from orbical.tasks import Classification

from ..framework import Results, rows_of
from ..framework.results import Row
from ..framework.training import finished, read_trained
from ..hidden_failures import search_failures
from . import training

BINS, DRAWS = 15, 100
GROUPS = ("slices", "ball")
BATHTUB = "bathtub"
SEARCHED, EACH = "modelnet10", 10
"""The data set whose worst cases are searched, and how many clouds of each class."""

QUANTITIES = ("upright", "ball", "lost")
CONTRASTS = (
    ("augmented", "plain"),
    ("attention-augmented", "attention"),
    ("attention", "plain"),
    ("attention-augmented", "augmented"),
    ("invariant", "augmented"),
    ("invariant", "attention-augmented"),
)


@dataclass(frozen=True, eq=False)
class Answers:
    """What one trained network answered: its line of results, and its arrays."""

    row: Mapping[str, Any]
    arrays: Mapping[str, np.ndarray]

    @cached_property
    def groups(self) -> dict[str, Group]:
        """The groups by name."""
        return {name: parse(self.row[name]) for name in GROUPS}

    def pairs(self, group: str) -> tuple[Tensor, Tensor]:
        """Return confidence and correctness, each `[element, sample]`."""
        confidence = training.probabilities(self.arrays[f"{group}/confidence"])
        correct = self.arrays[f"{group}/predicted"] == self.arrays["labels"][:, None]
        return torch.from_numpy(confidence.T.copy()), torch.from_numpy(correct.T.copy())

    def clouds(self) -> dict[str, np.ndarray]:
        """Return how often each cloud is right: upright, over all rotations, the difference."""
        correct = self.pairs("ball")[1].double().numpy()
        group = self.groups["ball"]
        upright, ball = correct[group.identity], group.weights @ correct
        return {"upright": upright, "ball": ball, "lost": upright - ball}


def collect(settings: training.Settings, results: Results) -> None:
    """Write the tables of the page from the answers of the trainings that are finished."""
    done = finished(training.trials(settings), results.work)
    every = [Answers(row, arrays) for row, arrays in read_trained(done, results.work)]
    order = {name: place for place, name in enumerate((*training.DATA_SETS, *training.NETWORKS))}
    every.sort(key=lambda a: (order[a.row["data"]], order[a.row["network"]], a.row["seed"]))
    kinds = [
        list(alike) for _, alike in groupby(every, lambda a: (a.row["data"], a.row["network"]))
    ]
    results.write("summary", map(summary_row, every))
    results.write("classes", [row for alike in kinds for row in _class_rows(alike)])
    results.write(
        "contrasts", [row for data in training.DATA_SETS for row in contrast_rows(data, kinds)]
    )
    for name in GROUPS:
        results.write(name, element_rows(kinds, name))
    first = every[0]
    scores = {
        alike[0].row["network"]: training.probabilities(alike[0].arrays["slices/score"])
        for alike in kinds
        if alike[0].row["data"] == first.row["data"]
    }
    names = first.arrays["classes"][first.arrays["labels"]]
    chosen = chosen_samples(scores, names, first.groups["slices"].identity)
    columns = {f"{n}/{k}": v[row] for n, row in chosen.items() for k, v in scores.items()}
    rounded = {name: values.astype(float).round(4) for name, values in columns.items()}
    results.write("individual", rows_of({}, rounded))
    results.write("chosen", [_chosen_row(first, *item) for item in chosen.items()])


def contrast_rows(data: str, kinds: Sequence[Sequence[Answers]]) -> Sequence[Row]:
    """Compare networks on the same test clouds: means over trainings, with Holm's correction.

    `same_sign` counts the trainings whose own difference has the sign of the mean. Comparisons
    with a network that is not trained count in the correction, with a p value of 1.
    """
    clouds = {
        alike[0].row["network"]: [answers.clouds() for answers in alike]
        for alike in kinds
        if alike[0].row["data"] == data
    }
    rows: list[dict[str, Any]] = []
    compared = [pair for pair in CONTRASTS if clouds.keys() >= set(pair)]
    for first, second in compared:
        for quantity in QUANTITIES:
            one, other = (np.stack([c[quantity] for c in clouds[n]]) for n in (first, second))
            found = compare_means(one.mean(0), other.mean(0))
            by_seed = (one - other).mean(1)
            rows.append(
                {
                    "data": data,
                    "first": first,
                    "second": second,
                    "quantity": quantity,
                    "difference": float(found.difference),
                    "low": float(found.low),
                    "high": float(found.high),
                    "p": float(found.p_value),
                    "same_sign": int((by_seed * float(found.difference) > 0).sum()),
                }
            )
    missing = [1.0] * (len(CONTRASTS) * len(QUANTITIES) - len(rows))
    for row, corrected in zip(rows, holm([row["p"] for row in rows] + missing), strict=False):
        row["p_holm"] = float(corrected)
    return rows


def calibrated_ece(confidence: Tensor, seed: int = 0) -> float:
    """Compute the mean ECE of a calibrated model with these confidences, from random outcomes."""
    generator = torch.Generator().manual_seed(seed)
    drawn = confidence.double().expand(DRAWS, *confidence.shape)
    return float(ece(drawn, torch.bernoulli(drawn, generator=generator), bins=BINS).mean())


def summary_row(answers: Answers) -> Row:
    """Measure one network upright, over the three planes, and over all rotations."""
    names = ("data", "network", "seed", "train", "steps", "parameters")
    row = {name: answers.row[name] for name in names}
    row["test"] = len(answers.arrays["labels"])
    row |= {name: answers.row[name] for name in ("train_seconds", "ask_seconds")}
    row |= {f"change_{name}": answers.row[f"change_{name}"] for name in GROUPS}
    for name, group in answers.groups.items():
        confidence, correct = answers.pairs(name)
        weights = torch.from_numpy(group.weights)
        right = correct.double().mean(1)
        if name == "slices":
            still = confidence[group.identity], correct[group.identity]
            row |= {
                "accuracy_upright": float(still[1].double().mean()),
                "confidence_upright": float(still[0].mean()),
                "ece_upright": float(ece(*still, bins=BINS)),
                "ece_upright_calibrated": calibrated_ece(still[0], row["seed"]),
            }
        row |= {
            f"accuracy_{name}": float(weights @ right),
            f"worst_{name}": float(right.min()),
            f"best_{name}": float(right.max()),
            f"confidence_{name}": float(weights @ confidence.double().mean(1)),
            f"ece_{name}": float(ece(confidence.flatten(), correct.flatten(), bins=BINS)),
            f"always_{name}": float(correct.all(0).double().mean()),
            f"never_{name}": float((~correct).all(0).double().mean()),
        }
    return row


def element_rows(kinds: Sequence[Sequence[Answers]], name: str) -> Sequence[Row]:
    """Measure accuracy, confidence and ECE of every kind of network at each rotation.

    The seeds of a kind count together; columns are called `DATA/NETWORK/QUANTITY`.
    """
    columns = {**kinds[0][0].groups[name].coords}
    for alike in kinds:
        both = zip(*(answers.pairs(name) for answers in alike), strict=True)
        confidence, correct = (torch.cat(parts, 1) for parts in both)
        found = {
            "accuracy": correct.double().mean(1),
            "confidence": confidence.double().mean(1),
            "ece": ece(confidence, correct, bins=BINS),
        }
        for quantity, values in found.items():
            column = f"{alike[0].row['data']}/{alike[0].row['network']}/{quantity}"
            columns[column] = values.numpy().round(4)
    return rows_of({}, columns)


def _class_rows(alike: Sequence[Answers]) -> Iterator[Row]:
    """Measure each class upright, over all rotations and at each, and how often it is predicted."""
    first = alike[0]
    identity, labels = first.groups["ball"].identity, first.arrays["labels"]
    predicted = np.stack([answers.arrays["ball/predicted"] for answers in alike])
    correct = predicted == labels[:, None]
    for label, name in enumerate(first.arrays["classes"].tolist()):
        rows = labels == label
        yield {
            "data": first.row["data"],
            "network": first.row["network"],
            "class": name,
            "samples": int(rows.sum()),
            "share": float(rows.mean()),
            "accuracy_upright": float(correct[:, rows, identity].mean()),
            "accuracy_ball": float(correct[:, rows].mean()),
            "always_ball": float(correct[:, rows].all(2).mean()),
            "named_ball": float((predicted == label).mean()),
        }


def chosen_samples(
    scores: Mapping[str, np.ndarray], names: np.ndarray, identity: int
) -> dict[str, int]:
    """Choose the typical bathtub, and the cloud whose recognition depends most on the rotation.

    Of the clouds that all networks with attention recognize upright (0.9 or more, or the best
    half if there is none): `bathtub`, as in the paper, the one for which the smallest probability
    of the augmented network is the median of all bathtubs, and `lost`, the cloud of any class
    where it varies most.

    Args:
        scores: Probabilities of the true class by network, `[sample, element]`.
        names: Class of each sample.
        identity: Index of the identity.
    """
    augmented = scores["attention-augmented"]
    attentive = [values for name, values in scores.items() if name.startswith("attention")]
    upright = np.min([values[:, identity] for values in attentive], axis=0)
    bathtubs = np.flatnonzero(names == BATHTUB)
    known = bathtubs[upright[bathtubs] >= min(0.9, float(np.median(upright[bathtubs])))]
    lowest = augmented[known].min(1)
    sure = np.flatnonzero(upright >= min(0.9, float(np.median(upright))))
    return {
        "bathtub": int(known[np.argsort(lowest)[len(known) // 2]]),
        "lost": int(sure[augmented[sure].std(1).argmax()]),
    }


def _chosen_row(answers: Answers, name: str, sample: int) -> Row:
    """Describe a chosen cloud: its place among the test clouds, its class, and the rotations."""
    return {
        "name": name,
        "data": answers.row["data"],
        "row": sample,
        "class": str(answers.arrays["classes"][answers.arrays["labels"][sample]]),
        **{group: answers.groups[group].spec for group in GROUPS},
    }


def worst(settings: training.Settings, results: Results) -> None:
    """Search the worst rotation between the scanned ones, of the first test clouds of each class.

    The networks are those of the first training.
    """
    chosen = finished(
        [training.Trial(SEARCHED, name, training.WHOLE) for name in training.NETWORKS], results.work
    )
    networks = {
        trial.network: training.trained_network(trial, arrays, settings)
        for trial, (_, arrays) in zip(chosen, read_trained(chosen, results.work), strict=True)
    }
    _, test = training.unpack(results.work / f"{SEARCHED}.npz")
    rows = training.first_of_each(test, EACH)
    data = test.points[rows, : settings.points], test.labels[rows]
    found = search_failures(networks, data, settings.ball, Classification(Points()))
    results.write("worst", [{"network": name, **counts} for name, counts in found.items()])
