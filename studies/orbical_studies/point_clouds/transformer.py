"""A Point Transformer, the paper's network, on ModelNet10: upright and with rotations in training.

Vector attention over 16 neighbors at 512, 128 and 32 points, invariant under permutations of the
points; the same steps, clouds and rotations as the study's other networks. It is evaluated on the
first test clouds of each class, upright and at the rotations that are spread evenly.

The rule, written before the run: *the augmented network is the more invariant one* (section 3.3,
Fig. 11) is confirmed if it loses clearly less from upright to all rotations than the one trained
upright (paired over test clouds, p < 0.05, the same sign in every training), contradicted if
clearly more, else open. *It pays with accuracy upright* (ours): clearly less accurate upright. *A
bathtub is recognized at every rotation* (Fig. 11): the lower end of Wilson's interval of the share
of test bathtubs that are right at all rotations is above one half.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from orbical.calibration import compare_means
from orbical.groups import parse

from ..framework import Results, rows_of, where
from ..framework.statistics import wilson
from ..framework.training import Trained, device, finished, read_trained
from ..framework.training import train as train_all
from ..networks import parameters_of
from ..networks.point_clouds import PointTransformer
from ..zoo_training import build
from .collecting import BATHTUB
from .training import Halves, Settings, Trial, evaluate, first_of_each, fit, unpack

if TYPE_CHECKING:
    from pandas import DataFrame

DATA, FOLDER, EACH = "modelnet10", "transformer", 30
UPRIGHT, AUGMENTED = "transformer", "transformer-augmented"
SEEDS = 3


def trials(settings: Settings) -> Iterator[Trial]:
    """List the trainings.

    >>> len(list(trials(Settings())))
    6
    """
    for seed in range(min(SEEDS, settings.seeds)):
        yield from (Trial(DATA, network, seed) for network in (AUGMENTED, UPRIGHT))


def train_transformer(settings: Settings, results: Results) -> None:
    """Train the networks, and evaluate each at every rotation."""
    work = results.work / FOLDER
    train_all(trials(settings), settings, work, partial(_load, settings, results.work), run)


def _load(settings: Settings, work: Path) -> tuple[Settings, Halves]:
    return settings, unpack(work / f"{DATA}.npz")


def run(loaded: tuple[Settings, Halves], trial: Trial) -> Trained:
    """Train one network, and evaluate it on the first test clouds of each class."""
    settings, (training, test) = loaded
    network = build(lambda: PointTransformer(len(test.classes)), trial.seed).to(device())
    fit(network, training, trial, settings)
    rows = first_of_each(test, EACH)
    points, labels = test.points[rows, : settings.points], test.labels[rows]
    found = evaluate(network, points, labels, parse(settings.ball), settings.batch)
    arrays = {name: found[name] for name in ("predicted", "confidence")}
    row = {"train": len(training.labels), "steps": settings.steps, "ball": settings.ball}
    row["parameters"] = parameters_of(network)
    return row, {"labels": labels.numpy(), "classes": np.array(test.classes), **arrays}


def decided(rows: DataFrame) -> dict[str, Any]:
    """Apply the rule to the seeds that were trained both ways.

    Returns:
        `rows` with the loss from upright to all rotations, `seeds`, `means` of the accuracy by
        network, `each`, the test clouds of a class, `changes` of the loss and of
        the accuracy upright (the augmented network minus the other, over test clouds), their
        `signs` (0 where they are not clear), and `bathtubs`: the share that the augmented network
        recognizes at all rotations, with the ends of Wilson's interval.
    """
    rows = rows.assign(lost=rows["upright"] - rows["ball"])
    seeds = sorted(set.intersection(*(set(own["seed"]) for _, own in rows.groupby("network"))))
    paired = rows[rows["seed"].isin(seeds)]
    own = {
        name: [where(rows, network=name, seed=seed) for seed in seeds]
        for name in (AUGMENTED, UPRIGHT)
    }
    changes, signs = {}, {}
    for name in ("lost", "upright"):
        one, other = (np.stack([each[name] for each in own[way]]) for way in (AUGMENTED, UPRIGHT))
        changes[name] = found = compare_means(one.mean(0), other.mean(0))
        each = np.sign((one - other).mean(1))
        clear = float(found.p_value) < 0.05 and len({*each}) == 1
        signs[name] = int(each[0]) if clear else 0
    tubs = [each[each["class"] == BATHTUB]["always"] for each in own[AUGMENTED]]
    share, count = float(np.mean(tubs)), len(tubs[0])
    return {
        **{"rows": rows, "seeds": seeds, "changes": changes, "signs": signs},
        "means": paired.groupby("network")[["upright", "ball", "always"]].mean(),
        "each": count,
        "bathtubs": (share, *wilson(share * count, count)),
    }


def collect_transformer(settings: Settings, results: Results) -> None:
    """Write two tables: `transformer`, a row a training and test cloud, and `transformer-ball`.

    The second has a row a rotation: the accuracy of each network over trainings and test clouds.
    """
    work = results.work / FOLDER
    rows: list[dict[str, Any]] = []
    along: dict[str, list[np.ndarray]] = {}
    for line, arrays in read_trained(finished(trials(settings), work), work):
        group = parse(line["ball"])
        right = arrays["predicted"] == arrays["labels"][:, None]
        along.setdefault(line["network"], []).append(right.mean(0))
        for place, label in enumerate(arrays["labels"].tolist()):
            rows.append(
                {
                    **{name: line[name] for name in ("network", "seed", "parameters", "steps")},
                    "class": str(arrays["classes"][label]),
                    "upright": int(right[place, group.identity]),
                    "ball": float(right[place] @ group.weights),
                    "always": int(right[place].all()),
                    "confidence": float(arrays["confidence"][place].astype(float) @ group.weights),
                }
            )
    results.write("transformer", rows)
    means = {f"{DATA}/{name}/accuracy": np.mean(each, 0).round(4) for name, each in along.items()}
    results.write("transformer-ball", rows_of({}, {**group.coords, **means}))
