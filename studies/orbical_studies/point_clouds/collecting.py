"""The point-cloud study's numbers: from the answers of all networks to small CSV files."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from orbical.calibration import ece
from orbical.errors import InputError
from orbical.groups import Group, parse
from orbical.zoo.pointnet import NAMES as NETWORKS

from ..pages import Row, write_csv
from .settings import DATA_SETS

BINS = 15
DRAWS = 100


@dataclass(frozen=True)
class Answers:
    """What one kind of network answered on one data set, for all seeds."""

    data_set: str
    network: str
    arrays: dict[str, NDArray]

    @property
    def labels(self) -> NDArray:
        """The true classes `[sample]`."""
        return self.arrays["labels"]

    @property
    def classes(self) -> list[str]:
        """The names of the classes."""
        return [str(name) for name in self.arrays["classes"]]

    @property
    def seeds(self) -> range:
        """The seeds."""
        return range(int(self.arrays["trained"][2]))

    @cached_property
    def groups(self) -> dict[str, Group]:
        """The groups by name: `slices` and `ball`."""
        texts = (str(entry).partition("=") for entry in self.arrays["groups"])
        return {name: parse(text) for name, _, text in texts}

    def correct(self, group: str, seed: int) -> NDArray:
        """Whether the predicted class is the true one, `[sample, element]`."""
        return self.predicted(group, seed) == self.labels[:, None]

    def predicted(self, group: str, seed: int) -> NDArray:
        """The predicted class, `[sample, element]`."""
        return self.arrays[f"{seed}/{group}/predicted"]

    def confidence(self, group: str, seed: int) -> NDArray:
        """The largest class probability, `[sample, element]`."""
        return self.arrays[f"{seed}/{group}/confidence"].astype(np.float32)

    def score(self, group: str) -> NDArray:
        """The first seed's probability of the true class, `[sample, element]`."""
        return self.arrays[f"0/{group}/score"].astype(np.float32)


def read_answers(folder: Path) -> list[Answers]:
    """Read all files that `train` wrote."""
    found = []
    for data_set in DATA_SETS:
        for network in NETWORKS:
            path = folder / f"{data_set}-{network}.npz"
            if path.is_file():
                with np.load(path, allow_pickle=False) as file:
                    found.append(Answers(data_set, network, dict(file)))
    if not found:
        raise InputError(f"out: no answers in {str(folder)!r}; run the step `train` first")
    return found


def pairs_of(answers: Answers, group: str, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Confidence and correctness, element first: `[element, sample]`."""
    return (
        torch.from_numpy(answers.confidence(group, seed).T.copy()),
        torch.from_numpy(answers.correct(group, seed).T.copy()),
    )


def calibrated_ece(confidence: torch.Tensor, seed: int = 0) -> float:
    """The mean ECE that a calibrated model of these confidences shows on so many samples."""
    generator = torch.Generator().manual_seed(seed)
    drawn = confidence.double().expand(DRAWS, *confidence.shape)
    return float(ece(drawn, torch.bernoulli(drawn, generator=generator), bins=BINS).mean())


def summary_rows(answers: Answers) -> Iterator[Row]:
    """One row a seed: upright, over the three planes, and over all rotations alike."""
    for seed in answers.seeds:
        trained, asked = answers.arrays[f"{seed}/seconds"]
        row: Row = {
            "data": answers.data_set,
            "network": answers.network,
            "seed": seed,
            "train": int(answers.arrays["trained"][0]),
            "steps": int(answers.arrays["trained"][1]),
            "test": len(answers.labels),
            "train_seconds": float(trained),
            "ask_seconds": float(asked),
        }
        for name, group in answers.groups.items():
            confidence, correct = pairs_of(answers, name, seed)
            weights = torch.from_numpy(group.weights)
            right = correct.double().mean(1)
            if name == "slices":
                still = confidence[group.identity], correct[group.identity]
                row |= {
                    "accuracy_upright": float(still[1].double().mean()),
                    "confidence_upright": float(still[0].mean()),
                    "ece_upright": float(ece(*still, bins=BINS)),
                    "ece_upright_calibrated": calibrated_ece(still[0], seed),
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
        yield row


def element_rows(all_answers: list[Answers], name: str) -> list[Row]:
    """One row an element: accuracy, confidence and ECE of every network, seeds together."""
    group = all_answers[0].groups[name]
    rows: list[Row] = [
        {key: values[k].item() for key, values in group.coords.items()} for k in range(len(group))
    ]
    for answers in all_answers:
        both = [pairs_of(answers, name, seed) for seed in answers.seeds]
        confidence, correct = (torch.cat(parts, 1) for parts in zip(*both, strict=True))
        found = {
            "accuracy": correct.double().mean(1),
            "confidence": confidence.double().mean(1),
            "ece": ece(confidence, correct, bins=BINS),
        }
        for key, values in found.items():
            for row, value in zip(rows, values.tolist(), strict=True):
                row[column(answers.data_set, answers.network, key)] = round(value, 4)
    return rows


def column(data_set: str, network: str, quantity: str) -> str:
    """The name of a column in the files of elements.

    >>> column("modelnet10", "plain", "ece")
    'modelnet10/plain/ece'
    """
    return f"{data_set}/{network}/{quantity}"


def class_rows(answers: Answers) -> Iterator[Row]:
    """One row a class, seeds together: right upright, right and named under all rotations."""
    identity = answers.groups["ball"].identity
    correct = np.stack([answers.correct("ball", seed) for seed in answers.seeds])
    named = np.stack([answers.predicted("ball", seed) for seed in answers.seeds])
    for label, name in enumerate(answers.classes):
        rows = answers.labels == label
        yield {
            "data": answers.data_set,
            "network": answers.network,
            "class": name,
            "samples": int(rows.sum()),
            "share": float(rows.mean()),
            "accuracy_upright": float(correct[:, rows, identity].mean()),
            "accuracy_ball": float(correct[:, rows].mean()),
            "named_ball": float((named == label).mean()),
        }


def chosen_samples(all_answers: list[Answers]) -> dict[str, int]:
    """Two clouds of the first data set: held by the augmented network everywhere, and not.

    Of the clouds that the plain network knows upright (0.9 or more): `held`, where the augmented
    network's smallest probability of the true class is largest, and `lost`, where it varies most.
    """
    scores = {
        answers.network: answers.score("slices")
        for answers in all_answers
        if answers.data_set == all_answers[0].data_set
    }
    identity = all_answers[0].groups["slices"].identity
    upright = scores["plain"][:, identity]
    known = np.flatnonzero(upright >= min(0.9, float(np.median(upright))))
    augmented = scores["augmented"][known]
    return {
        "held": int(known[augmented.min(1).argmax()]),
        "lost": int(known[augmented.std(1).argmax()]),
    }


def individual_rows(all_answers: list[Answers]) -> list[Row]:
    """One row an element: the probability of the true class for the two chosen clouds."""
    mine = [answers for answers in all_answers if answers.data_set == all_answers[0].data_set]
    group = mine[0].groups["slices"]
    chosen = chosen_samples(all_answers)
    return [
        {
            f"{name}/{answers.network}": round(float(answers.score("slices")[sample, k]), 4)
            for name, sample in chosen.items()
            for answers in mine
        }
        for k in range(len(group))
    ]


def chosen_rows(all_answers: list[Answers]) -> list[Row]:
    """Which clouds were chosen: their rows in the data set and their classes."""
    first = all_answers[0]
    return [
        {
            "name": name,
            "data": first.data_set,
            "row": int(first.arrays["rows"][sample]),
            "class": first.classes[first.labels[sample]],
            "slices": first.groups["slices"].spec,
            "ball": first.groups["ball"].spec,
        }
        for name, sample in chosen_samples(all_answers).items()
    ]


def collect(results: Path, folder: Path) -> list[Path]:
    """Write the CSV files of the page from the answers.

    Args:
        results: what `train` wrote.
        folder: where the CSV files go.
    """
    answers = read_answers(results)
    return [
        write_csv(folder / "summary.csv", [row for each in answers for row in summary_rows(each)]),
        write_csv(folder / "classes.csv", [row for each in answers for row in class_rows(each)]),
        write_csv(folder / "slices.csv", element_rows(answers, "slices")),
        write_csv(folder / "ball.csv", element_rows(answers, "ball")),
        write_csv(folder / "individual.csv", individual_rows(answers)),
        write_csv(folder / "chosen.csv", chosen_rows(answers)),
    ]
