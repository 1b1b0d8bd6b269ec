"""From the outputs of the trained networks to the CSV files of the page."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from orbical import calibration

from ..framework import Results
from ..framework.training import arrays_file
from ..trials import FILE, read_lines
from .contrasts import Pair, contrast_rows
from .matching import bound_rows, neighbor_rows
from .packing import unpack
from .settings import BLURS, WIDE, Settings, Trial
from .training import ANGLES, BATCH, BINS

# Networks whose curves over the circle are kept.
DRAWN = ("cyclic:1", "cyclic:2", "cyclic:4", "cyclic:8", "cyclic:12", "dihedral:12")
KEPT = (
    *("nll", "train_nll", "refitted_accuracy", "refitted_ece"),
    *("defect_group", "gap_circle", "action_defect", "parameters", "seconds"),
)
Row = dict[str, Any]


def collect(settings: Settings, results: Results) -> None:
    """Measure the stored logits with intervals, compare networks, and write all tables."""
    splits = unpack(results, torch.device("cpu"))
    labels = {name: splits[f"{name}-test"][1] for name in BLURS if f"{name}-test" in splits}
    found = read_trials(results)
    logits = {trial: _logits(results, trial) for trial in found}
    pairs = {
        trial: calibration.top_label(logits=given, labels=labels[trial.data])
        for trial, given in logits.items()
    }
    trained = {name: len(splits[f"{name}-train"][1]) for name in labels}
    measured = (result_row(t, row, pairs[t], trained[t.data]) for t, row in found.items())
    results.write("results", measured)
    results.write("angles", angle_rows(results, found))
    outputs: dict[str, dict[tuple[str, float], list[Pair]]] = defaultdict(lambda: defaultdict(list))
    for trial, pair in pairs.items():
        outputs[trial.data][trial.network, trial.blur].append(pair)
    wide = f"cyclic:1 x {WIDE}"
    contrasts = [row for name in outputs for row in contrast_rows(name, outputs[name], wide)]
    results.write("contrasts", contrasts)
    if photographs := [name for name in outputs if name != "generated"]:
        near = [row for name in photographs for row in neighbor_rows(name, *splits[f"{name}-test"])]
        results.write("neighbours", near)
    predicted: dict[str, list[Pair]] = defaultdict(list)
    for trial, given in logits.items():
        if trial.data == "generated" and trial.group.startswith("dihedral"):
            predicted[trial.network].append(given.softmax(-1).max(-1))
    if predicted:
        results.write("bounds", bound_rows("generated", *splits["generated-test"], predicted))


def read_trials(results: Results) -> dict[Trial, Row]:
    """Read which networks were trained, and their scores, in the study's order."""
    rows = read_lines(results.work / FILE)
    names = Trial.__dataclass_fields__
    found = {Trial(**{name: row[name] for name in names}): row for row in rows}
    return {trial: found[trial] for trial in sorted(found, key=_place)}


def _place(trial: Trial) -> tuple[object, ...]:
    where = (list(BLURS).index(trial.data), trial.blur, trial.width)
    return (*where, trial.group.split(":")[0], trial.order, trial.seed)


def _logits(results: Results, trial: Trial) -> Tensor:
    return torch.from_numpy(np.load(arrays_file(results.work, trial))["logits"])


def result_row(trial: Trial, scores: Row, pair: Pair, trained: int) -> Row:
    """Measure one network, trained on so many images, on the test images, with intervals."""
    confidence, correct = pair
    row: Row = {
        **{"data": trial.data, "network": trial.network, "family": trial.group.split(":")[0]},
        **{"order": trial.order, "width": trial.width, "blur": trial.blur, "seed": trial.seed},
        **{"epochs": trial.epochs, "steps": trial.epochs * (trained // BATCH)},
        **{"galaxies": len(correct), "confidence": float(confidence.mean())},
    }
    found = {
        "accuracy": calibration.share_interval(correct, confidence),
        "ece": calibration.interval("ece", confidence, correct, bins=BINS),
        "esd": calibration.interval("esd", confidence, correct),
        "overconfidence": calibration.mean_interval(
            confidence.double() - correct.double(),
            torch.zeros_like(confidence),
            confidence * (1 - confidence),
        ),
    }
    for name, interval in found.items():
        row[name] = float(interval.value)
        row[f"{name}_low"], row[f"{name}_high"] = float(interval.low), float(interval.high)
    row["ece_calibrated"] = float(found["ece"].calibrated)
    row["ece_calibrated_high"] = float(found["ece"].calibrated_high)
    return row | {name: scores[name] for name in KEPT}


def angle_rows(results: Results, trials: Iterable[Trial]) -> pd.DataFrame:
    """Compute accuracy, confidence and ECE over the circle: mean over seeds, and their range."""
    measures, angles = ["accuracy", "confidence", "ece"], 360 * np.arange(ANGLES) / ANGLES
    curves = [
        pd.DataFrame(
            np.load(arrays_file(results.work, trial))["curves"].T, columns=measures
        ).assign(data=trial.data, network=trial.network, blur=trial.blur, angle=angles)
        for trial in trials
        if trial.network in DRAWN
    ]
    ends = {"": "mean", "_least": "min", "_most": "max"}
    kept = {f"{name}{end}": (name, how) for name in measures for end, how in ends.items()}
    groups = pd.concat(curves).groupby(["data", "network", "blur", "angle"], sort=False)
    return groups.agg(**kept).reset_index()
