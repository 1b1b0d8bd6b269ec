"""Every measure of a pair gives the same for transposed, strided and expanded arrays."""

from __future__ import annotations

import pytest
import torch

from orbical import calibration

MEASURES = [
    calibration.ece,
    lambda c, y: calibration.ece(c, y, binning="mass"),
    calibration.ks,
    calibration.esd,
    calibration.esd_softened,
    calibration.mmce,
    calibration.mmce_weighted,
    calibration.skce,
    calibration.smooth_ece,
    calibration.sb_ece,
    calibration.ece_loss,
    lambda c, y: calibration.cumulative_curve(c, y).difference,
    lambda c, y: calibration.reliability(c, y).gap,
]


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize("ties", [False, True])
def test_strides_do_not_matter(measure, ties):
    generator = torch.Generator().manual_seed(0)
    confidence = torch.rand(60, 4, generator=generator)
    confidence = (confidence * 5).round() / 5 if ties else confidence
    correct = torch.rand(60, 4, generator=generator) < confidence
    expected = measure(confidence.t().contiguous(), correct.t().contiguous())
    torch.testing.assert_close(measure(confidence.t(), correct.t()), expected, equal_nan=True)
    wide = confidence.t().repeat_interleave(2, 1)[:, ::2]
    torch.testing.assert_close(measure(wide, correct.t()), expected, equal_nan=True)
    one = measure(confidence[:, 0].clone().expand(3, -1), correct[:, 0].clone())
    torch.testing.assert_close(one[0], expected[0], equal_nan=True)


@pytest.mark.parametrize("measure", MEASURES[:-2])
def test_gradients_flow_through_strided_confidence(measure):
    confidence = torch.rand(40, 3, dtype=torch.float64, requires_grad=True)
    correct = torch.rand(40, 3) < 0.5
    found = measure(confidence.t(), correct.t()).sum()
    if not found.requires_grad:
        pytest.skip("not differentiable by design")
    (strided,) = torch.autograd.grad(found, confidence)
    whole = confidence.t().contiguous().detach().requires_grad_()
    (plain,) = torch.autograd.grad(measure(whole, correct.t().contiguous()).sum(), whole)
    torch.testing.assert_close(strided, plain.t())
