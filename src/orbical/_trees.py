"""Batches as trees: a tensor, or nested dictionaries and tuples of tensors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch

from .errors import ModelError

Tree = Any  # Tensor | dict[str, Tree] | tuple[Tree, ...]


def tree_map(function: Callable[..., object], tree: Tree, *others: Tree) -> Tree:
    """Apply a function to each leaf, or to the leaves of several trees of the same shape.

    >>> tree_map(lambda a: a + 1, {"x": 1, "y": (2, 3)})
    {'x': 2, 'y': (3, 4)}
    """
    if isinstance(tree, dict):
        return {
            key: tree_map(function, value, *(other[key] for other in others))
            for key, value in tree.items()
        }
    if isinstance(tree, tuple | list):
        return tuple(tree_map(function, *leaves) for leaves in zip(tree, *others, strict=True))
    return function(tree, *others)


def leaves(tree: Tree) -> Iterator[Any]:
    """Yield the leaves of a tree in a fixed order."""
    if isinstance(tree, dict):
        for key in sorted(tree):
            yield from leaves(tree[key])
    elif isinstance(tree, tuple | list):
        for item in tree:
            yield from leaves(item)
    else:
        yield tree


def as_tensors(raw: object) -> Any:
    """Convert NumPy and JAX arrays in a raw output to tensors, and leave the rest unchanged.

    An output of tensors only is returned itself, so that named tuples and other mappings keep
    their types. A list of numbers, or of lists of as many, is one tensor.
    """
    if isinstance(raw, torch.Tensor):
        return raw
    if isinstance(raw, dict):
        fields = {key: as_tensors(value) for key, value in raw.items()}
        return raw if all(fields[key] is raw[key] for key in fields) else fields
    if isinstance(raw, list) and isinstance(next(leaves(raw), None), int | float):
        return torch.as_tensor(np.array(raw))
    if isinstance(raw, tuple | list):
        parts = [as_tensors(value) for value in raw]
        if isinstance(raw, tuple) and all(a is b for a, b in zip(parts, raw, strict=True)):
            return raw
        return type(raw)._make(parts) if hasattr(raw, "_make") else tuple(parts)
    if hasattr(raw, "__array__") or isinstance(raw, int | float):
        values = np.array(raw)
        return raw if values.dtype.kind in "UT" else torch.as_tensor(values)  # texts stay
    return raw


def concatenate(trees: list[Tree], dim: int = 0) -> Tree:
    """Concatenate trees of tensors along a dimension."""

    def joined(*parts: torch.Tensor) -> torch.Tensor:
        try:
            return torch.cat(parts, dim)
        except RuntimeError as error:
            shapes = {(*part.shape[:dim], *part.shape[dim + 1 :]) for part in parts}
            if len(shapes) == 1:
                raise
            got = " and ".join(map(str, sorted(shapes)))
            raise ModelError(f"expected one shape for all batches, got {got}") from error

    return tree_map(joined, trees[0], *trees[1:])


def flatten_leading(tree: Tree) -> Tree:
    """Merge the first two dimensions of every tensor."""
    return tree_map(lambda leaf: leaf.flatten(0, 1), tree)


def split_leading(tree: Tree, first: int, second: int) -> Tree:
    """Split the first dimension of every tensor in two."""
    return tree_map(lambda leaf: leaf.reshape(first, second, *leaf.shape[1:]), tree)


def to_device(tree: Tree, device: torch.device | str) -> Tree:
    """Move every tensor to a device, without waiting for the device."""

    there = torch.device(device)

    def move(leaf: torch.Tensor) -> torch.Tensor:
        if leaf.device == there:
            return leaf
        travels = there.type == "cuda" and leaf.device.type == "cpu"
        return (leaf.pin_memory() if travels else leaf).to(there, non_blocking=True)

    return tree_map(move, tree)
