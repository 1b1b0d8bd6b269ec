"""Fronts of ECE against accuracy: every weight of three losses, on all images of CIFAR.

One weight a loss compares losses at unequal cost. Here every weight is trained once; at several
costs in accuracy the weight with the lowest ECE on validation images is chosen for each loss, and
trained again with new seeds, which alone decide between losses.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from orbical import calibration
from orbical.errors import InputError

from ..framework import Results, where
from ..framework import training as framework
from .batches import Split, partition
from .packing import unpack_all
from .quick_training import Trial, prepared, run, tensors_of
from .settings import BASELINE, BATCH, FIRST, FRESH, INNER, Settings, selected
from .timing import milliseconds

FOLDER, COST = "fronts", "cost.json"
ACCURACY = {"cifar10": 0.929, "cifar100": 0.684}
"""Of the paper's networks that are trained by the likelihood alone (table 1)."""

EPOCHS = {"cifar10": 24, "cifar100": 16}
DECAYS = {"cifar10": (5e-4,), "cifar100": (0.0, 5e-5)}
LARGE, SMALL = (2.0, 6.0, 20.0, 50.0, 10.0), (0.2, 0.6, 1.0, 0.4, 0.8)
WEIGHTS = {"MMCE": LARGE, "SB-ECE": SMALL, "ESD": LARGE}
"""MMCE and ESD are squares and hence small: theirs reach beyond the paper's grid, 0.2 to 10. In the
order of training, so that a coarse grid is there first."""

COSTS = (0.005, 0.015, 0.03)
"""Losses of validation accuracy at which a weight is chosen; the paper has the second."""

ABLATED = "cifar100"
BATCHES = {"ESD": (256, 128, 64), "ECE": (512, 256, 128)}
BATCH_SEEDS = FRESH[:3]
"""Batch sizes of tables 2 and 3; these and inner parameters are tried on one data set."""
LIKE = {"ESD": "ESD", "ECE": "SB-ECE"}
"""Whose weight a loss has there: the binned ECE that of its soft form."""
REPEATS = 60


def train_fronts(settings: Settings, results: Results) -> None:
    """Choose the decay, train every weight once, then the chosen ones with new seeds."""
    end = settings.end
    for data in settings.fronts:
        epochs, work = settings.epochs or EPOCHS[data], results.work / FOLDER / data
        setup = partial(unpack_all, results.work, data, framework.device(), settings.images)
        train = partial(_train, work, setup)
        decay, *others = DECAYS[data]
        if others:
            decay = chosen_decay(train(_every_decay(data, epochs), settings.until(end)), data)
        rows = train(every_weight(data, epochs, decay), settings.until(end, settings.sweep))
        train(later_trials(rows, data, epochs, decay), settings.until(end))


def _train(
    work: Path, setup: Callable[[], Any], trials: Iterable[Trial], settings: Settings
) -> pd.DataFrame:
    """Train, and return all finished trainings."""
    framework.train(dict.fromkeys(trials), settings, work, setup, run)
    return pd.DataFrame(framework.read_rows(work))


def _every_decay(data: str, epochs: int) -> list[Trial]:
    """List the likelihood alone with each weight decay, and the first seed."""
    return [Trial(data, BASELINE, 0.0, 0.0, FIRST, epochs, decay) for decay in DECAYS[data]]


def chosen_decay(rows: pd.DataFrame, data: str) -> float:
    """Choose the smallest decay with which the likelihood alone has the paper's accuracy.

    A smaller decay makes a network more confident, as the paper's are. Where none reaches the
    paper's accuracy, the most accurate one is chosen.
    """
    one = where(rows, data=data, loss=BASELINE, seed=FIRST)
    accuracy = one.set_index("decay")["test.accuracy"].sort_index()
    enough = accuracy[accuracy >= ACCURACY[data]]
    return float(enough.index[0] if len(enough) else accuracy.idxmax())


def every_weight(data: str, epochs: int, decay: float) -> list[Trial]:
    """List the baseline with all seeds, and every weight of every loss.

    >>> len(every_weight("cifar10", 24, 5e-4))
    21
    """
    trial = partial(Trial, data, epochs=epochs, decay=decay)
    found = [trial(BASELINE, 0.0, 0.0, seed) for seed in (FIRST, *FRESH)]
    most = max(map(len, WEIGHTS.values()))
    for place in range(most):
        for loss, weights in WEIGHTS.items():
            if place < len(weights):
                found.append(trial(loss, weights[place], INNER[loss][0], FIRST))
    return found


def choices(rows: pd.DataFrame, data: str) -> dict[str, dict[float, float]]:
    """Choose the weight of each loss at each cost, from validation images of the first seed.

    Args:
        rows: One row a training, of one decay.
        data: The data set.

    Returns:
        Loss, then cost to weight; costs that no weight meets are left out.
    """
    rows = where(rows, data=data, batch=BATCH)
    base = where(rows, loss=BASELINE)["validation.accuracy"].mean()
    found: dict[str, dict[float, float]] = {}
    for loss, (usual, *_) in INNER.items():
        own = where(rows, loss=loss, inner=usual, seed=FIRST)
        picked = {cost: selected(own, base, tolerance=cost) for cost in COSTS if len(own)}
        found[loss] = {cost: one.choice for cost, one in picked.items() if one.admissible}
    return found


def later_trials(rows: pd.DataFrame, data: str, epochs: int, decay: float) -> list[Trial]:
    """List what follows the choice: the paper's cost, inner parameters, batches, other costs."""
    rows = rows[rows["decay"] == decay]
    found = choices(rows, data)
    if not any(found.values()):
        raise InputError("work", f"finished trainings of {data}", "none", remedy="run it again")
    trial = partial(Trial, data, epochs=epochs, decay=decay)

    def chosen(cost: float) -> list[Trial]:
        return [
            trial(loss, weights[cost], INNER[loss][0], seed)
            for seed in FRESH
            for loss, weights in found.items()
            if cost in weights
        ]

    papers = {loss: weights[COSTS[1]] for loss, weights in found.items() if COSTS[1] in weights}
    inner = [
        trial(loss, weight, value, FIRST)
        for loss, weight in papers.items()
        for value in INNER[loss][1:]
    ]
    batches = [
        trial(loss, papers[LIKE[loss]], 0.0, seed, batch=batch)
        for seed in BATCH_SEEDS
        for loss, sizes in BATCHES.items()
        if LIKE[loss] in papers
        for batch in sizes
    ]
    ablations = [*inner, *batches] if data == ABLATED else []
    return [*chosen(COSTS[1]), *ablations, *chosen(COSTS[0]), *chosen(COSTS[2])]


def time_fronts(settings: Settings, results: Results) -> None:
    """Time an epoch of each loss on this machine."""
    for data in settings.fronts:
        splits = unpack_all(results.work, data, framework.device(), settings.images)
        work = results.work / FOLDER / data
        work.mkdir(parents=True, exist_ok=True)
        (work / COST).write_text(json.dumps([*_costs_of_an_epoch(splits, data)]))


def _costs_of_an_epoch(splits: dict[str, Split], data: str) -> Iterator[Mapping[str, Any]]:
    """Time a step of each loss alone on the device, and give that of an epoch."""
    parts, place = partition(splits["train"]), splits["test"].labels.device
    for loss, inner in ((BASELINE, (0.0,)), *INNER.items()):
        made = prepared(Trial(data, loss, 1.0, inner[0], 0, 1, DECAYS[data][0]), parts)
        tensors = tensors_of(next(iter(made.batches)))
        step = made.recorded(tensors)
        taken = milliseconds(partial(step, *tensors), place, REPEATS)
        yield {
            **{"data": data, "loss": loss, "step_ms": taken, "steps": len(made.batches)},
            "epoch_s": taken * len(made.batches) / 1000,
        }


def collect_fronts(settings: Settings, results: Results) -> None:
    """Write the fronts' trainings, their intervals over test images, and the cost of an epoch."""
    rows, spans, costs = [], [], []
    for data in settings.fronts:
        work = results.work / FOLDER / data
        if (work / COST).is_file():  # timed only where the device did nothing else
            costs += json.loads((work / COST).read_text())
        found = framework.collected(work)
        spans += [{"key": row["key"], **span} for row in found for span in _spans(work, row["key"])]
        rows += found
    results.write("fronts", rows)
    results.write("fronts-intervals", spans)
    results.write("fronts-cost", costs)


def _spans(work: Path, key: str) -> Iterator[Mapping[str, Any]]:
    """Compute 95 % intervals of the ECE over test images, before and after the temperature."""
    kept = framework.read_arrays(work, key)
    for name in ("", "_ts"):
        pair = kept[f"confidence{name}"], kept["correct"]
        found = calibration.interval("ece", *pair, bins=20, resamples=300)
        ends = {end: float(getattr(found, end)) for end in ("low", "high", "calibrated")}
        yield {"scaled": name == "_ts", "ece": float(found.value), **ends}
