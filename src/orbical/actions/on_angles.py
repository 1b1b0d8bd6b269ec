"""The action on angles: headings, orientations of objects, phases, compared around the circle."""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from ..errors import InputError, check_name, real_number
from ..groups import Elements, Group
from .action import ByPart, Exact, action_matrices, check_affine_action

TURNS = {"degrees": 360.0, "radians": 2 * math.pi}
"""A full turn in each unit."""
_SYMBOLS = {"degrees": "°", "radians": "rad"}


class Angles(ByPart, Exact):
    """Directions in the plane as angles `[B, ...]`, counterclockwise from x to the right.

    Rotations add to them, and mirrors also reverse their sign. Differences are taken the short way
    around, and means on the circle: 359° and 1° are 2° apart, and their mean is 0°.

    Args:
        unit: `"degrees"` or `"radians"`.
        period: the angle after which a direction is the same again; by default a full turn, 180
            degrees for axes without a head, 90 for squares.

    Raises:
        InputError: if an argument is not one of these.

    Example:
        >>> from orbical.groups import flips
        >>> Angles().apply(flips(), torch.tensor([[30.0]]))[:, 0, 0].tolist()
        [30.0, 150.0, -30.0, 210.0]
        >>> Angles().difference(torch.tensor(359.0), torch.tensor(1.0)).item()
        -2.0
    """

    part = "plane"
    parts: ClassVar[tuple[str, ...]] = ("plane",)
    ignored: ClassVar[tuple[str, ...]] = ("rows",)

    def __init__(self, unit: str = "degrees", period: float | None = None) -> None:
        check_name("unit", unit, TURNS)
        self.unit = unit
        turn = TURNS[unit] if period is None else period
        self.period = float(real_number("period", turn, "> 0", "an angle"))

    @property
    def symbol(self) -> str:
        """The unit as written after a number."""
        return _SYMBOLS[self.unit]

    def move_each(self, elements: Elements, x: Tensor) -> Tensor:
        """Turn and mirror `x[K, B, ...]`."""
        linear = elements.linear("plane")
        turn = np.arctan2(linear[:, 1, 0], linear[:, 0, 0]) * TURNS[self.unit] / (2 * math.pi)
        side = np.sign(np.linalg.det(linear))
        by, sign = (
            action_matrices(part, x).reshape(-1, *[1] * (x.ndim - 1)) for part in (turn, side)
        )
        return by + sign * x

    def difference(self, x: Tensor, y: Tensor) -> Tensor:
        """Return `x - y` the short way around, from minus half a period to half a period."""
        apart = x - y
        return apart - self.period * torch.round(apart / self.period)

    def mean(self, x: Tensor, weights: Tensor) -> Tensor:
        """Return the mean direction `[B, ...]` of `x[K, B, ...]`, near the first of them.

        It is the mean along the circle that is cut opposite to the sum of the directions. Where
        they cancel, up to rounding, no direction is their mean; there the circle is cut just
        before the first of them: the mean of 0° and 180° is 90°.
        """
        turn = 2 * math.pi / self.period
        phase, share = x.double() * turn, weights.double() / weights.double().sum()
        sums = [torch.einsum("k,k...->...", share, f(phase)) for f in (torch.sin, torch.cos)]
        rounding = 8 * torch.finfo(x.dtype).eps * (1 + phase.abs().amax(0))
        middle = torch.where(
            torch.hypot(*sums) > rounding, torch.atan2(*sums) / turn, x[0] + 0.499 * self.period
        )
        apart = self.difference(x.double(), middle)
        middle = middle + torch.einsum("k,k...->...", share, apart)
        return (x[0] + self.difference(middle, x[0].double())).to(x.dtype)

    def check(self, group: Group, x: Tensor) -> None:
        """Refuse maps that change angles between directions."""
        super().check(group, x)
        check_affine_action(group, "Angles")
        if "plane" not in group.parts:
            return
        linear = group.linear("plane")
        square, size = linear @ linear.transpose(0, 2, 1), np.abs(np.linalg.det(linear))
        if not np.allclose(square, size[:, None, None] * np.eye(2), atol=1e-9 * size.max()):
            raise InputError(
                "group",
                "rotations, mirrors, shifts and scalings for Angles",
                f"{group.spec}, which shears or stretches",
            )
