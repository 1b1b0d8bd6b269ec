"""Point clouds of generated furniture."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from orbical.data import padded
from orbical.errors import whole_number

__all__ = ["PointClouds", "in_unit_ball", "padded"]


class PointClouds(NamedTuple):
    """Point clouds with their labels and the names of the classes.

    Attributes:
        points: Tensor `[n, points, 3]`, float32, or the fields `pos` and `mask` of padded clouds.
        labels: Tensor `[n]`, int64.
        classes: Names of the classes, by label.
    """

    points: Any
    labels: Tensor
    classes: tuple[str, ...]


def in_unit_ball(points: np.ndarray) -> np.ndarray:
    """Center a cloud `[points, 3]` on its bounding box and scale it to the unit ball.

    >>> in_unit_ball(np.array([[0.0, 0, 0], [4, 0, 0]])).tolist()
    [[-1.0, 0.0, 0.0], [1.0, 0.0, 0.0]]
    """
    centered = points - (points.min(0) + points.max(0)) / 2
    return np.asarray(centered / max(float(np.linalg.norm(centered, axis=1).max()), 1e-6))


Generator = np.random.Generator
_BALL, _BOX, _CYLINDER = "ball", "box", "cylinder"


@dataclass(frozen=True)
class FurniturePart:
    """A solid: its kind, center, and sizes along x, y (up) and z.

    The axis of a cylinder is y; the diameter of a cylinder or a ball is the size along x.
    """

    kind: str
    center: tuple[float, float, float]
    size: tuple[float, float, float]

    @property
    def area(self) -> float:
        """The area of the surface."""
        x, y, z = self.size
        if self.kind == _BOX:
            return 2 * (x * y + y * z + x * z)
        return np.pi * (x * x if self.kind == _BALL else x * y + x * x / 2)

    def sample(self, count: int, random: Generator) -> np.ndarray:
        """Draw points `[count, 3]` uniformly on the surface."""
        draw = {_BALL: _on_ball, _BOX: _on_box, _CYLINDER: _on_cylinder}[self.kind]
        return np.asarray(draw(count, self.size, random) + self.center)


def _on_ball(count: int, size: tuple[float, float, float], random: Generator) -> np.ndarray:
    direction = random.normal(size=(count, 3))
    length = np.linalg.norm(direction, axis=1, keepdims=True)
    return np.asarray(direction / length * size[0] / 2)


def _on_box(count: int, size: tuple[float, float, float], random: Generator) -> np.ndarray:
    sides = np.array(size)
    faces = np.array([sides[1] * sides[2], sides[0] * sides[2], sides[0] * sides[1]])
    axis = random.choice(3, count, p=faces / faces.sum())
    place = random.uniform(-0.5, 0.5, (count, 3))
    place[np.arange(count), axis] = random.choice([-0.5, 0.5], count)
    return np.asarray(place * sides)


def _on_cylinder(count: int, size: tuple[float, float, float], random: Generator) -> np.ndarray:
    width, height, _ = size
    angle = random.uniform(0, 2 * np.pi, count)
    on_side = random.random(count) < height / (height + width / 2)
    radius = np.where(on_side, 1.0, np.sqrt(random.random(count))) * width / 2
    up = np.where(on_side, random.uniform(-0.5, 0.5, count), random.choice([-0.5, 0.5], count))
    return np.stack([radius * np.cos(angle), up * height, radius * np.sin(angle)], 1)


def _legs(
    width: float, height: float, depth: float, thick: float, kind: str
) -> list[FurniturePart]:
    """Return four legs of a height under a plate of width x depth."""
    size = thick, height, thick
    return [
        FurniturePart(kind, (x * (width - thick) / 2, height / 2, z * (depth - thick) / 2), size)
        for x in (-1, 1)
        for z in (-1, 1)
    ]


def _bed(random: Generator) -> list[FurniturePart]:
    width, length = random.uniform(0.9, 1.8), random.uniform(1.9, 2.2)
    height, head = random.uniform(0.3, 0.55), random.uniform(0.3, 0.7)
    return [
        FurniturePart(_BOX, (0, height / 2, 0), (width, height, length)),
        FurniturePart(
            _BOX, (0, (height + head) / 2, -length / 2 - 0.04), (width, height + head, 0.08)
        ),
        FurniturePart(_BOX, (0, height + 0.06, -length * 0.36), (width * 0.8, 0.12, length * 0.16)),
    ]


def _chair(random: Generator) -> list[FurniturePart]:
    width, seat = random.uniform(0.4, 0.55), random.uniform(0.4, 0.5)
    back = random.uniform(0.4, 0.65)
    parts = [
        FurniturePart(_BOX, (0, seat, 0), (width, 0.05, width)),
        FurniturePart(_BOX, (0, seat + back / 2, -width / 2 + 0.025), (width, back, 0.05)),
    ]
    if random.random() < 0.3:  # on one foot
        return [
            *parts,
            FurniturePart(_CYLINDER, (0, seat / 2, 0), (0.07, seat, 0.07)),
            FurniturePart(_CYLINDER, (0, 0.02, 0), (width * 0.9, 0.04, width * 0.9)),
        ]
    kind = _BOX if random.random() < 0.5 else _CYLINDER
    return parts + _legs(width, seat, width, random.uniform(0.03, 0.06), kind)


def _lamp(random: Generator) -> list[FurniturePart]:
    height, shade = random.uniform(0.9, 1.8), random.uniform(0.25, 0.5)
    tall = random.uniform(0.15, 0.35)
    top = FurniturePart(_CYLINDER, (0, height, 0), (shade, tall, shade))
    if random.random() < 0.4:
        top = FurniturePart(_BALL, (0, height, 0), (shade, shade, shade))
    return [
        FurniturePart(_CYLINDER, (0, 0.02, 0), (random.uniform(0.2, 0.4), 0.04, 0)),
        FurniturePart(_CYLINDER, (0, height / 2, 0), (0.04, height, 0)),
        top,
    ]


def _monitor(random: Generator) -> list[FurniturePart]:
    width = random.uniform(0.5, 0.9)
    tall, neck = width * random.uniform(0.5, 0.75), random.uniform(0.08, 0.25)
    return [
        FurniturePart(_BOX, (0, neck + tall / 2, 0), (width, tall, random.uniform(0.03, 0.08))),
        FurniturePart(_BOX, (0, neck / 2, -0.03), (0.08, neck, 0.04)),
        FurniturePart(_BOX, (0, 0.01, 0), (width * random.uniform(0.3, 0.5), 0.02, 0.2)),
    ]


def _plant(random: Generator) -> list[FurniturePart]:
    pot, tall = random.uniform(0.2, 0.4), random.uniform(0.2, 0.45)
    crown, stem = random.uniform(0.35, 0.7), random.uniform(0.1, 0.6)
    leaves = [
        FurniturePart(
            _BALL, (*(random.uniform(-0.3, 0.3, 3) * crown + [0, tall + stem, 0]),), (crown,) * 3
        )
        for _ in range(random.integers(2, 5))
    ]
    return [
        FurniturePart(_CYLINDER, (0, tall / 2, 0), (pot, tall, pot)),
        FurniturePart(_CYLINDER, (0, tall + stem / 2, 0), (0.03, stem, 0.03)),
        *leaves,
    ]


def _shelf(random: Generator) -> list[FurniturePart]:
    width, height = random.uniform(0.6, 1.4), random.uniform(1.0, 2.1)
    depth, boards = random.uniform(0.25, 0.45), random.integers(3, 7)
    return [
        *(
            FurniturePart(_BOX, (x * width / 2, height / 2, 0), (0.03, height, depth))
            for x in (-1, 1)
        ),
        *(
            FurniturePart(_BOX, (0, y, 0), (width, 0.03, depth))
            for y in np.linspace(0, height, boards)
        ),
        *(
            [FurniturePart(_BOX, (0, height / 2, -depth / 2), (width, height, 0.02))]
            * random.integers(2)
        ),
    ]


def _sofa(random: Generator) -> list[FurniturePart]:
    width, depth = random.uniform(1.2, 2.4), random.uniform(0.7, 1.0)
    seat, back, arm = (random.uniform(*r) for r in ((0.35, 0.48), (0.3, 0.55), (0.12, 0.28)))
    tall = seat + random.uniform(0.12, 0.25)
    return [
        FurniturePart(_BOX, (0, seat / 2, 0), (width, seat, depth)),
        FurniturePart(_BOX, (0, (seat + back) / 2, -depth / 2), (width, seat + back, 0.2)),
        *(FurniturePart(_BOX, (x * width / 2, tall / 2, 0), (arm, tall, depth)) for x in (-1, 1)),
    ]


def _table(random: Generator) -> list[FurniturePart]:
    width, depth = random.uniform(0.7, 2.0), random.uniform(0.6, 1.0)
    height = random.uniform(0.4, 0.8)
    if random.random() < 0.35:  # round, on one foot
        return [
            FurniturePart(_CYLINDER, (0, height, 0), (depth * 1.2, 0.04, depth)),
            FurniturePart(_CYLINDER, (0, height / 2, 0), (0.1, height, 0.1)),
            FurniturePart(_CYLINDER, (0, 0.02, 0), (depth * 0.6, 0.04, depth)),
        ]
    kind = _BOX if random.random() < 0.5 else _CYLINDER
    top = FurniturePart(_BOX, (0, height, 0), (width, 0.05, depth))
    return [top, *_legs(width, height, depth, random.uniform(0.04, 0.1), kind)]


BUILDERS: dict[str, Callable[[Generator], list[FurniturePart]]] = {
    build.__name__[1:]: build
    for build in (_bed, _chair, _lamp, _monitor, _plant, _shelf, _sofa, _table)
}


def furniture(each: int = 25, points: int = 256, seed: int = 0) -> PointClouds:
    """Generate point clouds of eight kinds of furniture, with y up, in the unit ball.

    Every piece consists of boxes, cylinders and balls in random proportions. The points are uniform
    on the surfaces of its parts, with noise of about 0.005.

    Args:
        each: Number of pieces of each kind; the kinds alternate: bed, chair, lamp, monitor, ...
        points: Number of points of each cloud.
        seed: Seed of the random numbers.

    Returns:
        `8 * each` clouds.

    Raises:
        InputError: If `each` or `points` is less than 1.

    Example:
        >>> clouds = furniture(each=2)
        >>> clouds.points.shape, clouds.classes[:3], clouds.labels.tolist()[:5]
        (torch.Size([16, 256, 3]), ('bed', 'chair', 'lamp'), [0, 1, 2, 3, 4])
    """
    whole_number("each", each, 1)
    whole_number("points", points, 1)
    random = np.random.default_rng(seed)
    builders = BUILDERS.values()
    clouds = [_cloud(build(random), points, random) for _ in range(each) for build in builders]
    return PointClouds(
        torch.from_numpy(np.stack(clouds).astype(np.float32)),
        torch.arange(len(clouds)) % len(BUILDERS),
        tuple(BUILDERS),
    )


def _cloud(parts: list[FurniturePart], points: int, random: Generator) -> np.ndarray:
    areas = np.array([part.area for part in parts])
    counts = random.multinomial(points, areas / areas.sum())
    drawn = [part.sample(count, random) for part, count in zip(parts, counts, strict=True)]
    cloud = in_unit_ball(np.concatenate(drawn))
    noisy = cloud + random.normal(0, 0.005, cloud.shape)
    return in_unit_ball(random.permutation(noisy))
