"""Dipole vectors of molecules by quantum chemistry: labels that turn, and have no noise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from .quantum_labels import Calculate, labelled, require_tblite, single_points

DEBYE = 2.541746473
"""One atomic unit of dipole, e a0, in debye."""


class Dipoles(NamedTuple):
    """Molecules with their dipole vectors.

    Attributes:
        inputs: the molecules given, without those left out.
        vectors: `[m, 3]`, double precision, in debye; they turn with the positions.
        rows: `[m]`, the places of these molecules among those given.
        failed: why molecules were left out, by their place among those given.
    """

    inputs: dict[str, Tensor]
    vectors: Tensor
    rows: Tensor
    failed: dict[int, str]


def dipoles(
    inputs: Mapping[str, Any],
    names: Sequence[str] | None = None,
    cache: str | Path | None = None,
    progress: bool = True,
) -> Dipoles:
    """Calculate the dipole vectors of neutral molecules with GFN2-xTB, by tblite.

    A function of the geometry alone, calculated from scratch in one thread: two calls agree to the
    last bit, and the true aleatoric uncertainty is zero. One debye is 0.2082 e·Å, the unit of the
    task `atoms`. The geometry is taken as it is, without relaxing it.

    What is done is kept in the cache by the molecule's elements and positions, every 20 seconds and
    when stopped; a later call calculates what is new, and needs no tblite where nothing is. Needs
    the extra `chemistry`.

    Args:
        inputs: `pos [n, most, 3]` in Å and `numbers [n, most]` (0 for padding), and maybe `mask`,
            as `qm9` and `molecules` give them.
        names: of the molecules, for what is said of those left out; None for their places.
        cache: the folder for what is done; None for `ORBICAL_CACHE` or the system's own.
        progress: show a progress bar on the error stream.

    Returns:
        the molecules and their vectors. One whose calculation does not converge is left out, and
        named in a warning. `(found.inputs, found.vectors)` can go to `orbical.scan`.

    Example:
        >>> import tempfile
        >>> water = {"pos": torch.tensor([[[0, 0, 0], [0, 0.76, 0.59], [0, -0.76, 0.59]]]),
        ...          "numbers": torch.tensor([[8, 1, 1]])}
        >>> with tempfile.TemporaryDirectory() as there:
        ...     found = dipoles(water, cache=there, progress=False)
        >>> f"{float(found.vectors.norm()):.1f} D", found.failed
        ('2.3 D', {})

    Paper: Bannwarth et al. 2019 for the method.
    """
    found = labelled("dipoles", dipole_function, inputs, names, cache, progress)
    vectors = torch.from_numpy(np.array(found.labels).reshape(-1, 3))
    return Dipoles(found.inputs, vectors, found.rows, found.failed)


def dipole_function() -> Calculate:
    """What calculates the dipole `[3]` in debye of one molecule, elements and positions in Å."""
    require_tblite("dipoles")

    def calculate(numbers: NDArray, positions: NDArray) -> NDArray[np.float64]:
        found = single_points(numbers, positions)(positions)
        return DEBYE * np.array(found.get("dipole"), np.float64)

    return calculate
