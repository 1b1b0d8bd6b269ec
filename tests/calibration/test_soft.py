from __future__ import annotations

import math

import pytest
import torch

from orbical.calibration import ece, s_avuc, sb_ece
from orbical.errors import InputError


def loop_sb_ece(confidence: list[float], correct: list[bool], bins: int, temperature: float):
    size, accuracy, conf = ([0.0] * bins for _ in range(3))
    for z, c in zip(confidence, correct, strict=True):
        scores = [-((z - (j + 0.5) / bins) ** 2) / temperature for j in range(bins)]
        top = max(scores)
        raw = [math.exp(s - top) for s in scores]
        for j in range(bins):
            u = raw[j] / sum(raw)
            size[j] += u
            accuracy[j] += u * c
            conf[j] += u * z
    total = 0.0
    for j in range(bins):
        if size[j]:
            gap = accuracy[j] / size[j] - conf[j] / size[j]
            total += size[j] / len(confidence) * gap**2
    return math.sqrt(total)


def loop_s_avuc(probs: list[list[float]], labels: list[int], kappa: float, temperature: float):
    counts = dict.fromkeys(("AU", "AC", "IU", "IC"), 0.0)
    for row, label in zip(probs, labels, strict=True):
        h = -sum(p * math.log(p) for p in row) / math.log(len(row))
        odds = math.log(h * (1 - kappa) / ((1 - h) * kappa)) / temperature
        t = 1 / (1 + math.exp(-odds))
        kind = "A" if row.index(max(row)) == label else "I"
        counts[kind + "U"] += t * math.tanh(h)
        counts[kind + "C"] += (1 - t) * (1 - math.tanh(h))
    ratio = (counts["AU"] + counts["IC"]) / (counts["AC"] + counts["IU"])
    return math.log(1 + ratio)


def world(size: int = 60, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    z = torch.rand(size, generator=generator, dtype=torch.float64)
    return z, torch.rand(size, generator=generator) < z**2


@pytest.mark.parametrize("bins", [1, 5, 15])
@pytest.mark.parametrize("temperature", [1e-4, 0.01, 0.1])
def test_sb_ece_equals_its_definition(bins, temperature):
    z, correct = world()
    expected = loop_sb_ece(z.tolist(), correct.tolist(), bins, temperature)
    value = sb_ece(z, correct, bins=bins, temperature=temperature)
    assert value.item() == pytest.approx(expected, abs=1e-13)


def test_sb_ece_is_the_hard_l2_ece_in_the_limit():
    z, correct = world(500)
    hard = ece(z, correct, norm="l2").item()
    assert sb_ece(z, correct, temperature=1e-7).item() == pytest.approx(hard, abs=1e-3)


def test_sb_ece_passes_gradcheck_and_is_finite_at_zero_error():
    z, correct = world(12)
    assert torch.autograd.gradcheck(lambda x: sb_ece(x, correct), z.requires_grad_())
    perfect = torch.ones(4, requires_grad=True)
    sb_ece(perfect, torch.ones(4)).backward()
    assert torch.isfinite(perfect.grad).all()


@pytest.mark.parametrize("kappa", [0.3, 0.5])
@pytest.mark.parametrize("temperature", [0.1, 1.0])
def test_s_avuc_equals_its_definition(kappa, temperature):
    generator = torch.Generator().manual_seed(1)
    probs = torch.softmax(2 * torch.randn(80, 4, generator=generator, dtype=torch.float64), -1)
    labels = torch.randint(0, 4, (80,), generator=generator)
    expected = loop_s_avuc(probs.tolist(), labels.tolist(), kappa, temperature)
    value = s_avuc(probs=probs, labels=labels, kappa=kappa, temperature=temperature)
    assert value.item() == pytest.approx(expected, rel=1e-10)
    from_logits = s_avuc(logits=probs.log(), labels=labels, kappa=kappa, temperature=temperature)
    assert from_logits.item() == pytest.approx(expected, rel=1e-10)


def test_s_avuc_passes_gradcheck_and_survives_saturation():
    generator = torch.Generator().manual_seed(1)
    logits = torch.randn(10, 3, generator=generator, dtype=torch.float64, requires_grad=True)
    labels = torch.randint(0, 3, (10,), generator=generator)
    assert torch.autograd.gradcheck(lambda x: s_avuc(logits=x, labels=labels), logits)
    saturated = torch.tensor([[500.0, 0.0], [0.0, 500.0]], requires_grad=True)
    value = s_avuc(logits=saturated, labels=[0, 0])
    value.backward()
    assert torch.isfinite(value)
    assert torch.isfinite(saturated.grad).all()


def test_leading_axes_are_answered_row_by_row():
    rows = [world(40, seed) for seed in range(3)]
    z = torch.stack([r[0] for r in rows])
    correct = torch.stack([r[1] for r in rows])
    torch.testing.assert_close(sb_ece(z, correct), torch.stack([sb_ece(*r) for r in rows]))


def test_bad_parameters_are_named():
    with pytest.raises(InputError, match="temperature"):
        sb_ece([0.5], [True], temperature=0)
    with pytest.raises(InputError, match="kappa"):
        s_avuc(probs=[[0.5, 0.5]], labels=[0], kappa=1.0)
