"""When a loss may look at values: never where it would make an accelerator wait."""

from __future__ import annotations

import torch
from torch import Tensor


def values_can_be_read(tensor: Tensor) -> bool:
    """Whether values are at hand: on the CPU, and not while a graph is being compiled."""
    return tensor.device.type == "cpu" and not torch.compiler.is_compiling()
