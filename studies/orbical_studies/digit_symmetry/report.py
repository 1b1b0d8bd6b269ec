"""Numbers and figures of the digit study, from its results and, for pictures, its images."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pandas as pd
from matplotlib.figure import Figure
from scipy.stats import binomtest

from orbical.calibration import holm
from orbical.figures import COLUMN, INK, MODELS

from ..framework import Results
from ..framework.drawing import subplots
from ..framework.statistics import wilson
from .measures import ACTION, SMOOTHING, candidates, load

PLAIN, SMOOTH = SMOOTHING


def least_error(nearest: Any, labels: int = 10) -> Any:
    """Solve Cover and Hart's inequality `R <= R* (2 - C / (C - 1) R*)` for the best error R*.

    >>> round(least_error(0.0942), 4)
    0.0484
    """
    shape = labels / (labels - 1)
    return (1 - (1 - shape * nearest) ** 0.5) / shape


def summaries(results: Results, images: str = PLAIN) -> pd.DataFrame:
    """Return the errors of each group, in percent."""
    rows = results["groups"].query("images == @images").set_index("group")
    low, high = wilson(rows["wrong"], rows["count"])
    error = rows["wrong"] / rows["count"]
    percent = {"error": error, "low": low, "high": high, "least": least_error(error)}
    return rows.assign(**{name: 100 * value for name, value in percent.items()})


def digit_errors(results: Results) -> pd.DataFrame:
    """Return the error of each digit (rows) under each group (columns), in percent."""
    rows = results["confusions"].query("images == @PLAIN")
    right = rows["times"].where(rows["digit"] == rows["neighbour"], 0)
    sums = rows.assign(right=right).groupby(["digit", "group"])[["right", "times"]].sum()
    errors = 100 * (1 - sums["right"] / sums["times"])
    return errors.unstack()[list(rows["group"].unique())]


def pairs(results: Results) -> pd.DataFrame:
    """Return how often two digits (rows, as "6-9") are confused under each group (columns)."""
    rows = results["confusions"].query("images == @PLAIN").query("digit != neighbour")
    ends = rows[["digit", "neighbour"]]
    names = ends.min(axis=1).astype(str) + "-" + ends.max(axis=1).astype(str)
    return rows.groupby([names, "group"])["times"].sum().unstack(fill_value=0)


def gained(found: pd.DataFrame, group: str) -> pd.DataFrame:
    """Sort the pairs that a group confuses by how much more often it does than the trivial one."""
    rows = pd.DataFrame({"times": found[group], "gain": found[group] - found["trivial"]})
    return rows.query("times > 0").sort_values(["gain", "times"], ascending=False, kind="stable")


def p_value(results: Results, images: str, more: str, less: str) -> float:
    """Test whether one group errs more often than another on the same images (McNemar, exact).

    Which images only one of the two gets wrong is known for those that the trivial group gets
    right; of the others their number is bounded. The largest number possible makes the test
    conservative.
    """
    rows = results["groups"].query("images == @images").set_index("group")
    found = results["collisions"].query("images == @images")
    wrong = [{*found.query("group == @group")["image"]} for group in (more, less)]
    apart = len(wrong[0] ^ wrong[1]) + int(rows["newly_right"][[more, less]].sum())
    excess = int(rows["wrong"][more] - rows["wrong"][less])
    only_more = min(max((apart + excess) // 2, 0), apart)
    return float(binomtest(only_more, apart).pvalue)


def facts(results: Results) -> dict[str, Any]:
    """Return what the page refers to."""
    found, errors = pairs(results), digit_errors(results)
    both = results["confusions"].query("digit in (6, 9)")["times"].sum() / len(results["groups"])
    six_nine = found.reindex(["6-9"], fill_value=0).loc["6-9"]
    compared = {"rotations": ("SO(2)", "within 30°"), "mirrors": ("D4", "C4")}
    tests = {
        f"p_{name}{end}": p_value(results, images, *groups)
        for name, groups in compared.items()
        for end, images in (("", PLAIN), ("_smooth", SMOOTH))
    }
    return {
        **dict(zip(tests, holm([*tests.values()]), strict=True)),
        "plain": summaries(results),
        "smooth": summaries(results, SMOOTH),
        "smoothing_px": SMOOTHING[SMOOTH],
        "six_nine": six_nine,
        "disjoint": wilson(six_nine["trivial"], both)[1] < wilson(six_nine["C2"], both)[0],
        "digit_errors": errors,
        "worst": (errors["C2"] - errors["trivial"]).idxmax(),
        "gained": lambda group: gained(found, group)[:6],
        "quantized": results["quantised"].fillna({"pairs": ""}),
    }


def figures(results: Results) -> Iterator[tuple[str, Figure]]:
    """Draw errors by group and digit, images that only a group confuses, and exact ceilings."""
    yield "errors.png", _errors(results)
    yield "collisions.png", _collisions(results)
    yield "quantised.png", _quantized(results)


def _errors(results: Results) -> Figure:
    table = digit_errors(results)
    names = list(table)
    fig, (left, right) = subplots(1, 2, 3.0, width_ratios=(1, 1.25))
    for images, color, marker, shift in zip(SMOOTHING, MODELS, "os", (-0.1, 0.1), strict=False):
        rows = summaries(results, images)
        ends = [rows["error"] - rows["low"], rows["high"] - rows["error"]]
        style = {"fmt": marker, "color": color, "ms": 4, "capsize": 2, "xerr": ends}
        places = [place + shift for place in range(len(rows))]
        left.errorbar(rows["error"], places, label=f"images {images}", **style)
    left.set(yticks=range(len(names)), yticklabels=names, xlabel="error (%)", xlim=(0, None))
    left.invert_yaxis()
    left.grid(axis="x")
    left.legend(loc="upper center", bbox_to_anchor=(0.5, -0.2), ncols=2)
    left.set_title("Nearest neighbor is another digit", loc="left")
    shown = right.imshow(table, aspect="auto", cmap="viridis", vmin=0)
    for (y, x), value in table.set_axis(range(len(names)), axis=1).stack().items():
        ink = INK if value > 0.6 * table.max().max() else "white"
        right.text(x, y, f"{value:.1f}", ha="center", va="center", color=ink, fontsize=6.5)
    short = [name.replace(" ", "\n") for name in names]
    right.set(xticks=range(len(names)), xticklabels=short, yticks=range(10), ylabel="digit")
    right.set_title("Error of each digit (%)", loc="left")
    right.spines[:].set_visible(False)
    fig.colorbar(shown, ax=right, pad=0.02)
    return fig


def examples(results: Results, group: str, most: int = 4) -> pd.DataFrame:
    """Return one collision for each of the digit pairs that a group newly confuses most.

    It is the first of its pair in the table: that whose distance the group shortens most.
    """
    rows = results["collisions"].query("group == @group and images == @PLAIN")
    ends = rows[["digit", "other_digit"]]
    by = [ends.min(axis=1), ends.max(axis=1)]
    first = rows.groupby(by).first().assign(times=rows.groupby(by).size())
    return first.sort_values("times", ascending=False, kind="stable")[:most]


def _collisions(results: Results) -> Figure:
    rows = summaries(results)
    images, _ = load(rows["data"].iloc[0])
    groups = candidates(rows["elements"]["SO(2)"])
    shown = {name: few for name in rows.index if len(few := examples(results, name))}
    fig, panels = subplots(
        len(shown), 3 * max(map(len, shown.values())), 0.35 + 0.75 * len(shown), squeeze=False
    )
    for ax in panels.flat:
        ax.set_axis_off()
    for line, (name, chosen) in zip(panels, shown.items(), strict=True):
        for column, row in enumerate(chosen.itertuples()):
            own = images[row.image][None]
            moved = ACTION.apply(groups[name], own)[row.element, 0, 0]
            pictures = (own[0, 0], moved, images[row.other, 0])
            titles = (row.digit, "moved", f"a {row.other_digit}")
            for ax, *drawn in zip(line[3 * column :], pictures, titles, strict=False):
                ax.imshow(drawn[0].numpy(), cmap="gray_r", vmin=0, vmax=1)
                ax.set_title(drawn[1], fontsize=7, weight="normal", pad=2)
        where = {"transform": line[0].transAxes, "ha": "right", "va": "center"}
        line[0].text(-0.35, 0.5, name, weight="bold", **where)
    return fig


def _quantized(results: Results) -> Figure:
    fig, ax = subplots(1, 1, 2.8, COLUMN * 1.5)
    kinds = results["quantised"].groupby(["side", "threshold"], sort=False)
    for ((side, threshold), rows), color, marker in zip(kinds, MODELS, "osD^", strict=False):
        style: Any = {"color": color, "ms": 4, "label": f"{side} x {side}, above {threshold}"}
        ax.plot(rows["group"], rows["accuracy_ceiling"], f"{marker}-", **style)
    ax.set(ylim=(0, 1.03), ylabel="accuracy ceiling")
    ax.grid(axis="y")
    ax.legend(loc="center left", bbox_to_anchor=(1, 0.5))
    ax.set_title("Exact ceiling on binary images", loc="left")
    return fig
