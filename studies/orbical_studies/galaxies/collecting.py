"""From the outputs of the trained networks to the CSV files of the page."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from orbical import calibration

from ..framework import Results
from ..framework.training import read_arrays, read_rows
from .contrasts import Pair, centered, contrast_rows, measures, orders
from .contrasts import sizes as equal_sizes
from .matching import bound_rows, neighbor_rows
from .other_catalog import shift_rows
from .packing import Split, unpack
from .settings import BLURS, FIELDS, ORDERS, PHOTOGRAPHS, Settings, Trial, trials
from .training import ANGLES, BATCH

# Networks whose curves over the circle are kept.
DRAWN = ("cyclic:1", "cyclic:2", "cyclic:4", "cyclic:8", "cyclic:12", "dihedral:12")
KEPT = (
    *("nll", "train_nll", "refitted_accuracy", "refitted_ece"),
    *("defect_group", "gap_circle", "action_defect", "parameters", "seconds"),
)
KEY = ["data", "network", "blur", "seed"]
Row = dict[str, Any]
Outputs = dict[tuple[str, float], list[Pair]]


def collect(settings: Settings, results: Results) -> None:
    """Measure the groups of all orders with intervals, compare them, and write the tables.

    If some are not trained, the measurements of those that are replace or extend the table of
    results, and the contrasts are centered on it; the other tables stay.
    """
    splits = unpack(results, torch.device("cpu"))
    found = {trial: row for trial, row in read_trials(results).items() if trial.fields == FIELDS}
    logits = {trial: _arrays(results, trial)["logits"] for trial in found}
    pairs = {
        trial: calibration.top_label(logits=given, labels=splits[f"{trial.data}-test"][1])
        for trial, given in logits.items()
    }
    measured = [result_row(t, row, pairs[t], splits) for t, row in found.items()]
    wanted = [*trials(replace(settings, parts=(ORDERS,)))]
    if missing := [trial for trial in wanted if trial not in found]:
        print(f"{len(missing)} of {len(wanted)} networks are not trained: earlier rows are kept")
        results.write("results", merged(results["results"], measured))
        results.write("contrasts", centered(results["contrasts"], results["results"]))
        return
    results.write("results", measured)
    results.write("angles", _angle_rows(results, found))
    results.write("contrasts", compared(pairs, orders))
    tested = {trial.data for trial in found}
    if photographs := [name for name in PHOTOGRAPHS if name in tested]:
        near = [row for name in photographs for row in neighbor_rows(name, *splits[f"{name}-test"])]
        results.write("neighbours", near)
    predicted: dict[str, list[Pair]] = defaultdict(list)
    for trial, given in logits.items():
        if trial.data == "generated" and trial.group.startswith("dihedral"):
            predicted[trial.network].append(given.softmax(-1).max(-1))
    if predicted:
        results.write("bounds", bound_rows("generated", *splits["generated-test"], predicted))


def sizes(settings: Settings, results: Results) -> None:
    """Compare networks of equal size, on their own catalog and on the other one."""
    splits = unpack(results, torch.device("cpu"))
    wanted = {*trials(replace(settings, parts=("sizes",)))}
    found = {trial: row for trial, row in read_trials(results).items() if trial in wanted}
    arrays = {trial: _arrays(results, trial) for trial in found}
    own = {
        trial: calibration.top_label(logits=kept["logits"], labels=splits[f"{trial.data}-test"][1])
        for trial, kept in arrays.items()
    }
    results.write("sizes", [result_row(t, row, own[t], splits) for t, row in found.items()])
    results.write("size_contrasts", compared(own, equal_sizes))
    measured, moved = shift_rows(arrays, splits, results)
    results.write("shift", measured)
    results.write("shift_contrasts", compared(moved, equal_sizes))


def compared(pairs: Mapping[Trial, Pair], compare: Callable[..., Any]) -> list[Row]:
    """Compare the networks of each data set, over the seeds of each network and blur."""
    outputs: dict[str, Outputs] = defaultdict(lambda: defaultdict(list))
    for trial, pair in pairs.items():
        outputs[trial.data][trial.network, trial.blur].append(pair)
    return [row for name, own in outputs.items() for row in contrast_rows(name, own, compare)]


def merged(earlier: pd.DataFrame, measured: list[Row]) -> pd.DataFrame:
    """Replace and extend the rows of an earlier table, in the study's order."""
    both = pd.concat([earlier, pd.DataFrame(measured)]).drop_duplicates(KEY, keep="last")
    columns = both[["data", "blur", "family", "order", "seed"]].itertuples(index=False, name=None)
    places = [(list(BLURS).index(data), *others) for data, *others in columns]
    return both.iloc[sorted(range(len(both)), key=places.__getitem__)]


def read_trials(results: Results) -> dict[Trial, Row]:
    """Read which networks were trained, and their scores, in the study's order."""
    rows = read_rows(results.work)
    names = Trial.__dataclass_fields__
    found = {Trial(**{name: row[name] for name in names}): row for row in rows}
    return {trial: found[trial] for trial in sorted(found, key=_place)}


def _place(trial: Trial) -> tuple[object, ...]:
    where = (list(BLURS).index(trial.data), trial.blur, trial.fields)
    return (*where, trial.group.split(":")[0], trial.order, trial.seed)


def _arrays(results: Results, trial: Trial) -> dict[str, Tensor]:
    arrays = read_arrays(results.work, trial)
    return {name: torch.from_numpy(values) for name, values in arrays.items()}


def result_row(trial: Trial, scores: Row, pair: Pair, splits: Mapping[str, Split]) -> Row:
    """Measure one network on the test images of its data, with intervals."""
    trained = len(splits[f"{trial.data}-train"][1])
    head = {
        **{"data": trial.data, "network": trial.network, "family": trial.group.split(":")[0]},
        **{"order": trial.order, "blur": trial.blur, "seed": trial.seed},
        **{"epochs": trial.epochs, "steps": trial.epochs * (trained // BATCH)},
    }
    return head | measures(*pair) | {name: scores[name] for name in KEPT}


def _angle_rows(results: Results, trials: Iterable[Trial]) -> pd.DataFrame:
    """Compute accuracy, confidence and ECE over the circle: mean over seeds, and their range."""
    columns, angles = ["accuracy", "confidence", "ece"], 360 * np.arange(ANGLES) / ANGLES
    curves = [
        pd.DataFrame(_arrays(results, trial)["curves"].T.numpy(), columns=columns).assign(
            data=trial.data, network=trial.network, blur=trial.blur, angle=angles
        )
        for trial in trials
        if trial.network in DRAWN
    ]
    ends = {"": "mean", "_least": "min", "_most": "max"}
    kept = {f"{name}{end}": (name, how) for name in columns for end, how in ends.items()}
    groups = pd.concat(curves).groupby(["data", "network", "blur", "angle"], sort=False)
    return groups.agg(**kept).reset_index()
