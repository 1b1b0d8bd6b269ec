"""The regime map: what each loss gains against the ECE of the likelihood alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from orbical.figures import SOFT

from ..framework import Results
from . import mnist_grid, overfitted, transformer
from .claims import SentencePairs
from .front_claims import Front
from .front_figures import STYLE, panels
from .regimes import LOSSES, point
from .settings import BASELINE

LONG = {"mnist": "MNIST, LeNet-5, constant rate", "cifar10": "CIFAR-10, ResNet9, constant rate"}
"""The trainings that were scored over epochs."""


def points(
    results: Results,
    small: Mapping[str, Mapping[str, pd.DataFrame]],
    fronts: Mapping[str, Front],
    pairs: SentencePairs,
) -> pd.DataFrame:
    """Return the gain of each loss in every regime of the study, in points.

    Args:
        results: The study's tables.
        small: Data set, then loss, to the small trainings at the chosen weights.
        fronts: By data set.
        pairs: The trainings on sentence pairs.

    Returns:
        A row for each regime, number of epochs and loss.
    """
    return pd.DataFrame([*_points(results, small, fronts, pairs)])


def _points(
    results: Results,
    small: Mapping[str, Mapping[str, pd.DataFrame]],
    fronts: Mapping[str, Front],
    pairs: SentencePairs,
) -> Iterator[dict[str, Any]]:
    names = {"mnist": "MNIST, LeNet-5", "cifar10": "CIFAR-10, compact ResNet, 20,000 images"}
    for data, name in names.items():
        epochs = int(small[data][BASELINE]["epochs"].iloc[0])
        yield from point(name, epochs, small[data])
    for data, front in fronts.items():
        title = {"cifar10": "CIFAR-10", "cifar100": "CIFAR-100"}[data]
        own = {loss: front.at(loss) for loss in (BASELINE, *LOSSES)}
        yield from point(f"{title}, one cycle", int(front.rows["epochs"].iloc[0]), own)
    own = {loss: pairs.of(loss) for loss in (BASELINE, *LOSSES)}
    yield from point("sentence pairs", int(own[BASELINE]["epochs"].iloc[0]), own)
    own = transformer.trained(results["transformer"], "snli")
    yield from point("sentence pairs, MiniLM", int(own[BASELINE]["epochs"].iloc[0]), own)
    tiny = dict(iter(results["tiny"].groupby("loss")))
    yield from point("Tiny ImageNet, 25 classes", int(results["tiny"]["epochs"].iloc[0]), tiny)
    rows, curves = results["mnist"], results["mnist-epochs"]
    settings = mnist_grid.chosen(rows)
    keys = {n: mnist_grid.of(rows, s, mnist_grid.FRESH)["key"] for n, s in settings.items()}
    yield from _over_epochs(LONG["mnist"], keys, curves)
    own = overfitted.trained(results["overfitted"], "cifar10", "cycle")
    yield from point("CIFAR-10, one cycle, overfitted", int(own[BASELINE]["epochs"].iloc[0]), own)
    own = overfitted.trained(results["overfitted"], "cifar10", "constant")
    seeds = results["overfitted"][["key", "seed"]]
    curves = results["overfitted-epochs"].merge(seeds, on="key")
    yield from _over_epochs(LONG["cifar10"], {n: each["key"] for n, each in own.items()}, curves)


def _over_epochs(
    regime: str, keys: Mapping[str, pd.Series], curves: pd.DataFrame
) -> Iterator[dict[str, Any]]:
    for epoch, at in curves.groupby("epoch"):
        own = {loss: at[at["key"].isin(each)] for loss, each in keys.items()}
        yield from point(regime, int(str(epoch)), own)


def draw_map(rows: pd.DataFrame) -> Figure:
    """Draw the gain against the ECE of cross-entropy, a panel a loss; lines follow a training."""
    fig, grid = panels(1, len(LOSSES), 3.2, sharex=True, sharey=True)
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
