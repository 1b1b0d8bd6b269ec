"""Images in files and in folders of classes: decoded, brought to one size, and checked."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image, ImageOps

from .._imports_and_paths import as_path, name_of, words_of
from .._text import counted, number
from .._warnings import warn
from ..errors import InputError, check_name
from ..tasks import read_class_names
from .source import Batch, Source, data_source_class_indices, data_stamp, stacked_source_samples

SUFFIXES = (*(".jpg", ".jpeg", ".png", ".webp", ".tif", ".tiff", ".bmp", ".gif", ".ppm", ".pgm"),)
UNREADABLE = ("raise", "skip")
_ORIENTATION, _TURNED = 0x0112, (5, 6, 7, 8)
# Tags of TIFF, and two of their values.
_BITS, _PHOTOMETRIC, _SAMPLE_FORMAT, _WHITE_IS_ZERO, _SIGNED = 258, 262, 339, 0, 2
_CHANNELS = {"L": 1, "RGB": 3}
_MOST_NAMED = 3
_AS_STORED = (
    "pass mode='F' (--data package.module:attribute, where an ImageFolder has the mode F) for the "
    "values as they are, and scale them by transform= or preprocess= (--preprocess)"
)
_SKIP = "pass unreadable='skip' (--unreadable skip) to leave such files out"


@dataclass(frozen=True)
class ImageReader:
    """How an image becomes a tensor `[channel, height, width]` with values in 0..1.

    Args:
        size: the shorter side is resized to this number of pixels and the center is cropped, as
            with torchvision's `Resize(size)` and `CenterCrop(size)`; or `(height, width)`, to which
            images are resized as they are.
        transform: a function of a PIL image, such as torchvision's transforms, in place of the
            conversion to a tensor. It follows `size`.
        mode: the color mode of Pillow: `"RGB"`, `"L"` for gray. Gray values of more than 8 bits are
            divided by the largest of their depth; `"F"` keeps them as they are.
    """

    size: int | tuple[int, int] | None = None
    transform: Callable[[Image.Image], object] | None = None
    mode: str = "RGB"

    def __post_init__(self) -> None:
        sides = self.size if isinstance(self.size, tuple | list) else (self.size, self.size)
        whole = all(type(side) is int and side > 0 for side in sides)
        if self.size is not None and not (whole and len(sides) == 2):
            raise InputError("size", "a number of pixels or (height, width)", repr(self.size))
        if self.transform is not None and not callable(self.transform):
            raise InputError("transform", "a function of an image", repr(self.transform))
        check_name("mode", self.mode, Image.MODES)

    def read(self, path: Path) -> Any:
        """Decode a file."""
        with Image.open(path) as image:
            return self.convert(image)

    def convert(self, image: Image.Image) -> Any:
        """Return an image, upright, as a tensor, or what the transform makes of it."""
        tags = getattr(image, "tag_v2", {})
        if not _is_deep(image.mode) and _SIGNED in tags.get(_SAMPLE_FORMAT, ()):
            raise ValueError("Pillow reads integers of 8 bits without their sign; save 16 bits")
        levels = None if _is_deep(self.mode) else _levels_of(image)  # a copy forgets its file
        image = ImageOps.exif_transpose(image)
        image = image.convert(self.mode) if levels is None else _in_unit_range(image, *levels)
        image = self._resized(image)
        copies = 1
        if levels is not None and self.transform is None and self.mode in _CHANNELS:
            copies = _CHANNELS[self.mode]
        elif levels is not None:
            gray = np.rint(np.asarray(image) * 255).astype(np.uint8)
            image = Image.fromarray(gray).convert(self.mode)
        if self.transform is not None:
            return self.transform(image)
        pixels = np.asarray(image)
        pixels = pixels[None].repeat(copies, 0) if pixels.ndim == 2 else pixels.transpose(2, 0, 1)
        most = 255 if pixels.dtype == np.uint8 else 1
        return torch.from_numpy(np.divide(pixels, most, dtype=np.float32))

    def _resized(self, image: Image.Image) -> Image.Image:
        if self.size is None:
            return image
        how = Image.Resampling.BILINEAR  # torchvision's default; Pillow averages where it shrinks
        if not isinstance(self.size, int):
            height, width = self.size
            return image.resize((width, height), how)
        shorter = min(image.size)
        width, height = (max(self.size, round(side * self.size / shorter)) for side in image.size)
        left, top = (width - self.size) // 2, (height - self.size) // 2
        image = image if image.size == (width, height) else image.resize((width, height), how)
        return image.crop((left, top, left + self.size, top + self.size))

    @property
    def settings(self) -> tuple[object, ...]:
        """What distinguishes this reader from others."""
        function = self.transform
        return self.size, self.mode, None if function is None else name_of(function)


def _is_deep(mode: str) -> bool:
    """Check for modes of more than 8 bits: integers `I`, `I;16` and others, and floats `F`."""
    return mode[0] in "IF"


def _levels_of(image: Image.Image) -> tuple[float, float] | None:
    """Return the values that are black and white in a deep image, by what its file states."""
    if not _is_deep(image.mode):
        return None
    tags = getattr(image, "tag_v2", {})
    if image.mode == "I" and image.format not in ("PNG", "PPM"):  # these have 16 bits
        raise ValueError(f"integers of 32 bits, or with a sign, have no white; {_AS_STORED}")
    white = 1.0 if image.mode == "F" else float(2 ** tags.get(_BITS, (16,))[0] - 1)
    return (white, 0.0) if tags.get(_PHOTOMETRIC) == _WHITE_IS_ZERO else (0.0, white)


def _in_unit_range(image: Image.Image, black: float, white: float) -> Image.Image:
    """Return gray values in single precision, 0 for black and 1 for white."""
    values = (np.asarray(image, np.float32) - black) / (white - black)
    if not bool(((values >= 0) & (values <= 1)).all()):  # NaN is neither
        spread = f"{number(values.min())} to {number(values.max())}"
        raise ValueError(f"values from {spread} are not in 0..1; {_AS_STORED}")
    return Image.fromarray(values)


class ImageFiles(Source):
    """Images in files, with what is known about them.

    Args:
        where: the folder or table, for messages.
        files: the files by the names of the samples.
        reader: how a file becomes a tensor.
        labels: one for each file, if there are any.
        classes: the names of the classes.
        columns: metadata by name.
        unreadable: `"raise"`, or `"skip"` to leave out files that cannot be decoded. To know how
            many samples there are, `"skip"` decodes every file once before the scan.
    """

    def __init__(
        self,
        where: str,
        files: Mapping[str, Path],
        reader: ImageReader,
        labels: np.ndarray | None,
        classes: Sequence[str] | None,
        columns: Mapping[str, np.ndarray],
        unreadable: str,
    ) -> None:
        check_name("unreadable", unreadable, UNREADABLE)
        self.unreadable = unreadable
        self._where, self._reader = where, reader
        self._files = [*map(str, files.values())]  # half the memory of paths
        self.names, self.labels, self.classes, self.columns = [*files], labels, classes, columns
        if unreadable == "skip":
            self._leave_out(self._broken(self._read_file))

    def __len__(self) -> int:
        return len(self._files)

    def read(self, start: int, stop: int) -> Batch:
        """Decode some images."""
        images = [self._decoded(row) for row in range(start, stop)]
        labels = None if self.labels is None else self.labels[start:stop]
        return stacked_source_samples(images, start), labels

    def check(self) -> None:
        """Read the header of every file; refuse files that are no images, and several sizes."""
        headers: dict[int, tuple[tuple[int, int], str]] = {}

        def read_header(row: int) -> None:
            headers[row] = _image_header(Path(self._files[row]))

        broken = self._broken(read_header)
        if broken:
            raise InputError("data", problem=self._named(broken), remedy=_SKIP)
        for caveat, count in Counter(caveat for _, caveat in headers.values() if caveat).items():
            images = f"{counted(count, 'image')} of {len(self)} in {self._where!r}"
            warn(f"{images}: {caveat}")
        counts = Counter(size for size, _ in headers.values()).most_common()
        if len(counts) > 1 and self._reader.size is None and self._reader.transform is None:
            some = ", ".join(f"{w} x {h} ({n})" for (w, h), n in counts[:_MOST_NAMED])
            raise InputError(
                "data",
                "images of one size",
                f"{len(counts)} sizes in {self._where!r}: {some}",
                remedy="size=224 crops them to one size; in Python, scan "
                f"orbical.data.{type(self).__name__}({self._where!r}, size=224)",
            )

    def stamp(self) -> str | None:
        """Return a hash of the names, sizes and times of the files, labels and settings."""
        known = dict(zip(self.names or (), self._files, strict=True))
        labels = None if self.labels is None else self.labels.tolist()
        return data_stamp(known, [self._reader.settings, labels])

    def _decoded(self, row: int) -> Any:
        try:
            return self._read_file(row)
        except Exception as error:
            raise InputError("data", problem=self._named({row: error}), remedy=_SKIP) from error

    def _read_file(self, row: int) -> Any:
        return self._reader.read(Path(self._files[row]))

    def _broken(self, attempt: Callable[[int], object]) -> dict[int, Exception]:
        """Return the files at which an attempt fails, and why."""

        def failure(row: int) -> Exception | None:
            try:
                attempt(row)
            except Exception as error:
                return error
            return None

        with ThreadPoolExecutor(min(32, 4 * (os.cpu_count() or 1))) as pool:
            found = enumerate(pool.map(failure, range(len(self._files))))
            return {row: error for row, error in found if error is not None}

    def _named(self, broken: Mapping[int, Exception]) -> str:
        names = [repr(self.names[row]) for row in broken] if self.names else []
        some = ", ".join(names[:_MOST_NAMED])
        more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
        row, error = next(iter(broken.items()))
        why = words_of(error).replace(f" {self._files[row]!r}", "").rstrip(":")
        return (
            f"{len(broken)} of {len(self._files)} images in {self._where!r} cannot be read: "
            f"{some}{more} ({type(error).__name__}: {why})"
        )

    def _leave_out(self, broken: Mapping[int, Exception]) -> None:
        if not broken:
            return
        words = self._named(broken)
        if len(broken) == len(self._files):
            raise InputError("data", f"at least one image, but {words}")
        warn(f"{words}; they are left out")
        kept = [row for row in range(len(self._files)) if row not in broken]
        self._files = [self._files[row] for row in kept]
        self.names = [self.names[row] for row in kept] if self.names else None
        self.labels = None if self.labels is None else self.labels[kept]
        self.columns = {name: values[kept] for name, values in self.columns.items()}


def _is_cut(image: Image.Image) -> bool:
    """Check for channels of 16 bits of which Pillow reads 8, by how it would decode the file."""
    tiles = getattr(image, "tile", None)  # of files only
    if _is_deep(image.mode) or not tiles:
        return False
    codec, _, _, how = tiles[0]
    return ";16" in str(how) or (codec == "ppm" and how[1] > 255)


def _image_header(path: Path) -> tuple[tuple[int, int], str]:
    """Return width and height of an image, upright, and what of it is not read, if anything."""
    with Image.open(path) as image:
        width, height = image.size
        caveat = ""
        if _is_cut(image):
            caveat = "16 bits in each of several channels, of which 8 are read"
        if image.format == "TIFF" and getattr(image, "n_frames", 1) > 1:
            caveat = "several pages, of which the first is read"
        turned = image.getexif().get(_ORIENTATION) in _TURNED
    return ((height, width) if turned else (width, height)), caveat


def _images_below(folder: Path) -> Iterator[Path]:
    """Yield the images below a folder, sorted; hidden files and folders are left out."""
    for place, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(files):
            if name.lower().endswith(SUFFIXES) and not name.startswith("."):
                yield Path(place) / name


_NOT_CLASSES = "pass labeled=False (--unlabeled) if the folders are not classes"
_NESTED = (
    "the first folder is the class: scan one of them, name the classes of all images in a table "
    f"(orbical.data.Table), or {_NOT_CLASSES}"
)


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
        transform: Callable[[object], object] | None = None,
        mode: str = "RGB",
        classes: Sequence[str] | None = None,
        unreadable: str = "raise",
        labeled: bool = True,
    ) -> None:
        folder = as_path("data", path)
        if not folder.is_dir():
            absent = "" if folder.exists() else ", which does not exist"
            raise InputError("data", "a folder of images", f"{str(path)!r}{absent}")
        found = {file.relative_to(folder).as_posix(): file for file in _images_below(folder)}
        if not found:
            raise InputError(
                "data", f"images in {str(path)!r}", _found_instead_of_image_files(folder)
            )
        nested = [name.partition("/")[0] for name in found if "/" in name]
        if labeled and nested and len(nested) < len(found):
            raise InputError(
                "data",
                f"images in subfolders of {str(path)!r}, one for each class, or all beside "
                "each other",
                f"{len(found) - len(nested)} images beside {len(set(nested))} folders with images",
                remedy=_NOT_CLASSES,
            )
        labels, names = None, read_class_names(classes)
        if labeled and nested:
            try:
                labels, names = data_source_class_indices(nested, classes, str(path))
            except InputError as error:
                deeper = any(name.count("/") > 1 for name in found)
                remedy = _NESTED if deeper else _NOT_CLASSES
                raise error.about(error.argument, remedy=remedy) from None
        reader = ImageReader(size, transform, mode)
        super().__init__(str(path), found, reader, labels, names, {}, unreadable)


def _found_instead_of_image_files(folder: Path) -> str:
    """Describe a folder without images."""
    kinds = Counter(
        file.suffix.lower() or "no suffix" for file in folder.rglob("*") if file.is_file()
    )
    if not kinds:
        return "an empty folder"
    some = ", ".join(f"{count} with {suffix}" for suffix, count in kinds.most_common(3))
    return f"other files: {some}"
