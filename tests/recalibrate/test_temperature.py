"""Temperatures: the optimum of references on any logits, along orbits too."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import torch
from held_out import REAL, nll, outputs, real
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import cross_val_score
from torch import Tensor

import orbical as ob
from orbical.errors import InputError
from orbical.recalibrate import (
    OrbitTemperature,
    Temperature,
)


def best_temperature(logits: Tensor, labels: Tensor) -> tuple[float, float]:
    """Root of the slope in 1/T by Brent's method, and the NLL there, all in float64."""
    z, rows = logits.double().numpy(), np.arange(len(logits))
    z = z - z.max(1, keepdims=True)
    at_label = z[rows, labels.numpy()]

    def slope(inverse: float) -> float:
        mass = np.exp(z * inverse)
        return float(((mass * z).sum(1) / mass.sum(1) - at_label).mean())

    high = 1.0
    while slope(high) < 0:
        high *= 2
    inverse = optimize.brentq(slope, 0, high, xtol=1e-15, rtol=1e-15)
    value = (np.log(np.exp(z * inverse).sum(1)) - at_label * inverse).mean()
    return 1 / inverse, float(value)


@pytest.mark.parametrize("name", REAL)
def test_temperature_on_real_outputs_is_the_root_that_brent_finds(
    shared_data: Path, name: str
) -> None:
    probs, labels = real(shared_data, name)
    scaling = Temperature(outputs="probabilities").fit(probs, labels)
    temperature, lowest = best_temperature(probs.log(), labels)
    assert scaling.temperature_ == pytest.approx(temperature, rel=1e-6)
    value = nll(torch.softmax(probs.log().double() / scaling.temperature_, 1), labels)
    assert value - lowest < 1e-12


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    size=st.integers(20, 300),
    classes=st.integers(2, 8),
    scale=st.floats(1e-4, 1e4),
    dtype=st.sampled_from([torch.float64, torch.float32]),
)
def test_temperature_is_optimal_at_any_scale_of_the_logits(
    seed: int, size: int, classes: int, scale: float, dtype: torch.dtype
) -> None:
    logits, labels = outputs(size, classes, seed=seed)
    logits = (logits * scale).to(dtype)
    scaling = Temperature().fit(logits, labels)
    if scaling.temperature_ == 0:
        assert bool((logits.argmax(1) == labels).all())
        return
    if scaling.temperature_ == math.inf:
        centered = logits.double() - logits.double().mean(1, keepdim=True)
        assert centered.gather(1, labels[:, None]).mean() <= 0
        return
    temperature, lowest = best_temperature(logits, labels)
    assert nll(torch.softmax(logits.double() / scaling.temperature_, 1), labels) - lowest < 1e-12
    assert scaling.temperature_ == pytest.approx(temperature, rel=1e-4)


def test_temperature_of_many_rows_starts_from_a_subset_and_ends_at_the_optimum() -> None:
    logits, labels = outputs(30_000, 5)
    order = labels.argsort()  # sorted by class: the subset must not be the first rows
    scaling = Temperature().fit(logits[order], labels[order])
    assert scaling.temperature_ == pytest.approx(best_temperature(logits, labels)[0], rel=1e-7)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_lower_precision_is_fitted_and_not_passed_through(dtype: torch.dtype) -> None:
    logits, labels = outputs(2000)
    logits = logits.to(dtype)
    scaling = Temperature().fit(logits, labels)
    assert scaling.temperature_ == pytest.approx(
        best_temperature(logits.double(), labels)[0], rel=1e-5
    )
    assert scaling.predict_proba(logits).dtype == torch.float32
    assert scaling.temperature_ > 1.5


def test_logits_and_their_probabilities_give_one_temperature() -> None:
    logits, labels = outputs()
    one = Temperature().fit(logits, labels)
    two = Temperature(outputs="probabilities").fit(torch.softmax(logits, 1), labels)
    assert one.temperature_ == pytest.approx(two.temperature_, rel=1e-7)
    torch.testing.assert_close(
        one.predict_proba(logits), two.predict_proba(torch.softmax(logits, 1))
    )


def test_temperature_changes_no_prediction() -> None:
    logits, labels = outputs()
    probs = Temperature().fit(logits, labels).predict_proba(logits)
    assert torch.equal(probs.argmax(1), logits.argmax(1))


def test_a_probability_of_zero_is_the_smallest_number() -> None:
    probs = torch.tensor([[1.0, 0.0], [0.9, 0.1], [0.4, 0.6], [1.0, 0.0]])
    scaling = Temperature(outputs="probabilities").fit(probs, [0, 0, 1, 1])
    assert torch.isfinite(scaling.predict_proba(probs)).all()


def test_data_without_an_optimal_temperature_are_fitted_to_the_limit_with_a_warning() -> None:
    logits = torch.tensor([[2.0, 0.0], [0.0, 1.0], [3.0, 1.0]])
    with pytest.warns(ConvergenceWarning, match="y: expected some errors.*the best temperature"):
        sharp = Temperature().fit(logits, [0, 1, 0])
    assert sharp.temperature_ == 0
    given_ = torch.tensor([[2.0, 0.0], [1.0, 1.0]])
    assert sharp.predict_proba(given_).tolist() == [[1, 0], [0.5, 0.5]]
    with pytest.warns(ConvergenceWarning, match="the best temperature is infinite"):
        against = Temperature().fit(logits, [1, 0, 1])
    torch.testing.assert_close(against.predict_proba(logits), torch.full((3, 2), 0.5))
    with pytest.raises(InputError, match="got rows of equal ones"):
        Temperature().fit(torch.ones(5, 3), [0, 1, 2, 0, 0])


def test_cross_validation_on_data_without_errors_is_finite() -> None:
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(60, 3))
    with pytest.warns(ConvergenceWarning):
        scores = cross_val_score(Temperature(), logits, logits.argmax(1), scoring="neg_log_loss")
    assert np.isfinite(scores).all()


def test_probabilities_passed_as_logits_are_warned_of_once_by_the_name_of_the_argument() -> None:
    probs = torch.softmax(torch.randn(20, 3, generator=torch.Generator().manual_seed(0)), -1)
    with pytest.warns(UserWarning, match="^X: expected scores before the softmax") as caught:
        Temperature().fit(probs, torch.arange(20) % 3).predict_proba(probs)
    assert len([one for one in caught if "before the softmax" in str(one.message)]) == 1


def test_one_label_in_all_samples_is_no_obstacle_to_a_temperature() -> None:
    logits = torch.tensor([[2.0, 0.0], [2.0, 0.0], [0.0, 2.0]])
    scaling = Temperature().fit(logits, [0, 0, 0])
    torch.testing.assert_close(
        scaling.predict_proba(logits)[0], torch.tensor([2 / 3, 1 / 3]), atol=1e-6, rtol=0
    )


def test_orbit_temperature_is_the_weighted_optimum() -> None:
    logits, labels = outputs(240)
    orbit = torch.stack([logits, 0.3 * logits, logits.flip(1)], dim=1)
    weights = torch.tensor([0.5, 0.3, 0.2])
    scaling = OrbitTemperature().fit(orbit, labels, element_weight=weights)
    target = labels[:, None].expand(-1, 3)

    def loss(inverse: float) -> float:
        each = torch.log_softmax(orbit * inverse, -1).gather(-1, target[..., None])[..., 0]
        return -(each.mean(0) * weights.double()).sum().item()

    found = optimize.minimize_scalar(loss, bounds=(1e-3, 10), method="bounded")
    assert loss(1 / scaling.temperature_) <= found.fun + 1e-12


def test_orbit_temperature_of_equal_weights_is_the_temperature_of_all_rows() -> None:
    logits, labels = outputs(300)
    orbit = logits.view(100, 3, 4)
    same = labels.view(100, 3)[:, 0]
    whole = Temperature().fit(logits, same.repeat_interleave(3))
    for weights in (None, [2.0, 2.0, 2.0]):
        scaling = OrbitTemperature().fit(orbit, same, element_weight=weights)
        assert scaling.temperature_ == pytest.approx(whole.temperature_, rel=1e-7)


def test_one_orbit_temperature_serves_positions_that_the_identity_does_not_know() -> None:
    """Sure and right at the identity, as sure and less right elsewhere."""
    generator = torch.Generator().manual_seed(0)
    labels = torch.randint(0, 3, (2000,), generator=generator)
    right = torch.nn.functional.one_hot(labels, 3).double() * 4
    wrong = torch.nn.functional.one_hot((labels + 1) % 3, 3).double() * 4
    chance = torch.rand(2000, 4, 1, generator=generator)
    accuracy = torch.tensor([0.97, 0.6, 0.6, 0.6])[None, :, None]
    orbit = torch.where(chance < accuracy, right[:, None], wrong[:, None])
    identity = Temperature().fit(orbit[:, 0], labels)
    whole = OrbitTemperature().fit(orbit, labels)
    everywhere = labels[:, None].expand(-1, 4)
    assert nll(whole.predict_proba(orbit), everywhere) < nll(
        identity.predict_proba(orbit), everywhere
    )


def test_orbit_temperature_refuses_what_is_no_orbit() -> None:
    logits, labels = outputs(30)
    with pytest.raises(InputError, match=r"X: expected shape \[N, K, C\]"):
        OrbitTemperature().fit(logits, labels)
    with pytest.raises(InputError, match=r"element_weight: expected shape \(3,\)"):
        OrbitTemperature().fit(logits.view(10, 3, 4), labels[:10], element_weight=[1.0])
    with pytest.raises(InputError, match="element_weight: expected finite"):
        OrbitTemperature().fit(logits.view(10, 3, 4), labels[:10], element_weight=[1.0, -1.0, 1.0])


def test_a_scan_gives_its_orbits_and_the_weights_of_its_group() -> None:
    torch.manual_seed(0)
    models = {
        name: torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 3))
        for name in ("plain", "other")
    }
    images, labels = torch.rand(40, 1, 8, 8), torch.randint(0, 3, (40,))
    given = {"group": ob.groups.scales(0.8, 1.25, 5), "task": ob.tasks.Classification()}
    with torch.no_grad():  # a network that favors the labels, so that a temperature exists
        labels = models["other"](images).argmax(1).where(torch.rand(40) < 0.6, labels)
    scan = ob.scan(models, (images, labels), keep="probabilities", progress=False, **given)
    scaling = OrbitTemperature.from_scan(scan, model="other")
    direct = OrbitTemperature(outputs="probabilities").fit(
        scan.data["probabilities"].sel(model="other").values,
        labels,
        element_weight=given["group"].weights,
    )
    assert scaling.temperature_ == direct.temperature_
    with pytest.raises(InputError, match="model: expected one of"):
        OrbitTemperature.from_scan(scan)
    with pytest.raises(InputError, match="model: unknown name 'othr'; did you mean 'other'"):
        OrbitTemperature.from_scan(scan, model="othr")
    bare = ob.scan(models, (images, labels), progress=False, **given)
    with pytest.raises(InputError, match="keep='probabilities'"):
        OrbitTemperature.from_scan(bare, model="plain")


@pytest.mark.peers
def test_netcal_agrees_in_float64_and_does_nothing_in_float32() -> None:
    netcal = pytest.importorskip("netcal.scaling")
    logits, labels = outputs(3000)
    ours = Temperature().fit(logits, labels).temperature_
    found = []
    for dtype in (torch.float64, torch.float32):
        probs = torch.softmax(logits, 1).to(dtype).numpy()
        theirs = netcal.TemperatureScaling()
        theirs.fit(probs, labels.numpy())
        found.append(1 / float(np.ravel(theirs._sites["weights"]["values"])[0]))
    assert found[0] == pytest.approx(ours, rel=1e-4)
    assert found[1] == pytest.approx(1.0, abs=1e-6)
