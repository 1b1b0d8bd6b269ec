"""Means over pairs of every training, with intervals over pairs, and tests of differences."""

from __future__ import annotations

import numpy as np
import pandas as pd

from orbical.calibration import bootstrap_interval, holm
from orbical.zoo import flownet

from ..framework import Results, where
from ..framework.statistics import sign_flip
from .settings import MODELS

ROOTS = ("gap", "gap_plane", "rmse")  # columns whose squares are averaged


def shipped(results: Results) -> pd.DataFrame:
    """Return the rows of the networks of the package, trained once, and the classical methods."""
    return results["samples"].assign(training=0)


def trained_here(results: Results) -> pd.DataFrame:
    """Return the rows of all trainings, and those of the classical methods beside each."""
    trained, rows = results["trainings"], results["samples"]
    classical = rows[~rows["model"].isin(flownet.NAMES)]
    again = classical.merge(trained[["training"]].drop_duplicates(), how="cross")
    return pd.concat([trained, again], join="inner", ignore_index=True)


def averaged(rows: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    """Average the columns over rows of equal keys; of gaps and of RMSE, the squares."""
    numbers = rows.select_dtypes("number").columns.difference(keys)
    squared = rows.assign(**{name: rows[name] ** 2 for name in ROOTS})
    found = squared.groupby(keys, sort=False)[list(numbers)].mean()
    return found.assign(**{name: found[name] ** 0.5 for name in ROOTS})


def by_training(rows: pd.DataFrame, kind: str | None = None) -> pd.DataFrame:
    """Return means over pairs: rows (set, training), columns (quantity, model)."""
    rows = rows if kind is None else rows[rows["kind"] == kind]
    return averaged(rows, ["set", "training", "model"]).unstack("model")


def holds(rows: pd.DataFrame) -> dict[str, bool]:
    """Apply the rules of the page to every set and training: whether each holds in all of them."""
    every, turbulence, uniform = (by_training(rows, k) for k in (None, "turbulence", "uniform"))
    others = [name for name in MODELS if name != "directed"]
    carried = every["error_forward_truth"] / every["error"] - 1
    worse = every["consensus_error"] > every["error"]
    most_accurate = every["error"]["directed"] < every["error"][others].min(axis=1)
    largest_gap = every["gap"]["directed"] > every["gap"][others].max(axis=1)
    ratio, ratio_uniform = (
        some["error"]["farneback"] / some["error"]["directed"] for some in (turbulence, uniform)
    )
    worst = every["error_worst"]
    found = {
        "less_equivariant": every["gap"]["directed"] > 2 * every["gap"]["farneback"],
        "mended": every["gap"]["symmetric"] <= 2 * every["gap"]["farneback"],
        "spared": turbulence["gap"]["directed"] <= 2 * turbulence["gap"]["farneback"],
        "hidden": most_accurate & largest_gap,
        "worst_moved": worst["directed"] > worst[others].max(axis=1),
        "complex": ratio > ratio_uniform,
        "consensus": worse["directed"] & ~worse["symmetric"],
        "cost": every["error"]["directed"] < every["error"]["symmetric"],
        "mid_time": carried["directed"] >= 0.02,
        "first_frame": carried["symmetric"] <= -0.02,
    }
    return {name: bool(values.all()) for name, values in found.items()}


def interval(rows: pd.DataFrame, column: str, model: str, name: str) -> tuple[float, float, float]:
    """Return a mean over pairs and trainings, with its 95 % interval over pairs."""
    values = averaged(where(rows, model=model, set=name), ["name"])[column].to_numpy()
    return bootstrap_interval(values, _root_mean_square if column in ROOTS else np.mean)


def _root_mean_square(values: np.ndarray) -> float:
    return float(np.sqrt((values**2).mean()))


def tests(rows: pd.DataFrame) -> pd.DataFrame:
    """Test the two differences of the summary over pairs in each set, with Holm's correction."""
    pairs = averaged(rows, ["set", "name", "model"]).unstack("model")
    wanted = {"gap": ("directed", "symmetric"), "error": ("symmetric", "directed")}
    found_rows = []
    for column, (more, less) in wanted.items():
        for name, some in pairs[column].groupby("set", sort=False):
            difference = (some[more] - some[less]).to_numpy()
            found = dict(zip(("mean", "low", "high"), bootstrap_interval(difference), strict=True))
            about = {"difference": f"{column} of {more} minus {less}", "set": name}
            found_rows.append({**about, "pairs": len(some), **found, "p": sign_flip(difference)})
    return pd.DataFrame(found_rows).assign(p_holm=holm([row["p"] for row in found_rows]))
