"""Inputs as sent to the page: arrays, large images as bytes, and thumbnails."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from ..._trees import Tree, tree_map
from ...actions import Signals, Window
from ...figures import cloud_picture, molecule_picture
from ...tasks import UNSEEN, chosen_map_slices, map_of_volume_slices
from .scan_view import ScanView

Array = np.ndarray

MOST_FLOATS = 1 << 14
MOST_VOXELS = 1 << 18
THUMBNAIL = 56
LONG = 2.5
"""How many times as long as wide a thumbnail is at most."""
MOST_FIELD = 16
"""Rows and columns of a vector field that are sent: as many as arrows are drawn."""


def input_arrays(
    moved: Tree | None, view: str = "image"
) -> tuple[dict[str, Array], dict[str, list[float]]]:
    """Return the arrays of one transformed input `[1, 1, ...]`, and their ranges.

    An image of more than 16,384 numbers is sent as bytes over its range. Of a volume of more than
    262,144 voxels the middle slices are sent.
    """
    if moved is None:
        return {}, {}
    arrays, spans = {}, {}
    for name, values in input_picture_fields(moved, 2, view).items():
        span = _input_picture_span(values)
        if view == "volume" and values.ndim == 4 and values[0].numel() > MOST_VOXELS:
            values = map_of_volume_slices(values.float(), np.nan, max(values.shape))
        spans[name] = span
        large = values.is_floating_point() and values.numel() > MOST_FLOATS and values.ndim >= 3
        arrays[name] = _bytes(values, span).numpy() if large else values.numpy()
    return arrays, spans


def input_picture_fields(given: Tree, lead: int, view: str) -> dict[str, Tensor]:
    """Return the first input of a batch by field, without its `lead` leading dimensions."""
    if isinstance(given, Tensor):
        first = given[(0,) * lead].detach().cpu()
        return {view if view == "volume" else _name_of(first): first}
    parts = (
        given if isinstance(given, dict) else {str(place): one for place, one in enumerate(given)}
    )
    return {name: leaf[(0,) * lead].detach().cpu() for name, leaf in parts.items()}


def _name_of(values: Tensor) -> str:
    """Return the name of a single input by its shape: image, pair, points or values."""
    if values.ndim == 2 and values.shape[1] in (2, 3):
        return "pos"
    return {3: "image", 4: "pair"}.get(values.ndim, "values")


def _input_picture_span(values: Tensor) -> list[float]:
    """Return the range to show an image in: 0 to 1, 0 to 255, or its own."""
    if values.numel() == 0:
        return [0.0, 1.0]
    low, high = float(values.min()), float(values.max())
    if low >= 0.0 and high <= 1.0:
        return [0.0, 1.0]
    if low >= 0.0 and high <= 255.0 and high > 1.5:
        return [0.0, 255.0]
    return [low, high if high > low else low + 1.0]


def _bytes(values: Tensor, span: list[float]) -> Tensor:
    """Return numbers as bytes over a range; what shows nothing is gray."""
    scaled = (values.float() - span[0]) / (span[1] - span[0])
    return (scaled.clamp(0, 1).nan_to_num(0.5) * 255).round().to(torch.uint8)


def thumbnails(
    view: ScanView, samples: list[int], elements: list[int] | None = None
) -> Array | None:
    """Return thumbnails `[S, h, w, c]` of images, the first of a pair, slices, clouds, signals.

    They are of the samples as they are, or each moved by one of the `elements`. None for other
    inputs.
    """
    if not view.live.has_inputs:
        return None
    places: Sequence[int | None] = elements or [None] * len(samples)
    keys = [*zip(samples, places, strict=True)]
    made = {  # in the order of the scan, in which neighbors share what is read
        key: view.thumbnails.get_or_compute(key, partial(_input_picture, view, *key))
        for key in sorted({*keys}, key=lambda key: key[0])
    }
    if any(picture is _NOTHING for picture in made.values()):
        return None
    return np.stack([made[key] for key in keys])


_NOTHING = np.zeros(0, np.uint8)


def _input_picture(view: ScanView, sample: int, element: int | None) -> Array:
    given, action = view.live.input(sample), view.live.action
    here = view.group[[view.group.identity if element is None else element]]
    if isinstance(action, Signals) and isinstance(given, Tensor):
        seen = action.apply(here, given)[0, 0, 0]
        return picture_on_black(
            _signal_input_picture(seen.detach().cpu().double().numpy(), THUMBNAIL)
        )
    if action is not None and (element is not None or isinstance(action, Window)):
        given = tree_map(lambda leaf: leaf[0], action.apply(here, given))  # a window is a part
    if not isinstance(given, Tensor) or given.ndim not in (4, 5):
        cloud = cloud_for_page(given)
        numbers = given.get("numbers") if isinstance(given, dict) else None
        if cloud is not None and isinstance(numbers, Tensor):
            kinds = numbers[0].cpu().numpy()
            drawn = molecule_picture(cloud - cloud.mean(0), kinds[kinds > 0], size=THUMBNAIL)
            return (255 * drawn).round().astype(np.uint8)
        return _NOTHING if cloud is None else picture_on_black(cloud_picture(cloud, size=THUMBNAIL))
    image = given[0] if given.ndim == 4 else given[0, 0]  # the first frame of a pair
    if view.input_view == "volume":
        image = chosen_map_slices(given[0])[0]
    image = _start_of_input_picture(image[:3] if image.shape[0] >= 3 else image[:1])
    span = _input_picture_span(image)
    image = image.float()[None]
    size = max(image.shape[-2:])
    if size > THUMBNAIL:
        shape = [max(1, round(side * THUMBNAIL / size)) for side in image.shape[-2:]]
        image = F.interpolate(image, shape, mode="area")
    return _bytes(image[0], span).permute(1, 2, 0).contiguous().numpy()


def _start_of_input_picture(image: Tensor) -> Tensor:
    """Return the first part of a long image, such as a line of text, of which nothing is legible.

    >>> _start_of_input_picture(torch.zeros(1, 10, 80)).shape
    torch.Size([1, 10, 25])
    """
    height, width = image.shape[-2:]
    most = int(LONG * min(height, width))
    return image[..., :most, :most] if max(height, width) > most else image


def cloud_for_page(given: Tree) -> Array | None:
    """Return the points `[n, 3]` of one input, None if it has none.

    They are the field `pos`, or an input `[1, n, 2 or 3]` itself, without the points that a field
    `mask` excludes.
    """
    fields = given if isinstance(given, dict) else {"pos": given}
    points = fields.get("pos")
    if not isinstance(points, Tensor) or points.ndim != 3 or points.shape[-1] not in (2, 3):
        return None
    kept = points[0].detach().cpu().double().numpy()
    if isinstance(fields.get("mask"), Tensor) and fields["mask"].shape == points.shape[:2]:
        kept = kept[fields["mask"][0].cpu().numpy() > 0]
    return np.pad(kept, ((0, 0), (0, 3 - kept.shape[1])))


def _signal_input_picture(values: Array, size: int) -> Array:
    """Draw a signal as a picture `[size, size]`: 0 along its line, even where it jumps, else 1.

    >>> _signal_input_picture(np.array([0.0, 1.0, 2.0]), 3).tolist()
    [[1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, 1.0, 1.0]]
    """
    edges = np.linspace(0, len(values), size + 1).astype(int)
    starts = np.minimum(edges[:-1], len(values) - 1)
    low, high = np.minimum.reduceat(values, starts), np.maximum.reduceat(values, starts)
    next_one = values[starts[1:]]
    low[:-1], high[:-1] = np.minimum(low[:-1], next_one), np.maximum(high[:-1], next_one)
    span = max(float(high.max() - low.min()), 1e-12)
    margin = size // 14  # a line at the border would be lost in the page
    rise = size - 1 - 2 * margin
    first, last = (margin + np.rint(rise * (high.max() - end) / span) for end in (high, low))
    rows = np.arange(size)[:, None]
    return np.where((rows >= first) & (rows <= last), 0.0, 1.0)


def picture_on_black(picture: Array) -> Array:
    """Invert a picture of a cloud to bytes `[h, w, 1]`; the square root keeps far points visible.

    >>> picture_on_black(np.array([[0.05, 0.85, 1.0]])).ravel().tolist()
    [248, 98, 0]
    """
    return np.asarray(255 * np.sqrt(1 - picture[..., None])).astype(np.uint8)


def thinned_for_page(values: Array) -> tuple[Array, int]:
    """Take every n-th row and column of large fields `[M, ..., H, W]`, to keep frames small."""
    if values.ndim < 4 or max(values.shape[-2:]) <= MOST_FIELD:
        return values, 1
    step = -(-max(values.shape[-2:]) // MOST_FIELD)
    return values[..., step // 2 :: step, step // 2 :: step], step


def drawn_on_page(values: Array, dims: tuple[str, ...]) -> Array:
    """Return arrays as they are drawn: maps of volumes by three slices."""
    if dims[-3:] != ("depth", "row", "column"):
        return values
    empty = np.nan if values.dtype.kind == "f" else UNSEEN
    return map_of_volume_slices(torch.from_numpy(np.ascontiguousarray(values)), empty).numpy()
