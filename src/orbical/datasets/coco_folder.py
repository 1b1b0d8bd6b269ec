"""Images with boxes: a folder in COCO's JSON format, and the images of the detection study."""

from __future__ import annotations

import json
import warnings
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from orbical.errors import InputError

from .folders import data_file
from .key_objects import AnnotatedImage, KeyObjects, checked_boxes, views_of

FIVE_CLASSES = ("car", "bottle", "cup", "chair", "book")
"""The key classes of the NERO paper."""


def coco(
    folder: str | Path,
    classes: Sequence[str] | None = None,
    window: int = 128,
    radius: int = 32,
) -> KeyObjects:
    """Read a folder in COCO's JSON format as key objects for a detection scan.

    Args:
        folder: holds one `*.json` in COCO's format (`images`, `annotations`, `categories`), itself
            or in `annotations`, and the image files anywhere below; where it holds several, the
            path of the one to read. Boxes without area are left out, with a warning.
        classes: names of categories, in the order of the model's class indices; None takes all
            that the file names, in its order.
        window: pixels of the field of view.
        radius: pixels by which it will be shifted at most.

    Returns:
        `images` `[n, 3, s, s]`, float32 in 0..1 with `s = window + 2 radius`, one for each key
        object, centered on it; `objects` `[n, T, 5]`, boxes and classes in pixels of the un-moved
        view, the key object first, NaN where there are fewer; `classes`; `names` of the files.

    Example:
        >>> coco("no-such-folder")
        Traceback (most recent call last):
            ...
        orbical.errors.InputError: folder: there is no folder 'no-such-folder'; ...
    """
    if isinstance(window, bool) or not isinstance(window, int) or window < 1:
        raise InputError(f"window: {window!r} given, a whole number of pixels >= 1 expected")
    if isinstance(radius, bool) or not isinstance(radius, int) or radius < 0:
        raise InputError(f"radius: {radius!r} given, a whole number of pixels >= 0 expected")
    images, known = read_coco(folder)
    chosen = list(known if classes is None else classes)
    unknown = [name for name in chosen if name not in known]
    if unknown:
        raise InputError(f"classes: {unknown[0]!r} given, categories of the file are {known}")
    return views_of(images, chosen, window, radius)


def read_coco(folder: str | Path) -> tuple[list[AnnotatedImage], list[str]]:
    """Read the images and boxes of a folder in COCO's JSON format, and the categories' names."""
    place, path = _found(Path(folder).expanduser())
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
    except (KeyError, TypeError, ValueError) as broken:
        raise InputError(
            f"folder: {path.name!r} is not in COCO's format ({type(broken).__name__}: {broken}); "
            "images, annotations with bbox (left, top, width, height) and category_id, and "
            "categories expected"
        ) from broken
    files = {file.name: file for file in place.rglob("*") if file.is_file()}
    images = []
    for number, entry in sorted(entries.items()):
        name = str(entry["file_name"])
        file = place / name if (place / name).is_file() else files.get(Path(name).name)
        if file is None:
            raise InputError(f"folder: {path.name!r} names the image {name!r}, which is not there")
        size = (int(entry["width"]), int(entry["height"]))
        kept = [(edges, label) for edges, label in boxes[number] if not _without_area(edges)]
        images.append(
            AnnotatedImage(
                name,
                *size,
                checked_boxes([edges for edges, _ in kept], name, *size),
                [label for _, label in kept],
                file.read_bytes,
            )
        )
    _tell_left_out(boxes, entries, path.name)
    return images, list(categories.values())


def _without_area(edges: tuple[float, ...]) -> bool:
    left, top, right, bottom = edges
    return right == left or bottom == top


def _tell_left_out(
    boxes: Mapping[int, Sequence[Any]], entries: Mapping[int, Any], path: str
) -> None:
    """Say how many boxes have no area, and where the first of them is."""
    places = [
        number
        for number, notes in sorted(boxes.items())
        for edges, _ in notes
        if _without_area(edges)
    ]
    if places:
        warnings.warn(
            f"folder: {len(places)} of the boxes in {path!r} have no width or no height and are "
            f"left out, the first in {str(entries[places[0]]['file_name'])!r}",
            stacklevel=4,
        )


def _found(given: Path) -> tuple[Path, Path]:
    """Give the folder of a data set, and its file of annotations; either may be given."""
    if given.is_file():
        above = given.parent
        return (above.parent if above.name == "annotations" else above), given
    if not given.is_dir():
        raise InputError(
            f"folder: there is no folder {str(given)!r}; expected one with a JSON file in COCO's "
            "format and the images"
        )
    found = sorted([*given.glob("*.json"), *(given / "annotations").glob("*.json")])
    if not found:
        raise InputError(
            f"folder: {str(given)!r} holds no JSON file; one in COCO's format expected, in it or "
            "in its folder 'annotations'"
        )
    if len(found) > 1:
        names = [str(file.relative_to(given)) for file in found]
        raise InputError(
            f"folder: {str(given)!r} holds {len(found)} JSON files ({', '.join(names)}); give the "
            f"path of one, such as {str(found[0])!r}"
        )
    return given, found[0]


def coco_five(folder: str | Path | None = None) -> dict[str, list[AnnotatedImage]]:
    """Read the COCO images of the detection study: those with one of the five key classes.

    Args:
        folder: holds `annotations.json` (boxes as category, center and size, normalized) and
            the archives `coco_five_480.zip` and `coco_sq256.zip`; None looks in `coco` under
            `data_folder()`.

    Returns:
        the images of each archive by its name. Outside of one source "book" is unlabeled, not
        absent; `unlabeled` says so.

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
    center, half = rows[:, 1:3] * [width, height], rows[:, 3:5] * [width, height] / 2
    return AnnotatedImage(
        name,
        width,
        height,
        checked_boxes(np.concatenate([center - half, center + half], 1), name, width, height),
        [names[str(int(row[0]))] for row in rows],
        lambda: archive.read(name),
        () if "lightly" in entry["source"] else ("book",),
    )
