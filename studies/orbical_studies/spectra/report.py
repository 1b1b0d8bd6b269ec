"""Numbers and figures of the spectra study, from its results alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from orbical.figures import INK, MODELS, SOFT

from ..framework import Results, percent
from ..framework.drawing import legend_outside, subplots
from .contrasts import PAPER_R2, difference, finder, questions, repeated
from .measures import KIND
from .settings import NETWORKS, PAPER, PARTED, PARTS, PENALTY, REMEDY

PAPER_MOLECULES = 130_000
REGIONS = {
    "fingerprint": (0, 1800),
    "triple bonds": (1800, 2700),
    "hydrogen stretches": (2700, 1e9),
}
"""Parts of a spectrum in cm^-1."""
COLORS = dict(zip(NETWORKS, MODELS, strict=False))


def short(value: float) -> str:
    """Format a number with three digits.

    >>> short(0.12345), short(12345.6), short(0.0), short(1.2e-7)
    ('0.123', '12,300', '0', '1.2e-07')
    """
    if abs(value) >= 1000:
        return f"{float(f'{value:.3g}'):,.0f}"
    return f"{value:.3g}" if value == 0 or abs(value) >= 1e-3 else f"{value:.1e}"


def span(values: pd.Series, write: Callable[[float], str] = short) -> str:
    """Format the range of numbers that differ in size, as bleeds of different seeds do.

    >>> span(pd.Series([4.1e6, 2e5, 1e6])), span(pd.Series([1.5]))
    ('200,000 to 4,100,000', '1.5')
    """
    return " to ".join(dict.fromkeys(write(end) for end in (values.min(), values.max())))


class Table:
    """Rows of a table by network and training: `at(network, training, penalty)`."""

    def __init__(self, rows: pd.DataFrame) -> None:
        self.groups = dict(iter(rows.groupby(list(KIND[:4]))))

    def __call__(
        self, network: str, training: str = PAPER, penalty: float = PENALTY
    ) -> pd.DataFrame:
        """Return the rows of all seeds."""
        return self.groups[network, training, penalty, 1]


def learning_curve(rows: pd.DataFrame, network: str) -> pd.DataFrame:
    """Return the trainings of one network with the remedy and the first seed, by molecules.

    Returns:
        The rows with `exponent`, the b of the power law `1 - R² ~ n^-b` through the medians of a
        training and the one before; `extended`, the R² that it predicts for the paper's number of
        molecules, and `needed`, the molecules that it predicts for the paper's R².
    """
    remedy = (rows["training"] == REMEDY) & (rows["network"] == network)
    found = rows[remedy & (rows["seed"] == rows["seed"].min())].sort_values("train")
    missed, size = 1 - found["r2_median"], found["train"]
    power = np.log(missed.shift() / missed) / np.log(size / size.shift())
    return found.assign(
        exponent=power,
        extended=1 - missed * (size / PAPER_MOLECULES) ** power,
        needed=size * (missed / (1 - PAPER_R2)) ** (1 / power),
    )


def median_interval(explained: pd.DataFrame, molecules: int) -> list[float]:
    """Return the 95% interval of the median R² over test molecules, mean over seeds.

    The order statistics at the shares `1/2 ± 1.96 / (2 sqrt(n))` of n molecules contain the median
    in 95 of 100 samples, whatever the distribution.
    """
    steps = explained.groupby("share")["r2"].mean()
    reach = 1.96 / (2 * molecules**0.5)
    return [float(end) for end in np.interp([0.5 - reach, 0.5 + reach], steps.index, steps)]


def doubled(table: Table) -> bool:
    """Check whether all networks call more than twice as much noise without the penalty."""
    shares = [[table(n, PAPER, p)["noise_share"].mean() for p in (0.0, PENALTY)] for n in NETWORKS]
    return all(without > 2 * penalized for without, penalized in shares)


def facts(results: Results) -> dict[str, Any]:
    """Return what the page refers to."""
    rows, limits = results["results"], results["limits"].iloc[0]
    at, explained = Table(rows), Table(results["explained"])
    found, more = (finder(questions(results[name])) for name in ("contrasts", "more_contrasts"))

    def moved(column: str, sign: int) -> bool:
        """Check whether all seeds of all networks rise (or fall) with the remedy."""
        pairs = [(at(n)[column], at(n, REMEDY)[column]) for n in NETWORKS]
        return all((sign * new).min() > (sign * old).max() for old, new in pairs)

    def inside(frame: pd.DataFrame, region: str) -> pd.DataFrame:
        return frame[frame["wavenumber"].between(*REGIONS[region], inclusive="left")]

    return {
        **{"short": short, "span": span, "percent": percent, "at": at, "limits": limits},
        **{"moved": moved, "inside": inside},
        **{"networks": NETWORKS, "regions": list(REGIONS), "paper_r2": PAPER_R2},
        "places": Table(results["wavenumbers"]),
        "interval": lambda *kind: median_interval(explained(*kind), limits["test"]),
        "learning": lambda network: learning_curve(rows, network),
        "paper_molecules": PAPER_MOLECULES,
        **{"found": found, "found_more": more, "difference": difference},
        "repeated": repeated(found, more, *PARTED),
        "doubled": doubled,
        **{"again": Table(results["trainings"]), "second": results["training_limits"].iloc[0]},
        "trainings": results["trainings"],
        **{"more": Table(results["more_trainings"]), "third": results["more_limits"].iloc[0]},
        "more_trainings": results["more_trainings"],
        "quarter": learning_curve(results["more_trainings"], "bonds").iloc[0],
        "steps": lambda table: span(table["steps"], "{:,}".format),
        "results": rows,
    }


def figures(results: Results) -> Iterator[tuple[str, Figure]]:
    """Draw all figures of the page."""
    yield "samples.png", _samples(results)
    yield "trainings.png", _trainings(results)
    yield "explained.png", _explained(results)
    yield "remedy.png", _remedy(results)
    yield "learning.png", _learning(results)
    yield "wavenumbers.png", _wavenumbers(results)
    yield "signals.png", _signals(results)


def _samples(results: Results) -> Figure:
    """Draw spectra with predictions, and both uncertainties beside them (the paper's Fig. 9)."""
    titles = {
        "paper": "the paper's molecule",
        "usual": "in the middle",
        "poor": "one of the worst tenth",
    }
    fig, panels = subplots(len(titles), 2, 6.0, sharex=True)
    for (left, right), (kind, title) in zip(panels, titles.items(), strict=True):
        rows = results["samples"][results["samples"]["kind"] == kind].set_index("wavenumber")
        truth, answer, squares = rows["truth"], rows["answer"], rows["answer_squares"]
        total = np.hypot(rows["aleatoric"], rows["epistemic"])
        band = {"color": MODELS[0], "alpha": 0.2, "lw": 0, "label": "± one deviation"}
        left.fill_between(rows.index, (answer - total).clip(0), answer + total, **band)
        left.plot(truth, color=INK, lw=1.0, label="truth")
        left.plot(answer, color=MODELS[0], lw=1.2, label="prediction")
        left.plot(squares, color=MODELS[3], lw=1.0, label="mean by squares")
        top = max(1.35 * max(truth.max(), answer.max()), 1.05 * squares.max())
        left.set(ylim=(0, top), ylabel="√ absorption")
        one = rows.iloc[0]
        named = f"{one.smiles}: {title}, R² {one.r2:.2f}; by squares {one.r2_squares:.2f}"
        left.set_title(named, loc="left", fontsize=7.5)
        right.plot((truth - answer).abs(), color=SOFT, lw=1.0, label="error")
        for color, name in zip(MODELS[1:], ("aleatoric", "epistemic"), strict=False):
            right.plot(rows[name], color=color, lw=1.3, label=name)
        right.set(yscale="log", ylabel="deviation")
        right.set_ylim(max(1e-4, 0.3 * rows[["aleatoric", "epistemic"]].min().min()), None)
        right.grid()
    for ax in panels[-1]:
        ax.set_xlabel("wavenumber (cm⁻¹)")
    lines = [line for ax in panels[0] for line in ax.get_legend_handles_labels()[0]]
    fig.legend(handles=lines, loc="outside upper center", ncols=7)
    return fig


def _trainings(results: Results) -> Figure:
    """Draw what the remedy and each of its parts change against the paper's training."""
    titles = {"r2": "median R²", "nll": "NLL", "typical": "typical bleed (decades)"}
    asked = questions(results["contrasts"])
    rows = pd.concat([asked["parts"], asked["remedy"]])
    names = [*((NETWORKS[0], part) for part in reversed(PARTS)), *((n, REMEDY) for n in NETWORKS)]
    fig, panels = subplots(1, 3, 2.6, sharey=True, grid="x")
    for ax, (measure, title) in zip(panels, titles.items(), strict=True):
        found = rows[rows["measure"] == measure].set_index(["network", "training"])
        for y, (network, training) in enumerate(names):
            row, color = found.loc[network, training], COLORS[network]
            ax.plot([row["low"], row["high"]], [y, y], color=color, lw=1.2)
            ax.plot([row["value"]], [y], "o", ms=4, color=color)
        ax.axvline(0, color=SOFT, lw=0.8)
        ax.set_yticks(range(len(names)), [f"{network}: {how}" for network, how in names])
        ax.set_ylim(len(names) - 0.5, -0.5)
        ax.set_xlabel(f"change of {title}")
    return fig


def _bands(ax: Any, rows: pd.DataFrame, column: str, color: str, label: str) -> None:
    """Draw the median over seeds and their range: a mean would be dominated by the largest."""
    seeds = rows.groupby("wavenumber")[column]
    ax.plot(seeds.median(), lw=1.3, color=color, label=label)
    low, high = seeds.min(), seeds.max()
    ax.fill_between(low.index, low, high, color=color, alpha=0.15, lw=0)


def _stacked(titles: dict[str, tuple[str, str]], height: float) -> tuple[Figure, dict[str, Any]]:
    """Make panels one above the other, each with a title and the label of its axis."""
    fig, panels = subplots(len(titles), 1, height, sharex=True, grid="both")
    for ax, (title, label) in zip(panels, titles.values(), strict=True):
        ax.set_title(title, loc="left")
        ax.set(ylabel=label, yscale="log" if label == "bleed" else "linear")
    panels[-1].set_xlabel("wavenumber (cm⁻¹)")
    return fig, dict(zip(titles, panels, strict=True))


def _finish(fig: Figure, panels: dict[str, Any]) -> Figure:
    """Start linear axes at 0, and add the legend."""
    for ax in panels.values():
        if ax.get_yscale() == "linear":
            ax.set_ylim(0, None)
    legend_outside(next(iter(panels.values())), "upper right", ncols=3)
    return fig


def _wavenumbers(results: Results) -> Figure:
    """Draw bleed, the share called noise and calibration at each wavenumber, for each network."""
    titles = {
        "typical": ("typical bleed; dotted: if all error were called noise", "bleed"),
        "bleed": ("bleed as defined, a mean of squares: the pole at α = 1 decides", "bleed"),
        "noise_share": ("share of the variance that is called noise", "share"),
        "ence": ("calibration error of the whole variance; dotted: if it were calibrated", "ENCE"),
    }
    places = Table(results["wavenumbers"])
    fig, panels = _stacked(titles, 7.6)
    for network, color in COLORS.items():
        for name, ax in panels.items():
            _bands(ax, places(network), name, color, network)
        for name, limit in (("typical", "typical_limit"), ("ence", "ence_floor")):
            level = places(network).groupby("wavenumber")[limit].median()
            panels[name].plot(level, color=color, lw=0.9, ls=":")
    return _finish(fig, panels)


def _remedy(results: Results) -> Figure:
    """Draw error, bleed and share called noise at each wavenumber, for both ways to learn means."""
    titles = {
        "mse": ("mean squared error", "squared error"),
        "typical": ("typical bleed", "bleed"),
        "noise_share": ("share of the variance that is called noise", "share"),
    }
    places = Table(results["wavenumbers"])
    fig, panels = _stacked(titles, 5.4)
    for name, ax in panels.items():
        _bands(ax, places("steerable"), name, SOFT, "means by likelihood")
        _bands(ax, places("steerable", REMEDY), name, MODELS[0], "by squared error")
    return _finish(fig, panels)


def _explained(results: Results) -> Figure:
    """Draw the share of test molecules above an R^2, a panel for each way to learn means."""
    ways = {PAPER: "means by likelihood, the paper's", REMEDY: "means by squared error"}
    base, explained = results["limits"]["mean_r2"][0], Table(results["explained"])
    fig, panels = subplots(1, 2, 2.7, sharey=True, grid="both")
    for ax, (training, title) in zip(panels, ways.items(), strict=True):
        for network, color in COLORS.items():
            for seed, own in explained(network, training).groupby("seed"):
                label = network if seed == 0 else None
                ax.plot(own["r2"], 1 - own["share"], color=color, lw=1.1, label=label)
        marks = (
            (PAPER_R2, "the paper's .9", SOFT, "--"),
            (base, "the mean spectrum", INK, ":"),
        )
        for place, text, color, line in marks:
            ax.axvline(place, color=color, lw=0.8, ls=line)
            ax.text(place - 0.01, 0.06, text, color=color, ha="right", fontsize=7)
        ax.set(xlim=(0, 1), ylim=(0, 1), xlabel="R² of a spectrum")
        ax.set_title(title, loc="left")
    panels[0].set_ylabel("share above it")
    panels[0].legend(loc="center left")
    return fig


def _signals(results: Results) -> Figure:
    """Draw variances and errors in ten bins of height, slope and detail of the true spectrum."""
    names = {"height": "height", "slope": "slope", "detail": "detail (high frequency)"}
    lines = {"mse": "squared error", "aleatoric": "aleatoric", "epistemic": "epistemic"}
    rows = Table(results["signals"])("steerable")
    fig, panels = subplots(1, 3, 2.9, sharey=True, grid="both")
    for ax, (signal, label) in zip(panels, names.items(), strict=True):
        means = rows[rows["signal"] == signal].groupby("bin")[list(lines)].mean()
        for (name, title), color in zip(lines.items(), (INK, *MODELS[1:3]), strict=True):
            ax.plot(means[name], "o-", ms=3, color=color, label=title)
        ax.set(yscale="log", xlabel=f"tenths by {label}", xticks=range(1, 11, 3))
    panels[0].set_ylabel("median in the tenth")
    legend_outside(panels[0], "upper center", ncols=3)
    return fig


def _learning(results: Results) -> Figure:
    """Draw what is not explained against the number of molecules, and the power law beyond."""
    rows, at = results["results"], Table(results["results"])
    fig, ax = subplots(1, 1, 2.9, grid="both")
    for network, color in COLORS.items():
        found = learning_curve(rows, network)
        ax.plot(found["train"], 1 - found["r2_median"], "o-", ms=4, color=color, label=network)
        last = found.iloc[-1]
        ends = [last["train"], PAPER_MOLECULES]
        beyond = [1 - last["r2_median"], 1 - last["extended"]]
        ax.plot(ends, beyond, ":", lw=1.1, color=color)  # a power law is straight here
        before = 1 - at(network)["r2_median"]
        ax.plot([last["train"]] * len(before), before, "x", ms=4, color=color)
    ax.plot([], [], "x", ms=4, color=SOFT, label="the paper's training")
    ax.axhline(1 - PAPER_R2, color=SOFT, lw=0.8, ls="--")
    ax.axvline(PAPER_MOLECULES, color=SOFT, lw=0.8, ls="--")
    ax.set(xscale="log", yscale="log", xlabel="training molecules", ylabel="1 − median R²")
    low, high = ax.get_ylim()
    ax.set_yticks([t for t in (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0) if low <= t <= high])
    ax.yaxis.set_major_formatter("{x:g}")
    ax.yaxis.set_minor_formatter("")
    ax.xaxis.set_major_formatter("{x:,.0f}")
    ax.set_xlim(None, 1.25 * PAPER_MOLECULES)
    ax.legend(loc="upper right", bbox_to_anchor=(0.97, 1.0))
    return fig
