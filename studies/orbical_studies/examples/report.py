"""Numbers and figures of the six examples."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from orbical.bounds import OrbitTable, classification
from orbical.figures import bounds

from ..framework import Results
from . import worlds


def facts(results: Results) -> dict[str, Any]:
    """Return what the page refers to."""
    return {
        "one": {mean: worlds.example_1(mean) for mean in (0.25, 0.5, 0.75)},
        "two_fibers": worlds.example_2(1.0, 0.99),
        "one_fiber": worlds.example_2(1.0, 1.0),
        "three": worlds.example_3(1.0),
        "four": worlds.example_4(),
        "five": worlds.example_5(),
        "six": worlds.example_6(1.0),
        "symmetries": worlds.symmetries_of_the_circle().rows(),
    }


def figures(results: Results) -> Iterator[tuple[str, Figure]]:
    """Draw orbits and fibers, an interval of the ECE, and candidate symmetries."""
    x, label = worlds.circle()
    side, mirrored = np.where(x[:, 0] > 0, 0.9, 0.8), np.tile(np.arange(10), 2)
    yield (
        "fibers.png",
        bounds.fibers(
            x,
            label,
            [mirrored, mirrored, np.zeros(20, int)],
            [side, np.full(20, 0.9), np.full(20, 0.9)],
            ["reflection, two confidences", "reflection, one confidence", "all rotations"],
            label_names=["blue label", "orange label"],
        ),
    )
    table = OrbitTable.from_labels(mirrored, label, confidence=side, predicted=np.zeros(20, int))
    yield "interval.png", bounds.calibration_interval(classification(table))
    yield "groups.png", bounds.group_comparison(worlds.symmetries_of_the_circle())
