"""The paper's galaxy networks at its size: images of 100 px, flattened maps, C_10 and D_10.

Thirteen groups (none, C_2 to C_12 and D_2 to D_12), each with the published head, which flattens
a map of 12 x 12, and with ours, which averages over the plane. Both with the paper's recipe, AdamW
with a rate of 1e-2 that falls tenfold after 30 and 45 of 100 epochs, batches of 128, no blur.

The rule, written before the run:

* *Accuracy rises with the order* (Figs. 4 and 11 to 13). For each catalog and head, the slope of
  the accuracy against log2 of the order n over all groups trained, C_n and D_n together:
  *confirmed* if its interval (t, over trainings, at 1 - 0.05/4 for two catalogs and two heads) is
  above 0, *contradicted* if below, else *open*.
* *The ECE depends on the order*: the same for the ECE, in either direction.
* A catalog counts if n = 1, 4, 8 and 12 of both families are trained with both heads.
* *The published head is not invariant* (ours): its invariance gap over the circle is above that of
  our head for every group with more than one element.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from orbical.zoo.group_cnn import GroupCNN
from orbical.zoo.layout import images_in_layout

from ..framework import Results, training
from .packing import Split, pack, unpack
from .settings import FAMILIES, PHOTOGRAPHS, Settings, Trial
from .training import Recipe, run

FOLDER, SIZE, SEED = "paper", 100, 0
ORDERS = (12, 8, 4, 1, 10, 2, 6)
"""Those that the rule asks for first."""
RATE, FALLS = 1e-2, (30, 45)
FLAT, POOLED = "flat", "pooled"


class FlatCNN(GroupCNN):
    """The published network: the maximum over the group, then the whole map to a linear layer.

    Args:
        group: C_n or D_n, as an object or as text.
        classes: Number of classes.
        size: Side of the images, which are pooled three times.
        options: Of `GroupCNN`.

    Example:
        >>> network = FlatCNN("cyclic:1", classes=6)
        >>> sum(values.numel() for values in network.parameters())  # the paper's 1,188,486, less
        1188430
        >>> network(torch.zeros(1, 3, 100, 100)).shape
        torch.Size([1, 6])

    Paper: Berman et al., section 4.7.2 and table 2. Without the 56 biases of convolutions, which
    the norm after them makes superfluous. Kernels are not restricted to rings, so that networks of
    large groups have up to 4 % more parameters.
    """

    def __init__(self, group: Any, classes: int, size: int = SIZE, **options: Any) -> None:
        super().__init__(group, classes, **options)
        linear: Any = self.classify[1]
        cells = (size // 8) ** 2
        self.classify[1] = nn.Linear(linear.in_features * cells, linear.out_features)

    def pooled(self, images: Tensor) -> Tensor:
        """Compute features `[n, fields * cells]`, invariant to no rotation."""
        maps = functional.max_pool2d(self.features(images_in_layout(images)), 2)
        return maps.unflatten(1, (len(self.group), -1)).amax(1).flatten(1)


def fall(step: int, steps: int, epoch: int) -> float:
    """Return the share of the rate: a tenth after each of `FALLS`.

    >>> [fall(0, 0, epoch) for epoch in (29, 30, 45)]
    [1.0, 0.1, 0.01]
    """
    return 10.0 ** -sum(epoch >= one for one in FALLS)


RECIPES = {FLAT: Recipe(FlatCNN, RATE, fall), POOLED: Recipe(GroupCNN, RATE, fall)}


@dataclass(frozen=True)
class PaperTrial(Trial):
    """One training at the paper's size."""

    head: str = FLAT

    @property
    def network(self) -> str:
        """The head and the group."""
        return f"{self.head}-{self.group}"


def trials(settings: Settings) -> Iterator[PaperTrial]:
    """List the trainings, one catalog after the other.

    >>> len(list(trials(Settings())))
    52
    """
    for data in reversed(PHOTOGRAPHS):
        for order in ORDERS:
            for family in FAMILIES if order > 1 else FAMILIES[:1]:
                for head in RECIPES:
                    where = (data, f"{family}:{order}", 0.0, SEED)
                    yield PaperTrial(*where, settings.paper_epochs, head=head)


def pack_paper(settings: Settings, results: Results) -> None:
    """Write the photographs of both catalogs at the paper's size."""
    pack(replace(settings, data=tuple(PHOTOGRAPHS)), results.apart(FOLDER), SIZE)


def train_paper(settings: Settings, results: Results) -> None:
    """Train both heads of all groups."""
    apart = results.apart(FOLDER)
    setup = partial(unpack, apart, training.device())
    training.train(trials(settings), settings, apart.work, setup, _run_paper)


def _run_paper(splits: dict[str, Split], trial: PaperTrial) -> training.Trained:
    """Train one network and measure it."""
    return run(splits, trial, RECIPES[trial.head])


def collect_paper(settings: Settings, results: Results) -> None:
    """Write the table `paper`, beside what it has: networks with intervals over test galaxies."""
    from orbical import calibration

    from .collecting import result_row

    apart = results.apart(FOLDER)
    splits = unpack(apart, torch.device("cpu"))
    rows = []
    done = training.finished(trials(settings), apart.work)
    for row, arrays in training.read_trained(done, apart.work):
        trial = PaperTrial(**{name: row[name] for name in PaperTrial.__dataclass_fields__})
        labels = splits[f"{trial.data}-test"][1]
        logits = torch.from_numpy(arrays["logits"])
        pair = calibration.top_label(logits=logits, labels=labels)
        rows.append({"head": trial.head} | result_row(trial, row, pair, splits))
    results.add("paper", rows, key=("data", "network", "seed"))
