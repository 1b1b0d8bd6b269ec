"""Molecules and crystals as arrays: what ASE's `Atoms` hold, padded to one number of atoms."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..errors import InputError
from .quantities import UNITS, shaped

FIELDS = ("pos", "numbers", "mask", "cell", "pbc")
_SYMBOLS = (
    "H He Li Be B C N O F Ne Na Mg Al Si P S Cl Ar K Ca Sc Ti V Cr Mn Fe Co Ni Cu Zn Ga "
    "Ge As Se Br Kr Rb Sr Y Zr Nb Mo Tc Ru Rh Pd Ag Cd In Sn Sb Te I Xe Cs Ba La Ce Pr Nd "
    "Pm Sm Eu Gd Tb Dy Ho Er Tm Yb Lu Hf Ta W Re Os Ir Pt Au Hg Tl Pb Bi Po At Rn Fr Ra "
    "Ac Th Pa U Np Pu Am Cm Bk Cf Es Fm Md No Lr Rf Db Sg Bh Hs Mt Ds Rg Cn Nh Fl Mc Lv "
    "Ts Og"
)
SYMBOLS = ["", *_SYMBOLS.split()]
"""The symbols of the elements, by atomic number."""

MOST_ELEMENTS = len(SYMBOLS) - 1


def is_structure(thing: Any) -> bool:
    """Whether this is one of ASE's `Atoms`, told without loading ASE."""
    return all(hasattr(thing, name) for name in ("positions", "numbers", "cell", "pbc"))


def batch_of(structures: Sequence[Any]) -> tuple[dict[str, Tensor], dict[str, Tensor] | None]:
    """Put structures into one batch, with what is known of them.

    Args:
        structures: ASE's `Atoms`, each with at least one atom, of known elements.

    Returns:
        the inputs: `pos [N, n, 3]` in Å and double precision, `numbers [N, n]` (0 where a molecule
        has ended), `mask [N, n]`, `cell [N, 3, 3]` in Å and `pbc [N, 3]`; and the truth: energy,
        forces, dipole and stress as the structures' own results hold them (NaN where some lack
        them), None where none has any.

    >>> from ase.build import molecule
    >>> inputs, truth = batch_of([molecule("H2O"), molecule("CH4")])
    >>> inputs["numbers"].tolist(), truth
    ([[8, 1, 1, 0, 0], [6, 1, 1, 1, 1]], None)
    """
    if not len(structures):
        raise InputError("molecules: none given, at least one expected")
    for place, one in enumerate(structures):
        _check(place, one)
    count, most = len(structures), max(len(one) for one in structures)
    inputs = {
        "pos": torch.zeros(count, most, 3, dtype=torch.float64),
        "numbers": torch.zeros(count, most, dtype=torch.int64),
        "cell": torch.zeros(count, 3, 3, dtype=torch.float64),
        "pbc": torch.zeros(count, 3, dtype=torch.bool),
    }
    for row, one in enumerate(structures):
        inputs["pos"][row, : len(one)] = torch.as_tensor(np.array(one.positions))
        inputs["numbers"][row, : len(one)] = torch.as_tensor(np.array(one.numbers))
        inputs["cell"][row] = torch.as_tensor(np.array(one.cell))
        inputs["pbc"][row] = torch.as_tensor(np.array(one.pbc))
    inputs["mask"] = inputs["numbers"] > 0
    return inputs, _truth(structures, most)


def completed(inputs: Any) -> dict[str, Any]:
    """Check a batch of molecules given as arrays, and add the fields that it may leave out.

    `pos` and `numbers` are needed; without `mask`, atoms are where numbers are above 0; without
    `cell` and `pbc`, nothing is periodic.
    """
    if not isinstance(inputs, Mapping) or not {"pos", "numbers"} <= {*inputs}:
        given = f"fields {sorted(inputs)}" if isinstance(inputs, Mapping) else type(inputs).__name__
        raise InputError(
            f"data: {given} given; a list of ase.Atoms expected, or a dictionary with pos "
            "[molecule, atom, 3] and numbers [molecule, atom]; orbical.datasets.molecules reads "
            "files"
        )
    unknown = sorted({*inputs} - {*FIELDS})
    if unknown:
        raise InputError(f"data: unknown field {unknown[0]!r} (known: {', '.join(FIELDS)})")
    pos = torch.as_tensor(inputs["pos"])
    numbers = torch.as_tensor(inputs["numbers"]).long()
    if pos.ndim != 3 or pos.shape[-1] != 3 or numbers.shape != pos.shape[:2]:
        raise InputError(
            f"data: pos of shape {tuple(pos.shape)} and numbers of shape {tuple(numbers.shape)} "
            "given, [molecule, atom, 3] and [molecule, atom] expected"
        )
    mask = torch.as_tensor(inputs.get("mask", numbers > 0)).bool()
    if mask.shape != numbers.shape:
        raise InputError(f"data: mask of shape {tuple(mask.shape)} given for {numbers.shape}")
    _check_numbers(numbers * mask, mask)
    _refuse(~torch.isfinite(pos).all(-1) & mask, "a position that is NaN or infinite")
    cell = torch.as_tensor(inputs.get("cell", torch.zeros(len(pos), 3, 3, dtype=pos.dtype)))
    pbc = torch.as_tensor(inputs.get("pbc", torch.zeros(len(pos), 3))).bool()
    return {"pos": pos, "numbers": numbers * mask, "mask": mask, "cell": cell, "pbc": pbc}


def formula(numbers: Iterable[int]) -> str:
    """Write a molecule as its formula, after Hill: C and H first; numbers of 0 are padding.

    >>> formula([8, 1, 1, 0])
    'H2O'
    """
    counts = Counter(SYMBOLS[int(number)] for number in numbers if number > 0)
    first = [s for s in ("C", "H") if s in counts] if "C" in counts else []
    order = first + sorted(s for s in counts if s not in first)
    return "".join(s + (str(counts[s]) if counts[s] > 1 else "") for s in order)


def given_names(structures: Sequence[Any]) -> list[str] | None:
    """Give the names that structures carry in `info["name"]`; None where none has one.

    >>> from ase.build import molecule
    >>> ethanol = molecule("CH3CH2OH")
    >>> ethanol.info["name"] = "ethanol"
    >>> given_names([molecule("H2O"), ethanol])
    ['', 'ethanol']
    """
    names = [str(getattr(one, "info", {}).get("name", "")).strip() for one in structures]
    return names if any(names) else None


def called(name: str, numbers: Iterable[int]) -> str:
    """Call a molecule by its name and formula, or by its formula alone.

    >>> called("ethanol", [6, 6, 8, 1, 1, 1, 1, 1, 1]), called("H2O", [8, 1, 1]), called("", [2])
    ('ethanol, C2H6O', 'H2O', 'He')
    """
    written = formula(numbers)
    return f"{name}, {written}" if name and name != written else written


def _check(place: int, one: Any) -> None:
    if not is_structure(one):
        raise InputError(f"molecules: number {place} is a {type(one).__name__}, ase.Atoms expected")
    if len(one) == 0:
        raise InputError(f"molecules: number {place} has no atoms, at least one expected")
    wrong = [int(z) for z in one.numbers if not 1 <= z <= MOST_ELEMENTS]
    if wrong:
        raise InputError(
            f"molecules: number {place} has an unknown element, atomic number {wrong[0]}; 1 to "
            f"{MOST_ELEMENTS} expected"
        )
    if not np.isfinite(one.positions).all():
        raise InputError(f"molecules: number {place} has a position that is NaN or infinite")
    along = np.array(one.cell)[np.array(one.pbc)]
    if len(along) and np.linalg.matrix_rank(along) < len(along):
        raise InputError(
            f"molecules: number {place} is periodic in {len(along)} directions, but its cell spans "
            "fewer"
        )


def _check_numbers(numbers: Tensor, mask: Tensor) -> None:
    empty = (~mask.any(1)).nonzero()
    if len(empty):
        raise InputError(
            f"data: molecule {int(empty[0])} has no atoms (numbers are 0), at least one expected"
        )
    _refuse(mask & ((numbers < 1) | (numbers > MOST_ELEMENTS)), "an unknown element")


def _refuse(wrong: Tensor, what: str) -> None:
    places = wrong.nonzero()
    if len(places):
        molecule, atom = (int(place) for place in places[0])
        raise InputError(f"data: atom {atom} of molecule {molecule} has {what}")


def _truth(structures: Sequence[Any], most: int) -> dict[str, Tensor] | None:
    """Collect the results that structures carry: those of a file, or of a calculation done."""
    shapes: dict[str, tuple[int, ...]] = {
        "energy": (),
        "forces": (most, 3),
        "dipole": (3,),
        "stress": (3, 3),
    }
    known: dict[str, Tensor] = {}
    for row, one in enumerate(structures):
        calculator: Any = getattr(one, "calc", None)
        for name in UNITS:
            if (getattr(calculator, "results", None) or {}).get(name) is None:
                continue
            result = calculator.get_property(name, one, allow_calculation=False)
            if result is None:  # of atoms that have moved since
                continue
            values = torch.as_tensor(np.array(result, float))[None]
            fitted = shaped(name, values, 1)
            if fitted is None or (name == "forces" and fitted.shape[1] != len(one)):
                raise InputError(
                    f"molecules: number {row} has {name} of shape {tuple(values.shape[1:])} in its "
                    f"results, for {len(one)} atoms"
                )
            whole = known.setdefault(
                name,
                torch.full((len(structures), *shapes[name]), torch.nan, dtype=torch.float64),
            )
            if name == "forces":
                whole[row, : len(one)] = fitted[0]
            else:
                whole[row] = fitted[0]
    return known or None
