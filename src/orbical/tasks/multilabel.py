"""Multi-label classification: any number of K labels for each input."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import torch
from torch import Tensor

from .._text import number
from ..actions import ActionTree
from ..errors import InputError, real_number
from ..groups import Elements
from . import reading
from .answers import ANSWER, answer_codes
from .classification import Representation, SampleClassTask
from .task import Reader, Results, Variable, per_element

SCORES = {
    "f1": "F1 of the predicted labels",
    "jaccard": "overlap of predicted and true labels",
    "label_accuracy": "share of labels that are correct",
    "correct": "whether all labels are correct",
}


class MultiLabel(SampleClassTask):
    """Predict which of K labels an input has, which stay as it moves, or move with it.

    A model returns a logit or a probability for each label, `[N, K]`. The truth is `[N, K]`, 1
    where a label applies, 0 where it does not, and NaN where that is unknown; unknown labels are
    not judged. Stored for each sample and element, from labels with a probability of at least
    `threshold`:

    - `f1`, `2 |A and B| / (|A| + |B|)` of predicted labels A and true ones B, and `jaccard`,
      `|A and B| / |A or B|`; both are 1 if neither has any;
    - `label_accuracy`, the share of labels that are correct, and `correct`, whether all are (subset
      accuracy), with `confidence`, the probability of that if labels were independent;
    - `probabilities` of all labels, for `orbical.calibration.pairs_within`.

    Args:
        input: the action on the inputs, or a tree of actions; by default `Images()`, or `Volumes()`
            of inputs `[N, C, D, H, W]`.
        outputs: what the model returns, `"logits"` or `"probabilities"`; it is never guessed.
        read: a function that picks the outputs `[N, K]` from a raw model output.
        classes: the names of the labels, in their order.
        score: `"f1"`, `"jaccard"`, `"label_accuracy"` or `"correct"`.
        threshold: the smallest probability of a predicted label.
        representation: how labels move with the input, as the classes of `Classification`.

    Raises:
        InputError: if an argument is not one of these.

    Example:
        >>> import orbical as ob
        >>> def bright(images):
        ...     return 9 * torch.stack([images.mean((1, 2, 3)), images[:, 0, 0, 0]], 1)
        >>> images = torch.ones(2, 1, 4, 4)
        >>> scan = ob.scan(bright, (images, [[1, 1], [1, 0]]), group="cyclic:4",
        ...                task="multilabel", progress=False)
        >>> scan.data["label_accuracy"].mean("element").values.tolist()
        [[1.0, 0.5]]
    """

    name: ClassVar[str] = "multilabel"
    gap_unit = ""  # a sum over labels
    truth_name: ClassVar[str] = "true_labels"
    truth_kind: ClassVar[str] = "labels"
    truth_dims = ("class",)
    detail_view: ClassVar[str] = "bars"

    def __init__(
        self,
        input: ActionTree | None = None,
        outputs: str = "logits",
        read: Reader | None = None,
        classes: Sequence[str] | None = None,
        score: str = "f1",
        threshold: float = 0.5,
        representation: Representation = "trivial",
    ) -> None:
        super().__init__(input, outputs, read, classes, representation)
        self.choose_score(score, SCORES)
        self.threshold = float(real_number("threshold", threshold, "in (0, 1)"))

    def read(self, raw: object, outputs: str | None = None) -> Tensor:
        """Read the probabilities of labels, `[N, K]`."""
        given = reading.read_output(self.picked(raw), "a number for each label,", "sample", "label")
        given = reading.read_precision(given)
        if (outputs or self.outputs) == "logits":
            return given.sigmoid()
        if bool(((given < -1e-6) | (given > 1 + 1e-6)).any()):
            got = f"{number(float(given.min()))} .. {number(float(given.max()))}"
            raise reading.wrong_output("probabilities", got, "for logits pass outputs='logits'")
        return given.clamp(0, 1)

    def check_target(self, target: object, count: int) -> Tensor:
        """Check labels `[N, K]` of 0, 1 and, where unknown, NaN."""
        labels = reading.read_truth(target, count)
        if labels.ndim != 2 or labels.is_complex() or labels.shape[1] == 0:
            remedy = "for one class of each sample use task='classification'"
            raise reading.wrong_truth("0 or 1 for each label, [sample, label]", labels, remedy)
        labels = labels.float()
        known = labels[labels.isfinite()]
        if bool(labels.isinf().any()) or not bool(((known == 0) | (known == 1)).all()):
            raise InputError(
                "labels",
                "0, 1, or NaN where a label is unknown",
                f"{float(labels.nan_to_num().min()):g} .. {float(labels.nan_to_num().max()):g}",
            )
        if unknown := int(labels.isnan().all(-1).sum()):
            raise InputError(
                "labels",
                "a known label of each sample",
                f"only NaN for {unknown} of {count}",
                remedy="leave such samples out",
            )
        return labels

    def check_range(self, target: Tensor, outputs: Tensor) -> None:
        """Check that truth, outputs and names have as many labels."""
        count = outputs.shape[-1]
        reading.check_as_predicted(target.shape[-1], count, f"{count} labels")
        self.check_classes(count)

    def variables(self, labeled: bool) -> dict[str, Variable]:
        """Declare probabilities, and how well the predicted labels match."""
        return self.common_variables(labeled, ("class",)) | {
            "probabilities": per_element("probability of each label", "class"),
            "confidence": per_element(
                "probability that all labels are correct, if they were independent", unit="share"
            ),
            "answer": ANSWER,
        }

    def score(self, outputs: Tensor, reference: Tensor, valid: Tensor | None) -> Tensor:
        """Score probabilities `[K, B, C]` against labels."""
        return self._compared(outputs, reference)[self.chosen].float()

    def reference(self, consensus: Tensor) -> Tensor:
        """Return the labels of the mean probabilities."""
        return (consensus >= self.threshold).float()

    def extras(self, outputs: Tensor, target: Tensor | None, elements: Elements) -> Results:
        """Return the probabilities, their joint confidence, and all scores."""
        predicted = outputs >= self.threshold
        chance = outputs.where(predicted, 1 - outputs)
        if target is not None:
            chance = chance.where(target[None].isfinite(), 1.0)
        extras = {
            "probabilities": outputs,
            "confidence": chance.double().log().sum(-1).exp().float(),
            "answer": answer_codes(predicted),
        }
        return extras if target is None else extras | self._compared(outputs, target[None])

    def _compared(self, outputs: Tensor, labels: Tensor) -> Results:
        """Return every score `[K, B]`; labels that are unknown do not count."""
        known = labels.isfinite().expand(outputs.shape)
        predicted, true = (outputs >= self.threshold) & known, (labels > 0.5) & known
        both, either = (predicted & true).sum(-1), (predicted | true).sum(-1)
        right = ((predicted == true) & known).sum(-1)
        none = either == 0
        return {
            "f1": torch.where(none, 1.0, 2 * both / (both + either).clamp_min(1)),
            "jaccard": torch.where(none, 1.0, both / either.clamp_min(1)),
            "label_accuracy": right / known.sum(-1).clamp_min(1),
            "correct": right == known.sum(-1),
        }
