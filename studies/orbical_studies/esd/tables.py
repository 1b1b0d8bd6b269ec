"""The ESD study's tables, from result lines alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..pages import Row, markdown
from .findings import findings
from .settings import (
    BASELINE,
    BATCH,
    LOSSES,
    NAMES,
    PAPER_TABLE_1,
    PAPER_TABLE_2,
    PAPER_TABLE_3,
    SMALLER_BATCHES,
)
from .summaries import COLUMNS, Spread, chosen_weights, selections, table_1, trained


def main_table(rows: Sequence[Row], data: str) -> str:
    """Table 1 of one data set: ours over seeds, the paper's value in brackets."""
    lines = []
    for loss, (weight, summary) in table_1(rows, data).items():
        paper = PAPER_TABLE_1[data].get(loss)
        cells = [
            spread.percent() + (f" [{paper[i]:g}]" if paper else "")
            for i, spread in enumerate(summary.values())
        ]
        lines.append([_shown(loss), "" if loss == BASELINE else f"{weight:g}", *cells])
    return _markdown(["loss", "λ", *(f"{name} (%)" for name in COLUMNS)], lines)


def differences(rows: Sequence[Row], data: str) -> str:
    """Each loss minus the baseline, seed by seed, beside the paper's difference; in points."""
    chosen = chosen_weights(rows, data)
    baseline = {row["seed"]: row for row in trained(rows, data, loss=BASELINE)}
    names = list(COLUMNS)
    shown = ("accuracy", "ECE", "ECE after TS", "ECE after VS")
    lines = []
    for loss in (name for name in LOSSES if name in chosen):
        runs = [
            row
            for row in trained(rows, data, loss=loss, weight=chosen[loss])
            if row["seed"] in baseline
        ]
        if not runs:
            continue
        cells = []
        for name in shown:
            part, score = COLUMNS[name]
            change = Spread.of(
                row[part][score] - baseline[row["seed"]][part][score] for row in runs
            )
            cell = f"{100 * change.mean:+.2f} ± {100 * change.deviation:.2f}"
            if loss in PAPER_TABLE_1[data]:
                place = names.index(name)
                own, base = PAPER_TABLE_1[data][loss][place], PAPER_TABLE_1[data][BASELINE][place]
                cell += f" [{own - base:+.2f}]"
            cells.append(cell)
        lines.append([_shown(loss), *cells])
    return _markdown(["loss", *(f"Δ {name}" for name in shown)], lines)


def selection_table(rows: Sequence[Row], data: str) -> str:
    """Which lambda was chosen, and what the validation images said."""
    lines = []
    for loss, found in selections(rows, data).items():
        admissible = ", ".join(f"{weight:g}" for weight in found.admissible) or "none"
        scores = f"{100 * found.accuracy:.2f}", f"{100 * found.ece:.2f}"
        lines.append([_shown(loss), admissible, f"{found.choice:g}", *scores])
    header = ["loss", "λ within 1.5 points", "chosen λ", "validation accuracy (%)"]
    return _markdown([*header, "validation ECE (%)"], lines)


def batch_table(rows: Sequence[Row]) -> str:
    """Tables 2 and 3: ESD and ECE as losses over batch sizes."""
    chosen = chosen_weights(rows, "cifar10")
    lines = []
    for loss, paper in (("ESD", PAPER_TABLE_2), ("ECE", PAPER_TABLE_3)):
        for batch in (BATCH, *SMALLER_BATCHES):
            runs = trained(rows, "cifar10", loss=loss, weight=chosen.get(loss), batch=batch)
            if loss not in chosen or not runs:
                continue
            cells = []
            for i, (part, score) in enumerate((("test", "accuracy"), ("test", "ece"))):
                cell = Spread.of(row[part][score] for row in runs).percent()
                cells.append(cell + (f" [{paper[batch][i]:g}]" if batch in paper else ""))
            scaled = Spread.of(row["test_ts"]["ece"] for row in runs).percent()
            lines.append([_shown(loss), str(batch), *cells, scaled])
    header = ["loss", "batch", "accuracy (%)", "ECE (%)", "ECE after TS (%)"]
    return _markdown(header, lines)


def cost_table(rows: Sequence[Row]) -> str:
    """Milliseconds of a step and of the loss alone, forward and backward."""
    timed = [row for row in rows if "step_ms" in row]
    names = list(dict.fromkeys(row["loss"] for row in timed))
    cells = {(row["data"], row["loss"]): row for row in timed}
    lines = []
    for name in names:
        line = [name]
        for data in PAPER_TABLE_1:
            row = cells.get((data, name))
            line.append("" if row is None else f"{row['step_ms']:.2f}")
        alone = [row["loss_ms"] for row in timed if row["loss"] == name and row["loss_ms"]]
        line.append(f"{min(alone):.2f}" if alone else "")
        lines.append(line)
    header = ["loss", "LeNet-5 step (ms)", "compact ResNet step (ms)", "loss alone (ms)"]
    return _markdown(header, lines)


def shift_table(rows: Sequence[Row], data: str) -> str:
    """Means over the five strengths of each shift: ECE, and ECE after temperature scaling."""
    chosen = chosen_weights(rows, data)
    lines = []
    for loss in (name for name in NAMES if name in chosen):
        runs = trained(rows, data, loss=loss, weight=chosen[loss])
        line = [_shown(loss)]
        for shift in ("rotation", "blur", "noise"):
            for score in ("ece", "ece_ts"):
                values = []
                for run in runs:
                    points = [p[score] for p in run.get("shifts", []) if p["shift"] == shift]
                    values += [sum(points) / len(points)] if points else []
                line.append(Spread.of(values).percent(1) if values else "")
        if runs:
            lines.append(line)
    header = [f"{s}, {m}" for s in ("rotation", "blur", "noise") for m in ("ECE", "after TS")]
    return _markdown(["loss", *header], lines)


def settings_table(rows: Sequence[Row]) -> str:
    """What was trained: the network's size, runs, seeds, epochs, time."""
    import torch

    from .trial import network

    lines = []
    for data in PAPER_TABLE_1:
        runs = [row for row in rows if "test" in row and row["data"] == data]
        if not runs:
            continue
        epochs = sorted({row["epochs"] for row in runs})
        seeds = len({row["seed"] for row in runs})
        seconds = sum(row["seconds"] for row in runs)
        listed = ", ".join(map(str, epochs))
        weights = sum(weight.numel() for weight in network(data, torch.device("cpu")).parameters())
        counts = [f"{weights:,}", str(len(runs)), str(seeds)]
        lines.append([data, *counts, listed, f"{seconds / 60:.0f}"])
    header = ["data", "parameters", "training runs", "seeds", "epochs", "minutes, summed over runs"]
    return _markdown(header, lines)


def _markdown(header: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    return markdown(header, lines) if lines else "(no results yet)"


def _shown(loss: str) -> str:
    return loss if loss == BASELINE else f"+{loss}"


TABLES: dict[str, Callable[[Sequence[Row]], str]] = {
    "settings": settings_table,
    "findings": findings,
    "mnist": lambda rows: main_table(rows, "mnist"),
    "mnist-differences": lambda rows: differences(rows, "mnist"),
    "mnist-selection": lambda rows: selection_table(rows, "mnist"),
    "cifar10": lambda rows: main_table(rows, "cifar10"),
    "cifar10-differences": lambda rows: differences(rows, "cifar10"),
    "cifar10-selection": lambda rows: selection_table(rows, "cifar10"),
    "batches": batch_table,
    "cost": cost_table,
    "shifts": lambda rows: shift_table(rows, "cifar10"),
}
