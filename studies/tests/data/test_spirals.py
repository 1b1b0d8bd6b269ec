"""The two spirals: their orbits, their labels, and the ceiling that follows from them."""

from __future__ import annotations

import numpy as np
import pytest

from orbical.bounds import OrbitTable, match_orbits
from orbical.errors import InputError
from orbical_studies.data.spirals import KINDS, swap_of_heights, swiss_roll


@pytest.mark.parametrize("eighths", range(9))
def test_the_ceiling_is_one_minus_half_the_incorrect_share(eighths: int) -> None:
    correct = eighths / 8
    for incorrect in (0.0, (1 - correct) / 2, 1 - correct):
        roll = swiss_roll(correct, incorrect, points=320)
        table = OrbitTable.from_labels(roll.orbit, roll.label)
        assert table.accuracy_ceiling == pytest.approx(1 - incorrect / 2, abs=1e-12)


@pytest.mark.parametrize(("correct", "incorrect"), [(0.25, 0.5), (0.0, 0.0), (0.0, 1.0), (1, 0)])
def test_matching_under_the_swap_finds_the_orbits_of_the_generator(
    correct: float, incorrect: float
) -> None:
    roll = swiss_roll(correct, incorrect, points=1600)
    found = match_orbits(roll.x, swap_of_heights()).orbit
    pairs = np.unique(np.stack([found, roll.orbit]), axis=1)
    assert pairs.shape[1] == len(np.unique(found)) == len(np.unique(roll.orbit))


def test_the_kinds_are_what_the_swap_does_to_a_point() -> None:
    roll = swiss_roll(0.5, 0.25, points=160)
    at = {tuple(point): label for point, label in zip(roll.x.round(9), roll.label, strict=True)}
    for point, label, kind in zip(roll.x.round(9), roll.label, roll.kind, strict=True):
        swapped = at.get((point[0], point[1], 1 - point[2]))
        expected = (
            "extrinsic" if swapped is None else "correct" if swapped == label else "incorrect"
        )
        assert KINDS[kind] == expected


def test_the_spirals_wind_as_the_paper_says() -> None:
    roll = swiss_roll(0.0, 0.0, points=1600)
    first, second = roll.x[:1600, :2], roll.x[1600:, :2]
    radius = np.linalg.norm(first, axis=1)
    assert radius[-1] == pytest.approx(0.5)
    assert np.allclose(np.diff(radius), 0.5 / 1600)
    turned = np.unwrap(np.arctan2(first[:, 1], first[:, 0]))
    assert (turned[-1] - turned[0]) / (2 * np.pi) == pytest.approx(2.25 * (1 - 1 / 1600))
    between = np.angle((second @ [1, 1j]) / (first @ [1, 1j]))
    assert np.allclose(between, 3.0)


def test_both_labels_are_learnable_from_the_plane_where_the_swap_is_correct() -> None:
    roll = swiss_roll(1.0, 0.0, points=160)
    below, above = roll.x[:160, :2], roll.x[160:, :2]
    assert np.array_equal(below, above)
    assert np.array_equal(roll.label[:160], roll.label[160:])
    assert np.bincount(roll.label).tolist() == [160, 160]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"correct": 0.3, "incorrect": 0.0}, "correct: got 0.3, expected a multiple of 1/8"),
        ({"correct": -0.125, "incorrect": 0.0}, "correct"),
        ({"correct": 0.5, "incorrect": 0.6}, r"incorrect: got 0.6.*\[0, 0.5\]"),
        ({"correct": 0.5, "incorrect": 0.001}, "incorrect: got 0.001"),
        ({"correct": 0.5, "incorrect": 0.5, "points": 100}, "points: got 100"),
    ],
)
def test_shares_that_do_not_fit_are_refused(arguments: dict[str, float], message: str) -> None:
    with pytest.raises(InputError, match=message):
        swiss_roll(**{"points": 160, **arguments})  # type: ignore[arg-type]
