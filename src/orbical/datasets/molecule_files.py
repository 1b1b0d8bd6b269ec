"""Molecules and crystals from files: what ASE and RDKit read, as arrays that a scan can turn."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from torch import Tensor

from orbical.errors import InputError, MissingExtra
from orbical.tasks.structures import batch_of, is_structure

SUFFIXES = (".xyz", ".extxyz", ".sdf", ".mol", ".db", ".traj", ".cif")
"""How names of files end that hold molecules."""


def molecules(
    source: str | Path | Iterable[Any],
) -> tuple[dict[str, Tensor], dict[str, Tensor] | None]:
    """Read molecules, and what a file says of their energies, forces, dipoles and stresses.

    Args:
        source: a list of `ase.Atoms`; or a file: `.xyz`, `.extxyz`, `.traj`, `.cif` and ASE
            databases `.db` (read by ASE), `.sdf` and `.mol` (all molecules in it, by RDKit).

    Returns:
        the inputs `pos [N, n, 3]` in Å, `numbers [N, n]`, `mask [N, n]`, `cell [N, 3, 3]` and
        `pbc [N, 3]`, padded to the largest molecule; and the truth, a dictionary of the quantities
        that are known (NaN where some molecules lack them), or None. The pair can go to
        `orbical.scan` with the task `atoms` as it is.

    Example:
        >>> from ase.build import molecule
        >>> inputs, truth = molecules([molecule("H2O"), molecule("C6H6")])
        >>> inputs["mask"].sum(1).tolist()
        [3, 12]
    """
    if isinstance(source, str | Path):
        return batch_of(read_structures(Path(source)))
    return batch_of([source] if is_structure(source) else list(source))


def read_structures(path: Path) -> list[Any]:
    """Read every molecule of a file as `ase.Atoms`; its name there is in `info["name"]`."""
    if path.suffix.lower() not in SUFFIXES:
        raise InputError(
            f"molecules: {str(path)!r} given, a file that ends in {', '.join(SUFFIXES)} expected"
        )
    if not path.is_file():
        raise InputError(f"molecules: there is no file {str(path)!r}")
    try:
        import ase.io
    except ImportError:
        raise MissingExtra("ase", "chemistry", f"the file {str(path)!r}") from None
    try:
        if path.suffix.lower() in (".sdf", ".mol"):
            found = _from_sdf(path)
        elif path.suffix.lower() == ".db":
            found = _from_database(path)
        else:
            found = list(ase.io.read(path, ":"))
    except (InputError, MissingExtra):
        raise
    except Exception as error:
        raise InputError(
            f"molecules: {str(path)!r} cannot be read: {type(error).__name__}: {error}"
        ) from error
    if not found:
        raise InputError(f"molecules: {str(path)!r} holds none, at least one expected")
    return found


def _from_database(path: Path) -> list[Any]:
    from ase.db import connect

    found = []
    for row in connect(path).select():
        found.append(row.toatoms())
        found[-1].info["name"] = row.get("name", "")
    return found


def _from_sdf(path: Path) -> list[Any]:
    """Read all molecules of an SDF file; ASE would read the first alone."""
    from ase import Atoms

    try:
        from rdkit import Chem
    except ImportError:
        raise MissingExtra("rdkit", "chemistry", f"the file {str(path)!r}") from None
    found = []
    for place, molecule in enumerate(Chem.SDMolSupplier(str(path), sanitize=False, removeHs=False)):
        if molecule is None:
            raise InputError(f"molecules: {str(path)!r}: molecule {place} cannot be read")
        numbers = [atom.GetAtomicNum() for atom in molecule.GetAtoms()]
        positions = molecule.GetConformer().GetPositions() if numbers else []
        title = molecule.GetProp("_Name") if molecule.HasProp("_Name") else ""
        found.append(Atoms(numbers, positions, info={"name": title}))
    return found
