"""Numbers and figures of the digits' NERO plots, from the results and, for figures, the scan."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import torch
from matplotlib.figure import Figure

import orbical as ob
from orbical.actions import Images
from orbical.figures import MODELS, PAGE, figure, model_colors, show_picture

from ..framework import Results
from ..framework.drawing import legend_outside, subplots
from ..framework.statistics import wilson
from ..hidden_failures import with_shares
from .measures import ALIKE, ANGLES, APART, NETWORKS, SMALL_DEG, store

DETAIL_DEG = 170  # where a 6 and a 9 are looked at closely
REPRESENTATIVES = 8


def facts(results: Results) -> dict[str, Any]:
    """Return what the page refers to."""
    digits, curves = results["digits"], results["curves"]
    by_angle = curves["accuracy"] * curves["samples"]
    sums = by_angle.groupby([curves["network"], curves["angle"]]).sum()
    return {
        "networks": results["networks"].set_index("network"),
        "angles": ANGLES,
        "small": SMALL_DEG,
        "alike": ALIKE,
        "apart": APART,
        "plain": digits.query("network == 'plain'").set_index("digit"),
        "augmented": digits.query("network == 'augmented'").set_index("digit"),
        "curves": curves.set_index(["network", "digit", "angle"]),
        "accuracy": sums["augmented"] / curves.query("angle == 0")["samples"].sum() * 2,
        "six_nine": results["six-nine"].set_index(["network", "digit", "angle"]),
        "maps": results["maps"].set_index("network"),
        "worst": with_shares(results["worst"], len(results["worst"])),
    }


def figures(results: Results) -> Iterator[tuple[str, Figure]]:
    """Draw 6 and 9 along the orbit and, if the scan is at hand, everything else."""
    yield "six-nine.png", _six_nine(results)
    yield "worst.png", _worst(results["worst"])
    if not store(results).is_dir():
        return
    scan = ob.load(store(results))
    embedding = ob.embedding.embed(scan, model="plain")
    beside = ob.embedding.representatives(embedding, REPRESENTATIVES).tolist()
    responses, images = ob.nero.individual(scan, beside), scan.data["input"].isel(sample=beside)
    yield "aggregate.png", ob.figures.aggregate(ob.nero.aggregate(scan, by="label"))
    yield "details.png", _details(scan)
    yield "embedding-mean.png", ob.figures.embedding(embedding, responses, images.values)
    yield "embedding-variance.png", ob.figures.embedding(embedding, color="variance")
    yield "embedding-digit.png", ob.figures.embedding(embedding, color="label")
    errors = ob.calibration.along_orbit(scan, "ece", bins=15)
    yield "ece.png", ob.figures.aggregate(errors)


def _worst(rows: pd.DataFrame) -> Figure:
    """Draw the share of digits that fail upright, at a scanned angle and at the worst case."""
    kinds = {"wrong_found": "at the worst case", "wrong_scanned": "at a scanned angle"}
    kinds["wrong_upright"] = "upright"
    fig, panels = subplots(1, len(NETWORKS), 2.6, grid="y")
    for axes, network in zip(panels, NETWORKS, strict=True):
        mine = rows[rows["network"] == network]
        place = np.arange(len(mine))
        for number, (column, label) in enumerate(kinds.items()):
            hits, count = mine[column].to_numpy(), mine["samples"].to_numpy()
            low, high = wilson(hits, count)
            ends = np.stack([hits / count - low, high - hits / count])
            look: dict[str, Any] = {"fmt": "o", "color": MODELS[number], "ms": 4}
            axes.errorbar(place + 0.1 * (number - 1), hits / count, ends, label=label, **look)
        axes.set_xticks(place, mine["angles"])
        axes.set(xlabel="angles of the scan", title=network, ylim=(0, None))
    panels[0].set_ylabel("share of digits wrong")
    legend_outside(panels[0], ncols=len(kinds))
    return fig


def typical(data: Any, digit: int, other: int) -> int:
    """Return a digit that the plain network takes for another at 170°, and the augmented does not.

    Of all such digits, the one whose probability under the augmented network is the median.
    """
    at = data.isel(element=_detail(data))
    label = data["label"].values == digit
    plain, augmented = (at["predicted"].sel(model=network).values for network in NETWORKS)
    rows = np.flatnonzero(label & (plain == other) & (augmented == digit))
    rows = rows if len(rows) else np.flatnonzero(label)
    score = at["score"].sel(model="augmented").values[rows]
    return int(rows[np.argsort(score)[len(rows) // 2]])


def _detail(data: Any) -> int:
    return int(np.argmin(np.abs(data["angle"].values - DETAIL_DEG)))


def _details(scan: Any) -> Figure:
    """Draw a 6 and a 9: the responses, the digit rotated by 170°, and all classes there."""
    data, place, colors = scan.data, _detail(scan.data), model_colors(NETWORKS)
    angle = np.deg2rad(data["angle"].values)
    fig = figure(PAGE, 4.4)
    grid = fig.add_gridspec(2, 3, width_ratios=[1, 0.55, 1.3])
    for row, digit in enumerate((6, 9)):
        sample = typical(data, digit, 15 - digit)
        polar: Any = fig.add_subplot(grid[row, 0], projection="polar")
        bars = fig.add_subplot(grid[row, 2])
        for number, network in enumerate(NETWORKS):
            one, color = data.sel(model=network).isel(sample=sample), colors[network]
            score = one["score"].values
            polar.plot(np.append(angle, 2 * np.pi), np.append(score, score[0]), color=color)
            at, shown = np.arange(10) + 0.4 * number - 0.2, one["probabilities"].values[place]
            bars.bar(at, shown, width=0.38, color=color, label=network)
        polar.set_theta_zero_location("N")
        polar.set(ylim=(0, 1.03), rticks=[0.5, 1.0])
        polar.axvline(angle[place], color="0.4", lw=0.8)
        polar.set_title(f"digit {digit}, sample {sample}", fontsize=8)
        image = torch.from_numpy(data["input"].values[sample])[None]
        rotated = Images().apply(scan.group[place : place + 1], image)[0, 0, 0].numpy()
        show_picture(fig.add_subplot(grid[row, 1]), rotated, f"rotated by {DETAIL_DEG}°")
        bars.set(xticks=range(10), ylim=(0, 1), ylabel="probability")
        bars.tick_params(length=0)
    fig.axes[1].legend(loc="upper left", fontsize=7)
    return fig


def _six_nine(results: Results) -> Figure:
    """Draw how often 6 and 9 are right, or taken for each other, along the orbit."""
    colors, ticks = model_colors(NETWORKS), range(0, 361, 90)
    fig, panels = subplots(1, 2, 2.6, sharey=True, grid="both")
    for ax, digit in zip(panels, (6, 9), strict=True):
        for network in NETWORKS:
            rows = results["six-nine"].query("network == @network and digit == @digit")
            color, at = colors[network], rows["angle"]
            ax.plot(at, rows["right"], color=color, label=f"{network}: right")
            label = f"{network}: taken for the other"
            ax.plot(at, rows["as_other"], "--", color=color, label=label)
        ax.set(xlabel="rotation", title=f"digit {digit}", ylim=(0, 1.02))
        ax.set_xticks(ticks, [f"{a}°" for a in ticks])
    panels[0].set_ylabel("share of the digits")
    legend_outside(panels[0], ncols=4, fontsize=7)
    return fig
