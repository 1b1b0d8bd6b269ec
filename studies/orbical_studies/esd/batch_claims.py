"""What batch sizes decide on CIFAR-100 (tables 2 and 3), by the rules of the page."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd

from orbical.calibration import holm

from .comparing import Change, paired
from .front_claims import PAPERS, Front
from .fronts import BATCH_SEEDS, BATCHES, LIKE
from .settings import BASELINE, BATCH

SIZES = {loss: tuple(sorted({BATCH, *sizes}, reverse=True)) for loss, sizes in BATCHES.items()}
"""Batch sizes by loss, the usual one first."""

ROBUST = 0.5
"""Share of the likelihood's ECE by which batch sizes may differ."""


class BatchSizes:
    """The trainings of a front with several batch sizes.

    Args:
        front: The trainings of the data set.
    """

    def __init__(self, front: Front) -> None:
        self.front = front

    def of(self, loss: str, batch: int = BATCH) -> pd.DataFrame:
        """Return the trainings of a loss with a batch size, of the seeds that all sizes have."""
        if loss == BASELINE:
            rows = self.front.at(BASELINE)
        else:
            rows = self.front.rows[(self.front.rows["loss"] == loss)]
            rows = rows[rows["weight"] == self.front.chosen[LIKE[loss]].get(PAPERS)]
        rows = rows[(rows["batch"] == batch) & rows["seed"].isin(BATCH_SEEDS)]
        return rows.sort_values("seed")

    def means(self, loss: str) -> pd.Series:
        """Return the mean test ECE in points by batch size, the largest batches first."""
        return pd.Series({size: self._scores(loss, size).mean() for size in SIZES[loss]})

    @property
    def limit(self) -> float:
        """The mean test ECE of the likelihood alone, in points."""
        return float(100 * self.front.plain["test.ece"].mean())

    @property
    def span(self) -> float:
        """The largest difference of ESD's mean ECE between two batch sizes, in points."""
        return float(self.means("ESD").max() - self.means("ESD").min())

    @property
    def robust(self) -> str:
        """Whether ESD is robust to the batch size: `confirmed` or `contradicted`."""
        return "confirmed" if self.span <= ROBUST * self.limit else "contradicted"

    @property
    def binned(self) -> str:
        """Whether the binned ECE trains with large batches and fails with small ones."""
        means = self.means("ECE")
        if means.iloc[0] < self.limit and means.is_monotonic_increasing and means.is_unique:
            return "confirmed"
        return "contradicted" if means.iloc[-1] < means.iloc[0] else "open"

    def changes(self, loss: str) -> dict[int, tuple[Change | None, Change]]:
        """Compare batch sizes with the usual one and with the likelihood alone, in points.

        Returns:
            Batch size to both changes; the usual size has no first one. Their p values are after
            Holm's correction for all changes of the loss.
        """
        usual, plain = self._scores(loss, BATCH), self._scores(BASELINE, BATCH)
        asked = [(size, base) for size in SIZES[loss] for base in ("usual", "plain")][1:]
        bases = {"usual": usual, "plain": plain}
        found = [paired(self._scores(loss, size), bases[base]) for size, base in asked]
        adjusted = holm([change.p for change in found])
        every = {
            one: replace(change, p=p) for one, change, p in zip(asked, found, adjusted, strict=True)
        }
        return {size: (every.get((size, "usual")), every[size, "plain"]) for size in SIZES[loss]}

    def _scores(self, loss: str, batch: int) -> pd.Series:
        return 100 * self.of(loss, batch).set_index("seed")["test.ece"]
