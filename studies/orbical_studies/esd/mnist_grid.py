"""The paper's Table 1 and Fig. 2 for MNIST: every weight and inner parameter, then new seeds.

LeNet-5, 250 epochs, batches of 512, AdamW with a constant rate of 1e-3 and a decay of 1e-2.

The rule:

* *Choice.* Every weight and inner parameter of each loss is trained with the first seed. Of each
  loss, and of each inner parameter, the weight with the lowest validation ECE is chosen among those
  whose validation accuracy is at most 1.5 points below that of the likelihood alone (mean over its
  first seeds). The chosen ones are trained with new seeds, which alone decide.
* *Regime.* A verdict is about the paper if the likelihood alone has its accuracy to 1.5 points and
  its ECE to a quarter (`claims.distance` up to 1), as means over the seeds on test images; else
  it is open.
* *Claims* are decided on test images by paired t tests over the seeds with Holm's correction
  (`claims.outcome`): every loss lowers the ECE; ESD has a lower one than MMCE and than SB-ECE;
  after temperature scaling ESD has a lower one than the likelihood alone; one temperature on the
  likelihood alone does better than every loss (ours).
* *Fig. 2.* With the weight chosen for each inner parameter, a loss is sensitive to it if the mean
  test ECE spans more than three standard deviations over seeds of the chosen setting.

The first version of this rule asked for five seeds of the whole grid and a choice by their mean.
While the first seed trained, its speed showed that device time would not allow that; the choice by
one seed was written then, before any score had been read.

*More seeds.* Written after the first four new seeds, whose likelihood alone is at a distance of
1.08, and before the run: the likelihood alone and what was chosen of each loss are trained with
eight more (`MORE`), four at a time. As many of them as device time allows for all four, four or
more, alone decide about regime and claims; what the first four decided is reported beside it, and
Fig. 2 rests on them. An earlier version asked for every inner parameter too; no run of it ended.
"""

from __future__ import annotations

import time
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from torch import Tensor
from torch.func import functional_call

from orbical import calibration
from orbical.training import Selection

from ..framework import Results
from ..framework import training as framework
from ..networks.classifiers import LeNet5
from .batches import as_images, partition
from .claims import Table1
from .packing import unpack
from .scaling import BINS, Scaled, interval_row
from .settings import BASELINE, BATCH, PAPERS, Settings, selected
from .stacks import Classifiers, Recipe, Samples, Trial, train_together
from .training import DECAY, RATE

DATA, FOLDER, EPOCHS = "mnist", "mnist-grid", 250
FIRST, FRESH, MORE = 0, (1, 2, 3, 4), (5, 6, 7, 8, 9, 10, 11, 12)
"""The seed that chooses, those that decided first, and those that decide."""

INNER: dict[str, tuple[float, ...]] = {
    "MMCE": (0.2, 0.4, 0.6, 0.8),
    "SB-ECE": (1e-4, 1e-3, 1e-2, 1e-1),
    "ESD": (0.0,),
}
WATCHED = (5, 10, 20, 40, 80, 125, 180, EPOCHS)
"""Epochs after which the networks are scored."""

PARTS = ("validation", "test")
SETTING = ["loss", "weight", "inner"]
SCORES = [f"{part}.{score}" for part in PARTS for score in ("accuracy", "ece")]


def train_mnist(settings: Settings, results: Results) -> None:
    """Train the likelihood alone, all networks of the first seed, then the chosen ones again."""
    work, epochs = results.work / FOLDER, settings.epochs or EPOCHS
    train = partial(_train, settings, results, work)
    train([plain((FIRST, *FRESH), epochs)])
    rows = train([grid(FIRST, epochs)])
    kept = {*chosen_settings(rows).itertuples(index=False, name=None)}
    train([_kept_of(kept, seed, epochs) for seed in FRESH])
    for name, *setting in rows[["name", *SETTING]].itertuples(index=False, name=None):
        if tuple(setting) not in kept:  # the logits of all networks are too much to carry
            framework.arrays_file(work, name).unlink(missing_ok=True)


def train_mnist_seeds(settings: Settings, results: Results) -> None:
    """Train what the table `mnist` chooses of each loss with more seeds."""
    epochs = settings.epochs or EPOCHS
    kept = {*chosen(results["mnist"]).values()}
    stacks = [plain(MORE, epochs)]
    for seeds in (MORE[:4], MORE[4:]):
        stacks.append([trial for seed in seeds for trial in _kept_of(kept, seed, epochs)])
    _train(settings, results, results.work / FOLDER, stacks)


def plain(seeds: Iterable[int], epochs: int) -> list[Trial]:
    """List the likelihood alone with some seeds."""
    return [Trial(BASELINE, 0.0, 0.0, seed, BATCH, epochs) for seed in seeds]


def _kept_of(kept: Container[tuple[Any, ...]], seed: int, epochs: int) -> list[Trial]:
    """List the losses of some settings with a seed."""
    return [t for t in grid(seed, epochs) if (t.loss, t.weight, t.inner) in kept]


def _train(
    settings: Settings, results: Results, work: Path, stacks: Sequence[Sequence[Trial]]
) -> pd.DataFrame:
    setup = partial(samples, settings, results)
    framework.train_stacks(lambda rows: stacks, settings, work, setup, run)
    return pd.DataFrame(framework.read_rows(work))


def grid(seed: int, epochs: int = EPOCHS) -> list[Trial]:
    """List every weight and inner parameter of every loss.

    >>> len(grid(FIRST))
    126
    """
    return [
        Trial(loss, weight, inner, seed, BATCH, epochs)
        for loss in INNER
        for inner in INNER[loss]
        for weight in PAPERS
    ]


def samples(settings: Settings, results: Results) -> dict[str, Samples]:
    """Read the digits onto the device: `fit`, `calibration`, `validation` and `test`."""
    splits = unpack(replace(settings, data=(DATA,)), results, framework.device())[DATA]
    parts = partition(splits["train"]) | {"test": splits["test"]}
    return {name: Samples(as_images(part.pixels), part.labels) for name, part in parts.items()}


class LeNets(Classifiers):
    """Stacked LeNet-5, scored in single precision."""

    @torch.no_grad()
    def logits(self, inputs: Tensor, chunk: int = 20_000) -> Tensor:
        """Return logits `[networks, n, classes]` in single precision, one network at a time."""
        self.shape.eval()
        each = zip(*self.parameters.values(), strict=True)
        rows = (dict(zip(self.parameters, values, strict=True)) for values in each)
        return torch.stack(
            [
                torch.cat([functional_call(self.shape, row, part) for part in inputs.split(chunk)])
                for row in rows
            ]
        )


def run(parts: Mapping[str, Samples], trials: Sequence[Trial]) -> list[framework.Trained]:
    """Train a stack; keep the scores at the watched epochs, and the last logits."""
    started = time.perf_counter()
    curves: list[dict[str, Any]] = []
    logits: dict[str, Tensor] = {}

    def watch(stack: Classifiers, epoch: int) -> None:
        if epoch not in WATCHED and epoch != trials[0].epochs:
            return
        scores: dict[str, Any] = {"epoch": epoch}
        for name in PARTS:
            logits[name] = stack.logits(parts[name].inputs)
            pair = calibration.top_label(labels=parts[name].labels, logits=logits[name])
            scores[f"{name}.accuracy"] = pair[1].double().mean(-1).tolist()
            scores[f"{name}.ece"] = calibration.ece(*pair, bins=BINS).tolist()
        curves.append(scores)

    recipe = Recipe(LeNet5, RATE, DECAY, schedule=None, kind=LeNets)
    train_together(recipe, trials, parts["fit"], parts["calibration"], watch=watch)
    arrays = {name: values.half().cpu().numpy() for name, values in logits.items()}
    seconds = {"seconds": round(time.perf_counter() - started, 3), "networks": len(trials)}
    return [
        (
            {column: curves[-1][column][place] for column in SCORES}
            | seconds
            | {
                "curve": [
                    {k: v if k == "epoch" else v[place] for k, v in c.items()} for c in curves
                ]
            },
            {name: values[place] for name, values in arrays.items()},
        )
        for place in range(len(trials))
    ]


def choices(rows: pd.DataFrame, inner: Mapping[str, Iterable[float]]) -> dict[str, Selection[Any]]:
    """Choose weight and inner parameter of each loss by the rule, from validation images.

    Args:
        rows: One row a training, with the columns of `SETTING`.
        inner: The inner parameters to choose from, by loss.
    """
    seen = (rows["loss"] == BASELINE) & rows["seed"].isin((FIRST, *FRESH))
    accuracy = float(rows[seen]["validation.accuracy"].mean())
    found = {}
    for loss, values in inner.items():
        own = rows[(rows["loss"] == loss) & (rows["seed"] == FIRST) & rows["inner"].isin(values)]
        found[loss] = selected(own, accuracy, by=SETTING[1:])
    return found


def chosen_settings(rows: pd.DataFrame) -> pd.DataFrame:
    """List the likelihood alone and the weight chosen for each inner parameter of each loss."""
    found = [(BASELINE, 0.0, 0.0)]
    for loss, values in INNER.items():
        for value in values:
            found.append((loss, *choices(rows, {loss: (value,)})[loss].choice))
    return pd.DataFrame(found, columns=SETTING)


def runs_of(rows: pd.DataFrame, setting: Sequence[Any], seeds: Iterable[int]) -> pd.DataFrame:
    """Return the trainings of a setting with some seeds."""
    return rows[(rows[SETTING] == list(setting)).all(axis=1) & rows["seed"].isin([*seeds])]


def chosen(rows: pd.DataFrame) -> dict[str, tuple[Any, ...]]:
    """Return the setting of the likelihood alone and the one chosen for each loss."""
    found = {loss: (loss, *one.choice) for loss, one in choices(rows, INNER).items()}
    return {BASELINE: (BASELINE, 0.0, 0.0), **found}


def deciding(rows: pd.DataFrame) -> list[int]:
    """Return the seeds that decide: those of `MORE` with every loss, if enough, or the first."""
    settings = chosen(rows).values()
    whole = set(MORE).intersection(*(runs_of(rows, setting, MORE)["seed"] for setting in settings))
    return sorted(whole) if len(whole) >= len(FRESH) else [*FRESH]


def table_1(rows: pd.DataFrame, seeds: Sequence[int] | None = None) -> Table1:
    """Return what seeds decide, by default those that the rule names."""
    seeds = seeds or deciding(rows)
    trained = {loss: runs_of(rows, setting, seeds) for loss, setting in chosen(rows).items()}
    return Table1(trained, DATA, len(seeds))


def spans(rows: pd.DataFrame) -> dict[str, tuple[pd.Series, float]]:
    """Return, by loss, the mean test ECE of each inner parameter in points, and its span.

    The span is in standard deviations over seeds of the chosen setting (Fig. 2).
    """
    best, seeds, found = chosen(rows), FRESH, {}
    every = [*chosen_settings(rows).itertuples(index=False, name=None)]
    for loss in ("MMCE", "SB-ECE"):
        tried = [one for one in every if one[0] == loss]
        own = {inner: runs_of(rows, (*_, inner), seeds)["test.ece"].mean() for *_, inner in tried}
        spread = 100 * runs_of(rows, best[loss], seeds)["test.ece"].std()
        means = 100 * pd.Series(own)
        found[loss] = (means, float((means.max() - means.min()) / spread))
    return found


def collect_mnist(settings: Settings, results: Results) -> None:
    """Write `mnist`, with scaling where logits were kept, and `mnist-epochs`, beside their rows."""
    work = results.work / FOLDER
    truth = {name: part.labels.cpu() for name, part in samples(settings, results).items()}
    lines = framework.read_rows(work)
    known = [results["mnist"]] if "mnist" in results else []
    wanted = {*chosen(pd.concat([*known, pd.DataFrame(lines)])).values()}
    rows, points = [], []
    for line in lines:
        row = {"key": line.pop("name"), **line}
        head = {column: row[column] for column in ("key", *SETTING, "seed")}
        curve = row.pop("curve")
        if tuple(row[column] for column in SETTING) in wanted:
            points += [head | point for point in curve]
        if framework.arrays_file(work, row["key"]).is_file():
            kept = framework.read_arrays(work, row["key"])
            held, shown = (torch.from_numpy(kept[name]).double() for name in PARTS)
            row |= Scaled(held, truth["validation"]).row(shown, truth["test"])
            row |= interval_row(shown, truth["test"], row["temperature"])
        rows.append(row)
    results.add("mnist", rows)
    results.add("mnist-epochs", points)
