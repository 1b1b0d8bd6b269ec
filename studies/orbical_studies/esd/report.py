"""Numbers and figures of the ESD study, from its results alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pandas as pd
import torch
from matplotlib.figure import Figure

from orbical.figures import FAINT, INK, MODELS, SOFT

from ..framework import Results, where
from ..framework.drawing import legend_outside, subplots
from ..networks import parameters_of
from . import front_figures, fronts, mnist_grid, overfitted, transformer
from .claims import Claim, SentencePairs, paired, tiny_claim
from .front_claims import SIZES, BatchSizes, Front, Robustness, every_front
from .fronts import ABLATED
from .lemmas import lemma_3_2
from .papers_grid import every_weight, missing, trends
from .settings import BASELINE, BATCH, EPOCHS, FIRST, INNER, LOSSES, selections
from .training import STRENGTHS, network

COLUMNS = ("test.accuracy", "test.ece", "test_ts.ece", "test_vs.accuracy", "test_vs.ece")
# Table 1, in percent, in the order of the columns.
PAPER: dict[str, dict[str, tuple[float, ...]]] = {
    "mnist": {
        "NLL": (98.8, 0.91, 0.31, 98.7, 0.43),
        "MMCE": (98.4, 0.36, 0.33, 98.4, 0.32),
        "SB-ECE": (97.9, 0.41, 0.45, 97.9, 0.39),
        "ESD": (98.6, 0.30, 0.29, 98.6, 0.28),
    },
    "cifar10": {
        "NLL": (92.9, 5.49, 1.89, 92.3, 2.96),
        "MMCE": (91.5, 4.92, 1.92, 91.3, 2.52),
        "SB-ECE": (91.6, 4.86, 1.63, 91.5, 1.88),
        "ESD": (92.1, 3.08, 1.60, 92.1, 1.61),
    },
    "cifar100": {
        "NLL": (68.4, 23.8, 5.74, 67.3, 9.78),
        "MMCE": (66.5, 13.9, 4.91, 66.3, 4.59),
        "SB-ECE": (67.3, 14.7, 4.94, 66.4, 4.57),
        "ESD": (67.4, 13.6, 4.85, 67.1, 4.28),
    },
}
# Accuracy and ECE by batch size: table 2 (ESD on CIFAR-10) and table 3 (ECE on CIFAR-100).
PAPER_BATCHES = {
    "ESD": {512: (92.1, 3.08), 256: (91.5, 3.15), 128: (91.5, 2.93), 64: (91.3, 3.91)},
    "ECE": {512: (68.2, 14.6), 256: (67.9, 18.1), 128: (68.1, 21.0)},
}
# The same of the likelihood alone, with batches of 512, in both tables.
PAPER_WITHOUT = {"ESD": (92.9, 5.49), "ECE": (68.6, 22.4)}
# What the sentence pairs decide; the names are those of `SentencePairs.claims`.
CLAIMS = {
    "lower": "a calibration loss lowers the ECE",
    "best": "ESD has the lowest ECE: ESD minus the other",
    "scaled": "after scaling ESD stays ahead of cross-entropy",
    "temperature": "*ours:* one temperature does better than every loss: it minus the loss",
    "batch": "ESD works at any batch size: ESD minus cross-entropy, by batch size",
}
_TRAINED = ["data", "decay", "loss", "weight", "inner", "batch"]
_WHOLE = "CIFAR-100, all images"
TITLES = {"mnist": "MNIST, LeNet-5", "cifar10": "CIFAR-10, compact ResNet"}
UNITS = {"rotation": "rotation (degrees)", "blur": "blur (σ, pixels)", "noise": "noise (σ)"}
SCORES = {"test.accuracy": "accuracy (%)", "test.ece": "ECE (%)"}
# On shifted images: the label, and the column of the same score on clean images.
SHIFTED = {
    "accuracy": ("accuracy (%)", "test.accuracy"),
    "ece": ("ECE (%)", "test.ece"),
    "ece_ts": ("ECE after TS (%)", "test_ts.ece"),
    "esd": ("√ESD (%)", "test.esd"),
}


class Runs:
    """The trainings of the study, found by data set, loss, lambda and batch size.

    Args:
        results: The study's tables.

    Attributes:
        all: One row a training.
        selections: What lambda was chosen, by data set and loss.
    """

    def __init__(self, results: Results) -> None:
        self.all = results["results"]
        self.selections = {data: selections(self.all, data) for data in EPOCHS}

    def of(
        self, data: str, loss: str, weight: float | None = None, batch: int = BATCH
    ) -> pd.DataFrame:
        """Return the trainings of one setting; lambda is the chosen one unless given."""
        if weight is None:
            weight = 0.0 if loss == BASELINE else self.selections[data][loss].choice
        return where(self.all, data=data, loss=loss, weight=weight, batch=batch)

    def chosen(self, data: str) -> dict[str, pd.DataFrame]:
        """Return the trainings of every loss at its chosen lambda."""
        return {loss: self.of(data, loss) for loss in (BASELINE, *self.selections[data])}

    def change(self, data: str, loss: str, column: str, weight: float | None = None) -> pd.Series:
        """Return a loss minus the baseline in points, seed by seed."""
        both = self.of(data, loss, weight), self.of(data, BASELINE)
        ours, base = (found.set_index("seed")[column] for found in both)
        return 100 * (ours - base).dropna()


def points(change: pd.Series) -> str:
    """Format a change as signed mean and standard deviation over seeds.

    >>> points(pd.Series([-2.0, -4.0])), points(pd.Series([0.5]))
    ('-3.00 ± 1.41', '+0.50')
    """
    spread = f" ± {change.std():.2f}" if len(change) > 1 else ""
    return f"{change.mean():+.2f}{spread}"


def lower(change: pd.Series) -> bool:
    """Check whether a change goes down by more than its standard deviation over seeds.

    >>> lower(pd.Series([-2.0, -4.0])), lower(pd.Series([-2.0])), lower(pd.Series([-2.0, 1.0]))
    (True, False, False)
    """
    return len(change) > 1 and bool(change.mean() < -change.std())


def facts(results: Results) -> dict[str, Any]:
    """Return what the page refers to."""
    runs, every = Runs(results), every_front(results["fronts"])
    eces = pd.DataFrame({loss: runs.change("cifar10", loss, "test.ece") for loss in LOSSES})
    return {
        "lemma": lemma_3_2([0.7] * 9),
        "runs": runs.all,
        "of": runs.of,
        "chosen": {data: runs.chosen(data) for data in EPOCHS},
        "change": runs.change,
        "selections": runs.selections,
        "points": points,
        "lower": lower,
        "columns": COLUMNS,
        "paper": PAPER,
        "paper_batches": PAPER_BATCHES,
        "paper_without": PAPER_WITHOUT,
        "eces": eces.mean(),
        "prices": pd.Series({n: runs.change("cifar10", n, "test.accuracy").mean() for n in LOSSES}),
        "epochs_of_nll": _over_epochs(runs, results["curves"]),
        "shifted": {data: _shifted(runs, results, data) for data in EPOCHS},
        "parameters": {data: parameters_of(network(data, torch.device("cpu"))) for data in EPOCHS},
        "cost": results["cost"],
        "cumulative": results["cumulative-scores"],
        "published": results["published"],
        **_pairs_and_tiny(results),
        "fronts": every,
        "sizes": BatchSizes(every[ABLATED]),
        "front_titles": front_figures.FRONTS,
        "grid": _grid(every[ABLATED], results["grid"]),
        "trained_fronts": results["fronts"].groupby(_TRAINED, sort=False),
        "front_intervals": results["fronts-intervals"],
        "epoch_cost": results["fronts-cost"],
        "corrupted": Robustness(results["corruptions"], results["corruptions-change"]),
        **_papers_regime(results, runs, every),
    }


def _papers_regime(results: Results, runs: Runs, every: dict[str, Front]) -> dict[str, Any]:
    """Return MNIST over the paper's grid, CIFAR-10 overfitted, and the regime map."""
    digits = results["mnist"]
    return {
        "small_temperature": {data: _temperature(runs.chosen(data)) for data in EPOCHS},
        "digits_table": mnist_grid.table_1(digits),
        "digits_spans": mnist_grid.spans(digits),
        "digits_scaled": int(digits[digits["seed"].isin(mnist_grid.FRESH)]["test_ts.ece"].count()),
        "overfit": overfitted.table_1(results["overfitted"], "cifar10", "constant"),
        "overfit_rows": results["overfitted"],
        "like_paper": overfitted.table_1(results["overfitted"], "cifar10", "cycle"),
        "two_weights": overfitted.table_1(_two_weights(results), "cifar10", "cycle"),
        "mini": overfitted.decided(transformer.trained(results["transformer"], "snli"), "snli"),
        "mini_rows": results["transformer"],
        "like_paper_100": overfitted.table_1(results["overfitted"], "cifar100", "cycle"),
        "map": _map(results, runs, every),
    }


def _map(results: Results, runs: Runs, every: dict[str, Front]) -> pd.DataFrame:
    """Return the regime map."""
    small = {data: runs.chosen(data) for data in EPOCHS}
    return pd.DataFrame([*front_figures.map_points(results, small, every)])


def _two_weights(results: Results) -> pd.DataFrame:
    """Return the trainings of the first run, with two weights of each loss."""
    rows = results["overfitted"]
    first = [{0.0, *overfitted.WEIGHTS.get(loss, ())} for loss in rows["loss"]]
    return rows[[at in known for at, known in zip(rows["weight"], first, strict=True)]]


def _temperature(trained: dict[str, pd.DataFrame]) -> Claim:
    """Compare one temperature on the likelihood alone with every loss before scaling, in points."""
    scores = {loss: own.set_index("seed") for loss, own in trained.items()}
    one = 100 * scores[BASELINE]["test_ts.ece"]
    return Claim({n: paired(one, 100 * scores[n]["test.ece"]) for n in LOSSES})


def _grid(front: Front, grid: pd.DataFrame) -> dict[str, Any]:
    """Return the trend of each loss over all weights, its trainings, and what was not run."""
    return {
        "trends": trends(front, grid),
        "of": {loss: every_weight(front, grid, loss) for loss in fronts.WEIGHTS},
        "missing": sorted({trial.weight for trial in missing(front, grid)}),
        "trained": len(grid),
        "planned": len(grid) + len(missing(front, grid)),
    }


def _pairs_and_tiny(results: Results) -> dict[str, Any]:
    pairs, tiny = SentencePairs(results["nli"]), results["tiny"]
    narrow = pairs.rows[pairs.rows["inner"] == min(INNER["SB-ECE"])].iloc[0]
    claim = tiny_claim(tiny)
    return {"pairs": pairs, "narrow": narrow, "tiny": tiny, "tiny_claim": claim} | {
        "claim_titles": CLAIMS
    }


def _over_epochs(runs: Runs, curves: pd.DataFrame) -> pd.DataFrame:
    """Return the scores of the likelihood alone on CIFAR-10 by epoch, means over seeds."""
    own = curves[curves["key"].isin(runs.of("cifar10", BASELINE)["key"])]
    return own.drop(columns="key").groupby("epoch").mean()


def _shifted(runs: Runs, results: Results, data: str) -> pd.DataFrame:
    """Return the scores on shifted images of every loss at its chosen lambda."""
    chosen = pd.concat(runs.chosen(data).values())[["key", "loss"]]
    return chosen.merge(results["shifts"], on="key")


def figures(results: Results) -> Iterator[tuple[str, Figure]]:
    """Draw scores over epochs, batch sizes, lambda and shifts, and the cost of a step."""
    runs = Runs(results)
    every = every_front(results["fronts"])
    yield "fronts.png", front_figures.draw_fronts(every)
    yield "regimes.png", front_figures.draw_map(_map(results, runs, every))
    yield "grid.png", front_figures.draw_grid(every[ABLATED], results["grid"])
    yield "corruptions.png", front_figures.draw_corruptions(results["corruptions"])
    yield "epochs.png", _epochs(runs, results["curves"])
    yield "batch-sizes.png", _batch_sizes(runs, BatchSizes(every[ABLATED]))
    yield "lambda.png", _strength(runs)
    for data in EPOCHS:
        yield f"shifts-{data}.png", _along_shifts(runs, _shifted(runs, results, data), data)
    yield "cost.png", _cost(results["cost"])
    yield "pairs.png", _pairs(results["nli"])
    yield "cumulative.png", _cumulative(results["cumulative"])


def _epochs(runs: Runs, curves: pd.DataFrame) -> Figure:
    """Draw accuracy and ECE on training and test images over epochs (the paper's Fig. 1)."""
    fig, grid = subplots(2, 2, 4.2, sharex=True, sharey="row", grid="both")
    for column, loss in zip(grid.T, (BASELINE, "ESD"), strict=True):
        for axes, score in zip(column, ("accuracy", "ece"), strict=True):
            for color, split in zip(MODELS, ("train", "test"), strict=False):
                label = f"{split}, each seed"
                for key in runs.of("cifar10", loss)["key"]:
                    curve = curves[curves["key"] == key].set_index("epoch")[f"{split}_{score}"]
                    axes.plot(100 * curve, color=color, linewidth=1.3, alpha=0.8, label=label)
                    label = ""
        column[0].set_title(f"{loss} on {TITLES['cifar10']}")
        column[1].set_xlabel("epoch")
    for axes, label in zip(grid[:, 0], SCORES.values(), strict=True):
        axes.set_ylabel(label)
    legend_outside(grid[0][0])
    return fig


def _cost(cost: pd.DataFrame) -> Figure:
    """Draw the time of a training step with each loss (the paper's Fig. 3)."""
    fig, grid = subplots(1, 2, 2.5, squeeze=False, grid="both")
    for axes, (data, title) in zip(grid[0], TITLES.items(), strict=True):
        own = cost[cost["data"] == data]
        axes.barh(own["loss"], own["step_ms"], color=FAINT, label="whole step")
        axes.barh(own["loss"], own["loss_ms"], color=MODELS[0], label="loss alone")
        axes.invert_yaxis()
        axes.grid(visible=False, axis="y")
        axes.set(title=title, xlabel="milliseconds, batches of 512")
    legend_outside(grid[0][0])
    return fig


def _strength(runs: Runs) -> Figure:
    """Draw accuracy and ECE against lambda (the paper's Fig. 5)."""
    fig, grid = subplots(2, 2, 4.4, sharex=True, grid="both")
    full = runs.all[runs.all["batch"] == BATCH]
    ticks = sorted(weight for weight in full["weight"].unique() if weight)
    for column, (data, title) in zip(grid.T, TITLES.items(), strict=True):
        for axes, (score, name) in zip(column, SCORES.items(), strict=True):
            for loss in LOSSES:
                front_figures.line(
                    axes, full.query("data == @data and loss == @loss"), "weight", score, loss
                )
            level = 100 * runs.of(data, BASELINE)[score].mean()
            axes.axhline(level, color=INK, linewidth=1, label="NLL")
            if score == "test.accuracy":
                axes.axhline(level - 1.5, color=SOFT, linestyle=":", label="NLL − 1.5")
            axes.set_xscale("log")
            axes.set_xticks(ticks, [f"{weight:g}" for weight in ticks], minor=False)
            axes.minorticks_off()
            axes.set_ylabel(f"test {name}")
        column[0].set_title(title)
        column[1].set_xlabel("λ")
    legend_outside(grid[0][0])
    return fig


def _along_shifts(runs: Runs, shifted: pd.DataFrame, data: str) -> Figure:
    """Draw accuracy, ECE, ECE after scaling, and root ESD on shifted images (Fig. 6)."""
    fig, grid = subplots(
        len(SHIFTED), len(STRENGTHS), 7.2, sharex="col", squeeze=False, grid="both"
    )
    # ESD estimates a square without bias, so it may be negative: clipped before the root.
    shifted = shifted.assign(esd=shifted["esd"].clip(0) ** 0.5)
    for column, shift in zip(grid.T, STRENGTHS, strict=True):
        for axes, (score, (_, clean)) in zip(column, SHIFTED.items(), strict=True):
            for loss, found in runs.chosen(data).items():
                at_zero = found[clean].clip(0) ** 0.5 if score == "esd" else found[clean]
                rows = shifted.query("shift == @shift and loss == @loss")
                rows = pd.concat([pd.DataFrame({"strength": 0.0, score: at_zero}), rows])
                front_figures.line(axes, rows, "strength", score, loss)
        column[-1].set_xlabel(UNITS[shift])
    for axes, (label, _) in zip(grid[:, 0], SHIFTED.values(), strict=True):
        axes.set_ylabel(label)
    legend_outside(grid[0][0])
    fig.suptitle(TITLES[data])
    return fig


def _batch_sizes(runs: Runs, whole: BatchSizes) -> Figure:
    """Draw accuracy and ECE of ESD and ECE as losses against the batch size (tables 2 and 3)."""
    fig, grid = subplots(2, 2, 4.6, sharex=True, grid="both")
    sizes = sorted(runs.all["batch"].unique())
    plain = whole.front.plain
    for axes, (score, name) in zip(grid.T, SCORES.items(), strict=True):
        for loss, trained in SIZES.items():
            small = pd.concat([runs.of("cifar10", loss, batch=size) for size in sizes])
            front_figures.line(axes[0], small, "batch", score, loss)
            large = pd.concat([whole.of(loss, size) for size in trained])
            front_figures.line(axes[1], large, "batch", score, loss)
        level = 100 * plain[score].mean()
        axes[1].axhline(level, color=INK, linewidth=1, label="NLL, batches of 512")
        axes[1].set_xscale("log", base=2)
        axes[1].set_xticks(sizes, [str(size) for size in sizes])
        axes[1].set_xlabel("batch size")
        for panel, title in zip(axes, (TITLES["cifar10"], _WHOLE), strict=True):
            panel.set(title=title, ylabel=f"test {name}")
    legend_outside(grid[1][0])
    return fig


def _pairs(rows: pd.DataFrame) -> Figure:
    """Draw ECE against accuracy of every weight on sentence pairs, before and after scaling."""
    fig, grid = subplots(1, 2, 2.9, sharex=True, sharey=True, squeeze=False, grid="both")
    rows = rows[rows["batch"] == BATCH]
    plain = rows[rows["loss"] == BASELINE]
    shown = rows[rows["test.accuracy"] > plain["test.accuracy"].mean() - 0.05]
    for axes, (column, title) in zip(
        grid[0],
        {"test.ece": "as trained", "test_ts.ece": "after one temperature"}.items(),
        strict=True,
    ):
        for loss, (color, marker) in front_figures.STYLE.items():
            usual = INNER.get(loss, (0.0,))[0]
            own = where(shown, loss=loss, inner=usual)
            own = own if loss == BASELINE else own[own["seed"] == FIRST]
            if len(own):
                style = {"color": color, "marker": marker, "linestyle": "", "markersize": 4}
                axes.plot(100 * own["test.accuracy"], 100 * own[column], label=loss, **style)
        axes.set(title=title, xlabel="test accuracy (%)", ylim=(0, None))
    grid[0][0].set_ylabel("test ECE (%)")
    legend_outside(grid[0][0])
    return fig


def _cumulative(curves: pd.DataFrame) -> Figure:
    """Draw cumulative accuracy and confidence before and after one temperature (Fig. 4)."""
    fig, grid = subplots(1, 2, 2.7, sharey=True, squeeze=False, grid="both")
    first = curves[curves["network"] == curves["network"].iloc[0]]
    titles = {False: "as published", True: "after temperature scaling"}
    for axes, (scaled, title) in zip(grid[0], titles.items(), strict=True):
        own = first[first["scaled"] == scaled]
        axes.fill_between(own["share"], own["accuracy"], own["confidence"], color=FAINT)
        for column, color in zip(("confidence", "accuracy"), MODELS, strict=False):
            axes.plot(own["share"], own[column], color=color, label=f"cumulative {column}")
        axes.set(title=title, xlabel="share of images, least confident first")
    legend_outside(grid[0][0])
    return fig
