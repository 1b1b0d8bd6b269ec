"""What a training changes against the paper's, with intervals over test molecules and seeds.

The tables of contrasts are judged here too, by the rules of the page, which are older than the
trainings.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from orbical.training import Evidence

from ..framework import verdict
from ..framework.statistics import effect, interval, over_seeds, resampled_rows, simultaneous
from ..student_t import student_nll
from .measures import Answers, Row, Truth, typical
from .settings import PAPER, PARTS, REMEDY

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
    molecules = torch.from_numpy(resampled_rows(len(truth.values)))
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


PAPER_R2 = 0.9
BETTER = {"r2": 1, "nll": -1, "typical": -1}
"""Signs of a better value of the measures of `contrasts`."""


def questions(contrasts: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Choose the comparisons of each question, with intervals that hold at once, and judge them.

    Returns:
        `remedy` and `parts`, changes against the paper's training, and `levels`, the median R² of
        both trainings, with `verdict`.
    """
    change, training = contrasts["of"] == "change", contrasts["training"]
    remedy = simultaneous(contrasts[change & (training == REMEDY)])
    parts = simultaneous(contrasts[change & training.isin(PARTS)])
    both = training.isin((PAPER, REMEDY)) & (contrasts["measure"] == "r2")
    levels = simultaneous(contrasts[both & ~change])
    whole = remedy[remedy["measure"] == "r2"].set_index("network")["value"]
    of_parts = [
        carried(row.value, row.low, row.high, whole[row.network]) if row.measure == "r2" else ""
        for row in parts.itertuples()  # NLL and bleed decide nothing
    ]
    return {
        "remedy": remedy.assign(verdict=remedy.apply(_effect, axis=1)),
        "parts": parts.assign(verdict=of_parts),
        "levels": levels.assign(verdict=levels.apply(_against_paper, axis=1)),
    }


def _effect(row: pd.Series) -> str:
    return effect(row["low"], row["high"], BETTER[row["measure"]])


def _against_paper(row: pd.Series) -> str:
    return verdict(row["low"] > PAPER_R2, refuted=row["high"] < PAPER_R2)


def carried(value: float, low: float, high: float, whole: float) -> str:
    """Judge whether a part of a training has the gain of the whole, from its change and interval.

    >>> carried(0.2, 0.1, 0.3, whole=0.3), carried(0.05, 0.0, 0.1, whole=0.3)
    ('carries', 'does not')
    >>> carried(0.05, -0.1, 0.2, whole=0.3)
    'open'
    """
    if low > 0 and value >= whole / 2:
        return "carries"
    return "does not" if high < whole / 2 else "open"


def finder(asked: dict[str, pd.DataFrame]) -> Callable[..., pd.Series]:
    """Return a function that finds the row of one comparison of a question."""
    tables = {
        name: rows.set_index(["network", "training", "measure"]) for name, rows in asked.items()
    }
    return lambda question, network, training, measure="r2": tables[question].loc[
        network, training, measure
    ]


def repeated(
    first: Callable[..., pd.Series], second: Callable[..., pd.Series], *networks: str
) -> bool:
    """Check whether the remedy and each part have the same verdicts about R² in two sets.

    Args:
        first: What `finder` made of one set.
        second: Of the other.
        networks: The network of either.
    """
    asked = [("remedy", REMEDY), *(("parts", part) for part in PARTS)]
    pairs = [
        [find(question, network, training)["verdict"] for question, training in asked]
        for find, network in zip((first, second), networks, strict=True)
    ]
    return pairs[0] == pairs[1]


def difference(row: Any) -> str:
    """Format a change with its interval.

    >>> difference(pd.Series({"value": 0.1234, "low": -0.02, "high": 0.3}))
    '+0.123 [-0.020, +0.300]'
    """
    return f"{row.value:+.3f} [{row.low:+.3f}, {row.high:+.3f}]"
