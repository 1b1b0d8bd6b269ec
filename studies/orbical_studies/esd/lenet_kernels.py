"""The convolutions of many LeNet-5 that see the same images: six Triton kernels.

A grouped convolution of six channels leaves a GPU idle. Here the window of a pooled place, 6 x 6
pixels around its four places before pooling, is one row of a matrix product whose columns are those
four places; the product, the bias, ReLU and the maximum never leave the chip. `choice` says which
of the four places was the largest, or `NONE` where ReLU is zero: all that a gradient needs.

Networks come first, channels last: `[networks, images, places, channels]`. Six channels take the
room of eight, and six pixels of a row that of eight.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator"

from __future__ import annotations

from functools import cache
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch.nn import functional

NONE, TYPE = 4, torch.bfloat16
SIDE, POOLED = 34, 25
"""Pixels of a padded row of an image; pooled places after the second convolution."""
_ROWS, _SPLITS = 64, 8
_SUBS = [(dy, dx) for dy in (0, 1) for dx in (0, 1)]


def features(images: Tensor, *weights: Tensor) -> Tensor:
    """Return what the convolutions of LeNet-5 make of images, `[networks, n, 16 * 25]`, bfloat16.

    Args:
        images: `[n, 32, 32]`, the same for all networks.
        weights: Of both convolutions, each with its bias: `[networks, 6, 1, 5, 5]`,
            `[networks, 6]`, `[networks, 16, 6, 5, 5]`, `[networks, 16]`.
    """
    padded = functional.pad(images.to(TYPE), (0, SIDE - 32, 0, SIDE - 32))
    found: Tensor = _Features.apply(padded.contiguous(), *weights)
    return found


class _Features(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, images: Tensor, *weights: Tensor) -> Tensor:
        first, first_bias, second, second_bias = weights
        networks, n = len(first), len(images)
        few = functional.pad(first[:, :, 0], (0, 0, 0, 0, 0, 2))  # six channels as eight
        wide = torch.zeros(8, 8, 4, networks, 8, device=images.device)
        deep = torch.zeros(networks, 6, 8, 8, 4, 16, device=images.device)
        for sub, (y, x) in enumerate(_SUBS):
            wide[y : y + 5, x : x + 5, sub] = few.permute(2, 3, 0, 1)
            deep[:, y : y + 5, x : x + 5, :6, sub] = second.permute(0, 3, 4, 2, 1)
        wide, deep = wide.to(TYPE), deep.to(TYPE)
        bias = functional.pad(first_bias, (0, 2)).contiguous()
        # A last image more: the window of the last place ends behind it.
        small = torch.zeros(networks * n * 196 * 8 + 64, dtype=TYPE, device=images.device)
        choice = torch.empty(networks, n, 196, 8, dtype=torch.uint8, device=images.device)
        columns = networks * 8
        blocks = (triton.cdiv(n * 196, _ROWS), triton.cdiv(columns, 64))
        _first[blocks](images, wide, bias, small, choice, n, columns, _ROWS, num_warps=4)
        out = torch.empty(networks, n, POOLED, 16, dtype=TYPE, device=images.device)
        picked = torch.empty(networks, n, POOLED, 16, dtype=torch.uint8, device=images.device)
        blocks = (networks, triton.cdiv(n * POOLED, 128))
        bias = second_bias.contiguous()
        _second[blocks](small, deep, bias, out, picked, n, 128, num_warps=4)
        ctx.save_for_backward(images, second, small, choice, picked)
        return out.transpose(2, 3).flatten(2)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        images, second, small, choice, picked = ctx.saved_tensors
        networks, n = picked.shape[:2]
        place = images.device
        gradient = gradient.unflatten(2, (16, POOLED)).transpose(2, 3).contiguous()
        deep = torch.empty(_SPLITS, networks, 6, 8, 8, 4, 16, device=place)
        sums = torch.empty(_SPLITS, networks, 4, 16, device=place)
        _second_weights[(networks, 3, _SPLITS)](small, gradient, picked, deep, sums, n, _ROWS)
        deep, second_bias = deep.sum(0), sums.sum((0, 2))
        # Of a place and its window: none (index 5) where the window does not hold the place.
        taps = _taps(place)
        back = functional.pad(second, (0, 1, 0, 1))[:, :, :, taps[0], taps[1]]
        back = functional.pad(back.movedim(2, -1), (0, 2)).permute(2, 0, 1, 3, 4).to(TYPE)
        back = back.contiguous()
        before = torch.empty(networks, n, 196, 8, dtype=TYPE, device=place)
        blocks = (networks, triton.cdiv(n * 49, 128))
        _second_inputs[blocks](gradient, picked, back, before, n, networks, 128, num_warps=4)
        columns, splits = networks * 8, _SPLITS
        wide = torch.empty(splits, 64, 4, columns, device=place)
        sums = torch.empty(splits, 4, columns, device=place)
        blocks = (triton.cdiv(columns, 16), splits)
        _first_weights[blocks](images, before, choice, wide, sums, n, columns, _ROWS)
        wide = wide.sum(0).view(8, 8, 4, networks, 8)
        bias = sums.sum((0, 1)).view(networks, 8)
        first = sum(wide[y : y + 5, x : x + 5, s] for s, (y, x) in enumerate(_SUBS))
        later = sum(deep[:, y : y + 5, x : x + 5, :6, s] for s, (y, x) in enumerate(_SUBS))
        return (
            None,
            first.permute(2, 3, 0, 1)[:, :6, None],  # type: ignore[union-attr]
            bias[:, :6],
            later.permute(0, 4, 3, 1, 2),  # type: ignore[union-attr]
            second_bias,
        )


@cache
def _taps(place: torch.device) -> Tensor:
    """Return the row and column of the filter, `[2, cells * places before pooling, 2 * 2]`.

    For each of 3 x 3 pooled cells, each of its four places, and each of 2 x 2 places of the inputs.
    """
    cell, sub, own = torch.meshgrid(
        torch.arange(3), torch.arange(2), torch.arange(2), indexing="ij"
    )
    tap = own + 4 - 2 * cell - sub
    tap = torch.where((tap >= 0) & (tap < 5), tap, 5)
    rows = tap[:, None, :, None, :, None].expand(3, 3, 2, 2, 2, 2)
    columns = tap[None, :, None, :, None, :].expand(3, 3, 2, 2, 2, 2)
    return torch.stack([rows, columns]).reshape(2, 36, 4).to(place)


@triton.jit
def _windows(images, rows, n):
    """Return the windows `[rows, 64]` of pooled places of padded images."""
    side: tl.constexpr = 34
    image, place = rows // 196, rows % 196
    corner = image * side * side + place // 14 * 2 * side + place % 14 * 2
    k = tl.arange(0, 64)
    inside = (k // 8 < 6) & (k % 8 < 6)
    at = corner[:, None] + (k // 8 * side + k % 8)[None, :]
    return tl.load(images + at, inside[None, :] & (rows < n * 196)[:, None], other=0.0)


@triton.jit
def _first(images, weights, bias, small, choice, n, columns, ROWS: tl.constexpr):
    """First convolution, ReLU and pooling of a block of pooled places and eight networks."""
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    column = tl.program_id(1) * 64 + tl.arange(0, 64)
    window = _windows(images, rows, n)
    k = tl.arange(0, 64)
    at = weights + k[:, None] * 4 * columns + column[None, :]
    there = (column < columns)[None, :]
    best = tl.dot(window, tl.load(at, there, other=0.0))
    picked = tl.zeros([ROWS, 64], tl.int32)
    for sub in tl.static_range(1, 4):
        value = tl.dot(window, tl.load(at + sub * columns, there, other=0.0))
        picked = tl.where(value > best, sub, picked)
        best = tl.maximum(best, value)
    best += tl.load(bias + column, column < columns, other=0.0)[None, :]
    to = ((column // 8 * n)[None, :] * 196 + rows[:, None]) * 8 + (column % 8)[None, :]
    there &= (rows < n * 196)[:, None]
    tl.store(small + to, tl.maximum(best, 0.0).to(small.dtype.element_ty), there)
    tl.store(choice + to, tl.where(best > 0, picked, 4).to(tl.uint8), there)


@triton.jit
def _second(small, weights, bias, out, picked, n, ROWS: tl.constexpr):
    """Second convolution, ReLU and pooling of a block of pooled places of one network."""
    network = tl.program_id(0).to(tl.int64)
    rows = tl.program_id(1) * ROWS + tl.arange(0, ROWS)
    image, place = rows // 25, rows % 25
    corner = image * 196 + place // 5 * 28 + place % 5 * 2
    k, o = tl.arange(0, 64), tl.arange(0, 16)
    there = (rows < n * 25)[:, None]
    value = tl.zeros([ROWS, 64], tl.float32)
    small += network * n * 196 * 8
    weights += network * 384 * 64
    for row in tl.static_range(6):
        window = tl.load(small + (corner + row * 14)[:, None] * 8 + k[None, :], there, other=0.0)
        own = tl.load(weights + (row * 64 + k)[:, None] * 64 + k[None, :])
        value = tl.dot(window, own, value)
    best, which = tl.max(tl.reshape(value, [ROWS, 4, 16]), 1, return_indices=True)
    best += tl.load(bias + network * 16 + o)[None, :]
    to = (network * n * 25 + rows)[:, None] * 16 + o[None, :]
    tl.store(out + to, tl.maximum(best, 0.0).to(out.dtype.element_ty), there)
    tl.store(picked + to, tl.where(best > 0, which, 4).to(tl.uint8), there)


@triton.jit
def _unpooled(gradient, picked, at, inside):
    """Return the gradients `[rows, 4 * 16]` by the four places of pooled places of one network."""
    k = tl.arange(0, 64)
    at = at[:, None] * 16 + (k % 16)[None, :]
    slope = tl.load(gradient + at, inside[:, None], other=0.0)
    which = tl.load(picked + at, inside[:, None], other=4)
    return tl.where(which == (k // 16)[None, :], slope, tl.zeros_like(slope))


@triton.jit
def _second_weights(small, gradient, picked, found, sums, n, ROWS: tl.constexpr):
    """Gradient by two rows of the second convolution's windows, over a share of the images."""
    network, pair, split = tl.program_id(0).to(tl.int64), tl.program_id(1), tl.program_id(2)
    networks, splits = tl.num_programs(0), tl.num_programs(2)
    k, column = tl.arange(0, 128), tl.arange(0, 64)
    offset = (pair * 2 + k // 64) * 14 * 8 + k % 64
    total = tl.zeros([128, 64], tl.float32)
    bias = tl.zeros([64], tl.float32)
    every = n * 25
    share = tl.cdiv(tl.cdiv(every, ROWS), splits) * ROWS
    small += network * n * 196 * 8
    for start in range(split * share, tl.minimum(every, (split + 1) * share), ROWS):
        rows = start + tl.arange(0, ROWS)
        image, place = rows // 25, rows % 25
        corner = image * 196 + place // 5 * 28 + place % 5 * 2
        there = (rows < every)[:, None]
        window = tl.load(small + corner[:, None] * 8 + offset[None, :], there, other=0.0)
        slope = _unpooled(gradient, picked, network * every + rows, rows < every)
        bias += tl.sum(slope.to(tl.float32), 0)
        total = tl.dot(tl.trans(window), slope, total)
    to = ((split * networks + network) * 384 + pair * 128 + k)[:, None] * 64 + column[None, :]
    tl.store(found + to, total)
    if pair == 0:
        tl.store(sums + (split * networks + network) * 64 + column, bias)


@triton.jit
def _second_inputs(gradient, picked, weights, before, n, networks, ROWS: tl.constexpr):
    """Gradient by the inputs of the second convolution, 2 x 2 places of one network at a time."""
    network = tl.program_id(0).to(tl.int64)
    rows = tl.program_id(1) * ROWS + tl.arange(0, ROWS)
    image, y, x = rows // 49, rows % 49 // 7, rows % 7
    k, column = tl.arange(0, 64), tl.arange(0, 32)
    total = tl.zeros([ROWS, 32], tl.float32)
    for cell in tl.static_range(9):
        above, left = y - 2 + cell // 3, x - 2 + cell % 3
        inside = (above >= 0) & (above < 5) & (left >= 0) & (left < 5) & (rows < n * 49)
        at = network * n * 25 + image * 25 + above * 5 + left
        start = weights + ((cell * 4 + k // 16) * networks + network) * 512 + k % 16 * 32
        own = tl.load(start[:, None] + column[None, :])
        total = tl.dot(_unpooled(gradient, picked, at, inside), own, total)
    place = (y * 2)[:, None] * 14 + (x * 2)[:, None] + (column // 16 * 14 + column % 16 // 8)[None]
    to = ((network * n + image) * 196)[:, None] + place
    there = (rows < n * 49)[:, None]
    tl.store(before + to * 8 + (column % 8)[None, :], total.to(before.dtype.element_ty), there)


@triton.jit
def _first_weights(images, before, choice, found, sums, n, columns, ROWS: tl.constexpr):
    """Gradient by the first convolution of two networks, over a share of the images."""
    k, wide = tl.arange(0, 64), tl.arange(0, 64)
    sub, column = wide // 16, tl.program_id(0) * 16 + wide % 16
    split, splits = tl.program_id(1), tl.num_programs(1)
    total = tl.zeros([64, 64], tl.float32)
    bias = tl.zeros([64], tl.float32)
    every = n * 196
    share = tl.cdiv(tl.cdiv(every, ROWS), splits) * ROWS
    for start in range(split * share, tl.minimum(every, (split + 1) * share), ROWS):
        rows = start + tl.arange(0, ROWS)
        window = tl.trans(_windows(images, rows, n))
        there = (rows < every)[:, None] & (column < columns)[None, :]
        at = ((column // 8 * n)[None, :] * 196 + rows[:, None]) * 8 + (column % 8)[None, :]
        slope = tl.load(before + at, there, other=0.0)
        which = tl.load(choice + at, there, other=4)
        slope = tl.where(which == sub[None, :], slope, tl.zeros_like(slope))
        bias += tl.sum(slope.to(tl.float32), 0)
        total = tl.dot(window, slope, total)
    there = column < columns
    to = sub * columns + column
    tl.store(sums + split * 4 * columns + to, bias, there)
    to = (split * 64 + k)[:, None] * 4 * columns + to[None, :]
    tl.store(found + to, total, there[None, :])
