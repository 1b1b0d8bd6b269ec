"""Vector and matrix scaling: optima of references, optimality conditions, data that have none."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import torch
from held_out import REAL, nll, outputs, real
from scipy import optimize
from torch import Tensor

from orbical.errors import InputError
from orbical.recalibrate import (
    Calibrator,
    Dirichlet,
    MatrixScaling,
    Temperature,
    VectorScaling,
)


def reference_scaling(
    logits: Tensor, labels: Tensor, penalty: float = 0.0
) -> tuple[np.ndarray, float]:
    """Vector scaling by scipy's BFGS with the gradient of autograd."""
    classes = logits.shape[1]
    centered = logits - logits.mean(1, keepdim=True)
    identity = torch.cat([torch.ones(classes), torch.zeros(classes)]).double()

    def objective(flat: np.ndarray) -> tuple[float, np.ndarray]:
        parameters = torch.tensor(flat, requires_grad=True)
        scale, shift = parameters.view(2, classes)
        loss = torch.nn.functional.cross_entropy(centered * scale + shift, labels)
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
    scaling = VectorScaling(penalty=penalty, outputs="probabilities").fit(probs, labels)
    found, lowest = reference_scaling(probs.double().log(), labels, penalty)
    value = nll(scaling.predict_proba(probs.double()), labels)
    held = ((scaling.scale_ - 1) ** 2).sum() + (scaling.shift_**2).sum()
    assert value + penalty / 10 * held == pytest.approx(lowest, abs=1e-6)
    np.testing.assert_allclose(scaling.scale_, found[:10], atol=1e-3)
    np.testing.assert_allclose(scaling.shift_, found[10:] - found[10:].mean(), atol=2e-3)


@pytest.mark.parametrize("scaling", [VectorScaling(), MatrixScaling(1.0, 0.1, 0.1), Dirichlet()])
def test_the_documented_formula_gives_the_probabilities(scaling: Calibrator) -> None:
    draw = torch.Generator().manual_seed(1)
    logits = 2 * torch.randn(300, 4, generator=draw).double() + torch.arange(4)
    labels = torch.multinomial(torch.softmax(logits / 3, 1), 1, generator=draw)[:, 0]
    found = scaling.fit(logits, labels).predict_proba(logits)
    assert "softmax(w * z + b)" in VectorScaling.__doc__
    assert "softmax(W z + b)" in MatrixScaling.__doc__
    assert "softmax(W log p + b)" in Dirichlet.__doc__
    z = logits - logits.mean(1, keepdim=True)
    z = torch.log_softmax(logits, 1) if isinstance(scaling, Dirichlet) else z
    if isinstance(scaling, VectorScaling):
        z = z * torch.as_tensor(scaling.scale_)
    else:
        z = z @ torch.as_tensor(scaling.weight_).T
    expected = torch.softmax(z + torch.as_tensor(scaling.shift_), 1)
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_vector_scaling_recovers_the_scales_that_made_the_labels() -> None:
    generator = torch.Generator().manual_seed(0)
    logits = 2 * torch.randn(60_000, 3, generator=generator, dtype=torch.float64)
    logits = logits - logits.mean(1, keepdim=True)
    scale, shift = torch.tensor([0.5, 1.0, 1.5]), torch.tensor([0.4, -0.1, -0.3])
    labels = torch.multinomial(torch.softmax(logits * scale + shift, 1), 1, generator=generator)
    scaling = VectorScaling(penalty=0.0).fit(logits, labels[:, 0])
    np.testing.assert_allclose(scaling.scale_, scale, atol=0.05)
    np.testing.assert_allclose(scaling.shift_, shift, atol=0.05)


@pytest.mark.parametrize(
    "penalties", [(0.0, 0.0, 0.0), (1.0, 0.1, 0.0), (1000.0, 10.0, 0.0), (1.0, 1.0, 1.0)]
)
def test_matrix_scaling_satisfies_the_optimality_condition(
    penalties: tuple[float, float, float],
) -> None:
    off_diagonal, intercept, diagonal = penalties
    logits, labels = outputs(1500, 4)
    scaling = MatrixScaling(*penalties).fit(logits, labels)
    weight = torch.tensor(scaling.weight_, requires_grad=True)
    shift = torch.tensor(scaling.shift_, requires_grad=True)
    centered = logits - logits.mean(1, keepdim=True)
    loss = torch.nn.functional.cross_entropy(centered @ weight.T + shift, labels)
    off = weight - torch.diag(weight.diag())
    loss = loss + off_diagonal / 12 * off.square().sum() + intercept / 4 * shift.square().sum()
    loss = loss + diagonal / 4 * (weight.diag() - 1).square().sum()
    loss.backward()
    assert weight.grad.abs().max() < 1e-5
    assert shift.grad.abs().max() < 1e-5


def test_matrix_scaling_nests_vector_scaling_and_temperature() -> None:
    logits, labels = outputs(2000, 3)
    losses = [
        nll(calibrator.fit(logits, labels).predict_proba(logits), labels)
        for calibrator in (MatrixScaling(0.0, 0.0, 0.0), VectorScaling(penalty=0.0), Temperature())
    ]
    assert losses[0] <= losses[1] + 1e-12 <= losses[2] + 2e-12


def test_logits_and_their_probabilities_are_mapped_alike_by_linear_scalings() -> None:
    logits, labels = outputs(500)
    probs = torch.softmax(logits, 1)
    for calibrator in (VectorScaling(), MatrixScaling()):
        one = calibrator.fit(logits, labels).predict_proba(logits)
        two = calibrator.set_params(outputs="probabilities").fit(probs, labels).predict_proba(probs)
        torch.testing.assert_close(one, two, atol=1e-6, rtol=0)


def test_linear_scalings_refuse_data_without_an_optimum() -> None:
    logits = torch.tensor([[2.0, 0.0], [0.0, 1.0], [3.0, 1.0], [0.0, 4.0]])
    for calibrator in (
        VectorScaling(penalty=0.0),
        MatrixScaling(diagonal=0.0),
        MatrixScaling(0.0, 0.0, 0.0),
    ):
        with pytest.raises(InputError, match="told apart without error"):
            calibrator.fit(logits, [0, 1, 0, 1])
    with pytest.raises(InputError, match="y: expected all 2 classes, got no sample of 1"):
        VectorScaling(penalty=0.0).fit(logits, [0, 0, 0, 0])
    with pytest.raises(InputError, match="y: expected all 2 classes, got no sample of 1"):
        MatrixScaling(intercept=0.0).fit(logits, [0, 0, 0, 0])
    shifted = logits + torch.tensor([0.0, 5.0])  # separable, though not as the logits stand
    with pytest.raises(InputError, match="told apart without error"):
        VectorScaling(penalty=0.0).fit(shifted, [0, 1, 0, 1])
    for calibrator in (VectorScaling(), MatrixScaling(intercept=0.01)):
        single = calibrator.fit(logits, [0, 0, 0, 0]).predict_proba(logits)
        assert (single[:, 0] > 0.5).all()
    with pytest.raises(InputError, match="penalty: expected a number >= 0"):
        VectorScaling(penalty=-1.0).fit(logits, [0, 1, 0, 1])
    with pytest.raises(InputError, match="off_diagonal: expected a number >= 0"):
        MatrixScaling(off_diagonal=math.inf).fit(logits, [0, 1, 0, 1])


@pytest.mark.parametrize(
    "calibrator",
    [VectorScaling(penalty=0.0), MatrixScaling(0.0, 0.0, 0.0), MatrixScaling(diagonal=0.0)],
)
def test_one_class_told_apart_without_error_is_refused_unless_penalized(
    calibrator: Calibrator,
) -> None:
    logits, labels = outputs(400, 3)
    labels = torch.where(labels == 2, 0, labels)
    logits[:, 2] -= 12
    logits[300:, 2] += 24
    labels[300:] = 2
    with pytest.raises(InputError, match="told apart without error"):
        calibrator.fit(logits, labels)
    for penalized in (VectorScaling(), MatrixScaling()):
        probs = penalized.fit(logits, labels).predict_proba(logits)
        assert nll(probs, labels) < nll(torch.softmax(logits, 1), labels)
