"""The action on volumes: arrays of voxels.

Space has x along the columns, y up (against the rows) and z along the depth, so that a turn about z
turns every slice as `Images` turns it. As with images, a group of axis permutations and mirrors
moves volumes exactly; any other group resamples all its elements alike, the identity included.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import ClassVar

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from ..errors import InputError, check_name
from ..groups import Elements, Group
from .action import OfFinite, check_affine_action
from .on_images import PADDINGS

INTERPOLATIONS = {"nearest": "nearest", "trilinear": "bilinear"}  # torch's names
_SIDES = ("depth", "row", "column")
_ROWS_DOWN = np.diag([1.0, -1.0, 1.0, 1.0])
_MOST_GRID_NUMBERS = 2**24  # 64 MB in single precision


class Volumes(OfFinite):
    """Volumes `[B, C, D, H, W]`, moved about their center by groups of space.

    `interpolation` is `trilinear` or `nearest`, `padding` what lies outside: `zeros`, `border` or
    `reflect`. `spacing` are the sides of a voxel along depth, rows and columns, in mm or another
    unit, in which shifts are then measured; by default voxels are cubes of side 1. The groups of
    the cube (`octahedral`, `inversion`, `reflections3d`, ...) permute and mirror axes, bit for bit.
    An element that shrinks is not filtered.

    >>> import torch
    >>> from orbical.groups import pointgroup
    >>> slices = torch.tensor([[[[[1., 2.], [3., 4.]]]]])
    >>> Volumes().apply(pointgroup("4"), slices)[2, 0, 0, 0]    # 4+ about z, a quarter turn
    tensor([[2., 4.],
            [1., 3.]])
    """

    parts: ClassVar[tuple[str, ...]] = ("space",)
    dims: ClassVar[tuple[str, ...]] = ("sample", "channel", *_SIDES)
    drawn_as: ClassVar[str] = "volume"

    def __init__(
        self,
        interpolation: str = "trilinear",
        padding: str = "zeros",
        spacing: Sequence[float] | None = None,
    ) -> None:
        check_name("interpolation", interpolation, INTERPOLATIONS)
        check_name("padding", padding, PADDINGS)
        self.interpolation = interpolation
        self.padding = padding
        self.spacing = None if spacing is None else [float(side) for side in spacing]
        if self.spacing is not None and (len(self.spacing) != 3 or min(self.spacing) <= 0):
            raise InputError("spacing", "three sides > 0 of a voxel (depth, row, column)", spacing)

    def move(self, elements: Elements, x: Tensor) -> Tensor:
        """Move `x[K or 1, B, C, D, H, W]`; integers become float32, whatever the group."""
        x = x if x.is_floating_point() else x.float()
        if elements.exact_on_grid:
            return _move_volume_exactly(elements, x)
        # Half precision knows places in a volume to a tenth of a voxel, which is not enough.
        single = x.float() if x.dtype.itemsize < 4 else x
        planes = single.flatten(1, 2).expand(len(elements), -1, -1, -1, -1)
        mode, padding = INTERPOLATIONS[self.interpolation], PADDINGS[self.padding]
        sample = partial(F.grid_sample, mode=mode, padding_mode=padding, align_corners=False)
        found = [sample(planes[rows], grid) for rows, grid in self._grids(elements, single)]
        return torch.cat(found).to(x.dtype).reshape(len(elements), *x.shape[1:])

    def _grids(self, elements: Elements, x: Tensor) -> Iterator[tuple[slice, Tensor]]:
        """Yield sampling grids `[k, D, H, W, 3]` of a few elements at a time, in torch's units."""
        size = x.shape[-3:]
        half = np.array([*size[::-1], 2.0]) / 2  # from torch's units to voxels
        back = voxel_frame(elements.inverse(), self.spacing) * half / half[:, None]
        step = max(1, _MOST_GRID_NUMBERS // (3 * max(1, size.numel())))
        for start in range(0, len(elements), step):
            rows = slice(start, start + step)
            theta = torch.as_tensor(back[rows, :3], dtype=torch.float64).to(x.dtype).to(x.device)
            yield rows, F.affine_grid(theta, [len(theta), 1, *size], align_corners=False)

    def valid(self, elements: Elements, x: Tensor) -> Tensor | None:
        """Return a mask `[K, D, H, W]` of voxels that come from inside; None if all do."""
        if elements.exact_on_grid:
            return None
        sides = torch.tensor(x.shape[-3:][::-1], dtype=torch.float32)
        limit = ((sides - 1) / sides + 1e-5).to(x.device)
        like = torch.empty(x.shape[-3:], device=x.device)
        each = (grid for _, grid in self._grids(elements, like))
        inside = torch.cat([(grid.abs() <= limit).all(-1) for grid in each])
        return None if bool(inside.all()) else inside

    def loses_nothing(self, elements: Elements, x: Tensor) -> bool:
        """Check whether voxels are permuted and not resampled."""
        return elements.exact_on_grid

    def check(self, group: Group, x: Tensor) -> None:
        """Check the shape, the group, and that axes to be exchanged are equally long."""
        super().check(group, x)
        if "plane" in group.parts and "space" not in group.parts:
            raise InputError(
                "data",
                problem=f"shape {tuple(x.shape)} is read as volumes [{', '.join(self.dims)}], "
                f"which {group.spec} does not move",
                remedy="use a group of space, such as octahedral or pointgroup:4 (quarter turns "
                "of each slice), or pass the action of other data, such as "
                "input=ob.actions.ImagePair()",
            )
        check_volume_sides(group, x, self.spacing)


def voxel_frame(elements: Elements, spacing: Sequence[float] | None = None) -> np.ndarray:
    """Return the matrices of space `[K, 4, 4]` in voxels: columns, rows down, depth."""
    if "space" not in elements.parts:
        return np.tile(np.eye(4), (len(elements), 1, 1))
    sides = np.array([*(spacing or (1.0, 1.0, 1.0))[::-1], 1.0])
    result: np.ndarray = _ROWS_DOWN @ elements.parts["space"] @ _ROWS_DOWN
    return np.asarray(result * sides / sides[:, None])


def _move_volume_exactly(elements: Elements, x: Tensor) -> Tensor:
    """Permute and mirror the axes of `x[K or 1, B, ..., D, H, W]`, element by element."""
    lead = tuple(range(x.ndim - 4))
    moved = x.new_empty(len(elements), *x.shape[1:])
    for place, turn in enumerate(voxel_frame(elements)[:, :3, :3]):
        source = np.abs(turn).argmax(1)  # the axis (column, row, depth) that each new axis shows
        mirrored = turn[np.arange(3), source] < 0
        order = [x.ndim - 2 - int(axis) for axis in source[::-1]]
        flips = [-1 - axis for axis in range(3) if mirrored[axis]]
        given = x[place if len(x) > 1 else 0]
        moved[place] = given.permute(*lead, *order).flip(flips)
    return moved


def check_volume_sides(group: Group, x: Tensor, spacing: Sequence[float] | None = None) -> None:
    """Refuse volumes without voxels, and those of which unlike axes are exchanged."""
    if 0 in x.shape[1:]:
        raise InputError("data", "some voxels", f"volumes of shape {tuple(x.shape)}")
    check_affine_action(group, "Volumes")
    if not group.exact_on_grid or "space" not in group.parts:
        return
    exchanged = (group.parts["space"][:, :3, :3] != 0).any(0)  # [to, from] of x, y, z
    for sides, what, remedy in (
        (x.shape[-3:], "voxels", "crop or pad the volumes to a cube"),
        (spacing or (1,) * 3, "mm as sides of a voxel", "resample them to cubic voxels"),
    ):
        line = np.array(sides)[::-1]
        if (exchanged & ~np.isclose(line[:, None], line, rtol=1e-4)).any():
            raise InputError(
                "data",
                f"equal sides along the axes that {group.spec} exchanges",
                f"{' x '.join(map('{:g}'.format, sides))} {what}",
                remedy=remedy,
            )
