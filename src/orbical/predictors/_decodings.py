"""How the outputs of detectors are read: pure functions from raw tensors to candidate boxes.

Each decoding returns boxes `[N, n, 4]` (left, top, right, bottom, in pixels of what the network
saw), scores and labels `[N, n]`; a label of -1 is no detection.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from ..errors import ModelError
from ..tasks import iou

Candidates = tuple[Tensor, Tensor, Tensor]
Outputs = Mapping[str, Tensor]
STRIDES = ((8, 16, 32), (8, 16, 32, 64), (16, 32))
"""The grids of usual heads, in pixels of the input."""
_ANCHORS = 3  # of each cell, in heads with anchors


@dataclass(frozen=True)
class Decoding:
    """A way to read outputs, and what the network expects around it.

    Attributes:
        read: from outputs by name and the height and width of the input to candidates.
        overlap: the IoU from which the less confident of two boxes of a class is dropped; None if
            the network did that itself.
        letterbox: whether images keep their proportions, with gray borders; else they are
            stretched.
    """

    read: Callable[[Outputs, tuple[int, int]], Candidates]
    overlap: float | None
    letterbox: bool = True


def yolov5(outputs: Outputs, size: tuple[int, int]) -> Candidates:
    """Read `[N, n, 5 + classes]`: center, width, height, objectness, scores of the classes."""
    rows = _first(outputs, "[N, boxes, 5 + classes]", 6)
    scores, labels = (rows[..., 4:5] * rows[..., 5:]).max(-1)
    return _corners(rows, size), scores, labels


def yolov8(outputs: Outputs, size: tuple[int, int]) -> Candidates:
    """Read `[N, 4 + classes, n]`: center, width, height, scores of the classes."""
    columns = _first(outputs, "[N, 4 + classes, boxes]", 1)
    rows = columns.transpose(1, 2)
    if rows.shape[-1] < 5:
        raise _unreadable("[N, 4 + classes, boxes]", columns)
    scores, labels = rows[..., 4:].max(-1)
    return _corners(rows, size), scores, labels


def yolov10(outputs: Outputs, size: tuple[int, int]) -> Candidates:
    """Read `[N, n, 6]`: left, top, right, bottom, confidence, class."""
    rows = _first(outputs, "[N, boxes, 6]", 6)
    if rows.shape[-1] != 6:
        raise _unreadable("[N, boxes, 6]", rows)
    return rows[..., :4], rows[..., 4], rows[..., 5]


def ssd(outputs: Outputs, size: tuple[int, int]) -> Candidates:
    """Read boxes `[N, n, 4]` (top, left, bottom, right in 0..1), classes, scores and a count."""
    boxes, labels, scores, count = _ssd_parts(outputs)
    height, width = size
    sides = torch.tensor([width, height] * 2, device=boxes.device)
    if count is not None:
        beyond = torch.arange(labels.shape[1], device=labels.device) >= count.reshape(-1, 1)
        labels = labels.masked_fill(beyond, -1)
    return boxes[..., [1, 0, 3, 2]] * sides, scores, labels


DECODINGS = {
    "yolov5": Decoding(yolov5, 0.45),
    "yolov8": Decoding(yolov8, 0.7),
    "yolov10": Decoding(yolov10, None),
    "ssd": Decoding(ssd, None, letterbox=False),
}
"""The decodings by name, with the thresholds that their authors use."""


def guessed_detector_decoding(
    shapes: Mapping[str, Sequence[object]], size: tuple[int, int] | None, classes: int | None
) -> str | None:
    """Return the decoding that the shapes of outputs leave no doubt about, None if there is one.

    The number of boxes of a YOLO head follows from the size of its input; where that is free, the
    number of classes that the file names decides.

    Args:
        shapes: the declared shapes; anything but a whole number is free.
        size: height and width of the input, if they are fixed.
        classes: the number of classes that the file names.

    Example:
        >>> guessed_detector_decoding({"output0": [1, 84, 8400]}, (640, 640), None)
        'yolov8'
        >>> guessed_detector_decoding({"output": [1, 25200, 85]}, (640, 640), None)
        'yolov5'
        >>> guessed_detector_decoding({"text": [1, 40, 6625]}, (48, 320), None)
    """
    ranks = sorted(len(shape) for shape in shapes.values())
    if ranks == [1, 2, 2, 3] and any([*shape][2:] == [4] for shape in shapes.values()):
        return "ssd"
    if {"detection_boxes", "detection_classes", "detection_scores"} <= {*_plain_names(shapes)}:
        return "ssd"
    first = [*next(iter(shapes.values()), ())]
    if len(first) != 3:
        return None
    _, middle, last = first
    cells = set() if size is None else {_cells(size, strides) for strides in STRIDES}
    if middle in {_ANCHORS * count for count in cells} and _at_least(last, 6):
        return "yolov5"
    if len(shapes) == 1 and last in cells and _at_least(middle, 5):
        return "yolov8"
    if classes is not None and len(shapes) == 1:
        known = {(1, 4 + classes): "yolov8", (2, 5 + classes): "yolov5", (2, 6): "yolov10"}
        return next((name for (at, side), name in known.items() if first[at] == side), None)
    return None


def suppress(boxes: Tensor, scores: Tensor, labels: Tensor, overlap: float) -> Tensor:
    """Mark the boxes `[N, n]` that non-maximum suppression keeps, class by class.

    From the most confident on, a box that is kept drops every later one of its class whose IoU with
    it is larger than `overlap`. Boxes must be sorted by falling scores.
    """
    close = iou(boxes[:, :, None], boxes[:, None]) > overlap
    close &= labels[:, :, None] == labels[:, None]
    kept = torch.ones_like(scores, dtype=torch.bool)
    for place in range(boxes.shape[1] - 1):
        kept[:, place + 1 :] &= ~(close[:, place, place + 1 :] & kept[:, place, None])
    return kept


def _cells(size: tuple[int, int], strides: Sequence[int]) -> int:
    return sum((size[0] // stride) * (size[1] // stride) for stride in strides)


def _at_least(side: object, least: int) -> bool:
    return not isinstance(side, int) or side >= least


def _first(outputs: Outputs, expected: str, least: int) -> Tensor:
    rows = next(iter(outputs.values()))
    if rows.ndim != 3 or rows.shape[-1] < least:
        raise _unreadable(expected, rows)
    return rows


def _unreadable(expected: str, found: Tensor) -> ModelError:
    return ModelError(
        f"model output: expected {expected} for this decoding, got {[*found.shape]}; name another "
        f"one: {', '.join(DECODINGS)}"
    )


def _corners(rows: Tensor, size: tuple[int, int]) -> Tensor:
    """Return corners of boxes given by center, width and height, in pixels or as shares."""
    center, half = rows[..., :2], rows[..., 2:4] / 2
    boxes = torch.cat([center - half, center + half], -1)
    # TensorFlow Lite exports give shares of the input. In pixels, some of the thousands of centers
    # of a head lie farther from the corner than 2.
    if rows.numel() and float(center.max()) <= 2:
        boxes = boxes * torch.tensor([size[1], size[0]] * 2, device=rows.device)
    return boxes


def _ssd_parts(outputs: Outputs) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
    """Find boxes, classes, scores and the count, by their names or by shape and values."""
    plain = dict(zip(_plain_names(outputs), outputs.values(), strict=True))
    boxes = plain.get("detection_boxes")
    if boxes is None:
        boxes = next((one for one in plain.values() if one.ndim == 3 and one.shape[-1] == 4), None)
    flat = {name: one for name, one in plain.items() if one.ndim == 2}
    scores = next((one for name, one in flat.items() if "score" in name), None)
    labels = next((one for name, one in flat.items() if "class" in name), None)
    if (scores is None or labels is None) and len(flat) == 2:
        labels, scores = flat.values()  # the usual order
        if bool((labels % 1 != 0).any()):  # a class is a whole number
            labels, scores = scores, labels
    if boxes is None or labels is None or scores is None:
        shapes = {name: [*one.shape] for name, one in outputs.items()}
        raise ModelError(
            "model output: expected boxes [N, n, 4], classes [N, n] and scores [N, n] for the "
            f"decoding ssd, got {shapes}"
        )
    count = next((one for one in plain.values() if one.ndim == 1), None)
    return boxes, labels, scores, count


def _plain_names(outputs: Mapping[str, object]) -> list[str]:
    """Return the names of outputs without what TensorFlow adds, such as `:0`."""
    return [name.partition(":")[0] if name.startswith("detection") else name for name in outputs]
