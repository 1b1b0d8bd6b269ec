"""How near a training is to the paper's, what it decides, and what a loss gains in which regime."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pandas as pd

from .claims import Change, claims_of_table_1, paired
from .settings import BASELINE

TABLE_1 = {"mnist": (0.988, 0.0091), "cifar10": (0.929, 0.0549), "cifar100": (0.684, 0.238)}
TABLE_1 |= {"snli": (0.902, 0.042), "lingnli": (0.494, 0.359)}
"""Accuracy and ECE of the likelihood alone in the paper's Table 1; LingNLI stands for ANLI."""

ACCURACY, ECE = 0.015, 0.25
"""Difference in accuracy, and share of the paper's ECE, that count as one."""

LOSSES = ("MMCE", "SB-ECE", "ESD")


def distance(paper: tuple[float, float], row: Mapping[str, float]) -> float:
    """Return how far test scores are from the paper's; up to 1 they count as the same regime.

    >>> round(distance((0.929, 0.0549), {"test.accuracy": 0.92, "test.ece": 0.068}), 2)
    0.95
    """
    apart = abs(row["test.accuracy"] - paper[0]) / ACCURACY
    return max(apart, abs(row["test.ece"] / paper[1] - 1) / ECE)


class Table1:
    """A part of the paper's Table 1: the likelihood alone, and each loss as it was chosen.

    Args:
        trained: Loss to its trainings with the seeds that decide, the likelihood alone included.
        data: The data set.
        least: How many seeds decide.

    Attributes:
        claims: Name to what it rests on: `lower`, `best`, `scaled` and `temperature`.
    """

    def __init__(self, trained: Mapping[str, pd.DataFrame], data: str, least: int) -> None:
        self.trained = trained
        self.plain, own = trained[BASELINE], (loss for loss in LOSSES if loss in trained)
        self.claims = claims_of_table_1(own, self._scores, least)
        means = self.plain[["test.accuracy", "test.ece"]].mean()
        self.distance = distance(TABLE_1[data], means.to_dict())

    def verdict(self, name: str) -> str:
        """Return what a claim of the paper comes to: `open` outside the paper's regime."""
        return self.claims[name].outcome if self.distance <= 1 else "open"

    def change(self, loss: str, column: str = "test.ece") -> Change:
        """Compare a loss with the likelihood alone, in points."""
        return paired(self._scores((loss, column)), self._scores((BASELINE, column)))

    def _scores(self, asked: tuple[str, str]) -> pd.Series:
        loss, column = asked
        return 100 * self.trained[loss].set_index("seed")[column]


def point(
    regime: str, epochs: int, trained: Mapping[str, pd.DataFrame]
) -> Iterator[dict[str, Any]]:
    """Yield what each loss gains against the ECE of the likelihood alone, in points.

    Args:
        regime: Data and network.
        epochs: After which both are compared.
        trained: Loss to its trainings, the likelihood alone included.
    """
    plain = trained[BASELINE].set_index("seed")
    for loss in LOSSES:
        own = trained[loss].set_index("seed")
        ece, cost = (paired(100 * own[c], 100 * plain[c]) for c in ("test.ece", "test.accuracy"))
        if ece.seeds:
            shared = plain.loc[plain.index.intersection(own.index), "test.ece"]
            yield {
                **{"regime": regime, "epochs": epochs, "loss": loss, "seeds": ece.seeds},
                **{"ece": 100 * float(shared.mean()), "gain": -ece.mean, "cost": -cost.mean},
                "deviation": ece.deviation,
            }
