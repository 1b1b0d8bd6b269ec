"""The printed loss with the paper's two weights of its penalty, 0.1 and 1, on fewer molecules.

The rule, written before the run: with the first seed and 10,000 training molecules, the printed
loss with a penalty *trains a network* if its mean absolute error of U0 is at most twice that of the
likelihood after a start by squared error, on the same molecules: the rule of the page for
lambda = 0.1 on all of them. Bleed is reported beside it and decides nothing.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import torch

from ..framework import Results
from ..framework.training import device, finished
from ..framework.training import train as train_all
from .collecting import Truth, result_rows, trainings
from .packing import pack, unpack
from .settings import ALL, COMPARED, LIKELIHOOD, PENALTIES, Settings, Trial
from .training import run

FOLDER, MOLECULES = "penalty", 10_000


def trials(settings: Settings) -> list[Trial]:
    """List the trainings: both networks with each loss.

    >>> [str(trial) for trial in trials(Settings())[-2:]]
    ['GIN/all/printed, 1/seed 0', 'invariant/all/printed, 1/seed 0']
    """
    return [
        Trial(network, ALL, loss, settings.seeds[0], settings.epochs, settings.batch)
        for loss in (LIKELIHOOD, *PENALTIES)
        for network in COMPARED
    ]


def pack_penalty(settings: Settings, results: Results) -> None:
    """Write the first molecules of each split."""
    pack(replace(settings, count=settings.count or MOLECULES), results.apart(FOLDER))


def train_penalty(settings: Settings, results: Results) -> None:
    """Train both networks with each loss."""
    work = results.apart(FOLDER).work
    train_all(trials(settings), settings, work, partial(unpack, work, device()), run)


def collect_penalty(settings: Settings, results: Results) -> None:
    """Write the table `penalty`, of the columns of `results`."""
    work = results.apart(FOLDER).work
    truth = Truth(unpack(work, torch.device("cpu")))
    every = trainings(finished(trials(settings), work), work)
    results.write("penalty", [row for one in every for row in result_rows(truth, one)])
