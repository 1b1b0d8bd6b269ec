"""The other catalog: networks tested on its galaxies, and the kinds of the shift to it.

The classes of the catalogs are mapped onto one question before anything is trained: spiral or not.
Galaxy Zoo 2 asks it itself. For a network trained on EFIGI, spirals are its second and third class.
EFIGI's test galaxies are spirals from Hubble type 1 to 9, and none up to 0 and at 11 (dwarf
ellipticals); irregulars, type 10, are neither, and left out.

Is the other catalog off the data, or differently labeled? A test galaxy is in the data of a catalog
if it is as near to a training galaxy as nearly all test galaxies of that catalog are. There the
shift is correct where the nearest training galaxy has the same answer to the question, and
incorrect where it has the other one; elsewhere it is extrinsic. The same for galaxies after each
quarter turn and mirror.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from orbical.actions import Images
from orbical.bounds import taxonomy

from ..framework import Results
from ..framework.packs import read_pack
from .contrasts import Pair, measures
from .packing import FILE, Split, unpack
from .settings import PHOTOGRAPHS, Settings, Trial
from .training import coarse

IRREGULAR = 10
Row = dict[str, Any]


def shift_rows(
    arrays: Mapping[Trial, Mapping[str, Tensor]], splits: Mapping[str, Split], results: Results
) -> tuple[list[Row], dict[Trial, Pair]]:
    """Measure networks on the question spiral or not, where they were trained and elsewhere.

    Returns:
        Rows with intervals, and the outputs on the other catalog for contrasts.
    """
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
            rows.append(head | measures(*pair) | _spiral_answers(logits, truths[tested]))
    return rows, moved


def spirals(splits: Mapping[str, Split], results: Results) -> dict[str, Tensor]:
    """Return by catalog which test galaxies are spirals: 1, 0, or -1 for neither."""
    types = torch.from_numpy(read_pack(results.work / FILE)["efigi-test-types"])
    return {"efigi": _spirals_of_types(types), "galaxyzoo2": splits["galaxyzoo2-test"][1]}


def _spirals_of_types(types: Tensor) -> Tensor:
    """Return whether galaxies are spirals by their Hubble types: 1, 0, or -1 for neither.

    >>> _spirals_of_types(torch.tensor([-5.0, 0.0, 1.0, 9.0, 10.0, 11.0])).tolist()
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
    spiral, truly = _spiral_probability(logits, truth)
    return torch.maximum(spiral, 1 - spiral), (spiral > 0.5) == truly


def _spiral_answers(logits: Tensor, truth: Tensor) -> Row:
    """Describe answers beyond their accuracy, which a constant answer reaches where it is common.

    Returns:
        `spirals`, the share of spirals; `said`, the share that is called one; and `auc`, how often
        a spiral has a higher probability of being one than another galaxy: 1/2 by chance.

    >>> logits = torch.tensor([[0.0, 1.0], [0.0, 3.0], [0.0, 2.0], [1.0, 0.0]])
    >>> _spiral_answers(logits, torch.tensor([1, 1, 0, 0]))
    {'spirals': 0.5, 'said': 0.75, 'auc': 0.75}
    """
    spiral, truly = _spiral_probability(logits, truth)
    above = spiral[truly][:, None] > spiral[~truly]
    shares = {"spirals": truly, "said": spiral > 0.5, "auc": above}
    return {name: float(found.double().mean()) for name, found in shares.items()}


def _spiral_probability(logits: Tensor, truth: Tensor) -> Pair:
    """Return the probability of a spiral and whether it is one, without those that are neither."""
    asked = truth >= 0
    return 1 - logits[asked].softmax(-1)[:, 0], truth[asked] == 1


COARSE, GROUP, INSIDE = 16, "dihedral:4", 0.95
"""Pixels of a side that are compared, the symmetry, and the share of a catalog's own test galaxies
that are in its data."""


class Catalog:
    """The training galaxies of a catalog, as a support and as an answer.

    Args:
        images: Coarse images `[n, 1, s, s]`.
        spiral: `[n]`, 1 for a spiral and 0 otherwise.
        own: Coarse test images of the same catalog, which set the distance.
    """

    def __init__(self, images: Tensor, spiral: Tensor, own: Tensor) -> None:
        self.images, self.spiral = images.flatten(1).double(), spiral
        self.reach = float(torch.quantile(self._nearest(own)[0], INSIDE))

    def _nearest(self, images: Any) -> tuple[Tensor, Tensor]:
        asked = torch.as_tensor(images).double().flatten(1)
        found = torch.cdist(asked, self.images).min(1)
        return found.values, found.indices

    def holds(self, images: Any) -> Any:
        """Return which images are in the data."""
        return (self._nearest(images)[0] <= self.reach).numpy()

    def answer(self, images: Any) -> Any:
        """Return whether the nearest training galaxy is a spiral."""
        return self.spiral[self._nearest(images)[1]].numpy()


def write_kinds(settings: Settings, results: Results) -> None:
    """Write the table `kinds`: the shift between catalogs by its kinds, as it is and turned."""
    splits = unpack(results, torch.device("cpu"))
    truths, rows = spirals(splits, results), []
    for trained in PHOTOGRAPHS:
        images, labels = splits[f"{trained}-train"]
        own = shapes(splits[f"{trained}-test"][0])
        catalog = Catalog(shapes(images), (labels > 0).long(), own)
        for tested, truth in truths.items():
            asked = truth >= 0
            given = shapes(splits[f"{tested}-test"][0])[asked]
            rows += kind_rows(catalog, given, truth[asked], {"data": trained, "tested": tested})
    results.write("kinds", rows)


def shapes(images: Tensor) -> Tensor:
    """Return gray images of few pixels, of unit norm: brightness is no part of the shape."""
    small = coarse(images, COARSE)
    return small / small.flatten(1).norm(dim=1)[:, None, None, None].clamp(min=1e-9)


def kind_rows(catalog: Catalog, images: Tensor, spiral: Tensor, head: Row) -> list[Row]:
    """Measure the kinds of a shift: of galaxies as they are, and moved by the other elements."""
    found = taxonomy(
        images.double().numpy(),
        spiral.numpy(),
        GROUP,
        support=catalog.holds,
        function=catalog.answer,
        action=Images(),
    ).by_element()
    names = ("correct", "incorrect", "extrinsic")
    count = {"galaxies": len(images), "reach": catalog.reach}
    return [
        head | {"moved": moved} | count | dict(zip(names, shares.tolist(), strict=True))
        for moved, shares in ((False, found[0]), (True, found[1:].mean(0)))
    ]
