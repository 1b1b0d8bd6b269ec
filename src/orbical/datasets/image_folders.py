"""Images with labels, from a folder or a zip archive with one subfolder per class."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from PIL.Image import Resampling
from torch import Tensor

from orbical.errors import InputError

SUFFIXES = {".jpg", ".jpeg", ".png", ".webp", ".tif", ".tiff", ".bmp", ".gif"}


def image_folder(path: str | Path, size: int | None = None) -> tuple[Tensor, Tensor, list[str]]:
    """Read images from a folder, or a zip archive of it, with one subfolder per class.

    Args:
        path: The folder, with images `PATH/CLASS/anything.jpg` at any depth: the class is the name
            of the folder that contains the image.
        size: Side in pixels to which images are resized. By default, all must have the same size.

    Returns:
        Images `[n, 3, h, w]`, float32 in 0..1, in the alphabetical order of their paths; labels
        `[n]`, int64; and the names of the classes in alphabetical order.

    Raises:
        InputError: If there are no images, one is not readable, or their sizes differ.

    Example:
        >>> import pathlib, tempfile
        >>> from PIL import Image
        >>> with tempfile.TemporaryDirectory() as there:
        ...     for name in ("cat", "dog"):
        ...         (pathlib.Path(there) / name).mkdir()
        ...         Image.new("RGB", (8, 8)).save(pathlib.Path(there) / name / "1.png")
        ...     images, labels, classes = image_folder(there)
        >>> images.shape, labels.tolist(), classes
        (torch.Size([2, 3, 8, 8]), [0, 1], ['cat', 'dog'])
    """
    found = _files(Path(path).expanduser())
    if not found:
        raise InputError(f"path: expected PATH/CLASS/image.jpg, got no images in {str(path)!r}")
    pixels: list[np.ndarray] = []
    for name, read in found.items():
        image = decode_image(read(), name)
        if size is not None and image.size != (size, size):
            image = image.resize((size, size), Resampling.LANCZOS)
        pixels.append(np.asarray(image))
        if pixels[-1].shape != pixels[0].shape:
            height, width, _ = pixels[0].shape
            raise InputError(
                f"path: expected images of one size, got {width} x {height} pixels and "
                f"{image.width} x {image.height} in {name!r}; pass size= to resize them"
            )
    names = [Path(name).parent.name for name in found]
    classes = sorted(set(names))
    images = torch.as_tensor(np.stack(pixels)).permute(0, 3, 1, 2).contiguous().float().div_(255)
    return images, torch.tensor([classes.index(name) for name in names]), classes


def _files(path: Path) -> dict[str, Callable[[], bytes]]:
    """Return the names of the images below a path, in order, and how to read each."""
    if path.is_dir():
        files = sorted(file for file in path.rglob("*") if file.suffix.lower() in SUFFIXES)
        return {file.relative_to(path).as_posix(): file.read_bytes for file in files}
    try:
        archive = zipfile.ZipFile(path)
    except (OSError, zipfile.BadZipFile) as error:
        raise InputError(
            f"path: expected a folder or a zip archive, got {str(path)!r} ({error})"
        ) from error
    names = sorted(name for name in archive.namelist() if Path(name).suffix.lower() in SUFFIXES)
    return {name: partial(archive.read, name) for name in names}


def decode_image(content: bytes, name: str) -> Image.Image:
    """Decode the bytes of an image file to RGB."""
    try:
        with Image.open(io.BytesIO(content)) as image:
            return image.convert("RGB")
    except OSError as error:
        raise InputError(f"path: {name!r} is not a readable image ({error})") from error
