"""Samples put together as a batch: stacked, or padded at the end, with a mask."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from .._ragged import mask_of
from .._trees import Tree
from ..errors import InputError
from .source import Batch


def split_item(item: object) -> tuple[Any, Any]:
    """Return the input and the target of an item, which is `x`, `(x,)` or `(x, y)`.

    >>> split_item((1.0, 3)), split_item(1.0)
    ((1.0, 3), (1.0, None))
    """
    if not isinstance(item, tuple | list):
        return item, None
    return item[0], item[1] if len(item) > 1 else None


def batch_of_items(items: Sequence[Any], start: int) -> Batch:
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


def padded(clouds: Sequence[Any], argument: str = "clouds") -> dict[str, Tensor]:
    """Pad clouds of unequal sizes to one batch.

    Args:
        clouds: Arrays `[points, 3]` (or `[points, 2]`), each with at least one point.
        argument: The name of the argument in error messages.

    Returns:
        `pos`, `[n, most, 3]`, padded with zeros at the end, and `mask`, `[n, most]`, true for
        points and false for padding.

    Raises:
        InputError: If there is no cloud, or one is empty, of another shape or not finite.

    Example:
        >>> import numpy as np
        >>> batch = padded([np.zeros((2, 3)), np.ones((5, 3))])
        >>> batch["pos"].shape, batch["mask"].sum(1).tolist()
        (torch.Size([2, 5, 3]), [2, 5])
    """
    if not len(clouds):
        raise InputError(argument, "at least one cloud", "none")
    each = [torch.as_tensor(cloud, dtype=torch.float32) for cloud in clouds]
    for place, cloud in enumerate(each):
        if cloud.ndim != 2 or len(cloud) == 0 or cloud.shape[1] != each[0].shape[-1]:
            raise InputError(
                argument,
                f"shape (points, {each[0].shape[-1]}), at least one point",
                f"{tuple(cloud.shape)} for cloud {place}",
            )
        if not bool(torch.isfinite(cloud).all()):
            raise InputError(argument, "finite numbers", f"NaN or infinity in cloud {place}")
    pos = pad_sequence(each, batch_first=True)
    return {"pos": pos, "mask": mask_of(torch.tensor([len(cloud) for cloud in each]))}


def differ_in_length(samples: Sequence[Any]) -> bool:
    """Check for arrays `[points, features]` that differ in the number of points only."""
    shapes = {tuple(getattr(one, "shape", ())) for one in samples}
    alike = {(len(shape), shape[1:]) for shape in shapes}
    return len(shapes) > 1 and len(alike) == 1 and len(next(iter(shapes))) == 2
