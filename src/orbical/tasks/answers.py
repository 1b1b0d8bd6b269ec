"""Answers along an orbit: texts and codes, which are equal, and how many pairs disagree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from .._trees import to_device
from ..actions import Boxes
from ..groups import Group
from .detection_matching import iou
from .task import Variable, per_element

ANSWER: Variable = per_element("number of the prediction, the same for equal predictions")


def answer_codes(rows: Tensor) -> Tensor:
    """Return a number `[...]` for each row of whole numbers `[..., n]`, equal where rows are.

    Different rows differ but for a chance of about 2^-40.

    >>> codes = answer_codes(torch.tensor([[0, 1, 1], [0, 1, 1], [1, 0, 1]]))
    >>> (codes[0] == codes).tolist()
    [True, True, False]
    """
    seeded = torch.Generator().manual_seed(0)
    factors = torch.randint(-(2**62), 2**62, (rows.shape[-1],), generator=seeded)
    weighted: Tensor = rows.long() * to_device(factors, rows.device)
    return weighted.sum(-1)


def majority_of_answer_codes(codes: Tensor, weights: Tensor) -> Tensor:
    """Return the index `[B]` of the first of K answers whose equals weigh most, from `[K, B]`.

    >>> codes = torch.tensor([[7], [3], [3]])
    >>> majority_of_answer_codes(codes, torch.tensor([0.4, 0.3, 0.3])).tolist()
    [1]
    """
    order, run, mass = _masses(codes, weights)
    each = torch.empty_like(mass).scatter_(0, order, mass.gather(0, run))
    # Sums of equal weights in another order may differ in their last bits.
    return (each > each.amax(0) - 1e-9).to(torch.uint8).argmax(0)


def _masses(codes: Tensor, weights: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return the order of codes `[K, B]`, the number of each in it, and the mass of each number."""
    ordered, order = codes.sort(dim=0)
    starts = torch.zeros_like(ordered)
    starts[1:] = ordered[1:] != ordered[:-1]
    run = starts.cumsum(0)
    mass = torch.zeros(codes.shape, dtype=torch.float64, device=codes.device)
    return order, run, mass.scatter_add_(0, run, weights.double()[order])


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


def answer_changes(
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
        return _box_answer_changes(parts[0], parts[1], group, Boxes(*settings["size"]), weights)
    return answer_code_changes(parts[0], weights)


def answer_code_changes(codes: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
    """Return whether codes `[n, K]` differ, and the share of pairs of elements that do, by weight.

        pairs = (1 - sum_c (sum of w_g with code c)^2) / (1 - sum_g w_g^2)

    >>> codes = torch.tensor([[7, 7, 7], [7, 7, 3]])
    >>> changed, pairs = answer_code_changes(codes, torch.ones(3) / 3)
    >>> changed.tolist(), [round(share, 3) for share in pairs.tolist()]
    ([False, True], [0.0, 0.667])
    """
    _, run, mass = _masses(codes.T, weights)
    changed, alike = run[-1] > 0, weights.double().square().sum()
    pairs = ((1 - mass.square().sum(0)) / (1 - alike)).clamp(0, 1)
    return changed, torch.where(changed, pairs, 0.0)  # 0 also if rounding or no pair says otherwise


def _box_answer_changes(
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
