"""What the fronts of a data set, batch sizes and corrupted images decide, by the page's rules."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import combinations
from operator import attrgetter

import pandas as pd

from orbical.calibration import holm

from ..framework import verdict, where
from . import fronts
from .claims import ALPHA, SENSITIVE, Change, Table1, distance_of, paired
from .fronts import ACCURACY, BATCH_SEEDS, BATCHES, COSTS, LIKE
from .quick_training import Trial
from .settings import BASELINE, BATCH, FIRST, FRESH, INNER

PAPERS = COSTS[1]
"""The cost in accuracy that the paper allows."""

_SETTING = ["loss", "weight", "inner", "seed", "batch"]
"""What tells the trainings of one data set and decay apart."""


class Front(Table1):
    """The trainings of one data set with the decay that the likelihood alone chose.

    What the paper says of its Table 1 is decided at the cost that the paper allows.

    Args:
        rows: The table `fronts`.
        data: The data set.

    Attributes:
        rows: One row a training.
        chosen: Loss, then cost, to lambda.
        plain: The likelihood alone, all seeds.
        distance: How far it is from the paper's accuracy and ECE.
    """

    def __init__(self, rows: pd.DataFrame, data: str) -> None:
        self.decay = fronts.chosen_decay(rows, data)
        self.data = data
        self.rows = where(rows, data=data, decay=self.decay)
        self.chosen = fronts.choices(self.rows, data)
        super().__init__({n: self.at(n) for n in (BASELINE, *INNER)}, data, len(FRESH))
        self.plain = where(self.rows, loss=BASELINE)
        self.distance = distance_of(self.plain, data)

    def at(self, loss: str, cost: float = PAPERS) -> pd.DataFrame:
        """Return the deciding trainings of a loss at the weight chosen at a cost."""
        weight, inner = 0.0, 0.0
        if loss != BASELINE:
            weight, inner = self.chosen[loss].get(cost, math.nan), INNER[loss][0]
        rows = where(self.rows, loss=loss, batch=BATCH, weight=weight, inner=inner)
        return rows[rows["seed"].isin(FRESH)].sort_values("seed")

    def first(self, loss: str) -> pd.DataFrame:
        """Return every weight of a loss, trained once."""
        usual = INNER.get(loss, (0.0,))[0]
        rows = where(self.rows, loss=loss, batch=BATCH, inner=usual, seed=FIRST)
        return rows[rows["weight"] > 0]

    @property
    def planned(self) -> list[Trial]:
        """Every training that the rules ask for."""
        each = (self.data, int(self.rows["epochs"].iloc[0]), self.decay)
        later = fronts.later_trials(self.rows, *each)
        return [*dict.fromkeys([*fronts.every_weight(*each), *later])]

    @property
    def missing(self) -> list[Trial]:
        """The planned trainings that were not run."""
        done = {*self.rows[_SETTING].itertuples(index=False, name=None)}
        return [trial for trial in self.planned if attrgetter(*_SETTING)(trial) not in done]

    @property
    def accurate(self) -> bool:
        """Whether the likelihood alone has the paper's accuracy, as a mean over its seeds."""
        return bool(self.plain["test.accuracy"].mean() >= ACCURACY[self.data])

    def verdict(self, name: str) -> str:
        """Return what a claim of the paper comes to: nothing outside the paper's regime."""
        return self.about_paper(self.claims[name].outcome)

    def about_paper(self, outcome: str) -> str:
        """Return what an outcome says about the paper: `open` without its accuracy and ECE."""
        return outcome if self.accurate and self.distance <= 1 else "open"

    @property
    def pairs(self) -> list[tuple[float, str, str, Change, bool]]:
        """Compare all losses at all costs: cost, both losses, change, and whether it is certain.

        Certain is p < 0.05 after Holm's correction for all of them; pairs of which a loss has no
        weight at that cost, or not every seed, are left out.
        """
        found = [
            (cost, *both, self.pair(cost, *both))
            for cost in COSTS
            for both in combinations(INNER, 2)
            if all(len(self.at(n, cost)) == len(FRESH) for n in both)
        ]
        certain = holm([change.p for *_, change in found])
        return [(*each, p < ALPHA) for each, p in zip(found, certain, strict=True)]

    def pair(self, cost: float, one: str, other: str) -> Change:
        """Return the first loss minus the second at a cost, in points."""
        each = (self.at(name, cost).set_index("seed")["test.ece"] for name in (one, other))
        return paired(*(100 * scores for scores in each))

    @property
    def spans(self) -> dict[str, tuple[pd.Series, float]]:
        """Return, by loss, the test ECE of each inner parameter, and its span.

        The span is in standard deviations of the loss over its deciding seeds; losses of which a
        value was not trained are left out.
        """
        found = {}
        for loss, values in INNER.items():
            weight = self.chosen[loss].get(PAPERS, math.nan)
            rows = where(self.rows, loss=loss, seed=FIRST, weight=weight)
            each = 100 * rows.set_index("inner")["test.ece"].sort_index()
            if len(values) > 1 and {*values} == {*each.index}:
                deviation = 100 * self.at(loss)["test.ece"].std()
                found[loss] = (each, float((each.max() - each.min()) / deviation))
        return found

    @property
    def sensitive(self) -> dict[str, bool]:
        """Whether each loss is sensitive to its inner parameter."""
        return {loss: spanned > SENSITIVE for loss, (_, spanned) in self.spans.items()}


def every_front(rows: pd.DataFrame) -> dict[str, Front]:
    """Return the fronts of every data set."""
    return {data: Front(rows, data) for data in ACCURACY}


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
        weight = 0.0
        if loss != BASELINE:
            weight = self.front.chosen[LIKE[loss]].get(PAPERS, math.nan)
        rows = where(self.front.rows, loss=loss, weight=weight, batch=batch)
        return rows[rows["seed"].isin(BATCH_SEEDS)].sort_values("seed")

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
        rises = means.is_monotonic_increasing and means.is_unique
        return verdict(rises and means.iloc[0] < self.limit, means.iloc[-1] < means.iloc[0])

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
        return where(self.changes, loss=loss, scaled=scaled, severity=severity).iloc[0]

    @property
    def robust(self) -> str:
        """Whether every loss is better than the likelihood alone, all certain together."""
        found = [self.change(loss) for loss in self.losses]
        worse = any(one["low_joint"] > 0 for one in found)
        return verdict(all(one["high_joint"] < 0 for one in found), refuted=worse)

    @property
    def ahead(self) -> str:
        """Whether ESD is better than the likelihood alone, both after one temperature."""
        found = self.change("ESD", scaled=True)
        return verdict(found["high"] < 0, refuted=found["low"] > 0)

    @property
    def miscalibrated(self) -> bool:
        """Whether no network stays calibrated: twice the clean ECE at the largest severity."""
        eces = self.means[["ece", "ece_ts"]]
        clean, worst = eces.xs(0, level="severity"), eces.groupby("loss").last()
        return bool((worst > 2 * clean.loc[worst.index]).all(axis=None))
