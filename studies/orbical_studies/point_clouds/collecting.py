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

from orbical.calibration import ece
from orbical.groups import Group, parse

from ..framework import Results
from ..framework.results import Row
from ..framework.training import read_trained
from .training import Settings, trials

BINS, DRAWS = 15, 100
GROUPS = ("slices", "ball")


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
        confidence = self.arrays[f"{group}/confidence"].astype(np.float32)
        correct = self.arrays[f"{group}/predicted"] == self.arrays["labels"][:, None]
        return torch.from_numpy(confidence.T.copy()), torch.from_numpy(correct.T.copy())


def collect(settings: Settings, results: Results) -> None:
    """Write the tables of the page from the answers."""
    every = [Answers(row, arrays) for row, arrays in read_trained(trials(settings), results.work)]
    kinds = [
        list(alike) for _, alike in groupby(every, lambda a: (a.row["data"], a.row["network"]))
    ]
    results.write("summary", map(summary_row, every))
    results.write("classes", [row for alike in kinds for row in class_rows(alike)])
    for name in GROUPS:
        results.write(name, element_rows(kinds, name))
    scores = {
        alike[0].row["network"]: alike[0].arrays["slices/score"].astype(np.float32)
        for alike in kinds
        if alike[0].row["data"] == every[0].row["data"]
    }
    chosen = chosen_samples(scores, every[0].groups["slices"].identity)
    columns = {f"{n}/{k}": v[row] for n, row in chosen.items() for k, v in scores.items()}
    lines = zip(*columns.values(), strict=True)
    rounded = ([round(float(v), 4) for v in line] for line in lines)
    results.write("individual", [dict(zip(columns, line, strict=True)) for line in rounded])
    results.write("chosen", [chosen_row(every[0], *item) for item in chosen.items()])


def calibrated_ece(confidence: Tensor, seed: int = 0) -> float:
    """Compute the mean ECE of a calibrated model with these confidences, from random outcomes."""
    generator = torch.Generator().manual_seed(seed)
    drawn = confidence.double().expand(DRAWS, *confidence.shape)
    return float(ece(drawn, torch.bernoulli(drawn, generator=generator), bins=BINS).mean())


def summary_row(answers: Answers) -> Row:
    """Measure one network upright, over the three planes, and over all rotations."""
    names = ("data", "network", "seed", "train", "steps")
    row = {name: answers.row[name] for name in names}
    row["test"] = len(answers.arrays["labels"])
    row |= {name: answers.row[name] for name in ("train_seconds", "ask_seconds")}
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
            f"change_{name}": float((confidence.amax(0) - confidence.amin(0)).max()),
            f"always_{name}": float(correct.all(0).double().mean()),
            f"never_{name}": float((~correct).all(0).double().mean()),
        }
    return row


def element_rows(kinds: Sequence[Sequence[Answers]], name: str) -> list[Row]:
    """Measure accuracy, confidence and ECE of every kind of network at each rotation.

    The seeds of a kind count together; columns are called `DATA/NETWORK/QUANTITY`.
    """
    coords = kinds[0][0].groups[name].coords
    columns = {key: np.asarray(values).tolist() for key, values in coords.items()}
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
            columns[column] = [round(value, 4) for value in values.tolist()]
    lines = zip(*columns.values(), strict=True)
    return [dict(zip(columns, line, strict=True)) for line in lines]


def class_rows(alike: Sequence[Answers]) -> Iterator[Row]:
    """Measure each class upright and over all rotations, and how often it is predicted."""
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
            "named_ball": float((predicted == label).mean()),
        }


def chosen_samples(scores: Mapping[str, np.ndarray], identity: int) -> dict[str, int]:
    """Choose a cloud that the augmented network recognizes at every rotation, and one it does not.

    Of the clouds that the plain network recognizes upright (0.9 or more): `held`, where the
    augmented network's smallest probability of the true class is largest, and `lost`, where it
    varies most.

    Args:
        scores: Probabilities of the true class by network, `[sample, element]`.
        identity: Index of the identity.
    """
    upright = scores["plain"][:, identity]
    known = np.flatnonzero(upright >= min(0.9, float(np.median(upright))))
    augmented = scores["augmented"][known]
    return {
        "held": int(known[augmented.min(1).argmax()]),
        "lost": int(known[augmented.std(1).argmax()]),
    }


def chosen_row(answers: Answers, name: str, sample: int) -> Row:
    """Describe a chosen cloud: its row in the data set, its class, and the rotations."""
    return {
        "name": name,
        "data": answers.row["data"],
        "row": int(answers.arrays["rows"][sample]),
        "class": str(answers.arrays["classes"][answers.arrays["labels"][sample]]),
        **{group: answers.groups[group].spec for group in GROUPS},
    }
