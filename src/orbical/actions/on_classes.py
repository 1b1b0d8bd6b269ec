"""The action on classes that move with the input: options of a list, left and right, 6 and 9."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor

from ..errors import InputError
from ..groups import Elements, Group
from .action import ByPart, Exact


class Classes(ByPart, Exact):
    """Classes that a part of the group permutes: labels `[B]`, or a number for each, `[B, C]`.

    Index arrays `[K, n]` of the part act as on rows: class `i` of the moved input is class
    `order[i]` of the input itself. Classes from `n` on stay, such as a tie of two answers.

    Args:
        part: `"rows"`, where class k is the k-th row of the input, or `"classes"`.

    Example:
        >>> from orbical.groups import permutations
        >>> scores = torch.tensor([[0.7, 0.2, 0.1]])
        >>> Classes("rows").apply(permutations(2), scores)[1].tolist() == [[
        ...     scores[0, 1], scores[0, 0], scores[0, 2]]]
        True
        >>> Classes("rows").apply(permutations(2), torch.tensor([0, 2]))[1].tolist()
        [1, 2]
    """

    parts: ClassVar[tuple[str, ...]] = ("rows", "classes")

    def __init__(self, part: str = "rows") -> None:
        if part not in self.parts:
            raise InputError("part", "'rows' or 'classes'", repr(part))
        self.part = part

    def move_each(self, elements: Elements, x: Tensor) -> Tensor:
        """Permute labels `x[K, B]`, or the numbers of classes `x[K, B, C]`."""
        order = torch.as_tensor(elements.parts[self.part], device=x.device)
        moving = order.shape[1]
        if x.ndim == 2:
            place = order.argsort(1).gather(1, x.clamp(0, moving - 1).long()).to(x.dtype)
            return place.where((x >= 0) & (x < moving), x)
        moved = x[..., :moving].gather(2, order[:, None].expand(-1, x.shape[1], -1))
        return torch.cat([moved, x[..., moving:]], -1)

    def unknown(self, group: Group) -> set[str]:
        """Return nothing: other parts leave classes as they are."""
        return set()
