"""The measures as their papers define them, by loops or full matrices, for comparison."""

from __future__ import annotations

import torch
from torch import Tensor


def world(size: int, seed: int, levels: int | None = None) -> tuple[torch.Tensor, torch.Tensor]:
    """Confidences (on a few levels, so that they tie, if asked) and outcomes."""
    generator = torch.Generator().manual_seed(seed)
    z = torch.rand(size, generator=generator, dtype=torch.float64)
    if levels:
        z = (z * levels).round() / levels
    return z, torch.rand(size, generator=generator, dtype=torch.float64) < z**2


def paper_esd(confidence: Tensor, correct: Tensor) -> Tensor:
    """Eq. 10 of the ESD paper from all pairs; autograd holds the indicators fixed."""
    size = len(confidence)
    others = 1 - torch.eye(size, dtype=confidence.dtype)
    indicator = (confidence[None, :] <= confidence[:, None]).to(confidence.dtype)
    g = indicator * (correct.to(confidence.dtype) - confidence)[None, :] * others
    mean = g.sum(1) / (size - 1)
    variance = (((g - mean[:, None]) * others) ** 2).sum(1) / (size - 2)
    return (mean**2 - variance / (size - 1)).mean()


def paper_mmce_squared(confidence: Tensor, correct: Tensor, phi: float) -> Tensor:
    d = correct.to(confidence.dtype) - confidence
    kernel = torch.exp(-(confidence[:, None] - confidence[None, :]).abs() / phi)
    return (d[:, None] * d[None, :] * kernel).sum() / len(d) ** 2


def paper_mmce_weighted(confidence: Tensor, correct: Tensor, phi: float) -> Tensor:
    right, wrong = confidence[correct], confidence[~correct]

    def kernel(a: Tensor, b: Tensor) -> Tensor:
        return torch.exp(-(a[:, None] - b[None, :]).abs() / phi)

    total = confidence.new_zeros(())
    if len(right):
        total = total + ((1 - right) @ kernel(right, right) @ (1 - right)) / len(right) ** 2
    if len(wrong):
        total = total + (wrong @ kernel(wrong, wrong) @ wrong) / len(wrong) ** 2
    if len(right) and len(wrong):
        cross = (1 - right) @ kernel(right, wrong) @ wrong
        total = total - 2 * cross / (len(right) * len(wrong))
    return total


def paper_skce(confidence: Tensor, correct: Tensor, phi: float) -> Tensor:
    d = correct.to(confidence.dtype) - confidence
    kernel = torch.exp(-(confidence[:, None] - confidence[None, :]).abs() / phi)
    pairs = d[:, None] * d[None, :] * kernel
    return (pairs.sum() - pairs.diagonal().sum()) / (len(d) * (len(d) - 1))


def softened_esd(confidence: Tensor, correct: Tensor, width: float) -> Tensor:
    size = len(confidence)
    x = confidence[:, None] - confidence[None, :]
    half = torch.exp(-x.abs() / width) / 2
    indicator = torch.where(x >= 0, 1 - half, half) * (1 - torch.eye(size, dtype=x.dtype))
    terms = indicator * (correct.to(x.dtype) - confidence)[None, :]
    s, q = terms.sum(1), terms.square().sum(1)
    return (s**2 - q).sum() / (size * (size - 1) * (size - 2))


def loop_ece(confidence: Tensor, correct: Tensor, edges: list[float], weights: Tensor) -> dict:
    """ECE in its three norms by walking over samples and bins `(lo, hi]`, the first closed at 0."""
    bins = len(edges) - 1
    mass, conf, hits = [0.0] * bins, [0.0] * bins, [0.0] * bins
    for z, c, w in zip(confidence.tolist(), correct.tolist(), weights.tolist(), strict=True):
        for b in range(bins):
            inside = edges[b] < z <= edges[b + 1] or (b == 0 and z == edges[0])
            if inside:
                mass[b] += w
                conf[b] += w * z
                hits[b] += w * float(c)
                break
        else:
            raise AssertionError(f"{z} lies in no bin")
    gaps = [abs(h - c) / m if m else 0.0 for h, c, m in zip(hits, conf, mass, strict=True)]
    total = sum(mass)
    return {
        "l1": sum(m / total * g for m, g in zip(mass, gaps, strict=True)),
        "l2": sum(m / total * g * g for m, g in zip(mass, gaps, strict=True)) ** 0.5,
        "max": max(gaps),
    }


def loop_ks(confidence: Tensor, correct: Tensor) -> float:
    d = correct.double() - confidence.double()
    return max(abs(d[confidence <= t].sum().item()) for t in confidence) / len(d)
