"""Train both networks in every world, and measure them beside what the symmetry allows."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from orbical.bounds import OrbitTable, classification
from orbical.calibration import ece, top_label
from orbical.errors import InputError

from .. import framework
from ..framework import Results, option
from ..framework.training_loop import AfterStep, Rows, fit_epochs
from ..networks import parameters_of
from .networks import HeightInvariant, perceptron
from .spirals import SwissRoll, swap_of_heights, swiss_roll

INVARIANT, PLAIN = "height-invariant", "perceptron"
BATCH, LEARNING_RATE = 128, 1e-3
WORLDS = (*((e / 8, 1 - e / 8) for e in range(9)), (0.0, 0.0))
"""Shares of correct and incorrect invariance: the line of Fig. 3, then the all-extrinsic world."""


@dataclass(frozen=True)
class Settings(framework.TrainingSettings):
    """What is trained and measured."""

    seeds: int = option(5, "networks of each kind in each world", least=1)
    extrinsic_seeds: int = option(8, "the same, in worlds with an extrinsic share", least=2)
    points: int = option(100_000, "points on each spiral")
    epochs: tuple[int, ...] = option((100, 300, 1000), "when to measure", least=1)
    width: int = option(128, "hidden width of the invariant network", least=1)
    plain_width: int = option(181, "hidden width of the perceptron", least=1)
    train: int = option(200, "training points", least=1)
    bins: int = option(100, "bins of the ECE", least=1)
    small: int = option(200, "points of a small test set", least=1)
    draws: int = option(200, "small test sets to draw", least=1)
    paper_width: int = 512  # hidden width of both networks in the paper
    thinning: int = 10  # the test set is every tenth index; training points come from the rest

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.thinning < 2 or self.points % (16 * self.thinning):
            raise InputError(
                "points, thinning",
                "points that are a multiple of 16 times the thinning, and a thinning of at least 2",
                f"{self.points} and {self.thinning}",
            )


def split(roll: SwissRoll, settings: Settings, seed: int) -> tuple[SwissRoll, SwissRoll]:
    """Split a world into random training points and the test world, which keeps whole orbits."""
    tested = np.tile((np.arange(len(roll) // 2) + 1) % settings.thinning == 0, 2)
    rest = np.flatnonzero(~tested)
    drawn = np.random.default_rng(seed).choice(rest, settings.train, replace=False)
    return roll.take(drawn), roll.take(np.flatnonzero(tested))


def measure(network: nn.Module, test: SwissRoll, settings: Settings, seed: int) -> dict[str, float]:
    """Measure a network on the test world, and on small test sets drawn from it.

    Returns:
        `accuracy`, mean `confidence` and `ece` on the test world; the mean `small_ece` over small
        test sets, its standard deviation `small_spread`, and `small_calibrated`, what a calibrated
        model with the same confidences shows on them; `gap`, the largest change of a probability
        under the swap.
    """
    x, label = torch.from_numpy(test.x).float(), torch.from_numpy(test.label)
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


def _ece_interval(network: nn.Module, test: SwissRoll, settings: Settings) -> dict[str, float]:
    """Compute the ECE interval of invariant networks with these confidences, fibers = ECE bins."""
    probs = network(torch.from_numpy(test.x).float()).double().softmax(1)
    # Rounding differs between the heights by 1e-8: one answer stands for the whole orbit.
    first, orbit = np.unique(test.orbit, return_index=True, return_inverse=True)[1:]
    confidence, predicted = (part.numpy()[first][orbit] for part in probs.max(1))
    table = OrbitTable.from_labels(
        test.orbit, test.label, confidence=confidence, predicted=predicted
    )
    found = classification(table, bins=settings.bins)
    columns = {"sharp_lower": "forced_ece", "sharp_upper": "sharp_upper", "table_ece": "ece"}
    return {column: float(found[name]) for column, name in columns.items()}


def accuracy_ceiling(test: SwissRoll) -> float:
    """Compute the accuracy ceiling of invariant models by matching points under the swap."""
    return OrbitTable.from_data(test.x, test.label, swap_of_heights()).accuracy_ceiling


def measurements(
    settings: Settings,
    worlds: Sequence[tuple[float, float]] = WORLDS,
    seeds: Iterable[int] | None = None,
) -> Iterator[dict[str, Any]]:
    """Train both networks in every world with every seed, and yield one row a measurement."""
    for correct, incorrect in worlds:
        roll = swiss_roll(correct, incorrect, settings.points)
        ceiling = accuracy_ceiling(split(roll, settings, 0)[1])
        for seed in range(settings.seeds) if seeds is None else seeds:
            train, test = split(roll, settings, seed)
            torch.manual_seed(seed)
            networks = HeightInvariant(settings.width), perceptron(settings.plain_width)
            for name, network in zip((INVARIANT, PLAIN), networks, strict=True):
                head = {
                    **{"correct": correct, "incorrect": incorrect, "network": name, "seed": seed},
                    **{"parameters": parameters_of(network), "train": len(train)},
                    **{"test": len(test), "small": settings.small, "draws": settings.draws},
                    "ceiling": ceiling,
                }
                for row in _train(network, train, test, settings, seed):
                    yield head | row


def fit(
    network: nn.Module,
    data: SwissRoll,
    epochs: int,
    seed: int,
    after_epoch: AfterStep | None = None,
) -> None:
    """Train a network on points by cross-entropy, with Adam."""
    x, label = torch.from_numpy(data.x).float(), torch.from_numpy(data.label)

    def objective(network: nn.Module, rows: Tensor) -> Tensor:
        return cross_entropy(network(x[rows]), label[rows])

    batches = Rows(len(x), BATCH, torch.Generator().manual_seed(seed))
    fit_epochs(network, batches, epochs, LEARNING_RATE, objective, after_epoch=after_epoch)


def _train(
    network: nn.Module, train: SwissRoll, test: SwissRoll, settings: Settings, seed: int
) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    started = time.process_time()

    def watch(epoch: int, loss: float) -> None:
        if epoch in settings.epochs:
            row = {"epoch": epoch, **measure(network, test, settings, seed)}
            if isinstance(network, HeightInvariant):
                row |= _ece_interval(network, test, settings)
            rows.append({**row, "seconds": time.process_time() - started})

    fit(network, train, max(settings.epochs), seed, watch)
    return rows


def run(settings: Settings, results: Results) -> None:
    """Train and measure everything, and write the table `results`."""
    rows = []
    for row in measurements(settings):
        rows.append(row)
        print(
            f"correct {row['correct']:.3f} {row['network']:16} seed {row['seed']} "
            f"epoch {row['epoch']:5}: accuracy {row['accuracy']:.3f}, ECE {row['ece']:.3f}",
            flush=True,
        )
    results.write("results", rows)
