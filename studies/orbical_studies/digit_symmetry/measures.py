"""The nearest other image under each group, and the exact ceilings of quantised images."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from orbical.bounds import OrbitTable, compare_groups
from orbical.errors import InputError
from orbical.groups import Group

from ..pages import Row, write_csv
from .settings import ACTION, QUANTISED, QUANTISED_AT_MOST, SMOOTHING, candidates, load

_BLOCK = 256


@dataclass(frozen=True)
class Neighbours:
    """The nearest other image of each, after the best group element.

    Attributes:
        distance: `[N]`, `min over g, j != i of ||g x_i - x_j||`.
        index: `[N]`, the nearest j.
        element: `[N]`, the best g.
    """

    distance: Tensor
    index: Tensor
    element: Tensor


def quotient_neighbours(images: Tensor, group: Group) -> Neighbours:
    """Find each image's nearest other image in the quotient metric.

    `d(i, j) = min over g of ||g x_i - x_j||`, by blocks of matrix products: one product of 256
    moved images with all others for each block and element. The image itself, and every moved copy
    of it, is left out.

    Args:
        images: `[N, 1, H, W]`, on the device that is to do the work.
        group: moves images.

    >>> from orbical.groups import cyclic
    >>> bars = torch.eye(3).reshape(3, 1, 1, 3).expand(3, 1, 3, 3)  # left, middle, right
    >>> quotient_neighbours(bars, cyclic(2)).distance
    tensor([0.0000, 2.4495, 0.0000])
    """
    if images.ndim != 4 or len(images) < 2:
        raise InputError(
            f"images: got {tuple(images.shape)}, expected [N, 1, H, W] with at least 2 images"
        )
    ACTION.check(group, images)
    count = len(images)
    flat = images.reshape(count, -1)
    norms = flat.square().sum(1)
    nearest = torch.full((count,), torch.inf, device=images.device)
    index = torch.zeros(count, dtype=torch.int64, device=images.device)
    element = torch.zeros_like(index)
    for start in range(0, count, _BLOCK):
        rows = torch.arange(start, min(start + _BLOCK, count), device=images.device)
        moved = ACTION.apply(group, images[rows]).reshape(len(group), len(rows), -1)
        for number, block in enumerate(moved):
            squared = torch.addmm(norms[None], block, flat.T, alpha=-2)
            squared[rows - start, rows] = torch.inf
            value, place = squared.min(1)
            value += block.square().sum(1)
            better = value < nearest[rows]
            at = rows[better]
            nearest[at], index[at], element[at] = value[better], place[better], number
    return Neighbours(nearest.clamp(min=0).sqrt(), index, element)


def smoothed(images: Tensor, sigma_px: float) -> Tensor:
    """Smooth images by a Gaussian; 0 leaves them as they are.

    What resampling blurs in a turned image then hardly differs from what was blurred before.

    >>> round(float(smoothed(torch.ones(1, 1, 9, 9), 1.0)[0, 0, 4, 4]), 4)
    1.0
    """
    if sigma_px == 0:
        return images
    reach = int(np.ceil(4 * sigma_px))
    kernel = torch.exp(-0.5 * (torch.arange(-reach, reach + 1) / sigma_px) ** 2).to(images)
    kernel /= kernel.sum()
    across = functional.conv2d(images, kernel.reshape(1, 1, 1, -1), padding=(0, reach))
    return functional.conv2d(across, kernel.reshape(1, 1, -1, 1), padding=(reach, 0))


def nearest_rows(
    images: Tensor, labels: Tensor, groups: Mapping[str, Group], source: str
) -> Iterator[tuple[Row, list[Row], list[Row]]]:
    """Measure the leave-one-out nearest-neighbour error for each group and smoothing.

    Args:
        images: `[N, 1, H, W]`.
        labels: `[N]`.
        groups: the first is the baseline.
        source: the data's name, written into the rows.

    Returns:
        for each group and smoothing: its summary, its confusions (digit, digit of the neighbour,
        how many), and the images that the group alone confuses, nearest first.
    """
    for smoothing, sigma in SMOOTHING.items():
        shown = smoothed(images, sigma)
        baseline: Neighbours | None = None
        for name, group in groups.items():
            started = time.perf_counter()
            found = quotient_neighbours(shown, group)
            seconds = time.perf_counter() - started
            baseline = found if baseline is None else baseline
            head = {"images": smoothing, "group": name}
            before, after = labels[baseline.index] != labels, labels[found.index] != labels
            summary = {
                **head,
                "data": source,
                "count": len(labels),
                "elements": len(group),
                "wrong": int(after.sum()),
                "newly_wrong": int((after & ~before).sum()),
                "newly_right": int((before & ~after).sum()),
                "action_defect": float(ACTION.defect(group, shown[:200]).mean()),
                "seconds": seconds,
            }
            pairs, times = torch.stack([labels, labels[found.index]], 1).unique(
                dim=0, return_counts=True
            )
            confusions = [
                {**head, "digit": digit, "neighbour": neighbour, "times": int(number)}
                for (digit, neighbour), number in zip(pairs.tolist(), times, strict=True)
            ]
            closer = found.distance / baseline.distance
            new = torch.nonzero(after & ~before).flatten()
            collisions = [
                {
                    **head,
                    "data": source,
                    "image": row,
                    "digit": int(labels[row]),
                    "other": int(found.index[row]),
                    "other_digit": int(labels[found.index[row]]),
                    "element": int(found.element[row]),
                    "distance": float(found.distance[row]),
                    "nearest_unmoved": float(baseline.distance[row]),
                }
                for row in new[closer[new].argsort()].tolist()
            ]
            yield summary, confusions, collisions


def quantise(images: Tensor, side: int, threshold: float) -> Tensor:
    """Average images over squares and binarise: `[N, 1, side, side]` of 0 and 1.

    Both steps commute with D4, so the group acts exactly on the quantised set.

    Args:
        images: `[N, 1, H, H]`, H a multiple of `side`.
        side: pixels of the result.
        threshold: a pixel is 1 where the average is above.

    >>> quantise(torch.arange(16.0).reshape(1, 1, 4, 4), 2, 6.0)[0, 0]
    tensor([[0., 0.],
            [1., 1.]], dtype=torch.float64)
    """
    if side < 1 or images.shape[-1] % side:
        raise InputError(f"side: got {side}, expected a divisor of {images.shape[-1]}")
    return (functional.avg_pool2d(images, images.shape[-1] // side) > threshold).double()


def quantised_rows(images: Tensor, labels: Tensor, groups: Mapping[str, Group]) -> list[Row]:
    """Compute the exact accuracy ceiling of each group on quantised images.

    Args:
        images: `[N, 1, H, H]`.
        labels: `[N]`.
        groups: those in D4 are kept, and the trivial one comes first in any case.

    Returns:
        for each quantisation and group the numbers of `compare_groups`, the share of images that
        are `alone` in their orbit, and the digit pairs that share orbits most.
    """
    exact = {n: g for n, g in groups.items() if g.exact_on_grid and len(g) > 1}
    rows: list[Row] = []
    label = labels[:QUANTISED_AT_MOST].numpy()
    for side, threshold in QUANTISED:
        x = quantise(images[:QUANTISED_AT_MOST], side, threshold).numpy()
        compared = compare_groups((x, label), exact, action=ACTION, tolerance=0.1, labels=10)
        for row, candidate in zip(compared.rows(), compared.candidates, strict=True):
            images_of_orbit = np.rint(candidate.table.orbit_mass * len(label))
            row |= {
                "alone": float((images_of_orbit == 1).sum() / len(label)),
                "pairs": shared_pairs(candidate.table, len(label)),
            }
            rows.append({"side": side, "threshold": threshold, **row})
    return rows


def shared_pairs(table: OrbitTable, count: int, most: int = 4) -> str:
    """Name the digits that lose most images to another digit of the same orbit.

    An image is lost when it has not its orbit's most frequent label; the pair is both labels.

    >>> shared_pairs(OrbitTable([[0.5, 0.25], [0.0, 0.25]]), count=4)
    '0-1 (1)'
    """
    winner = table.mass.argmax(1)
    digits = table.mass.shape[1]
    lost = np.zeros((digits, digits))
    np.add.at(lost, winner, table.mass)
    lost = np.triu(lost + lost.T, 1) * count
    order = np.argsort(-lost, axis=None, kind="stable")[:most]
    pairs = zip(*np.unravel_index(order, lost.shape), strict=True)
    return ", ".join(f"{a}-{b} ({lost[a, b]:.0f})" for a, b in pairs if lost[a, b] > 0)


def run(
    source: str, folder: Path, *, turns: int = 72, images: int | None = None, device: str = "cpu"
) -> None:
    """Measure everything and write the CSV files.

    Args:
        source: one of `SOURCES`.
        folder: where to.
        turns: samples of SO(2).
        images: only the first so many.
        device: where the matrix products run.
    """
    x, label = (part[:images] for part in load(source))
    groups = candidates(turns)
    summaries: list[Row] = []
    confusions: list[Row] = []
    collisions: list[Row] = []
    for summary, confused, collided in nearest_rows(x.to(device), label.to(device), groups, source):
        summaries.append(summary)
        confusions += confused
        collisions += collided
        print(
            f"{summary['images']:12} {summary['group']:8} "
            f"error {summary['wrong'] / summary['count']:.4f} "
            f"({summary['newly_wrong']} newly wrong, {summary['newly_right']} newly right), "
            f"{summary['seconds']:.1f} s",
            flush=True,
        )
    write_csv(folder / "groups.csv", summaries)
    write_csv(folder / "confusions.csv", confusions)
    write_csv(folder / "collisions.csv", collisions)
    write_csv(folder / "quantised.csv", quantised_rows(x, label, groups))
