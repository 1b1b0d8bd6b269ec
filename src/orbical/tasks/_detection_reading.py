"""Reading the common forms of detector outputs, and of targets, as the same number a view."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import pad
from torch.nn.utils.rnn import pad_sequence

from .._arrays import as_array
from ..errors import InputError, ModelError
from .detection_matching import Detections, inverted_detection_boxes
from .reading import is_real, single_or_double, unreadable_output, wrong_output

_NAMES = {
    "box": ("boxes", "box"),
    "confidence": ("scores", "confidence", "confidences"),
    "label": ("labels", "label", "classes"),
}
_EXPECTED = (
    "[view, detection, 6] (left, top, right, bottom, confidence, class), a dictionary of boxes "
    "[view, detection, 4], scores and labels [view, detection], or a list with one such dictionary "
    "for each view"
)


def read_detections(given: object, most: int) -> Detections:
    """Read the `most` most confident detections of N views, `[N, most, ...]`.

    Args:
        given: a tensor `[N, n, 6]`, a dictionary of tensors, or a list of N dictionaries whose
            numbers of boxes differ.
        most: how many to keep; missing ones are filled with empty places (class -1).

    Example:
        >>> view = {"boxes": torch.tensor([[0.0, 0, 4, 4]]), "scores": torch.tensor([0.9]),
        ...         "labels": torch.tensor([2])}
        >>> empty = {"boxes": torch.zeros(0, 4), "scores": torch.zeros(0), "labels": torch.zeros(0)}
        >>> read_detections([view, empty], 2).label
        tensor([[ 2., -1.],
                [-1., -1.]])
    """
    box, confidence, label = _parts(given)
    box, confidence = single_or_double(box), single_or_double(confidence)
    label = label.to(box.dtype)
    absent = (label < 0) | (confidence == 0)
    # Invalid values are left for `faults` to find, in front: a class that is not a number as NaN, a
    # negative confidence as infinite. Looking here would synchronize with an accelerator.
    confidence = torch.where(label.isfinite(), confidence, torch.nan)
    confidence = confidence.masked_fill(confidence < 0, torch.inf)
    return _most_confident(Detections(box, confidence, label.round()).without(absent), most)


def read_true_objects(given: Any) -> object:
    """Return targets that are a list of dictionaries, as torchvision's, as objects `[N, T, 5]`.

    Other targets are returned as they are.

    Example:
        >>> one = {"boxes": [[0, 0, 4, 4]], "labels": [2]}
        >>> two = {"boxes": [[0, 0, 2, 2], [1, 1, 3, 3]], "labels": [0, 1]}
        >>> read_true_objects([one, two])[:, :, 4]
        tensor([[2., nan],
                [0., 1.]])
    """
    listed = isinstance(given, Sequence) or (
        isinstance(given, np.ndarray) and given.dtype == np.dtype(object)
    )
    if not listed or not len(given) or not all(isinstance(view, Mapping) for view in given):
        return given
    rows = []
    for sample, view in enumerate(given):
        if not {"boxes", "labels"} <= {*view}:
            raise InputError(
                "objects",
                "dictionaries of boxes [n, 4] and labels [n]",
                f"fields {sorted(map(str, view))} for sample {sample}",
            )
        boxes, labels = (as_array(name, view[name]) for name in ("boxes", "labels"))
        if boxes.ndim != 2 or boxes.shape[1] != 4 or labels.shape != boxes.shape[:1]:
            raise InputError(
                "objects",
                "boxes [n, 4] and labels [n]",
                f"shapes {tuple(boxes.shape)} and {tuple(labels.shape)} for sample {sample}",
            )
        rows.append(torch.cat([boxes.float(), labels[:, None].float()], 1))
    return pad_sequence(rows, batch_first=True, padding_value=torch.nan)


def detection_faults(found: Detections) -> dict[str, Tensor]:
    """Mark views `[...]` of detections `[..., M]` that cannot be used, by the reason.

    Example:
        >>> found = Detections.of(torch.tensor([[9.0, 0, 2, 4, 0.5, 1]]))
        >>> [reason for reason, marks in detection_faults(found).items() if marks]
        ['a box whose left > right or top > bottom']
    """
    return {
        "a confidence outside 0 .. 1": (found.confidence > 1 + 1e-6).any(-1),
        "a box whose left > right or top > bottom": inverted_detection_boxes(found.box).any(-1),
    }


def _parts(given: object) -> tuple[Tensor, Tensor, Tensor]:
    if isinstance(given, Mapping):
        box, confidence, label = _fields(given)
        shapes = box.ndim == 3 and box.shape[-1] == 4
        if not shapes or confidence.shape != box.shape[:2] or label.shape != box.shape[:2]:
            raise _misshapen(_EXPECTED, box, confidence, label)
        return box, confidence, label
    if isinstance(given, Sequence) and all(isinstance(view, Mapping) for view in given):
        return _padded([_fields(view) for view in given])
    if not is_real(given) or given.ndim != 3 or given.shape[-1] != 6:
        raise unreadable_output(given, _EXPECTED)
    return given[..., :4], given[..., 4], given[..., 5]


def _fields(view: Mapping[str, Any]) -> tuple[Tensor, Tensor, Tensor]:
    found = []
    for names in _NAMES.values():
        name = next((name for name in names if name in view), None)
        if name is None or not isinstance(view[name], Tensor):
            fields = sorted(map(str, view))
            raise wrong_output(_EXPECTED, f"a dictionary of {fields}")
        found.append(view[name])
    return found[0], found[1], found[2]


def _padded(views: list[tuple[Tensor, Tensor, Tensor]]) -> tuple[Tensor, Tensor, Tensor]:
    """Fill up the shorter of N outputs, with class -1."""
    for box, confidence, label in views:
        if box.ndim != 2 or box.shape[-1] != 4 or not len(box) == len(confidence) == len(label):
            raise _misshapen("[n, 4], [n] and [n] for a view", box, confidence, label)
    if not views:
        raise wrong_output(_EXPECTED, "an empty list")
    box, confidence, label = (
        pad_sequence([part.double() for part in parts], batch_first=True, padding_value=-1.0)
        for parts in zip(*views, strict=True)
    )
    return box.float(), confidence.float().masked_fill(label < 0, 0), label


def _misshapen(expected: str, *parts: Tensor) -> ModelError:
    box, confidence, label = (tuple(part.shape) for part in parts)
    return wrong_output(expected, f"boxes {box}, scores {confidence} and labels {label}")


def _most_confident(found: Detections, most: int) -> Detections:
    """Sort by confidence, and cut or fill up to `most` places."""
    lacking = max(0, most - found.label.shape[1])
    box, confidence = pad(found.box, (0, 0, 0, lacking)), pad(found.confidence, (0, lacking))
    label = pad(found.label, (0, lacking), value=-1)
    rank = confidence.argsort(dim=1, descending=True, stable=True)[:, :most]
    box = box.gather(1, rank[..., None].expand(-1, -1, 4))
    return Detections(box, confidence.gather(1, rank), label.gather(1, rank))
