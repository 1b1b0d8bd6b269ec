"""The quantities that a potential predicts, and how they rotate: energy, forces, dipole, stress.

The quantities of one molecule are stored as one row of numbers, `[energy | forces | dipole |
stress]`, so that one action moves them and one consensus averages them; blocks that were not
requested are left out. Units are those of ASE. Padding atoms have NaN forces.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import ClassVar

import torch
from torch import Tensor

from ..actions import Action, Vectors, action_matrices
from ..errors import InputError, check_name
from ..groups import Elements, Group

UNITS = {"energy": "eV", "forces": "eV/Å", "dipole": "e·Å", "stress": "eV/Å³"}
"""Every quantity, in the order of a row, and its unit."""

PER_ATOM = "eV/atom"

SHAPES: dict[str, tuple[str, ...]] = {
    "energy": (),
    "forces": ("atom", "axis"),
    "dipole": ("axis",),
    "stress": ("axis", "with_axis"),
}
"""The dimensions of every quantity after the molecule; each axis has three components."""

MEASURES = {
    "energy": "energy difference",
    "forces": "root mean square force difference",
    "dipole": "dipole difference",
    "stress": "root mean square stress difference",
}
SMALL = {"energy": 1.0, "forces": 0.1, "dipole": 0.1, "stress": 1e-3}
"""The size of every quantity, in its unit, below which errors are relative to this size instead.
The zero of an energy is arbitrary, and a symmetry can make all the others zero up to rounding, as
the forces on the atoms of a perfect crystal."""

_FIXED = {"energy": 1, "dipole": 3, "stress": 9}
_VOIGT = (0, 5, 4, 5, 1, 3, 4, 3, 2)


def quantity_rounding(unit: str, higher_is_better: bool | None) -> float:
    """Return the largest difference that is rounding: of energies and forces in double precision.

    Their units have a usual size. It is 0 for other quantities.

    >>> quantity_rounding("eV/Å", False), quantity_rounding("share", True)
    (1e-09, 0.0)
    """
    return 1e-9 if higher_is_better is False and unit in (*UNITS.values(), PER_ATOM) else 0.0


def check_quantities(quantities: str | Iterable[str]) -> tuple[str, ...]:
    """Return the names of quantities in their order, or raise `InputError`.

    Example:
        >>> check_quantities("forces,energy")
        ('energy', 'forces')
    """
    if not isinstance(quantities, Iterable):
        raise InputError("quantities", f"some of {', '.join(UNITS)}", repr(quantities))
    names = quantities.split(",") if isinstance(quantities, str) else list(quantities)
    names = [str(name).strip() for name in names]
    for name in names:
        check_name("quantities", name, UNITS)
    if not names:
        raise InputError("quantities", "at least one", "none")
    return tuple(name for name in UNITS if name in names)


class Quantities(Action):
    """Act on rows `[B, D]` of the quantities of molecules, block by block.

    Energies are invariant, forces `[n, 3]` rotate and follow the order of the atoms, dipoles `[3]`
    rotate, and stresses `[3, 3]` rotate on both sides, `R S R^T`.

    Args:
        quantities: some of energy, forces, dipole, stress.

    Example:
        >>> import torch
        >>> from orbical.groups import rotations3d
        >>> action = Quantities(["energy", "dipole"])
        >>> turned = action.apply(rotations3d(8), torch.tensor([[-5.0, 1.0, 0.0, 0.0]]))
        >>> turned[:, 0, 0].tolist() == [-5.0] * 8
        True
    """

    parts: ClassVar[tuple[str, ...]] = ("space", "rows")

    def __init__(self, quantities: str | Iterable[str]) -> None:
        self.quantities = list(check_quantities(quantities))

    def split(self, rows: Tensor) -> dict[str, Tensor]:
        """Split rows `[..., D]` into energy `[...]`, forces `[..., n, 3]`, and so on."""
        widths = self.widths((rows.shape[-1] - self._fixed_width) // 3)
        blocks = zip(widths, rows.split(list(widths.values()), -1), strict=True)
        lead = rows.shape[:-1]
        return {
            name: block.reshape(*lead, *(-1 if axis == "atom" else 3 for axis in SHAPES[name]))
            for name, block in blocks
        }

    def join(self, blocks: Mapping[str, Tensor]) -> Tensor:
        """Undo `split`, in the highest precision of the blocks."""
        lead = blocks[self.quantities[0]].ndim - len(SHAPES[self.quantities[0]])
        flat = [blocks[name].unsqueeze(-1).flatten(lead) for name in self.quantities]
        return torch.cat(flat, -1)

    def missing(self, count: int, atoms: int) -> dict[str, Tensor]:
        """Return NaN in the shape of each quantity of `count` molecules of `atoms` atoms."""
        return {name: missing_quantity(name, count, atoms) for name in self.quantities}

    def distances(self, rows: Tensor, others: Tensor) -> dict[str, Tensor]:
        """Return the size `[...]` of the difference of each quantity, in its unit, in double."""
        blocks = self.split((rows - others).double())
        return {name: _distance(name, block) for name, block in blocks.items()}

    def widths(self, atoms: int) -> dict[str, int]:
        """Return the number of columns of each quantity, in their order."""
        return {name: _FIXED.get(name, 3 * atoms) for name in self.quantities}

    def atoms(self, width: int) -> int | None:
        """Return the number of atoms of rows of this width; None without forces."""
        return (width - self._fixed_width) // 3 if "forces" in self.quantities else None

    def fits(self, width: int) -> bool:
        """Check whether rows of this width can hold the quantities."""
        rest = width - self._fixed_width
        return rest > 0 and rest % 3 == 0 if "forces" in self.quantities else rest == 0

    @property
    def _fixed_width(self) -> int:
        return sum(_FIXED.get(name, 0) for name in self.quantities)

    def move(self, elements: Elements, x: Tensor) -> Tensor:
        """Move `x[K or 1, B, D]`."""
        blocks = self.split(x.expand(len(elements), *x.shape[1:]))
        if "forces" in blocks:
            blocks["forces"] = Vectors(per_point=True).move(elements, blocks["forces"])
        if "dipole" in blocks:
            blocks["dipole"] = Vectors().move(elements, blocks["dipole"])
        if "stress" in blocks and "space" in elements.parts:
            turns = action_matrices(elements.linear("space"), x)[:, None]
            blocks["stress"] = turns @ blocks["stress"] @ turns.transpose(-1, -2)
        return self.join(blocks)

    def check(self, group: Group, x: Tensor) -> None:
        """Check the width of the rows, and that permutations are of as many atoms."""
        super().check(group, x)
        if not self.fits(x.shape[-1]):
            names = ", ".join(self.quantities)
            raise InputError("data", f"rows of {names}", f"{x.shape[-1]} columns")
        if "forces" in self.quantities:
            Vectors(per_point=True).check(group, self.split(x)["forces"])


def missing_quantity(name: str, count: int, atoms: int) -> Tensor:
    """Return NaN in the shape of one quantity of `count` molecules of `atoms` atoms."""
    shape = [atoms if axis == "atom" else 3 for axis in SHAPES[name]]
    return torch.full((count, *shape), torch.nan, dtype=torch.float64)


def shaped_quantity(name: str, values: Tensor, count: int) -> Tensor | None:
    """Bring one quantity of `count` molecules into its shape; None if it does not fit.

    Energies may be `[N]` or `[N, 1]`, stresses `[N, 3, 3]` or six numbers in the order of Voigt
    (xx, yy, zz, yz, xz, xy).

    Example:
        >>> import torch
        >>> shaped_quantity("stress", torch.arange(6.0)[None], 1)[0].tolist()
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


def _distance(name: str, difference: Tensor) -> Tensor:
    """Return the size `[...]` of a difference of one quantity; its unit is in `UNITS`.

    Energy: `|dE|`. Forces: `sqrt(mean over atoms and axes of dF^2)`, without padding. Dipole:
    `||d mu||`. Stress: `sqrt(mean over the nine components of dS^2)`. All are invariant under
    rotations of both sides.
    """
    if name == "energy":
        return difference.abs()
    lengths = difference.double().square().sum(-1)
    if name == "dipole":
        return lengths.sqrt()
    return (lengths.nanmean(-1) / 3).sqrt()
