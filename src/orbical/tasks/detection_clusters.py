"""The consensus of detections along an orbit: clusters of un-transformed boxes, and their means.

It is the NERO paper's equation 1 for sets of boxes. The paper averages corners, which presumes one
box for each element. Detections come in sets of any size, so the un-transformed boxes of all
elements are first clustered by class and overlap:

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

from .detection_matching import Detections, iou_of_sides

__all__ = ["Consensus", "detection_consensus"]

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
    pool = _pool_for_clusters(home, view_home, at_border)
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
        parts.append(
            _mean_of_cluster(pool, member, share, kind[:, 0].masked_fill(~there[:, 0], -1))
        )
    joined = [torch.stack(values, 1) for values in zip(*parts, strict=True)]
    return _ordered_clusters(Consensus(*joined), clusters)


class _ClusterPool(NamedTuple):
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


def _pool_for_clusters(home: Detections, view_home: Tensor, at_border: Tensor) -> _ClusterPool:
    """Gather the detections of each sample from all elements."""
    elements, samples, most = home.label.shape
    present = home.present.transpose(0, 1).reshape(samples, -1)
    index, there = _every_place(present) if present.is_cuda else _places_to_cluster(present)

    def taken(values: Tensor) -> Tensor:
        return values.transpose(0, 1).reshape(samples, elements * most).gather(1, index)

    element = index // most
    confidence = taken(home.confidence)
    inner = tuple(~taken(at_border[..., side]) for side in range(4))
    whole = inner[0] & inner[1] & inner[2] & inner[3]
    return _ClusterPool(
        there,
        element,
        taken(home.label),
        confidence,
        confidence + whole.to(confidence.dtype),
        tuple(taken(home.box[..., side]) for side in range(4)),
        tuple(view_home[:, side][element] for side in range(4)),
        inner,
    )


def _places_to_cluster(present: Tensor) -> tuple[Tensor, Tensor]:
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


def _overlap(pool: _ClusterPool, place: Tensor) -> Tensor:
    """Return the IoU with the detection at `place [B, 1]`, on the part that both views show."""
    both = _meet(pool.view, [view.gather(1, place) for view in pool.view])
    leader = _meet([box.gather(1, place) for box in pool.box], both)
    return iou_of_sides(_meet(pool.box, both), leader)


def _meet(first: Sequence[Tensor], second: Sequence[Tensor]) -> list[Tensor]:
    """Return the sides of the intersection of boxes given by their sides."""
    return [
        (torch.maximum if side < 2 else torch.minimum)(first[side], second[side])
        for side in range(4)
    ]


def _mean_of_cluster(
    pool: _ClusterPool, member: Tensor, share: Tensor, kind: Tensor
) -> tuple[Tensor, ...]:
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


def _ordered_clusters(found: Consensus, clusters: int) -> Consensus:
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
