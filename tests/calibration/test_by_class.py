from __future__ import annotations

import pytest
import torch

from orbical.calibration import (
    classwise_ece,
    classwise_esd,
    classwise_ks,
    classwise_mmce,
    classwise_skce,
    classwise_smooth_ece,
    ece,
    esd,
    ks,
    mmce,
    per_class,
    skce,
    smooth_ece,
)

FORMS = [
    (classwise_ece, ece),
    (classwise_ks, ks),
    (classwise_esd, esd),
    (classwise_mmce, mmce),
    (classwise_skce, skce),
    (classwise_smooth_ece, smooth_ece),
]


@pytest.mark.parametrize(("classwise_form", "measure"), FORMS)
def test_a_classwise_form_is_the_mean_over_classes(classwise_form, measure):
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(2, 200, 3, generator=generator, dtype=torch.float64)
    labels = torch.randint(0, 3, (200,), generator=generator)
    probs = torch.softmax(logits, -1)
    expected = torch.stack(
        [torch.stack([measure(p[:, k], labels == k) for k in range(3)]) for p in probs]
    )
    torch.testing.assert_close(per_class(measure, logits=logits, labels=labels), expected)
    torch.testing.assert_close(classwise_form(logits=logits, labels=labels), expected.mean(-1))
    torch.testing.assert_close(classwise_form(probs=probs, labels=labels), expected.mean(-1))


def test_classwise_esd_reaches_the_logits():
    logits = torch.randn(20, 3, dtype=torch.float64, requires_grad=True)
    labels = torch.arange(20) % 3
    assert torch.autograd.gradcheck(lambda x: classwise_esd(logits=x, labels=labels), logits)


def test_sample_weights_reach_every_class():
    probs = torch.softmax(torch.randn(30, 3, generator=torch.Generator().manual_seed(1)), -1)
    labels = torch.arange(30) % 3
    weights = torch.arange(30) % 2
    half = classwise_ece(probs=probs[1::2], labels=labels[1::2])
    assert classwise_ece(probs=probs, labels=labels, weights=weights).item() == pytest.approx(
        half.item()
    )
