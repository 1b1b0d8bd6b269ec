"""Harmonic vibrations of a molecule, and how strongly each one absorbs infrared light.

Everything here works on any function of the positions that gives a gradient and a dipole, in atomic
units: lengths in bohr, energies in hartree, dipoles in e a0, masses in atomic mass units.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

WAVENUMBER = 5140.4871
"""The wavenumber in cm^-1 of `sqrt(1 hartree / (bohr^2 u))`."""
KM_PER_MOL = 974.8801
"""The integrated intensity in km/mol of a squared dipole derivative of `1 e^2 / u`."""

STEP = 0.005
"""How far along a stiff bond atoms are moved each way for a difference, in bohr."""
STIFFNESS = 0.45
"""Of the spring that stands for a bond, in hartree/bohr^2."""
STILL = 5e-6
"""The largest component of the gradient of a relaxed molecule, in hartree/bohr."""
MOST_STEPS = 300
_LONGEST = 0.25  # bohr, of any atom in one step of the relaxation


class Point(NamedTuple):
    """Results at one geometry: `gradient [a, 3]` and `dipole [3]`, in atomic units."""

    gradient: Array
    dipole: Array


class Modes(NamedTuple):
    """Vibrations in order of frequency.

    Attributes:
        frequencies: `[modes]` in cm^-1; imaginary ones are negative.
        intensities: `[modes]` in km/mol.
    """

    frequencies: Array
    intensities: Array


def relaxed(evaluate: Callable[[Array], Point], positions: Array) -> Array:
    """Relax a molecule until no force is left, by quasi-Newton steps with the BFGS update.

    The first guess of the Hessian is made of springs between all pairs, stiff where they are near,
    so that the steps rotate with the molecule.

    Args:
        evaluate: Returns gradient and dipole at positions `[a, 3]`.
        positions: `[a, 3]` of the start.

    Returns:
        Positions `[a, 3]` at which no component of the gradient is above `STILL`.

    Example:
        >>> def spring(x):
        ...     apart = x[1] - x[0]
        ...     force = 0.3 * (np.linalg.norm(apart) - 2.0) * apart / np.linalg.norm(apart)
        ...     return Point(np.stack([-force, force]), apart)
        >>> ends = relaxed(spring, np.array([[0.0, 0, 0], [0, 0, 2.3]]))
        >>> round(float(np.linalg.norm(ends[1] - ends[0])), 3)
        2.0
    """
    place = positions
    gradient = evaluate(place).gradient
    hessian = springs(place)
    for _ in range(MOST_STEPS):
        if np.abs(gradient).max() <= STILL:
            return place
        stiffness, directions = np.linalg.eigh(hessian)
        step = -directions @ ((directions.T @ gradient.ravel()) / np.abs(stiffness))
        step *= min(1.0, _LONGEST / np.linalg.norm(step.reshape(-1, 3), axis=1).max())
        place = place + step.reshape(-1, 3)
        before, gradient = gradient, evaluate(place).gradient
        hessian = _updated(hessian, step, (gradient - before).ravel())
    raise RuntimeError(f"not relaxed after {MOST_STEPS} steps")


def springs(positions: Array, least: float = 0.03) -> Array:
    """Guess a Hessian `[3 a, 3 a]`: a spring along each pair, weaker with distance.

        k_ij = STIFFNESS exp(1 - r_ij^2 / r_0^2)

    with r_0 = 2.4 bohr, near a bond's length, and `least` on the diagonal, so that nothing is free.

    Example:
        >>> guess = springs(np.array([[0.0, 0, 0], [0, 0, 2.4]]))
        >>> round(float(guess[2, 2]), 2), round(float(guess[0, 0]), 2)
        (0.48, 0.03)
    """
    count = len(positions)
    apart = positions[:, None] - positions[None]
    squares = np.square(apart).sum(-1) + np.eye(count)
    strength = STIFFNESS * np.exp(1 - squares / 2.4**2) * (1 - np.eye(count)) / squares
    pairs = strength[..., None, None] * apart[..., :, None] * apart[..., None, :]
    blocks = -pairs
    blocks[np.arange(count), np.arange(count)] = pairs.sum(1)
    whole = blocks.transpose(0, 2, 1, 3).reshape(3 * count, 3 * count)
    return whole + least * np.eye(3 * count)


def _updated(hessian: Array, step: Array, change: Array) -> Array:
    """Return the BFGS update, or the same Hessian where the step crossed a crest."""
    along = float(step @ change)
    if along <= 1e-10:
        return hessian
    moved = hessian @ step
    return hessian + np.outer(change, change) / along - np.outer(moved, moved) / (step @ moved)


def harmonic_modes(evaluate: Callable[[Array], Point], positions: Array, masses: Array) -> Modes:
    """Compute vibrations of a relaxed molecule, by central differences of gradient and dipole.

        (D^T M^-1/2 dg/dx M^-1/2 D) L = L omega^2,   A_k = c |sum_j dmu/dq_j L_jk|^2

    where the columns of D are mass-weighted directions that neither shift nor rotate it:
    the vibrations of `springs`, which are fixed to the molecule, so that an error of the
    differences rotates with it. Each step raises the energy of these springs equally.

    Args:
        evaluate: Returns gradient and dipole at positions `[a, 3]`.
        positions: `[a, 3]`, a minimum.
        masses: `[a]` in atomic mass units.

    Returns:
        The vibrations: 3 a - 6, or 3 a - 5 of a linear molecule.

    Example:
        >>> def spring(x):
        ...     apart = x[1] - x[0]
        ...     force = 0.3 * (np.linalg.norm(apart) - 2.0) * apart / np.linalg.norm(apart)
        ...     return Point(np.stack([-force, force]), 0.5 * apart)
        >>> found = harmonic_modes(spring, np.array([[0.0, 0, 0], [0, 0, 2]]), np.array([1.0, 1]))
        >>> round(float(found.frequencies[0])), round(WAVENUMBER * np.sqrt(0.3 * 2))
        (3982, 3982)
    """
    weights = np.repeat(1 / np.sqrt(masses), 3)
    inner = internal_directions(positions, masses)
    guess = springs(positions)
    inner = inner @ np.linalg.eigh(inner.T @ (weights[:, None] * guess * weights) @ inner)[1]
    hessian, charges = [], []
    for direction in inner.T:
        moved = weights * direction
        length = STEP * np.sqrt(STIFFNESS / (moved @ guess @ moved))
        step = (length * moved).reshape(-1, 3)
        after, before = evaluate(positions + step), evaluate(positions - step)
        hessian.append(inner.T @ (weights * (after.gradient - before.gradient).ravel()) / length)
        charges.append((after.dipole - before.dipole) / length)
    weighted = np.array(hessian) / 2
    squares, directions = np.linalg.eigh((weighted + weighted.T) / 2)
    pushed = np.array(charges).T / 2 @ directions
    frequencies = WAVENUMBER * np.sign(squares) * np.sqrt(np.abs(squares))
    return Modes(frequencies, KM_PER_MOL * np.square(pushed).sum(0))


def internal_directions(positions: Array, masses: Array) -> Array:
    """Return an orthonormal basis `[3 a, modes]` of mass-weighted moves that deform a molecule.

    Example:
        >>> along = internal_directions(np.array([[0.0, 0, 0], [0, 0, 2]]), np.ones(2))
        >>> np.abs(along).round(2).ravel()
        array([0.  , 0.  , 0.71, 0.  , 0.  , 0.71])
    """
    centred = positions - masses @ positions / masses.sum()
    root = np.sqrt(masses)[:, None]
    shifts = [root * axis for axis in np.eye(3)]
    turns = [root * np.cross(axis, centred) for axis in np.eye(3)]
    rigid = np.array([move.ravel() for move in (*shifts, *turns)]).T
    directions, sizes, _ = np.linalg.svd(rigid, full_matrices=True)
    # A linear molecule does not move when it rotates about its axis.
    return directions[:, int((sizes > 1e-3 * sizes[0]).sum()) :]
