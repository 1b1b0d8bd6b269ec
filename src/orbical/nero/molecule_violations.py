"""Where models of molecules violate equivariance most: the molecule, the atom and the rotation."""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from .._arrays import as_numpy
from ..errors import InputError, whole_number
from ..groups import Group
from ..store import Scan, ScanArrays, arrays_of
from ..tasks import SMALL, SYMBOLS, UNITS, Quantities, quantity_rounding, structure_display_name

SINGLE = 1e-4
"""The largest relative violation that is attributed to rounding in single precision; for energies,
whose zero is arbitrary, in eV per atom."""


@dataclass(frozen=True)
class Violation:
    """Where one model violates equivariance most in one quantity of molecules.

    Attributes:
        model: the name of the model.
        quantity: the quantity: energy, forces, dipole or stress.
        unit: its unit, as in ASE.
        largest: the largest distance from the consensus, for forces of one atom alone; for
            energies that of the molecule where it is largest per atom.
        usual: the root mean square of the distance over all molecules and elements.
        size: the root mean square of the components of the quantity, for comparison; None for
            energies, whose zero is arbitrary.
        relative: the largest in units of the size, for energies in eV per atom.
        error: the mean absolute error per component of the untransformed molecules; None without
            true values.
        answered: the number of calculations that gave an answer.
        asked: the number of all calculations.
        sample: the molecule where it is largest, by its index.
        molecule: its number, name and formula.
        atom: the atom, for forces.
        element: the element of the group, by its index.
        rotation: the element in words.

    Example:
        >>> where = (3, "3: CO2", "O, atom 1", 7, "element 7: 90.0°")
        >>> print(Violation("net", "energy", "eV", 1e-12, 1e-13, None, 3e-13, None, 6, 8, *where))
        net, energy: invariant in 6 of 8 calculations, off by at most 3e-13 eV per atom (1e-12 eV)
    """

    model: str
    quantity: str
    unit: str
    largest: float
    usual: float
    size: float | None
    relative: float
    error: float | None
    answered: int
    asked: int
    sample: int
    molecule: str
    atom: str
    element: int
    rotation: str

    @property
    def equivariant(self) -> bool:
        """Whether the largest violation is attributed to rounding in single precision."""
        vanishes = self.size is not None and self.largest <= SINGLE * SMALL[self.quantity]
        return self.relative <= SINGLE or vanishes

    @property
    def finding(self) -> str:
        """What was found of the quantity, in words."""
        quality = "equivariant"
        amount = f"{self.largest:.2g} {self.unit}"
        if self.relative <= SINGLE or not self.equivariant:  # else the size is rounding, too
            amount += f" ({self.relative:.2g} of the size)"
        if self.size is None:
            quality = "invariant"
            amount = f"{self.relative:.2g} eV per atom ({self.largest:.2g} {self.unit})"
        if not self.equivariant:
            return f"not {quality}, off by up to {amount}"
        part = f" in {self.answered} of {self.asked} calculations"
        part = part if self.answered < self.asked else ""
        return f"{quality}{part}, off by at most {amount}"

    def __str__(self) -> str:
        where = "" if self.equivariant else ", at "
        where += ", ".join(filter(None, (self.atom, self.molecule))) if where else ""
        return f"{self.model}, {self.quantity}: {self.finding}{where}"


def violations(scan: Scan) -> list[Violation]:
    """Find the largest violation of equivariance of each model of molecules, by quantity.

    Args:
        scan: a scan of the task atoms.

    Returns:
        A row for each model and quantity, printed as a sentence; none where no molecule has answers
        at two elements. `pandas.DataFrame(rows)` is a table of them.

    See Also:
        invariance_gap: One number for each model.
        orbical.testing.equivariance_error: A test without a scan.

    Example:
        >>> import orbical as ob
        >>> from ase.build import molecule
        >>> from ase.calculators.emt import EMT
        >>> scan = ob.scan({"emt": EMT()}, [molecule("H2O")], group="rotations3d:4", task="atoms")
        >>> for found in ob.nero.violations(scan):
        ...     print(found)
        emt, energy: invariant, off by at most ... eV per atom (... eV)
        emt, forces: equivariant, off by at most ... eV/Å (... of the size)
    """
    return violations_of(arrays_of(_checked_scan(scan)), scan.names)


def violations_of(arrays: ScanArrays, names: Sequence[str] | None = None) -> list[Violation]:
    """Find the largest violations in the arrays of a scan, none unless it is of the task atoms.

    Args:
        arrays: the arrays of the scan.
        names: the names of the molecules.
    """
    return [
        found
        for model in range(len(arrays.models))
        for quantity in scanned_quantities(arrays)
        if (found := _worst_violation(arrays, names, model, quantity)) is not None
    ]


def scanned_quantities(names: Container[str]) -> list[str]:
    """Return the quantities of atoms among the variables of a scan; none of other tasks."""
    return [name for name in UNITS if f"{name}_vs_consensus" in names]


def molecule_score_scope(names: Container[str], unit: str) -> str:
    """Describe which quantity of atoms a score is of, and which of the scan it says nothing of.

    Args:
        names: the names of the variables of a scan.
        unit: the unit of its score, which tells the quantity.

    Returns:
        A sentence; empty where nothing is left out.

    Example:
        >>> molecule_score_scope(["energy_vs_consensus", "forces_vs_consensus"], "eV/Å")
        'Judged by forces alone, not by energy: see ob.nero.violations or orbical check.'
    """
    known = scanned_quantities(names)
    judged = [name for name in known if UNITS[name] == unit]
    others = " or ".join(name for name in known if name not in judged)
    if not others:
        return ""
    alone = ", ".join(judged)
    return f"Judged by {alone} alone, not by {others}: see ob.nero.violations or orbical check."


def violation_rounding(arrays: ScanArrays, name: str) -> list[float]:
    """Return the largest difference that is rounding for each model, in its own precision.

    In single precision it is that up to which `Violation.equivariant` holds. A model is known by
    its energies to compute in it. Empty for responses that are no distances of quantities.

    Args:
        arrays: the arrays of a scan.
        name: the name of a response.
    """
    about = arrays.attributes(name)
    unit = about.get("units", "")
    better = about.get("higher_is_better")
    double = quantity_rounding(unit, None if better is None else bool(better))
    if not double:
        return []
    quantity = next((known for known, its_unit in UNITS.items() if its_unit == unit), "energy")
    source = f"consensus_{quantity}" if f"consensus_{quantity}" in arrays else quantity
    found = []
    for model in range(len(arrays.models)):
        size = SMALL[quantity]
        if quantity != "energy":
            values = arrays.read(source, model=model)
            values = values[np.isfinite(values)]
            size = max(size, float(np.sqrt(np.square(values).sum() / max(values.size, 1))))
        energy = arrays.read("energy", model=model) if "energy" in arrays else np.full(1, np.pi)
        single = np.array_equal(energy, energy.astype(np.float32), equal_nan=True)
        found.append(max(SINGLE * size, double) if single else double)
    return found


def _checked_scan(scan: Scan) -> Scan:
    task = scan.record.task
    if "quantities" not in task.settings:
        raise InputError("scan", "a scan of the task atoms", f"one of the task {task.name}")
    return scan


def _worst_violation(
    arrays: ScanArrays, names: Sequence[str] | None, model: int, quantity: str
) -> Violation | None:
    def read(name: str, rows: slice = slice(None)) -> np.ndarray:
        return arrays.read(name, rows, model).astype(float)

    given = read(f"{quantity}_vs_consensus")
    answered = ~np.isnan(given)
    # A single answer is its own consensus, which says nothing.
    alone = (answered.sum(1) < min(2, len(arrays.group)))[:, None]
    usual = np.where(alone, np.nan, given)
    if np.isnan(usual).all():
        return None
    places = usual
    if quantity == "forces":
        places = np.where(alone, np.nan, np.fmax.reduce(read("atom_vs_consensus"), -1))
    relative = places
    if quantity == "energy":  # the limit is per atom, and all that is said is of one molecule
        relative = np.where(alone, np.nan, read("energy_per_atom_vs_consensus"))
    ranked = relative.copy()
    ranked[:, arrays.group.identity] *= 1 - 1e-6  # where two elements disagree, name what moves
    sample, element = (int(i) for i in np.unravel_index(np.nanargmax(ranked), places.shape))
    row = slice(sample, sample + 1)
    numbers = arrays.read("numbers", row, model)[0]
    atom = ""
    if quantity == "forces":
        which = int(np.nanargmax(read("atom_vs_consensus", row)[0, element]))
        still = _atom_before_moving(arrays.group, element, which)
        atom = f"{SYMBOLS[int(numbers[still])]}, atom {still}"
    largest, size = float(places[sample, element]), None
    share = float(relative[sample, element])
    if quantity != "energy":
        # Of the answers: the consensus is zero where they are wrong by their whole size.
        size = float(np.sqrt(np.nanmean(read(quantity) ** 2)))
        share = largest / size if size else 0.0
    return Violation(
        arrays.models[model],
        quantity,
        UNITS[quantity],
        largest,
        float(np.sqrt(np.nanmean(usual**2))),
        size,
        share,
        _mean_error_of_molecules(arrays, read, quantity),
        int(answered.sum()),
        answered.size,
        sample,
        _numbered_name(names, sample, numbers),
        atom,
        element,
        _rotation_name_of_violation(arrays.group, element),
    )


def _mean_error_of_molecules(
    arrays: ScanArrays, read: Callable[[str], np.ndarray], quantity: str
) -> float | None:
    if "target" not in arrays:
        return None
    rows = torch.from_numpy(read("target"))
    truth = Quantities(scanned_quantities(arrays)).split(rows)[quantity].numpy()
    off = np.abs(read(quantity)[:, arrays.group.identity] - truth)
    return None if np.isnan(off).all() else float(np.nanmean(off))


def molecule_name(scan: Scan, sample: int, numbers: np.ndarray) -> str:
    """Return the number, the name if any, and the formula of a molecule in a scan.

    Args:
        scan: a scan of the task atoms.
        sample: the index of the molecule.
        numbers: `[A]`, its atomic numbers.

    Returns:
        The text.

    Example:
        >>> import orbical as ob
        >>> from ase.build import molecule
        >>> from ase.calculators.emt import EMT
        >>> scan = ob.scan({"emt": EMT()}, [molecule("H2O")], group="rotations3d:4", task="atoms")
        >>> ob.nero.molecule_name(scan, 0, np.array([8, 1, 1]))
        '0: H2O'
    """
    index, atoms = whole_number("sample", sample, 0), as_numpy("numbers", numbers)
    return _numbered_name(_checked_scan(scan).names, index, atoms)


def _numbered_name(names: Sequence[str] | None, index: int, numbers: np.ndarray) -> str:
    return f"{index}: {structure_display_name('' if names is None else names[index], numbers)}"


def _atom_before_moving(group: Group, element: int, atom: int) -> int:
    """Return the index of an atom in the untransformed molecule, if elements permute atoms."""
    rows = group.parts.get("rows")
    return atom if rows is None else int(rows[element][atom])


def _rotation_name_of_violation(group: Group, element: int) -> str:
    """Return angle and axis of a rotation of space, and its shift in Å; otherwise its name."""
    from scipy.spatial.transform import Rotation

    name = f"element {element}"
    turn = group.linear("space")[element] if {*group.parts} == {"space"} else None
    if turn is None or np.linalg.det(turn) < 0:
        return f"{name}: {group.name(element)}"
    words, vector = [], Rotation.from_matrix(turn).as_rotvec()
    if (angle := float(np.linalg.norm(vector))) >= 1e-9:
        words.append(f"{np.rad2deg(angle):.1f}° about ({_vector_text(vector / angle)})")
    if (shift := group.parts["space"][element, :3, 3]).any():
        words.append(f"shift ({_vector_text(shift)}) Å")
    return f"{name}: {', '.join(words) or 'identity'}"


def _vector_text(vector: np.ndarray) -> str:
    return ", ".join(f"{part:.2f}" for part in vector)
