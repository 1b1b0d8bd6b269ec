"""Natural-language inference: every weight of three losses, then the chosen ones with new seeds.

The networks are small, so that several train as one (`stacks`). Training needs torch, NumPy and
pandas only: scores after scaling, and intervals, are computed from the logits by `collect-nli`.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from orbical import calibration
from orbical.errors import InputError
from orbical.training import Selection

from ..data.sentence_pairs import SentencePair, sentence_pairs, token_vectors, tokens
from ..framework import Results, where
from ..framework import training as framework
from ..framework.packs import read_pack, write_pack
from ..networks.sentence_pairs import CrossAttention
from .settings import (
    BASELINE,
    BATCH,
    FIRST,
    FRESH,
    INNER,
    PAPERS,
    SMALLER_BATCHES,
    Settings,
    selected,
)
from .stacks import Recipe, Samples, Trial, train_together

FOLDER, PACK = "nli", "nli/pairs.npz"
EPOCHS, WIDTH, RATE, DECAY, DROPOUT = 10, 96, 3e-3, 1e-2, 0.2
STACK = 16
"""Networks that train as one."""

TESTS = ("validation", "snli_test", "lingnli_val")
"""Pairs whose logits are kept: the validation part, and the test sets."""

BINS = 20

TRAINING = ("snli_dev", "sick_train", "cad_nli_train")
"""Descriptions of pictures, as those of SNLI, whose training pairs are not at hand."""

PREMISE, HYPOTHESIS = 32, 20
"""Tokens kept of each sentence; of SNLI's test pairs 95 % are shorter."""

VALIDATION, CALIBRATION = 0.3, 0.1
"""Shares of the premises of SNLI's development pairs, and of the training pairs' premises."""


def pack_nli(settings: Settings, results: Results) -> None:
    """Write tokens and labels of all parts, and the vectors of the tokens that occur."""
    parts = {name: pairs[: settings.images] for name, pairs in split(TRAINING, TESTS[1:]).items()}
    arrays: dict[str, NDArray] = {}
    for name, pairs in parts.items():
        premises = tokens((pair.premise for pair in pairs), PREMISE)
        hypotheses = tokens((pair.hypothesis for pair in pairs), HYPOTHESIS)
        arrays[f"tokens_{name}"] = np.concatenate([premises, hypotheses], 1)
        arrays[f"labels_{name}"] = np.array([pair.label for pair in pairs], np.uint8)
    arrays["premise"] = np.array(PREMISE, np.uint8)
    arrays["votes"] = np.array([pair.votes for pair in parts["lingnli_val"]], np.uint8)
    arrays, used = with_fewer_tokens(arrays)
    vectors = token_vectors()[used[1:].astype(int) - 1]
    table = np.concatenate([np.zeros_like(vectors[:1]), vectors])
    write_pack(results.work / PACK, arrays | {"table": table})


def split(training: Iterable[str], tests: Iterable[str]) -> dict[str, list[SentencePair]]:
    """Read all pairs and cut them into parts that have no premise in common.

    The first training set is that of the task: its share of premises is for validation. Training
    pairs whose premise occurs in a test set or in the validation part are left out.

    Args:
        training: Names of the training sets.
        tests: Names of the test sets.

    Returns:
        The parts `fit`, `calibration` and `validation`, and the test sets by their names.
    """
    found = {name: sentence_pairs(name) for name in tests}
    seen = {pair.source for pairs in found.values() for pair in pairs}
    first, *others = ([p for p in sentence_pairs(n) if p.source not in seen] for n in training)
    held, kept = _by_premise(first, VALIDATION)
    seen = {pair.source for pair in held}
    rest = [pair for pairs in (kept, *others) for pair in pairs if pair.source not in seen]
    calibration, fit = _by_premise(rest, CALIBRATION)
    return {"fit": fit, "calibration": calibration, "validation": held, **found}


def _by_premise(
    pairs: Sequence[SentencePair], share: float
) -> tuple[list[SentencePair], list[SentencePair]]:
    """Take the pairs of a random share of the premises, the same each time, and the others."""
    premises = np.array(sorted({pair.source for pair in pairs}))
    chosen = np.random.default_rng(0).choice(premises, round(share * len(premises)), replace=False)
    taken = {*chosen.tolist()}
    parts: tuple[list[SentencePair], list[SentencePair]] = ([], [])
    for pair in pairs:
        parts[pair.source not in taken].append(pair)
    return parts


def with_fewer_tokens(arrays: dict[str, NDArray]) -> tuple[dict[str, NDArray], NDArray]:
    """Number the tokens that occur from 1, 0 is none; return also which tokens these are."""
    tokens = {name: values for name, values in arrays.items() if name.startswith("tokens_")}
    none = np.zeros(1, np.uint16)
    used = np.unique(np.concatenate([none, *(values.ravel() for values in tokens.values())]))
    fewer = {n: np.searchsorted(used, values).astype(np.uint16) for n, values in tokens.items()}
    return arrays | fewer, used


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
        found += [Trial(loss, weight, usual, FIRST, BATCH, epochs) for weight in PAPERS]
    return found


def choices(rows: Sequence[Mapping[str, Any]], epochs: int = EPOCHS) -> dict[str, Selection[float]]:
    """Choose lambda of each loss by the paper's rule, from the validation scores of one seed.

    Args:
        rows: One row a training.
        epochs: Only trainings of this length count.

    Returns:
        Loss to selection. The most accurate weight is taken where none is within 1.5 points.
    """
    alike = where(pd.DataFrame(rows), batch=BATCH, epochs=epochs)
    plain = where(alike, loss=BASELINE)["validation.accuracy"]
    found = {}
    for loss, (usual, *_) in INNER.items():
        own = where(alike, loss=loss, inner=usual, seed=FIRST)
        if own.empty or plain.empty:
            raise InputError(
                "work",
                f"finished trainings of {BASELINE} and {loss}",
                f"{len(plain)} and {len(own)}",
                remedy="run the step 'nli' again",
            )
        found[loss] = selected(own, plain.mean())
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
