"""Molecules and crystals from files that ASE or RDKit can read."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

from .._imports import existing_file, import_extra, reading
from ..errors import InputError

STRUCTURE_SUFFIXES = (".xyz", ".extxyz", ".sdf", ".mol", ".db", ".traj", ".cif")
"""Endings of the names of files with molecules."""


def read_molecule_file(path: Path) -> list[Any]:
    """Read every molecule of a file as `ase.Atoms`, with its name in `info["name"]`."""
    if path.suffix.lower() not in STRUCTURE_SUFFIXES:
        raise InputError(
            "molecules", f"a file that ends in {', '.join(STRUCTURE_SUFFIXES)}", repr(str(path))
        )
    existing_file("molecules", path)
    ase_io = import_extra("ase.io", "chemistry", f"the file {str(path)!r}")
    with reading("molecules", path, "molecules"):
        readers = {".sdf": _from_sdf, ".mol": _from_sdf, ".db": _from_database}
        read = readers.get(path.suffix.lower())
        if path.suffix.lower().endswith("xyz"):
            _check_counts(path)
        found: list[object] = list(ase_io.read(path, ":")) if read is None else read(path)
    if not found:
        raise InputError("molecules", "at least one molecule", f"none in {str(path)!r}")
    return found


def _check_counts(path: Path) -> None:
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

    found = []
    for row in connect(path).select():
        found.append(row.toatoms())
        found[-1].info["name"] = row.get("name", "")
    return found


def _from_sdf(path: Path) -> list[Any]:
    """Read all molecules of an SDF file; ASE reads only the first."""
    from ase import Atoms

    chem = import_extra("rdkit.Chem", "chemistry", f"the file {str(path)!r}")
    found = []
    for place, molecule in enumerate(chem.SDMolSupplier(str(path), sanitize=False, removeHs=False)):
        if molecule is None:
            raise InputError("molecules", problem=f"{str(path)!r}: molecule {place} cannot be read")
        numbers = [atom.GetAtomicNum() for atom in molecule.GetAtoms()]
        positions = molecule.GetConformer().GetPositions() if numbers else []
        title = molecule.GetProp("_Name") if molecule.HasProp("_Name") else ""
        found.append(Atoms(numbers, positions, info={"name": title}))
    return found
