"""Molecules and crystals as arrays, padded to one number of atoms: from files, ASE and graphs."""

from __future__ import annotations

import itertools
import math
import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from .._imports_and_paths import existing_file, import_extra, reading
from .._ragged import from_ragged, is_graph, ragged_fields
from ..errors import InputError, unknown_name
from .quantities import UNITS, missing_quantity, shaped_quantity

STRUCTURE_SUFFIXES = (".xyz", ".extxyz", ".sdf", ".mol", ".db", ".traj", ".cif")
"""Endings of the names of files with molecules."""

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
_OTHER_NAMES = {"z": "numbers", "atomic_numbers": "numbers", "force": "forces"}
Batch = dict[str, Tensor]
"""The fields of a batch of molecules, or their true quantities, by name."""


class NamedBatch(dict[str, Tensor]):
    """The fields of a batch of molecules, and their names, if they have any."""

    names: list[str] | None = None


def is_structure(thing: object) -> bool:
    """Check for an `ase.Atoms`, without importing ASE."""
    return all(hasattr(thing, name) for name in ("positions", "numbers", "cell", "pbc"))


def read_structures(data: object) -> tuple[NamedBatch, Any]:
    """Return molecules in any of their forms as a batch, and a truth that they bring, or None."""
    inputs, truth = _structures_and_truth(data)
    if isinstance(inputs, list | tuple) and len(inputs) > 0 and is_structure(inputs[0]):
        batch, stored = batch_structures(inputs)
    else:
        inputs, stored = structures_from_graphs(inputs) or (inputs, None)
        batch = complete_structures(inputs)
    return batch, stored if truth is None else truth


def _structures_and_truth(data: Any) -> tuple[Any, Any]:
    """Separate molecules, perhaps of a file, from a truth passed with them, or that they bring."""
    if isinstance(data, str | os.PathLike):
        return read_structure_file(Path(data).expanduser()), None
    pair = isinstance(data, tuple | list) and len(data) == 2
    if pair and not is_structure(data[1]) and not is_graph(data[1]):
        (inputs, known), truth = _structures_and_truth(data[0]), data[1]
        return inputs, known if truth is None else truth
    return ([data] if is_structure(data) else data), None


def batch_structures(structures: Sequence[Any]) -> tuple[NamedBatch, Batch | None]:
    """Collect structures, and their stored results, in one batch.

    Args:
        structures: `ase.Atoms`, each with at least one atom, of known elements.

    Returns:
        The inputs: `pos [N, n, 3]` in Å and double precision, `numbers [N, n]` (0 for padding),
        `mask [N, n]`, `cell [N, 3, 3]` in Å and `pbc [N, 3]`; and the truth: energy, forces, dipole
        and stress from the results of the structures (NaN where they are missing), or None.

    Raises:
        InputError: if there is no structure, or one of them cannot be used.

    Example:
        >>> from ase.build import molecule
        >>> inputs, truth = batch_structures([molecule("H2O"), molecule("CH4")])
        >>> inputs["numbers"].tolist(), truth
        ([[8, 1, 1, 0, 0], [6, 1, 1, 1, 1]], None)
    """
    if not len(structures):
        raise InputError("molecules", "at least one", "none")
    for place, structure in enumerate(structures):
        if not is_structure(structure):
            raise InputError("molecules", "ase.Atoms", f"{type(structure).__name__} at {place}")

    def batched(field: str, kind: type) -> Tensor:
        each = [torch.tensor(np.array(getattr(structure, field), kind)) for structure in structures]
        return pad_sequence(each, batch_first=True)

    pos, numbers = batched("positions", float), batched("numbers", np.int64)
    sizes = torch.tensor([len(structure.numbers) for structure in structures])
    mask = torch.arange(numbers.shape[1]) < sizes[:, None]
    lattice = {"cell": batched("cell", float), "pbc": batched("pbc", bool)}
    inputs = complete_structures({"pos": pos, "numbers": numbers, "mask": mask, **lattice})
    inputs.names = structure_names(structures)
    return inputs, _truth_of_structures(structures, numbers.shape[1])


def structures_from_graphs(data: object) -> tuple[Batch, Batch | None] | None:
    """Collect structures that are given as one batch without padding, or as graphs of PyG.

    Args:
        data: a dictionary of `pos [total, 3]`, `numbers [total]`, and `ptr [N + 1]` or
            `batch [total]`, with `cell`, `pbc` and true quantities if there are any; or a batch or
            a list of graphs of PyTorch Geometric with these fields (`z` for the numbers).

    Returns:
        The padded inputs and the truth, as of `batch_structures`; None for other data.

    Raises:
        InputError: if the graphs are not one after the other, or a field has another length.

    Example:
        >>> ragged = {"pos": np.zeros((3, 3)), "numbers": [8, 1, 2], "batch": [0, 0, 1]}
        >>> inputs, truth = structures_from_graphs(ragged)
        >>> inputs["numbers"].tolist(), truth
        ([[8, 1], [2, 0]], None)
    """
    fields = ragged_fields(data)
    if fields is None:
        return None
    for name, usual in _OTHER_NAMES.items():
        if name in fields:
            fields.setdefault(usual, fields.pop(name))
    if not isinstance(data, Mapping):  # graphs of PyG have fields of their own
        fields = {name: fields[name] for name in ("ptr", *FIELDS, *UNITS) if name in fields}
    for name, shape in (("cell", (3, 3)), ("pbc", (3,))):
        if name in fields:  # PyG joins the cells of graphs row by row
            field = torch.as_tensor(fields[name])
            fits = field.numel() % math.prod(shape) == 0
            fields[name] = field.reshape(-1, *shape) if fits else field
    padded = from_ragged(fields)
    truth = {name: padded.pop(name) for name in UNITS if name in padded}
    if "forces" in truth:
        truth["forces"] = truth["forces"].masked_fill(~padded["mask"][..., None], torch.nan)
    return padded, truth or None


def complete_structures(inputs: object) -> NamedBatch:
    """Check a batch of molecules given as arrays, and add its optional fields.

    `pos` and `numbers` are required; without `mask`, atoms are where numbers are positive; without
    `cell` and `pbc`, nothing is periodic.

    Args:
        inputs: the fields of the batch.

    Returns:
        All fields, as tensors, and the names of the molecules if they have any.

    Raises:
        InputError: if a field is missing, unknown, misshapen or has invalid values.
    """
    if not isinstance(inputs, Mapping) or not {"pos", "numbers"} <= {*inputs}:
        empty = isinstance(inputs, list | tuple) and not inputs
        given = "an empty list" if empty else type(inputs).__name__
        if isinstance(inputs, Mapping):
            given = f"fields {sorted(inputs)}"
        raise InputError(
            "data",
            "a list of ase.Atoms, or a dictionary with pos [molecule, atom, 3] and "
            "numbers [molecule, atom]",
            given,
            remedy="orbical.datasets.molecules reads files",
        )
    for field in sorted({*inputs} - {*FIELDS}):
        raise unknown_name("data", field, FIELDS)
    pos = torch.as_tensor(inputs["pos"])
    numbers = torch.as_tensor(inputs["numbers"]).long()
    if pos.ndim != 3 or pos.shape[-1] != 3 or numbers.shape != pos.shape[:2]:
        raise InputError(
            "data",
            "pos [molecule, atom, 3] and numbers [molecule, atom]",
            f"shapes {tuple(pos.shape)} and {tuple(numbers.shape)}",
        )
    mask = torch.as_tensor(inputs.get("mask", numbers > 0)).bool()
    cell = torch.as_tensor(inputs.get("cell", torch.zeros(len(pos), 3, 3, dtype=pos.dtype)))
    pbc = torch.as_tensor(inputs.get("pbc", torch.zeros(len(pos), 3))).bool()
    shapes = {"mask": tuple(numbers.shape), "cell": (len(pos), 3, 3), "pbc": (len(pos), 3)}
    for (name, shape), field in zip(shapes.items(), (mask, cell, pbc), strict=True):
        if field.shape != shape:
            raise InputError("data", f"{name} of shape {shape}", field)
    _refuse(~mask.any(1), "at least one atom", "none")
    known = (numbers >= 1) & (numbers <= MOST_ELEMENTS)
    _refuse(mask & ~known, f"atomic numbers from 1 to {MOST_ELEMENTS}", "an unknown element")
    _refuse(mask & ~pos.isfinite().all(-1), "finite positions", "NaN or infinity")
    _refuse(~cell.isfinite().flatten(1).all(1), "a finite cell", "NaN or infinity")
    # Left-handed cells can be used: mirrors make one of every cell.
    directions, rank = pbc.sum(1), torch.linalg.matrix_rank(cell.double() * pbc[..., None])
    for count in (1, 2, 3):
        flat = (directions == count) & (rank < count)
        _refuse(flat, f"a cell that spans the {count} periodic directions", "fewer")
    fields = NamedBatch(pos=pos, numbers=numbers * mask, mask=mask, cell=cell, pbc=pbc)
    fields.names = inputs.names if isinstance(inputs, NamedBatch) else None
    return fields


def structure_formula(numbers: Iterable[int]) -> str:
    """Return the Hill formula of a molecule: C and H first; numbers of 0 are padding.

    Example:
        >>> structure_formula([8, 1, 1, 0])
        'H2O'
    """
    counts = Counter(SYMBOLS[int(number)] for number in numbers if number > 0)
    first = [s for s in ("C", "H") if s in counts] if "C" in counts else []
    order = first + sorted(s for s in counts if s not in first)
    return "".join(s + (str(counts[s]) if counts[s] > 1 else "") for s in order)


def structure_names(data: object) -> list[str] | None:
    """Return the names of molecules, of structures their `info["name"]`; None if none has one.

    Example:
        >>> from ase.build import molecule
        >>> ethanol = molecule("CH3CH2OH")
        >>> ethanol.info["name"] = "ethanol"
        >>> structure_names([molecule("H2O"), ethanol])
        ['', 'ethanol']
    """
    inputs, _ = _structures_and_truth(data)
    if not isinstance(inputs, list | tuple) or not all(map(is_structure, inputs)):
        return inputs.names if isinstance(inputs, NamedBatch) else None
    names = [str(getattr(one, "info", {}).get("name", "")).strip() for one in inputs]
    return names if any(names) else None


def structure_display_name(name: str, numbers: Iterable[int]) -> str:
    """Return the name and formula of a molecule, or its formula alone.

    Example:
        >>> structure_display_name("water", [8, 1, 1]), structure_display_name("", [2])
        ('water, H2O', 'He')
    """
    written = structure_formula(numbers)
    return f"{name}, {written}" if name and name != written else written


def _refuse(wrong: Tensor, expected: str, got: str) -> None:
    """Name the first place `[molecule]` or `[molecule, atom]` that is wrong."""
    for place in wrong.nonzero()[:1].tolist():
        where = map("{} {}".format, ("molecule", "atom"), place)
        raise InputError("data", expected, f"{got} in {', '.join(where)}")


def _truth_of_structures(structures: Sequence[Any], most: int) -> Batch | None:
    """Collect the stored results of structures, from a file or a finished calculation."""
    known: Batch = {}
    for row, structure in enumerate(structures):
        calculator: Any = getattr(structure, "calc", None)
        for name in UNITS:
            if (getattr(calculator, "results", None) or {}).get(name) is None:
                continue
            result = calculator.get_property(name, structure, allow_calculation=False)
            if result is None:  # the atoms have moved since
                continue
            try:
                values = torch.as_tensor(np.array(result, float))[None]
            except (TypeError, ValueError) as error:
                raise InputError(
                    "molecules", f"numbers for {name}", f"{result!r} in molecule {row}"
                ) from error
            fitted = shaped_quantity(name, values, 1)
            if fitted is None or (name == "forces" and fitted.shape[1] != len(structure)):
                raise InputError(
                    "molecules",
                    f"results for {len(structure)} atoms",
                    f"{name} of shape {tuple(values.shape[1:])} in molecule {row}",
                )
            whole = known.setdefault(name, missing_quantity(name, len(structures), most))
            place = (row, slice(len(structure))) if name == "forces" else row
            whole[place] = fitted[0]
    return known or None


def read_structure_file(path: Path) -> list[Any]:
    """Read every molecule of a file as `ase.Atoms`, with its name in `info["name"]`."""
    if path.suffix.lower() not in STRUCTURE_SUFFIXES:
        raise InputError(
            "molecules", f"a file that ends in {', '.join(STRUCTURE_SUFFIXES)}", repr(str(path))
        )
    existing_file("molecules", path)
    ase_io = import_extra("ase.io", "chemistry", f"the file {str(path)!r}")
    with reading("molecules", path, "molecules"):
        readers = {
            ".sdf": _structures_from_sdf,
            ".mol": _structures_from_sdf,
            ".db": _from_database,
        }
        read = readers.get(path.suffix.lower())
        if path.suffix.lower().endswith("xyz"):
            _check_atom_counts(path)
        molecules: list[object] = list(ase_io.read(path, ":")) if read is None else read(path)
    if not molecules:
        raise InputError("molecules", "at least one molecule", f"none in {str(path)!r}")
    return molecules


def _check_atom_counts(path: Path) -> None:
    """Refuse an XYZ file that states more atoms than it has lines: ASE would try to read each."""
    with path.open(encoding="utf-8", errors="replace") as file:
        for line in file:
            if not line.strip().isdecimal():
                return  # what stands between frames is left to ASE
            stated = int(line)
            if sum(1 for _ in itertools.islice(file, stated + 1)) < stated:
                raise InputError(
                    "molecules", f"{stated:,} atoms, as {str(path)!r} says", "fewer lines"
                )


def _from_database(path: Path) -> list[Any]:
    from ase.db import connect

    molecules = []
    for row in connect(path).select():
        molecules.append(row.toatoms())
        molecules[-1].info["name"] = row.get("name", "")
    return molecules


def _structures_from_sdf(path: Path) -> list[Any]:
    """Read all molecules of an SDF file; ASE reads only the first."""
    from ase import Atoms

    chem = import_extra("rdkit.Chem", "chemistry", f"the file {str(path)!r}")
    molecules = []
    for place, molecule in enumerate(chem.SDMolSupplier(str(path), sanitize=False, removeHs=False)):
        if molecule is None:
            raise InputError("molecules", problem=f"{str(path)!r}: molecule {place} cannot be read")
        numbers = [atom.GetAtomicNum() for atom in molecule.GetAtoms()]
        positions = molecule.GetConformer().GetPositions() if numbers else []
        title = molecule.GetProp("_Name") if molecule.HasProp("_Name") else ""
        molecules.append(Atoms(numbers, positions, info={"name": title}))
    return molecules
