"""Samples that come one by one, put together as a batch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from .._trees import Tree
from ..errors import InputError


def split_item(item: Any) -> tuple[Any, Any]:
    """Return the input and the target of an item, which is `x`, `(x,)` or `(x, y)`.

    >>> split_item((1.0, 3)), split_item(1.0)
    ((1.0, 3), (1.0, None))
    """
    if not isinstance(item, tuple | list):
        return item, None
    return item[0], item[1] if len(item) > 1 else None


def batch_of_items(items: Sequence[Any], start: int) -> tuple[Tree, Any]:
    """Stack the inputs and the targets of items, of which the first is sample `start`."""
    inputs, targets = zip(*map(split_item, items), strict=True)
    return stacked(inputs, start), None if targets[0] is None else stacked(targets, start)


def stacked(values: Sequence[Any], start: int) -> Tree:
    """Stack values, or each field of dictionaries and tuples, and name a sample that differs."""
    first = values[0]
    if isinstance(first, dict):
        return {key: stacked([one[key] for one in values], start) for key in first}
    if isinstance(first, tuple):
        return tuple(stacked(part, start) for part in zip(*values, strict=True))
    arrays: list[Any] = [one if isinstance(one, Tensor) else np.asarray(one) for one in values]
    shape = tuple(arrays[0].shape)
    for place, array in enumerate(arrays):
        if tuple(array.shape) != shape:
            raise InputError(
                "data",
                f"samples of shape {shape}, the shape of sample {start}",
                f"{tuple(array.shape)} for sample {start + place}",
                remedy="resize or crop images to one size, and pad point clouds of different "
                "sizes with orbical.datasets.padded",
            )
    if all(isinstance(array, Tensor) for array in arrays):
        return torch.stack(arrays)
    return np.stack(
        [array if isinstance(array, np.ndarray) else np.asarray(array) for array in arrays]
    )
