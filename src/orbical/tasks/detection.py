"""Detection: boxes with class and confidence around the objects in a field of view."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import pad
from torch.nn.utils.rnn import pad_sequence

from .._arrays import as_array
from .._warnings import warn
from ..actions import ActionTree, Boxes, Window, as_action
from ..errors import InputError, ModelError, real_number, whole_number
from ..groups import Elements, Group
from . import reading
from .detection_clusters import BORDER, Consensus, detection_consensus
from .detection_matching import (
    Detections,
    Pairing,
    box_area,
    clipped_detection_boxes,
    detection_pairs,
    detection_set_measures,
    inverted_detection_boxes,
    iou,
    key_measures,
    visible_area,
)
from .task import SHARE, Reader, Results, Task, Variable, per_element

SCORES = {
    "iou": "IoU of the key object's match",
    "match_confidence": "confidence of the key object's match",
    "iou_confidence": "IoU x confidence of the key object's match",
    "top_iou": "IoU of the most confident detection with the key object",
    "precision": "share of the confident detections that are right",
    "recall": "share of the objects in view that are found",
    "f1": "harmonic mean of precision and recall",
    "ap": "average precision of the detections in the view",
}
_CORRECT = (
    "whether the most confident detection that counts is right; 0 where an object is in view and "
    "none is found"
)
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
HALF = 0.5
"""Support from which a cluster counts as an object of the consensus."""


class Detection(Task):
    """Predict boxes, classes and confidences in a view that moves inside larger images.

    A model returns, for each of N views, detections in pixels of the view: a tensor `[N, n, 6]`
    (left, top, right, bottom, confidence, class), a dictionary of `boxes [N, n, 4]`, `scores` and
    `labels [N, n]`, or a list of N such dictionaries of any length. A row with class -1 or
    confidence 0 is not a detection; NaN is an error. The `most` most confident are kept.

    The truth is `[N, T, 5]`: left, top, right, bottom and class in pixels of the view at the
    identity, NaN where a sample has fewer than T objects; or a list of N dictionaries of `boxes`
    and `labels`, as torchvision's targets. The first object is the key object, on which the view is
    centered; other objects may lie outside the view and enter it.

    Only the parts inside the view are compared, and an object of which less than a quarter is
    visible is ignored. The key object's match is the detection of its class with the largest IoU x
    confidence; if it is missed, IoU and confidence are 0. `top_iou` takes the most confident
    detection instead, and falls where another box comes first. Precision, recall and F1 are those
    of the greedy matching by confidence at `threshold`, for detections with a confidence of at
    least `confident`; AP ranks all. The score is one of these. `orbical.tasks.detection_clusters`
    explains the consensus: its key object is the most confident cluster, its objects the clusters
    seen from at least half of the orbit.

    Args:
        input: the action on the inputs; `Window(128)` by default.
        score: `iou`, `match_confidence`, `iou_confidence`, `top_iou`, `precision`, `recall`, `f1`
            or `ap`.
        threshold: the least IoU of a match.
        confident: the least confidence of a detection that counts for precision, recall and F1.
        most: the number of detections kept for each view.
        size: height and width of the view; not needed where the input is a `Window`.
        classes: the names of the classes, in the order of their indices, for display.
        read: a function that picks the detections from a raw model output.

    Raises:
        InputError: if an argument is out of range, or the size of the view is not known.

    Example:
        >>> import orbical as ob
        >>> ob.tasks.Detection(ob.actions.Window(64), score="iou")
        Detection(score='iou', size=[64, 64])
    """

    name: ClassVar[str] = "detection"
    has_mean = False
    higher_is_better: ClassVar[bool] = True
    score_unit = "share"
    gap_unit = "share"
    truth_name: ClassVar[str] = "objects"
    truth_kind: ClassVar[str] = "boxes"
    truth_dims = ("object", "box_class")
    detail_view: ClassVar[str] = "boxes"

    def __init__(
        self,
        input: ActionTree | None = None,
        score: str = "iou_confidence",
        threshold: float = 0.5,
        confident: float = 0.5,
        most: int = 10,
        size: Sequence[int] | None = None,
        classes: Sequence[str] | None = None,
        read: Reader | None = None,
    ) -> None:
        window = Window(128) if input is None else as_action(input)
        self.size = reading.read_task_view_size(size, window)
        super().__init__(window, Boxes(*self.size), read)
        self.choose_score(score, SCORES)
        self.threshold = float(real_number("threshold", threshold, "in [0, 1]"))
        of_set = score in ("precision", "recall", "f1", "ap")
        self.score_meaning += f" at IoU {self.threshold:g}" * of_set
        self.confident = float(real_number("confident", confident, "in [0, 1]"))
        self.most = whole_number("most", most, 1)
        self.classes = reading.read_class_names(classes)

    @property
    def input_view(self) -> str:
        """The view of the inputs: a window inside its scene, or whole images."""
        return "window" if isinstance(self.input, Window) else super().input_view

    def read(self, raw: object, outputs: str | None = None) -> Tensor:
        """Read the most confident detections of N views, `[N, M, 6]`."""
        found = read_detections(self.picked(raw), self.most)
        # A box without area, or wholly outside the view, detects nothing in it.
        empty = visible_area(found.box, self._view(found.box)) <= 0
        return found.without(empty & found.present & ~inverted_detection_boxes(found.box)).rows()

    def faults(self, outputs: Tensor) -> dict[str, Tensor]:
        """Mark inverted boxes, confidences out of range, and NaN."""
        found = Detections.of(outputs)
        inverted = inverted_detection_boxes(found.box).any(-1)
        return {
            "a confidence outside 0 .. 1": (found.confidence > 1 + 1e-6).any(-1),
            "a box whose left > right or top > bottom": inverted,
            **super().faults(outputs),
        }

    def check_outputs(self, group: Group, outputs: Tensor) -> None:
        """Warn of boxes that seem to be shares of the view."""
        super().check_outputs(group, outputs)
        found = Detections.of(outputs)
        if found.present.any() and bool((found.box[found.present].abs() <= 1).all()):
            warn(
                "boxes are read as pixels of the view but all of their sides are in 0 .. 1; if "
                "they are shares of it, multiply them by its width and height",
            )

    def check_target(self, target: object, count: int) -> Tensor:
        """Check objects `[N, T, 5]`, the first of each sample its key object."""
        objects = reading.read_truth(read_true_objects(target), count, "objects")
        if objects.ndim != 3 or objects.shape[-1] != 5 or not objects.is_floating_point():
            raise InputError(
                "objects",
                "floating-point [sample, object, 5] (left, top, right, bottom, class; NaN "
                "for no object), or a list of dictionaries of boxes and labels",
                reading.described_value(objects),
            )
        objects = objects.float()
        gaps = objects.isnan()
        absent, kinds = gaps.any(-1), objects[..., 4]
        if not objects.shape[1]:
            raise InputError("objects", "a key object for each sample", "none")
        first = torch.arange(objects.shape[1]) == 0
        outside = first & (visible_area(objects[..., :4], self._view(objects)) <= 0)
        view = f"the view of {self.size[0]} x {self.size[1]} pixels at the identity"
        known = torch.inf if self.classes is None else len(self.classes)
        for wrong, expected, got in (
            (absent & ~gaps.all(-1), "five numbers or five NaN", "NaN in part"),
            (objects.isinf().any(-1), "finite pixels", "infinity"),
            (absent & first, "a key object, on which the view is centered, first", "NaN"),
            (box_area(objects[..., :4]) <= 0, "left < right and top < bottom", "no area"),
            (~absent & ((kinds < 0) | (kinds % 1 != 0)), "a class index from 0", "another number"),
            (kinds >= known, f"one of the {known} classes that have names", "another"),
            (outside, f"a key object inside {view}", "one outside"),
        ):
            marked = wrong.nonzero()  # a comparison with NaN marks nothing
            if len(marked):
                sample, which = marked[0].tolist()
                raise InputError(
                    "objects", expected, f"{got} for object {which} of sample {sample}"
                )
        return objects

    def variables(self, labeled: bool) -> dict[str, Variable]:
        """Declare the detections of each element, and all their scores."""
        sure = "confidence of the most confident detection" + (" that counts" if labeled else "")
        variables = self.common_variables(labeled, ("cluster", "cluster_column")) | {
            "box": per_element("boxes in pixels of the view", "detection", "side"),
            "box_label": per_element("class of each box, -1 where there is none", "detection"),
            "box_score": per_element("confidence of each box", "detection"),
            "count": per_element("number of detections"),
            "confidence": per_element(sure, unit="share"),
        }
        if labeled:
            variables["correct"] = per_element(_CORRECT, **SHARE)
            judged = "1 if right, 0 if wrong, NaN if ignored"
            variables["box_correct"] = per_element(judged, "detection")
        return variables

    def score(self, outputs: Tensor, reference: Tensor, valid: Tensor | None = None) -> Tensor:
        """Score detections `[K, B, M, 6]` against objects `[K, B, T, 5]` moved along."""
        return self._chosen_measures(Detections.of(outputs), reference)[self.chosen]

    def reference(self, consensus: Tensor) -> Tensor:
        """Return clusters `[..., C, 7]` as objects `[..., C, 5]`.

        The most confident is the key object; others count if half of the orbit sees them.
        """
        kept = consensus[..., 6] >= HALF
        kept[..., 0] = True
        objects = torch.cat([consensus[..., :4], consensus[..., 5:6]], -1)
        return objects.masked_fill(~kept[..., None], torch.nan)

    def measures(self, found: Detections, objects: Tensor) -> Results:
        """Return all scores of detections against objects `[..., T, 5]` in the same view."""
        pairing = detection_pairs(found, objects, self._view(objects))
        return key_measures(found, pairing) | self._set_measures(found, pairing)

    def _chosen_measures(self, found: Detections, objects: Tensor) -> Results:
        """Return the scores of the key object, and of the whole set if the chosen one needs it."""
        pairing = detection_pairs(found, objects, self._view(objects))
        of_key = key_measures(found, pairing)
        return of_key if self.chosen in of_key else of_key | self._set_measures(found, pairing)

    def _set_measures(self, found: Detections, pairing: Pairing) -> Results:
        return detection_set_measures(found, pairing, self.threshold, self.confident)

    def extras(self, outputs: Tensor, target: Tensor | None, elements: Elements) -> Results:
        """Return the detections, and with a truth all their scores."""
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
    ) -> Results:
        """Return the variables of a scan from the detections along the orbits of a batch."""
        found = Detections.of(outputs)
        agreed = self.consensus(found, elements, weights).rows()
        reference = self.reference(agreed)
        against = self._chosen_measures(found, self.output.move(elements, reference[None]))
        known = ~reference[:, 0, 4].isnan()
        in_view = ~against["iou"].isnan()
        share = weights.double()[:, None] * in_view
        apart = (1 - against["iou"].nan_to_num(1.0)).double().square()
        gap = ((share * apart).sum(0) / share.sum(0).clamp_min(1e-12)).sqrt()
        # A consensus that is never in view cannot be compared. Finding nothing everywhere is
        # consistent.
        gap = gap.masked_fill(known & (share.sum(0) == 0), torch.nan)
        summary = {
            "consensus": agreed,
            "invariance_gap": gap.float(),
            # Without a consensus the score is 0, not missing.
            "score_vs_consensus": torch.where(known, against[self.chosen], 0.0),
            **self.extras(outputs, target, elements),
        }
        if target is not None:
            summary["score"] = summary[self.chosen]
            found = Detections(agreed[..., :4].nan_to_num(0.0), agreed[..., 4], agreed[..., 5])
            hidden = visible_area(found.box, self._view(target)) <= 0
            found = found.without(found.label.isnan() | hidden)
            summary["consensus_vs_truth"] = self._chosen_measures(found, target)[self.chosen]
        return self._sample_first(summary, target is not None)

    def consensus(self, found: Detections, elements: Elements, weights: Tensor) -> Consensus:
        """Average the un-transformed detections `[K, B, M, ...]` over the group, in clusters."""
        backward = elements.inverse()
        view = self._view(found.box)
        seen = clipped_detection_boxes(found.box, view)
        near = torch.cat([seen[..., :2] <= BORDER, seen[..., 2:] >= view[2:] - BORDER], -1)
        home = Detections(self.output.move(backward, found.box), found.confidence, found.label)
        view_home = self.output.move(backward, view[None, None, None])[:, 0, 0]
        border = near if _keeps_detection_sides(elements) else torch.zeros_like(near)
        return detection_consensus(home, view_home, border, weights, self.threshold, self.most)

    def deviation(self, outputs: Tensor, center: Tensor, valid: Tensor | None) -> Tensor:
        """Return the mean squared 1 - IoU of boxes `[K, B, M, 4]` with a box `[B, M, 4]`."""
        return (1 - iou(outputs, center[None])).double().square().mean(-1)

    def isometric(self, group: Group) -> bool:
        """Check for shifts, flips, quarter turns and scalings: upright boxes stay exact."""
        if "plane" not in group.parts:
            return True
        if group.has_homographies:
            return False
        size = np.abs(group.linear("plane"))
        return bool((np.isclose(size, 0).sum((1, 2)) == 2).all())

    def _view(self, like: Tensor) -> Tensor:
        """Return left, top, right and bottom of the view, on the device of `like`.

        Filled in place, because a copy to an accelerator would synchronize with it.
        """
        height, width = self.size
        sides = like.new_full((4,), 0)
        sides[2].fill_(width)
        sides[3].fill_(height)
        return sides


def _keeps_detection_sides(elements: Elements) -> bool:
    """Check whether left stays left and top stays top: shifts and scalings alone."""
    if "plane" not in elements.parts:
        return True
    if elements.has_homographies:
        return False
    linear = elements.linear("plane")
    off, on = linear[:, [0, 1], [1, 0]], linear[:, [0, 1], [0, 1]]
    return bool((off == 0).all() and (on > 0).all())


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
    box, confidence, label = _detection_parts(given)
    box, confidence = reading.read_precision(box), reading.read_precision(confidence)
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


def _detection_parts(given: object) -> tuple[Tensor, Tensor, Tensor]:
    if isinstance(given, Mapping):
        box, confidence, label = _fields_of_detections(given)
        shapes = box.ndim == 3 and box.shape[-1] == 4
        if not shapes or confidence.shape != box.shape[:2] or label.shape != box.shape[:2]:
            raise _misshapen(_EXPECTED, box, confidence, label)
        return box, confidence, label
    if isinstance(given, Sequence) and all(isinstance(view, Mapping) for view in given):
        return _padded_detections([_fields_of_detections(view) for view in given])
    if not reading.is_real(given) or given.ndim != 3 or given.shape[-1] != 6:
        raise reading.unreadable_output(given, _EXPECTED)
    return given[..., :4], given[..., 4], given[..., 5]


def _fields_of_detections(view: Mapping[str, Any]) -> tuple[Tensor, Tensor, Tensor]:
    found = []
    for names in _NAMES.values():
        name = next((name for name in names if name in view), None)
        if name is None or not isinstance(view[name], Tensor):
            fields = sorted(map(str, view))
            raise reading.wrong_output(_EXPECTED, f"a dictionary of {fields}")
        found.append(view[name])
    return found[0], found[1], found[2]


def _padded_detections(views: list[tuple[Tensor, Tensor, Tensor]]) -> tuple[Tensor, Tensor, Tensor]:
    """Fill up the shorter of N outputs, with class -1."""
    for box, confidence, label in views:
        if box.ndim != 2 or box.shape[-1] != 4 or not len(box) == len(confidence) == len(label):
            raise _misshapen("[n, 4], [n] and [n] for a view", box, confidence, label)
    if not views:
        raise reading.wrong_output(_EXPECTED, "an empty list")
    box, confidence, label = (
        pad_sequence([part.double() for part in parts], batch_first=True, padding_value=-1.0)
        for parts in zip(*views, strict=True)
    )
    return box.float(), confidence.float().masked_fill(label < 0, 0), label


def _misshapen(expected: str, *parts: Tensor) -> ModelError:
    box, confidence, label = (tuple(part.shape) for part in parts)
    return reading.wrong_output(expected, f"boxes {box}, scores {confidence} and labels {label}")


def _most_confident(found: Detections, most: int) -> Detections:
    """Sort by confidence, and cut or fill up to `most` places."""
    lacking = max(0, most - found.label.shape[1])
    box, confidence = pad(found.box, (0, 0, 0, lacking)), pad(found.confidence, (0, lacking))
    label = pad(found.label, (0, lacking), value=-1)
    rank = confidence.argsort(dim=1, descending=True, stable=True)[:, :most]
    box = box.gather(1, rank[..., None].expand(-1, -1, 4))
    return Detections(box, confidence.gather(1, rank), label.gather(1, rank))
