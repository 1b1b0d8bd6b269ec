"""How the study draws, and the figures of the fronts and of corrupted images."""

from __future__ import annotations

from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from orbical.figures import PAGE, SOFT, figure

from .front_claims import Front
from .fronts import COSTS, INNER
from .papers_grid import every_weight
from .settings import BASELINE

# Okabe and Ito's colors, which most readers can tell apart; a marker for those who cannot.
STYLE = {
    "NLL": ("#222222", "o"),
    "MMCE": ("#E69F00", "s"),
    "SB-ECE": ("#56B4E9", "^"),
    "ESD": ("#D55E00", "D"),
    "S-AvUC": ("#009E73", "v"),
    "ECE": ("#CC79A7", "P"),
}


def panels(rows: int, columns: int, height: float, **shared: Any) -> tuple[Figure, Any]:
    """Make a figure of panels with grids."""
    made = figure(PAGE, height)
    panels = made.subplots(rows, columns, squeeze=False, **shared)
    for axes in panels.flat:
        axes.grid(visible=True)
    return made, panels


def legend_below(fig: Figure, axes: Any) -> None:
    """Put the key of one of the panels below all of them."""
    handles, names = axes.get_legend_handles_labels()
    fig.legend(handles, names, loc="outside lower center", ncols=len(names))


def line(axes: Any, rows: pd.DataFrame, along: str, column: str, loss: str) -> None:
    """Draw means over seeds along a column, with a band of their standard deviation."""
    values = 100 * rows.groupby(along)[column].agg(["mean", "std"]).fillna(0.0)
    color, marker = STYLE[loss]
    axes.plot(values["mean"], color=color, marker=marker, markersize=3.5, label=loss)
    low, high = (values["mean"] - values["std"]).clip(0), values["mean"] + values["std"]
    axes.fill_between(values.index, low, high, color=color, alpha=0.15, linewidth=0)


TICKS = (0.2, 1, 5, 20, 50)
FRONTS = {"cifar10": "CIFAR-10", "cifar100": "CIFAR-100"}


def draw_fronts(every: dict[str, Front]) -> Figure:
    """Draw ECE against accuracy: every weight once, the chosen ones over seeds, and the front."""
    fig, grid = panels(1, len(every), 3.0)
    for axes, (data, front) in zip(grid[0], every.items(), strict=True):
        for loss in (BASELINE, *INNER):
            color, marker = STYLE[loss]
            own = front.first(loss).sort_values("weight")
            axes.plot(
                *(100 * own[c] for c in ("test.accuracy", "test.ece")),
                **{"color": color, "marker": marker, "markersize": 3, "linestyle": ""},
            )
            means = [
                100 * front.at(loss, cost)[["test.accuracy", "test.ece"]].mean()
                for cost in front.chosen.get(loss, ())
            ]
            if means:
                style = {"color": color, "marker": marker, "markersize": 5}
                axes.plot(*pd.DataFrame(means).to_numpy().T, **style)
            found = front.plain if loss == BASELINE else front.at(loss)
            for column, name in (("test.ece", loss), ("test_ts.ece", f"{loss}, one temperature")):
                if len(found) and (column == "test.ece" or loss == BASELINE):
                    both = [100 * found[c] for c in ("test.accuracy", column)]
                    x, y = (values.mean() for values in both)
                    wide, high = (values.std() for values in both)
                    fill = color if column == "test.ece" else "none"
                    style = {"color": color, "marker": marker, "mfc": fill, "markersize": 7}
                    axes.errorbar(x, y, high, wide, linestyle="", label=name, **style)
        limit = 100 * front.plain["test.accuracy"].mean() - 100 * COSTS[1]
        axes.axvline(limit, color=SOFT, linestyle=":", linewidth=1)
        axes.set(title=FRONTS[data], xlabel="test accuracy (%)", ylim=(0, None))
    grid[0][0].set_ylabel("test ECE (%)")
    legend_below(fig, grid[0][0])
    return fig


def draw_grid(front: Front, grid: pd.DataFrame) -> Figure:
    """Draw accuracy and ECE against every weight, one training each (the paper's Fig. 5)."""
    fig, axes = panels(1, 2, 2.9)
    titles = {"test.accuracy": "test accuracy (%)", "test.ece": "test ECE (%)"}
    for each, (column, title) in zip(axes[0], titles.items(), strict=True):
        for loss in INNER:
            line(each, every_weight(front, grid, loss), "weight", column, loss)
        level = 100 * front.plain[column].mean()
        each.axhline(level, color=STYLE[BASELINE][0], linewidth=1, label=BASELINE)
        if column == "test.accuracy":
            limit = level - 100 * COSTS[1]
            each.axhline(limit, color=SOFT, linestyle=":", label=f"{BASELINE} − 1.5")
        each.set(xscale="log", xlabel="λ", ylabel=title, ylim=(0, None))
        each.set_xticks(TICKS, [f"{weight:g}" for weight in TICKS], minor=False)
        each.minorticks_off()
    legend_below(fig, axes[0][0])
    return fig


def draw_corruptions(rows: pd.DataFrame) -> Figure:
    """Draw the ECE against the severity, mean over corruptions, before and after a temperature."""
    titles = {
        "accuracy": "accuracy",
        "ece": "ECE, as trained",
        "ece_ts": "ECE after one temperature",
    }
    fig, grid = panels(1, len(titles), 2.7, sharex=True)
    means = rows.groupby(["loss", "severity"], sort=False)[[*titles]].mean().reset_index()
    for axes, (column, title) in zip(grid[0], titles.items(), strict=True):
        for loss, own in means.groupby("loss", sort=False):
            line(axes, own, "severity", column, str(loss))
        axes.set(title=title, xlabel="severity", ylim=(0, None))
    grid[0][0].set_ylabel("percent")
    legend_below(fig, grid[0][0])
    return fig
