"""A folder of images, with one subfolder for each class or without classes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from .._imports import as_path
from ..errors import InputError
from .images import ImageFiles, ImageReader, images_below, numbered

_NOT_CLASSES = "pass labeled=False (--unlabeled) if the folders are not classes"


class ImageFolder(ImageFiles):
    """A folder of images: `photos/cat/1.jpg`, or `photos/1.jpg` without classes.

    The subfolders are the classes, numbered in alphabetical order as torchvision does; an image in
    a nested folder, `photos/animals/cat/1.jpg`, has the class of the first, `animals`. Images are
    tensors `[3, height, width]` with values in 0..1, upright by their EXIF orientation.

    Args:
        path: the folder.
        size: the shorter side is resized to this number of pixels and the center is cropped; or
            `(height, width)`. By default, all images must have one size.
        transform: a function of a PIL image, such as torchvision's transforms, in place of the
            conversion to a tensor. It follows `size`.
        mode: the color mode of Pillow: `"RGB"`, or `"L"` for gray.
        classes: the names of the model's classes in their order, where folders are only some of
            them.
        labeled: whether subfolders are classes. With `False` images have no labels, in whatever
            subfolders they are.
        unreadable: `"raise"`, or `"skip"` to leave out files that cannot be decoded; these are
            counted and named in a warning. `"skip"` decodes every file once before the scan.

    Raises:
        InputError: if there is no image, or one cannot be read.

    Example:
        >>> import orbical as ob, pathlib, tempfile
        >>> from PIL import Image
        >>> with tempfile.TemporaryDirectory() as there:
        ...     for name in ("cat", "dog"):
        ...         (pathlib.Path(there) / name).mkdir()
        ...         Image.new("RGB", (12, 8)).save(pathlib.Path(there) / name / "1.png")
        ...     photos = ob.data.ImageFolder(there, size=8)
        ...     images, labels = photos.read(0, 2)
        >>> images.shape, labels.tolist(), photos.classes, photos.names
        (torch.Size([2, 3, 8, 8]), [0, 1], ['cat', 'dog'], ['cat/1.png', 'dog/1.png'])
    """

    def __init__(
        self,
        path: str | Path,
        size: int | tuple[int, int] | None = None,
        transform: Callable[[Any], Any] | None = None,
        mode: str = "RGB",
        classes: Sequence[str] | None = None,
        unreadable: str = "raise",
        labeled: bool = True,
    ) -> None:
        folder = as_path("data", path)
        if not folder.is_dir():
            raise InputError("data", "a folder of images", repr(str(path)))
        found = {file.relative_to(folder).as_posix(): file for file in images_below(folder)}
        if not found:
            raise InputError("data", f"images in {str(path)!r}", _what_is_there(folder))
        nested = [name.partition("/")[0] for name in found if "/" in name]
        if labeled and nested and len(nested) < len(found):
            raise InputError(
                "data",
                f"images in subfolders of {str(path)!r}, one for each class, or all beside "
                "each other",
                f"{len(found) - len(nested)} images beside {len(set(nested))} folders with images",
                remedy=_NOT_CLASSES,
            )
        labels, names = None, None if classes is None else [str(name) for name in classes]
        if labeled and nested:
            try:
                labels, names = numbered(nested, classes, str(path))
            except InputError as error:
                remedy = f"{error.remedy}; {_NOT_CLASSES}".removeprefix("; ")
                raise error.about(error.argument, remedy=remedy) from None
        reader = ImageReader(size, transform, mode)
        super().__init__(str(path), found, reader, labels, names, {}, unreadable)


def _what_is_there(folder: Path) -> str:
    """Describe a folder without images."""
    kinds = Counter(
        file.suffix.lower() or "no suffix" for file in folder.rglob("*") if file.is_file()
    )
    if not kinds:
        return "an empty folder"
    some = ", ".join(f"{count} with {suffix}" for suffix, count in kinds.most_common(3))
    return f"other files: {some}"
