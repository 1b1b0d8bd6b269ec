"""The Swiss roll study's figures, from its finished rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from orbical_studies.data.spirals import swiss_roll

from ..pages import Row
from .numbers import PAPER, World, line_of, values
from .settings import INVARIANT, PLAIN

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def worlds_figure() -> Figure:
    """Draw four worlds from above, as a model that cannot see the height sees them."""
    from orbical.figures.style import INK, MODELS, PAGE, figure, styled

    shown: dict[str, World] = {
        "all incorrect": (0.0, 1.0),
        "half correct": (0.5, 0.5),
        "all correct": (1.0, 0.0),
        "all extrinsic": (0.0, 0.0),
    }
    with styled():
        fig = figure(PAGE, 2.3)
        panels = fig.subplots(1, len(shown))
        for ax, (name, (correct, incorrect)) in zip(panels, shown.items(), strict=True):
            roll = swiss_roll(correct, incorrect, points=320)
            half = len(roll) // 2
            # The upper height as a ring around the lower one's dot: both labels stay visible.
            for rows, ring in ((slice(half, None), True), (slice(half), False)):
                colours = [MODELS[label] for label in roll.label[rows]]
                ax.scatter(
                    roll.x[rows, 0],
                    roll.x[rows, 1],
                    s=13 if ring else 3,
                    facecolors="none" if ring else colours,
                    edgecolors=colours,
                    linewidths=0.7 if ring else 0,
                )
            ax.set_title(name, loc="left")
            ax.set(aspect="equal", xlim=(-0.54, 0.54), ylim=(-0.54, 0.54), xticks=[], yticks=[])
            for side in ax.spines.values():
                side.set_visible(False)
        marks = [("label 0", MODELS[0], "s"), ("label 1", MODELS[1], "s")]
        handles = [_mark(colour, marker, name) for name, colour, marker in marks]
        handles += [_mark(INK, ".", "z = 0"), _mark(INK, "o", "z = 1", hollow=True)]
        fig.legend(handles=handles, loc="outside lower center", ncols=4)
    return fig


def _mark(colour: str, marker: str, label: str, hollow: bool = False) -> Any:
    from matplotlib.lines import Line2D

    face = "none" if hollow else colour
    return Line2D(
        [], [], color=colour, marker=marker, ls="none", label=label, mfc=face, ms=5, mew=0.8
    )


def _curve(ax: Any, rows: Sequence[Row], column: str, network: str, **style: Any) -> None:
    """Draw the mean over seeds against the correct share, with each seed as a faint dot."""
    worlds = line_of(rows)
    found = [values(rows, column, network, world) for world in worlds]
    share = [world[0] for world in worlds]
    ax.plot(share, [sum(seeds) / len(seeds) for seeds in found], **style)
    for x, seeds in zip(share, found, strict=True):
        ax.plot([x] * len(seeds), seeds, ".", color=style["color"], alpha=0.35, ms=3, zorder=1)


def _means(rows: Sequence[Row], column: str) -> list[float]:
    found = [values(rows, column, INVARIANT, world) for world in line_of(rows)]
    return [sum(seeds) / len(seeds) for seeds in found]


def _paper(ax: Any, quantity: str) -> None:
    from orbical.figures.style import SOFT

    ax.plot(
        [eighths / 8 for eighths in PAPER],
        [found[quantity] for found in PAPER.values()],
        "x",
        color=SOFT,
        ms=5,
        label="paper, invariant (one run)",
    )


def main_figure(rows: Sequence[Row]) -> Figure:
    """Draw accuracy under its ceiling and ECE inside its interval: the paper's Fig. 3."""
    from orbical.figures.style import INK, MODELS, PAGE, figure, styled

    with styled():
        fig = figure(PAGE, 3.3)
        left, right = fig.subplots(1, 2)
        share = [world[0] for world in line_of(rows)]
        left.plot(share, _means(rows, "ceiling"), color=INK, ls="--", lw=1, label="ceiling 1 - i/2")
        right.fill_between(
            share,
            _means(rows, "sharp_lower"),
            _means(rows, "sharp_upper"),
            color=MODELS[5],
            alpha=0.2,
            lw=0,
            label="sharp interval, invariant",
        )
        right.plot(
            share, _means(rows, "sharp_lower"), color=INK, ls="--", lw=1, label="its lower end"
        )
        for ax, column in ((left, "accuracy"), (right, "ece")):
            for network, colour in ((INVARIANT, MODELS[0]), (PLAIN, MODELS[1])):
                _curve(ax, rows, column, network, color=colour, label=network)
            _paper(ax, column)
            ax.set_xlabel("share of correct invariance (the rest is incorrect)")
            ax.grid()
        left.set(ylabel="test accuracy", ylim=(0.45, 1.02))
        right.set(ylabel="ECE, 100 bins", ylim=(0, 0.45))
        left.set_title("Accuracy under its ceiling", loc="left")
        right.set_title("ECE inside its interval", loc="left")
        left.legend(loc="lower right")
        right.legend(loc="upper right")
    return fig


def bias_figure(rows: Sequence[Row]) -> Figure:
    """Draw what a test set of 200 points does to the same networks' ECE."""
    from orbical.figures.style import INK, MODELS, PAGE, figure, styled

    size = rows[0]["small"]
    with styled():
        fig = figure(PAGE, 3.1)
        panels = fig.subplots(1, 2, sharey=True)
        for ax, network, colour in zip(panels, (INVARIANT, PLAIN), MODELS, strict=False):
            share = [world[0] for world in line_of(rows)]

            def mean(column: str, network: str = network) -> list[float]:
                found = [values(rows, column, network, world) for world in line_of(rows)]
                return [sum(seeds) / len(seeds) for seeds in found]

            ax.plot(share, mean("ece"), color=colour, label=f"{rows[0]['test']:,} points")
            ax.errorbar(
                share,
                mean("small_ece"),
                yerr=mean("small_spread"),
                color=colour,
                ls="--",
                lw=1.2,
                capsize=2,
                marker="o",
                ms=3,
                label=f"{size} points (bar: deviation between sets)",
            )
            ax.plot(
                share,
                mean("small_calibrated"),
                color=INK,
                ls=":",
                label=f"{size} points, were it calibrated",
            )
            if network == INVARIANT:
                _paper(ax, "ece")
            ax.set(xlabel="share of correct invariance", ylim=(0, 0.42))
            ax.set_title(network, loc="left")
            ax.grid()
            ax.legend(loc="upper right")
        panels[0].set_ylabel("ECE, 100 bins")
    return fig
