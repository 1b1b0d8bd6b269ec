"""Natural-language inference: every weight of three losses, then the chosen ones with new seeds.

The networks are small, so that several train as one (`stacks`). Training needs torch and NumPy
only: scores after scaling, and intervals, are computed from the stored logits by `collect-nli`.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from orbical import calibration
from orbical.errors import InputError
from orbical.training import Selection, select

from ..framework import Results
from ..framework import training as framework
from ..framework.packs import read_pack
from ..networks.sentence_pairs import CrossAttention
from .settings import BASELINE, BATCH, SMALLER_BATCHES, Settings
from .stacks import Recipe, Samples, Trial, train_together

FOLDER, PACK = "nli", "nli/pairs.npz"
WEIGHTS = (0.2, 0.4, 0.6, 0.8, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0)
"""The paper's grid of lambda."""

INNER = {"MMCE": (0.4, 0.2, 0.6, 0.8), "SB-ECE": (0.01, 0.0001, 0.001, 0.1), "ESD": (0.0,)}
"""MMCE's kernel width, SB-ECE's temperature; the first is used, the others are tried (Fig. 2)."""

FIRST, FRESH = 0, (1, 2, 3, 4, 5)
"""The seed that chooses lambda, and those that decide."""

EPOCHS, WIDTH, RATE, DECAY, DROPOUT = 10, 96, 3e-3, 1e-2, 0.2
STACK = 16
"""Networks that train as one."""

TESTS = ("validation", "snli_test", "lingnli_val")
BINS = 20


def train_nli(settings: Settings, results: Results) -> None:
    """Train every weight once, then the chosen ones with new seeds and with smaller batches."""
    end, epochs = settings.end, settings.epochs or EPOCHS
    work = results.work / FOLDER
    setup = partial(unpack, results.work / PACK, framework.device(), settings.images)
    first = stacked(every_weight(epochs))
    framework.train_stacks(lambda rows: first, settings, work, setup, run)
    later = stacked(chosen_weights(choices(framework.read_rows(work), epochs), epochs))
    framework.train_stacks(lambda rows: later, settings.until(end), work, setup, run)


def every_weight(epochs: int = EPOCHS) -> list[Trial]:
    """List the baseline with all seeds, and every weight of every loss.

    >>> len(every_weight())
    48
    """
    found = [Trial(BASELINE, 0.0, 0.0, seed, BATCH, epochs) for seed in (FIRST, *FRESH)]
    for loss, (usual, *_) in INNER.items():
        found += [Trial(loss, weight, usual, FIRST, BATCH, epochs) for weight in WEIGHTS]
    return found


def choices(rows: Iterable[Mapping[str, Any]], epochs: int = EPOCHS) -> dict[str, Selection[float]]:
    """Choose lambda of each loss by the paper's rule, from the validation scores of one seed.

    Args:
        rows: One row a training.
        epochs: Only trainings of this length count.

    Returns:
        Loss to selection. The most accurate weight is taken where none is within 1.5 points.
    """
    rows = [row for row in rows if (row["batch"], row["epochs"]) == (BATCH, epochs)]
    plain = [row["validation.accuracy"] for row in rows if row["loss"] == BASELINE]
    found = {}
    for loss, (usual, *_) in INNER.items():
        kind = (loss, usual, FIRST)
        own = [row for row in rows if (row["loss"], row["inner"], row["seed"]) == kind]
        if not own or not plain:
            raise InputError(
                "work",
                f"finished trainings of {BASELINE} and {loss}",
                f"{len(plain)} and {len(own)}",
                remedy="run the step 'nli' again",
            )
        each = {row["weight"]: (row["validation.accuracy"], row["validation.ece"]) for row in own}
        found[loss] = select(each, baseline_accuracy=float(np.mean(plain)))
    return found


def chosen_weights(chosen: Mapping[str, Selection[float]], epochs: int = EPOCHS) -> list[Trial]:
    """List the deciding seeds, other inner parameters, and smaller batches, slowest first."""
    weight = chosen["ESD"].choice
    found = [
        Trial(loss, at, 0.0, seed, batch, epochs)
        for batch in sorted(SMALLER_BATCHES)
        for loss, at in ((BASELINE, 0.0), ("ESD", weight))
        for seed in FRESH
    ]
    for loss, (usual, *others) in INNER.items():
        at = chosen[loss].choice
        found += [Trial(loss, at, usual, seed, BATCH, epochs) for seed in FRESH]
        found += [Trial(loss, at, inner, FIRST, BATCH, epochs) for inner in others]
    return found


def stacked(trials: Iterable[Trial]) -> list[list[Trial]]:
    """Gather trials of one batch size and length into stacks.

    >>> [len(stack) for stack in stacked(every_weight())]
    [16, 16, 16]
    """
    alike: dict[tuple[int, int], list[Trial]] = {}
    for trial in trials:
        alike.setdefault((trial.batch, trial.epochs), []).append(trial)
    return [each[i : i + STACK] for each in alike.values() for i in range(0, len(each), STACK)]


@dataclass(frozen=True)
class Pairs:
    """The parts of the packed pairs on one device, and the token vectors.

    Attributes:
        parts: By name; samples are tokens, those of the premise first.
        table: Token vectors, scaled to a standard deviation of 1.
        premise: Tokens of a premise.
    """

    parts: dict[str, Samples]
    table: Tensor
    premise: int


def unpack(path: Path, device: torch.device, pairs: int | None = None) -> Pairs:
    """Read the packed pairs, of each part the first ones if a number is given."""
    arrays = read_pack(path)
    parts = {name: Samples(*part) for name, part in tokens_of(arrays, device, pairs)}
    table = torch.from_numpy(arrays["table"].astype(np.float32)).to(device)
    dtype = torch.bfloat16 if device.type == "cuda" else torch.float32
    return Pairs(parts, (table / table[1:].std()).to(dtype), int(arrays["premise"]))


def tokens_of(
    arrays: Mapping[str, np.ndarray], device: torch.device, pairs: int | None
) -> Iterator[tuple[str, tuple[Tensor, Tensor]]]:
    """Yield the name of each packed part, and its tokens and labels on a device."""
    for name in (name.removeprefix("labels_") for name in arrays if name.startswith("labels_")):
        tokens, labels = (
            torch.from_numpy(arrays[f"{kind}_{name}"][:pairs].astype(np.int64)).to(device)
            for kind in ("tokens", "labels")
        )
        yield name, (tokens, labels)


def network(premise: int) -> nn.Module:
    """Return a new network."""
    return CrossAttention(premise, WIDTH, dropout=DROPOUT)


def run(pairs: Pairs, trials: Sequence[Trial]) -> list[framework.Trained]:
    """Train a stack; score each network on validation pairs, and keep its logits of all tests."""
    started = time.perf_counter()
    recipe = Recipe(partial(network, pairs.premise), RATE, DECAY)
    fit, held_out = (pairs.parts[name] for name in ("fit", "calibration"))
    stack = train_together(recipe, trials, fit, held_out, pairs.table)
    logits = {name: stack.logits(pairs.parts[name].inputs).cpu() for name in TESTS}
    seconds = round(time.perf_counter() - started, 3)
    truth = pairs.parts["validation"].labels.cpu()
    confidence, correct = calibration.top_label(labels=truth, logits=logits["validation"])
    eces = calibration.ece(confidence, correct, bins=BINS)
    accuracies = correct.double().mean(-1)
    return [
        (
            {"validation.accuracy": float(accuracy), "validation.ece": float(ece)}
            | {"seconds": seconds, "networks": len(trials)},
            {name: values[place].half().numpy() for name, values in logits.items()},
        )
        for place, (accuracy, ece) in enumerate(zip(accuracies, eces, strict=True))
    ]
