"""What is applied to batches before the models: by name, or by transforms of other libraries."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor

from .._imports_and_paths import import_attribute
from .._text import number
from .._trees import Tree
from .._warnings import warn
from ..errors import InputError, check_name, unknown_name
from ..predictors import processed_for_model

SCALES = {
    "unit": "0 to 1",
    "bytes": "0 to 255",
    "symmetric": "-1 to 1",
    "imagenet": "ImageNet mean and std",
}
CHANNELS = {"rgb": "RGB", "bgr": "BGR", "gray": "gray", "color": "RGB, also of gray images"}
LAYOUTS = {"nchw": "channels first", "nhwc": "channels last"}
_NAMES = {"scale": SCALES, "channels": CHANNELS, "layout": LAYOUTS}
_MEAN, _STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
_LUMINANCE = (0.299, 0.587, 0.114)  # ITU-R 601, as Pillow converts to gray
_LARGEST_UNIT = 2.0
"""Interpolation overshoots 1 by less, and two photographs with pixels of 0..255 exceed it."""


@dataclass(frozen=True)
class ImagePreprocessing:
    """Images `[N, 3, H, W]` in 0..1, as a network was trained on them.

    Args:
        scale: `"unit"` leaves 0..1, `"bytes"` is 0..255, `"symmetric"` is -1..1, `"imagenet"`
            subtracts ImageNet's mean and divides by its standard deviation.
        channels: `"rgb"`, `"bgr"`, `"gray"`, or `"color"`, which is RGB with three equal channels
            of gray images.
        layout: `"nchw"`, or `"nhwc"` for channels last.

    Raises:
        InputError: if a name is unknown.

    Example:
        >>> import torch
        >>> prepared = ImagePreprocessing.parse("bytes,nhwc")
        >>> prepared(torch.ones(2, 3, 8, 8)).shape, str(prepared)
        (torch.Size([2, 8, 8, 3]), 'bytes,nhwc')
    """

    scale: str = "unit"
    channels: str = "rgb"
    layout: str = "nchw"

    def __post_init__(self) -> None:
        for name, names in _NAMES.items():
            check_name(name, getattr(self, name), names)
        # The record of a scan names functions by this: other settings are another function.
        object.__setattr__(self, "__qualname__", str(self))

    @classmethod
    def parse(cls, text: str, argument: str = "preprocess") -> ImagePreprocessing:
        """Read names separated by commas, such as `imagenet,bgr`.

        Args:
            text: the names, in any order; what is left out has its default.
            argument: the name of the argument in error messages.

        Returns:
            The preprocessing.

        Raises:
            InputError: if a name is unknown, or two exclude each other.
        """
        chosen: dict[str, str] = {}
        for word in (part.strip() for part in text.split(",")):
            kind = next((kind for kind, names in _NAMES.items() if word in names), None)
            if kind is None:
                known = [name for names in _NAMES.values() for name in names]
                raise unknown_name(argument, word, [*known, "package.module:function"])
            if kind in chosen:
                raise InputError(argument, f"one {kind}", f"{chosen[kind]} and {word}")
            chosen[kind] = word
        return cls(**chosen)

    def __str__(self) -> str:
        usual = ("rgb", "nchw")
        return ",".join(
            [self.scale, *(one for one in (self.channels, self.layout) if one not in usual)]
        )

    def check_values(self, images: Tree) -> None:
        """Check that pixels lie in 0..1, not in 0..255 or the range of 16 bits.

        Beside the names of channels or of a layout, `unit` leaves values as they are, whatever they
        are. Standardized images have negative values, and are not refused.

        Raises:
            InputError: if integers exceed 1, or numbers from 0 exceed 2.
        """
        stated = self.scale != "unit" or self == ImagePreprocessing()
        if not stated or not isinstance(images, Tensor) or not images.numel():
            return
        low, high = float(images.min()), float(images.max())
        integers = not images.is_floating_point()
        if high > 1 if integers else low >= 0 and high > _LARGEST_UNIT:
            raise InputError(
                "data",
                f"images with values from 0 to 1 for preprocess={str(self)!r}",
                f"{number(low)} .. {number(high)}",
                remedy=f"divide them by {255 if high <= 255 else 65535}, "
                "if a pixel can have so much",
            )

    def __call__(self, batch: Tensor) -> Tensor:
        """Prepare a batch of images."""
        if batch.ndim != 4 or batch.shape[1] not in (1, 3):
            raise InputError("preprocess", "images [N, 3, H, W] or [N, 1, H, W]", batch)
        images = batch.float()
        if self.channels == "gray" and images.shape[1] == 3:
            images = (images * _column(_LUMINANCE, images)).sum(1, keepdim=True)
        elif self.channels == "color" and images.shape[1] == 1:
            images = images.expand(-1, 3, -1, -1)
        images = self._scaled(images)
        if self.channels == "bgr":
            images = images.flip(1)
        return images if self.layout == "nchw" else images.permute(0, 2, 3, 1).contiguous()

    def _scaled(self, images: Tensor) -> Tensor:
        if self.scale == "bytes":
            return images * 255
        if self.scale == "symmetric":
            return images * 2 - 1
        if self.scale == "imagenet":
            gray = images.shape[1] == 1
            mean, std = ((sum(one) / 3,) if gray else one for one in (_MEAN, _STD))
            return (images - _column(mean, images)) / _column(std, images)
        return images


def _column(values: tuple[float, ...], images: Tensor) -> Tensor:
    return torch.tensor(values, device=images.device)[:, None, None]


_PREFIX = f"{__name__}:"


def recorded_preprocessing(name: str | None) -> ImagePreprocessing | None:
    """Return the preprocessing that a scan's record names, None if it is a function of the user's.

    >>> recorded_preprocessing("orbical.data.preprocessing:imagenet,bgr")
    ImagePreprocessing(scale='imagenet', channels='bgr', layout='nchw')
    """
    if name is None or not name.startswith(_PREFIX) or "(" in name:
        return None
    return ImagePreprocessing.parse(name.removeprefix(_PREFIX))


def preprocessing_of_scan(given: Any, recorded: str | None) -> Callable[[Any], Any] | None:
    """Return what a scan applied to its batches: what is given again, or what its record names.

    Raises:
        InputError: if it is a function of the user's, and is not given: models would see others.
    """
    function = as_preprocessing(given) or recorded_preprocessing(recorded)
    if function is None and recorded is not None:
        raise InputError("preprocess", f"that of the scan, {recorded}", "None")
    return function


class _Transform:
    """A function with a text by which the record of a scan tells it from others."""

    def __init__(self, function: Callable[[Any], object], about: object) -> None:
        self.function = function
        self.__qualname__ = f"({' '.join(str(about).split())})"

    def __call__(self, batch: object) -> Any:
        return self.function(batch)


def as_preprocessing(given: Any, argument: str = "preprocess") -> Callable[[Any], Any] | None:
    """Return the function of batches that was given, by name or in the form of another library.

    Args:
        given: names of `ImagePreprocessing`, `package.module:function`, a function, an image
            processor of transformers, or transforms of torchvision and timm. Of transforms that
            were made for single images of Pillow, those that convert them to tensors are left out.
        argument: the name of the argument in error messages.

    Returns:
        The function; None for None.

    Raises:
        InputError: if it is none of these.

    Example:
        >>> as_preprocessing("imagenet")
        ImagePreprocessing(scale='imagenet', channels='rgb', layout='nchw')
    """
    if isinstance(given, str):
        if ":" not in given:
            return ImagePreprocessing.parse(given, argument)
        given = import_attribute(given, argument)
    if hasattr(given, "image_mean"):
        return _Transform(partial(processed_for_model, given), given)
    steps = getattr(given, "transforms", None)
    if isinstance(steps, list):
        kept = [one for one in steps if type(one).__name__ not in ("ToTensor", "PILToTensor")]
        return _Transform(type(given)(kept), given)
    if given is not None and not callable(given):
        names = ", ".join((*SCALES, *CHANNELS, *LAYOUTS))
        raise InputError(argument, f"a function of a batch, or names of {names}", repr(given))
    function: Callable[[Any], Any] | None = given
    return function


def checked_preprocessing(given: Any, images: Tree) -> Callable[[Any], Any] | None:
    """Return what `as_preprocessing` does, if it is meant for the values of these images.

    Raises:
        InputError: as of `as_preprocessing` and `ImagePreprocessing.check_values`.
    """
    prepare = as_preprocessing(given)
    if isinstance(prepare, ImagePreprocessing):
        prepare.check_values(images)
    if prepare is None and _are_bytes(images):
        warn(
            "data: pixels are passed to the models as stored, 0 to 255; if these expect 0 to 1, as "
            "after ToTensor, divide by 255 (no warning is given for floating-point numbers)",
        )
    return prepare


def _are_bytes(images: Tree) -> bool:
    """Check for images of bytes that are no masks of 0 and 1."""
    if not isinstance(images, Tensor) or images.dtype != torch.uint8 or images.ndim != 4:
        return False
    return bool((images > 1).any())
