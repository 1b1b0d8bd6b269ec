"""Images with boxes: a folder in COCO's JSON format, and key objects with room for a moving view.

A detector is scanned by moving a field of view inside a larger image. The paper's criteria say
which objects can be the key object, around which the view is centred:

1. its class is one of those asked for;
2. the view stays inside the image for all shifts within the radius;
3. its box covers between 1 % and 50 % of the view.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypedDict

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from orbical.errors import InputError

from .folders import data_file

LEAST_SHARE, MOST_SHARE = 0.01, 0.5
"""Share of the view that a key object covers, criterion 3."""
FIVE_CLASSES = ("car", "bottle", "cup", "chair", "book")
"""The key classes of the NERO paper."""
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
        unlabelled: classes that were not looked for in this image.
    """

    name: str
    width: int
    height: int
    boxes: NDArray[np.float64]
    labels: list[str]
    content: Callable[[], bytes]
    unlabelled: tuple[str, ...] = ()

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


def coco(
    folder: str | Path,
    classes: Sequence[str] | None = None,
    window: int = 128,
    radius: int = 32,
) -> KeyObjects:
    """Read a folder in COCO's JSON format as key objects for a detection scan.

    Args:
        folder: holds one `*.json` in COCO's format (`images`, `annotations`, `categories`), itself
            or in `annotations`, and the image files anywhere below.
        classes: names of categories, in the order of the model's class indices; None takes all
            that the file names, in its order.
        window: pixels of the field of view.
        radius: pixels by which it will be shifted at most.

    Returns:
        `images` `[n, 3, s, s]`, float32 in 0..1 with `s = window + 2 radius`, one for each key
        object, centred on it; `objects` `[n, T, 5]`, boxes and classes in pixels of the un-moved
        view, the key object first, NaN where there are fewer; `classes`; `names` of the files.

    Example:
        >>> coco("no-such-folder")
        Traceback (most recent call last):
            ...
        orbical.errors.InputError: folder: there is no folder 'no-such-folder'; ...
    """
    images, known = read_coco(folder)
    chosen = list(known if classes is None else classes)
    unknown = [name for name in chosen if name not in known]
    if unknown:
        raise InputError(f"classes: {unknown[0]!r} given, categories of the file are {known}")
    return views_of(images, chosen, window, radius)


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
    keys = key_objects(images, classes, window, radius)
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


def key_objects(
    images: Sequence[AnnotatedImage], classes: Sequence[str], window: int, radius: int
) -> list[KeyObject]:
    """Find the boxes that meet the three criteria, in order.

    Example:
        >>> box = np.array([[90.0, 90, 110, 110]])
        >>> image = AnnotatedImage("a.png", 200, 200, box, ["cup"], bytes)
        >>> key_objects([image], ["cup"], 128, 32)
        [KeyObject(image=0, box=0)]
        >>> key_objects([image], ["cup"], 128, 64)     # the view would leave the image
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
    """Cut the square that a view centred on one box can reach, and list the objects near it.

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


def read_coco(folder: str | Path) -> tuple[list[AnnotatedImage], list[str]]:
    """Read the images and boxes of a folder in COCO's JSON format, and the categories' names."""
    place = Path(folder).expanduser()
    if not place.is_dir():
        raise InputError(
            f"folder: there is no folder {str(folder)!r}; expected one with a JSON file in COCO's "
            "format and the images"
        )
    path = _annotation_file(place)
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        categories = {int(entry["id"]): str(entry["name"]) for entry in content["categories"]}
        entries = {int(entry["id"]): entry for entry in content["images"]}
        boxes: dict[int, list[Any]] = {number: [] for number in entries}
        for note in content["annotations"]:
            if not note.get("iscrowd"):
                boxes[int(note["image_id"])].append((note["bbox"], categories[note["category_id"]]))
    except (KeyError, TypeError, ValueError) as broken:
        raise InputError(
            f"folder: {path.name!r} is not in COCO's format ({type(broken).__name__}: {broken}); "
            "images, annotations with bbox and category_id, and categories expected"
        ) from broken
    files = {file.name: file for file in place.rglob("*") if file.is_file()}
    images = []
    for number, entry in sorted(entries.items()):
        name = str(entry["file_name"])
        file = place / name if (place / name).is_file() else files.get(Path(name).name)
        if file is None:
            raise InputError(f"folder: {path.name!r} names the image {name!r}, which is not there")
        size = (int(entry["width"]), int(entry["height"]))
        edges = [[x, y, x + width, y + height] for (x, y, width, height), _ in boxes[number]]
        images.append(
            AnnotatedImage(
                name,
                *size,
                checked_boxes(edges, name, *size),
                [label for _, label in boxes[number]],
                file.read_bytes,
            )
        )
    return images, list(categories.values())


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


def _annotation_file(place: Path) -> Path:
    found = sorted([*place.glob("*.json"), *(place / "annotations").glob("*.json")])
    if len(found) != 1:
        names = [file.name for file in found]
        raise InputError(
            f"folder: {str(place)!r} holds {names or 'no JSON file'}; one file in COCO's format "
            "expected, in it or in its folder 'annotations'"
        )
    return found[0]


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
    return decode_jpeg(stored).permute(1, 2, 0).contiguous().numpy()


def coco_five(folder: str | Path | None = None) -> dict[str, list[AnnotatedImage]]:
    """Read the COCO images of the detection study: those with one of the five key classes.

    Args:
        folder: holds `annotations.json` (boxes as category, centre and size, normalised) and
            the archives `coco_five_480.zip` and `coco_sq256.zip`; None looks in `coco` under
            `data_folder()`.

    Returns:
        the images of each archive by its name. Outside of one source "book" is unlabelled, not
        absent; `unlabelled` says so.

    Example:
        >>> coco_five(folder=".")
        Traceback (most recent call last):
            ...
        orbical.errors.InputError: folder: there is no file 'annotations.json' in '.'; ...
    """
    notes = json.loads(data_file("annotations.json", folder, "coco").read_text(encoding="utf-8"))
    names: Mapping[str, str] = notes["categories"]
    found = {}
    for part in ("coco_five_480", "coco_sq256"):
        archive = zipfile.ZipFile(data_file(f"{part}.zip", folder, "coco"))
        found[part] = [_annotated(entry, names, archive) for entry in notes[part]]
    return found


def _annotated(
    entry: dict[str, Any], names: Mapping[str, str], archive: zipfile.ZipFile
) -> AnnotatedImage:
    width, height, name = entry["width"], entry["height"], entry["file"]
    rows = np.array(entry["boxes_cxcywh_norm"], np.float64).reshape(-1, 5)
    centre, half = rows[:, 1:3] * [width, height], rows[:, 3:5] * [width, height] / 2
    return AnnotatedImage(
        name,
        width,
        height,
        checked_boxes(np.concatenate([centre - half, centre + half], 1), name, width, height),
        [names[str(int(row[0]))] for row in rows],
        lambda: archive.read(name),
        () if "lightly" in entry["source"] else ("book",),
    )
