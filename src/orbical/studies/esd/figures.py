"""The study's figures, each from finished result lines."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .results import Row
from .settings import BASELINE, BEYOND_GRID, GRID, LOSSES, NAMES
from .shifts import STRENGTHS
from .tables import Spread, chosen_weights, trained

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


def _axes(columns: int, rows: int = 1) -> tuple[Figure, Any]:
    from orbical.figures.style import figure

    made = figure(2.9 * columns, 2.3 * rows)
    return made, made.subplots(rows, columns, squeeze=False)


def _line(axes: Axes, places: Sequence[float], values: Sequence[Spread], loss: str) -> None:
    colour, marker = STYLE[loss]
    means = [100 * value.mean for value in values]
    spread = [100 * value.deviation for value in values]
    axes.plot(places, means, color=colour, marker=marker, markersize=4, label=loss)
    low = [m - s for m, s in zip(means, spread, strict=True)]
    high = [m + s for m, s in zip(means, spread, strict=True)]
    axes.fill_between(places, low, high, color=colour, alpha=0.15, linewidth=0)


def _label(axes: Axes, title: str, x: str, y: str) -> None:
    axes.set(title=title, xlabel=x, ylabel=y)
    axes.grid(visible=True)


def epochs(rows: Sequence[Row]) -> Figure:
    """Accuracy and ECE on training and test images over epochs (the paper's Fig. 1)."""
    from orbical.figures.style import MODELS

    fig, grid = _axes(4)
    chosen = chosen_weights(rows, "cifar10")
    panels = [(BASELINE, "accuracy"), (BASELINE, "ece"), ("ESD", "accuracy"), ("ESD", "ece")]
    for axes, (loss, score) in zip(grid[0], panels, strict=True):
        runs = trained(rows, "cifar10", loss=loss, weight=chosen.get(loss))
        for split, colour in (("train", MODELS[0]), ("test", MODELS[1])):
            curves = [[100 * point[f"{split}_{score}"] for point in run["curve"]] for run in runs]
            for curve, run in zip(curves, runs, strict=True):
                places = [point["epoch"] for point in run["curve"]]
                label = f"{split}, each seed" if run is runs[0] else None
                axes.plot(places, curve, color=colour, linewidth=1.3, alpha=0.8, label=label)
        name = "accuracy" if score == "accuracy" else "ECE"
        _label(axes, f"{loss}: {name}", "epoch", f"{name} (%)")
        axes.legend()
    return fig


def cost(rows: Sequence[Row]) -> Figure:
    """Time of a training step with each loss (the paper's Fig. 3)."""
    from orbical.figures.style import FAINT, MODELS

    timed = [row for row in rows if "step_ms" in row]
    fig, grid = _axes(2)
    for axes, data in zip(grid[0], TITLES, strict=True):
        own = [row for row in timed if row["data"] == data]
        names = [row["loss"] for row in own]
        axes.barh(names, [row["step_ms"] for row in own], color=FAINT, label="whole step")
        axes.barh(names, [row["loss_ms"] for row in own], color=MODELS[0], label="loss alone")
        axes.invert_yaxis()
        _label(axes, TITLES[data], "milliseconds, batches of 512", "")
    fig.legend(*grid[0][0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
    return fig


def strength(rows: Sequence[Row]) -> Figure:
    """Accuracy and ECE against lambda (the paper's Fig. 5)."""
    from orbical.figures.style import INK, SOFT

    fig, grid = _axes(2, 2)
    ticks = sorted((*GRID, *BEYOND_GRID))
    for column, data in enumerate(TITLES):
        for row, score in enumerate(("accuracy", "ece")):
            axes = grid[row][column]
            for loss in LOSSES:
                runs = trained(rows, data, loss=loss)
                weights = sorted({run["weight"] for run in runs})
                values = [
                    Spread.of(run["test"][score] for run in runs if run["weight"] == weight)
                    for weight in weights
                ]
                _line(axes, weights, values, loss)
            level = Spread.of(r["test"][score] for r in trained(rows, data, loss=BASELINE)).mean
            if score == "accuracy":
                axes.axhline(100 * (level - 0.015), color=SOFT, linestyle=":", label="NLL − 1.5")
            axes.axhline(100 * level, color=INK, linewidth=1, label="NLL")
            axes.set_xscale("log")
            axes.set_xticks(ticks, [f"{weight:g}" for weight in ticks], minor=False)
            axes.minorticks_off()
            name = "accuracy" if score == "accuracy" else "ECE"
            _label(axes, TITLES[data], "λ", f"test {name} (%)")
    grid[0][1].legend(loc="center left", bbox_to_anchor=(1.02, 0.0))
    return fig


def shifted(rows: Sequence[Row], data: str) -> Figure:
    """Accuracy, ECE, ECE after temperature scaling, and root ESD on shifted images (Fig. 6)."""
    fig, grid = _axes(3, 4)
    chosen = chosen_weights(rows, data)
    scores = {
        "accuracy": "accuracy (%)",
        "ece": "ECE (%)",
        "ece_ts": "ECE after TS (%)",
        "esd": "√ESD (%)",
    }
    clean = {
        "accuracy": ("test", "accuracy"),
        "ece": ("test", "ece"),
        "ece_ts": ("test_ts", "ece"),
        "esd": ("test", "esd"),
    }
    for column, shift in enumerate(STRENGTHS):
        for row, (score, label) in enumerate(scores.items()):
            axes = grid[row][column]
            for loss in (name for name in NAMES if name in chosen):
                runs = trained(rows, data, loss=loss, weight=chosen[loss])
                part, own = clean[score]
                values = [Spread.of(_shown(run[part][own], score) for run in runs)]
                for level in STRENGTHS[shift]:
                    values.append(
                        Spread.of(
                            _shown(point[score], score)
                            for run in runs
                            for point in run["shifts"]
                            if point["shift"] == shift and point["strength"] == level
                        )
                    )
                _line(axes, [0.0, *STRENGTHS[shift]], values, loss)
            _label(axes, "", UNITS[shift], label)
    grid[0][2].legend()
    fig.suptitle(TITLES[data])
    return fig


def _shown(value: float, score: str) -> float:
    # ESD estimates a square without bias, so it may be negative: clipped before the root.
    return max(value, 0.0) ** 0.5 if score == "esd" else value


def batch_sizes(rows: Sequence[Row]) -> Figure:
    """ECE and accuracy of ESD and ECE as losses against the batch size (tables 2 and 3)."""
    fig, grid = _axes(2)
    chosen = chosen_weights(rows, "cifar10")
    sizes = sorted({row["batch"] for row in rows if "test" in row})
    for axes, score in zip(grid[0], ("ece", "accuracy"), strict=True):
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
        name = "accuracy" if score == "accuracy" else "ECE"
        _label(axes, TITLES["cifar10"], "batch size", f"test {name} (%)")
        axes.legend()
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
        paths.append(save(fig, folder / f"{name}.png"))
    return paths
