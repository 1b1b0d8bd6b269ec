from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from calibration_references import paper_mmce_squared, paper_mmce_weighted, paper_skce, world
from hypothesis import given, settings
from hypothesis import strategies as st

from orbical import calibration
from orbical.calibration import mmce, mmce_squared, mmce_weighted, skce, top_label
from orbical.errors import InputError


@pytest.mark.parametrize(
    ("ours", "paper", "smallest"),
    [
        (mmce_squared, paper_mmce_squared, 1),
        (mmce_weighted, paper_mmce_weighted, 1),
        (skce, paper_skce, 2),
    ],
)
@given(
    size=st.integers(2, 40),
    seed=st.integers(0, 10**6),
    levels=st.sampled_from([None, 1, 2, 5]),
    phi=st.sampled_from([0.4, 0.05, 1e-3, 1e-5, 10.0]),
    dtype=st.sampled_from([torch.float64, torch.float32, torch.float16]),
)
@settings(max_examples=80, deadline=None)
def test_sums_over_pairs_equal_the_quadratic_definitions(
    ours, paper, smallest, size, seed, levels, phi, dtype
):
    z, correct = world(max(size, smallest), seed, levels)
    z = z.to(dtype)
    reference = z.double().detach().clone().requires_grad_()
    expected = paper(reference, correct, phi)
    expected.backward()
    x = z.detach().clone().requires_grad_()
    value = ours(x, correct, phi=phi)
    value.backward()
    assert value.item() == pytest.approx(expected.item(), abs=1e-13)
    torch.testing.assert_close(x.grad, reference.grad.to(dtype), rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("measure", [mmce, mmce_squared, mmce_weighted, skce])
@pytest.mark.parametrize("phi", [0.4, 1e-3])
def test_gradients_pass_gradcheck(measure, phi):
    z, correct = world(10, 4)
    assert torch.autograd.gradcheck(lambda x: measure(x, correct, phi=phi), z.requires_grad_())


@pytest.mark.parametrize("measure", [mmce, mmce_squared, mmce_weighted, skce])
def test_the_gradient_at_zero_error_is_finite(measure):
    z = torch.ones(5, dtype=torch.float32, requires_grad=True)
    value = measure(z, torch.ones(5, dtype=torch.bool))
    value.backward()
    assert value.item() == 0
    assert torch.isfinite(z.grad).all()


@pytest.mark.parametrize("measure", [mmce, mmce_squared, mmce_weighted, skce])
def test_leading_axes_are_answered_row_by_row(measure):
    z = torch.stack([world(30, s, 8)[0] for s in range(6)]).view(2, 3, 30)
    correct = torch.stack([world(30, s)[1] for s in range(6)]).view(2, 3, 30)
    rows = [measure(a, b) for a, b in zip(z.view(6, 30), correct.view(6, 30), strict=True)]
    torch.testing.assert_close(measure(z, correct), torch.stack(rows).view(2, 3))


@pytest.mark.parametrize("size", [3, 4, 5])
def test_skce_is_unbiased_over_every_sample_of_a_finite_world(size):
    levels = torch.tensor([0.2, 0.5, 0.9], dtype=torch.float64)
    mass = torch.tensor([0.3, 0.5, 0.2], dtype=torch.float64)
    accuracy = torch.tensor([0.4, 0.5, 0.7], dtype=torch.float64)
    gap = mass * (accuracy - levels)
    kernel = torch.exp(-(levels[:, None] - levels[None, :]).abs() / 0.4)
    population = gap @ kernel @ gap
    atoms = [(z, y) for z in range(3) for y in (0, 1)]
    chance = torch.stack([mass[z] * (accuracy[z] if y else 1 - accuracy[z]) for z, y in atoms])
    picks = torch.tensor(list(itertools.product(range(6), repeat=size)))
    z = levels[torch.tensor([a[0] for a in atoms])][picks]
    correct = torch.tensor([a[1] for a in atoms])[picks]
    expectation = (chance[picks].prod(-1) * skce(z, correct)).sum()
    biased = (chance[picks].prod(-1) * mmce_squared(z, correct)).sum()
    assert expectation.item() == pytest.approx(population.item(), abs=1e-14)
    assert biased > population + 0.01


def test_narrow_kernels_do_not_overflow_at_size():
    z, correct = world(3000, 1)
    for phi in (1e-2, 1e-4, 1e-7):
        assert mmce_squared(z, correct, phi=phi).item() == pytest.approx(
            paper_mmce_squared(z, correct, phi).item(), rel=1e-10
        )


def test_real_outputs_agree_with_the_definition(shared_data):
    archive = np.load(shared_data / "logits" / "wideresnet-16-4-cifar-100.npz")
    confidence, correct = top_label(probs=archive["probs"], labels=archive["labels"])
    confidence, correct = confidence[:3000], correct[:3000]
    assert (confidence == confidence.max()).sum() > 1  # saturated: ties at the top
    assert mmce(confidence, correct).item() == pytest.approx(
        paper_mmce_squared(confidence.double(), correct, 0.4).sqrt().item(), abs=1e-12
    )


def test_bad_parameters_are_named():
    with pytest.raises(InputError, match="phi"):
        mmce([0.5], [True], phi=-1)
    with pytest.raises(InputError, match="confidence: expected at least 2 samples, got 1"):
        skce([0.5], [True])
    with pytest.raises(InputError, match="correct: expected 0 and 1 only"):
        mmce_weighted([0.5, 0.5], [0.5, 1.0])


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("shape", [(50,), (1000,), (3, 300)])
@pytest.mark.parametrize("name", ["mmce", "mmce_squared", "mmce_weighted", "skce", "esd"])
def test_a_value_without_a_gradient_is_that_with_one(name, shape, weighted):
    generator = torch.Generator().manual_seed(0)
    confidence = torch.rand(shape, generator=generator, dtype=torch.float64).round(decimals=2)
    correct = torch.rand(shape, generator=generator) < confidence
    weights = torch.rand(shape, generator=generator, dtype=torch.float64) if weighted else None
    measure = getattr(calibration, name)
    alone = measure(confidence, correct, weights=weights)
    with_gradient = measure(confidence.clone().requires_grad_(), correct, weights=weights)
    assert with_gradient.requires_grad
    torch.testing.assert_close(alone, with_gradient.detach(), rtol=1e-9, atol=1e-15)
