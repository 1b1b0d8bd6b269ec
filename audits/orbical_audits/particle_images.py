"""Particle images of laboratories, as blocks of the pairs that ship with the package `openpiv`.

The images are under the GPL and are not committed: the audit installs the package for itself.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from orbical.errors import ModelError

__all__ = ["EXPERIMENTS", "SIDE", "Experiment", "blocks"]

SIDE = 128
"""Pixels of a block."""


class Experiment(NamedTuple):
    """Image pairs of one camera, and the rows and columns of them where particles are."""

    pairs: tuple[tuple[str, str], ...]
    rows: tuple[int, int]
    columns: tuple[int, int]


EXPERIMENTS = {
    "test1": Experiment((("exp1_001_a.bmp", "exp1_001_b.bmp"),), (0, 369), (0, 511)),
    "test2": Experiment(
        tuple((f"2image_{k}0.tif", f"2image_{k}1.tif") for k in range(6)), (64, 960), (64, 832)
    ),
    "test4": Experiment((("Camera1-0101.tif", "Camera1-0102.tif"),), (600, 1700), (64, 1000)),
    "test5": Experiment((("Pattern_1_A.tif", "Pattern_1_B.tif"),), (200, 600), (40, 440)),
}
"""The folders of `openpiv/data`. Left out: test3, whose displacements the correlation of the
package itself does not find, and test6, whose images are those of test5."""


def blocks(count: int, others: bool = False) -> dict[str, Tensor]:
    """Cut blocks [pair, block, 2, 1, side, side] in 0..1 of each experiment; none overlap.

    Args:
        count: at most so many of each pair, evenly from the grid.
        others: take the blocks that are not taken without this, where there are enough.
    """
    cut = {}
    for name, experiment in EXPERIMENTS.items():
        (top, bottom), (left, right) = experiment.rows, experiment.columns
        places = [
            (row, column)
            for row in range(top, bottom - SIDE + 1, SIDE)
            for column in range(left, right - SIDE + 1, SIDE)
        ]
        chosen = _evenly(places, count)
        if others:
            chosen = _evenly([place for place in places if place not in chosen], count)
        frames = [[_image(name, file) for file in pair] for pair in experiment.pairs]
        stacked = [
            [[one[r : r + SIDE, c : c + SIDE] for one in pair] for r, c in chosen]
            for pair in frames
        ]
        if chosen:
            cut[name] = torch.from_numpy(np.array(stacked, np.float32))[:, :, :, None] / 255
    return cut


def _evenly(places: list[Any], count: int) -> list[Any]:
    few = min(count, len(places))
    return [places[k] for k in np.linspace(0, len(places) - 1, few).astype(int)] if few else []


def _image(folder: str, file: str) -> np.ndarray:
    from PIL import Image

    package = find_spec("openpiv")
    if package is None or package.origin is None:
        raise ModelError(
            "openpiv: expected the package with its particle images, got none installed; install "
            "it with: make audit NAME=particle_flow"
        )
    return np.asarray(Image.open(Path(package.origin).parent / "data" / folder / file).convert("L"))
