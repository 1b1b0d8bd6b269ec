"""QM9: 130,831 small organic molecules with their geometry and scalar properties."""

from __future__ import annotations

import ast
import csv
import importlib.util
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from orbical.errors import InputError, MissingExtra, check_name

from .bars import tracked
from .cached_arrays import cache_folder, read_arrays, writable, write_arrays

HARTREE = 27.211386245988
"""One hartree in eV."""

SPLITS = {"train": (0, 110_000), "validation": (110_000, 120_000), "test": (120_000, 130_831)}
"""Places of the splits in the seeded order."""


class Property(NamedTuple):
    """A scalar property: the column of the files, what one of its units is in ours, our unit."""

    column: str
    factor: float
    unit: str
    less_atoms: bool = False


_ENERGIES = {
    "u0": "InternalEnergy_0K_au",
    "u": "InternalEnergy_298K_au",
    "h": "Enthalphy_298K_au",
    "g": "GibbsFreeEnergy_298K_au",
}
PROPERTIES: dict[str, Property] = {
    "rotational_a": Property("RotA_GHz", 1, "GHz"),
    "rotational_b": Property("RotB_GHz", 1, "GHz"),
    "rotational_c": Property("RotC_GHz", 1, "GHz"),
    "dipole": Property("Dipole_debye", 1, "D"),
    "polarisability": Property("Polarizability_bohr3", 1, "a0^3"),
    "homo": Property("HOMO_au", HARTREE, "eV"),
    "lumo": Property("LUMO_au", HARTREE, "eV"),
    "gap": Property("HOMO_LUMO_gap_au", HARTREE, "eV"),
    "r2": Property("R2_bohr2", 1, "a0^2"),
    "zpve": Property("ZPVE_au", HARTREE, "eV"),
    **{name: Property(column, HARTREE, "eV") for name, column in _ENERGIES.items()},
    "cv": Property("Heatcapacity_Cv_cal_mol_K", 1, "cal/(mol K)"),
    **{
        f"{name}_atom": Property(column, HARTREE, "eV", less_atoms=True)
        for name, column in _ENERGIES.items()
    },
}
"""The names of the properties, and their units. Energies `..._atom` are energies of
atomization: the molecule's minus those of its free atoms, negative if it is bound."""

ATOM_ENERGIES: dict[str, dict[int, float]] = {
    column: dict(zip((1, 6, 7, 8, 9), values, strict=True))
    for column, values in {
        "InternalEnergy_0K_au": (-0.500273, -37.846772, -54.583861, -75.064579, -99.718730),
        "InternalEnergy_298K_au": (-0.498857, -37.845355, -54.582445, -75.063163, -99.717314),
        "Enthalphy_298K_au": (-0.497912, -37.844411, -54.581501, -75.062219, -99.716370),
        "GibbsFreeEnergy_298K_au": (-0.510927, -37.861317, -54.598897, -75.079532, -99.733544),
    }.items()
}
"""Energies of free atoms in hartree at the level of the molecules (Ramakrishnan et al. 2014)."""

_COLUMNS = tuple(dict.fromkeys(entry.column for entry in PROPERTIES.values()))
_HEADER = (
    *("XYZ_file", "Index", "SMILES", "InChi", "N_atoms", "Stoichiometry", "Elements", "XYZ_Ang"),
    *("Mulliken_pop", "Harmonic_Freq_cmi", *_COLUMNS),
)
_SYMBOLS = {"H": 1, "C": 6, "N": 7, "O": 8, "F": 9}
_FORMAT = 1


class Molecules(NamedTuple):
    """Molecules with their properties.

    Attributes:
        inputs: `pos [n, most, 3]` in Å, single precision; `numbers [n, most]`, 0 where a molecule
            has ended; `mask [n, most]`.
        properties: by name `[n]`, double precision, in the units of `PROPERTIES`.
        identifiers: `[n]`, the molecules' numbers in QM9, from 1.
        smiles: their SMILES strings.
    """

    inputs: dict[str, Tensor]
    properties: dict[str, Tensor]
    identifiers: Tensor
    smiles: tuple[str, ...]


def qm9(
    split: str = "test",
    properties: Iterable[str] | None = None,
    count: int | None = None,
    seed: int = 0,
    cache: str | Path | None = None,
    progress: bool = True,
) -> Molecules:
    """Read QM9 from the files inside the package qm9pack (extra `chemistry`).

    The molecules are put in the order of raw 64-bit draws of PCG64 with the seed, whose stream is
    the same in every NumPy version; the first 110,000 are for training, the next 10,000 for
    validation, the last 10,831 for the test. The order is kept, so the first ones of any split are
    a fair sample of it. The numbers of the molecules in each split are stored in the cache.

    A call without `count` reads the whole set once (half a minute) and keeps it there as one
    compressed file of arrays, which is then enough without the package. A call with `count` reads
    those molecules alone.

    Args:
        split: `"train"`, `"validation"`, `"test"` or `"all"`.
        properties: Names in `PROPERTIES`; None for all of them.
        count: Take only the first molecules of the split; None for all.
        seed: Of the order.
        cache: Folder of the arrays; None for `ORBICAL_CACHE` or the system's own.
        progress: Show a progress bar on the error stream while the whole set is read.

    Returns:
        The molecules. `(found.inputs, found.properties["gap"])` can go to `orbical.scan`.

    Two linear molecules (polyynes, linear but for rounding) have rotational constants A of 232,664
    and 619,868 GHz, where all others are below 800: a z-score of A is a measure of these two. Nine
    more linear ones have A = 0, which stands for infinity.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as there:
        ...     found = qm9("test", ["gap"], count=3, cache=there)
        >>> found.inputs["pos"].shape[::2], found.properties["gap"].shape, PROPERTIES["gap"].unit
        (torch.Size([3, 3]), torch.Size([3]), 'eV')

    Paper: Ramakrishnan et al. 2014; the equivariance paper's section 6.1.2 and table 1.
    """
    wanted = tuple(PROPERTIES if properties is None else properties)
    for name in wanted:
        check_name("properties", name, PROPERTIES)
    check_name("split", split, (*SPLITS, "all"))
    folder = cache_folder(cache)
    files = _source_files()
    table = _stored_table(folder, files)
    lines: list[bytes] = []
    if table is None:
        writable(folder)
        lines = _lines(files)
        index = np.array([int(line.split(b",", 2)[1]) for line in lines], np.int32)
    else:
        index = table["index"]
    chosen = _split_numbers(folder, index, seed, split)
    if count is not None and count > len(chosen):
        raise InputError("count", f"at most {len(chosen)}, the split's size", count)
    rows = np.searchsorted(index, chosen[:count])
    if table is None and count is None:
        table = _parsed(lines, progress) | {"source": _source(files)}
        write_arrays(folder / "qm9.npz", table)
    if table is None:
        table, rows = _parsed([lines[row] for row in rows], False), np.arange(len(rows))
    return _molecules(table, rows, wanted)


# The files of the package.


def _source_files() -> list[Path]:
    """Find the package's tables without importing it, which needs a removed part of setuptools."""
    found = importlib.util.find_spec("qm9pack")
    places = [] if found is None else list(found.submodule_search_locations or [])
    if not places:
        return []
    files = [Path(places[0]) / "data" / f"qm9_part{part}.csv" for part in (1, 2, 3)]
    for file in files:
        if not file.is_file():
            raise InputError(
                "qm9pack", problem=f"there is no file {file.name!r} in the installed package"
            )
    return files


def _lines(files: Sequence[Path]) -> list[bytes]:
    """Read the rows of the tables, one line each, without their headers."""
    if not files:
        raise MissingExtra("qm9pack", "chemistry", "the data set 'qm9'")
    lines: list[bytes] = []
    for file in files:
        header, *rows = file.read_bytes().splitlines()
        if header.decode(errors="replace") != ",".join(_HEADER):
            raise InputError("qm9pack", f"the columns of version 1.0.3 in {file.name!r}")
        lines += rows
    return lines


def _source(files: Sequence[Path]) -> NDArray[np.int64]:
    """Return format and file sizes, which identify a release."""
    return np.array([_FORMAT, *(file.stat().st_size for file in files)])


def _parsed(lines: Sequence[bytes], shown: bool) -> dict[str, NDArray]:
    """Parse rows into arrays: the atoms of all molecules one after another, and their numbers."""
    elements, positions, scalars, index, smiles = [], [], [], [], []
    for fields in csv.reader(line.decode() for line in tracked(lines, "qm9", shown)):
        entry = dict(zip(_HEADER, fields, strict=True))
        symbols = ast.literal_eval(entry["Elements"])
        elements.append([_SYMBOLS[symbol] for symbol in symbols])
        positions.append(np.array(ast.literal_eval(entry["XYZ_Ang"]), np.float32))
        scalars.append([float(entry[column]) for column in _COLUMNS])
        index.append(int(entry["Index"]))
        smiles.append(entry["SMILES"])
    return {
        "sizes": np.array([len(numbers) for numbers in elements], np.uint8),
        "numbers": np.concatenate(elements).astype(np.uint8),
        "positions": np.concatenate(positions),
        "scalars": np.array(scalars),
        "index": np.array(index, np.int32),
        "smiles": np.frombuffer("\n".join(smiles).encode(), np.uint8),
    }


# The cache.


def _stored_table(folder: Path, files: Sequence[Path]) -> dict[str, NDArray] | None:
    """Read the whole set from the cache, if it is of this release."""
    table = read_arrays(folder / "qm9.npz")
    if table is None or table.get("source", np.zeros(1))[0] != _FORMAT:
        return None
    return table if not files or np.array_equal(table["source"], _source(files)) else None


def _split_numbers(folder: Path, index: NDArray, seed: int, split: str) -> NDArray[np.int32]:
    """Return the numbers in QM9 of a split's molecules, as stored, or drawn and stored."""
    path = folder / f"qm9-splits-{seed}.npz"
    stored = read_arrays(path)
    if stored is None or not np.array_equal(np.sort(_joined(stored)), index):
        order = np.argsort(np.random.PCG64(seed).random_raw(len(index)), kind="stable")
        total = SPLITS["test"][1]
        stored = {
            name: index[order[len(index) * low // total : len(index) * high // total]]
            for name, (low, high) in SPLITS.items()
        }
        write_arrays(writable(folder) / path.name, stored)
    return _joined(stored) if split == "all" else stored[split]


def _joined(stored: dict[str, NDArray]) -> NDArray[np.int32]:
    return np.concatenate([stored.get(name, np.zeros(0, np.int32)) for name in SPLITS])


# The result.


def _molecules(table: dict[str, NDArray], rows: NDArray, wanted: Sequence[str]) -> Molecules:
    most = table["sizes"][rows].max()
    pos, numbers, mask = (part[rows, :most] for part in padded_atoms(table))
    smiles = table["smiles"].tobytes().decode().split("\n")
    return Molecules(
        {
            "pos": torch.from_numpy(pos),
            "numbers": torch.from_numpy(numbers),
            "mask": torch.from_numpy(mask),
        },
        {name: _property(name, table["scalars"][rows], numbers) for name in wanted},
        torch.from_numpy(table["index"][rows].astype(np.int64)),
        tuple(smiles[row] for row in rows),
    )


def _property(name: str, scalars: NDArray, numbers: NDArray) -> Tensor:
    entry = PROPERTIES[name]
    values = scalars[:, _COLUMNS.index(entry.column)].copy()
    if entry.less_atoms:
        for number, energy in ATOM_ENERGIES[entry.column].items():
            values -= energy * (numbers == number).sum(1)
    return torch.from_numpy(values * entry.factor)


def padded_atoms(arrays: Mapping[str, NDArray]) -> tuple[NDArray, NDArray, NDArray]:
    """Return positions `[n, most, 3]`, atomic numbers `[n, most]` (0 for padding) and the mask.

    Args:
        arrays: `sizes [n]`, and `positions [atoms, 3]` and `numbers [atoms]` of all molecules one
            after another.

    Example:
        >>> arrays = {"sizes": np.array([1, 2]), "numbers": np.array([8, 1, 1])}
        >>> padded_atoms(arrays | {"positions": np.zeros((3, 3))})[1].tolist()
        [[8, 0], [1, 1]]
    """
    sizes = arrays["sizes"].astype(np.int64)
    mask = np.arange(sizes.max()) < sizes[:, None]
    pos, numbers = np.zeros((*mask.shape, 3), np.float32), np.zeros(mask.shape, np.int64)
    pos[mask], numbers[mask] = arrays["positions"], arrays["numbers"]
    return pos, numbers, mask
