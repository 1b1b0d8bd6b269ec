"""The study's figures, each from finished result lines."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..pages import fewer_colours
from .results import Row
from .settings import BASELINE, BEYOND_GRID, GRID, LOSSES, NAMES
from .shifts import STRENGTHS
from .summaries import Spread, chosen_weights, trained

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's colours, which most readers can tell apart; a marker for those who cannot.
STYLE = {
    "NLL": ("#222222", "o"),
    "MMCE": ("#E69F00", "s"),
    "SB-ECE": ("#56B4E9", "^"),
    "ESD": ("#D55E00", "D"),
    "S-AvUC": ("#009E73", "v"),
    "ECE": ("#CC79A7", "P"),
}
TITLES = {"mnist": "MNIST, LeNet-5", "cifar10": "CIFAR-10, compact ResNet"}
UNITS = {"rotation": "rotation (degrees)", "blur": "blur (σ, pixels)", "noise": "noise (σ)"}
SCORES = {"accuracy": "accuracy (%)", "ece": "ECE (%)"}
# On shifted images: the label, and where the same score of the clean images stands.
SHIFTED = {
    "accuracy": ("accuracy (%)", "test", "accuracy"),
    "ece": ("ECE (%)", "test", "ece"),
    "ece_ts": ("ECE after TS (%)", "test_ts", "ece"),
    "esd": ("√ESD (%)", "test", "esd"),
}


def _panels(rows: int, columns: int, height: float, **shared: Any) -> tuple[Figure, Any]:
    from orbical.figures.style import PAGE, figure

    made = figure(PAGE, height)
    panels = made.subplots(rows, columns, squeeze=False, **shared)
    for axes in panels.flat:
        axes.grid(visible=True)
    return made, panels


def _legend_below(fig: Figure, axes: Axes) -> None:
    handles, names = axes.get_legend_handles_labels()
    fig.legend(handles, names, loc="outside lower center", ncols=len(names))


def _line(axes: Axes, places: Sequence[float], values: Sequence[Spread], loss: str) -> None:
    colour, marker = STYLE[loss]
    means = [100 * value.mean for value in values]
    spread = [100 * value.deviation for value in values]
    axes.plot(places, means, color=colour, marker=marker, markersize=3.5, label=loss)
    low = [max(m - s, 0) for m, s in zip(means, spread, strict=True)]
    high = [m + s for m, s in zip(means, spread, strict=True)]
    axes.fill_between(places, low, high, color=colour, alpha=0.15, linewidth=0)


def epochs(rows: Sequence[Row]) -> Figure:
    """Accuracy and ECE on training and test images over epochs (the paper's Fig. 1)."""
    from orbical.figures.style import MODELS

    fig, grid = _panels(2, 2, 4.2, sharex=True, sharey="row")
    chosen = chosen_weights(rows, "cifar10")
    for column, loss in enumerate((BASELINE, "ESD")):
        runs = trained(rows, "cifar10", loss=loss, weight=chosen.get(loss))
        for axes, score in zip(grid[:, column], SCORES, strict=True):
            for split, colour in (("train", MODELS[0]), ("test", MODELS[1])):
                for run in runs:
                    places = [point["epoch"] for point in run["curve"]]
                    curve = [100 * point[f"{split}_{score}"] for point in run["curve"]]
                    label = f"{split}, each seed" if run is runs[0] else None
                    axes.plot(places, curve, color=colour, linewidth=1.3, alpha=0.8, label=label)
        grid[0][column].set_title(f"{loss} on {TITLES['cifar10']}")
        grid[1][column].set_xlabel("epoch")
    for axes, label in zip(grid[:, 0], SCORES.values(), strict=True):
        axes.set_ylabel(label)
    _legend_below(fig, grid[0][0])
    return fig


def cost(rows: Sequence[Row]) -> Figure:
    """Time of a training step with each loss (the paper's Fig. 3)."""
    from orbical.figures.style import FAINT, MODELS

    timed = [row for row in rows if "step_ms" in row]
    fig, grid = _panels(1, 2, 2.5)
    for axes, data in zip(grid[0], TITLES, strict=True):
        own = [row for row in timed if row["data"] == data]
        names = [row["loss"] for row in own]
        axes.barh(names, [row["step_ms"] for row in own], color=FAINT, label="whole step")
        axes.barh(names, [row["loss_ms"] for row in own], color=MODELS[0], label="loss alone")
        axes.invert_yaxis()
        axes.grid(visible=False, axis="y")
        axes.set(title=TITLES[data], xlabel="milliseconds, batches of 512")
    _legend_below(fig, grid[0][0])
    return fig


def strength(rows: Sequence[Row]) -> Figure:
    """Accuracy and ECE against lambda (the paper's Fig. 5)."""
    from orbical.figures.style import INK, SOFT

    fig, grid = _panels(2, 2, 4.4, sharex=True)
    ticks = sorted((*GRID, *BEYOND_GRID))
    for column, data in enumerate(TITLES):
        for axes, (score, name) in zip(grid[:, column], SCORES.items(), strict=True):
            for loss in LOSSES:
                runs = trained(rows, data, loss=loss)
                weights = sorted({run["weight"] for run in runs})
                values = [
                    Spread.of(run["test"][score] for run in runs if run["weight"] == weight)
                    for weight in weights
                ]
                _line(axes, weights, values, loss)
            level = Spread.of(r["test"][score] for r in trained(rows, data, loss=BASELINE)).mean
            axes.axhline(100 * level, color=INK, linewidth=1, label="NLL")
            if score == "accuracy":
                axes.axhline(100 * (level - 0.015), color=SOFT, linestyle=":", label="NLL − 1.5")
            axes.set_xscale("log")
            axes.set_xticks(ticks, [f"{weight:g}" for weight in ticks], minor=False)
            axes.minorticks_off()
            axes.set_ylabel(f"test {name}")
        grid[0][column].set_title(TITLES[data])
        grid[1][column].set_xlabel("λ")
    _legend_below(fig, grid[0][0])
    return fig


def shifted(rows: Sequence[Row], data: str) -> Figure:
    """Accuracy, ECE, ECE after temperature scaling, and root ESD on shifted images (Fig. 6)."""
    fig, grid = _panels(len(SHIFTED), len(STRENGTHS), 7.2, sharex="col")
    chosen = chosen_weights(rows, data)
    for column, (shift, levels) in enumerate(STRENGTHS.items()):
        for axes, score in zip(grid[:, column], SHIFTED, strict=True):
            for loss in (name for name in NAMES if name in chosen):
                runs = trained(rows, data, loss=loss, weight=chosen[loss])
                _line(axes, [0.0, *levels], _along_shift(runs, shift, levels, score), loss)
        grid[-1][column].set_xlabel(UNITS[shift])
    for axes, (label, *_) in zip(grid[:, 0], SHIFTED.values(), strict=True):
        axes.set_ylabel(label)
    _legend_below(fig, grid[0][0])
    fig.suptitle(TITLES[data])
    return fig


def _along_shift(
    runs: Sequence[Row], shift: str, levels: Sequence[float], score: str
) -> list[Spread]:
    """A score over seeds on clean images, and at each strength of a shift."""
    _, part, clean = SHIFTED[score]
    at_levels = (
        [
            point[score]
            for run in runs
            for point in run["shifts"]
            if (point["shift"], point["strength"]) == (shift, level)
        ]
        for level in levels
    )
    # ESD estimates a square without bias, so it may be negative: clipped before the root.
    return [
        Spread.of(max(value, 0.0) ** 0.5 if score == "esd" else value for value in values)
        for values in ([run[part][clean] for run in runs], *at_levels)
    ]


def batch_sizes(rows: Sequence[Row]) -> Figure:
    """Accuracy and ECE of ESD and ECE as losses against the batch size (tables 2 and 3)."""
    fig, grid = _panels(1, 2, 2.7)
    chosen = chosen_weights(rows, "cifar10")
    sizes = sorted({row["batch"] for row in rows if "test" in row})
    for axes, (score, name) in zip(grid[0], SCORES.items(), strict=True):
        for loss in ("ESD", "ECE"):
            runs = {
                size: trained(rows, "cifar10", loss=loss, weight=chosen.get(loss), batch=size)
                for size in sizes
            }
            there = [size for size in sizes if runs[size]]
            values = [Spread.of(run["test"][score] for run in runs[size]) for size in there]
            _line(axes, there, values, loss)
        axes.set_xscale("log", base=2)
        axes.set_xticks(sizes, [str(size) for size in sizes])
        axes.set(xlabel="batch size", ylabel=f"test {name}")
    _legend_below(fig, grid[0][0])
    fig.suptitle(TITLES["cifar10"])
    return fig


def save_all(rows: Sequence[Row], folder: Path) -> list[Path]:
    """Write every figure for which there are results, as PNG.

    Args:
        rows: of a results file.
        folder: where to.

    Returns:
        The files.
    """
    from orbical.figures.style import save, styled

    has = {data: bool(trained(rows, data, loss=BASELINE)) for data in TITLES}
    drawings: dict[str, Any] = {}
    if has["cifar10"]:
        drawings["epochs"] = lambda: epochs(rows)
        drawings["batch-sizes"] = lambda: batch_sizes(rows)
    if all(has.values()):
        drawings["lambda"] = lambda: strength(rows)
    for data in (name for name, there in has.items() if there):
        drawings[f"shifts-{data}"] = lambda data=data: shifted(rows, data)
    if any("step_ms" in row for row in rows):
        drawings["cost"] = lambda: cost(rows)
    paths = []
    for name, draw in drawings.items():
        with styled():
            fig = draw()
        paths.append(fewer_colours(save(fig, folder / f"{name}.png"), 64))
    return paths
