"""Images with boxes from a folder in COCO's JSON format."""

from __future__ import annotations

import json
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from orbical.errors import InputError, check_name, whole_number

from .key_objects import AnnotatedImage, KeyObjects, checked_boxes, views_of


def coco(
    folder: str | Path,
    classes: Sequence[str] | None = None,
    window: int = 128,
    radius: int = 32,
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
    images, known = read_coco(folder)
    chosen = list(known if classes is None else classes)
    for name in chosen:
        check_name("classes", name, known)
    return views_of(images, chosen, window, radius)


def read_coco(folder: str | Path) -> tuple[list[AnnotatedImage], list[str]]:
    """Read the images and boxes of a folder in COCO's JSON format, and the category names."""
    place, path = _locate(Path(folder).expanduser())
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
        warnings.warn(
            f"folder: {len(dropped)} of the boxes in {path.name!r} have no width or no height and "
            f"are dropped, the first in {dropped[0]!r}",
            stacklevel=3,
        )
    return images, list(categories.values())


def _is_empty(left: float, top: float, right: float, bottom: float) -> bool:
    return right == left or bottom == top


def _locate(given: Path) -> tuple[Path, Path]:
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
