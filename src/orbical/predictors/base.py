"""What every predictor offers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..trees import Tree, leaves, tree_map


class Predictor(ABC):
    """A model behind one face.

    `source` says where it comes from. `answers` is what it is known to give (`probabilities` for an
    sklearn classifier), None where only the user knows.
    """

    source: str
    answers: str | None = None

    @abstractmethod
    def __call__(self, batch: Tree) -> Any:
        """Answer a batch `[N, ...]`."""

    @contextmanager
    def ready(self, device: torch.device) -> Iterator[None]:
        """Prepare the model for a scan on a device, and restore it afterwards."""
        yield

    def fingerprint(self) -> str | None:
        """Hash the model's content; None where it has none that can be read."""
        return None


def as_tensors(raw: Any) -> Any:
    """Turn NumPy and JAX arrays in a raw output into tensors, and leave the rest as it is."""
    if isinstance(raw, Tensor):
        return raw
    if isinstance(raw, dict):
        return {key: as_tensors(value) for key, value in raw.items()}
    if isinstance(raw, tuple | list):
        return tuple(as_tensors(value) for value in raw)
    if hasattr(raw, "__array__") or isinstance(raw, int | float):
        return torch.as_tensor(np.array(raw))
    return raw


def to_numpy(batch: Tree) -> Tree:
    """Turn a batch of tensors into NumPy arrays."""
    return tree_map(lambda leaf: leaf.detach().cpu().numpy(), batch)


def batch_size(batch: Tree) -> int:
    """Count the inputs in a batch."""
    return len(next(leaves(batch)))
