"""What a training changes against the paper's, with intervals over test molecules and seeds."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

import numpy as np
import torch
from torch import Tensor

from orbical.training import Evidence

from ..resampling import interval, resampled_rows, resampled_seeds
from ..student import student_nll
from .measures import Answers, Row, Truth, typical
from .settings import PAPER

MEASURES = ("r2", "nll", "typical")
"""Median R^2 of a molecule, mean NLL, and the logarithm to base 10 of the typical bleed."""


def contrast_rows(truth: Truth, everyone: Iterable[Answers]) -> list[Row]:
    """Measure each training of each network, and its difference from the paper's.

    Returns:
        Rows with `network`, `training`, `measure` and `of`, which is `level` or `change`, and the
        value, the mean over seeds, with the ends `low` and `high` of its 95 % interval.
    """
    groups: dict[tuple[str, str], list[Evidence]] = defaultdict(list)
    for one in everyone:
        groups[one.row["network"], one.row["training"]].append(one.test)
    molecules = resampled_rows(len(truth.values))
    draw = np.random.default_rng(0)
    found = {key: estimated(truth, seeds, molecules, draw) for key, seeds in groups.items()}
    rows = []
    for (network, training), estimate in found.items():
        kinds = {"level": estimate}
        if training != PAPER and (network, PAPER) in found:
            kinds["change"] = estimate - found[network, PAPER]
        for kind, values in kinds.items():
            for measure, value in zip(MEASURES, values, strict=True):
                ends = dict(zip(("value", "low", "high"), interval(value), strict=True))
                head = {"network": network, "training": training, "measure": measure, "of": kind}
                rows.append(head | ends)
    return rows


def estimated(
    truth: Truth, seeds: Sequence[Evidence], molecules: Tensor, draw: np.random.Generator
) -> np.ndarray:
    """Measure a network over its seeds, on the test molecules and on resampled ones.

    Args:
        truth: The test spectra.
        seeds: The predictions of each seed.
        molecules: Rows of the test set, `[draws, n]`.
        draw: Of the seeds.

    Returns:
        The estimates of all `MEASURES`, `[measures, 1 + draws]`: on the test set, then the draws.
    """
    each = np.stack([measured(truth, found, molecules) for found in seeds], -1)
    chosen = draw.integers(len(seeds), size=(len(molecules), len(seeds)))
    drawn = [resampled_seeds(values[1:], chosen) for values in each]
    return np.column_stack([each[:, 0].mean(-1), drawn])


def measured(truth: Truth, found: Evidence, molecules: Tensor) -> np.ndarray:
    """Measure one network on the test molecules and on draws of them, `[measures, 1 + draws]`."""
    whole = torch.cat([torch.arange(len(truth.values))[None], molecules])
    r2 = truth.explained(found.gamma)
    others = (part.numpy() for part in found[1:])
    nll = torch.from_numpy(student_nll((truth.values - found.gamma).numpy(), *others)).mean(1)
    bleed = torch.stack([typical(found.aleatoric[rows]).sum().log10() for rows in whole])
    return torch.stack([r2[whole].quantile(0.5, -1), nll[whole].mean(-1), bleed]).numpy()
