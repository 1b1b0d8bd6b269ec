"""COCO images of the study: split, packed for a machine without the data set, and cut.

Tests use every key object that the paper's criteria admit in the images of natural shape
(`coco_five_480`); none of these images is trained on. The others, and those squashed to squares,
are training images, at several scales, because few of their objects have room at their own.
"""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from orbical.datasets import (
    AnnotatedImage,
    find_key_objects,
    key_object_surroundings,
    key_object_views,
)
from orbical.errors import InputError

from ..data import coco_five
from ..framework import Results
from ..framework.packs import read_pack, write_pack
from ..zoo_training.detectors import Crops

if TYPE_CHECKING:
    from .training import Settings

CLASSES = ("car", "bottle", "cup", "chair", "book")
WINDOW, RADIUS = 128, 64
REACH = 60  # of the shifts of a scan: farther, less than a quarter of an object may be in view
SCALES = (1.0, 1.41, 2.0, 2.83)
QUALITIES = {"train": 30, "test": 60}
FILE = "images.npz"
Split = dict[str, list[AnnotatedImage]]


def split() -> Split:
    """Read the images of the data set that have key objects as `train` and `test`."""
    parts = coco_five()
    natural = parts["coco_five_480"]
    held_out = {key.image for key in find_key_objects(natural, CLASSES, WINDOW, RADIUS)}
    rest = [image for place, image in enumerate(natural) if place not in held_out]
    used = [image for image in parts["coco_sq256"] + rest if any(_keys(image))]
    return {"train": used, "test": [natural[place] for place in sorted(held_out)]}


def pack(settings: Settings, results: Results) -> None:
    """Write all images that are used as small JPEG files into one file."""
    arrays: dict[str, NDArray[Any]] = {}
    for part, images in split().items():
        some = images[: settings.images]
        files = [_smaller(image, QUALITIES[part]) for image in some]
        fields = ("name", "width", "height", "labels", "unlabeled")
        notes = [{f: getattr(i, f) for f in fields} | {"boxes": i.boxes.tolist()} for i in some]
        arrays[f"{part}_files"] = np.frombuffer(b"".join(files), np.uint8)
        arrays[f"{part}_sizes"] = np.array([len(file) for file in files])
        arrays[f"{part}_notes"] = np.frombuffer(json.dumps(notes).encode(), np.uint8)
    write_pack(results.work / FILE, arrays)


def _smaller(image: AnnotatedImage, quality: int) -> bytes:
    from PIL import Image

    stream = io.BytesIO()
    Image.fromarray(image.read()).save(stream, "JPEG", quality=quality)
    return stream.getvalue()


def unpack(work: Path) -> Split:
    """Read what `pack` wrote."""
    arrays, found = read_pack(work / FILE), Split(train=[], test=[])
    for part in found:
        files = np.split(arrays[f"{part}_files"], arrays[f"{part}_sizes"].cumsum()[:-1])
        notes = json.loads(arrays[f"{part}_notes"].tobytes())
        for note, file in zip(notes, files, strict=True):
            boxes = np.array(note.pop("boxes"), np.float64).reshape(-1, 4)
            found[part].append(AnnotatedImage(**note, boxes=boxes, content=file.tobytes))
    return found


def views_to_test(images: Sequence[AnnotatedImage], count: int | None) -> tuple[Tensor, Tensor]:
    """Cut the first key objects: images `[n, 3, s, s]` and objects `[n, T, 5]`."""
    found = key_object_views(images, CLASSES, WINDOW, RADIUS)
    return found["images"][:count], found["objects"][:count]


def images_of_objects(images: Sequence[AnnotatedImage]) -> NDArray[np.int64]:
    """Return the place of the image of each key object to test."""
    return np.array([key.image for key in find_key_objects(images, CLASSES, WINDOW, RADIUS)])


def training_crops(images: Sequence[AnnotatedImage]) -> Crops:
    """Cut training images, at every scale, around the objects that have room there."""
    pixels, objects, known = [], [], []
    for image in images:
        for larger, keys in zip(_larger(image), _keys(image), strict=True):
            if keys:
                drawn = _resized(image.read(), larger.height, larger.width)
            for key in keys:
                cut, inside = key_object_surroundings(
                    drawn, larger, key.box, CLASSES, WINDOW, RADIUS
                )
                pixels.append(torch.from_numpy(cut.copy()))
                objects.append(torch.from_numpy(inside))
                known.append([name not in image.unlabeled for name in CLASSES])
    if not pixels:
        raise InputError("images", "a key object in some training image", "none")
    together = torch.nn.utils.rnn.pad_sequence(objects, True, torch.nan)
    return Crops(torch.stack(pixels), together, torch.tensor(known))


def _larger(image: AnnotatedImage) -> list[AnnotatedImage]:
    return [_scaled(image, scale) for scale in SCALES]


def _keys(image: AnnotatedImage) -> list[list[Any]]:
    """Return the key objects of an image at every scale."""
    return [find_key_objects([one], CLASSES, WINDOW, RADIUS) for one in _larger(image)]


def _scaled(image: AnnotatedImage, scale: float) -> AnnotatedImage:
    width, height = round(image.width * scale), round(image.height * scale)
    factor = np.array([width / image.width, height / image.height] * 2)
    return replace(image, width=width, height=height, boxes=image.boxes * factor)


def _resized(pixels: NDArray[np.uint8], height: int, width: int) -> NDArray[np.uint8]:
    """Resize `[h, w, 3]` bilinearly."""
    if pixels.shape[:2] == (height, width):
        return pixels
    from PIL import Image

    drawn = Image.fromarray(pixels).resize((width, height), Image.Resampling.BILINEAR)
    return np.array(drawn)
