"""Outputs of many classes, whose largest is found by NumPy where nothing traces it."""

from __future__ import annotations

import pytest
import torch

import orbical as ob


@pytest.mark.parametrize("classes", [10, 100])
def test_top_labels_can_be_compiled(classes):
    random = torch.Generator().manual_seed(classes)
    probs = torch.randn(200, classes, generator=random).softmax(-1)
    labels = torch.randint(0, classes, (200,), generator=random)
    compiled = torch.compile(
        lambda x: ob.calibration.top_label(probs=x, labels=labels), backend="eager"
    )
    for found, expected in zip(
        compiled(probs), ob.calibration.top_label(probs=probs, labels=labels), strict=True
    ):
        assert torch.equal(found, expected)
