"""Recalibration against scipy's optimisers, scikit-learn, closed forms and real outputs."""

from __future__ import annotations

import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize
from sklearn.isotonic import IsotonicRegression
from torch import Tensor

import orbical as ob
from orbical.errors import InputError, StoreError
from orbical.recalibrate import (
    Calibrator,
    HistogramBinning,
    Isotonic,
    MatrixScaling,
    OrbitTemperature,
    Temperature,
    VectorScaling,
    load,
)
from orbical.recalibrate.base import NotFitted

REAL = [
    "lenet-5-cifar-10",
    "wideresnet-16-4-cifar-10",
    "lenet-5-cifar-100",
    "densenet-bc-100-cifar-100",
]
ALL: list[Calibrator] = [
    Temperature(),
    VectorScaling(),
    VectorScaling(penalty=0.0),
    MatrixScaling(),
    Isotonic(),
    Isotonic(reduce="classes"),
    HistogramBinning(),
    HistogramBinning(bins=5, reduce="classes"),
]


def outputs(
    size: int = 400, classes: int = 4, temperature: float = 2.0, seed: int = 0
) -> tuple[Tensor, Tensor]:
    """Logits whose labels are drawn from `softmax(logits / temperature)`."""
    generator = torch.Generator().manual_seed(seed)
    logits = 3 * torch.randn(size, classes, generator=generator, dtype=torch.float64)
    probs = torch.softmax(logits / temperature, dim=1)
    return logits, torch.multinomial(probs, 1, generator=generator)[:, 0]


def real(folder: Path, name: str, size: int | None = None) -> tuple[Tensor, Tensor]:
    with np.load(folder / "logits" / f"{name}.npz") as file:
        probs, labels = file["probs"][:size], file["labels"][:size].astype(np.int64)
    return torch.from_numpy(probs), torch.from_numpy(labels)


def nll(probs: Tensor, labels: Tensor) -> float:
    return -probs.double().gather(-1, labels[..., None]).log().mean().item()


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
    scaling = Temperature().fit(probs=probs, labels=labels)
    temperature, lowest = best_temperature(probs.log(), labels)
    assert scaling.temperature_.item() == pytest.approx(temperature, rel=1e-6)
    value = nll(torch.softmax(probs.log().double() / scaling.temperature_, 1), labels)
    assert value - lowest < 1e-12


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
    try:
        scaling = Temperature().fit(logits=logits, labels=labels)
    except InputError:
        centred = logits.double() - logits.double().mean(1, keepdim=True)
        favoured = centred.gather(1, labels[:, None]).mean() > 0
        perfect = bool((logits.argmax(1) == labels).all())
        assert perfect or not favoured
        return
    temperature, lowest = best_temperature(logits, labels)
    assert nll(torch.softmax(logits.double() / scaling.temperature_, 1), labels) - lowest < 1e-12
    assert scaling.temperature_.item() == pytest.approx(temperature, rel=1e-4)


def test_temperature_of_many_rows_starts_from_a_subset_and_ends_at_the_optimum() -> None:
    logits, labels = outputs(30_000, 5)
    order = labels.argsort()  # sorted by class: the subset must not be the first rows
    scaling = Temperature().fit(logits=logits[order], labels=labels[order])
    assert scaling.temperature_.item() == pytest.approx(
        best_temperature(logits, labels)[0], rel=1e-7
    )


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_lower_precision_is_fitted_and_not_passed_through(dtype: torch.dtype) -> None:
    logits, labels = outputs(2000)
    logits = logits.to(dtype)
    scaling = Temperature().fit(logits=logits, labels=labels)
    assert scaling.temperature_.item() == pytest.approx(
        best_temperature(logits.double(), labels)[0], rel=1e-5
    )
    assert scaling.transform(logits=logits).dtype == torch.float32
    assert scaling.temperature_.item() > 1.5


def test_logits_and_their_probabilities_give_one_temperature() -> None:
    logits, labels = outputs()
    one = Temperature().fit(logits=logits, labels=labels)
    two = Temperature().fit(probs=torch.softmax(logits, 1), labels=labels)
    torch.testing.assert_close(one.temperature_, two.temperature_)
    torch.testing.assert_close(
        one.transform(logits=logits), two.transform(probs=torch.softmax(logits, 1))
    )


def test_temperature_changes_no_prediction() -> None:
    logits, labels = outputs()
    probs = Temperature().fit(logits=logits, labels=labels).transform(logits=logits)
    assert torch.equal(probs.argmax(1), logits.argmax(1))


def test_a_probability_of_zero_is_the_smallest_number() -> None:
    probs = torch.tensor([[1.0, 0.0], [0.9, 0.1], [0.4, 0.6], [1.0, 0.0]])
    scaling = Temperature().fit(probs=probs, labels=[0, 0, 1, 1])
    assert torch.isfinite(scaling.transform(probs=probs)).all()


def test_data_without_an_optimal_temperature_are_refused_with_the_reason() -> None:
    logits = torch.tensor([[2.0, 0.0], [0.0, 1.0], [3.0, 1.0]])
    with pytest.raises(InputError, match="labels: every sample has its label at the largest"):
        Temperature().fit(logits=logits, labels=[0, 1, 0])
    with pytest.raises(InputError, match="no finite positive temperature"):
        Temperature().fit(logits=logits, labels=[1, 0, 1])
    with pytest.raises(InputError, match="equal in each row"):
        Temperature().fit(logits=torch.ones(5, 3), labels=[0, 1, 2, 0, 0])


def test_one_label_in_all_samples_is_no_obstacle_to_a_temperature() -> None:
    logits = torch.tensor([[2.0, 0.0], [2.0, 0.0], [0.0, 2.0]])
    scaling = Temperature().fit(logits=logits, labels=[0, 0, 0])
    torch.testing.assert_close(
        scaling.transform(logits=logits)[0], torch.tensor([2 / 3, 1 / 3]), atol=1e-6, rtol=0
    )


@pytest.mark.parametrize("calibrator", ALL, ids=repr)
def test_every_calibrator_returns_probabilities_and_survives_its_file(
    calibrator: Calibrator, tmp_path: Path
) -> None:
    logits, labels = outputs(600)
    calibrator.fit(logits=logits, labels=labels)
    probs = calibrator.transform(logits=logits)
    assert probs.shape == logits.shape
    assert (probs >= 0).all()
    torch.testing.assert_close(probs.sum(1), torch.ones(600, dtype=probs.dtype))
    folded = calibrator.transform(logits=logits.view(3, 200, 4))
    torch.testing.assert_close(folded.view(600, 4), probs)
    torch.testing.assert_close(calibrator.transform(logits=logits[0]), probs[0])
    calibrator.save(tmp_path / "file.safetensors")
    again = load(tmp_path / "file.safetensors")
    assert repr(again) == repr(calibrator)
    assert torch.equal(again.transform(logits=logits), probs)


@pytest.mark.parametrize("calibrator", ALL, ids=repr)
def test_every_calibrator_refuses_bad_input_by_name(calibrator: Calibrator) -> None:
    logits, labels = outputs(60)
    probs = torch.softmax(logits, 1)
    bad = logits.clone()
    bad[3, 1] = math.nan
    cases = [
        ({"logits": bad, "labels": labels}, "logits: contains NaN"),
        ({"logits": bad.nan_to_num(math.inf), "labels": labels}, "logits: contains NaN or inf"),
        ({"probs": logits, "labels": labels}, "probs: "),
        ({"probs": probs * 0.5, "labels": labels}, "probs: a row sums"),
        ({"labels": labels}, "exactly one of the two, got neither"),
        ({"logits": logits, "probs": probs, "labels": labels}, "exactly one of the two, got both"),
        ({"logits": logits, "labels": labels[:-1]}, "labels: expected shape"),
        ({"logits": logits, "labels": labels + 1}, "labels: values span"),
        ({"logits": logits, "labels": labels.double()}, "labels: expected integer"),
        ({"logits": logits[:, :1], "labels": labels * 0}, "logits: expected .* C >= 2"),
        ({"logits": logits[0], "labels": labels[:1]}, "logits, probs: expected shape"),
        ({"logits": logits.long(), "labels": labels}, "logits: expected floating-point"),
    ]
    for arguments, message in cases:
        with pytest.raises(InputError, match=message):
            type(calibrator)(**calibrator.parameters()).fit(**arguments)
    with pytest.raises(NotFitted, match=r"call fit\("):
        type(calibrator)(**calibrator.parameters()).transform(logits=logits)


@pytest.mark.parametrize("calibrator", ALL[1:], ids=repr)
def test_another_number_of_classes_is_refused(calibrator: Calibrator) -> None:
    logits, labels = outputs(60)
    calibrator.fit(logits=logits, labels=labels)
    with pytest.raises(InputError, match="expected 4 classes, as fitted, got 3"):
        calibrator.transform(logits=logits[:, :3])


def reference_scaling(
    logits: Tensor, labels: Tensor, penalty: float = 0.0
) -> tuple[np.ndarray, float]:
    """Vector scaling by scipy's BFGS with the gradient of autograd."""
    classes = logits.shape[1]
    centred = logits - logits.mean(1, keepdim=True)
    identity = torch.cat([torch.ones(classes), torch.zeros(classes)]).double()

    def objective(flat: np.ndarray) -> tuple[float, np.ndarray]:
        parameters = torch.tensor(flat, requires_grad=True)
        scale, shift = parameters.view(2, classes)
        loss = torch.nn.functional.cross_entropy(centred * scale + shift, labels)
        loss = loss + penalty / classes * (parameters - identity).square().sum()
        loss.backward()
        return loss.item(), parameters.grad.numpy()

    found = optimize.minimize(objective, identity.numpy(), jac=True, method="BFGS", tol=1e-10)
    return found.x, found.fun


@pytest.mark.parametrize("penalty", [0.0, 0.05])
@pytest.mark.parametrize("name", REAL[:2])
def test_vector_scaling_on_real_outputs_is_the_optimum_of_bfgs(
    shared_data: Path, name: str, penalty: float
) -> None:
    probs, labels = real(shared_data, name, 3000)
    scaling = VectorScaling(penalty=penalty).fit(probs=probs, labels=labels)
    found, lowest = reference_scaling(probs.double().log(), labels, penalty)
    value = nll(scaling.transform(probs=probs.double()), labels)
    held = ((scaling.scale_ - 1).square().sum() + scaling.shift_.square().sum()).item()
    assert value + penalty / 10 * held == pytest.approx(lowest, abs=1e-6)
    np.testing.assert_allclose(scaling.scale_.numpy(), found[:10], atol=1e-3)
    np.testing.assert_allclose(scaling.shift_.numpy(), found[10:] - found[10:].mean(), atol=2e-3)


def test_vector_scaling_recovers_the_scales_that_made_the_labels() -> None:
    generator = torch.Generator().manual_seed(0)
    logits = 2 * torch.randn(60_000, 3, generator=generator, dtype=torch.float64)
    logits = logits - logits.mean(1, keepdim=True)
    scale, shift = torch.tensor([0.5, 1.0, 1.5]), torch.tensor([0.4, -0.1, -0.3])
    labels = torch.multinomial(torch.softmax(logits * scale + shift, 1), 1, generator=generator)
    scaling = VectorScaling(penalty=0.0).fit(logits=logits, labels=labels[:, 0])
    torch.testing.assert_close(scaling.scale_.float(), scale, atol=0.05, rtol=0)
    torch.testing.assert_close(scaling.shift_.float(), shift, atol=0.05, rtol=0)


@pytest.mark.parametrize(
    "penalties", [(0.0, 0.0, 0.0), (1.0, 0.1, 0.0), (1000.0, 10.0, 0.0), (1.0, 1.0, 1.0)]
)
def test_matrix_scaling_satisfies_the_optimality_condition(
    penalties: tuple[float, float, float],
) -> None:
    off_diagonal, intercept, diagonal = penalties
    logits, labels = outputs(1500, 4)
    scaling = MatrixScaling(*penalties).fit(logits=logits, labels=labels)
    weight = scaling.weight_.clone().requires_grad_()
    shift = scaling.shift_.clone().requires_grad_()
    centred = logits - logits.mean(1, keepdim=True)
    loss = torch.nn.functional.cross_entropy(centred @ weight.T + shift, labels)
    off = weight - torch.diag(weight.diag())
    loss = loss + off_diagonal / 12 * off.square().sum() + intercept / 4 * shift.square().sum()
    loss = loss + diagonal / 4 * (weight.diag() - 1).square().sum()
    loss.backward()
    assert weight.grad.abs().max() < 1e-5
    assert shift.grad.abs().max() < 1e-5


def test_matrix_scaling_nests_vector_scaling_and_temperature() -> None:
    logits, labels = outputs(2000, 3)
    losses = [
        nll(calibrator.fit(logits=logits, labels=labels).transform(logits=logits), labels)
        for calibrator in (MatrixScaling(0.0, 0.0, 0.0), VectorScaling(penalty=0.0), Temperature())
    ]
    assert losses[0] <= losses[1] + 1e-12 <= losses[2] + 2e-12


def test_logits_and_their_probabilities_are_mapped_alike_by_linear_scalings() -> None:
    logits, labels = outputs(500)
    probs = torch.softmax(logits, 1)
    for calibrator in (VectorScaling(), MatrixScaling()):
        one = calibrator.fit(logits=logits, labels=labels).transform(logits=logits)
        two = calibrator.fit(probs=probs, labels=labels).transform(probs=probs)
        torch.testing.assert_close(one, two, atol=1e-6, rtol=0)


def test_linear_scalings_refuse_data_without_an_optimum() -> None:
    logits = torch.tensor([[2.0, 0.0], [0.0, 1.0], [3.0, 1.0], [0.0, 4.0]])
    for calibrator in (
        VectorScaling(penalty=0.0),
        MatrixScaling(diagonal=0.0),
        MatrixScaling(0.0, 0.0, 0.0),
    ):
        with pytest.raises(InputError, match="separates some classes"):
            calibrator.fit(logits=logits, labels=[0, 1, 0, 1])
    with pytest.raises(InputError, match="labels: 1 of 2 classes have no sample"):
        VectorScaling(penalty=0.0).fit(logits=logits, labels=[0, 0, 0, 0])
    with pytest.raises(InputError, match="labels: 1 of 2 classes have no sample"):
        MatrixScaling(intercept=0.0).fit(logits=logits, labels=[0, 0, 0, 0])
    shifted = logits + torch.tensor([0.0, 5.0])  # separable, though not as the logits stand
    with pytest.raises(InputError, match="separates some classes"):
        VectorScaling(penalty=0.0).fit(logits=shifted, labels=[0, 1, 0, 1])
    for calibrator in (VectorScaling(), MatrixScaling(intercept=0.01)):
        single = calibrator.fit(logits=logits, labels=[0, 0, 0, 0]).transform(logits=logits)
        assert (single[:, 0] > 0.5).all()
    with pytest.raises(InputError, match="penalty: expected a finite number"):
        VectorScaling(penalty=-1.0)
    with pytest.raises(InputError, match="off_diagonal: expected a finite number"):
        MatrixScaling(off_diagonal=math.inf)


@pytest.mark.parametrize(
    "calibrator",
    [VectorScaling(penalty=0.0), MatrixScaling(0.0, 0.0, 0.0), MatrixScaling(diagonal=0.0)],
)
def test_one_class_told_apart_without_error_is_refused_unless_penalised(
    calibrator: Calibrator,
) -> None:
    logits, labels = outputs(400, 3)
    labels = torch.where(labels == 2, 0, labels)
    logits[:, 2] -= 12
    logits[300:, 2] += 24
    labels[300:] = 2
    with pytest.raises(InputError, match="separates some classes"):
        calibrator.fit(logits=logits, labels=labels)
    for penalised in (VectorScaling(), MatrixScaling()):
        probs = penalised.fit(logits=logits, labels=labels).transform(logits=logits)
        assert nll(probs, labels) < nll(torch.softmax(logits, 1), labels)


def test_isotonic_is_scikit_learns_map_of_the_top_label(shared_data: Path) -> None:
    probs, labels = real(shared_data, "wideresnet-16-4-cifar-10", 4000)
    fit, rest = slice(0, 2000), slice(2000, None)
    confidence, predicted = probs.double().max(1)
    reference = IsotonicRegression(y_min=0, y_max=1, out_of_bounds="clip").fit(
        confidence[fit].numpy(), (predicted == labels)[fit].double().numpy()
    )
    isotonic = Isotonic().fit(probs=probs[fit], labels=labels[fit])
    calibrated = isotonic.transform(probs=probs[rest].double())
    top = calibrated.gather(1, predicted[rest, None])[:, 0]
    np.testing.assert_allclose(top.numpy(), reference.predict(confidence[rest]), atol=1e-9)
    others = probs[rest].double().scatter(1, predicted[rest, None], 0.0)
    expected = others / others.sum(1, keepdim=True) * (1 - top)[:, None]
    torch.testing.assert_close(
        calibrated.scatter(1, predicted[rest, None], 0.0), expected, atol=1e-6, rtol=0
    )


def test_classwise_isotonic_is_scikit_learns_map_of_each_class_normalised() -> None:
    logits, labels = outputs(500, 3)
    probs = torch.softmax(logits, 1)
    columns = [
        IsotonicRegression(y_min=0, y_max=1, out_of_bounds="clip")
        .fit(probs[:, k].numpy(), (labels == k).double().numpy())
        .predict(probs[:, k].numpy())
        for k in range(3)
    ]
    expected = np.stack(columns, 1)
    expected = expected / expected.sum(1, keepdims=True)
    calibrated = Isotonic(reduce="classes").fit(probs=probs, labels=labels).transform(probs=probs)
    np.testing.assert_allclose(calibrated.numpy(), expected, atol=1e-9)


def test_histogram_binning_answers_with_the_share_of_hits_in_the_bin() -> None:
    logits, labels = outputs(300, 4)
    probs = torch.softmax(logits, 1)
    confidence, predicted = probs.max(1)
    binning = HistogramBinning(bins=10).fit(probs=probs, labels=labels)
    calibrated = binning.transform(probs=probs).gather(1, predicted[:, None])[:, 0]
    for group in np.array_split(confidence.argsort().numpy(), 10):
        hits = (predicted == labels)[group].double().mean()
        torch.testing.assert_close(calibrated[group], hits.expand(len(group)).to(calibrated))


@settings(max_examples=80, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    size=st.integers(1, 40),
    classes=st.integers(2, 4),
    levels=st.integers(1, 10),
    reduce=st.sampled_from(["top", "classes"]),
    dtype=st.sampled_from([torch.float64, torch.float32, torch.float16]),
)
def test_maps_of_tied_and_saturated_confidences_stay_probabilities(
    seed: int, size: int, classes: int, levels: int, reduce: str, dtype: torch.dtype
) -> None:
    rng = np.random.default_rng(seed)
    counts = torch.as_tensor(rng.multinomial(levels, np.ones(classes) / classes, size=size))
    probs = (counts.double() / levels).to(dtype)
    labels = torch.as_tensor(rng.integers(0, classes, size))
    for calibrator in (Isotonic(reduce=reduce), HistogramBinning(bins=4, reduce=reduce)):
        mapped = calibrator.fit(probs=probs, labels=labels).transform(probs=probs)
        assert (mapped >= 0).all()
        torch.testing.assert_close(
            mapped.sum(1).double(), torch.ones(size).double(), atol=1e-5, rtol=0
        )
        torch.testing.assert_close(calibrator.transform(probs=probs.flip(0)), mapped.flip(0))
    top, predicted = probs.max(1)
    if reduce == "top":
        isotonic = Isotonic().fit(probs=probs, labels=labels).transform(probs=probs)
        confidence = isotonic.gather(1, predicted[:, None])[top.argsort(), 0]
        assert (confidence.diff() >= -1e-6).all()
        hits = (predicted == labels).double().mean()
        torch.testing.assert_close(confidence.double().mean(), hits, atol=1e-5, rtol=0)


def test_constant_outputs_are_mapped_to_their_accuracy() -> None:
    probs = torch.full((8, 2), 0.5)
    for calibrator in (Isotonic(), HistogramBinning(), Isotonic("classes")):
        calibrator.fit(probs=probs, labels=[0, 0, 0, 0, 0, 0, 1, 1])
        torch.testing.assert_close(calibrator.transform(probs=probs)[0], torch.tensor([0.75, 0.25]))


def test_a_certain_row_shares_what_is_left_evenly() -> None:
    probs = torch.tensor([[1.0, 0.0, 0.0], [1.0, 0.0, 0.0], [1.0, 0.0, 0.0], [1.0, 0.0, 0.0]])
    calibrated = Isotonic().fit(probs=probs, labels=[0, 0, 0, 1]).transform(probs=probs)
    torch.testing.assert_close(calibrated[0], torch.tensor([0.75, 0.125, 0.125]))


def test_a_single_class_is_learnt_by_maps_of_each_class() -> None:
    probs = torch.tensor([[0.9, 0.1], [0.2, 0.8]])
    for calibrator in (Isotonic("classes"), HistogramBinning(reduce="classes")):
        calibrator.fit(probs=probs, labels=[0, 0])
        torch.testing.assert_close(calibrator.transform(probs=probs)[1], torch.tensor([1.0, 0.0]))


def test_wrong_parameters_are_refused() -> None:
    with pytest.raises(InputError, match="reduce: unknown name 'class'; did you mean 'classes'"):
        Isotonic(reduce="class")
    with pytest.raises(InputError, match="bins: expected a whole number"):
        HistogramBinning(bins=0)


def test_orbit_temperature_is_the_weighted_optimum() -> None:
    logits, labels = outputs(240)
    orbit = torch.stack([logits, 0.3 * logits, logits.flip(1)], dim=1)
    weights = torch.tensor([0.5, 0.3, 0.2])
    scaling = OrbitTemperature().fit(logits=orbit, labels=labels, weights=weights)
    target = labels[:, None].expand(-1, 3)

    def loss(inverse: float) -> float:
        each = torch.log_softmax(orbit * inverse, -1).gather(-1, target[..., None])[..., 0]
        return -(each.mean(0) * weights.double()).sum().item()

    found = optimize.minimize_scalar(loss, bounds=(1e-3, 10), method="bounded")
    assert loss(1 / scaling.temperature_.item()) <= found.fun + 1e-12


def test_orbit_temperature_of_equal_weights_is_the_temperature_of_all_rows() -> None:
    logits, labels = outputs(300)
    orbit = logits.view(100, 3, 4)
    same = labels.view(100, 3)[:, 0]
    whole = Temperature().fit(logits=logits, labels=same.repeat_interleave(3))
    for weights in (None, [2.0, 2.0, 2.0]):
        scaling = OrbitTemperature().fit(logits=orbit, labels=same, weights=weights)
        torch.testing.assert_close(scaling.temperature_, whole.temperature_)


def test_one_orbit_temperature_serves_positions_that_the_identity_does_not_know() -> None:
    """Sure and right at the identity, as sure and less right elsewhere."""
    generator = torch.Generator().manual_seed(0)
    labels = torch.randint(0, 3, (2000,), generator=generator)
    right = torch.nn.functional.one_hot(labels, 3).double() * 4
    wrong = torch.nn.functional.one_hot((labels + 1) % 3, 3).double() * 4
    chance = torch.rand(2000, 4, 1, generator=generator)
    accuracy = torch.tensor([0.97, 0.6, 0.6, 0.6])[None, :, None]
    orbit = torch.where(chance < accuracy, right[:, None], wrong[:, None])
    identity = Temperature().fit(logits=orbit[:, 0], labels=labels)
    whole = OrbitTemperature().fit(logits=orbit, labels=labels)
    everywhere = labels[:, None].expand(-1, 4)
    assert nll(whole.transform(logits=orbit), everywhere) < nll(
        identity.transform(logits=orbit), everywhere
    )


def test_orbit_temperature_refuses_what_is_no_orbit() -> None:
    logits, labels = outputs(30)
    with pytest.raises(InputError, match=r"expected \[N, K, C\]"):
        OrbitTemperature().fit(logits=logits, labels=labels)
    with pytest.raises(InputError, match=r"weights: expected shape \(3,\)"):
        OrbitTemperature().fit(logits=logits.view(10, 3, 4), labels=labels[:10], weights=[1.0])
    with pytest.raises(InputError, match="weights: expected finite"):
        OrbitTemperature().fit(
            logits=logits.view(10, 3, 4), labels=labels[:10], weights=[1.0, -1.0, 1.0]
        )


def test_a_scan_gives_its_orbits_and_the_weights_of_its_group() -> None:
    torch.manual_seed(0)
    models = {
        name: torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 3))
        for name in ("plain", "other")
    }
    images, labels = torch.rand(40, 1, 8, 8), torch.randint(0, 3, (40,))
    given = {"group": ob.groups.scales(0.8, 1.25, 5), "task": ob.tasks.Classification()}
    with torch.no_grad():  # a network that favours the labels, so that a temperature exists
        labels = models["other"](images).argmax(1).where(torch.rand(40) < 0.6, labels)
    scan = ob.scan(models, (images, labels), keep="probabilities", progress=False, **given)
    scaling = OrbitTemperature.from_scan(scan, model="other")
    direct = OrbitTemperature().fit(
        probs=scan.data["probabilities"].sel(model="other").values,
        labels=labels,
        weights=given["group"].weights,
    )
    assert torch.equal(scaling.temperature_, direct.temperature_)
    with pytest.raises(InputError, match="model: the scan holds 2 models"):
        OrbitTemperature.from_scan(scan)
    with pytest.raises(InputError, match="model: unknown name 'othr'; did you mean 'other'"):
        OrbitTemperature.from_scan(scan, model="othr")
    bare = ob.scan(models, (images, labels), progress=False, **given)
    with pytest.raises(InputError, match="keep='probabilities'"):
        OrbitTemperature.from_scan(bare, model="plain")


def test_files_that_no_calibrator_wrote_are_refused(tmp_path: Path) -> None:
    from safetensors.torch import save_file

    with pytest.raises(InputError, match="path: there is no file"):
        load(tmp_path / "absent.safetensors")
    (tmp_path / "text").write_text("not a safetensors file, whatever its name")
    with pytest.raises(StoreError, match="not a safetensors file"):
        load(tmp_path / "text")
    save_file({"a": torch.zeros(1)}, str(tmp_path / "other"))
    with pytest.raises(StoreError, match="not one that a calibrator wrote"):
        load(tmp_path / "other")
    save_file({"a": torch.zeros(1)}, str(tmp_path / "new"), metadata={"calibrator": "Temprature"})
    with pytest.raises(InputError, match="did you mean 'Temperature'"):
        load(tmp_path / "new")
    meta = {"calibrator": "Temperature", "parameters": "{}"}
    save_file({"a": torch.zeros(1)}, str(tmp_path / "part"), metadata=meta)
    with pytest.raises(StoreError, match=r"needs .*temperature_"):
        load(tmp_path / "part")


def test_recalibration_is_reached_from_the_package() -> None:
    assert ob.recalibrate.Temperature is Temperature


def test_a_training_machine_needs_neither_scipy_nor_xarray() -> None:
    code = (
        "import sys, orbical.recalibrate, orbical.calibration.regression;"
        "print(sorted({'scipy', 'sklearn', 'xarray', 'zarr', 'matplotlib'} & set(sys.modules)))"
    )
    answer = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert answer.stdout.strip() == "[]"


def test_netcal_agrees_in_float64_and_does_nothing_in_float32() -> None:
    netcal = pytest.importorskip("netcal.scaling")
    logits, labels = outputs(3000)
    ours = Temperature().fit(logits=logits, labels=labels).temperature_.item()
    found = []
    for dtype in (torch.float64, torch.float32):
        probs = torch.softmax(logits, 1).to(dtype).numpy()
        theirs = netcal.TemperatureScaling()
        theirs.fit(probs, labels.numpy())
        found.append(1 / float(np.ravel(theirs._sites["weights"]["values"])[0]))
    assert found[0] == pytest.approx(ours, rel=1e-4)
    assert found[1] == pytest.approx(1.0, abs=1e-6)
