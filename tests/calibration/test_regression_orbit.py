"""Regression measures along the orbit are the measures at each element, in its own frame."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

import orbical as ob
from orbical import calibration
from orbical.calibration import along_orbit
from orbical.calibration.orbit.regression_orbit import read_regression_orbit
from orbical.errors import InputError

ELEMENTS = 4


def inputs(count: int = 60, width: int = 2) -> torch.Tensor:
    return torch.randn(count, width, generator=torch.Generator().manual_seed(0))


def energy(x: torch.Tensor) -> torch.Tensor:
    return x.square().sum(-1)


def sure_of_x(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """A scalar prediction whose error and variance both depend on the frame."""
    return energy(x) + x[:, 0], x[:, 1].square() + 0.5


@pytest.fixture(scope="module")
def scalars(tmp_path_factory: pytest.TempPathFactory) -> ob.Scan:
    x = inputs()
    noise = torch.randn(len(x), generator=torch.Generator().manual_seed(1))
    return ob.scan(
        {"lopsided": sure_of_x, "plain": lambda x: (energy(x), torch.ones(len(x)))},
        (x, energy(x) + noise),
        group="cyclic:4",
        task=ob.tasks.Regression(ob.actions.Vectors(), uncertainty="variance"),
        out=tmp_path_factory.mktemp("orbit") / "scalars.zarr",
        batch_size=64,
        progress=False,
    )


def at_element(scan: ob.Scan, model: str, element: int) -> tuple[np.ndarray, ...]:
    """Mean, variance and truth of a scalar target, which does not move."""
    data = scan.data.sel(model=model).isel(element=element)
    mean, variance = data["mean"].values[:, 0], data["variance"].values[:, 0]
    return mean.astype(float), variance.astype(float), scan.data["target"].values[:, 0]


REGRESSION = [
    one.name for one in calibration.list_measures("regression") if one.name != "squared_error"
]


@pytest.mark.parametrize("name", REGRESSION)
def test_each_measure_is_itself_at_each_element(scalars: ob.Scan, name: str) -> None:
    found = along_orbit(scalars, name)
    assert found.dims == ("model", "element")
    function = getattr(calibration, name)
    for model in scalars.models:
        for element in range(ELEMENTS):
            given = at_element(scalars, model, element)
            expected = function(*(torch.as_tensor(part).double() for part in given))
            expected = float(getattr(expected, "error", expected))
            value = float(found.sel(model=model)[element])
            assert value == pytest.approx(expected, rel=1e-4, abs=1e-6)
    assert found.attrs["layout"] == "tiles"
    assert found.attrs["higher_is_better"] is False


def test_gence_carries_the_floor_of_a_calibrated_model(scalars: ob.Scan) -> None:
    found = along_orbit(scalars, "gence", interval=True, resamples=100)
    assert found.attrs["floor"] == pytest.approx(math.pi / 2 - 1)
    assert np.allclose(found["calibrated"], found.attrs["floor"], atol=0.15)
    assert along_orbit(scalars, "gence_sq").attrs["floor"] == 2
    assert "floor" not in along_orbit(scalars, "ence").attrs


@pytest.mark.parametrize("name", ["ence", "gence", "mahalanobis_calibration", "regression_esd"])
def test_intervals_along_the_orbit_are_those_at_each_element(scalars: ob.Scan, name: str) -> None:
    found = along_orbit(scalars, name, interval=True, resamples=400)
    alone = calibration.regression_interval(
        name, *(torch.as_tensor(part) for part in at_element(scalars, "lopsided", 1)), resamples=400
    )
    here = found.sel(model="lopsided")[1]
    assert float(here) == pytest.approx(float(alone.value), rel=1e-4)
    width = float(alone.high - alone.low)
    for end in ("low", "high", "calibrated"):
        assert float(here[end]) == pytest.approx(float(getattr(alone, end)), abs=0.25 * width)


def test_options_reach_the_measure(scalars: ob.Scan) -> None:
    few, many = (along_orbit(scalars, "ence", bins=bins) for bins in (1, 10))
    assert not np.allclose(few, many)
    coarse = along_orbit(scalars, "quantile_calibration", levels=3)
    assert not np.allclose(coarse, along_orbit(scalars, "quantile_calibration"))
    with pytest.raises(InputError, match="does not take levels"):
        along_orbit(scalars, "gence", levels=3)
    with pytest.raises(InputError, match="levels: expected an integer"):
        along_orbit(scalars, "mahalanobis_calibration", levels=0)


def test_a_function_takes_the_place_of_a_name(scalars: ob.Scan) -> None:
    by_function = along_orbit(scalars, calibration.ence)
    np.testing.assert_allclose(by_function, along_orbit(scalars, "ence"))
    np.testing.assert_allclose(
        along_orbit(scalars, calibration.gence), along_orbit(scalars, "gence")
    )


def test_samples_are_told_apart_by_a_coordinate(scalars: ob.Scan) -> None:
    data = scalars.data.assign_coords(half=("sample", np.arange(60) % 2))
    found = along_orbit(data, "gaussian_nll", by="half")
    assert found.dims == ("model", "half", "element")
    whole = along_orbit(scalars, "gaussian_nll")
    np.testing.assert_allclose(found.mean("half"), whole)


def test_unfinished_samples_and_models_without_variance_are_left_out(scalars: ob.Scan) -> None:
    data = scalars.data.copy()
    hidden = (np.arange(60) >= 40)[:, None, None]
    data["variance"] = data["variance"].where(~hidden)
    first = along_orbit(scalars.data.isel(sample=slice(40)), "uce")
    np.testing.assert_allclose(along_orbit(data, "uce"), first)
    data["variance"] = data["variance"].where(data["model"] != "plain")
    assert bool(along_orbit(data, "uce").sel(model="plain").isnull().all())


def frames(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """A vector prediction with a covariance that turns with it."""
    return 0.7 * x, 0.2 * torch.eye(2) + 0.3 * x[..., :, None] * x[..., None, :]


@pytest.fixture(scope="module")
def turning() -> ob.Scan:
    x = inputs()
    return ob.scan(
        frames,
        (x, x),
        group="rotations:5",
        task=ob.tasks.Regression(ob.actions.Vectors(), "vector", uncertainty="covariance"),
        progress=False,
    )


def test_the_truth_is_moved_along_with_vectors(turning: ob.Scan) -> None:
    angle = 2 * math.pi * 2 / 5
    turn = torch.tensor([[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]])
    x = inputs() @ turn.T
    mean, covariance = frames(x)
    for name in ("gence", "mahalanobis_calibration", "gaussian_nll", "regression_esd_normalized"):
        expected = getattr(calibration, name)(mean.double(), covariance.double(), x.double())
        expected = float(getattr(expected, "error", expected))
        found = along_orbit(turning, name)
        assert float(found[0, 2]) == pytest.approx(expected, rel=1e-4)


def test_the_mahalanobis_measure_is_flat_for_an_equivariant_model_and_gence_is_not(
    turning: ob.Scan,
) -> None:
    flat = along_orbit(turning, "mahalanobis_calibration").values
    assert np.ptp(flat) < 1e-6
    assert np.ptp(along_orbit(turning, "gence").values) > 1e-3


def test_one_target_measures_of_vectors_are_given_by_component(turning: ob.Scan) -> None:
    with pytest.raises(InputError, match="got ence, which takes one target, for 2 components"):
        along_orbit(turning, "ence")
    found = along_orbit(turning, "ence", by="component")
    assert found.dims == ("model", "component", "element")
    data = turning.data.isel(model=0, element=3)
    error, variance = data["error"].values[:, 1], data["covariance"].values[:, 1, 1]
    expected = float(calibration.ence(0.0 * error, variance, error))
    assert float(found[0, 1, 3]) == pytest.approx(expected, rel=1e-4)


def test_bleed_in_total_and_by_component() -> None:
    x = inputs(40, 3)

    def model(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return x, torch.stack([x[:, 0].abs(), 0 * x[:, 0] + 2, x[:, 1].square()], -1), 0.1 + 0 * x

    group = ob.groups.permutations(3)
    task = ob.tasks.Regression(ob.actions.Rows(), uncertainty="parts")
    scan = ob.scan(model, (x, x), group=group, task=task, progress=False)
    total = along_orbit(scan, "aleatoric_bleed", interval=True)
    apart = along_orbit(scan, "aleatoric_bleed", by="component")
    np.testing.assert_allclose(apart.sum("component"), total)
    identity = group.identity
    expected = calibration.aleatoric_bleed(model(x)[1])
    assert float(total[0, identity]) == pytest.approx(float(expected.total), rel=1e-5)
    np.testing.assert_allclose(apart[0, :, identity], expected.per_coordinate, rtol=1e-5)
    assert bool((total["low"] <= total).all() & (total <= total["high"]).all())
    assert bool((total["calibrated"] == 0).all())
    less = along_orbit(scan, "aleatoric_bleed", by="component", truth=2.0)
    assert float(less[0, 1, identity]) == pytest.approx(0, abs=1e-12)


def test_bleed_of_a_covariance_is_the_same_in_every_frame(turning: ob.Scan) -> None:
    total = along_orbit(turning, "aleatoric_bleed")
    assert np.ptp(total.values) < 1e-5
    expected = np.square(turning.data["covariance"].values[0, :, 0]).sum((1, 2)).mean()
    assert float(total[0, 0]) == pytest.approx(expected, rel=1e-5)
    apart = along_orbit(turning, "aleatoric_bleed", by="component")
    diagonal = np.square(turning.data["variance"].values[0, :, 0]).mean(0)
    np.testing.assert_allclose(apart[0, :, 0], diagonal, rtol=1e-5)
    less = along_orbit(turning, "aleatoric_bleed", truth=0.2)
    x = inputs().double()
    np.testing.assert_allclose(less.values, 0.09 * float(x.norm(dim=-1).pow(4).mean()), rtol=1e-5)
    with pytest.raises(InputError, match="truth: expected a variance >= 0"):
        along_orbit(turning, "aleatoric_bleed", truth=-1)


def test_points_are_samples_and_those_without_a_truth_are_left_out() -> None:
    x = torch.randn(6, 5, 3, generator=torch.Generator().manual_seed(0))
    truth = x.clone()
    truth[2, 1] = math.nan
    truth[4, 3:] = math.nan
    task = ob.tasks.Regression(ob.actions.Points(), "vector", True, uncertainty="variance")
    scan = ob.scan(
        lambda x: (0.8 * x, x.square().mean(-1) + 0.1),
        (x, truth),
        group=ob.groups.permutations(5, 7),
        task=task,
        progress=False,
    )
    kept = ~truth.isnan().any(-1)
    mean, variance = 0.8 * x[kept], x[kept].square().mean(-1, keepdim=True) + 0.1
    expected = float(calibration.gaussian_nll(mean, variance, x[kept]))
    np.testing.assert_allclose(along_orbit(scan, "gaussian_nll").values, expected, rtol=1e-5)
    error, spread, _ = read_regression_orbit(scan, 0).at(0)
    assert error.shape == (27, 3)
    assert spread.shape == (27, 1)


def test_what_a_scan_does_not_hold_is_named(scalars: ob.Scan) -> None:
    with pytest.raises(InputError, match="of mean and variance such as gence, got 'ece'"):
        along_orbit(scalars)
    with pytest.raises(InputError, match="by: unknown name"):
        along_orbit(scalars, "gence", by="label")
    with pytest.raises(InputError, match="aleatoric_bleed does not take bins"):
        along_orbit(scalars, "aleatoric_bleed", bins=3)
    x = inputs(10)
    task = ob.tasks.Regression(ob.actions.Vectors())
    bare = ob.scan(energy, (x, energy(x)), group="cyclic:4", task=task, progress=False)
    with pytest.raises(InputError, match="regression with uncertainty"):
        along_orbit(bare, "gence")
