"""Numbers and figures of the Swiss roll study, from its results alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from scipy.stats import t

from orbical.figures import INK, MODELS, SOFT

from ..framework import Results, where
from ..framework.drawing import legend_outside, subplots
from ..framework.statistics import effect
from .spirals import swiss_roll
from .training import INVARIANT, PLAIN

EXTRINSIC = "all extrinsic"
PAPER = pd.DataFrame(
    {
        "accuracy": [0.575, 0.620, 0.665, 0.725, 0.770, 0.835, 0.905, 0.965],
        "ece": [0.217, 0.230, 0.255, 0.203, 0.207, 0.140, 0.090, 0.034],
    },
    index=[f"{eighths}/8" for eighths in range(1, 9)],
)
"""Fig. 3 of the paper for its invariant network: one run each."""


def _last(results: Results, table: str = "results") -> pd.DataFrame:
    """Return the measurements after the last epoch on the paper's line of worlds."""
    rows = results[table]
    on_line = rows["correct"] + rows["incorrect"] > 0
    return rows[(rows["epoch"] == rows["epoch"].max()) & on_line]


def _line(results: Results, network: str, table: str = "results") -> pd.DataFrame:
    """Return means over seeds on the paper's line of worlds, by the correct share."""
    last = _last(results, table)
    return last[last["network"] == network].groupby("correct").mean(numeric_only=True)


def _follows(results: Results, column: str, sign: int, table: str = "results") -> bool:
    """Check whether a column rises (or falls), allowing steps within the deviation over seeds."""
    last = _last(results, table)
    groups = last[last["network"] == INVARIANT].groupby("correct")[column]
    steps = sign * groups.mean().diff().iloc[1:]
    allowed = groups.std().fillna(0.0).rolling(2).max().iloc[1:]
    return bool(steps.sum() > 0 and (steps >= -allowed).all())


def _beyond(rows: pd.DataFrame) -> dict[str, int]:
    """Count networks above their accuracy ceiling, and outside of their ECE interval."""
    low, high = rows["sharp_lower"] - 1e-4, rows["sharp_upper"] + 1e-4
    above = rows["accuracy"] > rows["ceiling"] + 1e-9
    return {"above": above.sum(), "outside": (~rows["ece"].between(low, high)).sum()}


def facts(results: Results) -> dict[str, Any]:
    """Return what the page refers to."""
    rows = results["results"]
    names = (8 * rows["correct"]).map("{:g}/8".format)
    names = names.where(rows["correct"] + rows["incorrect"] > 0, EXTRINSIC)
    groups = dict(iter(rows.groupby([rows["network"], names, "epoch"], sort=False)))
    last = rows["epoch"].max()
    measured = rows[rows["network"] == INVARIANT]
    invariant, plain = _line(results, INVARIANT), _line(results, PLAIN)
    return {
        "at": lambda network, world, epoch=last: groups[network, world, epoch],
        "worlds": list(names.unique()),
        "epochs": sorted(rows["epoch"].unique()),
        "networks": [INVARIANT, PLAIN],
        "rows": rows,
        "paper": PAPER,
        "measurements": len(measured),
        **_beyond(measured),
        "wide": {
            **_beyond(_last(results, "width").query("network == @INVARIANT")),
            "line": _line(results, INVARIANT, "width"),
            "rises": _follows(results, "accuracy", 1, "width"),
            "falls": _follows(results, "ece", -1, "width"),
        },
        "shortfall": invariant["ceiling"] - invariant["accuracy"],
        "invariant": invariant,
        "plain": plain,
        "rises": _follows(results, "accuracy", 1),
        "falls": _follows(results, "ece", -1),
        "lower_end_falls": _follows(results, "sharp_lower", -1),
        **shift_facts(results),
    }


def figures(results: Results) -> Iterator[tuple[str, Figure]]:
    """Draw the worlds, accuracy and ECE against the correct share, and the bias of small sets."""
    yield "worlds.png", _worlds()
    yield "accuracy-and-ece.png", _accuracy_and_ece(results)
    yield "bias.png", _bias(results)
    yield "shift.png", draw_shift(results)


def _worlds() -> Figure:
    """Draw four worlds from above, as a model that cannot see the height sees them."""
    shown = {
        "all incorrect": (0.0, 1.0),
        "half correct": (0.5, 0.5),
        "all correct": (1.0, 0.0),
        EXTRINSIC: (0.0, 0.0),
    }
    fig, panels = subplots(1, len(shown), 2.3)
    for ax, (name, shares) in zip(panels, shown.items(), strict=True):
        roll = swiss_roll(*shares, points=320)
        half = len(roll) // 2
        # The upper height as a ring around the lower one's dot: both labels stay visible.
        for rows, ring in ((slice(half, None), True), (slice(half), False)):
            colors = [MODELS[label] for label in roll.label[rows]]
            faces = "none" if ring else colors
            size, line = (13, 0.7) if ring else (3, 0)
            x, y = roll.x[rows, :2].T
            ax.scatter(x, y, s=size, facecolors=faces, edgecolors=colors, linewidths=line)
        ax.set_title(name, loc="left")
        ax.set(aspect="equal", xlim=(-0.54, 0.54), ylim=(-0.54, 0.54), xticks=[], yticks=[])
        ax.spines[:].set_visible(False)
    marks = [("label 0", MODELS[0], "s", MODELS[0]), ("label 1", MODELS[1], "s", MODELS[1])]
    marks += [("z = 0", INK, ".", INK), ("z = 1", INK, "o", "none")]
    handles = [
        Line2D([], [], color=c, marker=m, ls="none", label=name, mfc=face, ms=5, mew=0.8)
        for name, c, m, face in marks
    ]
    fig.legend(handles=handles, loc="outside lower center", ncols=4)
    return fig


def _draw_paper(ax: Any, column: str) -> None:
    share = [int(world[0]) / 8 for world in PAPER.index]
    ax.plot(share, PAPER[column], "x", color=SOFT, ms=5, label="paper, invariant (one run)")


def _accuracy_and_ece(results: Results) -> Figure:
    """Draw accuracy under its ceiling and ECE inside its interval: Fig. 3 of the paper."""
    last, bounds = _last(results), _line(results, INVARIANT)
    fig, (left, right) = subplots(1, 2, 3.3, grid="both")
    dashed = {"color": INK, "ls": "--", "lw": 1}
    left.plot(bounds["ceiling"], label="ceiling 1 - i/2", **dashed)
    right.fill_between(
        bounds.index,
        bounds["sharp_lower"],
        bounds["sharp_upper"],
        **{"color": MODELS[5], "alpha": 0.2, "lw": 0, "label": "sharp interval, invariant"},
    )
    right.plot(bounds["sharp_lower"], label="its lower end", **dashed)
    for ax, column in ((left, "accuracy"), (right, "ece")):
        for network, color in ((INVARIANT, MODELS[0]), (PLAIN, MODELS[1])):
            ax.plot(_line(results, network)[column], color=color, label=network)
            seeds = last[last["network"] == network]
            ax.plot(seeds["correct"], seeds[column], ".", color=color, alpha=0.35, ms=3, zorder=1)
        _draw_paper(ax, column)
        ax.set_xlabel("share of correct invariance (the rest is incorrect)")
    left.set(ylabel="test accuracy", ylim=(0.45, 1.02))
    right.set(ylabel="ECE, 100 bins", ylim=(0, 0.45))
    left.set_title("Accuracy under its ceiling", loc="left")
    right.set_title("ECE inside its interval", loc="left")
    left.legend(loc="lower right")
    right.legend(loc="upper right")
    return fig


def _bias(results: Results) -> Figure:
    """Draw what a test set of 200 points does to the same networks' ECE."""
    test, small = _last(results)[["test", "small"]].iloc[0]
    fig, panels = subplots(1, 2, 3.1, sharey=True, grid="both")
    for ax, network, color in zip(panels, (INVARIANT, PLAIN), MODELS, strict=False):
        line = _line(results, network)
        ax.plot(line["ece"], color=color, label=f"{test:,} points")
        ax.errorbar(
            line.index,
            line["small_ece"],
            yerr=line["small_spread"],
            label=f"{small} points (bar: deviation between sets)",
            **{"color": color, "ls": "--", "lw": 1.2, "capsize": 2, "marker": "o", "ms": 3},
        )
        label = f"{small} points, if calibrated"
        ax.plot(line["small_calibrated"], color=INK, ls=":", label=label)
        if network == INVARIANT:
            _draw_paper(ax, "ece")
        ax.set(xlabel="share of correct invariance", ylim=(0, 0.42))
        ax.set_title(network, loc="left")
        ax.legend(loc="upper right")
    panels[0].set_ylabel("ECE, 100 bins")
    return fig


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
    asked = where(rows, network=INVARIANT, on="data")
    return {
        "contrasts": contrasts,
        "cost": contrasts[contrasts["on"] == "data"],
        "protection": contrasts[contrasts["on"] == "shift"],
        "above_ceiling": int((asked["accuracy"] > asked["ceiling"] + 1e-9).sum()),
        "asked": len(asked),
        "off": off,
        "off_all": _largest_distances(kinds[kinds["seed"].isna()]),
        "kinds_found": bool((off <= WITHIN).all()),
    }


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
                own = where(rows, network=network, on=on)
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
