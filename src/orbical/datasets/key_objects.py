"""Key objects in images: those around which a moving field of view can be centered.

A detector is scanned by moving a field of view inside a larger image. The paper's criteria say
which objects can be the key object, around which the view is centered:

1. its class is one of those asked for;
2. the view stays inside the image for all shifts within the radius;
3. its box covers between 1 % and 50 % of the view.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypedDict

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from orbical.errors import InputError

LEAST_SHARE, MOST_SHARE = 0.01, 0.5
"""Share of the view that a key object covers, criterion 3."""
Pixels = NDArray[np.uint8]


@dataclass(frozen=True)
class AnnotatedImage:
    """An image with the boxes in it.

    Attributes:
        name: its file's name.
        width: in pixels.
        height: in pixels.
        boxes: `[n, 4]`, left, top, right, bottom in pixels.
        labels: `[n]`, the name of each box's class.
        content: gives the bytes of its file.
        unlabeled: classes that were not looked for in this image.
    """

    name: str
    width: int
    height: int
    boxes: NDArray[np.float64]
    labels: list[str]
    content: Callable[[], bytes]
    unlabeled: tuple[str, ...] = ()

    def read(self) -> Pixels:
        """Decode the pixels `[height, width, 3]`, and check their number."""
        pixels = decoded(self.content(), self.name)
        if pixels.shape[:2] != (self.height, self.width):
            raise InputError(
                f"folder: {self.name!r} has {pixels.shape[1]} x {pixels.shape[0]} pixels, its "
                f"annotation says {self.width} x {self.height}"
            )
        return pixels


class KeyObject(NamedTuple):
    """Which box of which image."""

    image: int
    box: int


class KeyObjects(TypedDict):
    """What `coco` returns: images with room for the view, and what is in them."""

    images: Tensor
    objects: Tensor
    classes: list[str]
    names: list[str]


def views_of(
    images: Sequence[AnnotatedImage], classes: Sequence[str], window: int = 128, radius: int = 32
) -> KeyObjects:
    """Cut out the surroundings of every key object, with room for the view to move.

    Args:
        images: with their boxes.
        classes: names, in the order of the class indices.
        window: pixels of the field of view.
        radius: pixels by which it will be shifted at most.
    """
    keys = find_key_objects(images, classes, window, radius)
    if not keys:
        raise InputError(
            f"folder: none of {sum(len(image.boxes) for image in images)} boxes is a key object of "
            f"the classes {list(classes)} with room for a view of {window} pixels that moves by "
            f"{radius}, and between 1 % and 50 % of it large; give a smaller window or radius"
        )
    cuts, objects = [], []
    pixels: dict[int, Pixels] = {}
    for key in keys:
        if key.image not in pixels:
            pixels = {key.image: images[key.image].read()}
        cut, inside = surroundings(
            pixels[key.image], images[key.image], key.box, classes, window, radius
        )
        cuts.append(cut)
        objects.append(inside)
    return KeyObjects(
        images=torch.from_numpy(np.stack(cuts).astype(np.float32) / 255).permute(0, 3, 1, 2),
        objects=torch.from_numpy(padded(objects)),
        classes=list(classes),
        names=[images[key.image].name for key in keys],
    )


def find_key_objects(
    images: Sequence[AnnotatedImage], classes: Sequence[str], window: int, radius: int
) -> list[KeyObject]:
    """Find the boxes that meet the three criteria, in order.

    Example:
        >>> box = np.array([[90.0, 90, 110, 110]])
        >>> image = AnnotatedImage("a.png", 200, 200, box, ["cup"], bytes)
        >>> find_key_objects([image], ["cup"], 128, 32)
        [KeyObject(image=0, box=0)]
        >>> find_key_objects([image], ["cup"], 128, 64)     # the view would leave the image
        []
    """
    found = []
    for place, image in enumerate(images):
        for box, (edges, label) in enumerate(zip(image.boxes, image.labels, strict=True)):
            if label in classes and _has_room(edges, image.width, image.height, window, radius):
                found.append(KeyObject(place, box))
    return found


def _has_room(
    edges: NDArray[np.float64], width: float, height: float, window: int, radius: int
) -> bool:
    left, top, right, bottom = edges
    share = (right - left) * (bottom - top) / window**2
    reach = window / 2 + radius
    x, y = (left + right) / 2, (top + bottom) / 2
    inside = reach <= x <= width - reach and reach <= y <= height - reach
    return bool(inside and LEAST_SHARE <= share <= MOST_SHARE)


def surroundings(
    pixels: Pixels,
    image: AnnotatedImage,
    key: int,
    classes: Sequence[str],
    window: int,
    radius: int,
) -> tuple[Pixels, NDArray[np.float32]]:
    """Cut the square that a view centered on one box can reach, and list the objects near it.

    Args:
        pixels: `[height, width, 3]` of the image.
        image: its boxes.
        key: which of them is the key object.
        classes: names, in the order of the class indices.
        window: pixels of the view.
        radius: pixels by which it moves.

    Returns:
        pixels `[s, s, 3]`, and objects `[T, 5]` in pixels of the un-moved view, the key first.
    """
    side = window + 2 * radius
    left, top, right, bottom = image.boxes[key]
    corner = np.array([(left + right) / 2, (top + bottom) / 2]) - side / 2
    room = np.array([pixels.shape[1], pixels.shape[0]]) - side
    x, y = np.clip(np.round(corner), 0, room).astype(int)
    order = [key, *(place for place in range(len(image.boxes)) if place != key)]
    rows = []
    for place in order:
        box = image.boxes[place] - [x + radius, y + radius, x + radius, y + radius]
        reached = box[2] > -radius and box[3] > -radius and (box[:2] < window + radius).all()
        if image.labels[place] in classes and reached:
            rows.append([*box, classes.index(image.labels[place])])
    return pixels[y : y + side, x : x + side], np.array(rows, np.float32)


def padded(rows: Sequence[NDArray[np.float32]]) -> NDArray[np.float32]:
    """Join objects `[T_i, 5]` of several samples, NaN where there are fewer than the most.

    Example:
        >>> padded([np.zeros((1, 5)), np.ones((2, 5))]).shape
        (2, 2, 5)
    """
    filled = np.full((len(rows), max(map(len, rows)), 5), np.nan, np.float32)
    for place, some in enumerate(rows):
        filled[place, : len(some)] = some
    return filled


def checked_boxes(edges: Any, name: str, width: int, height: int) -> NDArray[np.float64]:
    """Check boxes `[n, 4]` of one image: numbers, with area, inside; rounding is forgiven.

    Example:
        >>> checked_boxes([[0, 0, 5, 40]], "a.jpg", 32, 32)
        Traceback (most recent call last):
            ...
        orbical.errors.InputError: boxes: [0.0, 0.0, 5.0, 40.0] given for 'a.jpg', which is ...
    """
    boxes = np.asarray(edges, np.float64).reshape(-1, 4)
    limit = np.array([width, height, width, height])
    wrong = ~np.isfinite(boxes).all(1) | (boxes[:, 2:] <= boxes[:, :2]).any(1)
    wrong |= ((boxes < -1) | (boxes > limit + 1)).any(1)
    if wrong.any():
        raise InputError(
            f"boxes: {boxes[wrong][0].tolist()} given for {name!r}, which is {width} x {height}; "
            "left < right and top < bottom inside the image expected"
        )
    return np.clip(boxes, 0, limit)


def decoded(content: bytes, name: str) -> Pixels:
    """Decode an image file's bytes to `[height, width, 3]`."""
    try:
        from PIL import Image, UnidentifiedImageError
    except ImportError:  # on a machine with torchvision alone
        return _decoded_by_torchvision(content)
    try:
        return np.asarray(Image.open(io.BytesIO(content)).convert("RGB"))
    except (UnidentifiedImageError, OSError) as broken:
        raise InputError(f"folder: {name!r} is not a readable image ({broken})") from broken


def _decoded_by_torchvision(content: bytes) -> Pixels:
    from torchvision.io import decode_jpeg

    stored = torch.frombuffer(bytearray(content), dtype=torch.uint8)
    result: Pixels = decode_jpeg(stored).permute(1, 2, 0).contiguous().numpy()
    return result
