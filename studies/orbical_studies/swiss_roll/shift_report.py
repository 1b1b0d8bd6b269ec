"""What extrinsic invariance costs, and what it protects from: the numbers and the figure."""

from __future__ import annotations

from typing import Any

import pandas as pd
from matplotlib.figure import Figure
from scipy.stats import t

from orbical.figures import INK, MODELS, SOFT

from ..framework import Results
from ..framework.drawing import legend_outside, subplots
from ..resampling import effect
from .training import INVARIANT, PLAIN

ALPHA, WITHIN = 0.05, 0.1
COMPARISONS = {"data": 8, "shift": 16}
"""How many intervals of a question hold at once."""

MEASURES = {"accuracy": 1, "ece": -1}
"""What is compared, and the sign of the better side."""

WORLD = ["correct", "incorrect"]


def shift_facts(results: Results) -> dict[str, Any]:
    """Return what the page says about the third share."""
    rows, kinds = results["extrinsic"], results["kinds"]
    contrasts = pd.DataFrame([*_contrasts(rows, "data"), *_contrasts(rows, "shift")])
    off = _largest_distances(kinds[kinds["seed"].notna()])
    return {
        "contrasts": contrasts,
        "cost": contrasts[contrasts["on"] == "data"],
        "protection": contrasts[contrasts["on"] == "shift"],
        "above_ceiling": int(
            (_invariant(rows)["accuracy"] > _invariant(rows)["ceiling"] + 1e-9).sum()
        ),
        "asked": len(_invariant(rows)),
        "off": off,
        "off_all": _largest_distances(kinds[kinds["seed"].isna()]),
        "kinds_found": bool((off <= WITHIN).all()),
    }


def _invariant(rows: pd.DataFrame) -> pd.DataFrame:
    return rows[(rows["network"] == INVARIANT) & (rows["on"] == "data")]


def _contrasts(rows: pd.DataFrame, on: str) -> list[dict[str, Any]]:
    """Compare the networks, seed by seed, in the worlds that a question is about.

    On the data these are the worlds without an incorrect share that have an extrinsic one; on the
    shift all that have one.
    """
    asked = rows[rows["on"] == on]
    if on == "data":
        asked = asked[(asked["incorrect"] == 0) & (asked["correct"] < 1)]
    found = []
    for world, own in asked.groupby(WORLD, sort=False):
        seeds = own.pivot(index="seed", columns="network", values=[*MEASURES])
        for measure, better in MEASURES.items():
            change = 100 * (seeds[measure, INVARIANT] - seeds[measure, PLAIN])
            reach = t.ppf(1 - ALPHA / 2 / COMPARISONS[on], len(change) - 1)
            reach *= change.std() / len(change) ** 0.5
            found.append(
                {
                    **dict(zip(WORLD, world, strict=True)),
                    **{"on": on, "measure": measure, "value": change.mean()},
                    **{"low": change.mean() - reach, "high": change.mean() + reach},
                    **{n: 100 * seeds[measure, n].mean() for n in (INVARIANT, PLAIN)},
                    "effect": effect(change.mean() - reach, change.mean() + reach, better, "costs"),
                }
            )
    return found


def _largest_distances(kinds: pd.DataFrame) -> pd.Series:
    """Return by world how far the worst of the three measured shares is from the true one."""
    means = kinds.groupby(WORLD, sort=False).mean(numeric_only=True).reset_index()
    truth = {
        "correct": means["correct"],
        "incorrect": means["incorrect"],
        "extrinsic": 1 - means["correct"] - means["incorrect"],
    }
    off = pd.DataFrame(
        {name: (means[f"measured_{name}"] - true).abs() for name, true in truth.items()}
    )
    return off.max(axis=1).set_axis(pd.MultiIndex.from_frame(means[WORLD]))


def draw_shift(results: Results) -> Figure:
    """Draw accuracy and ECE of both networks on the data and on the shift, by world."""
    rows = results["extrinsic"]
    worlds = list(rows.groupby(WORLD, sort=False).groups)
    titles = {"accuracy": "accuracy (%)", "ece": "ECE (%), 100 bins"}
    kinds = {"data": "on the data", "shift": "on the shift"}
    fig, panels = subplots(1, 2, 3.2, sharey=True, grid="x")
    for ax, (measure, title) in zip(panels, titles.items(), strict=True):
        for network, color in ((INVARIANT, MODELS[0]), (PLAIN, MODELS[1])):
            for on, words in kinds.items():
                own = rows[(rows["network"] == network) & (rows["on"] == on)]
                places = [worlds.index((r.correct, r.incorrect)) for r in own.itertuples()]
                ax.plot(
                    100 * own[measure],
                    [place + (0.15 if on == "shift" else -0.15) for place in places],
                    *("D" if on == "shift" else "o",),
                    **{"color": color, "ms": 4, "alpha": 0.6},
                    mfc="none" if on == "shift" else color,
                    label=f"{network}, {words}",
                )
        ax.set_yticks(range(len(worlds)), [_shares(*world) for world in worlds])
        ax.set(xlabel=title, ylim=(len(worlds) - 0.5, -0.5), xlim=(-3, 103))
        ax.axvline(50 if measure == "accuracy" else 0, color=SOFT, lw=0.8)
    ax.tick_params(colors=INK)
    legend_outside(ax, ncols=2)
    return fig


def _shares(correct: float, incorrect: float) -> str:
    """Name a world by its shares in quarters.

    >>> _shares(0.25, 0.25)
    '¼ correct, ¼ incorrect, ½ extrinsic'
    """
    quarters = {0.25: "¼", 0.5: "½", 0.75: "¾", 1.0: "all"}
    parts = {"correct": correct, "incorrect": incorrect, "extrinsic": 1 - correct - incorrect}
    return ", ".join(f"{quarters[share]} {name}" for name, share in parts.items() if share)
