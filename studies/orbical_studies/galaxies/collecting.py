"""From the answers of the trained networks to the CSV files of the page."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from orbical import calibration
from orbical.errors import InputError

from ..pages import Row, write_csv
from ..trials import FILE, read_lines
from . import packing
from .contrasts import Pair, contrast_rows
from .matching import bound_rows, neighbour_rows
from .settings import ANGLES, DATA, WIDE, Trial
from .training import BATCH, BINS

WIDE_NAME = f"cyclic:1 x {WIDE}"
DRAWN = ("cyclic:1", "cyclic:2", "cyclic:4", "cyclic:8", "cyclic:12", "dihedral:12")
"""Networks whose curves over the circle are kept."""

KEPT = (
    *("nll", "train_nll", "refitted_accuracy", "refitted_ece"),
    *("defect_group", "gap_circle", "action_defect", "parameters", "seconds"),
)


def collect(out: Path, pack: Path, folder: Path) -> Iterator[Path]:
    """Measure the stored logits with intervals, compare networks, and write CSV files."""
    found = read_trials(out)
    splits = packing.unpack(pack, torch.device("cpu"))
    labels = {name: splits[f"{name}-test"][1] for name in {trial.data for trial, _ in found}}
    logits = {trial: _logits(out, trial, len(labels[trial.data])) for trial, _ in found}
    pairs = {
        trial: calibration.top_label(logits=given, labels=labels[trial.data])
        for trial, given in logits.items()
    }
    trained = {name: len(splits[f"{name}-train"][1]) for name in labels}
    rows = [result_row(trial, scores, pairs[trial], trained[trial.data]) for trial, scores in found]
    yield write_csv(folder / "results.csv", rows)
    yield write_csv(folder / "angles.csv", angle_rows(out, [trial for trial, _ in found]))
    data = [name for name in DATA if name in labels]
    contrasts = []
    for name in data:
        answers: dict[tuple[str, float], list[Pair]] = {}
        for trial, pair in pairs.items():
            if trial.data == name:
                answers.setdefault((trial.network, trial.blur), []).append(pair)
        contrasts += contrast_rows(name, answers, WIDE_NAME)
    yield write_csv(folder / "contrasts.csv", contrasts)
    near = [
        row for n in data if n != "generated" for row in neighbour_rows(n, *splits[f"{n}-test"])
    ]
    if near:
        yield write_csv(folder / "neighbours.csv", near)
    if "generated" in data:
        answered: dict[str, list[Pair]] = {}
        for trial, given in logits.items():
            if trial.data == "generated" and trial.group.startswith("dihedral"):
                answered.setdefault(trial.network, []).append(given.softmax(-1).max(-1))
        bounded = bound_rows("generated", *splits["generated-test"], answered)
        yield write_csv(folder / "bounds.csv", bounded)


def read_trials(out: Path) -> list[tuple[Trial, Row]]:
    """Read which networks were trained, and their scores, in the study's order."""
    rows = read_lines(out / FILE, option="out")
    names = Trial.__dataclass_fields__
    found = [(Trial(**{name: row[name] for name in names}), row) for row in rows]
    return sorted(found, key=_place)


def _place(entry: tuple[Trial, Row]) -> tuple[object, ...]:
    trial = entry[0]
    family, order = trial.group.split(":")
    return (DATA.index(trial.data), trial.blur, trial.width, family, int(order), trial.seed)


def _logits(out: Path, trial: Trial, count: int) -> Tensor:
    with np.load(out / trial.file) as file:
        logits = torch.from_numpy(file["logits"])
    if len(logits) != count:
        raise InputError(f"pack: {count} test images given, {trial} answered {len(logits)}")
    return logits


def result_row(trial: Trial, scores: Row, pair: Pair, trained: int) -> Row:
    """Measure one network, trained on so many images, on the test images, with intervals."""
    confidence, correct = pair
    row: Row = {
        "data": trial.data,
        "network": trial.network,
        "family": trial.group.split(":")[0],
        "order": int(trial.group.split(":")[1]),
        "width": trial.width,
        "blur": trial.blur,
        "seed": trial.seed,
        "epochs": trial.epochs,
        "steps": trial.epochs * (trained // BATCH),
        "galaxies": len(correct),
        "confidence": float(confidence.mean()),
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


def angle_rows(out: Path, trials: list[Trial]) -> list[Row]:
    """Give accuracy, confidence and ECE over the circle: the mean over seeds, and their range."""
    groups: dict[tuple[str, str, float], list[Trial]] = {}
    for trial in trials:
        if trial.network in DRAWN:
            groups.setdefault((trial.data, trial.network, trial.blur), []).append(trial)
    rows = []
    for (data, network, blur), seeds in groups.items():
        curves = np.stack([np.load(out / trial.file)["curves"] for trial in seeds])
        for k in range(ANGLES):
            row: Row = {"data": data, "network": network, "blur": blur, "angle": 360 * k / ANGLES}
            for place, name in enumerate(("accuracy", "confidence", "ece")):
                at = curves[:, place, k]
                row[name] = float(at.mean())
                row[f"{name}_least"], row[f"{name}_most"] = float(at.min()), float(at.max())
            rows.append(row)
    return rows
