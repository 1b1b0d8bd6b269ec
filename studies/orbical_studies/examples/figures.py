"""The figures of the six examples: orbits and fibers, an interval, candidate symmetries."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from orbical.bounds import Comparison, OrbitTable, classification

from .worlds import circle


def draw(folder: Path, compared: Comparison) -> list[Path]:
    """Draw all figures of the page into a folder; return what was written."""
    from orbical.figures import bounds, save

    x, label = circle()
    side = np.where(x[:, 0] > 0, 0.9, 0.8)
    mirrored = np.tile(np.arange(10), 2)
    fibers = bounds.fibers(
        x,
        label,
        [mirrored, mirrored, np.zeros(20, int)],
        [side, np.full(20, 0.9), np.full(20, 0.9)],
        ["reflection, two confidences", "reflection, one confidence", "all rotations"],
        label_names=["blue label", "orange label"],
    )
    table = OrbitTable.from_labels(mirrored, label, confidence=side, predicted=np.zeros(20, int))
    figures = {
        "fibers": fibers,
        "interval": bounds.calibration_interval(classification(table)),
        "groups": bounds.group_comparison(compared),
    }
    return [save(figure, folder / f"examples-{name}.png") for name, figure in figures.items()]
