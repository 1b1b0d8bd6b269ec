"""The digit study's figures, from its finished results."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..pages import Row
from .numbers import DIGITS, PLAIN, SMOOTH, Results, wilson
from .settings import ACTION, candidates, load

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def error_figure(results: Results) -> Figure:
    """Draw the error of each group, and of each digit in each group."""
    from orbical.figures.style import INK, MODELS, PAGE, figure, styled

    names = list(results.summaries())
    with styled():
        fig = figure(PAGE, 3.0)
        left, right = fig.subplots(1, 2, width_ratios=(1, 1.25))
        for images, colour, marker, shift in (
            (PLAIN, MODELS[0], "o", -0.1),
            (SMOOTH, MODELS[1], "s", 0.1),
        ):
            for place, row in enumerate(results.summaries(images).values()):
                error = row["wrong"] / row["count"]
                low, high = wilson(row["wrong"], row["count"])
                left.errorbar(
                    100 * error,
                    place + shift,
                    xerr=[[100 * (error - low)], [100 * (high - error)]],
                    color=colour,
                    marker=marker,
                    ms=4,
                    capsize=2,
                    label=f"images {images}" if place == 0 else None,
                )
        left.set(yticks=range(len(names)), yticklabels=names, xlabel="error (%)", xlim=(0, None))
        left.invert_yaxis()
        left.grid(axis="x")
        left.legend(loc="upper center", bbox_to_anchor=(0.5, -0.2), ncols=2)
        left.set_title("Nearest neighbour is another digit", loc="left")
        table = [[100 * results.digit_error(name, digit) for name in names] for digit in DIGITS]
        shown = right.imshow(table, aspect="auto", cmap="viridis", vmin=0)
        dark = 0.6 * max(map(max, table))
        for y, line in enumerate(table):
            for x, value in enumerate(line):
                ink = INK if value > dark else "white"
                right.text(x, y, f"{value:.1f}", ha="center", va="center", color=ink, fontsize=6.5)
        short = [name.replace(" ", "\n") for name in names]
        right.set(xticks=range(len(names)), xticklabels=short, yticks=DIGITS, ylabel="digit")
        right.set_title("Error of each digit (%)", loc="left")
        right.spines[:].set_visible(False)
        fig.colorbar(shown, ax=right, pad=0.02)
    return fig


def examples(results: Results, group: str, most: int = 4) -> list[Row]:
    """One collision for each of the digit pairs that a group newly confuses most.

    The one shown is that whose distance falls most below that of its nearest unmoved neighbour.
    """
    rows = [r for r in results.collisions if (r["group"], r["images"]) == (group, PLAIN)]
    first: dict[frozenset[int], Row] = {}
    times: dict[frozenset[int], int] = {}
    for row in rows:
        pair = frozenset((row["digit"], row["other_digit"]))
        first.setdefault(pair, row)
        times[pair] = times.get(pair, 0) + 1
    ordered = sorted(first, key=lambda pair: (-times[pair], sorted(pair)))
    return [first[pair] for pair in ordered[:most]]


def collision_figure(results: Results) -> Figure:
    """Draw images that only the group confuses: as they are, after the best element, neighbour."""
    from orbical.figures.style import PAGE, figure, styled

    summaries = results.summaries()
    images, _ = load(results.groups[0]["data"])
    groups = candidates(summaries["SO(2)"]["elements"])
    names = [name for name in summaries if examples(results, name)]
    columns = max((len(examples(results, name)) for name in names), default=0)
    with styled():
        fig = figure(PAGE, 0.35 + 0.75 * max(1, len(names)))
        if not names:
            return fig
        panels: Any = fig.subplots(len(names), 3 * columns, squeeze=False)
        for ax in panels.flat:
            ax.set_axis_off()
        for line, name in zip(panels, names, strict=True):
            for column, row in enumerate(examples(results, name)):
                own = images[row["image"]][None]
                moved = ACTION.apply(groups[name], own)[row["element"], 0, 0]
                pictures = (own[0, 0], moved, images[row["other"], 0])
                titles = (f"{row['digit']}", "moved", f"a {row['other_digit']}")
                for place, (picture, title) in enumerate(zip(pictures, titles, strict=True)):
                    ax = line[3 * column + place]
                    ax.imshow(picture.numpy(), cmap="gray_r", vmin=0, vmax=1)
                    ax.set_title(title, fontsize=7, weight="normal", pad=2)
            line[0].text(
                -0.35,
                0.5,
                name,
                transform=line[0].transAxes,
                ha="right",
                va="center",
                weight="bold",
            )
    return fig


def quantised_figure(results: Results) -> Figure:
    """Draw the exact ceiling of each group for each quantisation."""
    from orbical.figures.style import COLUMN, MODELS, figure, styled

    kinds = list(dict.fromkeys((row["side"], row["threshold"]) for row in results.quantised))
    names = list(dict.fromkeys(row["group"] for row in results.quantised))
    with styled():
        fig = figure(COLUMN * 1.5, 2.8)
        ax = fig.subplots()
        for (side, threshold), colour, marker in zip(kinds, MODELS, "osD^", strict=False):
            ceilings = [
                row["accuracy_ceiling"]
                for row in results.quantised
                if (row["side"], row["threshold"]) == (side, threshold)
            ]
            label = f"{side} x {side}, above {threshold}"
            ax.plot(ceilings, color=colour, marker=marker, ms=4, label=label)
        ax.set(
            xticks=range(len(names)), xticklabels=names, ylim=(0, 1.03), ylabel="accuracy ceiling"
        )
        ax.grid(axis="y")
        ax.legend(loc="center left", bbox_to_anchor=(1, 0.5))
        ax.set_title("Exact ceiling on binary images", loc="left")
    return fig
