"""Key objects in images: those on which a moving field of view can be centered.

A detector is scanned by shifting a field of view inside a larger image. The view is centered on a
key object, which meets the criteria of the NERO paper:

1. its class is one of the chosen ones;
2. the view stays inside the image for all shifts within the radius;
3. its box covers between 1 % and 50 % of the view.

`coco` reads them from a folder with annotations in the format of COCO.
"""

from __future__ import annotations

import io
import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypedDict

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from orbical._warnings import warn
from orbical.errors import InputError, check_name, whole_number

LEAST_SHARE, MOST_SHARE = 0.01, 0.5
"""Limits of the share of the view that a key object covers, criterion 3."""
Pixels = NDArray[np.uint8]


@dataclass(frozen=True)
class AnnotatedImage:
    """An image with the boxes in it.

    Attributes:
        name: Name of the file.
        width: Width in pixels.
        height: Height in pixels.
        boxes: Array `[n, 4]`, left, top, right, bottom in pixels.
        labels: The class name of each box.
        content: Function that returns the bytes of the file.
        unlabeled: Classes that were not annotated in this image.
    """

    name: str
    width: int
    height: int
    boxes: NDArray[np.float64]
    labels: list[str]
    content: Callable[[], bytes]
    unlabeled: tuple[str, ...] = ()

    def read(self) -> Pixels:
        """Decode the pixels `[height, width, 3]` and check the size."""
        try:
            with Image.open(io.BytesIO(self.content())) as stored:
                image = stored.convert("RGB")
        except OSError as error:
            raise InputError(
                "path", problem=f"{self.name!r} is not a readable image ({error})"
            ) from error
        if image.size != (self.width, self.height):
            raise InputError(
                "folder",
                f"{self.width} x {self.height} pixels, as annotated",
                f"{image.width} x {image.height} in {self.name!r}",
            )
        return np.asarray(image)


class KeyObject(NamedTuple):
    """The indices of an image and of a box in it."""

    image: int
    box: int


class KeyObjects(TypedDict):
    """The data of a detection scan: images with margins for the view, and the objects in them."""

    images: Tensor
    objects: Tensor
    classes: list[str]
    names: list[str]


def key_object_views(
    images: Sequence[AnnotatedImage], classes: Sequence[str], window: int = 128, radius: int = 32
) -> KeyObjects:
    """Crop the surroundings of every key object, with margins for the view to move.

    Args:
        images: Images with their boxes.
        classes: Class names, in the order of the class indices.
        window: Side of the field of view in pixels.
        radius: Largest shift of the view in pixels.
    """
    keys = find_key_objects(images, classes, window, radius)
    if not keys:
        raise InputError(
            "folder",
            f"a key object of the classes {list(classes)}, which covers 1 % to 50 % of "
            f"a view of {window} pixels that moves by {radius} inside the image",
            f"none among {sum(len(image.boxes) for image in images)} boxes",
            remedy="pass a smaller window or radius",
        )
    cuts, objects = [], []
    pixels: dict[int, Pixels] = {}
    for key in keys:
        if key.image not in pixels:
            pixels = {key.image: images[key.image].read()}
        cut, inside = key_object_surroundings(
            pixels[key.image], images[key.image], key.box, classes, window, radius
        )
        cuts.append(cut)
        objects.append(inside)
    return KeyObjects(
        images=torch.from_numpy(np.stack(cuts).astype(np.float32) / 255).permute(0, 3, 1, 2),
        objects=padded_key_objects(objects),
        classes=list(classes),
        names=[images[key.image].name for key in keys],
    )


def find_key_objects(
    images: Sequence[AnnotatedImage], classes: Sequence[str], window: int, radius: int
) -> list[KeyObject]:
    """Return the boxes that meet the three criteria of the NERO paper, in order.

    A key object is of one of the `classes`; a view of `window` pixels around it stays inside the
    image at all shifts up to `radius` pixels; and its box covers between 1 % and 50 % of the view.

    Example:
        >>> box = np.array([[90.0, 90, 110, 110]])
        >>> image = AnnotatedImage("a.png", 200, 200, box, ["cup"], bytes)
        >>> find_key_objects([image], ["cup"], 128, 32)
        [KeyObject(image=0, box=0)]
        >>> find_key_objects([image], ["cup"], 128, 64)     # the view would leave the image
        []
    """
    return [
        KeyObject(place, box)
        for place, image in enumerate(images)
        for box, (edges, label) in enumerate(zip(image.boxes, image.labels, strict=True))
        if label in classes and _is_key_object(edges, image.width, image.height, window, radius)
    ]


def _is_key_object(
    edges: NDArray[np.float64], width: float, height: float, window: int, radius: int
) -> bool:
    left, top, right, bottom = edges
    share = (right - left) * (bottom - top) / window**2
    reach = window / 2 + radius
    x, y = (left + right) / 2, (top + bottom) / 2
    inside = reach <= x <= width - reach and reach <= y <= height - reach
    return bool(inside and LEAST_SHARE <= share <= MOST_SHARE)


def key_object_surroundings(
    pixels: Pixels,
    image: AnnotatedImage,
    key: int,
    classes: Sequence[str],
    window: int,
    radius: int,
) -> tuple[Pixels, NDArray[np.float32]]:
    """Crop the square that a view centered on one box can reach, and list the objects in it.

    Args:
        pixels: Pixels `[height, width, 3]` of the image.
        image: The image and its boxes.
        key: Index of the box of the key object.
        classes: Class names, in the order of the class indices.
        window: Side of the view in pixels.
        radius: Largest shift of the view in pixels.

    Returns:
        Pixels `[s, s, 3]`, and objects `[T, 5]` in pixels of the centered view, the key first.
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


def padded_key_objects(rows: Sequence[NDArray[np.float32]]) -> Tensor:
    """Stack the objects `[T_i, 5]` of several samples, padded with NaN.

    Example:
        >>> padded_key_objects([np.zeros((1, 5)), np.ones((2, 5))]).shape
        torch.Size([2, 2, 5])
    """
    return pad_sequence([torch.from_numpy(some) for some in rows], True, math.nan)


def checked_boxes(edges: object, name: str, width: int, height: int) -> NDArray[np.float64]:
    """Check that boxes `[n, 4]` have an area inside the image, up to a pixel, and clip them.

    Example:
        >>> checked_boxes([[0, 0, 5, 40]], "a.jpg", 32, 32)
        Traceback (most recent call last):
            ...
        orbical.errors.InputError: boxes: expected left < right and top < bottom inside 'a.jpg', ...
    """
    boxes = np.asarray(edges, np.float64).reshape(-1, 4)
    limit = np.array([width, height, width, height])
    wrong = ~np.isfinite(boxes).all(1) | (boxes[:, 2:] <= boxes[:, :2]).any(1)
    wrong |= ((boxes < -1) | (boxes > limit + 1)).any(1)
    if wrong.any():
        raise InputError(
            "boxes",
            f"left < right and top < bottom inside {name!r}, which is {width} x {height}",
            boxes[wrong][0].tolist(),
        )
    return np.clip(boxes, 0, limit)


def coco(
    folder: str | Path, classes: Sequence[str] | None = None, window: int = 128, radius: int = 32
) -> KeyObjects:
    """Read a folder in COCO's JSON format as key objects for a detection scan.

    Args:
        folder: Contains one `*.json` in COCO's format (`images`, `annotations`, `categories`),
            directly or in `annotations`, and the image files at any depth. If there are several
            JSON files, pass the path of one. Boxes without area are dropped, with a warning.
        classes: Category names, in the order of the model's class indices. By default, all
            categories of the file, in its order.
        window: Side of the field of view in pixels.
        radius: Largest shift of the view in pixels.

    Returns:
        `images` `[n, 3, s, s]`, float32 in 0..1 with `s = window + 2 radius`, one centered on each
        key object; `objects` `[n, T, 5]`, boxes and classes in pixels of the centered view, the key
        object first, padded with NaN; `classes`; and the `names` of the files.

    Raises:
        InputError: If the folder or an argument cannot be used, or there is no key object.

    Example:
        >>> coco("no-such-folder")
        Traceback (most recent call last):
            ...
        orbical.errors.InputError: folder: expected a folder with a JSON file in COCO's format, ...
    """
    whole_number("window", window, 1)
    whole_number("radius", radius, 0)
    images, known = _key_objects_of_coco(folder)
    chosen = list(known if classes is None else classes)
    for name in chosen:
        check_name("classes", name, known)
    return key_object_views(images, chosen, window, radius)


def _key_objects_of_coco(folder: str | Path) -> tuple[list[AnnotatedImage], list[str]]:
    """Read the images and boxes of a folder in COCO's JSON format, and the category names."""
    place, path = _located_coco(Path(folder).expanduser())
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        categories = {int(entry["id"]): str(entry["name"]) for entry in content["categories"]}
        entries = {int(entry["id"]): entry for entry in content["images"]}
        boxes: dict[int, list[Any]] = {number: [] for number in entries}
        for note in content["annotations"]:
            if not note.get("iscrowd"):
                x, y, width, height = map(float, note["bbox"])
                edges = (x, y, x + width, y + height)
                boxes[int(note["image_id"])].append((edges, categories[note["category_id"]]))
        named = {
            number: (str(entry["file_name"]), int(entry["width"]), int(entry["height"]))
            for number, entry in sorted(entries.items())
        }
    except Exception as error:  # a file of another format may raise anything
        raise InputError(
            "folder",
            "a JSON file with images, annotations with bbox (left, top, width, height) "
            "and category_id, and categories",
            f"{path.name!r}, which is not in COCO's format ({type(error).__name__}: {error})",
        ) from error
    files = {file.name: file for file in place.rglob("*") if file.is_file()}
    images, dropped = [], []
    for number, (name, width, height) in named.items():
        file = place / name if (place / name).is_file() else files.get(Path(name).name)
        if file is None:
            raise InputError("folder", f"the image {name!r} of {path.name!r}", "no file")
        kept = [box for box in boxes[number] if not _is_empty(*box[0])]
        dropped += [name] * (len(boxes[number]) - len(kept))
        corners = checked_boxes([edges for edges, _ in kept], name, width, height)
        labels = [label for _, label in kept]
        images.append(AnnotatedImage(name, width, height, corners, labels, file.read_bytes))
    if dropped:
        warn(
            f"folder: {len(dropped)} of the boxes in {path.name!r} have no width or no height and "
            f"are dropped, the first in {dropped[0]!r}",
        )
    return images, list(categories.values())


def _is_empty(left: float, top: float, right: float, bottom: float) -> bool:
    return right == left or bottom == top


def _located_coco(given: Path) -> tuple[Path, Path]:
    """Return the folder of a data set and its annotation file; either may be given."""
    if given.is_file():
        above = given.parent
        return (above.parent if above.name == "annotations" else above), given
    found = sorted([*given.glob("*.json"), *(given / "annotations").glob("*.json")])
    if not found:
        kind = "a folder without one" if given.is_dir() else "no folder"
        raise InputError(
            "folder",
            "a folder with a JSON file in COCO's format, in it or in its folder 'annotations'",
            f"{kind} at {str(given)!r}",
        )
    if len(found) > 1:
        names = ", ".join(str(file.relative_to(given)) for file in found)
        raise InputError(
            "folder",
            "one JSON file",
            f"{len(found)} JSON files ({names})",
            remedy=f"pass the path of one, such as {str(found[0])!r}",
        )
    return given, found[0]
