"""The Swiss roll with the paper's networks, 512 wide, where the main run has 128 and 181.

The rule, written before the run: *the ECE falls with the correct share* (Fig. 3) is confirmed at
this width if it is confirmed in the main run's sense: the mean ECE over seeds falls from the first
share to the last, and no step rises by more than a standard deviation over seeds. The same for the
accuracy, which must rise. No network may exceed its ceiling or leave its interval.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial

from ..framework import Results
from ..framework import training as framework
from .training import WORLDS, Settings, measurements

FOLDER, SEEDS = "width", 3


@dataclass(frozen=True)
class Trial:
    """Both networks of one seed in one world; its text is its name."""

    share: float
    trained: int

    def __str__(self) -> str:
        return f"correct {self.share:g}/seed {self.trained}"


def trials(settings: Settings) -> Iterator[Trial]:
    """List all trainings.

    >>> len(list(trials(Settings())))
    27
    """
    for seed in range(min(SEEDS, settings.seeds)):
        yield from (Trial(correct, seed) for correct, incorrect in WORLDS if correct + incorrect)


def train_width(settings: Settings, results: Results) -> None:
    """Train and measure both networks of every world and seed."""
    width = settings.paper_width
    last = (max(settings.epochs),)
    wide = replace(settings, width=width, plain_width=width, epochs=last)
    framework.train(trials(wide), wide, results.work / FOLDER, partial(replace, wide), run)


def run(settings: Settings, trial: Trial) -> framework.Trained:
    """Train both networks of one seed in one world."""
    world = (trial.share, 1 - trial.share)
    return {"rows": list(measurements(settings, [world], [trial.trained]))}, {}


def collect_width(settings: Settings, results: Results) -> None:
    """Write the table `width`, of the columns of `results`."""
    lines = framework.read_rows(results.work / FOLDER)
    results.write("width", [row for line in lines for row in line["rows"]])
