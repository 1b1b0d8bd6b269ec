"""Where the pixels of a moved image come from, by affine maps or homographies; sampling them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor

from .._trees import to_device
from ..groups import Elements

_MOST_STACKS = 128
_BUSY_THREADS = 2**18  # places that keep an accelerator busy, each with all planes
_LARGE_CROPS = 2**20  # numbers of one element: copying them takes longer than asking for it
_FINEST = 8  # places along each side of a pixel, at most
_FLIP_ROWS = np.diag([1.0, -1.0, 1.0])
_NOWHERE = 1e6  # in pixels from the center: beyond the horizon of a homography


def pixel_frame(elements: Elements) -> np.ndarray:
    """Return the planar matrices `[K, 3, 3]` in pixels: columns to the right, rows down."""
    if "plane" not in elements.parts:
        return np.tile(np.eye(3), (len(elements), 1, 1))
    result: np.ndarray = _FLIP_ROWS @ elements.parts["plane"] @ _FLIP_ROWS
    return result


def projected_grid_places(frame: np.ndarray, places: np.ndarray) -> np.ndarray:
    """Move places `[P, 2]` by matrices `[K, 3, 3]`; NaN beyond the horizon.

    >>> maps = np.array([[[1.0, 0, 0], [0, 1, 0], [0.5, 0, 1]]])
    >>> projected_grid_places(maps, np.array([[2.0, 1.0]]))
    array([[[1. , 0.5]]])
    """
    numerator = np.einsum("kij,pj->kpi", frame[:, :2, :2], places) + frame[:, None, :2, 2]
    depth = np.einsum("kj,pj->kp", frame[:, 2, :2], places) + frame[:, 2, 2, None]
    return np.asarray(numerator / np.where(depth > 0, depth, np.nan)[..., None])


def pixel_grid_offsets(elements: Elements, filtered: bool) -> Iterator[tuple[Any, np.ndarray]]:
    """Yield elements that take as many places n^2 for a pixel, and their offsets `[K, n^2, 2]`.

    An element that shrinks would pass over pixels, and fine detail would return as coarse patterns.
    Its output pixel covers `B u` for u in a unit square; interpolation covers about one pixel
    already, so that with `B = U S V^T` the places are spread by `U sqrt(S^2 - 1)`. Of a homography
    B is the derivative at the center.
    """
    back = pixel_frame(elements.inverse())
    derivative = back[:, :2, :2] - back[:, :2, 2:] * back[:, 2:, :2]
    turn, size, _ = np.linalg.svd(derivative)
    wide = np.sqrt(np.clip(size**2 - 1, 0, None)) * (size > 1 + 1e-6)
    count = np.clip(np.ceil(size[:, 0] - 1e-6), 1, _FINEST if filtered else 1).astype(int)
    for n in np.unique(count):
        index = slice(None) if (count == n).all() else np.flatnonzero(count == n)
        line = (np.arange(n) + 0.5) / n - 0.5
        square = np.stack(np.meshgrid(line, line), -1).reshape(-1, 2)
        yield index, np.einsum("kij,kj,pj->kpi", turn[index], wide[index], square)


def pixel_sources(
    elements: Elements, size: tuple[int, ...], device: torch.device, scale: object = (1.0, 1.0)
) -> Tensor:
    """Return where each output pixel comes from, `[K, H, W, 2]`, relative to the image center.

    In pixels times `scale`.
    """
    where = torch.device("cpu") if device.type == "mps" else device  # which knows no doubles
    frame = pixel_frame(elements.inverse())
    tilt = frame[:, 2, :2]  # not 0 for homographies alone
    back = to_device(torch.as_tensor(frame[:, :2] * np.asarray(scale)[:, None]), where)
    rows, columns = (
        (torch.arange(count, device=where) - (count - 1) / 2)[:, None] for count in size
    )
    along, across, shift = back[:, None, :, :].unbind(-1)  # each [K, 1, 2]
    # A sum of a part for each column and one for each row: nothing is multiplied by pixel.
    found: Tensor = (along * columns)[:, None] + (across * rows + shift)[:, :, None]
    if not tilt.any():
        return found
    by_column, by_row = to_device(torch.as_tensor(tilt), where)[..., None, None].unbind(1)
    depth = (1 + (by_column * columns)[:, None] + (by_row * rows)[:, :, None]).expand_as(found)
    return torch.where(depth > 0, found / depth, _NOWHERE)


def pixels_inside(elements: Elements, size: tuple[int, ...], image: Tensor) -> Tensor:
    """Return a mask `[K, h, w]` of the pixels that come from inside an image `[..., H, W]`."""
    sources = pixel_sources(elements, size, image.device)
    right, down = ((count - 1) / 2 + 1e-9 for count in (image.shape[-1], image.shape[-2]))
    across, along = sources.abs().unbind(-1)
    return ((across <= right) & (along <= down)).to(image.device)


def view_stays_inside(elements: Elements, size: int, image: tuple[int, ...]) -> bool:
    """Check whether every pixel of a square view comes from inside the image for all elements.

    A plane map carries the view to a convex quadrilateral, which lies inside where its corners do.
    """
    half = (size - 1) / 2
    corners = np.array([[x, y] for x in (-half, half) for y in (-half, half)])
    sources = projected_grid_places(pixel_frame(elements.inverse()), corners)
    limit = np.array([(image[1] - 1) / 2, (image[0] - 1) / 2]) + 1e-9
    return bool((np.abs(sources) <= limit).all())  # NaN is not


def sampled_pixels(
    sample: Callable[..., Tensor], planes: Tensor, grid: Tensor, size: tuple[int, ...]
) -> Tensor:
    """Sample planes `[K or 1, P, H, W]` by grids `[K, h, w n, 2]`, and average n places a pixel."""
    few = len(grid) * math.prod(size) < _BUSY_THREADS
    found = (_sample_in_stacks if planes.is_cuda and few else _sample_whole)(sample, planes, grid)
    return found if found.shape[-1] == size[1] else found.unflatten(-1, (size[1], -1)).mean(-1)


def _sample_whole(sample: Callable[..., Tensor], planes: Tensor, grid: Tensor) -> Tensor:
    """Sample planes `[K or 1, P, H, W]` by grids `[K, h, w, 2]`: each grid serves all planes."""
    return sample(planes.expand(len(grid), -1, -1, -1), grid)


def _sample_in_stacks(sample: Callable[..., Tensor], planes: Tensor, grid: Tensor) -> Tensor:
    """Sample as above, in many short stacks of planes that keep an accelerator busy."""
    stacks = math.gcd(planes.shape[1], _MOST_STACKS)
    count, height, width, _ = grid.shape
    if len(planes) == count:
        short = planes.reshape(count * stacks, -1, *planes.shape[2:])
        return sample(short, grid.repeat_interleave(stacks, 0)).reshape(count, -1, height, width)
    short = planes.reshape(stacks, -1, *planes.shape[2:])
    joined = grid.reshape(1, count * height, width, 2).expand(stacks, -1, -1, -1)
    return sample(short, joined).reshape(-1, count, height, width).transpose(0, 1).contiguous()


def crops(x: Tensor, corners: np.ndarray, size: int) -> Tensor:
    """Copy crops out of `x[K, B, ..., H, W]`, of which each element has a first row and column."""
    many_small = x.is_cuda and x[0].numel() < _LARGE_CROPS
    return (_pixel_crops_at_once if many_small else _pixel_crops_in_turn)(x, corners, size)


def _pixel_crops_in_turn(x: Tensor, corners: np.ndarray, size: int) -> Tensor:
    """Copy crops out of `x[K, B, ..., H, W]`, one after the other, a row of pixels at a time."""
    crops = [
        y[..., row : row + size, left : left + size]
        for y, (row, left) in zip(x, corners.tolist(), strict=True)
    ]
    # Not stacked: with one dimension less, an accelerator copies many of them in one go.
    result: Tensor = torch.cat(crops).unflatten(0, x.shape[:2])
    return result


def _pixel_crops_at_once(x: Tensor, corners: np.ndarray, size: int) -> Tensor:
    """Copy crops out of `x[K, B, ..., H, W]`, all at once, pixel by pixel."""
    row, left = to_device(torch.as_tensor(corners.T.copy()), x.device)
    views = x.unfold(-2, size, 1).unfold(-2, size, 1)
    # Places first, so that the chosen views are copied once, in their order.
    places = views.movedim((-4, -3), (1, 2))
    return places[torch.arange(len(x), device=x.device), row, left]


def move_pixels_exactly(elements: Elements, x: Tensor) -> Tensor:
    """Move square images `[K or 1, B, ..., H, W]` by elements that map pixels to pixels."""
    height, width = x.shape[-2:]
    across, along = pixel_sources(elements, (height, width), x.device).flatten(1, 2).unbind(-1)
    column = (across + (width - 1) / 2).round().long()
    row = (along + (height - 1) / 2).round().long()
    flat = (row * width + column).to(x.device)
    count, lead = len(elements), x.shape[1:-2]
    pixels = x.reshape(x.shape[0], -1, height * width).expand(count, -1, -1)
    index = flat[:, None].expand(count, pixels.shape[1], -1)
    return torch.gather(pixels, 2, index).reshape(count, *lead, height, width)
