"""From result lines to tables: the choice of lambda, means and standard deviations over seeds."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from orbical.training import Selection, select

from .results import Row
from .settings import BASELINE, BATCH, GRID, LOSSES, NAMES

COLUMNS = {
    "accuracy": ("test", "accuracy"),
    "ECE": ("test", "ece"),
    "ECE after TS": ("test_ts", "ece"),
    "accuracy after VS": ("test_vs", "accuracy"),
    "ECE after VS": ("test_vs", "ece"),
}


@dataclass(frozen=True)
class Spread:
    """Mean and sample standard deviation over seeds (0 for a single seed)."""

    mean: float
    deviation: float
    count: int

    @classmethod
    def of(cls, values: Iterable[float]) -> Spread:
        """Summarise values.

        >>> Spread.of([1.0, 3.0])
        Spread(mean=2.0, deviation=1.4142135623730951, count=2)
        """
        listed = list(values)
        deviation = statistics.stdev(listed) if len(listed) > 1 else 0.0
        return cls(statistics.fmean(listed), deviation, len(listed))

    def percent(self, digits: int = 2) -> str:
        """As `12.34 ± 0.56`, in percent."""
        return f"{100 * self.mean:.{digits}f} ± {100 * self.deviation:.{digits}f}"


def trained(
    rows: Sequence[Row],
    data: str,
    *,
    loss: str | None = None,
    weight: float | None = None,
    batch: int = BATCH,
    epochs: int | None = None,
) -> list[Row]:
    """The training runs among the rows that match.

    Args:
        rows: of a results file.
        data: the data set.
        loss: or None for all.
        weight: lambda, or None for all.
        batch: batch size.
        epochs: or None for all.
    """
    return [
        row
        for row in rows
        if "test" in row
        and row["data"] == data
        and row["batch"] == batch
        and loss in (None, row["loss"])
        and weight in (None, row["weight"])
        and epochs in (None, row["epochs"])
    ]


def selections(
    rows: Sequence[Row], data: str, epochs: int | None = None
) -> dict[str, Selection[float]]:
    """Choose each loss's lambda by the paper's rule, from validation scores alone.

    Scores are means over the seeds that both the baseline and the setting have finished.

    Args:
        rows: of a results file.
        data: the data set.
        epochs: or None for all.

    Returns:
        for each loss with finished runs its selection.
    """
    baseline = trained(rows, data, loss=BASELINE, epochs=epochs)
    if not baseline:
        return {}
    accuracy = statistics.fmean(row["validation"]["accuracy"] for row in baseline)
    chosen = {}
    for loss in LOSSES:
        scores = {}
        for weight in GRID:
            runs = trained(rows, data, loss=loss, weight=weight, epochs=epochs)
            if runs:
                scores[weight] = (
                    statistics.fmean(row["validation"]["accuracy"] for row in runs),
                    statistics.fmean(row["validation"]["ece"] for row in runs),
                )
        if scores:
            chosen[loss] = select(scores, baseline_accuracy=accuracy)
    return chosen


def chosen_weights(rows: Sequence[Row], data: str, epochs: int | None = None) -> dict[str, float]:
    """The chosen lambda of each loss; 0 for the baseline.

    Args:
        rows: of a results file.
        data: the data set.
        epochs: or None for all.
    """
    found = selections(rows, data, epochs)
    return {BASELINE: 0.0} | {loss: selection.choice for loss, selection in found.items()}


def summary(runs: Sequence[Row]) -> dict[str, Spread]:
    """Accuracy and calibration before and after scaling, over seeds.

    Args:
        runs: rows of one setting.
    """
    return {
        name: Spread.of(row[part][score] for row in runs) for name, (part, score) in COLUMNS.items()
    }


def table_1(rows: Sequence[Row], data: str) -> dict[str, tuple[float, dict[str, Spread]]]:
    """For each loss its chosen lambda and its summary (the paper's table 1).

    Args:
        rows: of a results file.
        data: the data set.
    """
    chosen = chosen_weights(rows, data)
    table = {}
    for loss in NAMES:
        runs = trained(rows, data, loss=loss, weight=chosen.get(loss)) if loss in chosen else []
        if runs:
            table[loss] = (chosen[loss], summary(runs))
    return table
