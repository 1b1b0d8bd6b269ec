"""The calibration error over whole orbits, in the form that the page draws."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from ...calibration import Reliability, pooled_reliability

Array = np.ndarray


@dataclass(frozen=True)
class OverOrbits:
    """Confidence and correctness pooled over the orbit, in B bins.

    Attributes:
        diagram: The reliability diagram, each output weighted by its element.
        measure: `value`, `low`, `high` and `expected` of the ECE.
    """

    diagram: Reliability
    measure: dict[str, float]


def over_orbits(
    columns: Iterable[tuple[Array, Array]], weights: Array, bins: int, seed: int = 0
) -> OverOrbits:
    """Return the diagram and ECE of all positions pooled; see `calibration.pooled_reliability`.

    >>> columns = [(np.full(50, 0.75), np.arange(50) % 4 > 0) for _ in range(4)]
    >>> found = over_orbits(columns, np.full(4, 0.25), bins=15)
    >>> round(found.measure["value"], 6), int(found.diagram.count.sum())
    (0.01, 200)
    """
    diagram, found = pooled_reliability(columns, weights, bins=bins, seed=seed)
    names = {"value": found.value, "low": found.low, "high": found.high}
    ends = {name: float(part) for name, part in names.items()}
    return OverOrbits(diagram, {**ends, "expected": float(found.calibrated)})
