"""ESD of many samples on a GPU: everything after the sort in five Triton kernels.

Written in torch it takes some thirty passes over arrays of doubles. Here sums run in blocks, each
of which adds up the sums of the blocks before it: always in the same order, so a result does not
vary from run to run.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator"

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

_SIZE = 2048
_SUMS = tl.constexpr(1024)  # of blocks, added up at a time


@triton.jit
def _sum_of_first(sums, count):
    """Return the sum of the first so many numbers."""
    total = tl.zeros([_SUMS], tl.float64)
    for start in range(0, count, _SUMS):
        places = start + tl.arange(0, _SUMS)
        total += tl.load(sums + places, places < count, other=0.0)
    return tl.sum(total, 0)


@triton.jit
def _esd_kernel_reach(ordered, places, z, n, sign):
    """Return how far the run of equal values goes on, upwards or downwards, by galloping."""
    far = places * 0
    step = far + 1
    goes_on = places < n
    while tl.max(goes_on.to(tl.int32), 0) > 0:
        at = places + sign * (far + step)
        same = tl.load(ordered + at, goes_on & (at >= 0) & (at < n), other=float("nan")) == z
        far = tl.where(same, far + step, far)
        step = tl.where(same, step * 2, step)
        goes_on = same
    step = step // 2
    while tl.max(step, 0) > 0:
        at = places + sign * (far + step)
        inside = (step > 0) & (at >= 0) & (at < n)
        same = tl.load(ordered + at, inside, other=float("nan")) == z
        far = tl.where(same, far + step, far)
        step = step // 2
    return far


@triton.jit
def _parts(room, n):
    """Return where running sums, sums below, and the sums of blocks are kept."""
    return room, room + n, room + 2 * n


@triton.jit(do_not_specialize=["n"])
def _esd_kernel_outcomes(ordered, order, correct, hits, room, n, SIZE: tl.constexpr):
    """Store the outcomes in the order of confidence, and each block's sum of d."""
    _, _, sums = _parts(room, n)
    places = tl.program_id(0) * SIZE + tl.arange(0, SIZE)
    there = places < n
    hit = tl.load(correct + tl.load(order + places, there, other=0), there, other=0)
    tl.store(hits + places, hit, there)
    z = tl.load(ordered + places, there, other=0.0)
    tl.store(sums + tl.program_id(0), tl.sum(hit.to(tl.float64) - z.to(tl.float64), 0))


@triton.jit(do_not_specialize=["n"])
def _running_sums(ordered, hits, room, n, SIZE: tl.constexpr):
    """Store the sum of d over all samples up to each."""
    running, _, sums = _parts(room, n)
    places = tl.program_id(0) * SIZE + tl.arange(0, SIZE)
    there = places < n
    z = tl.load(ordered + places, there, other=0.0).to(tl.float64)
    d = tl.load(hits + places, there, other=0).to(tl.float64) - z
    tl.store(running + places, tl.cumsum(d, 0) + _sum_of_first(sums, tl.program_id(0)), there)


@triton.jit(do_not_specialize=["n"])
def _esd_kernel_sums_below(ordered, room, n, SIZE: tl.constexpr):
    """Store the sum of d over all samples with at most each confidence, and each block's sum."""
    running, below, sums = _parts(room, n)
    places = tl.program_id(0) * SIZE + tl.arange(0, SIZE)
    there = places < n
    z = tl.load(ordered + places, there, other=float("nan"))
    last = places + _esd_kernel_reach(ordered, places, z, n, 1)
    found = tl.load(running + last, there, other=0.0)
    tl.store(below + places, found, there)
    tl.store(sums + tl.num_programs(0) + tl.program_id(0), tl.sum(found, 0))


@triton.jit(do_not_specialize=["n"])
def _esd_kernel_slopes(ordered, order, hits, room, gradient, n, SIZE: tl.constexpr):
    """Store the gradient at the samples' own places, and each block's part of <d, rest>."""
    running, below, sums = _parts(room, n)
    blocks = tl.num_programs(0)
    places = tl.program_id(0) * SIZE + tl.arange(0, SIZE)
    there = places < n
    z = tl.load(ordered + places, there, other=float("nan"))
    d = tl.load(hits + places, there, other=0).to(tl.float64) - z.to(tl.float64)
    # Samples of the same confidence before each.
    since = _esd_kernel_reach(ordered, places, z, n, -1)
    start = places - since
    own = tl.load(below + places, there, other=0.0)
    # Samples of one confidence have one sum: what lies before their run needs no look there.
    before = tl.cumsum(own, 0) + _sum_of_first(sums + blocks, tl.program_id(0))
    before -= own * (since + 1)
    before -= tl.load(running + start - 1, there & (start > 0), other=0.0)
    rest = tl.where(there, before + own - (start - (n - 2)).to(tl.float64) * d, 0.0)
    terms = tl.sum(tl.where(there, d * rest, 0.0), 0)
    tl.store(sums + 2 * blocks + tl.program_id(0), terms)
    total = _sum_of_first(sums + blocks, blocks) - _sum_of_first(sums, blocks)
    size = n.to(tl.float64)
    slope = (rest - total) * (2 / (size * (size - 1) * (size - 2)))
    tl.store(gradient + tl.load(order + places, there, other=0), slope, there)


@triton.jit(do_not_specialize=["n", "blocks"])
def _value(room, value, n, blocks):
    """Store ESD: half of <d, gradient by d>."""
    running, _, sums = _parts(room, n)
    total = _sum_of_first(sums + blocks, blocks) - _sum_of_first(sums, blocks)
    size = n.to(tl.float64)
    whole = total * tl.load(running + n - 1) - _sum_of_first(sums + 2 * blocks, blocks)
    tl.store(value, whole / (size * (size - 1) * (size - 2)))


def esd_by_kernels(ordered: Tensor, order: Tensor, correct: Tensor) -> tuple[Tensor, Tensor]:
    """Return ESD of sorted confidences `[n]`, and its gradient in the order of `correct`."""
    n, device = len(ordered), ordered.device
    blocks = triton.cdiv(n, _SIZE)
    value = torch.empty((), dtype=torch.float64, device=device)
    room = torch.empty(2 * n + 3 * blocks, dtype=torch.float64, device=device)
    hits = torch.empty(n, dtype=torch.uint8, device=device)
    gradient, grid = torch.empty_like(ordered), (blocks,)
    outcomes = correct.contiguous().view(torch.uint8)
    _esd_kernel_outcomes[grid](ordered, order, outcomes, hits, room, n, _SIZE, num_warps=8)
    _running_sums[grid](ordered, hits, room, n, _SIZE, num_warps=8)
    _esd_kernel_sums_below[grid](ordered, room, n, _SIZE, num_warps=8)
    _esd_kernel_slopes[grid](ordered, order, hits, room, gradient, n, _SIZE, num_warps=8)
    _value[(1,)](room, value, n, blocks)
    return value, gradient
