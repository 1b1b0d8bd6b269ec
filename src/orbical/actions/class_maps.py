"""The action on class maps: probabilities are interpolated, labels keep their values."""

from __future__ import annotations

from typing import ClassVar

from torch import Tensor

from ..errors import InputError
from ..groups import Elements, Group
from ..groups.group import whole_number
from .base import Action
from .images import Images, _check_large, _check_square
from .pixel_grids import inside_of


class ClassMaps(Action):
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

    parts: ClassVar[tuple[str, ...]] = ("plane",)

    def __init__(self, interpolation: str = "bilinear", size: int | None = None) -> None:
        self.interpolation = interpolation
        self.size = None if size is None else whole_number("size", size, 1)
        self._smooth = Images(interpolation, "border")
        self._nearest = Images("nearest", "border")

    def move(self, elements: Elements, x: Tensor) -> Tensor:
        """Move probabilities `x[K or 1, B, C, H, W]`, or labels `x[K or 1, B, H, W]`."""
        if x.is_floating_point():
            return self._moved(self._smooth, elements, x)
        return self._moved(self._nearest, elements, x[:, :, None])[:, :, 0].round().to(x.dtype)

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
        """Check the number of dimensions and the size."""
        super().check(group, x)
        if x.ndim != (4 if x.is_floating_point() else 3):
            raise InputError(
                "class maps: expected probabilities [sample, class, row, column] or integer labels "
                f"[sample, row, column], got {x.dtype} of shape {tuple(x.shape)}"
            )
        _check_square(group, x)
        if self.size is not None:
            _check_large(x, self.size)
