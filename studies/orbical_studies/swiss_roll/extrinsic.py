"""The third share: worlds whose swap of heights leads off the data, and the shift along it.

Where the invariance is extrinsic the swapped point never occurs. If the symmetry were true there as
well, it would have the label of the point itself: this is the *shift*, a test set of swapped points
that neither network has seen the like of.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from orbical.bounds import taxonomy
from orbical.calibration import ece, top_label

from ..framework import Results
from .networks import HeightInvariant, perceptron
from .spirals import SwissRoll, swap_of_heights, swiss_roll
from .training import INVARIANT, PLAIN, Settings, accuracy_ceiling, fit, split

TRIANGLE = (
    *((1.0, 0.0), (0.75, 0.0), (0.5, 0.0), (0.25, 0.0), (0.0, 0.0)),
    *((0.0, 0.25), (0.0, 0.5), (0.0, 0.75)),
    *((0.25, 0.25),),
)
"""Shares of correct and incorrect invariance. The rest, 0 to 1, is extrinsic; it takes the place of
the correct share, of the incorrect one, or of both."""
NEAR, FAR = 0.001, 0.05
"""Distances within which a swapped point is in the data: of the test world, whose points coincide,
and of the training points, a quarter of the distance between two turns of a spiral."""


def run(settings: Settings, results: Results) -> None:
    """Train both networks in every world of the triangle, and write `extrinsic` and `kinds`."""
    rows, kinds = [], []
    for correct, incorrect in TRIANGLE:
        world = {"correct": correct, "incorrect": incorrect}
        roll = swiss_roll(correct, incorrect, settings.points)
        for seed in range(settings.extrinsic_seeds):
            train, test = split(roll, settings, seed)
            kinds.append({**world, "seed": seed, **_kinds_of(train, FAR)})
            if seed == 0:
                kinds.append({**world, **_kinds_of(test, NEAR)})
                ceiling = accuracy_ceiling(test)
            for row in _trained(train, test, settings, seed):
                rows.append({**world, "ceiling": ceiling, "seed": seed, **row})
                print(
                    f"correct {correct:g} incorrect {incorrect:g} {row['network']:16} seed {seed} "
                    f"{row['on']}: accuracy {row['accuracy']:.3f}, ECE {row['ece']:.3f}",
                    flush=True,
                )
    results.write("extrinsic", rows)
    results.write("kinds", kinds)


def _kinds_of(points: SwissRoll, support: float) -> dict[str, float]:
    """Measure the taxonomy of the swap: the shares that are correct, incorrect and extrinsic.

    >>> roll = swiss_roll(0.5, 0.25, points=1600)
    >>> {name: round(share, 2) for name, share in _kinds_of(roll, 1e-6).items()}
    {'measured_correct': 0.5, 'measured_incorrect': 0.25, 'measured_extrinsic': 0.25}
    """
    found = taxonomy(points.x, points.label, swap_of_heights(), support=support)
    names = ("measured_correct", "measured_incorrect", "measured_extrinsic")
    return dict(zip(names, found.by_element()[1].tolist(), strict=True))


def shifted(test: SwissRoll) -> SwissRoll:
    """Return the points of the test world whose swapped one never occurs, swapped."""
    _, orbit, count = np.unique(test.orbit, return_inverse=True, return_counts=True)
    alone = test.take(np.flatnonzero(count[orbit] == 1))
    return SwissRoll(alone.x * [1, 1, -1] + [0, 0, 1], alone.label, alone.orbit)


def _trained(
    train: SwissRoll, test: SwissRoll, settings: Settings, seed: int
) -> Iterator[dict[str, Any]]:
    """Train both networks; yield what they do on the data and, where there is one, on the shift."""
    torch.manual_seed(seed)
    networks = HeightInvariant(settings.width), perceptron(settings.plain_width)
    for name, network in zip((INVARIANT, PLAIN), networks, strict=True):
        fit(network, train, max(settings.epochs), seed)
        for on, points in (("data", test), ("shift", shifted(test))):
            if len(points):
                head = {"network": name, "on": on, "points": len(points)}
                yield head | _measured(network.eval(), points, settings.bins)


@torch.no_grad()
def _measured(network: nn.Module, points: SwissRoll, bins: int) -> dict[str, float]:
    probs: Tensor = network(torch.from_numpy(points.x).float()).double().softmax(1)
    confidence, correct = top_label(probs=probs, labels=torch.from_numpy(points.label))
    return {
        "accuracy": float(correct.double().mean()),
        "confidence": float(confidence.mean()),
        "ece": float(ece(confidence, correct, bins=bins)),
    }
