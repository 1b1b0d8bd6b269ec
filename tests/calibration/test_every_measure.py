"""What holds for every measure of `(confidence, correct)`, from one table."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from orbical import calibration
from orbical.errors import InputError

MEASURES = {
    "ece": calibration.ece,
    "ece l2": lambda z, c: calibration.ece(z, c, norm="l2"),
    "ece max": lambda z, c: calibration.ece(z, c, norm="max"),
    "ece of equal mass": lambda z, c: calibration.ece(z, c, binning="mass"),
    "ece_loss": calibration.ece_loss,
    "ks": calibration.ks,
    "esd": calibration.esd,
    "esd_softened": calibration.esd_softened,
    "mmce": calibration.mmce,
    "mmce_squared": calibration.mmce_squared,
    "mmce_weighted": calibration.mmce_weighted,
    "skce": calibration.skce,
    "smooth_ece": calibration.smooth_ece,
    "sb_ece": calibration.sb_ece,
}
DIFFERENTIABLE = [name for name in MEASURES if name.split()[0] not in ("ece", "smooth_ece")]
every_measure = pytest.mark.parametrize("name", MEASURES)


@st.composite
def samples(draw) -> tuple[torch.Tensor, torch.Tensor]:
    """Confidences that tie and saturate, in every dtype, with outcomes."""
    dtype = draw(st.sampled_from([torch.float64, torch.float32, torch.float16, torch.bfloat16]))
    value = st.one_of(st.floats(0, 1), st.sampled_from([0.0, -0.0, 1.0, 0.5, 1 / 3]))
    values = draw(st.lists(value, min_size=3, max_size=25))
    correct = draw(st.lists(st.booleans(), min_size=len(values), max_size=len(values)))
    return torch.tensor(values, dtype=torch.float64).to(dtype), torch.tensor(correct)


@every_measure
@given(world=samples(), seed=st.integers(0, 2**31 - 1))
@settings(max_examples=40, deadline=None)
def test_the_order_of_samples_does_not_matter_and_inputs_stay_as_they_are(name, world, seed):
    confidence, correct = world
    before = confidence.clone(), correct.clone()
    value = MEASURES[name](confidence, correct)
    assert value.shape == ()
    assert value.dtype == torch.float64
    assert torch.isfinite(value)
    assert torch.equal(confidence, before[0])
    assert torch.equal(correct, before[1])
    shuffle = torch.randperm(len(confidence), generator=torch.Generator().manual_seed(seed))
    again = MEASURES[name](confidence[shuffle], correct[shuffle])
    # A root magnifies rounding near zero error.
    assert again.item() == pytest.approx(value.item(), abs=1e-7, rel=1e-9)


@pytest.mark.parametrize("name", DIFFERENTIABLE)
@given(world=samples())
@settings(max_examples=40, deadline=None)
def test_gradients_are_finite_and_have_the_dtype_of_the_input(name, world):
    confidence, correct = world
    leaf = confidence.clone().requires_grad_()
    MEASURES[name](leaf, correct).backward()
    assert leaf.grad.dtype == confidence.dtype
    assert torch.isfinite(leaf.grad).all()


@every_measure
def test_leading_axes_broadcast(name):
    generator = torch.Generator().manual_seed(0)
    confidence = (torch.rand(3, 1, 40, generator=generator) * 9).round() / 9
    correct = torch.rand(2, 40, generator=generator) < 0.7
    together = MEASURES[name](confidence, correct)
    assert together.shape == (3, 2)
    for i in range(3):
        for j in range(2):
            alone = MEASURES[name](confidence[i, 0], correct[j])
            assert together[i, j].item() == pytest.approx(alone.item(), abs=1e-12)


@every_measure
def test_a_perfect_model_has_no_error(name):
    confidence = torch.tensor([0.0, 0.0, 1.0, 1.0, 1.0])
    assert MEASURES[name](confidence, confidence).item() == pytest.approx(0, abs=1e-9)


@every_measure
def test_numpy_arrays_are_taken(name):
    confidence, correct = np.linspace(0.1, 0.9, 9), np.arange(9) % 2
    expected = MEASURES[name](torch.from_numpy(confidence), torch.from_numpy(correct))
    assert MEASURES[name](confidence, correct) == expected


@every_measure
@pytest.mark.parametrize(
    ("message", "confidence", "correct"),
    [
        ("confidence: .*got NaN", [0.5, float("nan"), 0.5], [True, False, True]),
        ("confidence: .*got values in", [0.5, 1.5, 0.5], [True, False, True]),
        ("confidence: .*got values in", [0.5, -0.5, 0.5], [True, False, True]),
        ("correct: .*got values in", [0.5, 0.5, 0.5], [2, 0, 1]),
        ("correct: expected 3 values", [0.5, 0.5, 0.5], [1, 0]),
        (r"confidence: expected at least \d samples?, got 0", torch.zeros(0), torch.zeros(0)),
    ],
)
def test_bad_input_is_refused_by_name(name, message, confidence, correct):
    with pytest.raises(InputError, match=message):
        MEASURES[name](confidence, correct)


def test_every_public_name_exists_and_is_documented():
    for name in calibration.__all__:
        assert getattr(calibration, name).__doc__, name
    assert calibration.metrics.ECE.__doc__
    with pytest.raises(AttributeError, match="no attribute 'ecee'"):
        calibration.ecee  # noqa: B018
