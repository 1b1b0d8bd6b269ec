"""Generated scenes for detectors: textured shapes on textured backgrounds, with exact boxes."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from orbical.errors import whole_number

from .key_objects import KeyObjects, padded_key_objects

SHAPES = ("disc", "square", "triangle", "cross", "ring")
SMALLEST, LARGEST = 9.0, 24.0
"""Limits of half the extent of a shape, in pixels, for a view of 128 pixels."""
OTHERS = 3
Array = NDArray[np.float64]


def scenes(count: int, seed: int = 0, window: int = 128, radius: int = 32) -> KeyObjects:
    """Generate scenes, each with a key object in the center and up to three others around it.

    Every scene is large enough for a view of `window` pixels to move by `radius`. Shapes have a
    two-colored texture (noise, stripes or checks) and a random orientation and size; the background
    is smooth noise with faint stripes.

    Args:
        count: Number of scenes.
        seed: Seed of the random numbers.
        window: Side of the field of view in pixels.
        radius: Largest shift of the view in pixels.

    Returns:
        As `orbical.datasets.coco`: `images` `[count, 3, s, s]` with `s = window + 2 radius`,
        `objects` `[count, T, 5]`, `classes` and `names`.

    Raises:
        InputError: If a size cannot be used.

    Example:
        >>> made = scenes(2)
        >>> made["images"].shape, made["classes"][int(made["objects"][0, 0, 4])] in SHAPES
        (torch.Size([2, 3, 192, 192]), True)
    """
    for name, value, least in (("count", count, 1), ("window", window, 16), ("radius", radius, 0)):
        whole_number(name, value, least)
    images, objects = [], []
    for number in range(count):
        # A generator for each scene: the first scenes do not depend on the number of scenes.
        random = np.random.Generator(np.random.PCG64([seed, number]))
        pixels, inside = _generated_scene(random, window, radius)
        images.append(pixels)
        objects.append(inside)
    stacked = np.stack(images).astype(np.float32) / 255
    return KeyObjects(
        images=torch.from_numpy(stacked).permute(0, 3, 1, 2).contiguous(),
        objects=padded_key_objects(objects),
        classes=list(SHAPES),
        names=[f"scene {seed}-{number}" for number in range(count)],
    )


def _generated_scene(
    random: np.random.Generator, window: int, radius: int
) -> tuple[NDArray[np.uint8], NDArray[np.float32]]:
    side = window + 2 * radius
    rows, columns = np.mgrid[:side, :side] + 0.5
    picture = _background(random, rows, columns)
    objects: list[list[float]] = []
    for number in range(1 + int(random.integers(0, OTHERS + 1))):
        half = random.uniform(SMALLEST, LARGEST) * window / 128
        center = np.full(2, side / 2) if number == 0 else random.uniform(half, side - half, 2)
        box = [center[0] - half, center[1] - half, center[0] + half, center[1] + half]
        if any(_meet(box, other) for other in objects):
            continue
        kind = int(random.integers(len(SHAPES)))
        cover = _scene_cover(kind, random.uniform(0, 2 * np.pi), rows, columns, center, half)
        filled = np.argwhere(cover > 0.5)
        top, left = filled.min(0)
        bottom, right = filled.max(0) + 1
        picture += cover[..., None] * (_scene_texture(random, rows, columns) - picture)
        objects.append([float(edge) for edge in (left, top, right, bottom, kind)])
    noisy = picture + random.normal(0, 4, picture.shape)
    in_view = np.array(objects, np.float32) - np.array([radius] * 4 + [0], np.float32)
    return np.clip(noisy, 0, 255).astype(np.uint8), in_view


def _meet(box: list[float], other: list[float]) -> bool:
    return box[0] < other[2] and other[0] < box[2] and box[1] < other[3] and other[1] < box[3]


def _background(random: np.random.Generator, rows: Array, columns: Array) -> Array:
    colors = random.uniform(40, 200, (2, 3))
    mix = _smooth(random, rows, columns, waves=4) + 0.15 * _stripes(random, rows, columns)
    return np.asarray(colors[0] + (colors[1] - colors[0]) * np.clip(mix, 0, 1)[..., None])


def _smooth(random: np.random.Generator, rows: Array, columns: Array, waves: int) -> Array:
    """Return a sum of long waves in random directions, around one half."""
    total = np.zeros_like(rows)
    for _ in range(waves):
        angle, phase = random.uniform(0, 2 * np.pi, 2)
        length = random.uniform(0.4, 1.5) * len(rows)
        along = np.cos(angle) * columns + np.sin(angle) * rows
        total += np.sin(2 * np.pi * along / length + phase)
    return 0.5 + total / (2 * waves)


def _stripes(random: np.random.Generator, rows: Array, columns: Array) -> Array:
    angle, phase = random.uniform(0, 2 * np.pi, 2)
    along = np.cos(angle) * columns + np.sin(angle) * rows
    return np.asarray(np.sin(2 * np.pi * along / random.uniform(6, 16) + phase))


def _scene_texture(random: np.random.Generator, rows: Array, columns: Array) -> Array:
    colors = random.uniform(0, 255, (2, 3))
    kind = int(random.integers(3))
    if kind == 0:
        mix = random.uniform(0, 1, rows.shape)
    elif kind == 1:
        mix = 0.5 + 0.5 * _stripes(random, rows, columns)
    else:
        size = random.uniform(4, 9)
        mix = (np.floor(rows / size) + np.floor(columns / size)) % 2
    return np.asarray(colors[0] + (colors[1] - colors[0]) * 0.5 * mix[..., None])


def _scene_cover(
    kind: int, angle_rad: float, rows: Array, columns: Array, center: Array, half: float
) -> Array:
    """Return the share of each pixel that a shape covers, with an edge one pixel wide."""
    x, y = columns - center[0], rows - center[1]
    u = np.cos(angle_rad) * x + np.sin(angle_rad) * y
    v = np.cos(angle_rad) * y - np.sin(angle_rad) * x
    distance = np.hypot(x, y)
    if SHAPES[kind] == "disc":
        outside = distance - half
    elif SHAPES[kind] == "ring":
        outside = np.abs(distance - 0.75 * half) - 0.25 * half
    elif SHAPES[kind] == "square":
        outside = np.maximum(np.abs(u), np.abs(v)) - half / np.sqrt(2)
    elif SHAPES[kind] == "triangle":
        sides = [np.cos(turn) * u + np.sin(turn) * v for turn in 2 * np.pi * np.arange(3) / 3]
        outside = np.max(sides, 0) - half / 2
    else:
        arms = [np.maximum(np.abs(u), 3 * np.abs(v)), np.maximum(np.abs(v), 3 * np.abs(u))]
        outside = np.min(arms, 0) - 0.95 * half
    return np.asarray(np.clip(0.5 - outside, 0, 1))
