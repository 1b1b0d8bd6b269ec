"""Networks trained on one catalog, tested on the galaxies of the other: spiral or not.

The classes of the catalogs are mapped onto one question before anything is trained. Galaxy Zoo 2
asks it itself. For a network trained on EFIGI, spirals are its second and third class. EFIGI's test
galaxies are spirals from Hubble type 1 to 9, and none up to 0 and at 11 (dwarf ellipticals);
irregulars, type 10, are neither, and left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from ..framework import Results
from ..framework.packs import read_pack
from .contrasts import Pair
from .packing import FILE, Split
from .settings import PHOTOGRAPHS, Trial

IRREGULAR = 10
Row = dict[str, Any]


def shift_rows(
    arrays: Mapping[Trial, Mapping[str, Tensor]], splits: Mapping[str, Split], results: Results
) -> tuple[list[Row], dict[Trial, Pair]]:
    """Measure networks on the question spiral or not, where they were trained and elsewhere.

    Returns:
        Rows with intervals, and the outputs on the other catalog for contrasts.
    """
    from .collecting import measures

    truths = spirals(splits, results)
    rows, moved = [], {}
    for trial, kept in arrays.items():
        other = PHOTOGRAPHS[trial.data]
        for tested, logits in ((trial.data, kept["logits"]), (other, kept["elsewhere"])):
            pair = judged(logits, truths[tested])
            if tested == other:
                moved[trial] = pair
            head: Row = {"data": trial.data, "tested": tested, "network": trial.network}
            head |= {"blur": trial.blur, "seed": trial.seed}
            rows.append(head | measures(*pair) | spiral_answers(logits, truths[tested]))
    return rows, moved


def spirals(splits: Mapping[str, Split], results: Results) -> dict[str, Tensor]:
    """Return by catalog which test galaxies are spirals: 1, 0, or -1 for neither."""
    types = torch.from_numpy(read_pack(results.work / FILE)["efigi-test-types"])
    return {"efigi": spirals_of_types(types), "galaxyzoo2": splits["galaxyzoo2-test"][1]}


def spirals_of_types(types: Tensor) -> Tensor:
    """Return whether galaxies are spirals by their Hubble types: 1, 0, or -1 for neither.

    >>> spirals_of_types(torch.tensor([-5.0, 0.0, 1.0, 9.0, 10.0, 11.0])).tolist()
    [0, 0, 1, 1, -1, 0]
    """
    spirals = ((types >= 1) & (types < IRREGULAR)).long()
    return torch.where(types == IRREGULAR, -1, spirals)


def judged(logits: Tensor, truth: Tensor) -> Pair:
    """Return confidence and correctness on the question, without galaxies that are neither.

    Every class but the first is one of spirals.

    >>> logits, truth = torch.tensor([[0.0, 1.0, 1.0], [3.0, 0.0, 0.0]]), torch.tensor([1, -1])
    >>> confidence, correct = judged(logits, truth)
    >>> confidence.round(decimals=3), correct
    (tensor([0.8450]), tensor([True]))
    """
    spiral, truly = spiral_probability(logits, truth)
    return torch.maximum(spiral, 1 - spiral), (spiral > 0.5) == truly


def spiral_answers(logits: Tensor, truth: Tensor) -> Row:
    """Describe answers beyond their accuracy, which a constant answer reaches where it is common.

    Returns:
        `spirals`, the share of spirals; `said`, the share that is called one; and `auc`, how often
        a spiral has a higher probability of being one than another galaxy: 1/2 by chance.

    >>> logits = torch.tensor([[0.0, 1.0], [0.0, 3.0], [0.0, 2.0], [1.0, 0.0]])
    >>> spiral_answers(logits, torch.tensor([1, 1, 0, 0]))
    {'spirals': 0.5, 'said': 0.75, 'auc': 0.75}
    """
    spiral, truly = spiral_probability(logits, truth)
    above = spiral[truly][:, None] > spiral[~truly]
    shares = {"spirals": truly, "said": spiral > 0.5, "auc": above}
    return {name: float(found.double().mean()) for name, found in shares.items()}


def spiral_probability(logits: Tensor, truth: Tensor) -> Pair:
    """Return the probability of a spiral and whether it is one, without those that are neither."""
    asked = truth >= 0
    return 1 - logits[asked].softmax(-1)[:, 0], truth[asked] == 1
