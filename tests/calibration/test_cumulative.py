from __future__ import annotations

import itertools
import math

import pytest
import torch
from calibration_references import loop_ks, paper_esd, softened_esd, world
from hypothesis import given, settings
from hypothesis import strategies as st

from orbical.calibration import cumulative_curve, esd, esd_softened, ks, ordered_esd, top_label
from orbical.errors import InputError


@given(
    size=st.integers(3, 40),
    seed=st.integers(0, 10**6),
    levels=st.sampled_from([None, 1, 2, 5, 20]),
    dtype=st.sampled_from([torch.float64, torch.float32, torch.float16, torch.bfloat16]),
)
@settings(max_examples=120, deadline=None)
def test_esd_equals_the_quadratic_form_in_value_and_gradient(size, seed, levels, dtype):
    z, correct = world(size, seed, levels)
    z = z.to(dtype)
    reference = z.double().requires_grad_()
    expected = paper_esd(reference, correct)
    expected.backward()
    ours = z.detach().clone().requires_grad_()
    value = esd(ours, correct)
    value.backward()
    assert value.dtype == torch.float64
    assert ours.grad.dtype == dtype
    assert value.item() == pytest.approx(expected.item(), abs=1e-15)
    torch.testing.assert_close(ours.grad, reference.grad.to(dtype), rtol=1e-6, atol=1e-12)


def test_esd_equals_the_quadratic_form_with_ties_and_saturation():
    z = torch.tensor([0.0, 0.0, -0.0, 0.5, 0.5, 1.0, 1.0, 1.0], dtype=torch.float64)
    correct = torch.tensor([1, 0, 0, 1, 0, 1, 0, 1], dtype=torch.bool)
    assert esd(z, correct).item() == pytest.approx(paper_esd(z, correct).item(), abs=1e-16)


def test_esd_takes_soft_outcomes():
    z, _ = world(20, 0)
    soft = torch.rand(20, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    assert esd(z, soft).item() == pytest.approx(paper_esd(z, soft).item(), abs=1e-15)


def test_esd_passes_gradcheck_where_no_order_changes():
    z, correct = world(12, 3)
    assert torch.autograd.gradcheck(lambda x: esd(x, correct), z.requires_grad_())


def test_esd_answers_each_row_of_leading_axes():
    z = torch.stack([world(30, s, 8)[0] for s in range(6)]).view(2, 3, 30)
    correct = torch.stack([world(30, s)[1] for s in range(6)]).view(2, 3, 30)
    rows = [paper_esd(a, b) for a, b in zip(z.view(6, 30), correct.view(6, 30), strict=True)]
    torch.testing.assert_close(esd(z, correct), torch.stack(rows).view(2, 3))
    shared = esd(z[0, 0], correct)
    assert shared.shape == (2, 3)


def test_esd_neither_changes_nor_detaches_its_input():
    z, correct = world(10, 5)
    before = z.clone()
    z.requires_grad_()
    value = esd(z, correct)
    assert value.requires_grad
    assert torch.equal(z.detach(), before)


def test_esd_has_second_derivatives():
    z, correct = world(8, 6, 5)
    d = (correct.double() - z).requires_grad_()
    assert torch.autograd.gradgradcheck(lambda x: ordered_esd(x, z), d)
    apart, correct = world(8, 7)
    assert torch.autograd.gradgradcheck(lambda x: esd(x, correct), apart.requires_grad_())


@pytest.mark.parametrize("size", [3, 4, 5])
def test_esd_is_unbiased_over_every_sample_of_a_finite_world(size):
    # Confidence takes three values with given masses; each is correct with its own probability.
    levels = torch.tensor([0.2, 0.5, 0.9], dtype=torch.float64)
    mass = torch.tensor([0.3, 0.5, 0.2], dtype=torch.float64)
    accuracy = torch.tensor([0.4, 0.5, 0.7], dtype=torch.float64)
    gap = [(mass[: i + 1] * (accuracy - levels)[: i + 1]).sum() for i in range(3)]
    population = sum(m * g**2 for m, g in zip(mass, gap, strict=True))
    atoms = [(z, y) for z in range(3) for y in (0, 1)]
    chance = [mass[z] * (accuracy[z] if y else 1 - accuracy[z]) for z, y in atoms]
    picks = torch.tensor(list(itertools.product(range(6), repeat=size)))
    z = levels[torch.tensor([a[0] for a in atoms])][picks]
    correct = torch.tensor([a[1] for a in atoms])[picks]
    probability = torch.stack(chance)[picks].prod(-1)
    expectation = (probability * esd(z, correct)).sum()
    assert expectation.item() == pytest.approx(population.item(), abs=1e-14)


def two_groups(theta: torch.Tensor, size: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Group A at .4 + .2 x with accuracy .9, group B shifted by theta with accuracy .1."""
    x = (torch.arange(size, dtype=torch.float64) + 0.5) / size
    z = torch.cat([0.4 + 0.2 * x, 0.4 + 0.2 * x + theta])
    soft = torch.cat([torch.full((size,), 0.9), torch.full((size,), 0.1)]).double()
    return z, soft


@pytest.mark.parametrize(
    ("theta", "true", "frozen"), [(0.05, 0.0725, -0.0166), (0.25, 0.0021, 0.0021)]
)
def test_the_frozen_gradient_is_biased_and_the_softened_one_is_not(theta, true, frozen):
    def derivative(measure) -> float:
        shift = torch.tensor(theta, dtype=torch.float64, requires_grad=True)
        (slope,) = torch.autograd.grad(measure(*two_groups(shift, 20_000)), shift)
        return slope.item()

    step = 1e-3
    up, down = (esd(*two_groups(torch.tensor(theta + s), 20_000)) for s in (step, -step))
    assert ((up - down) / (2 * step)).item() == pytest.approx(true, abs=1e-3)
    assert derivative(esd) == pytest.approx(frozen, abs=2e-4)
    assert derivative(lambda z, c: esd_softened(z, c, width=0.002)) == pytest.approx(true, abs=1e-3)


@given(
    size=st.integers(3, 30),
    seed=st.integers(0, 10**6),
    width=st.sampled_from([1e-4, 2e-3, 0.05, 1.0, 50.0]),
    levels=st.sampled_from([None, 4]),
)
@settings(max_examples=80, deadline=None)
def test_softened_esd_equals_its_quadratic_form_in_value_and_gradient(size, seed, width, levels):
    z, correct = world(size, seed, levels)
    reference = z.clone().requires_grad_()
    expected = softened_esd(reference, correct, width)
    expected.backward()
    z.requires_grad_()
    value = esd_softened(z, correct, width=width)
    value.backward()
    assert value.item() == pytest.approx(expected.item(), abs=1e-13)
    if levels is None:  # at a tie the reference's abs() has another derivative than H has
        torch.testing.assert_close(z.grad, reference.grad, rtol=1e-9, atol=1e-12)


def test_softened_esd_has_the_derivative_of_h_at_ties():
    z = torch.tensor([0.3, 0.3, 0.6, 0.6, 0.6], dtype=torch.float64, requires_grad=True)
    correct = torch.tensor([1, 0, 1, 1, 0], dtype=torch.bool)
    assert torch.autograd.gradcheck(lambda x: esd_softened(x, correct, width=0.1), z)


def test_softened_esd_tends_to_esd():
    z, correct = world(200, 9)
    assert esd_softened(z, correct, width=1e-7).item() == pytest.approx(
        esd(z, correct).item(), abs=1e-12
    )


def test_ordered_esd_holds_the_order_fixed():
    d = torch.tensor([0.5, -0.25, 1.0, 3.0], dtype=torch.float64, requires_grad=True)
    z = torch.tensor([2.0, -1.0, 0.5, 0.5], dtype=torch.float64)
    assert torch.autograd.gradcheck(lambda x: ordered_esd(x, z), d)


@given(size=st.integers(1, 40), seed=st.integers(0, 10**6), levels=st.sampled_from([None, 1, 4]))
@settings(max_examples=60, deadline=None)
def test_ks_groups_equal_confidences(size, seed, levels):
    z, correct = world(size, seed, levels)
    assert ks(z, correct).item() == pytest.approx(loop_ks(z, correct), abs=1e-15)
    shuffle = torch.randperm(size, generator=torch.Generator().manual_seed(seed))
    assert ks(z[shuffle], correct[shuffle]).item() == pytest.approx(ks(z, correct).item())


def test_ks_passes_gradcheck():
    z, correct = world(15, 2)
    assert torch.autograd.gradcheck(lambda x: ks(x, correct), z.requires_grad_())


def test_the_largest_difference_of_the_cumulative_curve_is_ks():
    z, correct = world(300, 4, 25)
    curve = cumulative_curve(z, correct)
    assert curve.difference.abs().max().item() == pytest.approx(ks(z, correct).item(), abs=1e-15)
    assert curve.quantile[-1] == 1
    assert curve.accuracy[-1].item() == pytest.approx(correct.double().mean().item())
    assert curve.confidence[-1].item() == pytest.approx(z.mean().item())
    assert (curve.quantile == curve.quantile[0])[z.sort().values == z.min()].all()


def test_esd_accumulates_in_float64():
    # With one tied value ESD is d^2 exactly; sums in float32 would be right to four digits only.
    z = torch.full((1 << 18,), 0.7, dtype=torch.float32)
    correct = torch.ones(1 << 18, dtype=torch.bool)
    assert esd(z, correct).item() == pytest.approx((1 - z[0].item()) ** 2, rel=1e-12)


def test_root_esd_is_at_most_ks_at_most_ece_on_real_outputs(shared_data):
    import numpy as np

    from orbical.calibration import ece

    for name in ("lenet-5-cifar-10", "wideresnet-16-4-cifar-100", "densenet-bc-100-cifar-100"):
        confidence, correct = real_outputs(np.load(shared_data / "logits" / f"{name}.npz"))
        value = esd(confidence, correct).item()
        part = slice(0, 2000)
        assert esd(confidence[part], correct[part]).item() == pytest.approx(
            paper_esd(confidence[part].double(), correct[part]).item(), abs=1e-12
        )
        assert math.sqrt(max(value, 0)) <= ks(confidence, correct).item() + 1e-3
        assert ks(confidence, correct).item() <= ece(confidence, correct, bins=100).item() + 1e-3


def real_outputs(archive) -> tuple[torch.Tensor, torch.Tensor]:
    probs, labels = archive["probs"], archive["labels"]
    return top_label(probs=probs, labels=labels)


@pytest.mark.parametrize("measure", [esd, esd_softened])
def test_fewer_than_three_samples_are_refused(measure):
    with pytest.raises(InputError, match="confidence: expected at least 3 samples, got 2"):
        measure([0.5, 0.6], [True, False])


def test_a_width_of_zero_is_refused():
    with pytest.raises(InputError, match="width"):
        esd_softened([0.5, 0.6, 0.7], [True, False, True], width=0.0)


def test_esd_runs_under_compile_and_autocast():
    z, correct = world(64, 1)
    z = z.float()
    expected = z.clone().requires_grad_()
    esd(expected, correct).backward()
    compiled = torch.compile(lambda x: esd(torch.sigmoid(torch.logit(x)), correct), backend="eager")
    x = z.clone().requires_grad_()
    compiled(x).backward()
    torch.testing.assert_close(x.grad, expected.grad, rtol=1e-4, atol=1e-6)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = z.clone().requires_grad_()
        esd(y, correct).backward()
    assert torch.equal(y.grad, expected.grad)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an accelerator")
@pytest.mark.parametrize("size", [5_000, 1_000_003])
@pytest.mark.parametrize("levels", [None, 3, 1000])
def test_esd_of_many_samples_on_an_accelerator_equals_that_on_the_cpu(size, levels):
    generator = torch.Generator().manual_seed(0)
    confidence = torch.rand(size, generator=generator)
    if levels is not None:  # long runs of equal confidences
        confidence = (confidence * levels).ceil() / levels
    correct = torch.rand(size, generator=generator) < confidence.square()
    here = confidence.double().requires_grad_()
    there = confidence.cuda().requires_grad_()
    value, expected = esd(there, correct.cuda()), esd(here, correct)
    torch.testing.assert_close(value.cpu(), expected, rtol=1e-10, atol=0)
    value.backward()
    expected.backward()
    scale = here.grad.abs().max().item()
    torch.testing.assert_close(there.grad.cpu().double(), here.grad, rtol=0, atol=1e-6 * scale)
