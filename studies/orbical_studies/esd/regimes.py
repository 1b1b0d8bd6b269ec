"""How near a training is to the paper's, and what a calibration loss gains in which regime."""

from __future__ import annotations

from collections.abc import Mapping

TABLE_1 = {"mnist": (0.988, 0.0091), "cifar10": (0.929, 0.0549), "cifar100": (0.684, 0.238)}
"""Accuracy and ECE of the likelihood alone in the paper's Table 1."""

ACCURACY, ECE = 0.015, 0.25
"""Difference in accuracy, and share of the paper's ECE, that count as one."""


def distance(paper: tuple[float, float], row: Mapping[str, float]) -> float:
    """Return how far test scores are from the paper's; up to 1 they count as the same regime.

    >>> round(distance((0.929, 0.0549), {"test.accuracy": 0.92, "test.ece": 0.068}), 2)
    0.95
    """
    apart = abs(row["test.accuracy"] - paper[0]) / ACCURACY
    return max(apart, abs(row["test.ece"] / paper[1] - 1) / ECE)
