"""The page of the particle-flow study: its tables and figures, from the files beside it."""

from __future__ import annotations

from pathlib import Path

from ..pages import read_csv, write_page
from .figures import figures_of
from .findings import findings
from .tables import (
    accuracy_table,
    consensus_table,
    equivariance_table,
    frame_table,
    gap_table,
    hard_table,
    orbit_table,
    rotation_table,
    time_table,
    truth_time_table,
)


def report(page: Path) -> list[Path]:
    """Write the page's tables and figures from the files beside it; return what was written."""
    folder = page.with_suffix("")
    samples = read_csv(folder / "samples.csv")
    rotations = read_csv(folder / "rotations.csv")
    tables = {
        "findings": findings(samples, rotations),
        "accuracy": accuracy_table(samples),
        "orbit": orbit_table(samples),
        "equivariance": equivariance_table(samples),
        "gap": gap_table(samples),
        "time": time_table(samples),
        "frame": frame_table(samples),
        "truth-time": truth_time_table(read_csv(folder / "truth-time.csv")),
        "consensus": consensus_table(samples),
        "hard": hard_table(samples),
        "rotations": rotation_table(rotations),
    }
    return [write_page(page, tables), *figures_of(folder, samples, rotations)]
