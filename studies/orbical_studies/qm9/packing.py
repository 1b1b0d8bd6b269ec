"""QM9 in one small file for a machine that has no other, and the scales in which it is learned."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from ..data import qm9
from ..data.qm9_molecules import padded_atoms
from ..framework import Results
from ..framework.packs import read_pack, write_pack
from ..networks.molecules import bond_hashes
from .settings import PROPERTIES, Settings

FILE = "qm9.npz"
SPLITS = ("train", "validation", "test")
ROBUST = ("rotational_a", "rotational_b", "rotational_c")
"""Properties with tails so heavy that a few small molecules make up their deviation."""

LINEAR_GHZ = 1e4
"""A rotational constant A above this, or 0 which stands for infinity, is that of a line of atoms;
the largest of the others is water's, 800."""


class Pack(NamedTuple):
    """Molecules on a device.

    Attributes:
        pos: `[n, a, 3]`.
        numbers: `[n, a]`, 0 for padding.
        targets: `[n, 11]`, double precision, in the units of the data set.
        split: `[n]`, the place in `SPLITS`.
        linear: `[n]`, whether the atoms lie on a line.
        bond_class: `[n]`, equal where a network on bonds cannot tell two molecules apart.
    """

    pos: Tensor
    numbers: Tensor
    targets: Tensor
    split: Tensor
    linear: Tensor
    bond_class: Tensor

    def rows(self, split: str, count: int | None = None) -> Tensor:
        """Return the molecules of a split that do not lie on a line, at most `count`."""
        chosen = (self.split == SPLITS.index(split)) & ~self.linear
        return chosen.nonzero()[:count, 0]


class Scale(NamedTuple):
    """Where properties lie and how wide: `center [11]` and `width [11]`, double precision."""

    center: Tensor
    width: Tensor


def pack(settings: Settings, results: Results) -> None:
    """Write geometry, targets and split of the molecules."""
    columns: dict[str, list[np.ndarray]] = {}
    for place, split in enumerate(SPLITS):
        found = qm9(split, PROPERTIES, count=settings.count)
        mask = found.inputs["mask"]
        a = found.properties["rotational_a"]
        parts = {
            "sizes": mask.sum(1).to(torch.uint8),
            "numbers": found.inputs["numbers"][mask].to(torch.int8),
            "positions": found.inputs["pos"][mask],
            "targets": torch.stack([found.properties[name] for name in PROPERTIES], 1),
            "split": torch.full((len(mask),), place, dtype=torch.uint8),
            "linear": (a == 0) | (a > LINEAR_GHZ),
            "bond_class": torch.from_numpy(bond_hashes(found.inputs)),
        }
        for name, values in parts.items():
            columns.setdefault(name, []).append(values.numpy())
    arrays = {name: np.concatenate(parts) for name, parts in columns.items()}
    arrays["bond_class"] = np.unique(arrays["bond_class"], return_inverse=True)[1].astype(np.int32)
    write_pack(results.work / FILE, arrays)


def unpack(work: Path, device: torch.device) -> Pack:
    """Read the packed molecules onto a device."""
    arrays = read_pack(work / FILE)
    pos, numbers, _ = padded_atoms(arrays)
    kept = (pos, numbers, *(arrays[n] for n in ("targets", "split", "linear", "bond_class")))
    return Pack(*(torch.from_numpy(values).to(device) for values in kept))


def plain_scale(targets: Tensor) -> Scale:
    """Compute mean and deviation of training targets `[n, 11]`."""
    return Scale(targets.mean(0), targets.std(0, correction=0))


def training_scale(targets: Tensor) -> Scale:
    """Compute the scale of training: mean and deviation, for `ROBUST` ones by quartiles.

    Double precision: the energies u0 and u lie a hundred thousand times further from 0 than they
    are to be known. Of a rotational constant the center is the median and the width that of the
    middle half, as a Gaussian would have it, `(q_3 - q_1) / 1.349`.
    """
    plain = plain_scale(targets)
    shares = torch.tensor([0.25, 0.5, 0.75], dtype=targets.dtype, device=targets.device)
    quarter, half, three = torch.quantile(targets, shares, dim=0)
    robust = torch.tensor([name in ROBUST for name in PROPERTIES], device=targets.device)
    width = torch.where(robust, (three - quarter) / 1.349, plain.width)
    return Scale(torch.where(robust, half, plain.center), width)
