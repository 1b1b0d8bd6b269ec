"""A class for each point of a sample: residues of proteins, parts of point clouds, nodes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import torch
from torch import Tensor

from .._trees import Tree
from ..actions import Action, ActionTree
from ..errors import InputError
from ..groups import Elements
from . import point_samples
from ._maps import map_class_votes, map_tally, map_tally_variables, map_vote_disagreement
from .classification import LARGEST_CLASS, ClassTask, class_probabilities
from .reading import check_as_predicted, read_class_indices, read_output, read_precision
from .task import SHARE, Reader, Results, TaskOrbit, Variable, per_element, per_sample

UNLABELED = -1


class PointClassification(ClassTask):
    """Predict a class for each point; classes follow their points and do not change with them.

    Inputs are points `[N, n, 3]`, a list of clouds of different sizes, a ragged batch, graphs of
    PyTorch Geometric, or a dictionary of fields, with `mask [N, n]` if they are padded. Outputs are
    class scores `[N, n, classes]`, targets class indices `[N, n]` (or a list of them), of which -1
    marks points that are not judged. Padding never counts. The score is the share of correct
    points. Also stored are

    - `point_class`, `point_confidence` and `point_correct`, for `orbical.calibration.pairs_within`;
      `mean_confidence`; `class_iou`, and `mean_iou` over the classes that occur;
    - `pixel_count`, `pixel_confidence` and `pixel_correct`, the sums over the points in bins of
      confidence, named and read as those of a segmentation: `orbical.calibration.along_orbit(scan,
      "ece")` is the calibration error of points; `sample_ece`, that of one sample;
    - `consensus`, the class of the largest mean un-transformed probability, and `changed_pixels`
      and `changed_pairs`, how many points and pairs of elements disagree along the orbit.

    Args:
        input: the action on each field; by default `{"pos": Points(), "mask": Rows()}`, the
            dictionary that the model then receives. `Points()` for a model of arrays `[N, n, 3]`.
        outputs: what the model returns, `"logits"` or `"probabilities"`; it is never guessed. One
            column, `[N, n, 1]`, is class 1 of two.
        read: a function that picks the outputs `[N, n, classes]` from a raw model output.
        classes: the names of the classes, in the order of their indices, for display.
        output: the action on the outputs; by default classes follow their points, and those of
            `Signals` their samples.

    Raises:
        InputError: if an argument is not one of these.

    Example:
        >>> import orbical as ob
        >>> clouds = [torch.randn(4, 3), torch.randn(6, 3)]
        >>> labels = [(cloud[:, 2] > 0).long() for cloud in clouds]
        >>> def above(batch):
        ...     return torch.stack([-batch["pos"][..., 2], batch["pos"][..., 2]], -1)
        >>> scan = ob.scan(above, (clouds, labels), group="rotations3d:8", progress=False,
        ...                task=ob.tasks.PointClassification(classes=["below", "above"]))
        >>> float(scan.data["score"][0, :, 0].min()), float(scan.data["score"].min()) < 1
        (1.0, True)
    """

    name: ClassVar[str] = "point_classification"
    primary_output: ClassVar[str | None] = "probabilities"
    score_meaning = "share of correct points"
    truth_name: ClassVar[str] = "point_label"
    truth_kind: ClassVar[str] = "points"
    truth_dims = ("point",)
    detail_view: ClassVar[str] = "point_classes"

    def __init__(
        self,
        input: ActionTree | None = None,
        outputs: str = "logits",
        read: Reader | None = None,
        classes: Sequence[str] | None = None,
        output: Action | None = None,
    ) -> None:
        self._output = output
        usual = point_samples.CLOUDS if input is None else input
        moving = point_samples.point_action(usual) if output is None else output
        super().__init__(usual, moving, outputs, read, classes)

    # Data and truth.

    def take(self, data: object) -> object:
        """Pad samples of different sizes, and their labels."""
        return point_samples.padded_points(data, self.input, UNLABELED)

    def check_target(self, target: object, count: int) -> Tensor:
        """Check class indices `[N, n]`; -1 marks points that are not judged."""
        expected = "integers [sample, point], -1 for points that are not judged"
        labels = read_class_indices(target, count, 2, -1, expected)
        if labels.numel() and int(labels.min()) < UNLABELED:
            raise InputError("labels", "class indices from 0, or -1", int(labels.min()))
        if labels.numel() and int(labels.max()) > LARGEST_CLASS:
            raise InputError("labels", f"class indices up to {LARGEST_CLASS}", int(labels.max()))
        return labels.to(torch.int16)

    def check_range(self, target: Tensor, outputs: Tree) -> None:
        """Check the number of points and the classes of the labels against the outputs."""
        points, classes = outputs["probabilities"].shape[-2:]
        check_as_predicted(target.shape[1], points, f"{points} points")
        self.check_classes(classes, int(target.max()) if target.numel() else -1)

    # What models return.

    def read(self, raw: object, outputs: str | None = None) -> dict[str, Tensor]:
        """Read class probabilities `[N, n, C]`."""
        given = read_output(self.picked(raw), "class scores", "sample", "point", "class")
        kind = outputs or self.outputs
        if kind == "probabilities" and given.shape[-1] > 1:
            # Zeros are padding; at a real point, NaN is refused once the mask is known.
            given = read_precision(given).masked_fill((given == 0).all(-1, keepdim=True), torch.nan)
        found = class_probabilities(given.movedim(-1, 1), kind).movedim(1, -1)
        self.check_classes(found.shape[-1])
        return {"probabilities": found}

    def joined(self, outputs: Tree, moved: Tree) -> Tree:
        """Add the mask of real points, and blank the rest."""
        found = outputs["probabilities"]
        point_samples.check_point_sample_count(self.output, found.shape[2], moved)
        mask = point_samples.point_mask(moved, found.shape[2])
        if mask is None:
            mask = torch.ones(found.shape[:3], dtype=torch.bool, device=found.device)
        return {"probabilities": point_samples.blank_padding(found, mask), "mask": mask}

    def faults(self, outputs: Tree) -> dict[str, Tensor]:
        """Mark samples with NaN or infinite outputs, padding aside."""
        wrong = ~outputs["probabilities"].isfinite().all(-1) & outputs["mask"]
        return {"NaN or infinite output": wrong.any(-1)}

    # How good it is.

    def score(self, outputs: Tensor, reference: Tensor, valid: Tensor | None) -> Tensor:
        """Return the share of judged points `[K, B]` whose class is that of the reference."""
        judged = reference >= 0
        right = (outputs.argmax(-1) == reference) & judged
        return right.sum(-1) / judged.sum(-1)  # 0 / 0 is NaN

    def reference(self, consensus: Tensor) -> Tensor:
        """Return the most probable class of each point, -1 for padding."""
        known = consensus.isfinite().all(-1)
        return consensus.argmax(-1).where(known, UNLABELED).to(torch.int16)

    def deviation(self, outputs: Tensor, center: Tensor, valid: Tensor | None) -> Tensor:
        """Return the squared distance of the probabilities, mean over points."""
        return (outputs - center[None]).double().square().sum(-1).nanmean(-1)

    def variables(self, labeled: bool) -> dict[str, Variable]:
        """Declare the classes and confidences of points, and their sums."""
        about = self.common_variables(labeled, ("point",)) | _UNLABELED
        about["consensus"] = per_sample("class of the largest mean probability", "point")
        return about | _LABELED if labeled else about

    def orbit_extras(self, outputs: Tree, target: Tensor | None, orbit: TaskOrbit) -> Results:
        """Return the consensus as classes, and how many points change."""
        there = self.output.move(orbit.elements.inverse(), outputs["mask"])
        return {
            "consensus": self.reference(orbit.consensus),
            "consensus_probabilities": orbit.consensus,
            **map_vote_disagreement(
                map_class_votes(orbit.home.argmax(-1), there, orbit.answers.shape[-1])
            ),
        }

    def extras(self, outputs: Tree, target: Tensor | None, elements: Elements) -> Results:
        """Return classes and confidences and, with a truth, which are correct, and all sums."""
        answers, mask = self.primary(outputs), outputs["mask"]
        sure, winners = answers.max(-1)
        found = {
            "point_class": winners.where(mask, UNLABELED).to(torch.int16),
            "point_confidence": sure,
            "mean_confidence": sure.nanmean(-1),
            "probabilities": answers,
        }
        if target is None:
            return found
        truth = self.output.move(elements, target[None]).long()
        judged = mask & (truth >= 0)
        right = (winners == truth).to(sure)
        both, either, _, bins = map_tally(sure, winners, truth, judged, answers.shape[-1])
        return found | {
            "point_correct": right.where(judged, torch.nan),
            "class_iou": both / either,  # 0 / 0 is NaN: it does not occur
            "mean_iou": (both / either).nanmean(-1),
            **bins,
        }


_UNLABELED = {
    "consensus_probabilities": per_sample("mean probabilities", "point", "class", optional=True),
    "changed_pixels": per_sample("share of points whose class changes along the orbit"),
    "changed_pairs": per_sample("share of pairs of elements that disagree on a point"),
    "mean_confidence": per_element("mean of the largest probability", unit="share"),
    "point_class": per_element("predicted class of a point, -1 for padding", "point"),
    "point_confidence": per_element("largest probability of a point", "point", unit="share"),
    "probabilities": per_element("class probabilities", "point", "class", optional=True),
}
_LABELED = {
    "point_correct": per_element("1 if correct, 0 if not, NaN if not judged", "point"),
    "class_iou": per_element("intersection over union of each class", "class", **SHARE),
    "mean_iou": per_element("mean intersection over union of the classes that occur", **SHARE),
    **map_tally_variables("points", "sample"),
}
