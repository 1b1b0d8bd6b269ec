"""Stored answers along an orbit: whether they change, and how many pairs of them disagree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from ..actions import Boxes
from ..groups import Group
from ._boxes import iou

_IOU = 0.5
"""Overlap from which two un-transformed boxes are the same answer."""
_EVERY = {"model", "sample", "element"}


def answer_variables(dims: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """Return the stored variables that hold answers; empty if they are numbers.

    >>> answer_variables({"predicted": ["model", "sample", "element"], "label": ["sample"]})
    ('predicted',)
    """
    if "changed_pixels" in dims:
        return ("changed_pixels", "changed_pairs")
    for name in ("predicted", "answer"):
        if {*dims.get(name, ())} == _EVERY:
            return (name,)
    return ("box", "box_label") if {"box", "box_label"} <= dims.keys() else ()


def changes(
    names: tuple[str, ...], parts: Sequence[Tensor], group: Group, settings: Mapping[str, Any]
) -> tuple[Tensor, Tensor]:
    """Return whether the answers of samples change, and the share of pairs that disagree, `[n]`.

    Args:
        names: the variables that hold answers.
        parts: what they hold for n samples.
        group: the group.
        settings: those of the task, which know the size of images with boxes.
    """
    if names[0] == "changed_pixels":
        return parts[0], parts[1]
    weights = torch.as_tensor(group.weights)
    if names[0] == "box":
        return _of_boxes(parts[0], parts[1], group, Boxes(*settings["size"]), weights)
    return of_codes(parts[0], weights)


def of_codes(codes: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
    """Return whether codes `[n, K]` differ, and the share of pairs of elements that do, by weight.

        pairs = (1 - sum_c (sum of w_g with code c)^2) / (1 - sum_g w_g^2)

    >>> changed, pairs = of_codes(torch.tensor([[7, 7, 7], [7, 7, 3]]), torch.ones(3) / 3)
    >>> changed.tolist(), [round(share, 3) for share in pairs.tolist()]
    ([False, True], [0.0, 0.667])
    """
    ordered, order = codes.sort(dim=1)
    starts = torch.zeros_like(ordered)
    starts[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    run = starts.cumsum(1)
    mass = torch.zeros(codes.shape, dtype=torch.float64)
    mass.scatter_add_(1, run, weights.double()[order])
    alike = weights.double().square().sum()
    if alike >= 1 - 1e-12:  # a single element has no pairs
        return run[:, -1] > 0, torch.zeros(len(codes), dtype=torch.float64)
    return run[:, -1] > 0, ((1 - mass.square().sum(1)) / (1 - alike)).clamp(0, 1)


def _of_boxes(
    box: Tensor, label: Tensor, group: Group, action: Boxes, weights: Tensor
) -> tuple[Tensor, Tensor]:
    """Compare the un-transformed top boxes `[n, K, M, 4]` of all pairs of elements."""
    top = box[:, :, :1].transpose(0, 1)
    home = action.move(group.inverse(), top.nan_to_num(0.0))[:, :, 0].transpose(0, 1)
    kind = label[:, :, 0]
    overlap = torch.stack([iou(home, home[:, [k]]) for k in range(home.shape[1])], 2)
    both = kind[:, :, None] == kind[:, None]
    none = kind < 0
    agree = both & ((overlap >= _IOU) | (none[:, :, None] & none[:, None]))
    agree |= torch.eye(home.shape[1], dtype=torch.bool)
    pairs = torch.einsum("g,h,ngh->n", weights, weights, (~agree).double())
    return (~agree).flatten(1).any(1), pairs / (1 - weights.square().sum()).clamp(min=1e-12)
