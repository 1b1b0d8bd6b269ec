"""The figures of the digits' NERO plots: from the scan, and from finished numbers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .numbers import Numbers
from .settings import DETAIL_DEG, NETWORKS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

REPRESENTATIVES = 8


def typical(scan: Any, digit: int, other: int) -> int:
    """A digit that the original takes for another at 170° and the augmented network does not.

    Of all such digits, the one whose probability under the augmented network is the median.
    """
    data = scan.data
    place = int(np.argmin(np.abs(data["angle"].values - DETAIL_DEG)))
    at = data.isel(element=place)
    predicted = {network: at["predicted"].sel(model=network).values for network in NETWORKS}
    rows = np.flatnonzero(
        (data["label"].values == digit)
        & (predicted["plain"] == other)
        & (predicted["augmented"] == digit)
    )
    if not len(rows):
        rows = np.flatnonzero(data["label"].values == digit)
    score = at["score"].sel(model="augmented").values[rows]
    return int(rows[np.argsort(score)[len(rows) // 2]])


def detail_figure(scan: Any) -> Figure:
    """Draw a 6 and a 9: the responses, the digit turned by 170°, and all classes there."""
    import torch

    from orbical.actions import Images
    from orbical.figures import show_picture
    from orbical.figures.style import PAGE, figure, model_colors, styled

    data = scan.data
    place = int(np.argmin(np.abs(data["angle"].values - DETAIL_DEG)))
    colours = model_colors(NETWORKS)
    angle = np.deg2rad(data["angle"].values)
    with styled():
        fig = figure(PAGE, 4.4)
        grid = fig.add_gridspec(2, 3, width_ratios=[1, 0.55, 1.3])
        for row, (digit, other) in enumerate(((6, 9), (9, 6))):
            sample = typical(scan, digit, other)
            polar: Any = fig.add_subplot(grid[row, 0], projection="polar")
            bars = fig.add_subplot(grid[row, 2])
            for number, network in enumerate(NETWORKS):
                one = data.sel(model=network).isel(sample=sample)
                score = one["score"].values
                polar.plot(
                    np.append(angle, 2 * np.pi), np.append(score, score[0]), color=colours[network]
                )
                bars.bar(
                    np.arange(10) + 0.4 * number - 0.2,
                    one["probabilities"].values[place],
                    width=0.38,
                    color=colours[network],
                    label=network,
                )
            polar.set_theta_zero_location("N")
            polar.set(ylim=(0, 1.03), rticks=[0.5, 1.0])
            polar.axvline(angle[place], color="0.4", lw=0.8)
            polar.set_title(f"digit {digit}, sample {sample}", fontsize=8)
            image = torch.from_numpy(data["input"].values[sample])[None]
            turned = Images().apply(scan.group[place : place + 1], image)[0, 0, 0].numpy()
            show_picture(fig.add_subplot(grid[row, 1]), turned, f"turned by {DETAIL_DEG}°")
            bars.set(xticks=range(10), ylim=(0, 1), ylabel="probability")
            bars.tick_params(length=0)
        fig.axes[1].legend(loc="upper left", fontsize=7)
    return fig


def six_nine_figure(numbers: Numbers) -> Figure:
    """Draw how often 6 and 9 are right, or taken for each other, along the orbit."""
    from orbical.figures.style import PAGE, figure, model_colors, styled

    colours = model_colors(NETWORKS)
    with styled():
        fig = figure(PAGE, 2.6)
        panels = fig.subplots(1, 2, sharey=True)
        for ax, (digit, other) in zip(panels, ((6, 9), (9, 6)), strict=True):
            for network in NETWORKS:
                rows = [row for key, row in numbers.six_nine.items() if key[:2] == (network, digit)]
                angles = [row["angle"] for row in rows]
                ax.plot(angles, [row["right"] for row in rows], color=colours[network],
                        label=f"{network}: right")  # fmt: skip
                ax.plot(angles, [row["as_other"] for row in rows], "--", color=colours[network],
                        label=f"{network}: taken for {other}")  # fmt: skip
            ax.set(xlabel="rotation", title=f"digit {digit}", ylim=(0, 1.02))
            ax.set_xticks(range(0, 361, 90), [f"{a}°" for a in range(0, 361, 90)])
            ax.grid(True)
        panels[0].set_ylabel("share of the digits")
        handles, labels = panels[0].get_legend_handles_labels()
        words = [label.replace("taken for 9", "taken for the other") for label in labels]
        fig.legend(handles, words, loc="outside lower center", ncols=4, fontsize=7)
    return fig


def draw(scan: Any, folder: Path) -> list[Path]:
    """Draw all figures of the page that need the scan."""
    import orbical as ob

    embedding = ob.embedding.embed(scan, model="plain")
    beside = ob.embedding.representatives(embedding, REPRESENTATIVES).tolist()
    responses = ob.nero.individual(scan, beside)
    images = scan.data["input"].isel(sample=beside).values
    figures = {
        "aggregate": ob.figures.aggregate(ob.nero.aggregate(scan, by="label")),
        "details": detail_figure(scan),
        "embedding-mean": ob.figures.embedding(embedding, responses, images, colour="mean"),
        "embedding-variance": ob.figures.embedding(embedding, colour="variance"),
        "embedding-digit": ob.figures.embedding(embedding, colour="label"),
        "ece": ob.figures.aggregate(ob.calibration.along_orbit(scan, "ece", bins=15)),
        "six-nine": six_nine_figure(Numbers(folder)),
    }
    return [ob.figures.save(figure, folder / f"{name}.png") for name, figure in figures.items()]
