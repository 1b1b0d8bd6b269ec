"""Actions on grids whose ends meet: maps of the globe, and boxes with periodic boundaries."""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from ..errors import InputError, check_name
from ..groups import Elements, Group
from .action import OfFinite, action_matrices

_ROUNDING = 1e-6  # of a column or row


class Periodic(OfFinite):
    """Grids `[B, C, H, W]`, or `[B, C, T]`, around which `orbical.groups.periodic` shifts content.

    What leaves at one side enters at the other, so that shifts are a group; by whole columns and
    rows they lose nothing, and others interpolate.

    Args:
        interpolation: `"bilinear"`, or `"nearest"` for classes.

    Example:
        >>> from orbical.groups import periodic
        >>> Periodic().apply(periodic(3), torch.arange(3.0).reshape(1, 1, 1, 3))[1].flatten()
        tensor([2., 0., 1.])
    """

    parts: ClassVar[tuple[str, ...]] = ("cell",)
    drawn_as: ClassVar[str] = "image"

    def __init__(self, interpolation: str = "bilinear") -> None:
        check_name("interpolation", interpolation, ("bilinear", "nearest"))
        self.interpolation = interpolation

    def move(self, elements: Elements, x: Tensor) -> Tensor:
        """Move `x[K or 1, B, C, ...]`; integers become float32, whatever the group."""
        x = x if x.is_floating_point() else x.float()
        moved = x.expand(len(elements), *x.shape[1:])
        if "cell" not in elements.parts:
            return moved
        for axis in range(min(2, x.ndim - 3)):
            moved = self._along(moved, self._sources(elements, axis, x.shape[-1 - axis]), -1 - axis)
        return moved

    def _sources(self, elements: Elements, axis: int, count: int) -> np.ndarray:
        """Return where columns (axis 0) or rows (axis 1) come from, `[K, count]`, by index."""
        cell = elements.parts.get("cell", np.eye(3)[None])
        sign, shift = cell[:, axis, axis, None], cell[:, axis, 2, None]
        place = (np.arange(count) + 0.5) / count
        # Rows count downwards, and y points up.
        source = sign * (place - shift) if axis == 0 else 1 - sign * (1 - place - shift)
        found = source * count - 0.5
        nearest = np.rint(found)
        exact = self.interpolation == "nearest" or np.allclose(found, nearest, atol=_ROUNDING)
        return np.asarray(nearest if exact else found)

    def _along(self, x: Tensor, places: np.ndarray, dim: int) -> Tensor:
        """Take `x[K, ...]` at places `[K, n]` along a dimension, around its end."""
        shape = [len(x), *[1] * (x.ndim - 1)]
        shape[dim] = places.shape[1]
        first = np.floor(places)

        def at(index: np.ndarray) -> Tensor:
            rows = torch.as_tensor(index.astype(np.int64) % x.shape[dim], device=x.device)
            return x.gather(dim, rows.reshape(shape).expand(x.shape))

        if (places == first).all():
            return at(first)
        here, share = at(first), action_matrices(places - first, x).reshape(shape)
        return here + share * (at(first + 1) - here)

    def loses_nothing(self, elements: Elements, x: Tensor) -> bool:
        """Check whether all shifts are by whole columns and rows."""
        each = (self._sources(elements, axis, x.shape[-1 - axis]) for axis in range(x.ndim - 2))
        return all((places == np.rint(places)).all() for places in each)

    def check(self, group: Group, x: Tensor) -> None:
        """Check the dimensions, and that axes are not mixed."""
        super().check(group, x)
        if x.ndim not in (3, 4) or 0 in x.shape:
            raise InputError(
                "data", "grids [sample, channel, row, column] or [sample, channel, time]", x
            )
        cell = group.parts.get("cell", np.eye(3)[None])
        linear = cell[:, :2, :2]
        if not np.array_equal(np.abs(linear), np.broadcast_to(np.eye(2), linear.shape)):
            raise InputError("group", "shifts and mirrors along the axes of a grid", group.spec)
        if x.ndim == 3 and (cell[:, 1] != [0, 1, 0]).any():
            raise InputError("group", "shifts and mirrors along the axis of a signal", group.spec)


class Globe(Periodic):
    """Maps of the globe `[B, C, H, W]`, from north to south and along all longitudes.

    `orbical.groups.longitudes` turns the globe about its axis and mirrors it. In the scores of
    dense tasks each row counts by the area that it covers, which is as the cosine of its latitude.

    Args:
        rows: `"cells"`, if rows lie between latitudes, from 90 - 90 / H degrees down; `"poles"`, if
            the first and the last are the poles.
        interpolation: `"bilinear"`, or `"nearest"` for classes.

    Example:
        >>> Globe().areas((4, 8)).flatten()  # twice sin 45 degrees, and the rest
        tensor([0.5858, 1.4142, 1.4142, 0.5858])
    """

    dims: ClassVar[tuple[str, ...]] = ("sample", "channel", "row", "column")

    def __init__(self, rows: str = "cells", interpolation: str = "bilinear") -> None:
        super().__init__(interpolation)
        check_name("rows", rows, ("cells", "poles"))
        self.rows = rows

    def areas(self, sides: tuple[int, ...]) -> Tensor:
        """Return the area of each row `[H, 1]`, 1 on average."""
        count = sides[0]
        edges = np.linspace(1, -1, count + 1)
        if self.rows == "poles":
            edges = np.clip((np.arange(count + 1) - count / 2) * -2 / max(count - 1, 1), -1, 1)
        bands = -np.diff(np.sin(edges * math.pi / 2))
        return torch.as_tensor(bands / bands.mean(), dtype=torch.float32)[:, None]

    def check(self, group: Group, x: Tensor) -> None:
        """Refuse shifts from north to south."""
        super().check(group, x)
        if group.parts.get("cell", np.eye(3)[None])[:, 1, 2].any():
            raise InputError(
                "group",
                "shifts along longitudes, and mirrors",
                f"shifts of latitudes in {group.spec}",
            )
