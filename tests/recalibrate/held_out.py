"""Outputs that calibrators are fitted on: drawn, and of real networks."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from torch import Tensor

REAL = [
    "lenet-5-cifar-10",
    "wideresnet-16-4-cifar-10",
    "lenet-5-cifar-100",
    "densenet-bc-100-cifar-100",
]


def outputs(
    size: int = 400, classes: int = 4, temperature: float = 2.0, seed: int = 0
) -> tuple[Tensor, Tensor]:
    """Logits whose labels are drawn from `softmax(logits / temperature)`."""
    generator = torch.Generator().manual_seed(seed)
    logits = 3 * torch.randn(size, classes, generator=generator, dtype=torch.float64)
    probs = torch.softmax(logits / temperature, dim=1)
    return logits, torch.multinomial(probs, 1, generator=generator)[:, 0]


def real(folder: Path, name: str, size: int | None = None) -> tuple[Tensor, Tensor]:
    with np.load(folder / "logits" / f"{name}.npz") as file:
        probs, labels = file["probs"][:size], file["labels"][:size].astype(np.int64)
    return torch.from_numpy(probs), torch.from_numpy(labels)


def nll(probs: Tensor, labels: Tensor) -> float:
    return -probs.double().gather(-1, labels[..., None]).log().mean().item()
