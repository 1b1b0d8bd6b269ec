"""Images with labels, from a folder or a zip archive with one subfolder a class."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from orbical.errors import InputError

SUFFIXES = {".jpg", ".jpeg", ".png", ".webp", ".tif", ".tiff", ".bmp", ".gif"}


def image_folder(path: str | Path, size: int | None = None) -> tuple[Tensor, Tensor, list[str]]:
    """Read images from a folder (or a zip archive of one) with one subfolder a class.

    Args:
        path: `PATH/CLASS/anything.jpg`, at any depth: the class is the name of the folder that
            holds the image.
        size: side in pixels to which images are resized; None expects that all have one size.

    Returns:
        images `[n, 3, h, w]`, float32 in 0..1, labels `[n]`, int64, and the names of the classes in
        alphabetical order. Images come in the alphabetical order of their paths.

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
    files = _files(Path(path).expanduser())
    if not files:
        raise InputError(f"path: no images in {str(path)!r}; PATH/CLASS/image.jpg expected")
    names = [Path(name).parent.name for name in files]
    classes = sorted(set(names))
    labels = torch.tensor([classes.index(name) for name in names])
    return read_images(files.items(), size), labels, classes


def _files(path: Path) -> dict[str, Any]:
    """Find the images below a path: their names, and how to read each."""
    if path.is_dir():
        found = sorted(file for file in path.rglob("*") if file.suffix.lower() in SUFFIXES)
        return {file.relative_to(path).as_posix(): file.read_bytes for file in found}
    if not path.is_file():
        raise InputError(f"path: there is no folder or archive {str(path)!r}")
    return archived(path)


def archived(path: Path) -> dict[str, Any]:
    """Find the images of a zip archive: their names in order, and how to read each."""
    try:
        archive = zipfile.ZipFile(path)
    except (OSError, zipfile.BadZipFile) as error:
        raise InputError(f"path: {path.name!r} is no whole zip archive ({error})") from error
    names = sorted(name for name in archive.namelist() if Path(name).suffix.lower() in SUFFIXES)
    return {name: lambda name=name: archive.read(name) for name in names}


def read_images(files: Iterable[tuple[str, Any]], size: int | None = None) -> Tensor:
    """Read images of one size, `[n, 3, h, w]`, float32 in 0..1; a broken one is named.

    Args:
        files: pairs of a name and a function that gives the bytes of the file.
        size: side in pixels to which images are resized; None expects that all have one size.
    """
    pixels: list[np.ndarray] = []
    for name, read in files:
        image = _read_image(name, read(), size)
        if pixels and image.shape != pixels[0].shape:
            first, this = (f"{part.shape[1]} x {part.shape[0]}" for part in (pixels[0], image))
            raise InputError(
                f"path: {name!r} is {this} pixels, those before it {first}; images of one size "
                "expected, or size= to resize them"
            )
        pixels.append(image)
    stacked = torch.as_tensor(np.stack(pixels)).permute(0, 3, 1, 2)
    return stacked.contiguous().float().div_(255)


def _read_image(name: str, content: bytes, size: int | None) -> np.ndarray:
    from PIL import Image, UnidentifiedImageError  # here: only readers of images need it

    try:
        with Image.open(io.BytesIO(content)) as image:
            whole = image.convert("RGB")
    except (OSError, UnidentifiedImageError) as error:
        raise InputError(f"path: {name!r} is not a whole image ({error})") from error
    if size is not None and whole.size != (size, size):
        whole = whole.resize((size, size), Image.Resampling.LANCZOS)
    return np.asarray(whole)
