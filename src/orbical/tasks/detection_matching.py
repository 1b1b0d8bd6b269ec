"""Matching detections to objects, and to each other along an orbit.

All functions take any leading dimensions (elements, samples), M detections in decreasing order of
confidence and T objects; none of them loops over samples or elements.

The consensus along an orbit is the NERO paper's equation 1 for sets of boxes. The
paper averages corners, which presumes one box for each element. Detections come in sets of any
size, so the un-transformed boxes of all elements are first clustered by class and overlap:

1. Every detection is moved back by the inverse of its element.
2. Of the detections without a cluster, the most confident that does not touch the border of its
   view (the most confident of all if every one does) starts a new cluster. All free detections of
   its class join it whose IoU with it is at least the threshold, on the part that both views show.
   This repeats until every detection has a cluster, or enough clusters are found.
3. Each element contributes its most confident member to a cluster. The consensus box is the mean of
   these boxes, weighted by confidence and by the element's weight. A side at the border of its view
   may be the end of the view rather than of the object, and is used only if there is no other.
4. The consensus confidence is the mean over the group, an element without a member counting as 0;
   the support is the weight of the elements that have one. Clusters are ordered by consensus
   confidence.

Ties are broken by the order of elements and of detections, so the result is deterministic. Each
round is one pass over all elements and samples of a batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor


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
    return _iou_of_sides(first.unbind(-1), second.unbind(-1))


def _iou_of_sides(first: Sequence[Tensor], second: Sequence[Tensor]) -> Tensor:
    """Return the `iou` of boxes whose four sides are separate arrays, which saves memory."""
    left, top = (torch.maximum(first[side], second[side]) for side in (0, 1))
    right, bottom = (torch.minimum(first[side], second[side]) for side in (2, 3))
    both = _size(left, top, right, bottom)
    either = _size(*first) + _size(*second) - both
    return both / either.clamp_min(torch.finfo(both.dtype).tiny)


def _size(left: Tensor, top: Tensor, right: Tensor, bottom: Tensor) -> Tensor:
    return (right - left).clamp_min_(0) * (bottom - top).clamp_min_(0)


def clipped_boxes(boxes: Tensor, view: Tensor) -> Tensor:
    """Clip boxes `[..., 4]` to a view `[..., 4]`; the result has no area where they do not meet.

    Example:
        >>> clipped_boxes(torch.tensor([-5.0, 2, 4, 30]), torch.tensor([0.0, 0, 10, 10]))
        tensor([ 0.,  2.,  4., 10.])
    """
    low = torch.maximum(boxes[..., :2], view[..., :2])
    high = torch.minimum(boxes[..., 2:], view[..., 2:])
    return torch.cat([low, high], -1)


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
    seen = clipped_boxes(box, view)
    exists = ~kind.isnan()
    share = box_area(seen) / box_area(box).clamp_min(torch.finfo(box.dtype).tiny)
    counted = exists & (share >= LEAST_SEEN)
    overlap = iou(clipped_boxes(found.box, view)[..., :, None, :], seen[..., None, :, :])
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


BORDER = 1.0
"""Pixels from the border of a view within which a side may be that of the view."""


class Consensus(NamedTuple):
    """C clusters of each sample, ordered by confidence, NaN where there are fewer.

    Attributes:
        box: `[B, C, 4]`.
        label: `[B, C]`, the class, NaN where there is no cluster.
        confidence: `[B, C]`, the group's mean confidence.
        support: `[B, C]`, the weight of the elements that have a detection in the cluster.
    """

    box: Tensor
    label: Tensor
    confidence: Tensor
    support: Tensor

    def rows(self) -> Tensor:
        """Return rows `[B, C, 7]`: box, confidence, class and support."""
        rest = [part[..., None] for part in (self.confidence, self.label, self.support)]
        return torch.cat([self.box, *rest], -1)


def detection_consensus(
    home: Detections,
    view_home: Tensor,
    at_border: Tensor,
    weights: Tensor,
    threshold: float,
    clusters: int,
) -> Consensus:
    """Cluster the un-transformed detections `[K, B, M]` of all elements, and average each cluster.

    Args:
        home: un-transformed detections, `[K, B, M, ...]`.
        view_home: `[K, 4]`, the un-transformed view of each element.
        at_border: `[K, B, M, 4]`, sides that lay at the border of their view.
        weights: `[K]`, of the group, summing to 1.
        threshold: the least IoU of a member with its cluster's leader.
        clusters: C, the number of clusters that are kept.

    Returns:
        The clusters of each sample.

    Example:
        >>> box = torch.tensor([[[[0.0, 0, 4, 4]]], [[[0, 0, 4, 6]]]])  # two elements
        >>> home = Detections(box, torch.tensor([[[0.5]], [[1.0]]]), torch.zeros(2, 1, 1).long())
        >>> view = torch.tensor([[0.0, 0, 9, 9]]).expand(2, 4)
        >>> border, weights = torch.zeros(2, 1, 1, 4).bool(), torch.tensor([0.5, 0.5])
        >>> found = detection_consensus(home, view, border, weights, threshold=0.5, clusters=1)
        >>> found.box[0, 0], found.confidence[0, 0]
        (tensor([0.0000, 0.0000, 4.0000, 5.3333]), tensor(0.7500))
    """
    pool = _pooled(home, view_home, at_border)
    share = weights.to(home.confidence.dtype)
    free = pool.present.clone()
    parts: list[tuple[Tensor, ...]] = []
    for _ in range(clusters):
        best, place = torch.where(free, pool.rank, -1.0).max(-1, keepdim=True)
        there = best >= 0
        if parts and _known_to_be_none(there):
            break
        kind = pool.label.gather(1, place)
        member = free & (pool.label == kind) & (_overlap(pool, place) >= threshold)
        member.scatter_(1, place, member.gather(1, place) | there)
        free &= ~member
        parts.append(_mean(pool, member, share, kind[:, 0].masked_fill(~there[:, 0], -1)))
    joined = [torch.stack(values, 1) for values in zip(*parts, strict=True)]
    return _ordered(Consensus(*joined), clusters)


class _Pool(NamedTuple):
    """The P detections of each sample `[B, P]`, by element, then confidence.

    `box`, `view` and `inner` have one such array for each side.
    """

    present: Tensor
    element: Tensor
    label: Tensor
    confidence: Tensor
    rank: Tensor
    box: tuple[Tensor, ...]
    view: tuple[Tensor, ...]
    inner: tuple[Tensor, ...]


def _known_to_be_none(marks: Tensor) -> bool:
    """Check whether no mark is set, without synchronizing with an accelerator.

    There, rounds that find nothing cost less than the check.
    """
    return not marks.is_cuda and not bool(marks.any())


def _pooled(home: Detections, view_home: Tensor, at_border: Tensor) -> _Pool:
    """Gather the detections of each sample from all elements."""
    elements, samples, most = home.label.shape
    present = home.present.transpose(0, 1).reshape(samples, -1)
    index, there = _every_place(present) if present.is_cuda else _held_places(present)

    def taken(values: Tensor) -> Tensor:
        return values.transpose(0, 1).reshape(samples, elements * most).gather(1, index)

    element = index // most
    confidence = taken(home.confidence)
    inner = tuple(~taken(at_border[..., side]) for side in range(4))
    whole = inner[0] & inner[1] & inner[2] & inner[3]
    return _Pool(
        there,
        element,
        taken(home.label),
        confidence,
        confidence + whole.to(confidence.dtype),
        tuple(taken(home.box[..., side]) for side in range(4)),
        tuple(view_home[:, side][element] for side in range(4)),
        inner,
    )


def _held_places(present: Tensor) -> tuple[Tensor, Tensor]:
    """Return the occupied places `[B, P]`, P of the fullest sample, and which are real.

    Most places `present [B, all]` are empty; leaving them out makes every later step smaller.
    """
    count = present.sum(1)
    longest = max(1, int(count.max()))
    row, column = present.nonzero(as_tuple=True)
    nth = (present.cumsum(1) - 1)[row, column]
    index = torch.zeros(len(present), longest, dtype=torch.long, device=present.device)
    index[row, nth] = column
    return index, torch.arange(longest, device=present.device) < count[:, None]


def _every_place(present: Tensor) -> tuple[Tensor, Tensor]:
    """Return all places: counting the occupied ones would synchronize with an accelerator."""
    places = torch.arange(present.shape[1], device=present.device)
    return places.expand_as(present), present


def _overlap(pool: _Pool, place: Tensor) -> Tensor:
    """Return the IoU with the detection at `place [B, 1]`, on the part that both views show."""
    both = _meet(pool.view, [view.gather(1, place) for view in pool.view])
    leader = _meet([box.gather(1, place) for box in pool.box], both)
    return _iou_of_sides(_meet(pool.box, both), leader)


def _meet(first: Sequence[Tensor], second: Sequence[Tensor]) -> list[Tensor]:
    """Return the sides of the intersection of boxes given by their sides."""
    return [
        (torch.maximum if side < 2 else torch.minimum)(first[side], second[side])
        for side in range(4)
    ]


def _mean(pool: _Pool, member: Tensor, share: Tensor, kind: Tensor) -> tuple[Tensor, ...]:
    """Average one cluster of each sample: box `[B, 4]`, label, confidence, support `[B]`."""
    samples, longest = member.shape
    places = torch.arange(longest, device=member.device).expand(samples, -1)
    # The members of an element are in decreasing order of confidence: the first contributes.
    none = places.new_full((samples, len(share)), longest)
    first = none.scatter_reduce(1, pool.element, places.masked_fill(~member, longest), "amin")
    speaks = first < longest
    first = first.clamp_max(longest - 1)
    voice = torch.where(speaks, pool.confidence.gather(1, first), 0.0) * share
    sides = []
    for box, inner in zip(pool.box, pool.inner, strict=True):
        weight = voice * inner.gather(1, first)
        lacking = weight.sum(1, keepdim=True) == 0  # all saw this side at the border
        weight = torch.where(lacking, voice, weight)
        sides.append((weight * box.gather(1, first)).sum(1) / weight.sum(1))
    absent = kind < 0
    return (
        torch.stack(sides, 1).masked_fill(absent[:, None], torch.nan),
        kind.to(voice.dtype).masked_fill(absent, torch.nan),
        voice.sum(1).masked_fill(absent, torch.nan),
        (speaks * share).sum(1).masked_fill(absent, torch.nan),
    )


def _ordered(found: Consensus, clusters: int) -> Consensus:
    """Sort clusters by confidence, absent ones last, and pad to their full number."""
    lacking = clusters - found.label.shape[1]
    padded = [
        torch.cat([part, part.new_full((len(part), lacking, *part.shape[2:]), torch.nan)], 1)
        for part in found
    ]
    rank = padded[2].nan_to_num(-1.0).argsort(dim=1, descending=True, stable=True)
    return Consensus(
        padded[0].gather(1, rank[..., None].expand(-1, -1, 4)),
        *(part.gather(1, rank) for part in padded[1:]),
    )
