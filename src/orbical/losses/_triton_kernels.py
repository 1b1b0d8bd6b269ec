"""Losses of small batches on a GPU: value and gradient in two or three Triton kernels.

A loss of a few thousand samples keeps a GPU busy for microseconds. What takes time is that Python
starts its operations, some thirty if it is written in torch. Here each kernel takes all blocks of
samples at once, and the next one begins where the results of all blocks are needed. Sums over
blocks are added in a fixed order, so a result does not vary from run to run.

The formulas, explained there, are those of `orbical.calibration`; confidences are float32 and
whatever is summed is float64, as there.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator"

from __future__ import annotations

import math
from functools import cache
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

_TINY = tl.constexpr(torch.finfo(torch.float64).tiny)
_LOG_TINY = tl.constexpr(math.log(torch.finfo(torch.float32).tiny))
_OTHERS = tl.constexpr(128)  # samples that a block is compared with at a time
_MOST_ROWS, _MOST_LOGITS = 32, 8192  # of a block


def _kernel(function: Any) -> Any:
    """Compile a kernel for any size and address: only settings in capitals are made part of it."""
    names = function.__code__.co_varnames[: function.__code__.co_argcount]
    return triton.jit(function, do_not_specialize=[name for name in names if not name.isupper()])


@triton.jit
def _triton_read(logits, labels, n, ROWS: tl.constexpr, CLASSES: tl.constexpr):
    """Return the samples of a block: places, shifted logits, shares, confidence, outcome."""
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    columns = tl.arange(0, triton.next_power_of_2(CLASSES))[None, :]
    there = (rows < n)[:, None] & (columns < CLASSES)
    x = tl.load(logits + rows[:, None] * CLASSES + columns, there, other=0.0).to(tl.float32)
    x = tl.where(columns < CLASSES, x, float("-inf"))
    hit = tl.argmax(x, 1) == tl.load(labels + rows, rows < n, other=-1)
    x -= tl.max(x, 1)[:, None]
    powers = tl.exp(x)
    total = tl.sum(powers, 1)
    return rows, x, tl.div_rn(powers, total[:, None]), tl.div_rn(1.0, total), hit


@triton.jit
def _write(gradient, slope, rows, x, shares, z, n, CLASSES: tl.constexpr):
    """Store the gradient by the logits, `slope z (1_k - p)`, of the gradient by confidence."""
    columns = tl.arange(0, triton.next_power_of_2(CLASSES))[None, :]
    predicted = columns == tl.argmax(x, 1)[:, None]
    pull = (slope.to(tl.float32) * z)[:, None]
    values = pull * (tl.where(predicted, 1.0, 0.0) - shares)
    there = (rows < n)[:, None] & (columns < CLASSES)
    tl.store(gradient + rows[:, None] * CLASSES + columns, values, there)


@_kernel
def _confidences(logits, labels, room, n, ROWS: tl.constexpr, CLASSES: tl.constexpr):
    """Store confidence and `correct - confidence` of each sample."""
    z_of, d_of = room, room + n
    rows, _, _, z, hit = _triton_read(logits, labels, n, ROWS, CLASSES)
    tl.store(z_of + rows, z.to(tl.float64), rows < n)
    tl.store(d_of + rows, hit.to(tl.float64) - z.to(tl.float64), rows < n)


@_kernel
def _triton_esd_sums(room, n, ROWS: tl.constexpr):
    """Store the sum of d over the other samples below each, and how many others are above it."""
    z_of, d_of, sums, above = room, room + n, room + 2 * n, room + 3 * n
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    z = tl.load(z_of + rows, rows < n, other=0.0)[:, None]
    total, count = tl.zeros([ROWS], tl.float64), tl.zeros([ROWS], tl.int32)
    for start in range(0, n, _OTHERS):
        others = start + tl.arange(0, _OTHERS)
        that = tl.load(z_of + others, others < n, other=float("nan"))[None, :]
        d = tl.load(d_of + others, others < n, other=0.0)[None, :]
        differ = rows[:, None] != others[None, :]
        total += tl.sum(tl.where((that <= z) & differ, d, 0.0), 1)
        count += tl.sum(((that >= z) & differ).to(tl.int32), 1)
    tl.store(sums + rows, total, rows < n)
    tl.store(above + rows, count.to(tl.float64), rows < n)


@_kernel
def _triton_esd(
    logits, labels, room, value, gradient, n, ROWS: tl.constexpr, CLASSES: tl.constexpr
):
    """Store ESD and its gradient, from the sums below each sample."""
    z_of, d_of, sums, above = room, room + n, room + 2 * n, room + 3 * n
    rows, x, shares, z, _ = _triton_read(logits, labels, n, ROWS, CLASSES)
    half_slope = tl.zeros([ROWS], tl.float64)
    for start in range(0, n, _OTHERS):
        others = start + tl.arange(0, _OTHERS)
        that = tl.load(z_of + others, others < n, other=float("nan"))[None, :]
        below = tl.load(sums + others, others < n, other=0.0)[None, :]
        differ = rows[:, None] != others[None, :]
        half_slope += tl.sum(tl.where((that >= z[:, None]) & differ, below, 0.0), 1)
    size = n.to(tl.float64)
    triples = size * (size - 1) * (size - 2)
    d = tl.load(d_of + rows, rows < n, other=0.0)
    half_slope -= tl.load(above + rows, rows < n, other=0.0) * d
    _write(gradient, half_slope * (-2 / triples), rows, x, shares, z, n, CLASSES)
    if tl.program_id(0) == 0:
        terms = tl.zeros([_OTHERS], tl.float64)
        for start in range(0, n, _OTHERS):
            others = start + tl.arange(0, _OTHERS)
            below = tl.load(sums + others, others < n, other=0.0)
            that_d = tl.load(d_of + others, others < n, other=0.0)
            count = tl.load(above + others, others < n, other=0.0)
            terms += below * below - count * that_d * that_d
        tl.store(value, tl.sum(terms, 0) / triples)


@_kernel
def _triton_mmce(
    logits, labels, room, terms, gradient, n, phi: tl.float64,
    ROWS: tl.constexpr, CLASSES: tl.constexpr,
):  # fmt: skip
    """Store what each block adds to MMCE^2, and the gradient."""
    z_of, d_of = room, room + n
    rows, x, shares, z, _ = _triton_read(logits, labels, n, ROWS, CLASSES)
    left, right = tl.zeros([ROWS], tl.float64), tl.zeros([ROWS], tl.float64)
    level = tl.zeros([ROWS], tl.float64)
    for start in range(0, n, _OTHERS):
        others = start + tl.arange(0, _OTHERS)
        that = tl.load(z_of + others, others < n, other=float("nan"))[None, :]
        d = tl.load(d_of + others, others < n, other=0.0)[None, :]
        growth = tl.exp((that - 0.5) / phi)
        left += tl.sum(tl.where(that < z[:, None], d * growth, 0.0), 1)
        level += tl.sum(tl.where(that == z[:, None], d, 0.0), 1)
        right += tl.sum(tl.where(that > z[:, None], d / growth, 0.0), 1)
    growth = tl.exp((z.to(tl.float64) - 0.5) / phi)  # the kernel is a product of two factors
    left /= growth
    right *= growth
    pairs = n.to(tl.float64) * n
    d = tl.load(d_of + rows, rows < n, other=0.0)
    reach = (left + level + right) / pairs
    slope = (reach + (left - right) / pairs * d / phi) * -2
    _write(gradient, slope, rows, x, shares, z, n, CLASSES)
    tl.store(terms + tl.program_id(0), tl.sum(d * reach, 0))


@triton.jit
def _triton_members(z, rows, n, temperature, BINS: tl.constexpr, SOFT: tl.constexpr):
    """Return the share of each confidence in each bin, soft or `(lo, hi]`, and the centers."""
    places = tl.arange(0, triton.next_power_of_2(BINS))[None, :]
    centers = (places.to(tl.float64) + 0.5) / BINS
    if SOFT:
        away = z.to(tl.float64)[:, None] - centers
        powers = tl.where(places < BINS, -away * away / temperature, float("-inf"))
        powers = tl.exp(powers - tl.max(powers, 1)[:, None])
        shares = powers / tl.sum(powers, 1)[:, None]
    else:
        low = (places.to(tl.float64) / BINS).to(tl.float32)
        high = ((places + 1).to(tl.float64) / BINS).to(tl.float32)
        # NaN, which lies in no bin, must not be lost: it goes to the last.
        above = (places == 0) | ~(z[:, None] <= low)
        inside = above & ((places == BINS - 1) | (z[:, None] <= high)) & (places < BINS)
        shares = inside.to(tl.float64)
    return tl.where((rows < n)[:, None], shares, 0.0), centers


@_kernel
def _triton_bin_sums(
    logits, labels, room, n, temperature: tl.float64,
    ROWS: tl.constexpr, CLASSES: tl.constexpr, BINS: tl.constexpr, SOFT: tl.constexpr,
):  # fmt: skip
    """Store each block's summed d and, of soft bins, size of every bin, `[2, blocks, bins]`."""
    WIDTH: tl.constexpr = triton.next_power_of_2(BINS)
    rows, _, _, z, hit = _triton_read(logits, labels, n, ROWS, CLASSES)
    shares, _ = _triton_members(z, rows, n, temperature, BINS, SOFT)
    d = hit.to(tl.float64) - z.to(tl.float64)
    places = tl.program_id(0) * WIDTH + tl.arange(0, WIDTH)
    tl.store(room + places, tl.sum(shares * d[:, None], 0))
    if SOFT:
        tl.store(room + tl.num_programs(0) * WIDTH + places, tl.sum(shares, 0))


@triton.jit
def _total(parts, WIDTH: tl.constexpr):
    """Sum the parts of all blocks, `[blocks, WIDTH]`, in their order."""
    total = tl.zeros([WIDTH], tl.float64)
    for start in range(0, tl.num_programs(0), 32):
        blocks = start + tl.arange(0, 32)[:, None]
        places = blocks * WIDTH + tl.arange(0, WIDTH)[None, :]
        total += tl.sum(tl.load(parts + places, blocks < tl.num_programs(0), other=0.0), 0)
    return total


@_kernel
def _triton_binned(
    logits, labels, room, value, gradient, n, temperature: tl.float64,
    ROWS: tl.constexpr, CLASSES: tl.constexpr, BINS: tl.constexpr, SOFT: tl.constexpr,
):  # fmt: skip
    """Store SB-ECE (l2) or the ECE (l1) of all bins, and its gradient."""
    WIDTH: tl.constexpr = triton.next_power_of_2(BINS)
    rows, x, shares, z, hit = _triton_read(logits, labels, n, ROWS, CLASSES)
    members, centers = _triton_members(z, rows, n, temperature, BINS, SOFT)
    gap = _total(room, WIDTH)
    size = n.to(tl.float64)
    if SOFT:
        r = gap / tl.maximum(_total(room + tl.num_programs(0) * WIDTH, WIDTH), _TINY)
        squared = tl.sum(gap * r, 0) / size
        error = tl.where(squared <= 0, 0.0, tl.sqrt(squared))
        d = hit.to(tl.float64) - z.to(tl.float64)
        pull = members * r[None, :] * ((2 * d)[:, None] - r[None, :])
        middle = tl.sum(members * centers, 1)
        bend = tl.sum(pull * centers, 1) - tl.sum(pull, 1) * middle
        slope = bend / temperature - tl.sum(members * r[None, :], 1)
        slope /= tl.maximum(error * size, _TINY)
    else:
        error = tl.sum(tl.abs(gap), 0) / size
        signs = (gap > 0).to(tl.float64) - (gap < 0).to(tl.float64)
        slope = tl.sum(members * signs[None, :], 1) / -size
    _write(gradient, slope, rows, x, shares, z, n, CLASSES)
    if tl.program_id(0) == 0:
        tl.store(value, error)


@triton.jit
def _entropy(x, shares, CLASSES: tl.constexpr):
    """Return log-probabilities, the entropy, and its share h of the largest, as in the torch code.

    The log odds of an h of 0 or 1 would be infinite.
    """
    logs = tl.maximum(x - tl.log(tl.sum(tl.exp(x), 1))[:, None], _LOG_TINY)
    entropy = -tl.sum(shares * logs, 1)
    unit = 1 / tl.log(tl.full([], CLASSES, tl.float64))
    h = tl.minimum(tl.maximum(entropy.to(tl.float64) * unit, 1e-12), 1 - 1e-12)
    h = tl.where(entropy == entropy, h, float("nan"))
    return logs, entropy, unit, h


@triton.jit
def _uncertainty(h, odds, temperature):
    """Return tanh h and t(h)."""
    tanh = 1 - 2 / (tl.exp(2 * h) + 1)
    uncertain = 1 / (1 + tl.exp((odds - tl.log(h / (1 - h))) / temperature))
    return tanh, uncertain


@_kernel
def _triton_avuc_sums(
    logits, labels, counts, n, odds: tl.float64, temperature: tl.float64,
    ROWS: tl.constexpr, CLASSES: tl.constexpr,
):  # fmt: skip
    """Store each block's soft counts of answers whose certainty is wrong, and right."""
    rows, x, shares, _, hit = _triton_read(logits, labels, n, ROWS, CLASSES)
    _, _, _, h = _entropy(x, shares, CLASSES)
    tanh, uncertain = _uncertainty(h, odds, temperature)
    doubtful, certain = uncertain * tanh, (1 - uncertain) * (1 - tanh)
    against = tl.where(rows < n, tl.where(hit, doubtful, certain), 0.0)
    for_it = tl.where(rows < n, tl.where(hit, certain, doubtful), 0.0)
    tl.store(counts + 2 * tl.program_id(0), tl.sum(against, 0))
    tl.store(counts + 2 * tl.program_id(0) + 1, tl.sum(for_it, 0))


@_kernel
def _triton_avuc(
    logits, labels, counts, value, gradient, n, odds: tl.float64, temperature: tl.float64,
    ROWS: tl.constexpr, CLASSES: tl.constexpr,
):  # fmt: skip
    """Store S-AvUC of all counts, and its gradient."""
    rows, x, shares, _, hit = _triton_read(logits, labels, n, ROWS, CLASSES)
    logs, entropy, unit, h = _entropy(x, shares, CLASSES)
    tanh, uncertain = _uncertainty(h, odds, temperature)
    both = _total(counts, 2)
    first = tl.arange(0, 2) == 0
    against = tl.sum(tl.where(first, both, 0.0), 0)
    for_it = tl.maximum(tl.sum(tl.where(first, 0.0, both), 0), _TINY)
    ratio = against / for_it
    steepness = uncertain * (1 - uncertain) / (h - h * h) / temperature
    flatness = 1 - tanh
    bend = flatness * (1 + tanh)
    of_doubtful = steepness * tanh + uncertain * bend
    of_certain = steepness * flatness + (1 - uncertain) * bend
    slope = tl.where(hit, of_doubtful + ratio * of_certain, -of_certain - ratio * of_doubtful)
    pull = (slope / (for_it + against) * -unit).to(tl.float32)[:, None]
    columns = tl.arange(0, triton.next_power_of_2(CLASSES))[None, :]
    there = (rows < n)[:, None] & (columns < CLASSES)
    values = shares * (logs + entropy[:, None]) * pull
    tl.store(gradient + rows[:, None] * CLASSES + columns, values, there)
    if tl.program_id(0) == 0:
        tl.store(value, tl.log(1 + ratio))


@cache
def _rows(classes: int) -> int:
    """Return how many samples make a block."""
    return int(max(1, min(_MOST_ROWS, _MOST_LOGITS // triton.next_power_of_2(classes))))


def _prepared(scores: Tensor, truth: Tensor) -> tuple[Tensor, ...]:
    """Return logits and labels as the kernels take them, and room for value and gradient."""
    value = torch.empty((), dtype=torch.float64, device=scores.device)
    gradient = torch.empty(scores.shape, dtype=scores.dtype, device=scores.device)
    return scores.contiguous(), truth.contiguous(), value, gradient


def _doubles(count: int, like: Tensor) -> Tensor:
    return torch.empty(count, dtype=torch.float64, device=like.device)


def launch_triton_esd(scores: Tensor, truth: Tensor) -> tuple[Tensor, Tensor]:
    """Return ESD and its gradient by the logits."""
    n, classes = scores.shape
    rows = _rows(classes)
    grid = (-(-n // rows),)
    x, y, value, gradient = _prepared(scores, truth)
    room = _doubles(4 * n, x)
    _confidences[grid](x, y, room, n, rows, classes)
    _triton_esd_sums[grid](room, n, rows)
    _triton_esd[grid](x, y, room, value, gradient, n, rows, classes)
    return value, gradient


def launch_triton_mmce(scores: Tensor, truth: Tensor, phi: float) -> tuple[Tensor, Tensor]:
    """Return MMCE^2 and its gradient by the logits."""
    n, classes = scores.shape
    rows = _rows(classes)
    blocks = -(-n // rows)
    x, y, _, gradient = _prepared(scores, truth)
    room, terms = _doubles(2 * n, x), _doubles(blocks, x)
    _confidences[(blocks,)](x, y, room, n, rows, classes)
    _triton_mmce[(blocks,)](x, y, room, terms, gradient, n, phi, rows, classes)
    return terms.sum(), gradient


def launch_triton_sb_ece(
    scores: Tensor, truth: Tensor, bins: int, temperature: float, soft: bool = True
) -> tuple[Tensor, Tensor]:
    """Return SB-ECE and its gradient by the logits."""
    n, classes = scores.shape
    rows = _rows(classes)
    blocks = -(-n // rows)
    x, y, value, gradient = _prepared(scores, truth)
    room = _doubles(4 * blocks * bins, x)  # bins are padded to less than twice as many
    _triton_bin_sums[(blocks,)](x, y, room, n, temperature, rows, classes, bins, soft)
    _triton_binned[(blocks,)](
        x, y, room, value, gradient, n, temperature, rows, classes, bins, soft
    )
    return value, gradient


def launch_triton_ece(
    scores: Tensor, truth: Tensor, bins: int, norm: str = "l1"
) -> tuple[Tensor, Tensor]:
    """Return the binned ECE (l1 only), bins held fixed, and its gradient by the logits."""
    return launch_triton_sb_ece(scores, truth, bins, 1.0, soft=False)


def launch_triton_s_avuc(
    scores: Tensor, truth: Tensor, kappa: float, temperature: float
) -> tuple[Tensor, Tensor]:
    """Return S-AvUC and its gradient by the logits."""
    n, classes = scores.shape
    rows = _rows(classes)
    blocks = -(-n // rows)
    x, y, value, gradient = _prepared(scores, truth)
    room, odds = _doubles(2 * blocks, x), math.log(kappa / (1 - kappa))
    _triton_avuc_sums[(blocks,)](x, y, room, n, odds, temperature, rows, classes)
    _triton_avuc[(blocks,)](x, y, room, value, gradient, n, odds, temperature, rows, classes)
    return value, gradient
