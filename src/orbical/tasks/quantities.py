"""What a potential says of a molecule, and how it turns: energy, forces, dipole, stress.

The quantities of one molecule travel as one row of numbers, `[energy | forces | dipole | stress]`,
so that one action moves them and one consensus holds them all; the blocks that were not asked for
are left out. Units are those of ASE. Atoms that only pad a molecule have NaN forces.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import ClassVar

import torch
from torch import Tensor

from ..actions import Action, Vectors
from ..actions.base import matrices
from ..errors import InputError, unknown_name
from ..groups import Elements, Group

UNITS = {"energy": "eV", "forces": "eV/Å", "dipole": "e·Å", "stress": "eV/Å³"}
"""Every quantity, in the order in which they are written, and its unit."""

MEASURES = {
    "energy": "energy difference",
    "forces": "root mean square force difference",
    "dipole": "dipole difference",
    "stress": "root mean square stress difference",
}
_FIXED = {"energy": 1, "dipole": 3, "stress": 9}
_VOIGT = (0, 5, 4, 5, 1, 3, 4, 3, 2)


def chosen(quantities: str | Iterable[str]) -> tuple[str, ...]:
    """Check names of quantities, given as text or one by one, and put them in their order.

    >>> chosen("forces,energy")
    ('energy', 'forces')
    """
    if not isinstance(quantities, Iterable):
        raise InputError(f"quantities: {quantities!r} given, some of {', '.join(UNITS)} expected")
    names = quantities.split(",") if isinstance(quantities, str) else list(quantities)
    names = [str(name).strip() for name in names]
    for name in names:
        if name not in UNITS:
            raise unknown_name("quantities", name, UNITS)
    if not names:
        raise InputError("quantities: none given, at least one expected")
    return tuple(name for name in UNITS if name in names)


class Quantities(Action):
    """Rows `[B, D]` of the quantities of molecules: each block turns in its own way.

    Energies stay, forces `[n, 3]` turn and are reordered with the atoms, dipoles `[3]` turn, and
    stresses `[3, 3]` turn on both sides, `R S R^T`.

    >>> import torch
    >>> from orbical.groups import rotations3d
    >>> action = Quantities(["energy", "dipole"])
    >>> turned = action.apply(rotations3d(8), torch.tensor([[-5.0, 1.0, 0.0, 0.0]]))
    >>> turned[:, 0, 0].tolist() == [-5.0] * 8
    True
    """

    parts: ClassVar[tuple[str, ...]] = ("space", "rows")

    def __init__(self, quantities: Iterable[str]) -> None:
        self.quantities = list(chosen(quantities))

    def split(self, rows: Tensor) -> dict[str, Tensor]:
        """Take rows `[..., D]` apart: energy `[...]`, forces `[..., n, 3]`, and so on."""
        found, start, lead = {}, 0, rows.shape[:-1]
        for name, size in self.widths((rows.shape[-1] - self._fixed) // 3).items():
            block = rows[..., start : start + size]
            start += size
            if name == "energy":
                found[name] = block[..., 0]
            elif name == "dipole":
                found[name] = block
            else:
                found[name] = block.reshape(*lead, -1, 3)
        return found

    def join(self, blocks: Mapping[str, Tensor]) -> Tensor:
        """Undo `split`, in the finest precision of the blocks."""
        lead = blocks[self.quantities[0]].ndim - _DIMS[self.quantities[0]]
        flat = [
            blocks[name].flatten(lead) if _DIMS[name] else blocks[name][..., None]
            for name in self.quantities
        ]
        return torch.cat(flat, -1)  # torch gives the finest precision of what it joins

    def widths(self, atoms: int) -> dict[str, int]:
        """Tell how many numbers of a row belong to each quantity, in their order."""
        return {name: _FIXED.get(name, 3 * atoms) for name in self.quantities}

    def atoms(self, width: int) -> int | None:
        """Tell how many atoms rows of this width hold; None where forces are not among them."""
        return (width - self._fixed) // 3 if "forces" in self.quantities else None

    def fits(self, width: int) -> bool:
        """Whether rows of this width can hold the quantities."""
        rest = width - self._fixed
        return rest > 0 and rest % 3 == 0 if "forces" in self.quantities else rest == 0

    @property
    def _fixed(self) -> int:
        return sum(_FIXED.get(name, 0) for name in self.quantities)

    def move(self, elements: Elements, x: Tensor) -> Tensor:
        """Move `x[K or 1, B, D]`."""
        blocks = self.split(x.expand(len(elements), *x.shape[1:]))
        if "forces" in blocks:
            blocks["forces"] = Vectors(per_point=True).move(elements, blocks["forces"])
        if "dipole" in blocks:
            blocks["dipole"] = Vectors().move(elements, blocks["dipole"])
        if "stress" in blocks and "space" in elements.parts:
            turns = matrices(elements.linear("space"), x)[:, None]
            blocks["stress"] = turns @ blocks["stress"] @ turns.transpose(-1, -2)
        return self.join(blocks)

    def check(self, group: Group, x: Tensor) -> None:
        """Check the width of the rows, and that permutations order as many atoms."""
        super().check(group, x)
        if not self.fits(x.shape[-1]):
            raise InputError(
                f"data: rows of {x.shape[-1]} numbers given for {', '.join(self.quantities)}"
            )
        if "forces" in self.quantities:
            Vectors(per_point=True).check(group, self.split(x)["forces"])


_DIMS = {"energy": 0, "forces": 2, "dipole": 1, "stress": 2}


def shaped(name: str, values: Tensor, count: int) -> Tensor | None:
    """Bring one quantity of `count` molecules into its shape; None where it does not fit.

    Energies may be `[N]` or `[N, 1]`, stresses `[N, 3, 3]` or six numbers in the order of Voigt
    (xx, yy, zz, yz, xz, xy).

    >>> import torch
    >>> shaped("stress", torch.arange(6.0)[None], 1)[0].tolist()
    [[0.0, 5.0, 4.0], [5.0, 1.0, 3.0], [4.0, 3.0, 2.0]]
    """
    if values.ndim == 0 or len(values) != count:
        return None
    if name == "energy":
        return values.reshape(count) if values.numel() == count else None
    if name == "forces":
        return values if values.ndim == 3 and values.shape[-1] == 3 else None
    if name == "dipole":
        return values if values.shape == (count, 3) else None
    if values.shape == (count, 6):
        values = values[:, list(_VOIGT)].reshape(count, 3, 3)
    return values if values.shape == (count, 3, 3) else None


def distance(name: str, difference: Tensor) -> Tensor:
    """Give the size `[...]` of a difference of one quantity; its unit is in `UNITS`.

    Energy: `|dE|`. Forces: `sqrt(mean over atoms and axes of dF^2)`, over the atoms that are there.
    Dipole: `||d mu||`. Stress: `sqrt(mean over the nine components of dS^2)`. None of them changes
    when both sides are turned.
    """
    if name == "energy":
        return difference.abs()
    lengths = difference.double().square().sum(-1)
    if name == "dipole":
        return lengths.sqrt()
    return (lengths.nanmean(-1) / 3).sqrt()
