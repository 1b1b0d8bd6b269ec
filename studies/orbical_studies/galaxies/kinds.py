"""Is the other catalog off the data, or differently labeled? The taxonomy of a shift.

A test galaxy is in the data of a catalog if it is as near to a training galaxy as nearly all test
galaxies of that catalog are. There the shift is correct where the nearest training galaxy has the
same answer to "spiral or not?", and incorrect where it has the other one; elsewhere it is
extrinsic. The same for galaxies after each quarter turn and mirror.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from orbical.actions import Images
from orbical.bounds import taxonomy

from ..framework import Results
from .packing import unpack
from .settings import PHOTOGRAPHS, Settings
from .shift import spirals
from .training import coarse

COARSE, GROUP, INSIDE = 16, "dihedral:4", 0.95
"""Pixels of a side that are compared, the symmetry, and the share of a catalog's own test galaxies
that are in its data."""

Row = dict[str, Any]


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
