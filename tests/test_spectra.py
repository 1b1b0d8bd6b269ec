"""Spectra along orbits: how many elements are enough, and what lies between the sampled ones."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.spatial.transform import Rotation

import orbical as ob
from orbical.errors import InputError
from orbical.nero import circle_bracket


def series(rng: np.random.Generator, degree: int, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Random trigonometric polynomials: coefficients of cosine and sine, `[count, degree + 1]`."""
    first, second = rng.normal(size=(2, count, degree + 1))
    return first, second


def at(coefficients: tuple[np.ndarray, np.ndarray], angle: np.ndarray) -> np.ndarray:
    waves = np.multiply.outer(np.arange(coefficients[0].shape[1]), angle)
    return coefficients[0] @ np.cos(waves) + coefficients[1] @ np.sin(waves)


FINE = np.linspace(0, 2 * np.pi, 5040, endpoint=False)


@pytest.mark.parametrize("elements", [5, 12, 25, 48])
def test_no_polynomial_leaves_the_bracket_of_its_samples(elements: int) -> None:
    rng = np.random.default_rng(elements)
    for degree in range(elements // 2 + elements % 2):
        found = series(rng, degree, 200)
        sampled, all_angles = at(found, FINE[:: 5040 // elements][:elements]), at(found, FINE)
        if 5040 % elements:
            sampled = at(found, 2 * np.pi * np.arange(elements) / elements)
        low, high, assumed = circle_bracket(sampled)
        known = assumed >= 0
        assert (assumed[known] <= degree).all()
        assert (low <= all_angles.min(1) + 1e-9)[known].all()
        assert (high >= all_angles.max(1) - 1e-9)[known].all()
        if 0 < 4 * degree <= elements:  # and it is tight where there are many samples
            span = np.ptp(all_angles, axis=1)
            assert ((high - low)[known] <= 1.6 * span[known]).all()


def test_the_factor_is_attained() -> None:
    """cos(m t) with samples as far from its maxima as they can be: K = 2 m + 1, shifted."""
    degree, elements = 3, 7
    angle = 2 * np.pi * np.arange(elements) / elements
    wave = np.cos(degree * (angle - np.pi / elements))
    low, high, assumed = circle_bracket(wave[None])
    factor = np.cos(np.pi * degree / elements)
    assert assumed.tolist() == [degree]
    middle, reach = (wave.max() + wave.min()) / 2, np.ptp(wave) / 2
    assert (low[0], high[0]) == pytest.approx((middle - reach / factor, middle + reach / factor))


def test_a_constant_is_its_own_bracket_and_fast_waves_or_gaps_have_none() -> None:
    values = np.stack([np.full(12, 0.3), (-1.0) ** np.arange(12)])
    values = np.append(values, [[np.nan] * 12], 0)
    low, high, degree = circle_bracket(values)
    assert (low[0], high[0]) == pytest.approx((0.3, 0.3))
    assert degree.tolist() == [0, -1, -1]
    assert np.isnan(low[1:]).all()


@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e12])
def test_brackets_have_the_unit_of_the_values(scale: float) -> None:
    values = at(series(np.random.default_rng(1), 2, 20), 2 * np.pi * np.arange(16) / 16)
    for part, expected in zip(circle_bracket(scale * values), circle_bracket(values), strict=True):
        assert part == pytest.approx(expected * (scale if expected.dtype.kind == "f" else 1))


def on_circle(values: np.ndarray) -> ob.Scan:
    images = torch.rand(len(values), 1, 4, 4)
    scan = ob.scan(
        lambda x: torch.rand(len(x), 2),
        (images, torch.zeros(len(values), dtype=torch.long)),
        group=f"rotations:{values.shape[1]}",
        task=ob.tasks.Classification(outputs="logits"),
        progress=False,
    )
    scan.arrays["score"][:] = values[None]
    return scan


@pytest.mark.filterwarnings("ignore")
def test_enough_elements_are_those_whose_means_are_right() -> None:
    """Power at degrees 3 and 8 alone: means over 1, 2, 4 and 8 elements, or 3, are wrong."""
    angle = 2 * np.pi * np.arange(24) / 24
    phase = np.random.default_rng(0).random((200, 2, 1)) * 2 * np.pi
    values = 0.5 + 0.1 * np.cos(3 * angle + phase[:, 0]) + 0.2 * np.cos(8 * angle + phase[:, 1])
    found = ob.nero.enough_elements(on_circle(values)).isel(model=0)
    power = found["power"].values
    assert power[[0, 3, 8]] == pytest.approx([0.25, 0.1**2 / 2, 0.2**2 / 2], rel=1e-5)
    assert power.sum() == pytest.approx(power[[0, 3, 8]].sum(), rel=1e-6)
    for number in (1, 2, 3, 4, 6, 8, 12):
        offsets = [values[:, start :: 24 // number].mean(1) for start in range(24 // number)]
        measured = np.sqrt(np.mean(np.square(np.array(offsets) - 0.5)))
        assert float(found["error"].sel(elements=number)) == pytest.approx(measured, abs=1e-4)
    assert int(found["degree_held"]) == 8
    assert int(found["enough"]) == 5  # divides neither 3 nor 8
    assert int(ob.nero.enough_elements(on_circle(values), tolerance=1.0)["enough"][0]) == 1


@pytest.mark.filterwarnings("ignore")
def test_a_spectrum_that_does_not_decay_needs_more_than_was_scanned() -> None:
    noise = np.random.default_rng(0).random((50, 12))
    assert int(ob.nero.enough_elements(on_circle(noise))["enough"][0]) == -1


def test_rotations_in_space_have_the_power_of_their_wigner_matrices() -> None:
    group = ob.groups.parse("so3_quadrature:6")
    rotations = group.linear("space")
    rng = np.random.default_rng(0)
    first, second = rng.normal(size=(2, 12, 3))
    line = np.einsum("ni,gij,nj->ng", first, rotations, second)  # degree 1
    square = line**2  # degrees 0, 1 and 2
    scan = ob.scan(
        lambda x: x.sum((1, 2))[:, None],
        (torch.rand(12, 2, 3), torch.rand(12, 1)),
        group=group,
        task=ob.tasks.Regression(ob.actions.Points()),
        progress=False,
    )
    scan.arrays["score"][:] = line[None]
    power = ob.nero.enough_elements(scan)["power"].values[0]
    expected = np.mean((first**2).sum(1) * (second**2).sum(1)) / 3
    assert power == pytest.approx([0, expected, 0, 0], abs=1e-5 * expected)
    scan.arrays["score"][:] = square[None]
    found = ob.nero.enough_elements(scan).isel(model=0)
    many = Rotation.random(20000, random_state=0).as_matrix()
    values = np.einsum("ni,gij,nj->ng", first, many, second) ** 2
    assert found["power"].values[0] == pytest.approx(np.mean(values.mean(1) ** 2), rel=0.05)
    assert found["power"].values.sum() == pytest.approx(np.mean(values**2), rel=0.1)
    assert int(found["degree_held"]) == 2
    assert int(found["enough"]) == len(ob.groups.so3_quadrature(2))


def test_other_groups_are_refused() -> None:
    x = torch.rand(6, 2, 3)
    task = ob.tasks.Regression(ob.actions.Points())
    scan = ob.scan(
        lambda x: x.sum((1, 2))[:, None], x, group="rotations3d:8", task=task, progress=False
    )
    with pytest.raises(InputError, match="scan: expected equally spaced rotations"):
        ob.nero.enough_elements(scan)
    images, labels = ob.datasets.digits()
    flips = ob.scan(
        lambda x: x.flatten(1)[:, :10],
        (images[:4], labels[:4]),
        group="flips",
        task="classification",
        progress=False,
    )
    with pytest.raises(InputError, match="scan: expected equally spaced rotations"):
        ob.nero.enough_elements(flips)


def test_a_single_rotation_is_refused() -> None:
    images, labels = ob.datasets.digits()
    scan = ob.scan(
        lambda x: x.flatten(1)[:, :10],
        (images[:4], labels[:4]),
        group="rotations:1",
        task="classification",
        progress=False,
    )
    with pytest.raises(InputError, match="scan: expected equally spaced rotations"):
        ob.nero.enough_elements(scan)
