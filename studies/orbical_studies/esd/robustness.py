"""What the networks of the fronts show on corrupted images, by the rules of the page."""

from __future__ import annotations

import pandas as pd

from .settings import BASELINE

OVERALL = 0
"""The severity of a difference that is averaged over all severities."""


class Robustness:
    """The networks on corrupted images.

    Args:
        rows: The table `corruptions`.
        changes: The table `corruptions-change`.

    Attributes:
        means: ECE before and after one temperature, mean over corruptions, by loss and severity;
            severity 0 is without corruption.
    """

    def __init__(self, rows: pd.DataFrame, changes: pd.DataFrame) -> None:
        self.changes = changes
        self.means = rows.groupby(["loss", "severity"], sort=False)[
            ["accuracy", "ece", "ece_ts"]
        ].mean()
        self.losses = [loss for loss in rows["loss"].unique() if loss != BASELINE]

    def change(self, loss: str, scaled: bool = False, severity: int = OVERALL) -> pd.Series:
        """Return a loss minus the likelihood alone, with its intervals."""
        one = {"loss": loss, "scaled": scaled, "severity": severity}
        found = self.changes[(self.changes[list(one)] == list(one.values())).all(axis=1)]
        return found.iloc[0]

    @property
    def robust(self) -> str:
        """Whether every loss is better than the likelihood alone, all certain together."""
        found = [self.change(loss) for loss in self.losses]
        if any(one["low_joint"] > 0 for one in found):
            return "contradicted"
        return "confirmed" if all(one["high_joint"] < 0 for one in found) else "open"

    @property
    def ahead(self) -> str:
        """Whether ESD is better than the likelihood alone, both after one temperature."""
        found = self.change("ESD", scaled=True)
        return "contradicted" if found["low"] > 0 else "confirmed" if found["high"] < 0 else "open"

    @property
    def miscalibrated(self) -> bool:
        """Whether no network stays calibrated: twice the clean ECE at the largest severity."""
        eces = self.means[["ece", "ece_ts"]]
        clean, worst = eces.xs(0, level="severity"), eces.groupby("loss").last()
        return bool((worst > 2 * clean.loc[worst.index]).all(axis=None))
