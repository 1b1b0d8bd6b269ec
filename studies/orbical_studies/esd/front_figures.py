"""How the study draws: the fronts, corrupted images, and what each loss gains in which regime."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from orbical.figures import SOFT

from ..framework import Results
from ..framework.drawing import legend_outside, subplots
from . import mnist_grid, overfitted, transformer
from .claims import LOSSES, SentencePairs, gains
from .front_claims import Front
from .fronts import COSTS
from .papers_grid import every_weight
from .settings import BASELINE, INNER

# Okabe and Ito's colors, which most readers can tell apart; a marker for those who cannot.
STYLE = {
    "NLL": ("#222222", "o"),
    "MMCE": ("#E69F00", "s"),
    "SB-ECE": ("#56B4E9", "^"),
    "ESD": ("#D55E00", "D"),
    "S-AvUC": ("#009E73", "v"),
    "ECE": ("#CC79A7", "P"),
}


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
    fig, grid = subplots(1, len(every), 3.0, squeeze=False, grid="both")
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
    legend_outside(grid[0][0])
    return fig


def draw_grid(front: Front, grid: pd.DataFrame) -> Figure:
    """Draw accuracy and ECE against every weight, one training each (the paper's Fig. 5)."""
    fig, axes = subplots(1, 2, 2.9, squeeze=False, grid="both")
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
    legend_outside(axes[0][0])
    return fig


def draw_corruptions(rows: pd.DataFrame) -> Figure:
    """Draw the ECE against the severity, mean over corruptions, before and after a temperature."""
    titles = {
        "accuracy": "accuracy",
        "ece": "ECE, as trained",
        "ece_ts": "ECE after one temperature",
    }
    fig, grid = subplots(1, len(titles), 2.7, sharex=True, squeeze=False, grid="both")
    means = rows.groupby(["loss", "severity"], sort=False)[[*titles]].mean().reset_index()
    for axes, (column, title) in zip(grid[0], titles.items(), strict=True):
        for loss, own in means.groupby("loss", sort=False):
            line(axes, own, "severity", column, str(loss))
        axes.set(title=title, xlabel="severity", ylim=(0, None))
    grid[0][0].set_ylabel("percent")
    legend_outside(grid[0][0])
    return fig


LONG = {"mnist": "MNIST, LeNet-5, constant rate", "cifar10": "CIFAR-10, ResNet9, constant rate"}
"""The trainings that were scored over epochs."""


def map_points(
    results: Results,
    small: Mapping[str, Mapping[str, pd.DataFrame]],
    fronts: Mapping[str, Front],
) -> Iterator[dict[str, Any]]:
    """Yield the gain of each loss in every regime of the study, in points.

    Args:
        results: The study's tables.
        small: Data set, then loss, to the small trainings at the chosen weights.
        fronts: By data set.

    Yields:
        A row for each regime, number of epochs and loss.
    """
    names = {"mnist": "MNIST, LeNet-5", "cifar10": "CIFAR-10, compact ResNet, 20,000 images"}
    for data, name in names.items():
        yield from gains(name, small[data])
    for data, front in fronts.items():
        own = {loss: front.at(loss) for loss in (BASELINE, *LOSSES)}
        yield from gains(f"{FRONTS[data]}, one cycle", own)
    pairs, rows = SentencePairs(results["nli"]), results["mnist"]
    yield from gains("sentence pairs", {loss: pairs.of(loss) for loss in (BASELINE, *LOSSES)})
    mini = transformer.trained(results["transformer"], "snli")
    yield from gains("sentence pairs, MiniLM", mini)
    yield from gains("Tiny ImageNet, 25 classes", dict(iter(results["tiny"].groupby("loss"))))
    keys = {
        loss: mnist_grid.runs_of(rows, setting, mnist_grid.FRESH)["key"]
        for loss, setting in mnist_grid.chosen(rows).items()
    }
    yield from _over_epochs(LONG["mnist"], keys, results["mnist-epochs"])
    cycle, long = (
        overfitted.trained(results["overfitted"], "cifar10", way) for way in ("cycle", "constant")
    )
    yield from gains("CIFAR-10, one cycle, overfitted", cycle)
    seeds = results["overfitted"][["key", "seed"]]
    curves = results["overfitted-epochs"].merge(seeds, on="key")
    yield from _over_epochs(LONG["cifar10"], {n: each["key"] for n, each in long.items()}, curves)


def _over_epochs(
    regime: str, keys: Mapping[str, pd.Series], curves: pd.DataFrame
) -> Iterator[dict[str, Any]]:
    for _, at in curves.rename(columns={"epoch": "epochs"}).groupby("epochs"):
        yield from gains(regime, {loss: at[at["key"].isin(each)] for loss, each in keys.items()})


def draw_map(rows: pd.DataFrame) -> Figure:
    """Draw the gain against the ECE of cross-entropy, a panel a loss; lines follow a training."""
    fig, grid = subplots(1, len(LOSSES), 3.2, sharex=True, sharey=True, squeeze=False, grid="both")
    for axes, loss in zip(grid[0], LOSSES, strict=True):
        color, marker = STYLE[loss]
        own = rows[rows["loss"] == loss]
        for regime, each in own.groupby("regime", sort=False):
            long = regime in LONG.values()
            style = {"color": color, "marker": marker, "linewidth": 0.8}
            size = {"markersize": 3 if long else 6, "mfc": "none" if long else color}
            axes.errorbar(each["ece"], each["gain"], each["deviation"], **style, **size)
        axes.axhline(0, color=SOFT, linewidth=1)
        axes.set(title=loss, xlabel="ECE of cross-entropy (%)", xscale="log")
        axes.set_xticks([0.5, 1, 2, 5, 10, 20], ["0.5", "1", "2", "5", "10", "20"])
        axes.minorticks_off()
    grid[0][0].set_ylabel("gain: ECE that the loss saves (points)")
    return fig
