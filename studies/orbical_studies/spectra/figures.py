"""The spectra study's figures, from its finished rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..pages import Row
from .numbers import Data, chosen, squares_done
from .settings import BONDS, DISTANCES, LIKELIHOOD, NETWORKS, PENALTY, SQUARES, STEERABLE

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLES = {
    "paper": "the paper's molecule",
    "usual": "in the middle",
    "poor": "one of the worst tenth",
}
COLOURS = {STEERABLE: 0, DISTANCES: 1, BONDS: 2}


def samples_figure(data: Data) -> Figure:
    """Draw spectra with answers, and both uncertainties beside them (the paper's Fig. 9)."""
    from orbical.figures.style import INK, MODELS, PAGE, SOFT, figure, styled

    with styled():
        fig = figure(PAGE, 6.0)
        panels = fig.subplots(len(TITLES), 2, sharex=True)
        for (left, right), (kind, title) in zip(panels, TITLES.items(), strict=True):
            rows = [row for row in data["samples"] if row["kind"] == kind]
            x = column(rows, "wavenumber")
            truth, answer = column(rows, "truth"), column(rows, "answer")
            aleatoric, epistemic = column(rows, "aleatoric"), column(rows, "epistemic")
            total = np.hypot(aleatoric, epistemic)
            left.fill_between(
                *(x, np.maximum(answer - total, 0), answer + total),
                **{"color": MODELS[0], "alpha": 0.2, "lw": 0, "label": "± one deviation"},
            )
            left.plot(x, truth, color=INK, lw=1.0, label="truth")
            left.plot(x, answer, color=MODELS[0], lw=1.2, label="answer")
            top = 1.35 * max(truth.max(), answer.max())
            named = f"{rows[0]['smiles']}: {title}, R² {rows[0]['r2']:.2f}"
            if "answer_squares" in rows[0]:
                beside = column(rows, "answer_squares")
                left.plot(x, beside, color=MODELS[3], lw=1.0, label="mean by squares")
                top = max(top, 1.05 * beside.max())
                named += f"; by squares {rows[0]['r2_squares']:.2f}"
            left.set(ylim=(0, top), ylabel="√ absorption")
            left.set_title(named, loc="left", fontsize=7.5)
            right.plot(x, np.abs(truth - answer), color=SOFT, lw=1.0, label="error")
            right.plot(x, aleatoric, color=MODELS[1], lw=1.3, label="aleatoric")
            right.plot(x, epistemic, color=MODELS[2], lw=1.3, label="epistemic")
            right.set(yscale="log", ylabel="deviation")
            right.set_ylim(max(1e-4, 0.3 * min(aleatoric.min(), epistemic.min())), None)
            right.grid()
        for ax in panels[-1]:
            ax.set_xlabel("wavenumber (cm⁻¹)")
        lines = [line for ax in panels[0] for line in ax.get_legend_handles_labels()[0]]
        names = [str(line.get_label()) for line in lines]
        fig.legend(lines, names, loc="outside upper center", ncols=7)
    return fig


def regions_figure(data: Data) -> Figure:
    """Draw bleed, the share called noise and calibration at each wavenumber, for each network."""
    from orbical.figures.style import MODELS, PAGE, figure, styled

    names = {
        "typical": "typical bleed; dotted: if all error were called noise",
        "bleed": "bleed as defined, a mean of squares: the pole at α = 1 decides",
        "noise_share": "share of the variance that is called noise",
        "ence": "calibration error of the whole variance; dotted: if it were calibrated",
    }
    with styled():
        fig = figure(PAGE, 7.6)
        panels = dict(zip(names, fig.subplots(4, 1, sharex=True), strict=True))
        for network in reversed(NETWORKS):
            rows = chosen(data["wavenumbers"], network, PENALTY)
            colour = MODELS[COLOURS[network]]
            x = np.array(sorted({row["wavenumber"] for row in rows}))
            for name, ax in panels.items():
                band(ax, x, rows, name, color=colour, label=network)
            for name, limit in (("typical", "typical_limit"), ("ence", "ence_floor")):
                level = np.median(by_place(rows, x, limit), 1)
                panels[name].plot(x, level, color=colour, lw=0.9, ls=":")
        for (name, title), label in zip(
            names.items(), ("bleed", "bleed", "share", "ENCE"), strict=True
        ):
            panels[name].set_title(title, loc="left")
            panels[name].set(ylabel=label, yscale="log" if label == "bleed" else "linear")
            panels[name].grid()
        panels["noise_share"].set_ylim(0, None)
        panels["ence"].set(ylim=(0, None), xlabel="wavenumber (cm⁻¹)")
        handles = panels["typical"].get_legend_handles_labels()
        fig.legend(*handles, loc="outside upper right", ncols=3)
    return fig


def shares_figure(data: Data) -> Figure:
    """Draw how many test molecules have at least an R^2, a panel for each way to learn means."""
    from orbical.figures.style import INK, MODELS, PAGE, SOFT, figure, styled

    ways = {LIKELIHOOD: "means by likelihood, the paper's"}
    if squares_done(data):
        ways[SQUARES] = "means by squared error"
    base = data["limits"][0]["mean_r2"]
    with styled():
        fig = figure(PAGE, 2.7)
        panels = fig.subplots(1, len(ways), sharey=True, squeeze=False)[0]
        for ax, (means, title) in zip(panels, ways.items(), strict=True):
            for network in reversed(NETWORKS):
                rows = chosen(data["explained"], network, PENALTY, means=means)
                for place, seed in enumerate(sorted({row["seed"] for row in rows})):
                    own = [row for row in rows if row["seed"] == seed]
                    label = network if place == 0 else None
                    x, y = column(own, "r2"), 1 - column(own, "share")
                    ax.plot(x, y, color=MODELS[COLOURS[network]], lw=1.1, label=label)
            ax.axvline(0.9, color=SOFT, lw=0.8, ls="--")
            ax.text(0.89, 0.06, "the paper's .9", color=SOFT, ha="right", fontsize=7)
            ax.axvline(base, color=INK, lw=0.8, ls=":")
            ax.text(base - 0.01, 0.06, "the mean spectrum", color=INK, ha="right", fontsize=7)
            ax.set(xlim=(0, 1), ylim=(0, 1), xlabel="R² of a spectrum")
            ax.set_title(title, loc="left")
            ax.grid()
        panels[0].set_ylabel("share above it")
        panels[0].legend(loc="center left")
    return fig


def signals_figure(data: Data) -> Figure:
    """Draw variances and errors in ten bins of what the true spectrum is like."""
    from orbical.figures.style import INK, MODELS, PAGE, figure, styled

    names = {"height": "height", "slope": "slope", "detail": "detail (high frequency)"}
    lines = {
        "mse": ("squared error", INK),
        "aleatoric": ("aleatoric", MODELS[1]),
        "epistemic": ("epistemic", MODELS[2]),
    }
    with styled():
        fig = figure(PAGE, 2.9)
        panels = fig.subplots(1, 3, sharey=True)
        found = chosen(data["signals"], STEERABLE, PENALTY)
        for ax, (signal, label) in zip(panels, names.items(), strict=True):
            rows = [row for row in found if row["signal"] == signal]
            bins = np.array(sorted({row["bin"] for row in rows}))
            for name, (title, colour) in lines.items():
                values = np.array(
                    [[row[name] for row in rows if row["bin"] == place] for place in bins]
                )
                ax.plot(bins, values.mean(1), "o-", ms=3, color=colour, label=title)
            ax.set(yscale="log", xlabel=f"tenths by {label}", xticks=range(1, 11, 3))
            ax.grid()
        panels[0].set_ylabel("median in the tenth")
        fig.legend(*panels[0].get_legend_handles_labels(), loc="outside upper center", ncols=3)
    return fig


def column(rows: list[Row], name: str) -> Any:
    """One column of rows, as an array."""
    return np.array([row[name] for row in rows], float)


def by_place(rows: list[Row], x: Any, name: str) -> Any:
    """A column at each wavenumber `[points, seeds]`."""
    found: dict[float, list[float]] = {}
    for row in rows:
        found.setdefault(row["wavenumber"], []).append(row[name])
    return np.array([found[place] for place in x])


def band(ax: Any, x: Any, rows: list[Row], name: str, **style: Any) -> None:
    """Draw the median over seeds and their range: a mean of sizes would be the largest of them."""
    values = by_place(rows, x, name)
    ax.plot(x, np.median(values, 1), lw=1.3, **style)
    ax.fill_between(x, values.min(1), values.max(1), color=style["color"], alpha=0.15, lw=0)
