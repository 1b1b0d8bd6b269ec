"""Infrared spectra of molecules by quantum chemistry: invariant vector labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from .quantum_labels import BOHR, Calculate, labelled, require_tblite, single_points
from .vibrations import Point, harmonic_modes, relaxed

WAVENUMBERS = np.linspace(500.0, 4000.0, 176)
"""The usual grid, in cm^-1: every 20 from 500 to 4000."""
WIDTH = 40.0
"""The usual full width of a line at half of its height, in cm^-1: two points of the grid."""
ACCURACY = 0.01
"""Of the electrons, as tblite counts it: gradients within about 1e-7 hartree/bohr."""
LOWEST = -20.0
"""A frequency in cm^-1 below which a geometry is not a minimum (imaginary ones are < 0)."""


class Spectra(NamedTuple):
    """Molecules with their infrared spectra.

    Attributes:
        inputs: The given molecules, without those left out.
        relaxed: `[m, most, 3]`, double precision, in Å: the positions of the method's own minimum,
            where the vibrations are taken, 0 in padding.
        spectra: `[m, points]`, double precision, in km/mol per cm^-1, one for each wavenumber.
        wavenumbers: `[points]` in cm^-1.
        lines: For each molecule `[2, modes]`: frequencies in cm^-1 and intensities in km/mol.
        rows: `[m]`, the indices of these molecules among those given.
        failed: Why molecules were left out, by their index among those given.
    """

    inputs: dict[str, Tensor]
    relaxed: Tensor
    spectra: Tensor
    wavenumbers: Tensor
    lines: list[Tensor]
    rows: Tensor
    failed: dict[int, str]


def spectra(
    inputs: Mapping[str, Any],
    names: Sequence[str] | None = None,
    wavenumbers: NDArray[np.float64] | Tensor | Sequence[float] = WAVENUMBERS,
    width: float = WIDTH,
    cache: str | Path | None = None,
    progress: bool = True,
) -> Spectra:
    """Calculate harmonic infrared spectra of neutral molecules with GFN2-xTB, by tblite.

    A molecule is first relaxed from the geometry given to the method's own minimum, then moved
    along directions of its own, there and back, for central differences of gradient and dipole:

        A(v) = sum_k A_k L(v - v_k),   L(u) = (w / 2 pi) / (u^2 + (w / 2)^2)

    with frequencies v_k, intensities A_k and Lorentzian lines of full width w at half height, each
    of area 1, so that the integral of a spectrum over all wavenumbers is the sum of its
    intensities. A function of the geometry alone, calculated from scratch in one thread: two calls
    agree to the last bit, and the true aleatoric uncertainty is zero. A rotation of the input
    leaves the spectrum as it is to about 1e-5 of its height (the electrons are iterated to a
    tolerance).

    Lines and relaxed positions are kept in the cache by the molecule's elements and positions,
    every 20 seconds and when stopped; other wavenumbers or widths need no new calculation. A
    molecule of 14 atoms takes about 0.4 s. Several processes may share the cache: give each a
    part of the molecules. Needs the extra `chemistry`.

    Args:
        inputs: `pos [n, most, 3]` in Å and `numbers [n, most]` (0 for padding), and maybe `mask`,
            as `qm9` and `molecules` give them.
        names: Of the molecules, for the warning about those left out; default their indices.
        wavenumbers: `[points]` in cm^-1.
        width: Full width of a line at half of its height, in cm^-1.
        cache: Folder of finished molecules; default `ORBICAL_CACHE` or the system's own.
        progress: Show a progress bar on the error stream.

    Returns:
        The molecules and their spectra. One that does not converge, or whose relaxed geometry is
        not a minimum, is left out, and named in a warning. `(found.inputs, found.spectra)` can be
        passed to `orbical.scan`.

    Example:
        >>> import tempfile
        >>> water = {"pos": torch.tensor([[[0, 0, 0], [0, 0.76, 0.59], [0, -0.76, 0.59]]]),
        ...          "numbers": torch.tensor([[8, 1, 1]])}
        >>> with tempfile.TemporaryDirectory() as there:
        ...     found = spectra(water, cache=there, progress=False)
        >>> found.spectra.shape, (found.lines[0][0] / 100).round().tolist()  # bend, two stretches
        (torch.Size([1, 176]), [15.0, 36.0, 37.0])

    Paper: the equivariance paper's section 6.1.2 and Fig. 9, whose spectra (QM9S) are of density
    functional theory; Bannwarth et al. 2019 for the method.
    """
    grid = np.array(wavenumbers, np.float64)
    found = labelled("spectra", spectrum_function, inputs, names, cache, progress)
    numbers = found.inputs["numbers"]
    mask = found.inputs.get("mask", numbers > 0).bool()
    places = torch.zeros((*numbers.shape, 3), dtype=torch.float64)
    lines = []
    for row, label in enumerate(found.labels):
        atoms = int(mask[row].sum())
        places[row][mask[row]] = torch.from_numpy(label[: 3 * atoms].reshape(-1, 3))
        lines.append(torch.from_numpy(label[3 * atoms :].reshape(2, -1).copy()))
    values = [broadened(line[0].numpy(), line[1].numpy(), grid, width) for line in lines]
    return Spectra(
        found.inputs,
        places,
        torch.from_numpy(np.array(values).reshape(-1, len(grid))),
        torch.from_numpy(grid),
        lines,
        found.rows,
        found.failed,
    )


def broadened(
    frequencies: NDArray[np.float64],
    intensities: NDArray[np.float64],
    wavenumbers: NDArray[np.float64] = WAVENUMBERS,
    width: float = WIDTH,
) -> NDArray[np.float64]:
    """Compute the spectrum `[points]` of lines `[modes]`: Lorentzians times their intensities.

    Args:
        frequencies: `[modes]` in cm^-1; those not above 0 are left out.
        intensities: `[modes]` in km/mol.
        wavenumbers: `[points]` in cm^-1.
        width: Full width at half height in cm^-1.

    Returns:
        `[points]` in km/mol per cm^-1.

    Example:
        >>> fine = np.arange(0.0, 4000.0)
        >>> line = broadened(np.array([2000.0]), np.array([50.0]), fine, 40.0)
        >>> round(line.sum()), line[2020] / line[2000]
        (50, np.float64(0.5))
    """
    real = frequencies > 0
    apart = wavenumbers[:, None] - frequencies[real]
    half = width / 2
    return (half / np.pi / (np.square(apart) + half**2)) @ intensities[real]


def spectrum_function() -> Calculate:
    """Return a function that computes relaxed positions, frequencies and intensities, in a row."""
    require_tblite("spectra")
    from ase.data import atomic_masses

    def calculate(numbers: NDArray, positions: NDArray) -> NDArray[np.float64]:
        run = single_points(numbers, positions, ACCURACY)

        def evaluate(place: NDArray[np.float64]) -> Point:
            found = run(place * BOHR)
            return Point(np.array(found.get("gradient")), np.array(found.get("dipole")))

        place = relaxed(evaluate, positions / BOHR)
        modes = harmonic_modes(evaluate, place, atomic_masses[numbers])
        if len(modes.frequencies) and modes.frequencies[0] < LOWEST:
            raise RuntimeError(
                f"no minimum: a frequency of {-modes.frequencies[0]:.0f}i cm^-1 where it relaxed to"
            )
        return np.concatenate([(place * BOHR).ravel(), modes.frequencies, modes.intensities])

    return calculate
