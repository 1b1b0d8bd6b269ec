"""Samples on the device: splits, shuffled batches, crops, and the objective on them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from orbical import training
from orbical.zoo.layout import images_in_layout

from ..framework.training_loop import WholeBatches

PADDING = 4
HELD_OUT = 0.1  # of the images for validation; of the rest for the calibration loss


def as_images(pixels: Tensor) -> Tensor:
    """Turn bytes `[n, h, w, c]` into images `[n, c, h, w]`, mean and standard deviation 0.5.

    >>> as_images(torch.full((1, 1, 1, 1), 255, dtype=torch.uint8)).item()
    1.0
    """
    return images_in_layout((pixels.float() / 127.5 - 1).permute(0, 3, 1, 2))


@dataclass(frozen=True)
class Split:
    """Pixels `[n, h, w, c]` as bytes, or tokens `[n, t]`, and labels `[n]`, on one device."""

    pixels: Tensor
    labels: Tensor

    def __len__(self) -> int:
        return len(self.labels)

    def __add__(self, other: Split) -> Split:
        pixels = torch.cat([self.pixels, other.pixels])
        return Split(pixels, torch.cat([self.labels, other.labels]))


Splits = dict[str, dict[str, Split]]  # by data set, then "train" and "test"


class Shuffled:
    """A loader over a split that lives on the device, shuffled each time.

    The last, incomplete batch is left out, so that every step has the batch size under study; a
    split smaller than a batch is one batch.

    Args:
        split: The samples.
        batch: Samples in a batch.
        generator: On the split's device.
    """

    def __init__(self, split: Split, batch: int, generator: torch.Generator) -> None:
        self.split, self.rows = split, WholeBatches(len(split), min(batch, len(split)), generator)
        self.random: dict[str, Any] = {"generator": generator, "device": split.labels.device}

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[tuple[Tensor, Tensor]]:
        for chosen in self.rows:
            yield self.inputs(chosen), self.split.labels[chosen]

    def inputs(self, chosen: Tensor) -> Tensor:
        """Return what a network takes of the chosen samples."""
        return self.split.pixels[chosen]


class Batches(Shuffled):
    """Shuffled batches of images, optionally cropped.

    A crop takes a random window of the image framed by 4 black pixels.

    Args:
        split: The images.
        batch: Images in a batch.
        generator: On the split's device; shuffles and crops.
        crop: Whether to crop.

    Example:
        >>> split = Split(torch.zeros(10, 8, 8, 3, dtype=torch.uint8), torch.arange(10))
        >>> batches = Batches(split, 4, torch.Generator().manual_seed(0), crop=True)
        >>> [images.shape for images, labels in batches]
        [torch.Size([4, 3, 8, 8]), torch.Size([4, 3, 8, 8])]
    """

    def __init__(self, split: Split, batch: int, generator: torch.Generator, crop: bool) -> None:
        super().__init__(split, batch, generator)
        self.padding = PADDING if crop else 0
        self.framed = functional.pad(split.pixels, (0, 0, *[self.padding] * 4))

    def inputs(self, chosen: Tensor) -> Tensor:
        """Return the chosen images."""
        if not self.padding:
            return as_images(self.framed[chosen])
        height, width = self.split.pixels.shape[1:3]
        corner = torch.randint(2 * self.padding + 1, (2, len(chosen), 1), **self.random)
        rows = corner[0] + torch.arange(height, device=chosen.device)
        columns = corner[1] + torch.arange(width, device=chosen.device)
        cropped = self.framed[chosen[:, None, None], rows[:, :, None], columns[:, None, :]]
        return as_images(cropped)


def partition(split: Split) -> dict[str, Split]:
    """Cut the training images into `fit`, `calibration` and `validation`, the same for all seeds.

    After one fixed shuffle, a tenth is for validation, and a tenth of the rest for the
    calibration loss, as in the paper.

    Example:
        >>> parts = partition(Split(torch.zeros(100, 1, 1, 1, dtype=torch.uint8), torch.zeros(100)))
        >>> {name: len(part) for name, part in parts.items()}
        {'fit': 81, 'calibration': 9, 'validation': 10}
    """
    validation = round(HELD_OUT * len(split))
    calibration = round(HELD_OUT * (len(split) - validation))
    sizes = [len(split) - validation - calibration, calibration, validation]
    order = torch.randperm(len(split), generator=torch.Generator().manual_seed(0))
    parts = order.to(split.labels.device).split(sizes)
    return {
        name: Split(split.pixels[part], split.labels[part])
        for name, part in zip(("fit", "calibration", "validation"), parts, strict=True)
    }


def objective_of(
    own: Callable[[Tensor, Tensor], Tensor] | None,
    weight: float,
    parts: dict[str, Split],
    batches: Callable[[Split], Shuffled],
) -> tuple[Any, Any]:
    """Return the likelihood on all images, or interleaved with a loss on those held out."""
    if own is None:
        return training.likelihood, batches(parts["fit"] + parts["calibration"])
    pairs = (batches(parts[name]) for name in ("fit", "calibration"))
    return training.interleaved(own, weight), training.interleave(*pairs)
