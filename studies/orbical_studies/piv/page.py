"""The page of the particle-flow study: its tables and figures, from the files beside it."""

from __future__ import annotations

from pathlib import Path

from ..pages import read_csv, write_page
from .figures import figures_of
from .findings import findings, paper_table
from .tables import (
    accuracy_table,
    consensus_table,
    equivariance_table,
    forward_truth_sentence,
    frame_table,
    gap_table,
    hard_table,
    orbit_table,
    rotation_table,
    time_table,
    training_table,
    truth_time_sentence,
    truth_time_table,
)


def tables_of(folder: Path) -> dict[str, str]:
    """Write all tables of the page from the CSV files of a folder."""
    samples = read_csv(folder / "samples.csv")
    rotations = read_csv(folder / "rotations.csv")
    truth_time = read_csv(folder / "truth-time.csv")
    return {
        "findings": findings(samples, rotations),
        "paper": paper_table(samples),
        "training": training_table(),
        "accuracy": accuracy_table(samples),
        "orbit": orbit_table(samples),
        "equivariance": equivariance_table(samples),
        "gap": gap_table(samples),
        "time": time_table(samples),
        "frame": f"{frame_table(samples)}\n\n{forward_truth_sentence(samples)}",
        "truth-time": f"{truth_time_table(truth_time)}\n\n{truth_time_sentence(truth_time)}",
        "consensus": consensus_table(samples),
        "hard": hard_table(samples),
        "rotations": rotation_table(rotations),
    }


def report(page: Path) -> list[Path]:
    """Write the page's tables and figures from the files beside it; return what was written."""
    folder = page.with_suffix("")
    samples, rotations = read_csv(folder / "samples.csv"), read_csv(folder / "rotations.csv")
    return [write_page(page, tables_of(folder)), *figures_of(folder, samples, rotations)]
