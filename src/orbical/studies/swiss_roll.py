"""Harmful invariance on the Swiss roll: accuracy against its ceiling, ECE inside its interval.

    orbical study swiss-roll            # train, measure, write CSV, tables and figures
    orbical study swiss-roll report     # the page again, from the CSV alone

Section 4.7.1 and Fig. 3 of Berman et al., "On Uncertainty Calibration for Equivariant Functions",
with several seeds, a test set that is a whole finite world, and bounds beside the measurements.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from orbical.bounds import OrbitTable, classification
from orbical.calibration import ece, top_label
from orbical.datasets.spirals import SwissRoll, swap_of_heights, swiss_roll
from orbical.errors import InputError, OrbicalError
from orbical.training import fit
from orbical.zoo.swiss_roll import HeightInvariant, parameters_of, perceptron

from .pages import Row, write_csv

PAGE = Path("docs/studies/swiss-roll.md")
INVARIANT, PLAIN = "height-invariant", "perceptron"
BATCH, LEARNING_RATE = 128, 1e-3


@dataclass(frozen=True)
class Settings:
    """What is trained and measured; the paper's choices where nothing else is said.

    Attributes:
        seeds: trainings of each network in each world, seeded 0, 1, ...
        train: training points (200).
        points: indices of each spiral (100,000).
        thinning: the test set is every so-manieth index of both spirals, and no other point is
            ever tested; training points come from the rest.
        epochs: when to measure; training ends at the last.
        width: hidden width of the invariant network; the perceptron's makes it of like size.
        plain_width: hidden width of the perceptron.
        bins: of the ECE (100).
        small: size of a small test set (200).
        draws: how many small test sets to draw.
    """

    seeds: int = 5
    train: int = 200
    points: int = 100_000
    thinning: int = 10
    epochs: tuple[int, ...] = (100, 300, 1000)
    width: int = 128
    plain_width: int = 181
    bins: int = 100
    small: int = 200
    draws: int = 200

    def __post_init__(self) -> None:
        for name in ("seeds", "train", "bins", "small", "draws", "width", "plain_width"):
            if getattr(self, name) < 1:
                raise InputError(f"{name}: got {getattr(self, name)}, expected at least 1")
        if self.thinning < 2 or self.points % (16 * self.thinning):
            raise InputError(
                f"points, thinning: got {self.points} and {self.thinning}; expected a thinning of "
                "at least 2 and points that are a multiple of 16 times the thinning"
            )
        if not self.epochs or min(self.epochs) < 1:
            raise InputError(f"epochs: got {self.epochs}, expected whole numbers from 1")


WORLDS: tuple[tuple[float, float], ...] = (*((e / 8, 1 - e / 8) for e in range(9)), (0.0, 0.0))
"""Shares of correct and incorrect invariance: Fig. 3's line, then the all-extrinsic world."""


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

    The fibres are the bins of the ECE, on the exact table of orbits.

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
        optimiser=torch.optim.Adam(network.parameters(), lr=LEARNING_RATE),
        epochs=max(settings.epochs),
        validate=validate,
    )
    return rows


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the options, run the study, and write its page."""
    defaults = Settings()
    parser = argparse.ArgumentParser(
        prog="orbical study swiss-roll",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "step", nargs="?", choices=["run", "report"], default="run", help="report: the page alone"
    )
    parser.add_argument("--page", type=Path, default=PAGE, help=f"default {PAGE}")
    parser.add_argument("--seeds", type=int, default=defaults.seeds, help="networks a world")
    parser.add_argument("--points", type=int, default=defaults.points, help="on each spiral")
    parser.add_argument("--width", type=int, default=defaults.width, help="of the invariant net")
    parser.add_argument(
        "--plain-width", type=int, default=defaults.plain_width, help="of the plain net"
    )
    parser.add_argument(
        "--epochs", type=int, nargs="+", default=list(defaults.epochs), help="lengths of training"
    )
    options = parser.parse_args(arguments)
    try:
        if options.step == "run":
            settings = Settings(
                seeds=options.seeds,
                points=options.points,
                width=options.width,
                plain_width=options.plain_width,
                epochs=tuple(sorted(options.epochs)),
            )
            rows = []
            for row in run(settings):
                rows.append(row)
                _say(row)
            write_csv(options.page.with_suffix("") / "results.csv", rows)
        from .swiss_roll_page import report

        for path in report(options.page):
            print(f"wrote {path}")
    except OrbicalError as error:
        parser.exit(2, f"error: {error}\n")


def _say(row: Row) -> None:
    print(
        f"correct {row['correct']:.3f} incorrect {row['incorrect']:.3f} {row['network']:16} "
        f"seed {row['seed']} epoch {row['epoch']:5}: accuracy {row['accuracy']:.3f} "
        f"(ceiling {row['ceiling']:.3f}), ECE {row['ece']:.3f}",
        flush=True,
    )


if __name__ == "__main__":
    main()
