"""The paper's Table 1 for CIFAR with networks that overfit as the paper's do.

Two ways to overfit (`WAYS`), both on all images with batches of 512:

* *constant*: a residual network and the paper's recipe, AdamW with a constant rate of 1e-3 and a
  decay of 1e-2, scored every five epochs. It has the paper's ECE, but not its accuracy.
* *cycle*: the network of the fronts, wider, with their cycle of the rate and without any decay;
  fewer mirror images than half let it overfit without the noise of a constant rate.

The rule, written before the runs:

* *Regime.* The likelihood alone is trained with the first seed, with each share of mirror images
  and, where none of these is in the paper's regime, with the next length. The one is taken (of a
  constant rate: the share and the scored epoch) whose test accuracy and ECE are nearest to the
  paper's (`claims.distance`: the larger of the difference in accuracy over 1.5 points and of the
  difference in ECE over a quarter of the paper's). No loss is trained before it is fixed. A verdict
  is about the paper if the mean over all seeds is within a distance of 1; else open.
* *Weights.* Each loss has few weights (`WEIGHTS`), trained with the first seed. The one with the
  lowest validation ECE within 1.5 points of the validation accuracy of the likelihood alone (mean
  over seeds 0 to 3) is trained with the new seeds, which alone decide: as many of the seeds 1 to 5
  as the device time allows for every loss, three or more.
* *Claims* as for MNIST (`mnist_grid`): every loss lowers the ECE, ESD has the lowest, ESD stays
  ahead after scaling, one temperature does better than every loss (ours). Where both ways were
  trained, the one whose likelihood alone is nearer to the paper decides about the paper.
* *Finer weights.* Added after the first run of the cycle on CIFAR-10 and before the second: with
  its two weights ESD costs either 2.1 points of accuracy or hardly changes the ECE, so that weights
  between, and larger ones of the others, may decide (`FINER`). They join the choice on equal terms;
  new seeds of what is then chosen decide, and what the first run decided is reported beside it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from typing import Any

import pandas as pd
import torch
from torch import nn

from orbical.training import Selection

from ..framework import Results, where
from ..framework import training as framework
from ..networks.classifiers import ResNet9
from . import training
from .batches import Split, partition
from .claims import TABLE_1, Table1, distance
from .packing import unpack_all
from .quick_training import CYCLE, Flipped, Recipe, fit, whitened
from .scaling import Scaled, interval_row, scores
from .settings import BASELINE, BATCH, FIRST, FRESH, Settings, selected

FOLDER = "overfitted"
WEIGHTS = {"MMCE": (10.0, 2.0), "SB-ECE": (0.4, 0.2), "ESD": (10.0, 2.0)}
FINER = {"MMCE": (*WEIGHTS["MMCE"], 20.0), "SB-ECE": (*WEIGHTS["SB-ECE"], 0.6, 0.8)}
FINER |= {"ESD": (*WEIGHTS["ESD"], 6.0, 4.0)}
INNER = {"MMCE": 0.4, "SB-ECE": 0.01, "ESD": 0.0}
LEAST = 3
"""How many seeds must decide."""


@dataclass(frozen=True)
class Way:
    """A way to overfit.

    Attributes:
        widths: Channels of the network.
        lengths: Epochs; a later one is tried where no earlier one is in the paper's regime.
        shares: Of mirror images.
        decay: Of the weights.
        every: Epochs between scores.
        weights: Loss to what is tried.
    """

    widths: tuple[int, ...]
    lengths: tuple[int, ...]
    shares: tuple[float, ...]
    decay: float
    every: int
    weights: Mapping[str, tuple[float, ...]]


WAYS = {
    "cycle": Way((96, 384, 384), (28, 48), (0.0, 0.1, 0.5), 0.0, 1_000, FINER),
    "constant": Way((64,), (60,), (0.5, 0.0), training.DECAY, 5, WEIGHTS),
}


@dataclass(frozen=True)
class Trial:
    """One training; its text is its name. Its length is that of a regime."""

    data: str
    way: str
    mirrors: float
    loss: str
    weight: float
    inner: float
    seed: int
    epochs: int
    batch: int = BATCH

    @property
    def decay(self) -> float:
        """Of the weights."""
        return WAYS[self.way].decay

    def __str__(self) -> str:
        head = f"{self.data}/{self.way}/mirrors={self.mirrors:g}/{self.loss}/lambda={self.weight:g}"
        return f"{head}/epochs={self.epochs}/seed={self.seed}"


def train_overfitted(settings: Settings, results: Results) -> None:
    """Find the regime of each data set by the likelihood alone, then train the losses in it."""
    end = settings.end
    for way, data in product(WAYS, settings.fronts):
        setup = partial(unpack_all, results.work, data, framework.device(), settings.images)
        plan = partial(planned, data, way, epochs=settings.epochs)
        work = results.work / FOLDER / data / way
        framework.train_plan(plan, settings.until(end), work, setup, run)


def planned(
    data: str, way: str, rows: Sequence[Mapping[str, Any]], *, epochs: int | None = None
) -> list[Trial]:
    """List what can be trained after some trainings: to find the regime, to choose, to decide.

    Args:
        data: The data set.
        way: A name of `WAYS`.
        rows: One for each finished training.
        epochs: Instead of the lengths of the way.
    """
    names = {row["name"] for row in rows}
    for length in (epochs,) if epochs else WAYS[way].lengths:
        trial = partial(Trial, data, way, epochs=length)
        shares = [trial(share, BASELINE, 0.0, 0.0, FIRST) for share in WAYS[way].shares]
        if not names.issuperset(map(str, shares)):
            return shares
        apart, mirrors, taken = nearest(rows)
        if apart <= 1:
            break
    own = [row for row in rows if (row["mirrors"], row["epochs"]) == (mirrors, taken)]
    trial = partial(Trial, data, way, mirrors, epochs=taken)
    return trials_in_regime(trial, pd.DataFrame(own), WAYS[way].weights)


def trials_in_regime(
    trial: Callable[..., Any], rows: pd.DataFrame, weights: Mapping[str, tuple[float, ...]]
) -> list[Any]:
    """List what follows the regime: every weight with the first seed, then what decides.

    Args:
        trial: `trial(loss, weight, inner, seed)` returns a training in the regime.
        rows: The finished trainings in the regime.
        weights: Loss to what is tried.
    """
    first = [trial(loss, w, INNER[loss], FIRST) for loss, each in weights.items() for w in each]
    first += [trial(BASELINE, 0.0, 0.0, seed) for seed in FRESH[:LEAST]]
    if not {*rows["name"]}.issuperset(map(str, first)):
        return first
    chosen = choices(rows)
    every = [(BASELINE, 0.0, 0.0), *((n, one.choice, INNER[n]) for n, one in chosen.items())]
    return [trial(*setting, seed) for seed in FRESH for setting in every]


def nearest(rows: Sequence[Mapping[str, Any]]) -> tuple[float, float, int]:
    """Return distance, share of mirror images and epochs where the likelihood alone is nearest."""
    first = [row for row in rows if (row["loss"], row["seed"]) == (BASELINE, FIRST)]
    return min(
        (distance(TABLE_1[row["data"]], point), row["mirrors"], point["epoch"])
        for row in first
        for point in row["curve"]
    )


def choices(rows: pd.DataFrame) -> dict[str, Selection[float]]:
    """Choose the weight of each loss by validation samples, from the trainings in a regime."""
    seen = (rows["loss"] == BASELINE) & rows["seed"].isin((FIRST, *FRESH[:LEAST]))
    plain = rows[seen]["validation.accuracy"].mean()
    return {loss: selected(where(rows, loss=loss, seed=FIRST), plain) for loss in WEIGHTS}


def trained(rows: pd.DataFrame, data: str, way: str) -> dict[str, pd.DataFrame]:
    """Return, by loss, the trainings in the regime, at the chosen weights."""
    rows = where(rows, data=data, way=way)
    last = rows[rows["loss"] != BASELINE].iloc[-1]
    return at_choice(where(rows, mirrors=last["mirrors"], epochs=last["epochs"]))


def at_choice(rows: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Return, by loss, the trainings in a regime at the weights that validation samples choose."""
    weight = {BASELINE: 0.0, **{loss: one.choice for loss, one in choices(rows).items()}}
    return {loss: where(rows, loss=loss, weight=at) for loss, at in weight.items()}


def table_1(rows: pd.DataFrame, data: str, way: str) -> Table1:
    """Return what the new seeds decide."""
    return decided(trained(rows, data, way), data)


def decided(trained: Mapping[str, pd.DataFrame], data: str) -> Table1:
    """Return what the new seeds of trainings, by loss, decide."""
    return Table1({n: each[each["seed"].isin(FRESH)] for n, each in trained.items()}, data, LEAST)


def run(splits: Mapping[str, Split], trial: Trial) -> framework.Trained:
    """Train a network, score it every few epochs, and keep the logits of its test images."""
    started = time.perf_counter()
    parts, test = partition(splits["train"]), splits["test"]
    points: list[dict[str, Any]] = []

    def watch(model: nn.Module, epoch: int) -> None:
        if epoch % WAYS[trial.way].every and epoch != trial.epochs:
            return
        point: dict[str, Any] = {"epoch": epoch}
        for name, split in (("validation", parts["validation"]), ("test", test)):
            found = scores(split.labels, logits=training.logits_of(model, split.pixels))
            point |= {f"{name}.{k}": found[k] for k in ("accuracy", "ece")}
        points.append(point)

    model, _ = fit(trial, parts, _recipe_of(trial), watch)
    held, shown = (
        training.logits_of(model, split.pixels).cpu().double()
        for split in (parts["validation"], test)
    )
    truth = test.labels.cpu()
    row = Scaled(held, parts["validation"].labels.cpu()).row(shown, truth)
    row |= interval_row(shown, truth, row["temperature"])
    return {**row, "seconds": round(time.perf_counter() - started, 3), "curve": points}, {}


def _recipe_of(trial: Trial) -> Recipe:
    """Return how the network of a trial is made and trained."""
    widths = WAYS[trial.way].widths
    batches = partial(Flipped, crop=True, share=trial.mirrors)
    if trial.way == "cycle":
        return replace(CYCLE, network=partial(whitened, widths=widths), batches=batches)
    return Recipe(
        lambda split, classes: ResNet9(classes, *widths),
        partial(torch.optim.AdamW, fused=True, capturable=torch.cuda.is_available()),
        training.RATE,
        lambda share: 1.0,
        batches,
    )


def collect_overfitted(settings: Settings, results: Results) -> None:
    """Write the trainings and their scores over epochs, beside those collected before."""
    work = results.work / FOLDER
    rows = framework.collected(*(work / data / way for data in settings.fronts for way in WAYS))
    points = [{"key": row["key"]} | point for row in rows for point in row.pop("curve")]
    results.add("overfitted", rows)
    results.add("overfitted-epochs", points)
