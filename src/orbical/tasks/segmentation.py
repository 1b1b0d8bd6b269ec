"""Segmentation: a class for each pixel or voxel, in maps that move with the image or volume."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor

from .._trees import concatenate
from .._warnings import warn
from ..actions import Action, ActionTree, ClassMaps
from ..errors import InputError
from ..groups import Elements
from ._maps import (
    MAP,
    UNSEEN,
    MapTask,
    RunningMapMean,
    map_class_votes,
    map_tally,
    map_tally_variables,
    map_vote_disagreement,
    masked_map_mean,
    reduced_label_maps,
    reduced_mean_maps,
)
from .classification import LARGEST_CLASS, ClassTask, class_probabilities
from .reading import read_class_indices, read_output
from .task import SHARE, Reader, Results, TaskOutputs, Variable, per_element, per_sample

REGION_IOU = 0.5
WHITE = 255


class Segmentation(MapTask, ClassTask):
    """Predict a class for each pixel; class maps move with the image.

    Inputs are images `[N, C, H, W]`, outputs class scores `[N, classes, H, W]`, targets label maps
    `[N, H, W]`; of volumes `[N, C, D, H, W]`, which a group of space moves, every map has a depth
    too, and its pixels are voxels. Probabilities are interpolated, label maps move by the nearest
    neighbor, and pixels that come from outside the image are never judged. The score is the pixel
    accuracy. Also stored are

    - `class_iou`, `class_dice` and their means over the classes that occur, `mean_iou` and `dice`;
      `class_intersection` and `class_union` in pixels, whose sums give the IoU of a whole data set;
    - `pixel_count`, `pixel_confidence` and `pixel_correct`: number, summed confidence and summed
      correctness of the pixels in 15 bins of confidence, from which
      `orbical.calibration.along_orbit` makes the calibration error; `sample_ece`, that of one view;
    - `region_confidence` and `region_correct` of each predicted class, for
      `orbical.calibration.pairs_within`. The region of a class is all pixels of the view predicted
      as that class, its confidence their mean probability of it, and it is correct if its IoU with
      the true region is at least 0.5;
    - `consensus`, the class of the largest mean un-transformed probability, and `changed_pixels`
      and `changed_pairs`, how many pixels and how many pairs of elements disagree along the orbit;
    - `class_map`, `truth_map`, `entropy_map` and `map_vs_consensus`, reduced to at most 32 x 32
      cells for the view; of volumes, the three middle slices.

    Args:
        input: the action on the images; by default `Images()`, or `Volumes()` of inputs with a
            depth. With `Window(size)` the model sees `size` pixels of larger images, and the label
            maps are as large as the images.
        outputs: what the model returns, `"logits"` or `"probabilities"`; it is never guessed. One
            channel, `[N, 1, H, W]`, is class 1 of two.
        read: a function that picks the outputs `[N, classes, H, W]` from a raw model output.
        classes: the names of the classes, in the order of their indices, for display.
        ignore_index: the label of pixels that are not judged.
        interpolation: how probabilities are resampled: `nearest`, `bilinear` (of volumes,
            trilinear) or `bicubic` (of images).
        output: the action on the maps. By default they move by the action of the inputs, also by
            one of your own, whose parts in `in_place` leave maps as they are.

    Raises:
        InputError: if an argument is not one of these.

    See Also:
        DenseRegression: Numbers instead of classes.
        PointClassification: A class for each point.

    Example:
        >>> import orbical as ob
        >>> task = ob.tasks.Segmentation(classes=["background", "nucleus"])
        >>> images = torch.rand(4, 1, 16, 16)
        >>> def threshold(images):
        ...     return torch.cat([0.5 - images, images - 0.5], 1)
        >>> scan = ob.scan(threshold, (images, (images[:, 0] > 0.5).long()), group="dihedral:4",
        ...                task=task, progress=False)
        >>> float(scan.data["score"].min())
        1.0
    """

    name: ClassVar[str] = "segmentation"
    score_meaning = "share of correct pixels"
    truth_name: ClassVar[str] = "label_map"
    unseen_score: ClassVar[float | None] = 1.0

    def __init__(
        self,
        input: ActionTree | None = None,
        outputs: str = "logits",
        read: Reader | None = None,
        classes: Sequence[str] | None = None,
        ignore_index: int = WHITE,
        interpolation: str = "bilinear",
        output: Action | None = None,
    ) -> None:
        maps = ClassMaps(input, interpolation) if output is None else output
        super().__init__(input, maps, outputs, read, classes)
        self.keep_map_settings(interpolation, output)
        whole = isinstance(ignore_index, int) and not isinstance(ignore_index, bool)
        if not whole or abs(ignore_index) > LARGEST_CLASS:
            expected = f"an integer of at most {LARGEST_CLASS}"
            raise InputError("ignore_index", expected, repr(ignore_index))
        self.ignore_index = ignore_index

    def read(self, raw: object, outputs: str | None = None) -> Tensor:
        """Read class probabilities `[N, C, ...]`, one map for each class."""
        given = read_output(self.picked(raw), "class scores", "sample", "class", *self._sides)
        given = class_probabilities(given, outputs or self.outputs)
        self.check_classes(given.shape[1])
        return given

    def check_target(self, target: object, count: int) -> Tensor:
        """Check label maps `[N, ...]` or `[N, 1, ...]`."""
        expected = f"integer label maps [sample, {', '.join(self._sides)}]"
        labels = read_class_indices(target, count, 1 + len(self._sides), 1, expected)
        least, most = self._range(labels, 0, LARGEST_CLASS)
        if not 0 <= least <= most <= LARGEST_CLASS:
            raise InputError(
                "labels",
                f"class indices from 0, or ignore_index={self.ignore_index}",
                f"{least} .. {most}",
            )
        return labels

    def compact(self, target: Tensor) -> Tensor:
        """Return label maps as they are stored."""
        return target.to(torch.int16)

    def _range(self, labels: Tensor, low: int, high: int) -> tuple[int, int]:
        """Return the least and the largest label of judged pixels; others only where all fit."""
        least, most = map(int, labels.aminmax()) if labels.numel() else (low, low)
        if low <= least and most <= high:
            return least, most
        judged = labels[labels != self.ignore_index]
        return (int(judged.min()), int(judged.max())) if len(judged) else (low, low)

    def check_range(self, target: Tensor, outputs: Tensor) -> None:
        """Check size and classes of the label maps against the outputs."""
        self.check_size(tuple(target.shape[1:]), tuple(outputs.shape[2:]))
        classes = outputs.shape[1]
        self.check_classes(
            classes,
            self._range(target, 0, classes - 1)[1],
            "pass the label of pixels that are not judged as ignore_index= (--ignore-index)",
        )
        black, white = target == 0, target == WHITE
        if self.ignore_index == WHITE and black.any() and white.any() and (black | white).all():
            warn(
                f"labels: the first maps hold only 0 and {WHITE}, which is not judged "
                f"(ignore_index); if it is a class, as in masks of black and white, pass "
                f"labels // {WHITE}",
            )

    def variables(self, labeled: bool) -> dict[str, Variable]:
        """Declare the scores, the counts of pixels, and the reduced maps."""
        about = self.common_variables(labeled, self._sides)
        about["consensus"] = per_sample("class of the largest mean probability", *self._sides)
        whole = ("class", *self._sides)
        about |= {
            "consensus_probabilities": per_sample("mean probabilities", *whole, optional=True),
            "changed_pixels": per_sample("share of pixels whose class changes along the orbit"),
            "changed_pairs": per_sample("share of pairs of elements that disagree on a pixel"),
            "mean_confidence": per_element("mean of the largest probability", unit="share"),
            "probabilities": per_element("class probabilities", *whole, optional=True),
            "segments": per_element("predicted class", *self._sides, optional=True),
            "class_map": per_element("predicted class, middle pixels of blocks", *MAP),
            "entropy_map": per_element("entropy over its largest value, block means", *MAP),
            "map_vs_consensus": per_element("share of pixels that differ, by block", *MAP),
        }
        if labeled:
            about |= _LABELED
        return about

    def score(self, outputs: Tensor, reference: Tensor, valid: Tensor | None) -> Tensor:
        """Return the share of judged pixels `[K, B]` whose class is that of the reference."""
        return self._share_right(_winners_of_segmentation(outputs, 2)[1], reference, valid)

    def _share_right(self, winners: Tensor, reference: Tensor, valid: Tensor | None) -> Tensor:
        judged = self._judged(reference, valid)
        right, areas = winners == self.in_view(reference), self.areas(judged)
        counted = judged if areas is None else judged * areas
        return (right * counted).flatten(2).sum(-1) / counted.flatten(2).sum(-1)  # 0 / 0 is NaN

    def reference(self, consensus: Tensor) -> Tensor:
        """Return the most probable class of each pixel; classes stay as they are."""
        whole = consensus.is_floating_point()
        return _winners_of_segmentation(consensus, 1)[1] if whole else consensus

    def deviation(self, outputs: Tensor, center: Tensor, valid: Tensor | None) -> Tensor:
        """Return the squared distance of the probabilities, mean over valid pixels."""
        apart = (outputs - center[None]).double().square().sum(2)
        return masked_map_mean(apart, valid, self.areas(apart))

    def along(self, *given: Any) -> _SegmentationOutputs:
        """Return what sums the outputs as they come, and keeps only the class of each pixel."""
        return _SegmentationOutputs(self, *given)

    def summarize(
        self, outputs: Tensor, target: Tensor | None, elements: Elements, weights: Tensor
    ) -> Results:
        """Return the variables of a scan from all outputs along the orbits of a batch."""
        along = self.along(target, elements, weights)
        along.add(outputs, elements)
        return along.summary()

    def extras(self, outputs: Tensor, target: Tensor | None, elements: Elements) -> Results:
        """Return confidence, reduced maps, and with a truth all counts and scores."""
        sure, winners = _winners_of_segmentation(outputs, 2)
        valid = self.output.valid(elements, outputs)
        entropy = _entropy(outputs) / math.log(outputs.shape[2])
        extras = {
            "mean_confidence": masked_map_mean(sure, valid),
            "probabilities": outputs,
            "segments": winners,
            "class_map": reduced_label_maps(winners),
            "entropy_map": reduced_mean_maps(entropy, valid).half(),
        }
        if target is not None:
            extras |= self._measured(sure, winners, outputs.shape[2], target, elements)
        return extras

    def _measured(
        self, sure: Tensor, winners: Tensor, classes: int, target: Tensor, elements: Elements
    ) -> Results:
        truth = self.output.move(elements, target[None])
        inside = self.output.valid(elements, target)
        judged = self._judged(truth, inside)
        both, either, region, bins = map_tally(sure, winners, truth, judged, classes)
        iou, dice = both / either, 2 * both / (either + both)  # 0 / 0 is NaN: it does not occur
        correct = (iou >= REGION_IOU).float().where(region.isfinite(), torch.nan)
        shown = (truth - UNSEEN) * judged + UNSEEN
        score = both.sum(-1) / bins["pixel_count"].sum(-1)
        return {
            "score": score
            if self.areas(truth) is None
            else self._share_right(winners, truth, inside),
            "class_iou": iou,
            "class_dice": dice,
            "mean_iou": iou.nanmean(-1),
            "dice": dice.nanmean(-1),
            "class_intersection": both.int(),
            "class_union": either.int(),
            **bins,
            "region_confidence": region,
            "region_correct": correct,
            "truth_map": reduced_label_maps(shown),
        }

    def _judged(self, reference: Tensor, valid: Tensor | None) -> Tensor:
        """Return a mask `[K, B, ...]` of the pixels of the view that are judged."""
        labeled = self.in_view(reference) != self.ignore_index
        return labeled if valid is None else labeled & valid[:, None]


class _SegmentationOutputs(TaskOutputs):
    """Class maps along an orbit, of which no more than a block of elements is held at a time.

    Kept are the mean of the probabilities, the votes for the class of each pixel, and the class
    that each element predicts, which is compared with the consensus in the end.
    """

    task: Segmentation

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.mean, self.winners = RunningMapMean(), list[Tensor]()
        self.votes: Tensor | None = None

    def add(self, outputs: Tensor, elements: Elements) -> None:
        """Take the probabilities `[k, B, C, ...]` of the next elements."""
        output, done = self.task.output, sum(map(len, self.winners))
        found = self.task.extras(outputs, self.target, elements)
        self.winners.append(found["segments"])
        super().add({name: found[name] for name in found.keys() - self.left_out}, elements)
        backward = elements.inverse()
        home, seen = output.move(backward, outputs), output.valid(backward, outputs)
        cast = map_class_votes(_winners_of_segmentation(home, 2)[1], seen, outputs.shape[2])
        self.votes = cast if self.votes is None else self.votes + cast
        weights = self.weights[done : done + len(outputs)]
        self.mean.add(home, seen, weights, self.task.areas(outputs))

    def summary(self) -> Results:
        """Return the variables of the scan, once all elements were added."""
        task, elements, winners = self.task, self.elements, torch.cat(self.winners)
        assert self.votes is not None
        probabilities, gap = self.mean.result()
        consensus = task.reference(probabilities)
        moved = task.output.move(elements, consensus[None])
        valid = task.output.valid(elements, consensus)
        against = task._share_right(winners, moved, valid)
        differs = (winners != moved).float()
        summary = {
            "consensus": consensus,
            "consensus_probabilities": probabilities,
            "invariance_gap": gap.float(),
            "score_vs_consensus": against.nan_to_num(task.unseen_score),
            "map_vs_consensus": reduced_mean_maps(differs, valid).half(),
            **map_vote_disagreement(self.votes),
            **concatenate(self.parts),
        }
        if self.target is not None:
            truth = self.target[None]
            summary["consensus_vs_truth"] = task.score(probabilities[None], truth, None)[0]
        return task._sample_first(summary, self.target is not None)


def _winners_of_segmentation(outputs: Tensor, dim: int) -> tuple[Tensor, Tensor]:
    """Return the largest probability of each pixel and its class, the first of equal ones.

    Far from the last dimension, a CPU takes five times as long for the place of a maximum as for
    the maximum alone and a comparison with it.
    """
    if outputs.is_cuda:
        sure, winners = outputs.max(dim)
        return sure, winners.to(torch.int16)
    sure = outputs.amax(dim, keepdim=True)
    classes, given = outputs.shape[dim], outputs.detach()
    ranks = torch.arange(classes, 0, -1).to(given).reshape(-1, *[1] * (given.ndim - dim - 1))
    ahead = torch.eq(given, sure.detach(), out=torch.empty_like(given)).mul_(ranks).amax(dim)
    return sure.squeeze(dim), (classes - ahead).clamp_max_(classes - 1).to(torch.int16)


def _entropy(outputs: Tensor) -> Tensor:
    """Return the entropy of probabilities `[K, B, C, ...]`; a CPU has no fast kernel for it."""
    if outputs.is_cuda:
        entropy: Tensor = torch.special.entr(outputs).sum(2)
        return entropy
    return -outputs.clamp_min(torch.finfo(outputs.dtype).tiny).log_().mul_(outputs).sum(2)


_REGION = "of the pixels predicted as a class"
_LABELED = {
    "class_iou": per_element("intersection over union of each class", "class", **SHARE),
    "class_dice": per_element("Dice coefficient of each class", "class", **SHARE),
    "mean_iou": per_element("mean intersection over union of the classes that occur", **SHARE),
    "dice": per_element("mean Dice coefficient of the classes that occur", **SHARE),
    "class_intersection": per_element("pixels where truth and prediction agree", "class"),
    "class_union": per_element("pixels of truth or prediction", "class"),
    **map_tally_variables("pixels", "image"),
    "region_confidence": per_element(f"mean confidence {_REGION}", "class", unit="share"),
    "region_correct": per_element("whether a region has an IoU of at least 0.5", "class", **SHARE),
    "truth_map": per_element("true class moved along, middle pixels of blocks", *MAP),
}
