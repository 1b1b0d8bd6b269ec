"""The consensus of detections along an orbit (the NERO paper's equation 1 for sets of boxes).

The paper averages corners; that presumes one box an element. Detections come in sets of any size,
so the un-shifted boxes of all elements are first clustered by class and overlap:

1. Every detection is brought home by the inverse of its element.
2. Of the detections in no cluster, the most confident that does not touch the border of its view
   (the most confident at all where every one does) leads a new cluster. To it belong all free
   detections of its class whose IoU with it is at least the threshold; compared is only what both
   their views show. This repeats until all have a cluster, or there are as many as are kept.
3. Each element has one voice in a cluster, its most confident member. The consensus box is the mean
   of these boxes, weighted by confidence and by the element's weight; a side at the border of its
   view may be the view's end rather than the object's and has no voice where another side has.
4. The consensus confidence is the group's mean of the voices' confidence, an element without one
   counting as 0 (it is missing, never a box at zero), the support the weight of those that have
   one. Clusters are ordered by consensus confidence.

Ties are broken by the order of elements and of detections, so the result is deterministic. Each
round is one pass over all elements and samples of a batch.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from .boxes import iou_of_sides
from .detection_matching import Detections

BORDER = 1.0
"""Pixels from the border of a view within which a side may be the view's own."""


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
        """Put box, confidence, class and support side by side, `[B, C, 7]`."""
        rest = [part[..., None] for part in (self.confidence, self.label, self.support)]
        return torch.cat([self.box, *rest], -1)


def consensus_of(
    home: Detections,
    view_home: Tensor,
    at_border: Tensor,
    weights: Tensor,
    threshold: float,
    clusters: int,
) -> Consensus:
    """Cluster the un-shifted detections `[K, B, M]` of all elements, and average each cluster.

    Args:
        home: detections brought home, `[K, B, M, ...]`.
        view_home: `[K, 4]`, the view of each element brought home.
        at_border: `[K, B, M, 4]`, sides that lay at the border of their view.
        weights: `[K]`, of the group, summing to 1.
        threshold: the least IoU of a member with its cluster's leader.
        clusters: C, the number of clusters that are kept.

    >>> box = torch.tensor([[[[0.0, 0, 4, 4]]], [[[0, 0, 4, 6]]]])     # two elements, one detection
    >>> home = Detections(box, torch.tensor([[[0.5]], [[1.0]]]), torch.zeros(2, 1, 1).long())
    >>> view = torch.tensor([[0.0, 0, 9, 9]]).expand(2, 4)
    >>> found = consensus_of(home, view, torch.zeros(2, 1, 1, 4).bool(), torch.tensor([0.5, 0.5]),
    ...                      0.5, 1)
    >>> found.box[0, 0], found.confidence[0, 0]
    (tensor([0.0000, 0.0000, 4.0000, 5.3333]), tensor(0.7500))
    """
    pool = _pooled(home, view_home, at_border)
    share = weights.to(home.confidence.dtype)
    free = pool.present.clone()
    parts = []
    for _ in range(clusters):
        best, place = torch.where(free, pool.rank, -1.0).max(-1, keepdim=True)
        there = best >= 0
        if _known_to_be_none(there):
            break
        kind = pool.label.gather(1, place)
        member = free & (pool.label == kind) & (_overlap(pool, place) >= threshold)
        member.scatter_(1, place, member.gather(1, place) | there)
        free &= ~member
        parts.append(_mean(pool, member, share, kind[:, 0].masked_fill(~there[:, 0], -1)))
    if not parts:
        parts.append(_nothing(home.label.shape[1], home))
    joined = [torch.stack(values, 1) for values in zip(*parts, strict=True)]
    return _ordered(Consensus(*joined), clusters)


class _Pool(NamedTuple):
    """The P detections of each sample side by side, `[B, P]` each, by element, then confidence.

    `box`, `view` and `inner` hold one such array for each side.
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
    """Whether no mark is set, as far as it can be known without waiting for an accelerator.

    There, rounds that find nothing cost less than to ask whether there is something to find.
    """
    return not marks.is_cuda and not bool(marks.any())


def _pooled(home: Detections, view_home: Tensor, at_border: Tensor) -> _Pool:
    """Put the detections of each sample side by side."""
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
    """Give the places `[B, P]` that hold a detection, P of the fullest sample, and which are those.

    Most places `present [B, all]` hold none; leaving them out makes every later step smaller.
    """
    count = present.sum(1)
    longest = max(1, int(count.max()))
    row, column = present.nonzero(as_tuple=True)
    nth = (present.cumsum(1) - 1)[row, column]
    index = torch.zeros(len(present), longest, dtype=torch.long, device=present.device)
    index[row, nth] = column
    return index, torch.arange(longest, device=present.device) < count[:, None]


def _every_place(present: Tensor) -> tuple[Tensor, Tensor]:
    """Give all places: an accelerator is wide, and how many hold a detection it had to be asked."""
    places = torch.arange(present.shape[1], device=present.device)
    return places.expand_as(present), present


def _overlap(pool: _Pool, place: Tensor) -> Tensor:
    """Give the IoU of all detections with the one at `place [B, 1]`, where both views show them."""
    both = [torch.maximum(view, view.gather(1, place)) for view in pool.view[:2]]
    both += [torch.minimum(view, view.gather(1, place)) for view in pool.view[2:]]
    first = [torch.maximum(box, edge) for box, edge in zip(pool.box[:2], both[:2], strict=True)]
    first += [torch.minimum(box, edge) for box, edge in zip(pool.box[2:], both[2:], strict=True)]
    leader = [box.gather(1, place) for box in pool.box]
    second = [torch.maximum(box, edge) for box, edge in zip(leader[:2], both[:2], strict=True)]
    second += [torch.minimum(box, edge) for box, edge in zip(leader[2:], both[2:], strict=True)]
    return iou_of_sides(first, second)


def _mean(pool: _Pool, member: Tensor, share: Tensor, kind: Tensor) -> tuple[Tensor, ...]:
    """Average one cluster of each sample, one voice an element: to `[B, 4]`, and `[B]` thrice."""
    samples, longest = member.shape
    places = torch.arange(longest, device=member.device).expand(samples, -1)
    # Members of an element stand in falling order of confidence: the first of them speaks.
    none = places.new_full((samples, len(share)), longest)
    first = none.scatter_reduce(1, pool.element, places.masked_fill(~member, longest), "amin")
    speaks = first < longest
    first = first.clamp_max(longest - 1)
    voice = torch.where(speaks, pool.confidence.gather(1, first), 0.0) * share
    sides = []
    for box, inner in zip(pool.box, pool.inner, strict=True):
        weight = voice * inner.gather(1, first)
        lacking = weight.sum(1, keepdim=True) == 0  # every voice saw this side at the border
        weight = torch.where(lacking, voice, weight)
        sides.append((weight * box.gather(1, first)).sum(1) / weight.sum(1))
    absent = kind < 0
    return (
        torch.stack(sides, 1).masked_fill(absent[:, None], torch.nan),
        kind.to(voice.dtype).masked_fill(absent, torch.nan),
        voice.sum(1).masked_fill(absent, torch.nan),
        (speaks * share).sum(1).masked_fill(absent, torch.nan),
    )


def _nothing(samples: int, like: Detections) -> tuple[Tensor, ...]:
    empty = like.box.new_full((samples,), torch.nan)
    return (like.box.new_full((samples, 4), torch.nan), empty, empty, empty)


def _ordered(found: Consensus, clusters: int) -> Consensus:
    """Sort clusters by confidence, those that are absent last, and pad to their full number."""
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
