"""The detection study's material: COCO images, split, packed for another machine, and cut.

Tested is on every key object that the paper's criteria admit in the images of natural shape
(`coco_five_480`); none of these images is trained on. The others, and those squashed to squares,
are training material, at several scales, because few of their objects have room at their own.
"""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from orbical.datasets.key_objects import (
    AnnotatedImage,
    KeyObjects,
    Pixels,
    key_objects,
    padded,
    surroundings,
    views_of,
)
from orbical.errors import InputError
from orbical.zoo.detector_training import Crops

from ..data.coco_images import FIVE_CLASSES, coco_five
from .settings import RADIUS, WINDOW

SCALES = (1.0, 1.41, 2.0, 2.83)
QUALITY = 55
FILE = "detection.npz"
Split = dict[str, list[AnnotatedImage]]


def split(folder: str | Path | None = None) -> Split:
    """Read the study's images as `train` and `test`; see the module."""
    parts = coco_five(folder)
    natural = parts["coco_five_480"]
    held = {key.image for key in key_objects(natural, FIVE_CLASSES, WINDOW, RADIUS)}
    rest = [image for place, image in enumerate(natural) if place not in held]
    return {
        "train": parts["coco_sq256"] + rest,
        "test": [natural[place] for place in sorted(held)],
    }


def pack(target: Path, folder: str | Path | None = None, count: int | None = None) -> Path:
    """Write all images as JPEG into one file, for a machine without the data set.

    Test images keep their bytes; training images are compressed again.

    Args:
        target: the folder of `detection.npz`.
        folder: of the data set, as in `coco_five`.
        count: only the first so many images of each part.
    """
    arrays: dict[str, NDArray] = {}
    for part, images in split(folder).items():
        files, notes = [], []
        for image in images[:count]:
            content = image.content() if part == "test" else _smaller(image)
            files.append(np.frombuffer(content, np.uint8))
            notes.append(
                [
                    image.name,
                    image.width,
                    image.height,
                    image.boxes.tolist(),
                    image.labels,
                    image.unlabeled,
                ]
            )
        arrays[f"{part}_files"] = np.concatenate(files)
        arrays[f"{part}_sizes"] = np.array([len(file) for file in files])
        arrays[f"{part}_notes"] = np.frombuffer(json.dumps(notes).encode(), np.uint8)
    target.mkdir(parents=True, exist_ok=True)
    path = target / FILE
    np.savez(path, **arrays)  # type: ignore[arg-type]
    return path


def _smaller(image: AnnotatedImage) -> bytes:
    from PIL import Image

    stream = io.BytesIO()
    Image.fromarray(image.read()).save(stream, "JPEG", quality=QUALITY)
    return stream.getvalue()


def unpack(target: Path) -> Split:
    """Read what `pack` wrote."""
    path = target / FILE
    if not path.is_file():
        raise InputError(
            f"data: there is no file {FILE!r} in {str(target)!r}; make it with "
            f"`orbical study detection pack --data {target}`"
        )
    found: Split = {}
    with np.load(path, allow_pickle=False) as arrays:
        for part in ("train", "test"):
            files, ends = arrays[f"{part}_files"], arrays[f"{part}_sizes"].cumsum()
            notes = json.loads(arrays[f"{part}_notes"].tobytes())
            found[part] = [
                _packed(note, files[start:end].tobytes())
                for note, start, end in zip(notes, [0, *ends[:-1]], ends, strict=True)
            ]
    return found


def _packed(note: list, content: bytes) -> AnnotatedImage:
    name, width, height, boxes, labels, unlabelled = note
    edges = np.array(boxes, np.float64).reshape(-1, 4)
    return AnnotatedImage(name, width, height, edges, labels, lambda: content, tuple(unlabelled))


def test_views(images: Sequence[AnnotatedImage]) -> KeyObjects:
    """Cut the test images around their key objects."""
    return views_of(images, FIVE_CLASSES, WINDOW, RADIUS)


def first_objects(data: KeyObjects, count: int | None) -> KeyObjects:
    """Take the first so many key objects; all for None."""
    return KeyObjects(
        images=data["images"][:count],
        objects=data["objects"][:count],
        classes=data["classes"],
        names=data["names"][:count],
    )


test_views.__test__ = False  # type: ignore[attr-defined]  # not one for pytest


def training_crops(images: Sequence[AnnotatedImage]) -> Crops:
    """Cut training images, at every scale, around the objects that have room there."""
    pixels, objects, known = [], [], []
    for image in images:
        still: Pixels | None = None
        for scale in SCALES:
            larger = scaled(image, scale)
            keys = key_objects([larger], FIVE_CLASSES, WINDOW, RADIUS)
            if not keys:
                continue
            still = image.read() if still is None else still
            drawn = resized(still, larger.height, larger.width)
            for key in keys:
                cut, inside = surroundings(drawn, larger, key.box, FIVE_CLASSES, WINDOW, RADIUS)
                pixels.append(cut)
                objects.append(inside)
                known.append([name not in image.unlabeled for name in FIVE_CLASSES])
    if not pixels:
        raise InputError("data: no training image holds a key object")
    return Crops(
        torch.from_numpy(np.stack(pixels)),
        torch.from_numpy(padded(objects)),
        torch.tensor(known),
    )


def scaled(image: AnnotatedImage, scale: float) -> AnnotatedImage:
    """Give an image's sizes and boxes at another scale."""
    width, height = round(image.width * scale), round(image.height * scale)
    factor = np.array([width / image.width, height / image.height] * 2)
    return replace(image, width=width, height=height, boxes=image.boxes * factor)


def resized(pixels: Pixels, height: int, width: int) -> Pixels:
    """Resize `[h, w, 3]` bilinearly, smoothed where it shrinks."""
    if pixels.shape[:2] == (height, width):
        return pixels
    planes: Tensor = torch.from_numpy(np.array(pixels)).permute(2, 0, 1)[None].float()
    drawn = torch.nn.functional.interpolate(
        planes,
        size=(height, width),
        mode="bilinear",
        antialias=height < pixels.shape[0],
        align_corners=False,
    )
    return drawn[0].round().clamp(0, 255).byte().permute(1, 2, 0).contiguous().numpy()
