"""Vibrations by differences: of springs, where every number is known, turned and shifted."""

from __future__ import annotations

import numpy as np
import pytest

from orbical_studies.data import vibrations
from orbical_studies.data.vibrations import (
    KM_PER_MOL,
    WAVENUMBER,
    Point,
    harmonic_modes,
    internal_directions,
    relaxed,
)

MASSES = np.array([12.0, 1.0, 16.0, 1.0])
START = np.array([[0.0, 0, 0], [1.9, 0.2, 0.1], [-0.4, 2.2, 0], [0.3, -0.5, 1.8]])
CHARGES = np.array([0.1, 0.2, -0.5, 0.2])


def springs_between_all(positions: np.ndarray) -> Point:
    """Six springs at rest in START, and four fixed charges."""
    apart = positions[:, None] - positions[None]
    length = np.linalg.norm(apart, axis=-1) + np.eye(4)
    rest = np.linalg.norm(START[:, None] - START[None], axis=-1) + np.eye(4)
    stretch = (0.3 * (length - rest) / length)[..., None] * apart
    return Point(stretch.sum(1), CHARGES @ positions)


def exact_modes() -> tuple[np.ndarray, np.ndarray]:
    """Frequencies and intensities from the Hessian of springs at rest, with no difference."""
    hessian = np.zeros((12, 12))
    for one in range(4):
        for other in range(4):
            if one == other:
                continue
            along = START[one] - START[other]
            block = 0.3 * np.outer(along, along) / (along @ along)
            hessian[3 * one : 3 * one + 3, 3 * one : 3 * one + 3] += block
            hessian[3 * one : 3 * one + 3, 3 * other : 3 * other + 3] -= block
    roots = np.repeat(np.sqrt(MASSES), 3)
    squares, moves = np.linalg.eigh(hessian / roots[:, None] / roots)
    pushed = np.kron(CHARGES, np.eye(3)) @ (moves / roots[:, None])
    return WAVENUMBER * np.sqrt(squares[6:]), KM_PER_MOL * np.square(pushed[:, 6:]).sum(0)


def a_turn() -> np.ndarray:
    return np.linalg.qr(np.random.default_rng(3).standard_normal((3, 3)))[0]


def test_frequencies_and_intensities_are_those_of_the_exact_hessian():
    frequencies, intensities = exact_modes()
    found = harmonic_modes(springs_between_all, START, MASSES)
    np.testing.assert_allclose(found.frequencies, frequencies, rtol=1e-4)
    np.testing.assert_allclose(found.intensities, intensities, rtol=1e-3, atol=1e-3)


def test_a_turned_and_shifted_molecule_vibrates_the_same_although_steps_are_finite():
    turn = a_turn()

    def turned(positions):
        here = springs_between_all((positions - 5) @ turn)
        return Point(here.gradient @ turn.T, here.dipole @ turn.T)

    found = harmonic_modes(springs_between_all, START, MASSES)
    other = harmonic_modes(turned, START @ turn.T + 5, MASSES)
    np.testing.assert_allclose(other.frequencies, found.frequencies, rtol=1e-9)
    np.testing.assert_allclose(other.intensities, found.intensities, rtol=1e-7, atol=1e-9)


def test_units_are_those_of_the_constants_of_nature():
    constants = pytest.importorskip("scipy.constants")
    named = constants.physical_constants
    hartree, bohr = named["Hartree energy"][0], named["Bohr radius"][0]
    rate = np.sqrt(hartree / constants.atomic_mass) / bohr
    assert pytest.approx(rate / (2 * np.pi * constants.c * 100), rel=1e-7) == WAVENUMBER
    strength = constants.N_A * constants.e**2 / constants.atomic_mass
    strength /= 12 * constants.epsilon_0 * constants.c**2
    assert pytest.approx(strength / 1000, rel=1e-7) == KM_PER_MOL


def test_relaxing_finds_the_rest_of_springs_and_turns_with_them():
    start = START + np.random.default_rng(0).uniform(-0.2, 0.2, START.shape)
    found = relaxed(springs_between_all, start)
    assert np.abs(springs_between_all(found).gradient).max() <= vibrations.STILL
    turn = a_turn()

    def turned(positions):
        return Point(springs_between_all(positions @ turn).gradient @ turn.T, np.zeros(3))

    np.testing.assert_allclose(relaxed(turned, start @ turn.T), found @ turn.T, atol=1e-8)


def test_what_has_no_rest_is_said(monkeypatch):
    monkeypatch.setattr(vibrations, "MOST_STEPS", 5)

    def falling(positions):
        return Point(np.ones_like(positions), np.zeros(3))

    with pytest.raises(RuntimeError, match="not relaxed after 5 steps"):
        relaxed(falling, START)


@pytest.mark.parametrize(
    ("positions", "modes"),
    [
        pytest.param(START, 6, id="bent"),
        pytest.param(np.outer(np.arange(4.0), [1, 2, 3]), 7, id="linear"),
        pytest.param(START[:2], 1, id="two atoms"),
        pytest.param(START[:1], 0, id="one atom"),
    ],
)
def test_directions_inside_are_orthonormal_and_neither_shift_nor_turn(positions, modes):
    masses = MASSES[: len(positions)]
    inner = internal_directions(positions, masses)
    assert inner.shape == (3 * len(positions), modes)
    np.testing.assert_allclose(inner.T @ inner, np.eye(modes), atol=1e-12)
    moves = (inner.T.reshape(modes, len(masses), 3)) * np.sqrt(masses)[:, None]
    np.testing.assert_allclose(moves.sum(1), 0, atol=1e-12)
    centred = positions - masses @ positions / masses.sum()
    np.testing.assert_allclose(np.cross(centred, moves).sum(1), 0, atol=1e-9)
