"""From summaries of scans to the tables of the page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from orbical.errors import InputError

from ..framework import Results
from ..framework.training import arrays_file, read_rows
from .images import CLASSES, images_of_objects, unpack
from .measures import Array
from .training import JITTERS, WHOLE, Settings, Trial


def read_arrays(path: Path) -> dict[str, Array]:
    """Read all arrays of a file, floats in double precision."""
    with np.load(path) as arrays:
        found = {name: arrays[name] for name in arrays.files}
    return {name: v.astype(float) if v.dtype.kind == "f" else v for name, v in found.items()}


def read_tables(work: Path) -> tuple[list[dict[str, Any]], dict[str, pd.DataFrame]]:
    """Read the rows of all trainings, and the tables of the seeds of which no level is missing."""
    rows = sorted(read_rows(work), key=lambda row: (row["seed"], row["jitter"]))
    found = [Trial(row["jitter"], row["seed"]) for row in rows]
    full = [t for t in found if all(Trial(jitter, t.seed) in found for jitter in JITTERS)]
    if Trial(JITTERS[0], WHOLE) not in full:
        raise InputError(
            "work", f"all levels of seed {WHOLE} in {str(work)!r}", remedy="run 'train'"
        )
    parts: dict[str, list[pd.DataFrame]] = {}
    for trial in full:
        tables: dict[str, dict[str, Array]] = {}
        for name, values in read_arrays(arrays_file(work, trial)).items():
            table, column = name.split("/")
            tables.setdefault(table, {})[column] = np.atleast_1d(values)
        for table, columns in tables.items():
            parts.setdefault(table, []).append(pd.DataFrame(vars(trial) | columns))
    return rows, {name: pd.concat(some, ignore_index=True) for name, some in parts.items()}


def collect(settings: Settings, results: Results) -> None:
    """Write the tables from what `train` stored."""
    trained, tables = read_tables(results.work)
    results.write("trainings", trained)
    for name in ("levels", "dark-spots", "period", "consensus"):
        results.write(name, tables[name])
    sure = tables["certainty"]
    results.write("certainty", sure[sure["seed"] == WHOLE].drop(columns="seed"))
    shifts = tables["shifts"]
    section = shifts[shifts["dy"] == 0].round(5)
    results.write("section", section[["jitter", "seed", "dx", "score"]])
    maps = shifts.groupby(["dx", "dy", "jitter"], sort=False)[["score", "ap", "ece"]].mean()
    maps = maps.round(5).unstack("jitter").sort_index(level=["dy", "dx"], ascending=[False, True])
    order = [(name, jitter) for jitter in JITTERS for name in ("score", "ap", "ece")]
    maps = maps[order].set_axis([f"{name}_{jitter}" for name, jitter in order], axis=1)
    results.write("shifts", maps.reset_index())
    objects = tables["objects"].astype({"class": pd.CategoricalDtype(CLASSES)})
    objects["image"] = images_of_objects(unpack(results.work)["test"])[objects["object"]]
    means = objects.groupby(["jitter", "object", "image", "class"], observed=True).mean()
    results.write("objects", means.drop(columns="seed").round(4).reset_index())
    classes = objects.groupby(["seed", "jitter", "class"], observed=True)
    score = classes[["centre", "orbit"]].mean()
    score.insert(0, "objects", classes.size())
    results.write("classes", score.swaplevel(0, 1).reset_index())
