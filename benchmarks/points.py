"""The cost of rotating point clouds beside that of asking a network about them.

Run: python benchmarks/points.py

A whole scan of 2,416 rotations x 100 clouds x 2,048 points is 242 thousand clouds, minutes of one
core; rotations are independent of each other, so 24 of them tell the time of each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import timing
import torch
from timing import Row

import orbical as ob
from orbical.zoo.pointnet import PointNet

CLOUDS, POINTS, TURNS = 100, 2048, 24
PADDED = {"pos": ob.actions.Points(), "mask": ob.actions.Trivial()}


def turning() -> Iterator[Row]:
    """Turn clouds as a scan does, with and without a mask, against two networks."""
    group = ob.groups.slices3d(72, 13)
    blocks = [group[start : start + 1] for start in range(0, len(group), len(group) // TURNS)]
    pos = torch.rand(CLOUDS, POINTS, 3, generator=torch.Generator().manual_seed(0)) - 0.5
    mask = torch.arange(POINTS) < torch.linspace(POINTS / 2, POINTS, CLOUDS)[:, None]
    count = len(blocks) * CLOUDS
    networks = {"zoo's network": PointNet(8), "study's network": PointNet(10, (64, 128, 256))}
    bare = {name: _per_cloud(partial(_ask, net.eval(), pos)) for name, net in networks.items()}
    plain, padded = ob.actions.Points(), ob.actions.as_action(PADDED)
    works: dict[str, tuple[Callable[..., Any], Any, Any]] = {
        "rotation": (_turn, plain, pos),
        "rotation and action defect": (_turn_and_back, plain, pos),
        "the same, padded clouds": (_turn_and_back, padded, {"pos": pos, "mask": mask}),
    }
    for work, (function, action, clouds) in works.items():
        seconds = timing.seconds(partial(function, action, blocks, clouds), runs=3) / count
        for name, theirs in bare.items():
            yield timing.at_most(f"{work}, a cloud", seconds, name, theirs, 0.1)


def _turn(action: Any, blocks: list[Any], clouds: Any) -> None:
    for elements in blocks:
        action.apply(elements, clouds)


def _turn_and_back(action: Any, blocks: list[Any], clouds: Any) -> None:
    for elements in blocks:
        action.defect(elements, clouds, action.apply(elements, clouds))


@torch.inference_mode()
def _ask(net: PointNet, pos: torch.Tensor) -> None:
    net(pos)


def _per_cloud(work: Callable[[], None]) -> float:
    return timing.seconds(work, runs=3) / CLOUDS


if __name__ == "__main__":
    timing.run([turning], __doc__ or "")
