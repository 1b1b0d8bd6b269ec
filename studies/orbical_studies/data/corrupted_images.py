"""Common corruptions of images, by the package `imagecorruptions`.

Its severities are those of ImageNet: on images of 32 x 32 pixels they are not CIFAR-10-C.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
import types
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from numpy.typing import NDArray

from orbical.errors import InputError, check_name

PACKAGE = "imagecorruptions==1.1.2"
SEVERITIES = (1, 2, 3, 4, 5)
CORRUPTIONS = (
    *("gaussian_noise", "shot_noise", "impulse_noise", "speckle_noise"),
    *("defocus_blur", "glass_blur", "motion_blur", "zoom_blur", "gaussian_blur"),
    *("snow", "frost", "fog", "brightness", "spatter"),
    *("contrast", "elastic_transform", "pixelate", "jpeg_compression", "saturate"),
)


def corrupted(
    images: NDArray[np.uint8], name: str, severity: int, seed: int = 0
) -> NDArray[np.uint8]:
    """Corrupt images, the same way each time.

    Args:
        images: `[n, h, w, 3]`, at least 32 pixels high and wide.
        name: One of `CORRUPTIONS`.
        severity: 1 to 5.
        seed: Of the random numbers; every image has its own.

    Returns:
        Images of the same shape.
    """
    check_name("name", name, CORRUPTIONS)
    with _repaired(seed) as package:
        return np.stack([package.corrupt(image, severity, name) for image in images])


@cache
def _package() -> Any:
    """Import the package, which asks a removed part of setuptools where its own files are."""
    found = importlib.util.find_spec(PACKAGE.partition("=")[0])
    if found is None or found.origin is None:
        raise InputError(
            "imagecorruptions",
            "the package",
            "none",
            remedy=f"pip install scikit-image && pip install --no-deps {PACKAGE}",
        )
    folder = Path(found.origin).parent
    resources = types.ModuleType("pkg_resources")
    resources.__dict__["resource_filename"] = lambda _, name: str(folder / name)
    with mock.patch.dict(sys.modules, {"pkg_resources": resources}):
        return importlib.import_module("imagecorruptions")


class _OlderNumPy:
    """NumPy under the names that the package uses, with random numbers of its own.

    Args:
        seed: Of the random numbers.
    """

    def __init__(self, seed: int) -> None:
        self.random = np.random.RandomState(seed)
        self.float_ = np.float64

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)


@contextmanager
def _repaired(seed: int) -> Iterator[Any]:
    """Restore, while the package runs, the names that NumPy 2 and scikit-image have changed.

    Salt and pepper, which scikit-image draws from a generator of its own, are seeded too, and the
    photographs of frost are read once.
    """
    package = _package()
    inside = package.corruptions
    smooth, add_noise = inside.gaussian, inside.sk.util.random_noise

    def gaussian(image: Any, *given: Any, multichannel: bool = False, **named: Any) -> Any:
        return smooth(image, *given, channel_axis=-1 if multichannel else None, **named)

    seeded = partial(add_noise, rng=np.random.default_rng(seed))
    with (
        mock.patch.object(inside, "np", _OlderNumPy(seed)),
        mock.patch.object(inside, "gaussian", gaussian),
        mock.patch.object(inside.sk.util, "random_noise", seeded),
        mock.patch.object(inside.cv2, "imread", cache(inside.cv2.imread)),
    ):
        yield package
