"""Molecules and crystals from files that ASE or RDKit can read, as arrays for a scan."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from torch import Tensor

from orbical.tasks import batch_structures, is_structure, read_structure_file


def molecules(
    source: str | Path | Iterable[object],
) -> tuple[dict[str, Tensor], dict[str, Tensor] | None]:
    """Read molecules and, if known, their energies, forces, dipoles and stresses.

    Args:
        source: `ase.Atoms`, a list of them, or a file: `.xyz`, `.extxyz`, `.traj`, `.cif` and ASE
            databases `.db` (read by ASE), `.sdf` and `.mol` (all molecules, read by RDKit).

    Returns:
        The inputs `pos [N, n, 3]` in Å, `numbers [N, n]`, `mask [N, n]`, `cell [N, 3, 3]` and
        `pbc [N, 3]`, padded to the largest molecule; and the true values, a dictionary of the known
        quantities (NaN for molecules without them), or None. The pair can be passed to
        `orbical.scan` with the task `atoms`.

    Raises:
        InputError: If the file cannot be read or contains no molecules.
        MissingExtra: If ASE or RDKit is needed and not installed.

    Example:
        >>> from ase.build import molecule
        >>> inputs, truth = molecules([molecule("H2O"), molecule("C6H6")])
        >>> inputs["mask"].sum(1).tolist()
        [3, 12]
    """
    if isinstance(source, str | Path):
        return batch_structures(read_structure_file(Path(source)))
    return batch_structures([source] if is_structure(source) else list(source))
