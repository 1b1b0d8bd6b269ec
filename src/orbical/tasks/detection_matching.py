"""Matching detections to objects: overlaps, the match of one object, and scores of them all.

All functions take any leading dimensions (elements, samples), M detections in decreasing order of
confidence and T objects; none of them loops over samples or elements.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

__all__ = [
    "Detections", "Pairing", "average_precision", "detection_pairs", "detection_scores",
    "greedy_matches", "key_match", "top_detection",
]  # fmt: skip


def box_area(boxes: Tensor) -> Tensor:
    """Return the areas `[...]` of boxes `[..., 4]`; 0 without width or height.

    Example:
        >>> box_area(torch.tensor([[0.0, 0, 2, 3], [5, 5, 4, 9]]))
        tensor([6., 0.])
    """
    return _size(*boxes.unbind(-1))


def inverted_detection_boxes(boxes: Tensor) -> Tensor:
    """Mark the boxes `[..., 4]` with left > right or top > bottom.

    Example:
        >>> inverted_detection_boxes(torch.tensor([[0.0, 0, 2, 3], [5, 5, 4, 9]]))
        tensor([False,  True])
    """
    return (boxes[..., :2] > boxes[..., 2:]).any(-1)


def iou(first: Tensor, second: Tensor) -> Tensor:
    """Return the intersection over union of boxes that broadcast against each other.

        IoU(a, b) = |a and b| / |a or b|, and 0 where both are empty

    Args:
        first: `[..., 4]`.
        second: `[..., 4]`; `iou(a[..., :, None, :], b[..., None, :, :])` gives all pairs.

    Example:
        >>> iou(torch.tensor([0.0, 0, 2, 2]), torch.tensor([[1.0, 0, 3, 2], [8, 8, 9, 9]]))
        tensor([0.3333, 0.0000])
    """
    return iou_of_sides(first.unbind(-1), second.unbind(-1))


def iou_of_sides(first: Sequence[Tensor], second: Sequence[Tensor]) -> Tensor:
    """Return the `iou` of boxes whose four sides are separate arrays, which saves memory."""
    left, top = (torch.maximum(first[side], second[side]) for side in (0, 1))
    right, bottom = (torch.minimum(first[side], second[side]) for side in (2, 3))
    both = _size(left, top, right, bottom)
    either = _size(*first) + _size(*second) - both
    return both / either.clamp_min(torch.finfo(both.dtype).tiny)


def _size(left: Tensor, top: Tensor, right: Tensor, bottom: Tensor) -> Tensor:
    return (right - left).clamp_min_(0) * (bottom - top).clamp_min_(0)


def clipped_detection_boxes(boxes: Tensor, view: Tensor) -> Tensor:
    """Clip boxes `[..., 4]` to a view `[..., 4]`; the result has no area where they do not meet.

    Example:
        >>> clipped_detection_boxes(torch.tensor([-5.0, 2, 4, 30]), torch.tensor([0.0, 0, 10, 10]))
        tensor([ 0.,  2.,  4., 10.])
    """
    low = torch.maximum(boxes[..., :2], view[..., :2])
    high = torch.minimum(boxes[..., 2:], view[..., 2:])
    return torch.cat([low, high], -1)


def visible_area(boxes: Tensor, view: Tensor) -> Tensor:
    """Return the areas `[...]` of the parts of boxes `[..., 4]` inside a view `[4]`."""
    return box_area(clipped_detection_boxes(boxes, view))


LEAST_SEEN = 0.25
"""Share of an object's area that must lie in the view for it to count."""


class Detections(NamedTuple):
    """M boxes in decreasing order of confidence; `label` -1 marks an empty place.

    Attributes:
        box: `[..., M, 4]`, left, top, right, bottom in pixels of the view.
        confidence: `[..., M]` in 0 .. 1, 0 where there is no detection.
        label: `[..., M]`, the class, -1 where there is no detection.
    """

    box: Tensor
    confidence: Tensor
    label: Tensor

    @classmethod
    def of(cls, rows: Tensor) -> Detections:
        """Make detections from rows `[..., M, 6]`: box, confidence, class."""
        return cls(rows[..., :4], rows[..., 4], rows[..., 5])

    def rows(self) -> Tensor:
        """Return rows `[..., M, 6]`: box, confidence, class."""
        rest = [self.confidence[..., None], self.label[..., None].to(self.box.dtype)]
        return torch.cat([self.box, *rest], -1)

    @property
    def present(self) -> Tensor:
        """Whether each of the M places holds a detection, `[..., M]`."""
        return self.label >= 0

    def without(self, removed: Tensor) -> Detections:
        """Return the detections with the marked places `[..., M]` emptied."""
        return Detections(
            self.box.masked_fill(removed[..., None], 0),
            self.confidence.masked_fill(removed, 0),
            self.label.masked_fill(removed, -1),
        )


class Pairing(NamedTuple):
    """The overlap of detections with objects, on the parts inside the view.

    Attributes:
        overlap: `[..., M, T]`, IoU of detections and objects of the same class, otherwise 0.
        counted: `[..., T]`, objects that exist and are visible enough to be found.
        key_seen: `[...]`, whether the first object is one of them.
    """

    overlap: Tensor
    counted: Tensor
    key_seen: Tensor


def detection_pairs(found: Detections, objects: Tensor, view: Tensor) -> Pairing:
    """Measure the overlap of every detection with every object of its class.

    Only the parts inside the view are compared: a detector that ends its boxes at the border and
    one that extends them beyond it are scored alike.

    Args:
        found: M detections.
        objects: `[..., T, 5]`, box and class, NaN where there is none; the first is the key object.
        view: `[4]`, left, top, right, bottom.

    Returns:
        The pairing.
    """
    box, kind = objects[..., :4], objects[..., 4]
    seen = clipped_detection_boxes(box, view)
    exists = ~kind.isnan()
    share = box_area(seen) / box_area(box).clamp_min(torch.finfo(box.dtype).tiny)
    counted = exists & (share >= LEAST_SEEN)
    overlap = iou(clipped_detection_boxes(found.box, view)[..., :, None, :], seen[..., None, :, :])
    same = found.label[..., :, None] == kind[..., None, :]  # an absent one is -1 or NaN: no class
    return Pairing(overlap.masked_fill(~same, 0), counted, counted[..., 0])


def key_match(found: Detections, pairing: Pairing) -> tuple[Tensor, Tensor]:
    """Return IoU and confidence `[...]` of the key object's match, both 0 where it is missed.

    The match is the detection of the right class with the largest IoU x confidence. Both are NaN
    where the key object is out of view.

    Args:
        found: M detections.
        pairing: from `detection_pairs`.

    Returns:
        IoU and confidence.
    """
    overlap = pairing.overlap[..., 0]
    product = overlap * found.confidence
    best = product.argmax(-1, keepdim=True)
    hit = product.gather(-1, best)[..., 0] > 0
    matched, confidence = (
        part.gather(-1, best)[..., 0].masked_fill(~hit, 0).masked_fill(~pairing.key_seen, torch.nan)
        for part in (overlap, found.confidence)
    )
    return matched, confidence


def key_measures(found: Detections, pairing: Pairing) -> dict[str, Tensor]:
    """Return what `[...]` is measured of the key object's match, and of the top detection."""
    overlap, sure = key_match(found, pairing)
    first = pairing.overlap[..., 0, 0].masked_fill(~pairing.key_seen, torch.nan)
    of_match = {"iou": overlap, "match_confidence": sure, "iou_confidence": overlap * sure}
    return of_match | {"top_iou": first}


def greedy_matches(found: Detections, pairing: Pairing, threshold: float) -> tuple[Tensor, Tensor]:
    """Match detections to objects, the most confident first, each object once.

    A detection takes the free object of its class with the largest IoU, if that is at least
    `threshold`. One that overlaps only objects that are hardly visible counts neither as right nor
    as wrong.

    Args:
        found: M detections in decreasing order of confidence.
        pairing: from `detection_pairs`.
        threshold: the least IoU of a match.

    Returns:
        `correct [..., M]` and `judged [..., M]`: which detections are right, and which count.

    Example:
        >>> two = Detections(torch.tensor([[0.0, 0, 4, 4], [0, 0, 4, 5]]), torch.tensor([0.9, 0.8]),
        ...                  torch.tensor([1, 1]))
        >>> one = torch.tensor([[0.0, 0, 4, 4, 1]])
        >>> pairing = detection_pairs(two, one, torch.tensor([0.0, 0, 9, 9]))
        >>> correct, judged = greedy_matches(two, pairing, 0.5)
        >>> correct.tolist()    # the object is taken by the first
        [True, False]
    """
    free = pairing.counted.clone()
    correct = []
    for rank in range(found.label.shape[-1]):
        candidates = torch.where(free, pairing.overlap[..., rank, :], -1.0)
        best, which = candidates.max(-1, keepdim=True)
        hit = best >= max(threshold, torch.finfo(best.dtype).tiny)
        correct.append(hit[..., 0])
        free = free.scatter(-1, which, free.gather(-1, which) & ~hit)
    right = torch.stack(correct, -1) & found.present
    barely = (pairing.overlap >= max(threshold, 1e-6)) & ~pairing.counted[..., None, :]
    return right, found.present & (right | ~barely.any(-1))


def top_detection(
    found: Detections, correct: Tensor, judged: Tensor, counted: Tensor
) -> tuple[Tensor, Tensor]:
    """Return confidence and correctness `[...]` of the most confident detection that is judged.

    Where there is none, the confidence is NaN, and the correctness 0 if there was an object to
    find, NaN otherwise.

    Args:
        found: M detections in decreasing order of confidence.
        correct: `[..., M]`, from `greedy_matches`.
        judged: `[..., M]`, from `greedy_matches`.
        counted: `[..., T]`, the objects to be found.

    Returns:
        Confidence and correctness.
    """
    first = judged.int().argmax(-1, keepdim=True)
    none = ~judged.any(-1)
    sure = found.confidence.gather(-1, first)[..., 0].masked_fill(none, torch.nan)
    right = correct.gather(-1, first)[..., 0].to(sure.dtype)
    return sure, right.masked_fill(none & ~counted.any(-1), torch.nan)


def average_precision(confidence: Tensor, correct: Tensor, objects: Tensor) -> Tensor:
    """Return the average precision of detections ranked by confidence.

        AP = 1/T sum over right detections i of max over j at or after i of precision(j)

    the area under the precision-recall curve, interpolated at all points.

    Args:
        confidence: `[..., D]`, NaN where there is no detection.
        correct: `[..., D]`, whether each is right.
        objects: `[...]`, the number of objects; 0 gives NaN.

    Returns:
        The average precision `[...]`.

    Example:
        >>> ranked = torch.tensor([0.9, 0.8, 0.7])
        >>> average_precision(ranked, torch.tensor([1, 0, 1]), torch.tensor(2))
        tensor(0.8333)
    """
    missing = confidence.isnan()
    order = confidence.masked_fill(missing, -torch.inf).argsort(
        dim=-1, descending=True, stable=True
    )
    right = (correct.bool() & ~missing).gather(-1, order).float()
    judged = (~missing).gather(-1, order).float()
    precision = right.cumsum(-1) / judged.cumsum(-1).clamp_min(1)
    envelope = precision.flip(-1).cummax(-1).values.flip(-1)
    total = (envelope * right).sum(-1)
    return total / torch.as_tensor(objects, device=total.device)


def detection_scores(
    found: Detections, correct: Tensor, judged: Tensor, counted: Tensor, confident: float
) -> dict[str, Tensor]:
    """Return precision, recall and F1 of confident detections, and AP of all, `[...]` each.

    Precision is 0 without a confident detection; all four are NaN without an object in view.

    Args:
        found: M detections.
        correct: `[..., M]`, from `greedy_matches`.
        judged: `[..., M]`, from `greedy_matches`.
        counted: `[..., T]`, the objects to be found.
        confident: the least confidence that counts for precision, recall and F1.

    Returns:
        The four scores by name: precision, recall, f1 and ap.
    """
    sure = judged & (found.confidence >= confident)
    right = (correct & sure).sum(-1).float()
    answered = sure.sum(-1).float()
    objects = counted.sum(-1).float()
    nothing = objects == 0
    ranked = found.confidence.masked_fill(~judged, torch.nan)
    return {
        "precision": (right / answered.clamp_min(1)).masked_fill(nothing, torch.nan),
        "recall": right / objects,
        "f1": (2 * right / (answered + objects)).masked_fill(nothing, torch.nan),
        "ap": average_precision(ranked, correct, objects),
    }


def detection_set_measures(
    found: Detections, pairing: Pairing, threshold: float, confident: float
) -> dict[str, Tensor]:
    """Return what `[...]` is measured of all detections, of which `box_correct` is `[..., M]`."""
    correct, judged = greedy_matches(found, pairing, threshold)
    sure, right = top_detection(found, correct, judged, pairing.counted)
    return {
        **detection_scores(found, correct, judged, pairing.counted, confident),
        "box_correct": correct.float().masked_fill(~judged, torch.nan),
        "confidence": sure,
        "correct": right,
    }
