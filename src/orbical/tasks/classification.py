"""Classification: one of C classes for each input, with or without an order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import torch
from torch import Tensor

from .._arrays import both_classes
from .._text import number
from ..actions import ActionTree, Settings, Trivial
from ..errors import InputError, ModelError, check_name
from ..groups import Elements
from .task import (
    SHARE,
    Reader,
    Task,
    Variable,
    as_truth,
    class_names,
    described,
    is_real,
    per_element,
    single_or_double,
    unreadable,
)

__all__ = ["Classification", "Ordinal"]

OUTPUTS = ("logits", "probabilities")
CLASS_PROBABILITY = "probability of the true class"


class ClassTask(Task):
    """What tasks share whose models return logits or probabilities of classes.

    Args:
        input: the action on the inputs.
        output: the action on the outputs.
        outputs: `"logits"` or `"probabilities"`.
        read: a function that picks the outputs from a raw model output.
        classes: the names of the classes.
    """

    higher_is_better: ClassVar[bool] = True
    score_unit = "share"

    def __init__(
        self,
        input: ActionTree | None,
        output: ActionTree,
        outputs: str,
        read: Reader | None,
        classes: Sequence[str] | None,
    ) -> None:
        check_name("outputs", outputs, OUTPUTS)
        super().__init__(input, output, read)
        self.outputs = outputs
        self.classes = class_names(classes)

    def settings(self) -> Settings:
        """Return the arguments of the constructor other than `input` and `read`."""
        return {"outputs": self.outputs, "classes": self.classes}

    def check_classes(self, count: int, largest: int = -1, remedy: str = "") -> None:
        """Check that each of the model's classes has a name, and that the largest label is one."""
        if self.classes is not None and len(self.classes) != count:
            raise InputError(
                "classes",
                f"the names of the model's {count} classes",
                len(self.classes),
                remedy="pass all of them with classes= (--classes)",
            )
        if largest >= count:
            raise InputError(
                "labels",
                f"class indices below {count}, as the model has",
                largest,
                remedy=remedy,
            )


class Classification(ClassTask):
    """Predict one of C classes; the class does not change when the input moves.

    The score is the probability of the true class.

    Args:
        input: the action on the inputs, or a tree of actions; by default `Images()`, or `Volumes()`
            of inputs `[N, C, D, H, W]`.
        outputs: what the model returns, `"logits"` or `"probabilities"`; it is never guessed.
            One column, `[N]` or `[N, 1]`, is class 1 of two.
        read: a function that picks the outputs `[N, C]` from a raw model output.
        classes: the names of the classes, in the order of their indices, for display.

    Raises:
        InputError: if `outputs` is neither of the two, or `classes` is not a list of names.

    Example:
        >>> import orbical as ob
        >>> ob.tasks.Classification(input={"pos": ob.actions.Points(), "mask": ob.actions.Rows()})
        Classification()
    """

    name: ClassVar[str] = "classification"
    score_meaning = CLASS_PROBABILITY
    truth_name: ClassVar[str] = "label"
    truth_kind: ClassVar[str] = "class"
    detail_view: ClassVar[str] = "bars"

    def __init__(
        self,
        input: ActionTree | None = None,
        outputs: str = "logits",
        read: Reader | None = None,
        classes: Sequence[str] | None = None,
    ) -> None:
        super().__init__(input, Trivial(), outputs, read, classes)

    def read(self, raw: object, outputs: str | None = None) -> Tensor:
        """Read class probabilities `[N, C]`."""
        given = self.picked(raw)
        if not is_real(given) or given.ndim not in (1, 2) or 0 in given.shape[1:]:
            raise unreadable(given, "[sample, class], or [sample] of class 1 of two")
        if given.ndim == 1 and not given.is_floating_point():
            raise unreadable(given, "the scores of classes, [sample, class]")  # not predictions
        return class_probabilities(given, outputs or self.outputs)

    def check_target(self, target: object, count: int) -> Tensor:
        """Check class indices `[N]` or `[N, 1]`."""
        labels = as_truth(target, count)
        if labels.shape[1:] == (1,):
            labels = labels[:, 0]
        if labels.ndim != 1 or labels.is_floating_point() or labels.is_complex():
            indices = "labels.argmax(-1)" if labels.ndim > 1 else "labels.astype(int)"
            raise InputError(
                "labels",
                "integers of shape (N,)",
                described(labels),
                remedy=f"pass class indices, e.g. {indices}",
            )
        labels = labels.long()
        if count and int(labels.min()) < 0:
            raise InputError("labels", "class indices from 0", int(labels.min()))
        return labels

    def check_range(self, labels: Tensor, outputs: Tensor) -> None:
        """Check that every label is a class of the model, and that each class has a name."""
        self.check_classes(outputs.shape[-1], int(labels.max()) if len(labels) else -1)

    def variables(self, labeled: bool) -> dict[str, Variable]:
        """Declare confidence, predicted class and whether it is correct."""
        variables = self.common_variables(labeled, ("class",)) | {
            "confidence": per_element("largest class probability", unit="share"),
            "predicted": per_element("class of the largest probability"),
            "probabilities": per_element("class probabilities", "class", optional=True),
        }
        if labeled:
            what = "whether the predicted class is the true one"
            variables["correct"] = per_element(what, **SHARE)
        return variables

    def score(self, outputs: Tensor, reference: Tensor, valid: Tensor | None) -> Tensor:
        """Return the probability of the reference class."""
        return outputs.gather(-1, reference.long()[..., None])[..., 0]

    def reference(self, consensus: Tensor) -> Tensor:
        """Return the class of the largest mean probability."""
        return consensus.argmax(-1)

    def extras(
        self, outputs: Tensor, target: Tensor | None, elements: Elements
    ) -> dict[str, Tensor]:
        """Return confidence, predicted class and correctness."""
        confidence, predicted = outputs.max(-1)
        extras = {
            "confidence": confidence,
            "predicted": predicted.to(torch.int32),
            "probabilities": outputs,
        }
        if target is not None:
            extras["correct"] = predicted == target[None]
        return extras


def class_probabilities(given: Tensor, outputs: str) -> Tensor:
    """Return the probabilities `[N, C, ...]` of what a model gives, or refuse what is none."""
    of_logits = outputs == "logits"
    given = both_classes(single_or_double(given), logits=of_logits, axis=1)
    if of_logits:
        return given.softmax(1)
    total = given.sum(1)
    if bool((given < -1e-6).any()) or bool(((total - 1).abs() > 1e-3).any()):
        raise ModelError(
            "model output: expected probabilities, got classes that are negative or sum to "
            f"{number(float(total.min()))} .. {number(float(total.max()))}; for logits pass "
            "outputs='logits'"
        )
    return given


SCORES = {
    "rps": "ranked probability score",
    "rank_error": "distance of the predicted from the true rank",
}


class Ordinal(Classification):
    """Predict one of C ordered classes; the class does not change when the input moves.

    As `Classification`, but an answer that is one rank off is better than one that is two off.
    Stored besides are `rank_error`, the distance of the predicted (most probable) class from the
    true one in ranks, and `rps`, the ranked probability score

        rps = sum_k (P(class <= k) - [true class <= k])^2 / (C - 1),   k = 0 .. C - 2

    which is 0 for a certain and correct, and 1 for a certain answer at the other end.
    `orbical.nero.quadratic_kappa` measures agreement, and `orbical.calibration.pairs_within` makes
    every `P(class <= k)` a pair for the measures of calibration.

    Args:
        input: the action on the inputs, or a tree of actions; by default `Images()`, or `Volumes()`
            of inputs `[N, C, D, H, W]`.
        outputs: what the model returns, `"logits"` or `"probabilities"`; it is never guessed.
        read: a function that picks the outputs `[N, C]` from a raw model output.
        classes: the names of the classes, from the lowest to the highest.
        score: `"rps"` or `"rank_error"`.

    Raises:
        InputError: if an argument is not one of these.

    Example:
        >>> import orbical as ob
        >>> def middle(images):
        ...     return torch.tensor([0.25, 0.5, 0.25]).expand(len(images), -1)
        >>> scan = ob.scan(middle, (torch.ones(2, 1, 4, 4), [1, 2]), group="cyclic:4",
        ...                task=ob.tasks.Ordinal(outputs="probabilities"), progress=False)
        >>> scan.data["rps"].mean("element").values.tolist()
        [[0.0625, 0.3125]]
    """

    name: ClassVar[str] = "ordinal"
    higher_is_better: ClassVar[bool] = False
    score_unit = ""

    def __init__(
        self,
        input: ActionTree | None = None,
        outputs: str = "logits",
        read: Reader | None = None,
        classes: Sequence[str] | None = None,
        score: str = "rps",
    ) -> None:
        check_name("score", score, SCORES)
        super().__init__(input, outputs, read, classes)
        self.chosen, self.score_meaning = score, SCORES[score]

    def settings(self) -> Settings:
        """Return the arguments of the constructor other than `input` and `read`."""
        return {**super().settings(), "score": self.chosen}

    def variables(self, labeled: bool) -> dict[str, Variable]:
        """Declare the scores by rank, and all probabilities."""
        about = super().variables(labeled)
        about["probabilities"] = per_element("class probabilities", "class")
        if labeled:
            about |= {
                name: per_element(meaning, higher_is_better=False)
                for name, meaning in SCORES.items()
            }
        return about

    def score(self, outputs: Tensor, reference: Tensor, valid: Tensor | None) -> Tensor:
        """Score probabilities `[K, B, C]` against classes."""
        return _by_rank(outputs, reference)[self.chosen]

    def extras(
        self, outputs: Tensor, target: Tensor | None, elements: Elements
    ) -> dict[str, Tensor]:
        """Add the scores by rank."""
        extras = super().extras(outputs, target, elements)
        return extras if target is None else extras | _by_rank(outputs, target[None])


def _by_rank(probabilities: Tensor, label: Tensor) -> dict[str, Tensor]:
    """Return both scores `[K, B]` of probabilities `[K, B, C]` against classes `[K or 1, B]`."""
    steps = probabilities.shape[-1] - 1
    reached = probabilities.cumsum(-1)[..., :-1]
    passed = torch.arange(steps, device=label.device) >= label.long()[..., None]
    return {
        "rps": (reached - passed.to(reached)).square().sum(-1) / steps,
        "rank_error": (probabilities.argmax(-1) - label).abs().to(reached.dtype),
    }
