"""The action on boxes in images."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor

from ..errors import InputError
from ..groups import Elements, Group
from .base import Action, matrices
from .images import pixel_frame


class Boxes(Action):
    """Boxes `[B, n, 4]` as (left, top, right, bottom) pixels in images of `height` x `width`.

    The four corners move about the image centre, and the result is the upright box around them,
    which is exact for shifts, flips, quarter turns and scalings. NaN boxes (padding) stay NaN.
    Further columns, such as confidence and class in `[B, n, 6]`, ride along unchanged. `view` is
    the size of a `Window` into which the boxes are carried.

    >>> import torch
    >>> from orbical.groups import flips
    >>> Boxes(10, 10).apply(flips(), torch.tensor([[[0., 0, 2, 4]]]))[1]
    tensor([[[ 8.,  0., 10.,  4.]]])
    """

    parts: ClassVar[tuple[str, ...]] = ("plane",)

    def __init__(self, height: int, width: int, view: int | None = None) -> None:
        self.height = height
        self.width = width
        self.view = view

    def move(self, elements: Elements, x: Tensor) -> Tensor:
        """Move `x[K or 1, B, n, 4 or more]`."""
        centre = x.new_tensor([self.width / 2, self.height / 2])
        target = centre if self.view is None else torch.full_like(centre, self.view / 2)
        frame = matrices(pixel_frame(elements), x)
        shift = frame[:, None, None, :2, 2]
        rest = x[..., 4:].expand(len(elements), *x.shape[1:-1], -1)
        if bool((frame[:, :2, :2] == torch.eye(2, dtype=x.dtype, device=x.device)).all()):
            by = shift + target - centre  # a plain shift needs no corners
            return torch.cat([x[..., :2] + by, x[..., 2:4] + by, rest], -1)
        corners = torch.stack([x[..., [i, j]] for i in (0, 2) for j in (1, 3)], -2) - centre
        corners = corners.expand(len(elements), *corners.shape[1:])  # [K, B, n, 4, 2]
        turned = torch.einsum("kij,kbncj->kbnci", frame[:, :2, :2], corners)
        moved = turned + shift[:, :, :, None] + target
        return torch.cat([moved.amin(-2), moved.amax(-2), rest], -1)

    def check(self, group: Group, x: Tensor) -> None:
        """Check shape and order of the sides."""
        super().check(group, x)
        if x.ndim != 3 or x.shape[-1] < 4:
            raise InputError(
                f"boxes: shape {tuple(x.shape)} given, [sample, box, 4] expected "
                "(left, top, right, bottom)"
            )
        if bool(((x[..., 2] < x[..., 0]) | (x[..., 3] < x[..., 1])).any()):
            raise InputError("boxes: left > right or top > bottom given, ordered sides expected")
