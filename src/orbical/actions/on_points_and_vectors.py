"""Actions on points, vectors and other representations of rotations, and on graphs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from .._imports_and_paths import import_extra
from ..errors import InputError
from ..groups import Elements, Group
from .action import ActionTree, ByPart, Exact, OfFinite, action_matrices, check_affine_action
from .fields import Fields, as_action, group_of_rows

_PART_OF_DIMENSION = {2: "plane", 3: "space"}
_GROUP_OF = {"plane": "rotations:36", "space": "rotations3d:64"}


class Rows(Exact):
    """Rows `[B, n, ...]` that only permutations move, by reordering: atomic numbers, masks."""

    parts: ClassVar[tuple[str, ...]] = ("rows",)

    def move(self, elements: Elements, x: Tensor) -> Tensor:
        """Reorder `x[K or 1, B, n, ...]`."""
        return _reorder(elements, x.expand(len(elements), *x.shape[1:]))

    def check(self, group: Group, x: Tensor) -> None:
        """Check that there are as many rows as the permutations reorder."""
        super().check(group, x)
        check_permuted_rows(group, x)


class Points(OfFinite, Exact):
    """Positions `[B, n, d]` in the plane or in space: rotated, shifted, reordered.

    >>> import torch
    >>> from orbical.groups import cyclic
    >>> Points().apply(cyclic(4), torch.tensor([[[1.0, 0.0]]]))[1]
    tensor([[[0., 1.]]])
    """

    parts: ClassVar[tuple[str, ...]] = ("plane", "space", "rows")
    in_place: ClassVar[tuple[str, ...]] = ("plane", "space")
    dims: ClassVar[tuple[str, ...]] = ("sample", "point", "coordinate")
    drawn_as: ClassVar[str] = "points"

    def move(self, elements: Elements, x: Tensor) -> Tensor:
        """Move `x[K or 1, B, n, d]`; integers become float32, whatever the group."""
        x = _real(x)
        part = _PART_OF_DIMENSION.get(x.shape[-1], "")  # rows of other widths are only reordered
        if part in elements.parts:
            x = _projected_points(elements.parts[part], x.expand(len(elements), *x.shape[1:]))
        return _reorder(elements, x.expand(len(elements), *x.shape[1:]))

    def moved_by(self, x: Tensor) -> frozenset[str]:
        """Return the part of the coordinates, and rows."""
        return _parts_of(x) | {"rows"}

    def check(self, group: Group, x: Tensor) -> None:
        """Check that the points have the dimension that the group acts on."""
        super().check(group, x)
        _check_points_dimension(group, x, "points")
        check_permuted_rows(group, x)
        self.check_values(x)
        if group.has_homographies and bool(torch.isnan(self.apply(group, x)).any()):
            raise InputError(
                "data",
                f"points in front of the horizon of every homography in {group.spec}",
                "some beyond it",
                remedy="choose smaller angles",
            )


class Position(Points):
    """One position `[B, d]` in the plane or in space, such as a centroid: rotated and shifted.

    >>> import torch
    >>> from orbical.groups import translations
    >>> Position().apply(translations(1), torch.tensor([[1.0, 0.0]]))[5]
    tensor([[2., 0.]])
    """

    parts: ClassVar[tuple[str, ...]] = ("plane", "space")
    ignored: ClassVar[tuple[str, ...]] = ("rows",)
    dims: ClassVar[tuple[str, ...]] = ("sample", "coordinate")

    def move(self, elements: Elements, x: Tensor) -> Tensor:
        """Move `x[K or 1, B, d]`; the order of other points does not matter to it."""
        only = Elements({k: v for k, v in elements.parts.items() if k in self.parts}, len(elements))
        return super().move(only, x[:, :, None])[:, :, 0]

    def moved_by(self, x: Tensor) -> frozenset[str]:
        """Return the part of the coordinates."""
        return _parts_of(x)

    def check(self, group: Group, x: Tensor) -> None:
        """Check that the position has the dimension that the group acts on."""
        Exact.check(self, group, x)
        _check_points_dimension(group, x, "positions")


def _projected_points(maps: np.ndarray, x: Tensor) -> Tensor:
    """Move points `[K, B, n, d]` by homogeneous matrices; NaN beyond the horizon of one."""
    moved = _multiply(action_matrices(maps[:, :-1, :-1], x), x)
    if maps[:, :-1, -1].any():
        moved = moved + action_matrices(maps[:, :-1, -1], x)[:, None, None]
    tilt = maps[:, -1, :-1]
    if not tilt.any():
        return moved
    depth = 1 + torch.einsum("kj,kbnj->kbn", action_matrices(tilt, x), x)[..., None]
    return moved / depth.where(depth > 0, torch.nan)


class Vectors(Exact):
    """Vectors `[B, ..., d]`: rotated, never shifted.

    With `per_point=True` they belong to points, `[B, n, d]`, and permutations reorder them too.
    """

    parts: ClassVar[tuple[str, ...]] = ("plane", "space", "rows")
    in_place: ClassVar[tuple[str, ...]] = ("plane", "space")

    def __init__(self, per_point: bool = False) -> None:
        self.per_point = per_point

    def move(self, elements: Elements, x: Tensor) -> Tensor:
        """Move `x[K or 1, B, ..., d]`."""
        moved = _real(x).expand(len(elements), *x.shape[1:])
        part = _PART_OF_DIMENSION.get(x.shape[-1], "")
        if part in elements.parts:
            moved = _multiply(action_matrices(elements.linear(part), moved), moved)
        return _reorder(elements, moved) if self.per_point else moved

    def moved_by(self, x: Tensor) -> frozenset[str]:
        """Return the part of the coordinates and, per point, rows."""
        return _parts_of(x) | ({"rows"} if self.per_point else set())

    def check(self, group: Group, x: Tensor) -> None:
        """Check that the vectors have the dimension that the group acts on."""
        super().check(group, x)
        _check_points_dimension(group, x, "vectors")
        check_affine_action(group, "Vectors")
        if self.per_point:
            check_permuted_rows(group, x)


class Irreps(Exact):
    """Features `[B, ..., D]` that rotate as an e3nn representation with parity: `0e + 1o`.

    `irreps` is its text. With `per_point=True` the features belong to points, `[B, n, D]`, and
    permutations reorder them too. Needs the extra `equivariant`.
    """

    parts: ClassVar[tuple[str, ...]] = ("space", "rows")
    in_place: ClassVar[tuple[str, ...]] = ("space",)

    def __init__(self, irreps: str, per_point: bool = False) -> None:
        self.irreps = str(_load_irreps(irreps))
        self.per_point = per_point

    @property
    def size(self) -> int:
        """The number of features."""
        return int(_load_irreps(self.irreps).dim)

    def move(self, elements: Elements, x: Tensor) -> Tensor:
        """Move `x[K or 1, B, ..., D]`."""
        x = _real(x)
        moved = x.expand(len(elements), *x.shape[1:])
        if "space" in elements.parts:
            turns = torch.as_tensor(np.ascontiguousarray(elements.linear("space")))
            moved = _multiply(_irreps_matrices(self.irreps, turns).to(x), moved)
        return _reorder(elements, moved) if self.per_point else moved

    def moved_by(self, x: Tensor) -> frozenset[str]:
        """Return space, if some feature is no true scalar, and rows per point."""
        turns = any(irrep.l > 0 or irrep.p < 0 for _, irrep in _load_irreps(self.irreps))
        return frozenset(({"space"} if turns else set()) | ({"rows"} if self.per_point else set()))

    def check(self, group: Group, x: Tensor) -> None:
        """Check the number of features, and that the group moves space if it moves the plane."""
        super().check(group, x)
        check_affine_action(group, "Irreps")
        if "plane" in group.parts and "space" not in group.parts:
            raise InputError(
                "data",
                f"a group of space for irreps {self.irreps!r}, but {group.spec} moves plane",
                remedy="pass representation='vector' or 'trivial'",
            )
        if x.shape[-1] != self.size:
            raise InputError(
                "data", f"the {self.size} features of irreps {self.irreps!r}", x.shape[-1]
            )
        if self.per_point:
            check_permuted_rows(group, x)


class Blocks(Exact):
    """Outputs of several kinds side by side, `[B, D]`, each moved by its own action.

    Args:
        of: an action for each block, by name, in their order.
        widths: the number of components of each block.

    Example:
        >>> import torch
        >>> from orbical.actions import Trivial
        >>> from orbical.groups import translations
        >>> action = Blocks({"place": Position(), "size": Trivial()}, {"place": 2, "size": 1})
        >>> action.apply(translations(1), torch.tensor([[1.0, 0.0, 7.0]]))[5]
        tensor([[2., 0., 7.]])
    """

    def __init__(self, of: ActionTree, widths: Mapping[str, int]) -> None:
        self.of = as_action(of)
        self.widths = {str(name): int(width) for name, width in widths.items()}

    def split(self, rows: Tensor) -> dict[str, Tensor]:
        """Return the blocks of rows `[..., D]`."""
        return dict(zip(self.widths, rows.split([*self.widths.values()], -1), strict=True))

    def move(self, elements: Elements, x: Tensor) -> Tensor:
        """Move each block of `x[K or 1, B, D]`."""
        return self._joined(self.of.move(elements, self.split(x)))

    def difference(self, x: Tensor, y: Tensor) -> Tensor:
        """Return the difference of each block."""
        return self._joined(self._fields.difference(self.split(x), self.split(y)))

    def mean(self, x: Tensor, weights: Tensor) -> Tensor:
        """Average each block."""
        return self._joined(self._fields.mean(self.split(x), weights))

    @property
    def _fields(self) -> Fields:
        assert isinstance(self.of, Fields)
        return self.of

    def _joined(self, blocks: Mapping[str, Tensor]) -> Tensor:
        return torch.cat([blocks[name] for name in self.widths], -1)

    def check(self, group: Group, x: Tensor) -> None:
        """Check each block."""
        self.of.check(group, self.split(x))

    def unknown(self, group: Group) -> set[str]:
        """Return the parts that some block does not know."""
        return self.of.unknown(group)


def _load_irreps(text: str) -> Any:
    o3 = import_extra("e3nn.o3", "equivariant", f"the representation {text!r}")
    try:
        irreps = o3.Irreps(text)
    except Exception:
        irreps = None
    if not irreps:  # none, or none of them
        raise InputError(
            "representation",
            "'trivial', 'vector', 'positions' or e3nn irreps such as '0e + 1o'",
            repr(text),
        )
    return irreps


def _real(x: Tensor) -> Tensor:
    return x if x.is_floating_point() else x.float()


def _irreps_matrices(irreps: str, turns: Tensor) -> Tensor:
    """Return the matrices `[K, D, D]` of a representation in e3nn's basis, in double precision.

    They are found from `Y(R x) = D(R) Y(x)` for spherical harmonics Y at fixed points x, because
    e3nn's own matrices pass through Euler angles in single precision and are off by up to 1e-5.
    """
    from e3nn import o3

    sign = torch.linalg.det(turns).sign()
    proper = turns * sign[:, None, None]
    points = torch.as_tensor(np.random.default_rng(0).normal(size=(64, 3)))
    whole = _load_irreps(irreps)
    matrix = turns.new_zeros(len(turns), whole.dim, whole.dim)
    start = 0
    for copies, irrep in whole:
        still = o3.spherical_harmonics(irrep.l, points, False)
        moved = o3.spherical_harmonics(irrep.l, points @ proper.transpose(1, 2), False)
        block = (torch.linalg.pinv(still) @ moved).transpose(1, 2)
        parity = torch.where(sign < 0, float(irrep.p), 1.0)
        for _ in range(copies):
            stop = start + irrep.dim
            matrix[:, start:stop, start:stop] = block * parity[:, None, None]
            start = stop
    return matrix


def _multiply(turns: Tensor, x: Tensor) -> Tensor:
    """Multiply `[K, d, d]` with `[K, ..., d]`: one matrix product for each element.

    The small matrix stands left: a product of few rows and many columns is up to four times faster.
    """
    flat = x.reshape(x.shape[0], -1, x.shape[-1])
    turned = torch.bmm(turns, flat.transpose(1, 2)).transpose(1, 2)
    return turned.contiguous().reshape(x.shape)


def _reorder(elements: Elements, x: Tensor) -> Tensor:
    """Reorder the rows of `x[K, B, n, ...]`."""
    if "rows" not in elements.parts:
        return x
    rows = torch.as_tensor(elements.parts["rows"], device=x.device)
    shape = [len(elements), 1, rows.shape[1]] + [1] * (x.ndim - 3)
    return torch.gather(x, 2, rows.reshape(shape).expand(x.shape))


def _parts_of(x: Tensor) -> frozenset[str]:
    """Return the part of a group that moves coordinates `[..., d]`, if there is one."""
    return frozenset(filter(None, [_PART_OF_DIMENSION.get(x.shape[-1])]))


def _check_points_dimension(group: Group, x: Tensor, kind: str) -> None:
    dimension = x.shape[-1]
    part = _PART_OF_DIMENSION.get(dimension)
    moves = {"plane", "space"} & {*group.parts}
    remedy = f"pass {_GROUP_OF[part]}, say" if part in _GROUP_OF else ""
    if part is None and x.ndim == 3 and _PART_OF_DIMENSION.get(x.shape[1]) in moves:
        remedy = "pass [sample, point, coordinate], here x.swapaxes(1, 2)"
    if moves and part not in moves:
        raise InputError(
            "data",
            f"{kind} with the coordinates that {group.spec} moves ({' and '.join(sorted(moves))})",
            f"{dimension} coordinates",
            remedy=remedy,
        )


def check_permuted_rows(
    group: Group, x: Tensor, what: str = "rows in the second dimension"
) -> None:
    """Refuse data of which a permutation cannot reorder the second dimension."""
    if "rows" not in group.parts or (x.ndim > 1 and x.shape[1] == group.parts["rows"].shape[1]):
        return
    rows = x.shape[1] if x.ndim > 1 else 0
    raise InputError(
        "data",
        f"{group.parts['rows'].shape[1]} {what}, which {group.spec} reorders",
        rows or x,
        remedy=f"pass {group_of_rows('permutations', rows)}" if rows > 1 else "",
    )


class Edges(ByPart, Exact):
    """Edges `[B, e, 2]` as pairs of node indices, -1 for padding; permutations rename the nodes.

    Edges keep their order, so that fields of edges need no action but `Trivial`.

    >>> import torch
    >>> from orbical.groups import permutations
    >>> Edges().apply(permutations(3), torch.tensor([[[0, 1], [-1, -1]]]))[-1].tolist()
    [[[2, 1], [-1, -1]]]
    """

    part = "rows"
    parts: ClassVar[tuple[str, ...]] = ("rows",)
    dims: ClassVar[tuple[str, ...]] = ("sample", "edge", "2")

    def move_each(self, elements: Elements, x: Tensor) -> Tensor:
        """Rename the ends of `x[K, B, e, 2]`."""
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


class Adjacency(ByPart, Exact):
    """Matrices `[B, n, n, ...]` of pairs of nodes: permutations reorder rows and columns.

    >>> import torch
    >>> from orbical.groups import permutations
    >>> Adjacency().apply(permutations(2), torch.tensor([[[1, 2], [3, 4]]]))[1].tolist()
    [[[4, 3], [2, 1]]]
    """

    part = "rows"
    parts: ClassVar[tuple[str, ...]] = ("rows",)

    def move_each(self, elements: Elements, x: Tensor) -> Tensor:
        """Reorder `x[K, B, n, n, ...]`."""
        rows = torch.as_tensor(elements.parts["rows"], device=x.device)
        each = torch.arange(len(rows), device=x.device)[:, None, None]
        moved = x.movedim(1, 3)[each, rows[:, :, None], rows[:, None]]
        return moved.movedim(3, 1)

    def check(self, group: Group, x: Tensor) -> None:
        """Check that there are as many rows and columns as the permutations reorder."""
        super().check(group, x)
        if x.ndim < 3 or x.shape[1] != x.shape[2]:
            raise InputError("data", "square matrices [sample, node, node]", x)
        check_permuted_rows(group, x)
