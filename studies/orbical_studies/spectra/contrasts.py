"""What a training changes against the paper's, with intervals over test molecules and seeds."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

import numpy as np
import torch
from torch import Tensor

from orbical.training import Evidence

from ..resampling import interval, over_seeds, resampled_rows
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
    found = {
        key: over_seeds(np.stack([measured(truth, one, molecules) for one in seeds], -1), draw)
        for key, seeds in groups.items()
    }
    rows = []
    for (network, training), estimate in found.items():
        kinds = {"level": estimate}
        if training != PAPER and (network, PAPER) in found:
            kinds["change"] = estimate - found[network, PAPER]
        for kind, values in kinds.items():
            for measure, value in zip(MEASURES, values, strict=True):
                head = {"network": network, "training": training, "measure": measure, "of": kind}
                rows.append(head | interval(value)._asdict())
    return rows


def measured(truth: Truth, found: Evidence, molecules: Tensor) -> np.ndarray:
    """Measure one network on the test molecules and on draws of them, `[measures, 1 + draws]`."""
    whole = torch.cat([torch.arange(len(truth.values))[None], molecules])
    r2 = truth.explained(found.gamma)
    others = (part.numpy() for part in found[1:])
    nll = torch.from_numpy(student_nll((truth.values - found.gamma).numpy(), *others)).mean(1)
    bleed = torch.stack([typical(found.aleatoric[rows]).sum().log10() for rows in whole])
    return torch.stack([r2[whole].quantile(0.5, -1), nll[whole].mean(-1), bleed]).numpy()
