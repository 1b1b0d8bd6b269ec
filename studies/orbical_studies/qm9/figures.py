"""The molecule study's figures, from its finished rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from orbical.calibration import gence_floor

from .numbers import Data, limit, networks_of, values
from .paper import SYMBOLS, TABLE
from .settings import (
    ALL,
    COMPARED,
    GIN_NAME,
    INVARIANT_NAME,
    LIKELIHOOD,
    NETWORKS,
    PRINTED,
    PROPERTIES,
    SHOWN,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

DRAWN = 450
"""Molecules that are drawn as dots."""
DOTS: dict[str, Any] = {"ms": 2.5, "mew": 0, "alpha": 0.6}

OFFSET = {name: 0.22 * (1 - place) for place, name in enumerate(NETWORKS)}


def _colours(data: Data) -> dict[str, str]:
    from orbical.figures.style import model_colors

    colours = model_colors(NETWORKS)
    return {name: colours[name] for name in networks_of(data)}


def _named(ax: Any) -> None:
    """Write the properties up the left side, the first on top."""
    ax.set_yticks(range(len(PROPERTIES)), [SYMBOLS[name] for name in PROPERTIES])
    ax.set_ylim(len(PROPERTIES) - 0.4, -0.6)
    ax.grid(axis="x")
    for place in range(1, len(PROPERTIES)):
        ax.axhline(place - 0.5, color="#EEEEEE", lw=0.6, zorder=0)


def _dots(ax: Any, data: Data, column: str, hollow: bool = False, **chosen: Any) -> None:
    """Draw each seed as a dot, one colour a network."""
    for network, colour in _colours(data).items():
        for place, name in enumerate(PROPERTIES):
            found = values(data, column, name, network, **chosen)
            ax.plot(
                found,
                [place - OFFSET[network]] * len(found),
                "o",
                ms=3.2 if hollow else 3.8,
                mew=0.6 if hollow else 0,
                mec=colour,
                mfc="none" if hollow else colour,
                alpha=0.5 if hollow else 0.85,
                ls="none",
                label=network if place == 0 and not hollow else None,
            )


def _paper_marks(ax: Any, data: Data, column: str) -> None:
    """Draw the paper's values as crosses in the colour of their network."""
    colours = _colours(data)
    for network in COMPARED:
        label = f"paper, {'GIN' if network == GIN_NAME else 'E(3)-invariant'}"
        for place, name in enumerate(PROPERTIES):
            if name in TABLE:
                value = getattr(TABLE[name], f"{network.lower()}_{column}")
                ax.plot(
                    [value if value > 0 else np.nan],
                    [place - OFFSET[network]],
                    "x",
                    ms=5,
                    mew=1.2,
                    color=colours[network],
                    label=label if place == 0 else None,
                )


def _floors(ax: Any, heights: list[float], label: str, **style: Any) -> None:
    """Draw a short upright line for each property."""
    for place, value in enumerate(heights):
        ax.plot(
            [value, value],
            [place - 0.38, place + 0.38],
            label=label if place == 0 else None,
            **({"lw": 1.3, "solid_capstyle": "butt"} | style),
        )


def errors_figure(data: Data) -> Figure:
    """Draw errors in deviations: the mean, the paper's, ours with both losses."""
    from orbical.figures.style import INK, PAGE, figure, styled

    with styled():
        fig = figure(PAGE, 4.3)
        panels = fig.subplots(1, 2, sharey=True, sharex=True)
        chosen = ((LIKELIHOOD, "likelihood after a start by squares"), (PRINTED, "printed loss"))
        for ax, (loss, title) in zip(panels, chosen, strict=True):
            constant = [limit(data, name)["mean_mae"] for name in PROPERTIES]
            _floors(ax, constant, "predicting the mean", color=INK)
            _dots(ax, data, "mae", loss=loss)
            _paper_marks(ax, data, "mae")
            ax.set_xscale("log")
            ax.set_title(title, loc="left")
            ax.set_xlabel("mean absolute error (deviations of the property)")
            _named(ax)
        handles, labels = panels[0].get_legend_handles_labels()
        fig.legend(handles, labels, loc="outside upper center", ncols=6)
    return fig


def bleed_figure(data: Data) -> Figure:
    """Draw bleed with and without the worst molecules, and the aleatoric share."""
    from orbical.figures.style import INK, PAGE, figure, styled

    with styled():
        fig = figure(PAGE, 4.4)
        left, right = fig.subplots(1, 2, sharey=True, width_ratios=[2.2, 1])
        _dots(left, data, "bleed", hollow=True)
        _dots(left, data, "bleed_99")
        _paper_marks(left, data, "bleed")
        bonds = [limit(data, name)["bond_bleed"] for name in PROPERTIES]
        _floors(left, bonds, "NLL-optimal for GIN", color=INK, ls=":")
        left.plot([], [], "o", ms=3.2, mew=0.6, mec=INK, mfc="none", label="with the worst 1 %")
        left.set_xscale("log")
        left.set_xlim(left=1e-12)
        left.set_xlabel("aleatoric bleed (deviations⁴)")
        _dots(right, data, "share")
        right.set_xlim(0, 1.03)
        right.set_xlabel("aleatoric share (median)")
        for ax in (left, right):
            _named(ax)
        handles, labels = left.get_legend_handles_labels()
        fig.legend(handles, labels, loc="outside upper center", ncols=4)
    return fig


def calibration_figure(data: Data) -> Figure:
    """Draw three measures of calibration beside the values of calibrated networks."""
    from orbical.figures.style import INK, PAGE, figure, styled

    with styled():
        fig = figure(PAGE, 4.0)
        panels = fig.subplots(1, 3, sharey=True)
        texts = {
            "coverage": ("coverage error", "coverage_floor"),
            "ence": ("ENCE", "ence_floor"),
            "gence": ("GENCE", "gence_own"),
        }
        for ax, (column, (title, floor)) in zip(panels, texts.items(), strict=True):
            for place, name in enumerate(PROPERTIES):
                for network in networks_of(data):
                    ax.plot(
                        [float(np.mean(values(data, floor, name, network)))],
                        [place - OFFSET[network]],
                        "|",
                        ms=8,
                        mew=1.3,
                        color=INK,
                        label="if calibrated" if (place, network) == (0, GIN_NAME) else None,
                    )
            _dots(ax, data, column)
            ax.set_title(title, loc="left")
            _named(ax)
        for ax in panels[:2]:
            ax.set_xlim(left=0)
        panels[2].axvline(gence_floor, color=INK, ls=":", lw=1, label="a calibrated Gaussian")
        handles, labels = panels[2].get_legend_handles_labels()
        fig.legend(handles, labels, loc="outside upper center", ncols=5)
    return fig


def dipole_figure(data: Data) -> Figure:
    """Draw the paper's Fig. 8: answers, parts of the variance, and their distributions."""
    from orbical.figures.style import PAGE, figure, styled

    with styled():
        fig = figure(PAGE, 5.2)
        panels = fig.subplots(2, 2)
        _answers(panels[0, 0], data)
        _ratios(panels[0, 1], data)
        for ax, part in zip(panels[1], ("epistemic", "aleatoric"), strict=True):
            _distribution(ax, data, part)
    return fig


def _answers(ax: Axes, data: Data) -> None:
    """Draw answers against the truth, a dot a molecule."""
    from orbical.figures.style import INK

    rows = data["molecules"][:DRAWN]
    truth = np.array([row["truth"] for row in rows])
    colours = _colours(data)
    for network in COMPARED[::-1]:
        mean = np.array([row[f"{network}_mean"] for row in rows])
        ax.plot(truth, mean, ".", color=colours[network], label=network, **DOTS)
    top = float(truth.max())
    ax.plot([0, top], [0, top], color=INK, lw=0.8)
    ax.set(xlabel="dipole (D)", ylabel="answer (D)")
    ax.legend(loc="upper left", markerscale=3)


def _ratios(ax: Axes, data: Data) -> None:
    """Draw how many times as large each part of GIN's variance is, a dot a molecule."""
    from orbical.figures.style import INK

    rows = data["molecules"][:DRAWN]
    truth = np.array([row["truth"] for row in rows])
    for part, colour in (("aleatoric", "#009E73"), ("epistemic", "#CC79A7")):
        gin, other = (
            np.array([row[f"{network}_{part}"] for row in rows])
            for network in (GIN_NAME, INVARIANT_NAME)
        )
        ax.plot(truth, np.log10(gin) - np.log10(other), ".", color=colour, label=part, **DOTS)
    ax.axhline(0, color=INK, lw=0.8)
    ax.set(xlabel="dipole (D)", ylabel="log₁₀ GIN's / invariant's variance", ylim=(-2, 4))
    ax.legend(loc="upper right", markerscale=3)


def _distribution(ax: Axes, data: Data, part: str) -> None:
    """Draw how a part of the variance is spread over all test molecules."""
    colours = _colours(data)
    for network in COMPARED:
        bins = [
            row
            for row in data["histogram"]
            if (row["network"], row["property"]) == (network, SHOWN)
        ]
        starts, shares = (np.array([row[name] for row in bins]) for name in ("from", part))
        ax.step(10.0**starts, shares, where="post", color=colours[network], label=network)
    ax.set_xscale("log")
    ax.set_xlim(1e-5, 1e1)
    ax.set(xlabel=f"{part} variance (deviations²)", ylabel="share of molecules")
    ax.legend(loc="upper left")
    ax.grid()


def curves_figure(data: Data) -> Figure:
    """Draw validation errors along the training."""
    from matplotlib.ticker import NullLocator

    from orbical.figures.style import PAGE, figure, styled

    shown = ("dipole", "u0_atom", "u0")
    with styled():
        fig = figure(PAGE, 2.4)
        panels = fig.subplots(1, len(shown))
        for ax, name in zip(panels, shown, strict=True):
            for network, colour in _colours(data).items():
                for loss, line in ((LIKELIHOOD, "-"), (PRINTED, "--")):
                    rows = [
                        row
                        for row in data["curves"]
                        if (row["network"], row["loss"], row["target"]) == (network, loss, ALL)
                    ]
                    epochs = sorted({row["epoch"] for row in rows})
                    seeds = np.array(
                        [[row[name] for row in rows if row["epoch"] == epoch] for epoch in epochs]
                    )
                    if not len(seeds):
                        continue
                    label = f"{network}, printed loss" if loss == PRINTED else network
                    ax.plot(epochs, seeds.mean(1), color=colour, ls=line, lw=1.1, label=label)
            ax.set_yscale("log")
            low, high = ax.get_ylim()
            ticks = [v for v in (0.003, 0.01, 0.03, 0.1, 0.2, 0.3, 0.5) if low < v < high]
            ax.set_yticks(ticks, [f"{v:g}" for v in ticks])
            ax.yaxis.set_minor_locator(NullLocator())
            ax.set_title(SYMBOLS[name], loc="left")
            ax.set_xlabel("epoch")
            ax.grid()
        panels[0].set_ylabel("validation MAE (deviations)")
        handles, labels = panels[0].get_legend_handles_labels()
        fig.legend(handles, labels, loc="outside upper center", ncols=5)
    return fig
