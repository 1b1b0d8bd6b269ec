"""Actions on graphs: permutations of nodes rename the ends of edges."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor

from ..errors import InputError
from ..groups import Elements, Group
from .base import Exact
from .points import check_rows


class Edges(Exact):
    """Edges `[B, e, 2]` as pairs of node indices, -1 for padding; permutations rename the nodes.

    Edges keep their order, so that fields of edges need no action but `Trivial`.

    >>> import torch
    >>> from orbical.groups import permutations
    >>> Edges().apply(permutations(3), torch.tensor([[[0, 1], [-1, -1]]]))[-1].tolist()
    [[[2, 1], [-1, -1]]]
    """

    parts: ClassVar[tuple[str, ...]] = ("rows",)
    dims: ClassVar[tuple[str, ...]] = ("sample", "edge", "2")

    def move(self, elements: Elements, x: Tensor) -> Tensor:
        """Rename the ends of `x[K or 1, B, e, 2]`."""
        x = x.expand(len(elements), *x.shape[1:])
        if "rows" not in elements.parts:
            return x
        # Row i of the moved graph was row rows[i], so node j is now where rows has j.
        place = torch.as_tensor(elements.inverse().parts["rows"], device=x.device)
        ends = x.clamp_min(0).flatten(1).long()
        return place.gather(1, ends).reshape(x.shape).where(x >= 0, x.long()).to(x.dtype)

    def check(self, group: Group, x: Tensor) -> None:
        """Check that the edges join nodes that the permutations reorder."""
        super().check(group, x)
        if x.is_floating_point():
            raise InputError("data", "edges as node indices", x.dtype)
        most = group.parts["rows"].shape[1] if "rows" in group.parts else None
        if most is not None and x.numel() and int(x.max()) >= most:
            raise InputError(
                "data",
                f"edges between the {most} nodes that {group.spec} reorders",
                f"node {int(x.max())}",
            )


class Adjacency(Exact):
    """Matrices `[B, n, n, ...]` of pairs of nodes: permutations reorder rows and columns.

    >>> import torch
    >>> from orbical.groups import permutations
    >>> Adjacency().apply(permutations(2), torch.tensor([[[1, 2], [3, 4]]]))[1].tolist()
    [[[4, 3], [2, 1]]]
    """

    parts: ClassVar[tuple[str, ...]] = ("rows",)

    def move(self, elements: Elements, x: Tensor) -> Tensor:
        """Reorder `x[K or 1, B, n, n, ...]`."""
        x = x.expand(len(elements), *x.shape[1:])
        if "rows" not in elements.parts:
            return x
        rows = torch.as_tensor(elements.parts["rows"], device=x.device)
        each = torch.arange(len(rows), device=x.device)[:, None, None]
        moved = x.movedim(1, 3)[each, rows[:, :, None], rows[:, None]]
        return moved.movedim(3, 1)

    def check(self, group: Group, x: Tensor) -> None:
        """Check that there are as many rows and columns as the permutations reorder."""
        super().check(group, x)
        if x.ndim < 3 or x.shape[1] != x.shape[2]:
            raise InputError("data", "square matrices [sample, node, node]", x.shape)
        check_rows(group, x)
