"""Networks that only the studies use, one module a family."""

from __future__ import annotations

from torch import nn

__all__ = ["parameters_of"]


def parameters_of(network: nn.Module) -> int:
    """Return the number of trainable and fixed parameters of a network.

    Example:
        >>> from torch import nn
        >>> parameters_of(nn.Linear(3, 2))
        8
    """
    return sum(values.numel() for values in network.parameters())
