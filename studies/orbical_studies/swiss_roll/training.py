"""Both networks in every world: trained, measured, and held against what the symmetry allows."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

import numpy as np
import torch
from torch import Tensor, nn

from orbical.bounds import OrbitTable, classification
from orbical.calibration import ece, top_label
from orbical.training import fit
from orbical_studies.data.spirals import SwissRoll, swap_of_heights, swiss_roll
from orbical_studies.networks.swiss_roll import HeightInvariant, parameters_of, perceptron

from ..pages import Row
from .settings import BATCH, INVARIANT, LEARNING_RATE, PLAIN, WORLDS, Settings


class Shuffled:
    """Batches of a training set, in a new order each time they are gone through."""

    def __init__(self, x: Tensor, label: Tensor, batch: int, seed: int) -> None:
        self.x, self.label, self.batch = x, label, batch
        self.generator = torch.Generator().manual_seed(seed)

    def __len__(self) -> int:
        return -(-len(self.x) // self.batch)

    def __iter__(self) -> Iterator[tuple[Tensor, Tensor]]:
        order = torch.randperm(len(self.x), generator=self.generator)
        for rows in order.split(self.batch):
            yield self.x[rows], self.label[rows]


def split(roll: SwissRoll, settings: Settings, seed: int) -> tuple[SwissRoll, SwissRoll]:
    """Split a world into training points, drawn at random, and the test world.

    The test world keeps whole orbits, so that its ceiling is the world's own.

    Args:
        roll: the whole world.
        settings: how many, and every so-manieth index.
        seed: of the draw.

    Returns:
        training points and test points.
    """
    count = len(roll) // 2
    tested = np.tile((np.arange(count) + 1) % settings.thinning == 0, 2)
    rest = np.flatnonzero(~tested)
    drawn = np.random.default_rng(seed).choice(rest, settings.train, replace=False)
    return roll.take(drawn), roll.take(np.flatnonzero(tested))


def networks(settings: Settings, seed: int) -> dict[str, nn.Module]:
    """Make both networks from a seed."""
    torch.manual_seed(seed)
    return {
        INVARIANT: HeightInvariant(settings.width),
        PLAIN: perceptron(settings.plain_width),
    }


def measure(network: nn.Module, test: SwissRoll, settings: Settings, seed: int) -> Row:
    """Measure a network on the test world, and on small test sets drawn from it.

    Args:
        network: gives logits.
        test: the test world.
        settings: bins, and the size and number of small sets.
        seed: of the draws.

    Returns:
        `accuracy`, `ece` over the whole test world, the mean `confidence`; `small_ece`, its mean
        over small sets, with their standard deviation `small_spread` and what a calibrated model
        of the same confidences shows on them, `small_calibrated`; `gap`, the largest change of
        a probability when the heights are swapped.
    """
    x = torch.from_numpy(test.x).float()
    label = torch.from_numpy(test.label)
    probs = network(x).double().softmax(1)
    swapped = x * torch.tensor([1.0, 1.0, -1.0]) + torch.tensor([0.0, 0.0, 1.0])
    gap = (network(swapped).double().softmax(1) - probs).abs().max()
    confidence, correct = top_label(probs=probs, labels=label)
    generator = torch.Generator().manual_seed(seed)
    drawn = torch.randint(len(x), (settings.draws, settings.small), generator=generator)
    shown = confidence[drawn]
    small = ece(shown, correct[drawn], bins=settings.bins)
    calibrated = torch.bernoulli(shown, generator=generator)
    return {
        "accuracy": float(correct.double().mean()),
        "confidence": float(confidence.mean()),
        "ece": float(ece(confidence, correct, bins=settings.bins)),
        "small_ece": float(small.mean()),
        "small_spread": float(small.std()),
        "small_calibrated": float(ece(shown, calibrated, bins=settings.bins).mean()),
        "gap": float(gap),
    }


def bounds_of(network: nn.Module, test: SwissRoll, settings: Settings) -> Row:
    """Return what the symmetry allows a height-invariant network with these confidences.

    The fibers are the bins of the ECE, on the exact table of orbits.

    Returns:
        `sharp_lower`, `sharp_upper` of the ECE, and the `table_ece` that lies between them.
    """
    probs = network(torch.from_numpy(test.x).float()).double().softmax(1)
    confidence, predicted = probs.max(1)
    # Rounding differs between the two heights by 1e-8: one answer stands for the whole orbit.
    first, orbit = np.unique(test.orbit, return_index=True, return_inverse=True)[1:]
    table = OrbitTable.from_labels(
        test.orbit,
        test.label,
        confidence=confidence.numpy()[first][orbit],
        predicted=predicted.numpy()[first][orbit],
    )
    found = classification(table, bins=settings.bins)
    return {
        "sharp_lower": float(found["sharp_lower"]),
        "sharp_upper": float(found["sharp_upper"]),
        "table_ece": float(found["ece"]),
    }


def ceiling_of(test: SwissRoll) -> float:
    """The accuracy ceiling of height-invariant models, by matching points under the swap.

    >>> _, test = split(swiss_roll(0.25, 0.5, points=320), Settings(train=1, points=320), seed=0)
    >>> ceiling_of(test)
    0.75
    """
    return OrbitTable.from_data(test.x, test.label, swap_of_heights()).accuracy_ceiling


def run(settings: Settings, worlds: Sequence[tuple[float, float]] = WORLDS) -> Iterator[Row]:
    """Train both networks in every world with every seed; give one row a measurement.

    Args:
        settings: sizes.
        worlds: shares of correct and incorrect invariance.
    """
    for correct, incorrect in worlds:
        roll = swiss_roll(correct, incorrect, settings.points)
        ceiling = ceiling_of(split(roll, settings, 0)[1])
        for seed in range(settings.seeds):
            train, test = split(roll, settings, seed)
            for name, network in networks(settings, seed).items():
                head = {
                    "correct": correct,
                    "incorrect": incorrect,
                    "network": name,
                    "seed": seed,
                    "parameters": parameters_of(network),
                    "train": len(train),
                    "test": len(test),
                    "small": settings.small,
                    "draws": settings.draws,
                    "ceiling": ceiling,
                }
                for row in _trained(network, train, test, settings, seed):
                    yield {**head, **row}


def _trained(
    network: nn.Module, train: SwissRoll, test: SwissRoll, settings: Settings, seed: int
) -> list[Row]:
    rows: list[Row] = []
    started = time.process_time()

    def validate(model: nn.Module, epoch: int) -> dict[str, float]:
        if epoch in settings.epochs:
            row = {"epoch": epoch, **measure(model, test, settings, seed)}
            if isinstance(model, HeightInvariant):
                row |= bounds_of(model, test, settings)
            rows.append({**row, "seconds": time.process_time() - started})
        return {}

    fit(
        network,
        Shuffled(torch.from_numpy(train.x).float(), torch.from_numpy(train.label), BATCH, seed),
        optimizer=torch.optim.Adam(network.parameters(), lr=LEARNING_RATE),
        epochs=max(settings.epochs),
        validate=validate,
    )
    return rows
