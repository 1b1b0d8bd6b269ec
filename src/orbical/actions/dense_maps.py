"""Actions on what models predict for each pixel: class maps, and maps of values and vectors."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from ..errors import InputError, check_name, whole_number
from ..groups import Elements, Group
from .base import Action, matrices
from .images import Images, _check_large, _check_square
from .pixel_grids import check_affine, inside_of, pixel_frame

REPRESENTATIONS = ("trivial", "vector", "normal")
_ROUNDING = 1e-3


class _Maps(Action):
    """What all maps share: with `size`, the result is the central view of maps that may be larger.

    It is what a `Window` of that size shows.
    """

    parts: ClassVar[tuple[str, ...]] = ("plane",)

    def __init__(self, interpolation: str, size: int | None) -> None:
        self.interpolation = interpolation
        self.size = None if size is None else whole_number("size", size, 1)
        self._smooth = Images(interpolation, "border")

    def _moved(self, action: Images, elements: Elements, x: Tensor) -> Tensor:
        if self.size is None:
            return action.move(elements, x)
        return action._resample(elements, x, (self.size, self.size))

    def valid(self, elements: Elements, x: Tensor) -> Tensor | None:
        """Return a mask `[K, H, W]` of pixels that come from inside the map; None if all do."""
        if self.size is None and elements.exact_on_grid:
            return None
        shape = tuple(x.shape[-2:]) if self.size is None else (self.size, self.size)
        inside = inside_of(elements, shape, x)
        return None if bool(inside.all()) else inside

    def check(self, group: Group, x: Tensor) -> None:
        """Check the size of the maps."""
        super().check(group, x)
        _check_square(group, x)
        if self.size is not None:
            _check_large(x, self.size)


class ClassMaps(_Maps):
    """Class maps that move with their images.

    Probabilities `[B, C, H, W]` are resampled by `interpolation`, labels `[B, H, W]` (integers) by
    the nearest neighbor, so that no class is invented. With `size`, the result is the central
    `size` pixels, as a `Window` of that size shows them; the maps may be larger.

    >>> import torch
    >>> from orbical.groups import cyclic
    >>> ClassMaps().apply(cyclic(4), torch.tensor([[[1, 2], [3, 4]]]))[1, 0]
    tensor([[2, 4],
            [1, 3]])
    """

    def __init__(self, interpolation: str = "bilinear", size: int | None = None) -> None:
        super().__init__(interpolation, size)
        self._nearest = Images("nearest", "border")

    def move(self, elements: Elements, x: Tensor) -> Tensor:
        """Move probabilities `x[K or 1, B, C, H, W]`, or labels `x[K or 1, B, H, W]`."""
        if x.is_floating_point():
            return self._moved(self._smooth, elements, x)
        return self._moved(self._nearest, elements, x[:, :, None])[:, :, 0].round().to(x.dtype)

    def check(self, group: Group, x: Tensor) -> None:
        """Check the number of dimensions and the size."""
        if isinstance(x, Tensor) and x.ndim != (4 if x.is_floating_point() else 3):
            raise InputError(
                "class maps",
                "probabilities [sample, class, row, column] or integer labels [sample, "
                "row, column]",
                f"{x.dtype} of shape {tuple(x.shape)}",
            )
        super().check(group, x)


class ValueMaps(_Maps):
    """Maps of values or vectors `[B, C, H, W]` that move with their images; NaN is unknown.

    `representation` is `trivial` (depth, heat maps: values only move), `vector` (displacements in
    pixels, which an element turns, mirrors and scales) or `normal` (directions, which it turns and
    mirrors). Vectors have 2 or 3 components: x to the right, y down, and z along the line of sight,
    which the plane leaves as it is. A result that depends on an unknown value is unknown.

    >>> import torch
    >>> from orbical.groups import cyclic
    >>> right = torch.tensor([1.0, 0.0, 0.0]).reshape(1, 3, 1, 1)
    >>> ValueMaps("normal").apply(cyclic(4), right)[1].flatten() + 0.0    # up: y is down
    tensor([ 0., -1.,  0.])
    """

    dims: ClassVar[tuple[str, ...]] = ("sample", "component", "row", "column")

    def __init__(
        self,
        representation: str = "trivial",
        interpolation: str = "bilinear",
        size: int | None = None,
    ) -> None:
        check_name("representation", representation, REPRESENTATIONS)
        super().__init__(interpolation, size)
        self.representation = representation

    def move(self, elements: Elements, x: Tensor) -> Tensor:
        """Move `x[K or 1, B, C, H, W]`."""
        moved = move_known(partial(self._moved, self._smooth, elements), x)
        if self.representation == "trivial":
            return moved
        turn = np.tile(np.eye(x.shape[2]), (len(elements), 1, 1))
        turn[:, :2, :2] = pixel_frame(elements)[:, :2, :2]
        if self.representation == "normal":
            turn[:, :2, :2] /= np.sqrt(np.abs(np.linalg.det(turn[:, :2, :2])))[:, None, None]
        return torch.einsum("kij,kbjhw->kbihw", matrices(turn, moved), moved)

    def check(self, group: Group, x: Tensor) -> None:
        """Check the number of components, and that directions stay directions."""
        super().check(group, x)
        if self.representation == "trivial":
            return
        if x.shape[1] not in (2, 3):
            raise InputError("maps", f"2 or 3 components of each {self.representation}", x.shape[1])
        check_affine(group, "ValueMaps")
        linear = pixel_frame(group)[:, :2, :2]
        size = np.abs(np.linalg.det(linear))[:, None, None] * np.eye(2)
        if self.representation == "normal" and not np.allclose(
            linear @ linear.transpose(0, 2, 1), size, atol=1e-9
        ):
            raise InputError(
                "group",
                problem=f"{group.spec} shears or stretches the plane, and what that does to "
                "normals depends on the depth",
                remedy="use rotations, reflections, shifts and scalings",
            )


def move_known(move: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    """Move values of which NaN is unknown; a result that depends on an unknown one is NaN."""
    known = torch.isfinite(x)
    moved = move(x.nan_to_num(0.0, 0.0, 0.0))
    if bool(known.all()):
        return moved
    return moved.masked_fill(move(known.to(x.dtype)) < 1 - _ROUNDING, torch.nan)
