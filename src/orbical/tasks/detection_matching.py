"""Detections against objects: one key object, and the whole set by greedy matching.

All functions take any leading dimensions (elements, samples), M detections in falling order of
confidence and T objects; none of them loops over samples or elements.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from .boxes import area, cut, iou

LEAST_SEEN = 0.25
"""Share of an object's area that must lie in the view for it to count."""


class Detections(NamedTuple):
    """What a detector answers: M boxes in falling order of confidence; `label` -1 is no detection.

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
        """Take them from rows `[..., M, 6]`: box, confidence, class."""
        return cls(rows[..., :4], rows[..., 4], rows[..., 5])

    def rows(self) -> Tensor:
        """Put them side by side, `[..., M, 6]`."""
        rest = [self.confidence[..., None], self.label[..., None].to(self.box.dtype)]
        return torch.cat([self.box, *rest], -1)

    @property
    def present(self) -> Tensor:
        """Which of the M places hold a detection, `[..., M]`."""
        return self.label >= 0


class Pairing(NamedTuple):
    """How detections meet objects, on the parts that the view shows.

    Attributes:
        overlap: `[..., M, T]`, IoU of detections and objects of the same class, otherwise 0.
        counted: `[..., T]`, objects that are there and seen well enough to be found.
        key_seen: `[...]`, whether the first object is one of them.
    """

    overlap: Tensor
    counted: Tensor
    key_seen: Tensor


class Scores(NamedTuple):
    """What a matching says of each view, `[...]` each; see `Matching`."""

    precision: Tensor
    recall: Tensor
    f1: Tensor
    ap: Tensor


def pair(found: Detections, objects: Tensor, view: Tensor) -> Pairing:
    """Measure the overlap of every detection with every object of its class.

    Only what the view shows is compared: a detector that ends its boxes at the border and one that
    guesses what lies beyond are judged alike.

    Args:
        found: M detections.
        objects: `[..., T, 5]`, box and class, NaN where there is none; the first is the key object.
        view: `[4]`.
    """
    box, kind = objects[..., :4], objects[..., 4]
    seen = cut(box, view)
    exists = ~kind.isnan()
    share = area(seen) / area(box).clamp_min(torch.finfo(box.dtype).tiny)
    counted = exists & (share >= LEAST_SEEN)
    overlap = iou(cut(found.box, view)[..., :, None, :], seen[..., None, :, :])
    same = found.label[..., :, None] == kind[..., None, :]  # an absent one is -1 or NaN: no class
    overlap = torch.where(same, overlap, torch.zeros((), dtype=overlap.dtype, device=box.device))
    return Pairing(overlap, counted, counted[..., 0])


def key_match(found: Detections, pairing: Pairing) -> tuple[Tensor, Tensor]:
    """Give IoU and confidence `[...]` of the key object's match, both 0 where it is missed.

    The match is the detection of the right class with the largest IoU x confidence. Where the key
    object itself is out of view, both are NaN: nothing could be found there.
    """
    overlap = pairing.overlap[..., 0]
    product = overlap * found.confidence
    best = product.argmax(-1, keepdim=True)
    hit = product.gather(-1, best)[..., 0] > 0
    values = [part.gather(-1, best)[..., 0] for part in (overlap, found.confidence)]
    zero = torch.zeros_like(values[0])
    iou_, confidence = (torch.where(hit, value, zero) for value in values)
    return (
        iou_.masked_fill(~pairing.key_seen, torch.nan),
        confidence.masked_fill(~pairing.key_seen, torch.nan),
    )


def greedy(found: Detections, pairing: Pairing, threshold: float) -> tuple[Tensor, Tensor]:
    """Match detections to objects, the most confident first, each object once.

    A detection takes the free object of its class with the largest IoU, if that is at least
    `threshold`. One that meets only objects that hardly show in the view is neither right nor
    wrong.

    Args:
        found: M detections in falling order of confidence.
        pairing: from `pair`.
        threshold: the least IoU of a match.

    Returns:
        `correct [..., M]` and `judged [..., M]`: detections that are right, and those that count.

    >>> two = Detections(torch.tensor([[0.0, 0, 4, 4], [0, 0, 4, 5]]), torch.tensor([0.9, 0.8]),
    ...                  torch.tensor([1, 1]))
    >>> one = torch.tensor([[0.0, 0, 4, 4, 1]])
    >>> correct, judged = greedy(two, pair(two, one, torch.tensor([0.0, 0, 9, 9])), 0.5)
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


def most_confident(
    found: Detections, correct: Tensor, judged: Tensor, counted: Tensor
) -> tuple[Tensor, Tensor]:
    """Give confidence and correctness `[...]` of the most confident detection that is judged.

    Where none is, the confidence is NaN, and correctness 0 if there was an object to find, NaN if
    there was none.

    Args:
        found: M detections in falling order of confidence.
        correct: `[..., M]`, from `greedy`.
        judged: `[..., M]`, from `greedy`.
        counted: `[..., T]`, the objects to be found.
    """
    first = judged.int().argmax(-1, keepdim=True)
    none = ~judged.any(-1)
    sure = found.confidence.gather(-1, first)[..., 0].masked_fill(none, torch.nan)
    right = correct.gather(-1, first)[..., 0].to(sure.dtype)
    return sure, right.masked_fill(none & ~counted.any(-1), torch.nan)


def average_precision(confidence: Tensor, correct: Tensor, objects: Tensor) -> Tensor:
    """Compute the average precision of detections ranked by confidence.

        AP = 1/T sum over right detections i of max over j at or after i of precision(j)

    the area under the precision-recall curve with all points interpolated, as usual.

    Args:
        confidence: `[..., D]`, NaN where there is no detection.
        correct: `[..., D]`, whether each is right.
        objects: `[...]`, how many there were to find; 0 gives NaN.

    Returns:
        `[...]`.

    Example:
        >>> right = torch.tensor([1, 0, 1])
        >>> average_precision(torch.tensor([0.9, 0.8, 0.7]), right, torch.tensor(2))
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


def set_scores(
    found: Detections, correct: Tensor, judged: Tensor, counted: Tensor, confident: float
) -> Scores:
    """Give precision, recall and F1 of confident detections, and AP of all, `[...]` each.

    Without a confident detection precision is 0; without an object in view all four are NaN.

    Args:
        found: M detections.
        correct: `[..., M]`, from `greedy`.
        judged: `[..., M]`, from `greedy`.
        counted: `[..., T]`, the objects to be found.
        confident: the confidence from which a detection counts for precision, recall and F1.
    """
    sure = judged & (found.confidence >= confident)
    right = (correct & sure).sum(-1).float()
    answered = sure.sum(-1).float()
    objects = counted.sum(-1).float()
    nothing = objects == 0
    precision = (right / answered.clamp_min(1)).masked_fill(nothing, torch.nan)
    recall = right / objects
    f1 = 2 * right / (answered + objects)
    ranked = found.confidence.masked_fill(~judged, torch.nan)
    ap = average_precision(ranked, correct, objects)
    return Scores(precision, recall, f1.masked_fill(nothing, torch.nan), ap)
