"""Every weight of the paper's grid, trained once on all images (its Fig. 5).

The grid shows what a weight costs; the fronts choose among their own weights, not among these.

The rule, written before the run: a loss lowers accuracy (or ECE) with its weight if the rank
correlation of the weight with it, over all weights that were trained with the first seed, is
negative with p < 0.05 after Holm's correction for both quantities of the three losses; it raises it
if it is positive so. Otherwise it is open.
"""

from __future__ import annotations

from functools import partial

import pandas as pd
from scipy.stats import spearmanr

from orbical.calibration import holm

from ..framework import Results, where
from ..framework import training as framework
from . import fronts
from .claims import ALPHA
from .front_claims import Front
from .packing import unpack_all
from .quick_training import Trial, run
from .settings import FIRST, INNER, PAPERS, Settings

FOLDER = "grid"
COLUMNS = ("test.accuracy", "test.ece")


def train_grid(settings: Settings, results: Results) -> None:
    """Train the weights of the paper's grid that the fronts have not, coarse ones first."""
    for data in settings.fronts:
        rows = pd.DataFrame(framework.read_rows(results.work / fronts.FOLDER / data))
        epochs = settings.epochs or fronts.EPOCHS[data]
        trials = _other_weights(data, epochs, fronts.chosen_decay(rows, data))
        setup = partial(unpack_all, results.work, data, framework.device(), settings.images)
        framework.train(trials, settings, results.work / FOLDER / data, setup, run)


def _other_weights(data: str, epochs: int, decay: float) -> list[Trial]:
    """List the weights of the paper's grid that the fronts leave out, with the first seed.

    >>> len(_other_weights("cifar100", 16, 0.0))
    31
    """
    order = (*PAPERS[1::2], *PAPERS[::2])
    return [
        Trial(data, loss, weight, INNER[loss][0], FIRST, epochs, decay)
        for weight in order
        for loss, known in fronts.WEIGHTS.items()
        if weight not in known
    ]


def collect_grid(settings: Settings, results: Results) -> None:
    """Write the trainings of the grid, of the data sets on which it was trained."""
    folders = (results.work / FOLDER / data for data in settings.fronts)
    results.write("grid", framework.collected(*folders))


def missing(front: Front, grid: pd.DataFrame) -> list[Trial]:
    """Return the trainings of the grid that were not run."""
    epochs = int(front.rows["epochs"].iloc[0])
    planned = _other_weights(front.data, epochs, front.decay)
    return [trial for trial in planned if str(trial) not in {*grid["key"]}]


def every_weight(front: Front, grid: pd.DataFrame, loss: str) -> pd.DataFrame:
    """Return all weights of a loss that were trained with the first seed, in their order."""
    own = where(grid, data=front.data, loss=loss)
    return pd.concat([front.first(loss), own]).sort_values("weight")


def trends(front: Front, grid: pd.DataFrame) -> pd.DataFrame:
    """Test whether accuracy and ECE fall with the weight, by the rule of this module.

    Returns:
        A row for each loss and column: the rank correlation, its p-value after Holm's correction,
        the number of weights, and the outcome, "falls", "rises" or "open".
    """
    found = []
    for loss in fronts.WEIGHTS:
        rows = every_weight(front, grid, loss)
        for column in COLUMNS:
            rho, p = spearmanr(rows["weight"], rows[column])
            found.append({"loss": loss, "column": column, "rho": rho, "p": p, "n": len(rows)})
    table = pd.DataFrame(found).assign(p=holm([row["p"] for row in found]))
    direction = table["rho"].lt(0).map({True: "falls", False: "rises"})
    return table.assign(outcome=direction.where(table["p"] < ALPHA, "open"))
