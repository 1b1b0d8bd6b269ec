from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.isotonic import IsotonicRegression
from sklearn.metrics import brier_score_loss, log_loss

from orbical.calibration import accuracy, brier, brier_parts, nll
from orbical.errors import InputError


def world(size: int = 300, classes: int = 4, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    logits = 2 * torch.randn(size, classes, generator=generator, dtype=torch.float64)
    labels = torch.distributions.Categorical(logits=logits / 2).sample()
    return logits, labels


def test_scores_agree_with_sklearn():
    logits, labels = world()
    probs = torch.softmax(logits, -1)
    truth = torch.nn.functional.one_hot(labels, 4)
    assert nll(probs=probs, labels=labels).item() == pytest.approx(log_loss(labels, probs))
    assert nll(logits=logits, labels=labels).item() == pytest.approx(log_loss(labels, probs))
    assert brier(probs=probs, labels=labels).item() == pytest.approx(
        sum(brier_score_loss(truth[:, k], probs[:, k]) for k in range(4))
    )
    assert accuracy(logits=logits, labels=labels).item() == pytest.approx(
        (probs.numpy().argmax(1) == labels.numpy()).mean()
    )


def test_nll_of_far_logits_does_not_underflow():
    value = nll(logits=torch.tensor([[0.0, 1000.0]]), labels=[0])
    assert value.item() == 1000
    assert nll(probs=[[0.0, 1.0]], labels=[0]).item() == float("inf")


def test_scores_are_differentiable():
    logits, labels = world(10)
    logits.requires_grad_()
    for score in (nll, brier):
        assert torch.autograd.gradcheck(lambda x, s=score: s(logits=x, labels=labels), logits)


def test_leading_axes_are_answered_row_by_row():
    logits, labels = world(60)
    stacked = torch.stack([logits, -logits])
    for score in (nll, brier, accuracy):
        assert score(logits=stacked, labels=labels).tolist() == pytest.approx(
            [score(logits=part, labels=labels).item() for part in stacked]
        )


def test_the_parts_add_up_and_agree_with_sklearns_isotonic_regression():
    logits, labels = world()
    probs = torch.softmax(logits, -1)
    probs = (probs * 8).round() + 0.5  # coarse, so that confidences tie
    probs = probs / probs.sum(-1, keepdim=True)
    parts = brier_parts(probs=probs, labels=labels)
    refinement = 0.0
    for k in range(4):
        hit = (labels == k).double().numpy()
        fitted = IsotonicRegression().fit_transform(probs[:, k].numpy(), hit)
        refinement += float(np.mean((fitted - hit) ** 2))
    assert parts.refinement.item() == pytest.approx(refinement, abs=1e-12)
    assert parts.score.item() == pytest.approx(brier(probs=probs, labels=labels).item())
    assert (parts.calibration + parts.refinement).item() == pytest.approx(parts.score.item())
    assert parts.calibration >= 0
    assert parts.resolution >= 0


def test_sharpening_is_seen_by_the_calibration_part_and_not_by_the_refinement():
    generator = torch.Generator().manual_seed(0)
    p = torch.rand(4000, generator=generator, dtype=torch.float64)
    labels = (torch.rand(4000, generator=generator) < p).long()
    honest = brier_parts(probs=torch.stack([1 - p, p], -1), labels=labels)
    sharp = torch.softmax(torch.stack([-3 * torch.logit(p), torch.zeros(4000)], -1), -1)
    boastful = brier_parts(probs=sharp, labels=labels)
    assert boastful.refinement.item() == pytest.approx(honest.refinement.item(), abs=1e-9)
    assert boastful.calibration > 5 * honest.calibration


def test_parts_take_one_set_of_samples():
    with pytest.raises(InputError, match=r"expected shape \[N, C\]"):
        brier_parts(probs=torch.full((2, 3, 2), 0.5), labels=[0, 1, 0])
