"""What every predictor offers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch

from .._trees import Tree, leaves, tree_map


@dataclass(frozen=True)
class Partial:
    """The answers of a model that failed on some inputs of a batch.

    `outputs` are complete in shape, with NaN for those inputs; `errors` says why, by their place in
    the batch. A scan records them and goes on.
    """

    outputs: Any
    errors: dict[int, str]


class Predictor(ABC):
    """A model behind one face.

    `source` says where it comes from. `answers` is what it is known to give (`probabilities` for an
    sklearn classifier), None where only the user knows. `one_at_a_time` says that it answers inputs
    one by one, and perhaps slowly: a scan then stores its answers sample by sample.
    """

    source: str
    outputs: str | None = None
    one_at_a_time: bool = False
    quantities: tuple[str, ...] = ()

    @abstractmethod
    def __call__(self, batch: Tree) -> Any:
        """Answer a batch `[N, ...]`."""

    def ask(self, quantities: tuple[str, ...]) -> None:
        """Say which quantities the task wants; a model that answers one thing need not listen."""
        self.quantities = quantities

    @contextmanager
    def ready(self, device: torch.device) -> Iterator[None]:
        """Prepare the model for a scan on a device, and restore it afterwards."""
        yield

    def fingerprint(self) -> str | None:
        """Hash the model's content; None where it has none that can be read."""
        return None


def to_numpy(batch: Tree) -> Tree:
    """Turn a batch of tensors into NumPy arrays."""
    return tree_map(lambda leaf: leaf.detach().cpu().numpy(), batch)


def batch_size(batch: Tree) -> int:
    """Count the inputs in a batch."""
    return len(next(leaves(batch)))
