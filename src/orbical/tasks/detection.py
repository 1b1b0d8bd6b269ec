"""Detection: boxes with class and confidence around the objects in a field of view."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from .._trees import Tree
from ..actions import Boxes, Window
from ..errors import InputError, unknown_name
from ..groups import Elements, Group
from .base import Reader, Task, Variable, as_truth, class_names
from .boxes import area, cut, iou, turned
from .detection_consensus import BORDER, Consensus, consensus_of
from .detection_matching import (
    Detections,
    Pairing,
    greedy,
    key_match,
    most_confident,
    pair,
    set_scores,
)
from .detection_reading import faults_in, read_detections

MEASURES = {
    "iou": "IoU of the key object's match",
    "match_confidence": "confidence of the key object's match",
    "iou_confidence": "IoU x confidence of the key object's match",
    "precision": "share of the confident detections that are right",
    "recall": "share of the objects in view that are found",
    "f1": "harmonic mean of precision and recall",
    "ap": "average precision of the detections in the view",
}
HALF = 0.5
"""Support from which a cluster counts as an object of the consensus."""


class Detection(Task):
    """Where is what? Input is a field of view that moves inside larger images; boxes move along.

    A model answers, for each of N views, detections in pixels of the view: a tensor `[N, n, 6]`
    (left, top, right, bottom, confidence, class), a dictionary of `boxes [N, n, 4]`, `scores` and
    `labels [N, n]`, or a list of N such dictionaries of any length each. A place with class -1 or
    confidence 0 holds no detection; NaN is an error. The `most` most confident are kept.

    The truth is `[N, T, 5]`: left, top, right, bottom and class in pixels of the un-moved view
    (what the model sees at the identity), NaN where a sample has fewer than T objects. The first
    is the key object, around which the view is centered; objects may lie outside the view and
    enter it.

    Only what the view shows is compared, and an object that shows less than a quarter is neither
    missed nor found. The key object's match is the detection of its class with the largest IoU x
    confidence; missed, it has IoU and confidence 0, and no box. Precision, recall and F1 are those
    of the greedy matching by confidence at `threshold`, of detections with confidence of at least
    `confident`; AP ranks all. The score is one of these, chosen by name. The consensus is explained
    in `orbical.tasks.detection_consensus`; against it, the key object is its most confident
    cluster, and the objects are the clusters that at least half of the orbit sees.

    Args:
        input: the action on inputs, `Window(128)` where not given.
        score: `iou`, `match_confidence`, `iou_confidence`, `precision`, `recall`, `f1` or `ap`.
        threshold: the least IoU of a match.
        confident: the least confidence of a detection that counts for precision, recall and F1.
        most: detections kept for each view.
        size: height and width of what the model sees; known where the input is a `Window`.
        classes: the names of the classes, in the order of their indices, for display.
        read: takes detections from a raw output.

    >>> import orbical as ob
    >>> ob.tasks.Detection(ob.actions.Window(64), score="iou")
    Detection(score='iou', threshold=0.5)
    """

    name: ClassVar[str] = "detection"
    higher_is_better: ClassVar[bool] = True
    score_unit: ClassVar[str] = "share"
    truth_name: ClassVar[str] = "objects"
    input_view: ClassVar[str] = "window"
    detail_view: ClassVar[str] = "boxes"

    def __init__(
        self,
        input: Any = None,
        score: str = "iou_confidence",
        threshold: float = 0.5,
        confident: float = 0.5,
        most: int = 10,
        size: Sequence[int] | None = None,
        classes: Sequence[str] | None = None,
        read: Reader | None = None,
    ) -> None:
        window = Window(128) if input is None else input
        if size is None and not isinstance(window, Window):
            raise InputError(
                f"size: not given, and the input {type(window).__name__} does not tell; the height "
                "and width of what the model sees expected"
            )
        if score not in MEASURES:
            raise unknown_name("score", score, MEASURES)
        for name, value in (("threshold", threshold), ("confident", confident)):
            if not isinstance(value, numbers.Real) or not 0 <= value <= 1:
                raise InputError(f"{name}: {value!r} given, a number from 0 to 1 expected")
        if isinstance(most, bool) or not isinstance(most, int) or most < 1:
            raise InputError(f"most: {most!r} given, a whole number >= 1 expected")
        height, width = (window.size, window.size) if size is None else _two_sides(size)
        super().__init__(window, Boxes(height, width), read)
        self.chosen = score
        self.threshold = float(threshold)
        self.confident = float(confident)
        self.most = most
        self.size = (height, width)
        self.classes = class_names(classes)

    def __repr__(self) -> str:
        return f"Detection(score={self.chosen!r}, threshold={self.threshold:g})"

    @property
    def score_meaning(self) -> str:  # type: ignore[override]
        """Say what the chosen score is."""
        at = (
            ""
            if self.chosen in ("iou", "match_confidence", "iou_confidence")
            else (f" at IoU {self.threshold:g}")
        )
        return MEASURES[self.chosen] + at

    @property
    def truth_dims(self) -> tuple[str, ...]:
        """Objects, each a box and a class."""
        return ("object", "box_class")

    def read(self, raw: Any, outputs: str | None = None) -> Tensor:
        """Read the most confident detections of N views, `[N, M, 6]`."""
        found = read_detections(self.picked(raw), self.most)
        # What lies wholly outside the view, or has no area, is no detection of anything in it.
        empty = area(cut(found.box, self._view(found.box))) <= 0
        empty &= found.present & ~turned(found.box)
        return Detections(
            found.box.masked_fill(empty[..., None], 0),
            found.confidence.masked_fill(empty, 0),
            found.label.masked_fill(empty, -1),
        ).rows()

    def faults(self, outputs: Tensor) -> dict[str, Tensor]:
        """Mark boxes with sides exchanged and confidences that are none, beside NaN."""
        return faults_in(Detections.of(outputs)) | super().faults(outputs)

    def check_target(self, target: Any, count: int) -> Tensor:
        """Check objects `[N, T, 5]`, the first of each sample its key object."""
        objects = as_truth(target)
        if objects.ndim != 3 or objects.shape[-1] != 5 or not objects.is_floating_point():
            raise InputError(
                f"objects: {objects.dtype} of shape {tuple(objects.shape)} given, floating-point "
                "[sample, object, 5] expected (left, top, right, bottom, class), NaN for no object"
            )
        if len(objects) != count:
            raise InputError(f"objects: {len(objects)} given for {count} samples")
        objects = objects.float()
        gaps = objects.isnan()
        _refuse(gaps.any(-1) & ~gaps.all(-1), "is NaN in part; all five numbers or none expected")
        _refuse(objects.isinf().any(-1), "is infinite; pixels expected")
        there = ~gaps.any(-1)
        lacking = (~there[:, 0] if objects.shape[1] else torch.ones(count)).nonzero()
        if len(lacking):
            raise InputError(
                f"objects: sample {int(lacking[0])} has no first object, the key object, around "
                "which its view is centered"
            )
        _refuse(there & (area(objects[..., :4]) <= 0), "has no area; left < right, top < bottom")
        kinds = objects[..., 4]
        _refuse(there & ((kinds < 0) | (kinds != kinds.round())), "has no class index from 0")
        if self.classes is not None:
            known = len(self.classes)
            _refuse(there & (kinds >= known), f"has a class beyond the {known} that have names")
        outside = torch.zeros_like(there)
        outside[:, 0] = area(cut(objects[:, 0, :4], self._view(objects))) <= 0
        _refuse(
            outside,
            f"is the key object but lies outside the un-moved view of {self.size[0]} x "
            f"{self.size[1]} pixels, in whose pixels objects are given",
        )
        return objects

    def check_range(self, target: Tensor, outputs: Tree) -> None:
        """Any class may stand in the truth: a detector need not find all of them."""

    def variables(self, labeled: bool) -> dict[str, Variable]:
        """Declare the detections of each element, and every measure of them."""
        orbit = ("sample", "element")
        judged = " that is judged" if labeled else ""
        variables = self.common_variables(labeled, ("cluster", "cluster_column")) | {
            "box": Variable((*orbit, "detection", "side"), "boxes in pixels of the view"),
            "box_label": Variable(
                (*orbit, "detection"), "class of each box, -1 where there is none"
            ),
            "box_score": Variable((*orbit, "detection"), "confidence of each box"),
            "count": Variable(orbit, "number of detections"),
            "confidence": Variable(
                orbit, f"confidence of the most confident detection{judged}", unit="share"
            ),
        }
        if labeled:
            variables |= {
                name: Variable(orbit, meaning, unit="share", higher_is_better=True)
                for name, meaning in MEASURES.items()
            }
            variables |= {
                "box_correct": Variable(
                    (*orbit, "detection"), "1 where a box is right, 0 where wrong, NaN unjudged"
                ),
                "correct": Variable(
                    orbit,
                    "whether the most confident detection that is judged is right; 0 where an "
                    "object is in view and none is found",
                    unit="share",
                    higher_is_better=True,
                ),
            }
        return variables

    def score(self, outputs: Tensor, reference: Tensor, valid: Tensor | None = None) -> Tensor:
        """Score detections `[K, B, M, 6]` against objects `[K, B, T, 5]` moved along."""
        return self._chosen_measures(Detections.of(outputs), reference)[self.chosen]

    def reference(self, consensus: Tensor) -> Tensor:
        """Take clusters `[..., C, 7]` as objects `[..., C, 5]`.

        The most confident is the key object; of the others those count that half of the orbit sees.
        """
        kept = consensus[..., 6] >= HALF
        kept[..., 0] = True
        objects = torch.cat([consensus[..., :4], consensus[..., 5:6]], -1)
        return objects.masked_fill(~kept[..., None], torch.nan)

    def measures(self, found: Detections, objects: Tensor) -> dict[str, Tensor]:
        """Give every measure of detections against objects `[..., T, 5]` in the same view."""
        pairing = pair(found, objects, self._view(objects))
        return _key_measures(found, pairing) | self._set_measures(found, pairing)

    def _chosen_measures(self, found: Detections, objects: Tensor) -> dict[str, Tensor]:
        """Give the measures of the key object, and those of the whole set if the score is one."""
        pairing = pair(found, objects, self._view(objects))
        of_key = _key_measures(found, pairing)
        return of_key if self.chosen in of_key else of_key | self._set_measures(found, pairing)

    def _set_measures(self, found: Detections, pairing: Pairing) -> dict[str, Tensor]:
        correct, judged = greedy(found, pairing, self.threshold)
        scores = set_scores(found, correct, judged, pairing.counted, self.confident)
        sure, right = most_confident(found, correct, judged, pairing.counted)
        return {
            **scores._asdict(),
            "box_correct": correct.float().masked_fill(~judged, torch.nan),
            "confidence": sure,
            "correct": right,
        }

    def extras(
        self, outputs: Tensor, target: Tensor | None, elements: Elements
    ) -> dict[str, Tensor]:
        """Give the detections, and with a truth every measure of them."""
        found = Detections.of(outputs)
        absent = ~found.present
        extras = {
            "box": found.box.masked_fill(absent[..., None], torch.nan),
            "box_label": found.label.to(torch.int16),
            "box_score": found.confidence.masked_fill(absent, torch.nan),
            "count": found.present.sum(-1).float(),
            "confidence": found.confidence[..., 0].masked_fill(absent[..., 0], torch.nan),
        }
        if target is not None:
            extras |= self.measures(found, self.output.move(elements, target[None]))
        return extras

    def summarize(
        self, outputs: Tensor, target: Tensor | None, elements: Elements, weights: Tensor
    ) -> dict[str, Tensor]:
        """Turn the detections along the orbits of a batch into the variables of a scan."""
        found = Detections.of(outputs)
        agreed = self.consensus(found, elements, weights).rows()
        reference = self.reference(agreed)
        against = self._chosen_measures(found, self.output.move(elements, reference[None]))
        known = ~reference[:, 0, 4].isnan()
        in_view = ~against["iou"].isnan()
        share = weights.double()[:, None] * in_view
        apart = (1 - against["iou"].nan_to_num(1.0)).double().square()
        gap = ((share * apart).sum(0) / share.sum(0).clamp_min(1e-12)).sqrt()
        # What is agreed upon but hardly in view anywhere could not be compared; nothing, always, is
        # steady.
        gap = gap.masked_fill(known & (share.sum(0) == 0), torch.nan)
        summary = {
            "consensus": agreed,
            "invariance_gap": gap.float(),
            # Where nothing was agreed upon there is nothing to agree with: 0, and not missing.
            "score_vs_consensus": torch.where(known, against[self.chosen], 0.0),
            **self.extras(outputs, target, elements),
        }
        if target is not None:
            summary["score"] = summary[self.chosen]
            agreed_upon = _as_detections(agreed, self._view(target))
            judged = self._chosen_measures(agreed_upon, target)
            summary["consensus_vs_truth"] = judged[self.chosen]
        declared = self.variables(target is not None)
        return {
            name: value.transpose(0, 1) if "element" in declared[name].dims else value
            for name, value in summary.items()
        }

    def consensus(self, found: Detections, elements: Elements, weights: Tensor) -> Consensus:
        """Average the un-shifted detections `[K, B, M, ...]` over the group, in clusters."""
        backward = elements.inverse()
        view = self._view(found.box)
        seen = cut(found.box, view)
        near = torch.cat([seen[..., :2] <= BORDER, seen[..., 2:] >= view[2:] - BORDER], -1)
        home = Detections(self.output.move(backward, found.box), found.confidence, found.label)
        view_home = self.output.move(backward, view[None, None, None])[:, 0, 0]
        border = near if _keeps_sides(elements) else torch.zeros_like(near)
        return consensus_of(home, view_home, border, weights, self.threshold, self.most)

    def deviation(self, outputs: Tensor, center: Tensor, valid: Tensor | None) -> Tensor:
        """Give the squared 1 - IoU of boxes `[K, B, M, 4]` from a box `[B, M, 4]`, mean over M."""
        return (1 - iou(outputs, center[None])).double().square().mean(-1)

    def isometric(self, group: Group) -> bool:
        """Upright boxes stay exact under shifts, flips, quarter turns and scalings."""
        if "plane" not in group.parts:
            return True
        size = np.abs(group.linear("plane"))
        return bool((np.isclose(size, 0).sum((1, 2)) == 2).all())

    def settings(self) -> dict[str, Any]:
        """Return the arguments of the constructor other than `input` and `read`."""
        return {
            "score": self.chosen,
            "threshold": self.threshold,
            "confident": self.confident,
            "most": self.most,
            "size": list(self.size),
            "classes": self.classes,
        }

    def _view(self, like: Tensor) -> Tensor:
        """Give left, top, right and bottom of the view, made where `like` is.

        To bring them there would wait for all that an accelerator has still to do.
        """
        height, width = self.size
        sides = like.new_full((4,), 0)
        sides[2].fill_(width)
        sides[3].fill_(height)
        return sides


def _key_measures(found: Detections, pairing: Pairing) -> dict[str, Tensor]:
    overlap, confidence = key_match(found, pairing)
    return {
        "iou": overlap,
        "match_confidence": confidence,
        "iou_confidence": overlap * confidence,
    }


def _two_sides(size: Any) -> tuple[int, int]:
    """Take height and width of a view."""
    given = tuple(size) if isinstance(size, Sequence) and not isinstance(size, str) else (size,)
    whole = [isinstance(side, int) and side >= 1 for side in given]
    if len(given) != 2 or not all(whole):
        raise InputError(f"size: {size!r} given, height and width in whole pixels expected")
    return int(given[0]), int(given[1])


def _as_detections(agreed: Tensor, view: Tensor) -> Detections:
    """Take the clusters `[B, C, 7]` of a consensus as detections in the un-moved view."""
    absent = agreed[..., 5].isnan() | (area(cut(agreed[..., :4].nan_to_num(0.0), view)) <= 0)
    return Detections(
        agreed[..., :4].masked_fill(absent[..., None], 0),
        agreed[..., 4].masked_fill(absent, 0),
        agreed[..., 5].masked_fill(absent, -1),
    )


def _keeps_sides(elements: Elements) -> bool:
    """Whether left stays left and top stays top: shifts and scalings alone."""
    if "plane" not in elements.parts:
        return True
    linear = elements.linear("plane")
    return bool((linear[:, 0, 1] == 0).all() and (linear[:, 1, 0] == 0).all()) and bool(
        (linear[:, [0, 1], [0, 1]] > 0).all()
    )


def _refuse(wrong: Tensor, what: str) -> None:
    """Name the first object `[N, T]` that is wrong."""
    places = wrong.nonzero()
    if len(places):
        sample, which = (int(place) for place in places[0])
        raise InputError(f"objects: object {which} of sample {sample} {what}")
