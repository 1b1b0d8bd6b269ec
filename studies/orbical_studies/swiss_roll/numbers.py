"""The worlds of the study's rows, a column over the seeds, and what the paper's figure shows."""

from __future__ import annotations

from collections.abc import Sequence

from ..pages import Row

World = tuple[float, float]
PAPER = {
    eighths: {"accuracy": accuracy, "ece": ece}
    for eighths, accuracy, ece in (
        *((1, 0.575, 0.217), (2, 0.620, 0.230), (3, 0.665, 0.255), (4, 0.725, 0.203)),
        *((5, 0.770, 0.207), (6, 0.835, 0.140), (7, 0.905, 0.090), (8, 0.965, 0.034)),
    )
}
"""Fig. 3 of the paper for its invariant network, by eighths of correct invariance: one run each."""


def world_name(world: World) -> str:
    """Name a world by its share of correct invariance.

    >>> world_name((0.25, 0.75)), world_name((0.0, 0.0))
    ('2/8', 'all extrinsic')
    """
    return "all extrinsic" if sum(world) == 0 else f"{8 * world[0]:g}/8"


def printed(world: World, quantity: str) -> str:
    """What the paper's figure shows for its invariant network, where it shows something.

    >>> printed((0.125, 0.875), "ece"), printed((0.0, 1.0), "ece")
    ('0.217', '')
    """
    found = PAPER.get(round(8 * world[0]), {}) if sum(world) else {}
    return f"{found[quantity]:.3f}" if found else ""


def worlds_of(rows: Sequence[Row]) -> list[World]:
    """The worlds, in the order of the rows."""
    return list(dict.fromkeys((row["correct"], row["incorrect"]) for row in rows))


def line_of(rows: Sequence[Row]) -> list[World]:
    """Give the worlds of the paper's line, by their share of correct invariance."""
    return sorted(world for world in worlds_of(rows) if sum(world))


def values(
    rows: Sequence[Row], column: str, network: str, world: World, epoch: int | None = None
) -> list[float]:
    """One column over the seeds: of a network in a world, after some epochs (by default the last).

    >>> row = {"correct": 0.0, "incorrect": 1.0, "network": "perceptron", "epoch": 9, "ece": 0.5}
    >>> values([row], "ece", "perceptron", (0.0, 1.0))
    [0.5]
    """
    at = max(row["epoch"] for row in rows) if epoch is None else epoch
    wanted = (network, at, *world)
    return [
        row[column]
        for row in rows
        if (row["network"], row["epoch"], row["correct"], row["incorrect"]) == wanted
    ]
