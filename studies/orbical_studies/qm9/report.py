"""Numbers and figures of the molecule study, from its results alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator
from scipy.stats import permutation_test, ttest_ind

from orbical.calibration import gence_floor
from orbical.figures import INK, MODELS, model_colors

from ..framework import Results, number, spread, where
from ..framework.drawing import legend_outside, subplots
from .settings import ALL, COMPARED, CONTRAST, LIKELIHOOD, NETWORKS, PRINTED, PROPERTIES, SHOWN

NAMES = "ε LUMO,Δε,U₀,U,U₀ atom,G atom,A,B,C,⟨R²⟩,dipole"
SYMBOLS = dict(zip(PROPERTIES, NAMES.split(","), strict=True))
LEARNED = ("no better than the mean", "hardly better than the mean", "learned")
"""What an error is, if it does away with nothing, or with less than a fifth, of the mean's."""

COLORS = model_colors(NETWORKS)
OFFSET = {name: 0.22 * (1 - place) for place, name in enumerate(NETWORKS)}
DOTS: dict[str, Any] = {"ms": 2.5, "mew": 0, "alpha": 0.6}
DRAWN = 450  # molecules that are drawn as dots
TESTED = 10_831
"""Test molecules, with the linear ones: a few of eleven in QM9."""


def short(value: float) -> str:
    """Format a number to three figures, as a power of ten from 10,000 on.

    >>> short(1785790158.45), short(8.2), short(0.0)
    ('1.8e+09', '8.20', '0')
    """
    return f"{value:.1e}" if abs(value) >= 1e4 else number(value)


def ends(values: Iterable[float]) -> str:
    """Format the smallest and the largest value.

    >>> ends([3.0, 1.0, 2.0])
    '1.00 to 3.00'
    """
    return f"{short(min(values))} to {short(max(values))}"


def tested(seeds: pd.DataFrame) -> str:
    """Format the mean absolute error over seeds and its 95 % interval over the test molecules.

    >>> tested(pd.DataFrame({"mae": [0.1, 0.1], "rmse": [0.2, 0.2]}))
    '0.100 [0.0967, 0.103]'
    """
    mean = seeds["mae"].mean()
    reach = 1.96 * float(np.sqrt((seeds["rmse"] ** 2 - seeds["mae"] ** 2) / TESTED).mean())
    return f"{short(mean)} [{short(mean - reach)}, {short(mean + reach)}]"


class Contest(NamedTuple):
    """Two networks on one measure.

    Attributes:
        lower: Number of properties on which every seed of the first is below the second's.
        higher: The other way round.
        ratio: Geometric mean over properties of the first over the second.
        least: The smallest such mean of a seed of the first and one of the second.
        most: The largest.
    """

    lower: int
    higher: int
    ratio: float
    least: float
    most: float


def contest(first: pd.DataFrame, second: pd.DataFrame) -> Contest:
    """Compare two tables of values, a row a property and a column a seed."""
    logs = np.log(first).mean().to_numpy()[:, None] - np.log(second).mean().to_numpy()
    return Contest(
        int((first.max(axis=1) < second.min(axis=1)).sum()),
        int((second.max(axis=1) < first.min(axis=1)).sum()),
        float(np.exp(np.log(first.mean(axis=1) / second.mean(axis=1)).mean())),
        *np.exp([logs.min(), logs.max()]).tolist(),
    )


class Ratio(NamedTuple):
    """A measure with the symmetry over without: geometric means over properties and trainings.

    Attributes:
        ratio: The mean.
        low: Lower end of its 95 % interval over trainings (Welch).
        high: Upper end.
        p: Of an exact permutation test over trainings, two-sided.
        trainings: Of each network.
    """

    ratio: float
    low: float
    high: float
    p: float
    trainings: int


def _symmetry_ratio(rows: pd.DataFrame, column: str) -> Ratio:
    """Compare the two networks of the contrast, one number a training.

    >>> names = {"network": ["invariant"] * 4 + ["oriented"] * 4, "seed": [*range(4)] * 2}
    >>> rows = pd.DataFrame(names | {"mae": [1.0, 1.1, 0.9, 1.0, 2.0, 2.2, 1.8, 2.0]})
    >>> found = _symmetry_ratio(rows, "mae")
    >>> round(found.ratio, 2), found.low < 0.5 < found.high, round(found.p, 3)
    (0.5, True, 0.029)
    """
    logs = np.log(rows.set_index(["network", "seed"])[column]).groupby(level=[0, 1]).mean()
    pair = [logs[network].to_numpy() for network in CONTRAST]
    span = ttest_ind(*pair, equal_var=False).confidence_interval(0.95)
    difference = pair[0].mean() - pair[1].mean()
    exact = permutation_test(pair, lambda a, b: a.mean() - b.mean(), n_resamples=10**6)
    ratio, low, high = np.exp([difference, *span]).tolist()
    return Ratio(ratio, low, high, float(exact.pvalue), len(pair[0]))


def _main(results: Results) -> pd.DataFrame:
    """Return the main trainings, measured on molecules as stored."""
    return where(results["results"], target=ALL, loss=LIKELIHOOD, frame="given")


def paper_skill(limits: pd.DataFrame) -> pd.DataFrame:
    """Classify the paper's errors beside that of predicting the mean, by `LEARNED`."""
    errors = limits[["paper_gin_mae", "paper_invariant_mae"]].set_axis(list(COMPARED), axis=1)
    skill = 1 - errors.dropna().div(limits["mean_mae"], axis=0).dropna()
    return skill.apply(lambda column: pd.cut(column, [-np.inf, 0, 0.2, np.inf], labels=LEARNED))


def _gin_below(values: pd.DataFrame) -> pd.DataFrame:
    """Check on which properties and measures GIN is below the invariant network."""
    measures = ["mae", "nll", "coverage", "ence", "bleed_99"]
    return values.xs("GIN", level=1)[measures] < values.xs("invariant", level=1)[measures]


def facts(results: Results) -> dict[str, Any]:
    """Return what the page refers to."""
    rows, main = results["results"], _main(results)
    limits = results["limits"].set_index("property")
    groups = dict(iter(rows.groupby(["property", "network", "loss", "target", "frame"])))
    shared = where(rows, target=ALL, loss=LIKELIHOOD)
    seeds = shared.pivot(index="property", columns=["network", "frame", "seed"])
    means = main.groupby(["property", "network"]).mean(numeric_only=True)
    two = means[means.index.isin(COMPARED, level=1)]
    below = _gin_below(means)
    by_seeds = main.groupby(["property", "network"])["bleed"]
    skill = paper_skill(limits)
    learned = (skill == LEARNED[2]).sum(axis=1)
    learned -= (learned == 0) & (skill == LEARNED[0]).any(axis=1)

    more = results["contrast"]
    equal = pd.concat([main, more[more["frame"] == "given"]])
    equal = equal[equal["network"].isin(CONTRAST)]

    def at(
        name: str, network: str, loss: str = LIKELIHOOD, target: str = ALL, frame: str = "given"
    ) -> pd.DataFrame:
        return groups[name, network, loss, target, frame]

    def compare(column: str, first: str, second: str, frame: str = "given") -> Contest:
        return contest(seeds[column][first][frame], seeds[column][second]["given"])

    return {
        "penalties": results["penalty"].set_index(["property", "network", "loss"]),
        "at": at,
        "contest": compare,
        "symmetry": lambda column: _symmetry_ratio(equal, column),
        "resampled": results["resampled"].set_index("measure"),
        "about": lambda values: spread(values, None, short),
        "short": short,
        "ends": ends,
        "symbols": SYMBOLS,
        "networks": NETWORKS,
        "compared": COMPARED,
        "tested": tested,
        "molecules": TESTED,
        "rows": rows,
        "main": main,
        "means": means,
        "limits": limits,
        "skill": skill,
        "gence_floor": gence_floor,
        "printed": rows[rows["loss"] == PRINTED],
        "agreement": dict(iter(results["agreement"].groupby(["first", "second"]))),
        "learned": learned,
        "names": lambda chosen: ", ".join(SYMBOLS[n] for n in PROPERTIES[:-1] if chosen[n]),
        "agree": (below["mae"] == below["bleed_99"]).sum(),
        "bleed_rank": two["mae"].corr(two["bleed_99"], method="spearman"),
        "share_rank": means["mae"].corr(means["share"], method="spearman"),
        "powers": np.log10(by_seeds.max() / by_seeds.min()),
    }


def figures(results: Results) -> Iterator[tuple[str, Figure]]:
    """Draw errors, bleed, calibration, the paper's Fig. 8, and errors along the training."""
    draw = {"errors": _errors, "bleed": _bleed, "calibration": _calibration}
    for name, function in (draw | {"dipole": _dipole, "curves": _curves}).items():
        yield f"{name}.png", function(results)


def _places(names: Iterable[str], network: str) -> list[float]:
    return [PROPERTIES.index(name) - OFFSET[network] for name in names]


def _named(ax: Any) -> None:
    """Write the properties up the left side, the first on top."""
    ax.set_yticks(range(len(PROPERTIES)), SYMBOLS.values())
    ax.set_ylim(len(PROPERTIES) - 0.4, -0.6)
    for place in range(1, len(PROPERTIES)):
        ax.axhline(place - 0.5, color="#EEEEEE", lw=0.6, zorder=0)


def _dots(ax: Any, rows: pd.DataFrame, column: str, hollow: bool = False) -> None:
    """Draw each seed as a dot, one color a network."""
    style = (
        {"ms": 3.2, "mew": 0.6, "alpha": 0.5} if hollow else {"ms": 3.8, "mew": 0, "alpha": 0.85}
    )
    for network, color in COLORS.items():
        chosen = rows[rows["network"] == network]
        face, label = ("none", None) if hollow else (color, network)
        y = _places(chosen["property"], network)
        ax.plot(chosen[column], y, "o", mec=color, mfc=face, label=label, **style)


def _paper_marks(ax: Any, limits: pd.DataFrame, column: str) -> None:
    """Draw the paper's values as crosses in the color of their network; none for a 0."""
    for network, name in zip(COMPARED, ("GIN", "E(3)-invariant"), strict=True):
        values = limits[f"paper_{network.lower()}_{column}"]
        y, color = _places(limits["property"], network), COLORS[network]
        ax.plot(
            values.where(values > 0), y, "x", ms=5, mew=1.2, color=color, label=f"paper, {name}"
        )


def _floors(ax: Any, values: pd.Series, label: str, ls: str = "-") -> None:
    """Draw a short upright line for each property."""
    y = np.arange(len(values))
    ax.vlines(values, y - 0.38, y + 0.38, color=INK, lw=1.3, ls=ls, label=label)


def _errors(results: Results) -> Figure:
    rows, limits = results["results"], results["limits"]
    fig, panels = subplots(1, 2, 4.3, sharey=True, sharex=True, grid="x")
    printed = where(rows, loss=PRINTED, frame="given")
    titles = ("likelihood after a start by squared error", "printed loss")
    for ax, chosen, title in zip(panels, (_main(results), printed), titles, strict=True):
        _floors(ax, limits["mean_mae"], "predicting the mean")
        _dots(ax, chosen, "mae")
        _paper_marks(ax, limits, "mae")
        ax.set(xscale="log", xlabel="mean absolute error (deviations of the property)")
        ax.set_title(title, loc="left")
        _named(ax)
    legend_outside(panels[0], "upper center", ncols=6)
    return fig


def _bleed(results: Results) -> Figure:
    main, limits = _main(results), results["limits"]
    fig, (left, right) = subplots(1, 2, 4.4, sharey=True, width_ratios=[2.2, 1], grid="x")
    _dots(left, main, "bleed", hollow=True)
    _dots(left, main, "bleed_99")
    _paper_marks(left, limits, "bleed")
    _floors(left, limits["bond_bleed"], "NLL-optimal for GIN", ":")
    left.plot([], [], "o", ms=3.2, mew=0.6, mec=INK, mfc="none", label="with the worst 1 %")
    left.set(xscale="log", xlabel="aleatoric bleed (deviations⁴)")
    left.set_xlim(left=1e-12)
    _dots(right, main, "share")
    right.set(xlim=(0, 1.03), xlabel="aleatoric share (median)")
    for ax in (left, right):
        _named(ax)
    legend_outside(left, "upper center", ncols=4)
    return fig


def _calibration(results: Results) -> Figure:
    main = _main(results)
    fig, panels = subplots(1, 3, 4.0, sharey=True, grid="x")
    titles = {"coverage": "coverage error", "ence": "ENCE", "gence": "GENCE"}
    for ax, (column, title) in zip(panels, titles.items(), strict=True):
        floor = "gence_own" if column == "gence" else f"{column}_floor"
        for network in NETWORKS:
            mean = main[main["network"] == network].groupby("property")[floor].mean()
            label = "if calibrated" if network == NETWORKS[0] else None
            y = _places(mean.index, network)
            ax.plot(mean, y, "|", ms=8, mew=1.3, color=INK, label=label)
        _dots(ax, main, column)
        ax.set_title(title, loc="left")
        ax.set_xlim(left=0 if column != "gence" else None)
        _named(ax)
    panels[2].axvline(gence_floor, color=INK, ls=":", lw=1, label="a calibrated Gaussian")
    legend_outside(panels[2], "upper center", ncols=5)
    return fig


def _dipole(results: Results) -> Figure:
    """Draw the paper's Fig. 8: predictions, parts of the variance, and their distributions."""
    shown = results["molecules"].head(DRAWN)
    fig, ((left, right), below) = subplots(2, 2, 5.2)
    for network in COMPARED[::-1]:
        mean = shown[f"{network}_mean"]
        left.plot(shown["truth"], mean, ".", color=COLORS[network], label=network, **DOTS)
    left.plot([0, shown["truth"].max()], [0, shown["truth"].max()], color=INK, lw=0.8)
    left.set(xlabel="dipole (D)", ylabel="prediction (D)")
    for part, color in (("aleatoric", MODELS[2]), ("epistemic", MODELS[3])):
        ratio = np.log10(shown[f"GIN_{part}"] / shown[f"invariant_{part}"])
        right.plot(shown["truth"], ratio, ".", color=color, label=part, **DOTS)
    right.axhline(0, color=INK, lw=0.8)
    right.set(xlabel="dipole (D)", ylabel="log₁₀ GIN's / invariant's variance", ylim=(-2, 4))
    left.legend(loc="upper left", markerscale=3)
    right.legend(loc="upper right", markerscale=3)
    bins = results["histogram"][results["histogram"]["property"] == SHOWN]
    for ax, part in zip(below, ("epistemic", "aleatoric"), strict=True):
        for network in COMPARED:
            mine = bins[bins["network"] == network]
            color = COLORS[network]
            ax.step(10.0 ** mine["from"], mine[part], where="post", color=color, label=network)
        ax.set(xscale="log", xlim=(1e-5, 1e1), ylabel="share of molecules")
        ax.set_xlabel(f"{part} variance (deviations²)")
        ax.legend(loc="upper left")
        ax.grid()
    return fig


def _curves(results: Results) -> Figure:
    """Draw validation errors along the training."""
    shown = ("dipole", "u0_atom", "u0")
    fig, panels = subplots(1, len(shown), 2.4, grid="both")
    lines = results["curves"].groupby(["network", "loss", "epoch"])[list(shown)].mean()
    for ax, name in zip(panels, shown, strict=True):
        for network, loss in dict.fromkeys(key[:2] for key in lines.index):
            line, suffix = ("--", ", printed loss") if loss == PRINTED else ("-", "")
            style = {"color": COLORS[network], "ls": line, "lw": 1.1}
            ax.plot(lines[name][network, loss], label=network + suffix, **style)
        ax.set(yscale="log", xlabel="epoch")
        low, high = ax.get_ylim()
        ticks = [v for v in (0.003, 0.01, 0.03, 0.1, 0.2, 0.3, 0.5) if low < v < high]
        ax.set_yticks(ticks, [f"{v:g}" for v in ticks])
        ax.yaxis.set_minor_locator(NullLocator())
        ax.set_title(SYMBOLS[name], loc="left")
    panels[0].set_ylabel("validation MAE (deviations)")
    legend_outside(panels[0], "upper center", ncols=5)
    return fig
