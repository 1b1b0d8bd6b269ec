"""What detectors answer, in the three forms in use, as detections of equal number."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from ..errors import ModelError
from .base import described, is_real, single_or_double
from .boxes import turned
from .detection_matching import Detections

_NAMES = {
    "box": ("boxes", "box"),
    "confidence": ("scores", "confidence", "confidences"),
    "label": ("labels", "label", "classes"),
}
_EXPECTED = (
    "expected [view, detection, 6] (left, top, right, bottom, confidence, class), a dictionary of "
    "boxes [view, detection, 4], scores and labels [view, detection], or a list of one such "
    "dictionary a view; say with read= how to take them from the raw output"
)


def read_detections(given: Any, most: int) -> Detections:
    """Read the `most` most confident detections of N views, `[N, most, ...]`.

    Args:
        given: a tensor `[N, n, 6]`, a dictionary of tensors, or a list of N dictionaries whose
            numbers of boxes differ.
        most: how many to keep; fewer are filled up by places without a detection (class -1).

    >>> view = {"boxes": torch.tensor([[0.0, 0, 4, 4]]), "scores": torch.tensor([0.9]),
    ...         "labels": torch.tensor([2])}
    >>> nothing = {"boxes": torch.zeros(0, 4), "scores": torch.zeros(0), "labels": torch.zeros(0)}
    >>> read_detections([view, nothing], 2).label
    tensor([[ 2., -1.],
            [-1., -1.]])
    """
    box, confidence, label = _parts(given)
    box, confidence, label = (
        single_or_double(box),
        single_or_double(confidence),
        label.to(box.dtype),
    )
    absent = (label < 0) | (confidence == 0)
    # What no detector may say is left to be found by `faults`, in front: a class that is no number
    # as NaN, a confidence below 0 as infinite. To look here would wait for an accelerator.
    confidence = torch.where(label.isfinite(), confidence, torch.nan)
    confidence = confidence.masked_fill(confidence < 0, torch.inf)
    found = Detections(
        box.masked_fill(absent[..., None], 0),
        confidence.masked_fill(absent, 0),
        label.round().masked_fill(absent, -1),
    )
    return _most_confident(found, most)


def faults_in(found: Detections) -> dict[str, Tensor]:
    """Mark views `[...]` of detections `[..., M]` that cannot be used, by what is wrong.

    >>> found = Detections(torch.tensor([[9.0, 0, 2, 4]]), torch.tensor([0.5]), torch.tensor([1]))
    >>> [words for words, marks in faults_in(found).items() if marks]
    ['a box whose left > right or top > bottom']
    """
    return {
        "a confidence outside 0 .. 1": (found.confidence > 1 + 1e-6).any(-1),
        "a box whose left > right or top > bottom": turned(found.box).any(-1),
    }


def _parts(given: Any) -> tuple[Tensor, Tensor, Tensor]:
    if isinstance(given, Mapping):
        box, confidence, label = _fields(given)
        shapes = box.ndim == 3 and box.shape[-1] == 4
        if not shapes or confidence.shape != box.shape[:2] or label.shape != box.shape[:2]:
            raise ModelError(
                f"model output: boxes {tuple(box.shape)}, scores {tuple(confidence.shape)} and "
                f"labels {tuple(label.shape)} given; {_EXPECTED}"
            )
        return box, confidence, label
    if isinstance(given, Sequence) and all(isinstance(view, Mapping) for view in given):
        return _padded([_fields(view) for view in given])
    if not is_real(given) or given.ndim != 3 or given.shape[-1] != 6:
        raise ModelError(f"model output: {described(given)} given; {_EXPECTED}")
    return given[..., :4], given[..., 4], given[..., 5]


def _fields(view: Mapping[str, Any]) -> tuple[Tensor, Tensor, Tensor]:
    found = []
    for names in _NAMES.values():
        name = next((name for name in names if name in view), None)
        if name is None or not isinstance(view[name], Tensor):
            raise ModelError(
                f"model output: a dictionary with {sorted(map(str, view))} given; {_EXPECTED}"
            )
        found.append(view[name])
    return found[0], found[1], found[2]


def _padded(views: list[tuple[Tensor, Tensor, Tensor]]) -> tuple[Tensor, Tensor, Tensor]:
    """Fill up the shorter of N answers, with class -1."""
    for box, confidence, label in views:
        if box.ndim != 2 or box.shape[-1] != 4 or not len(box) == len(confidence) == len(label):
            raise ModelError(
                f"model output: boxes {tuple(box.shape)}, scores {tuple(confidence.shape)} and "
                f"labels {tuple(label.shape)} given for one view; [n, 4], [n] and [n] expected"
            )
    if not views:
        raise ModelError(f"model output: an empty list given; {_EXPECTED}")
    box, confidence, label = (
        pad_sequence([part.double() for part in parts], batch_first=True, padding_value=-1.0)
        for parts in zip(*views, strict=True)
    )
    return box.float(), confidence.float().masked_fill(label < 0, 0), label


def _most_confident(found: Detections, most: int) -> Detections:
    lacking = most - found.label.shape[1]
    if lacking > 0:
        rows = len(found.label)
        found = Detections(
            torch.cat([found.box, found.box.new_zeros(rows, lacking, 4)], 1),
            torch.cat([found.confidence, found.confidence.new_zeros(rows, lacking)], 1),
            torch.cat([found.label, found.label.new_full((rows, lacking), -1)], 1),
        )
    if found.label.shape[1] == most and _falls(found.confidence):
        return found
    rank = found.confidence.argsort(dim=1, descending=True, stable=True)[:, :most]
    return Detections(
        found.box.gather(1, rank[..., None].expand(-1, -1, 4)),
        found.confidence.gather(1, rank),
        found.label.gather(1, rank),
    )


def _falls(values: Tensor) -> bool:
    """Whether each row `[N, n]` is known to fall already, as detectors mostly answer.

    On an accelerator sorting is cheaper than to wait for the answer.
    """
    return not values.is_cuda and bool((values[:, 1:] <= values[:, :-1]).all())
