"""A compact anchor-free one-stage detector in plain torch.

For each cell of 8 x 8 pixels, a convolutional network predicts the confidence of every class and
the distances from the center of the cell to the four sides of the box around it; non-maximum
suppression follows. Two small detectors for generated scenes ship with the package; they differ
only in how far the key object was shifted in training.
`python -m orbical_studies.zoo_training.detectors --out FOLDER` trains them again, on 1,000
scenes for 1,500 steps; those that ship saw 4,000 scenes for 8,000 steps.
"""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor, nn

from orbical.errors import InputError

from . import _weights
from .layout import images_in_layout

__all__ = [
    "NAMES", "SMALL", "STRIDE", "Detector", "cell_centers", "load", "provenance", "read",
    "suppress", "weights_file",
]  # fmt: skip

STRIDE = 8
SMALL = (16, 24, 40, 56)
LARGE = (24, 48, 96, 112)
CANDIDATES = 64
MOST = 10
LEAST_CONFIDENCE = 0.05
OVERLAP = 0.5
NAMES = ("centered", "jittered")
FILES = _weights.WeightFiles("scenes", NAMES, "orbical_studies.zoo_training.detectors")
weights_file, provenance = FILES.weights_file, FILES.provenance


def _convolve(before: int, after: int, stride: int = 1) -> tuple[nn.Module, ...]:
    return (
        nn.Conv2d(before, after, 3, stride, padding=1, bias=False),
        nn.BatchNorm2d(after),
        nn.ReLU(inplace=True),
    )


class Residual(nn.Module):
    """A residual block: two 3 x 3 convolutions with batch norm."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            *_convolve(channels, channels), *_convolve(channels, channels)[:2]
        )

    def forward(self, x: Tensor) -> Tensor:
        """Compute `relu(x + body(x))`."""
        return torch.relu(x + self.body(x))


class Detector(nn.Module):
    """A detector: images `[n, 3, h, w]` in 0..1 to detections `[n, 10, 6]`.

    A detection is left, top, right, bottom (pixels), confidence and class; confidence 0 means no
    detection. Height and width must be multiples of 16.

    Args:
        classes: Number of classes.
        channels: Widths at 1/2, 1/4, 1/8 and 1/16 of the resolution.

    Example:
        >>> Detector()(torch.zeros(2, 3, 128, 128)).shape
        torch.Size([2, 10, 6])
    """

    def __init__(self, classes: int = 5, channels: tuple[int, ...] = SMALL) -> None:
        super().__init__()
        half, quarter, eighth, sixteenth = channels
        self.classes, self.channels = classes, tuple(channels)
        self.to_eighth = nn.Sequential(
            *_convolve(3, half, 2), *_convolve(half, quarter, 2), Residual(quarter),
            Residual(quarter), *_convolve(quarter, eighth, 2), Residual(eighth), Residual(eighth),
        )  # fmt: skip
        self.to_sixteenth = nn.Sequential(
            *_convolve(eighth, sixteenth, 2), Residual(sixteenth), Residual(sixteenth)
        )
        self.down = nn.Conv2d(sixteenth, eighth, 1)
        self.head = nn.Sequential(Residual(eighth), Residual(eighth))
        self.answer = nn.Conv2d(eighth, classes + 4, 1)
        # Start with confidence 0.01 everywhere: nearly all cells are empty.
        with torch.no_grad():
            self.answer.bias[:classes] = -4.6  # type: ignore[index]

    def features(self, images: Tensor) -> Tensor:
        """Compute the features of every cell, `[n, channels, h / 8, w / 8]`."""
        fine = self.to_eighth(images_in_layout(images) - 0.5)
        coarse = self.down(self.to_sixteenth(fine))
        wide = nn.functional.interpolate(coarse, scale_factor=2.0, mode="nearest")
        result: Tensor = self.head(fine + wide)
        return result

    def maps(self, images: Tensor) -> tuple[Tensor, Tensor]:
        """Compute the logits `[n, cells, classes]` and boxes `[n, cells, 4]` of every cell."""
        answer = self.answer(self.features(images)).float()
        logits, sides = answer.flatten(2).transpose(1, 2).split([self.classes, 4], -1)
        reach = nn.functional.softplus(sides) * 2 * STRIDE
        height, width = images.shape[-2:]
        center = cell_centers(height, width, answer.device)
        boxes = torch.cat([center - reach[..., :2], center + reach[..., 2:]], -1)
        return logits, boxes

    def forward(self, images: Tensor) -> Tensor:
        """Compute the most confident detections that do not overlap."""
        logits, boxes = self.maps(images)
        best, place = logits.flatten(1).topk(min(CANDIDATES, logits[0].numel()), 1)
        confidence = best.sigmoid()
        cell = (place // self.classes)[..., None].expand(-1, -1, 4)
        box, label = boxes.gather(1, cell), place % self.classes
        confidence = torch.where(confidence >= LEAST_CONFIDENCE, confidence, 0.0)
        kept, confidence = suppress(box, confidence, label, OVERLAP, MOST)
        box = box.gather(1, kept[..., None].expand(-1, -1, 4))
        label = label.gather(1, kept).to(box.dtype)
        return torch.cat([box, confidence[..., None], label[..., None]], -1)


def cell_centers(height: int, width: int, device: torch.device | None = None) -> Tensor:
    """Return the centers `[cells, 2]` of all cells, in pixels (x, y), row by row.

    Args:
        height: Height of the image in pixels.
        width: Width of the image in pixels.
        device: Device to create them on; a copy to it would have to wait for its queue.

    Returns:
        The centers.

    Example:
        >>> cell_centers(8, 16)
        tensor([[ 4.,  4.],
                [12.,  4.]])
    """
    rows, columns = torch.meshgrid(
        *(torch.arange(STRIDE / 2, side, STRIDE, device=device) for side in (height, width)),
        indexing="ij",
    )  # fmt: skip
    return torch.stack([columns.flatten(), rows.flatten()], -1)


def suppress(
    boxes: Tensor, confidence: Tensor, labels: Tensor, overlap: float, most: int
) -> tuple[Tensor, Tensor]:
    """Apply greedy non-maximum suppression to all images at once.

    The most confident remaining box is kept, and those of its class whose IoU with it exceeds
    `overlap` are dropped, until `most` are kept.

    Args:
        boxes: Tensor `[n, p, 4]`.
        confidence: Tensor `[n, p]`; 0 means no box.
        labels: Tensor `[n, p]`.
        overlap: Largest IoU of two kept boxes of one class.
        most: Number of boxes to keep.

    Returns:
        Indices `[n, most]` and confidences `[n, most]`, 0 where no box was left.

    Example:
        >>> boxes = torch.tensor([[[0.0, 0, 10, 10], [1, 0, 10, 10], [20, 20, 30, 30]]])
        >>> suppress(boxes, torch.tensor([[0.8, 0.9, 0.3]]), torch.zeros(1, 3), 0.5, 2)
        (tensor([[1, 2]]), tensor([[0.9000, 0.3000]]))
    """
    left, top, right, bottom = boxes.unbind(-1)
    size = (right - left) * (bottom - top)
    remaining = confidence.clone()
    places, values = [], []
    for _ in range(most):
        best, place = remaining.max(1, keepdim=True)
        places.append(place)
        values.append(best)
        x0, y0, x1, y1 = (side.gather(1, place) for side in (left, top, right, bottom))
        width = torch.minimum(right, x1) - torch.maximum(left, x0)
        height = torch.minimum(bottom, y1) - torch.maximum(top, y0)
        both = width.clamp_min(0) * height.clamp_min(0)
        same = labels == labels.gather(1, place)
        near = both > overlap * (size + size.gather(1, place) - both)
        remaining = remaining.masked_fill(same & near, 0).scatter(1, place, 0.0)
    return torch.cat(places, 1), torch.cat(values, 1)


def load(name: str, folder: str | Path | None = None) -> Detector:
    """Load one of the two detectors of generated scenes, `"centered"` or `"jittered"`.

    Args:
        name: Name of the detector.
        folder: Folder with the weights. By default, those that ship with the package.

    Returns:
        The detector, in evaluation mode.

    Raises:
        InputError: If the name is unknown or the file does not exist.

    Example:
        >>> load("jittered")(torch.zeros(1, 3, 128, 128)).shape
        torch.Size([1, 10, 6])
    """
    return read(weights_file(name, folder))


def read(path: str | Path) -> Detector:
    """Read a detector from a file of weights.

    Args:
        path: The file; its header contains the widths of the network.

    Returns:
        The detector, in evaluation mode.

    Raises:
        InputError: If the file does not exist.
    """
    if not Path(path).is_file():
        raise InputError("path", "a file of weights", repr(str(path)))
    header = _weights.read_zoo_header(path)
    net = Detector(int(header["classes"]), tuple(map(int, header["channels"].split())))
    return _weights.restore_zoo_weights(net, path, strict=False)  # numbers of batches are not saved
