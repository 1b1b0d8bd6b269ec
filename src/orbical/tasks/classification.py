"""Classification: one of C classes, with or without an order, or one of some options."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from .._arrays import both_classes, row_sum_tolerance
from .._text import first_names, number
from .._trees import Tree
from .._warnings import warn
from ..actions import ActionTree, Classes, Texts, Trivial
from ..errors import InputError, ModelError, check_name
from ..groups import Elements, Group, with_classes
from . import reading
from .task import SHARE, Reader, Results, Task, Variable, per_element

OUTPUTS = ("logits", "probabilities")
Representation = str | Mapping[str, Mapping[str | int, str | int]]
"""How classes move with the input."""
CLASS_PROBABILITY = "probability of the true class"
"""The meaning of the score of a classifier, as `score_meaning` of your own task may state it."""


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
    gap_unit = "share"

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
        self.classes = reading.read_class_names(classes)

    def check_classes(self, count: int, largest: int = -1, remedy: str = "") -> None:
        """Check that each of the model's classes has a name, and that the largest label is one."""
        if self.classes is not None and len(self.classes) != count:
            raise InputError(
                "classes",
                f"the names of the model's {count} classes",
                f"{len(self.classes)}, {first_names(self.classes)}",
                remedy="pass all of them with classes= (--classes)",
            )
        if largest >= count:
            raise InputError(
                "labels", f"class indices below {count}, as the model has", largest, remedy=remedy
            )


class SampleClassTask(ClassTask):
    """What tasks share that predict classes `[N, C]` of whole samples, which may move with these.

    Args:
        input, outputs, read, classes: as for `ClassTask`.
        representation: how the classes move with the input.
    """

    def __init__(
        self,
        input: ActionTree | None = None,
        outputs: str = "logits",
        read: Reader | None = None,
        classes: Sequence[str] | None = None,
        representation: Representation = "trivial",
    ) -> None:
        super().__init__(input, Trivial(), outputs, read, classes)
        self.representation = _classification_representation(representation)

    def on_outputs(self, group: Group) -> Group:
        """Return a group that knows the permutation of classes of each element."""
        if isinstance(self.representation, str):
            return group
        return with_classes(group, self.representation, self.classes)

    def at_home(self, outputs: Tensor, elements: Elements) -> Tensor:
        """Return outputs `[K, B, C]` for the classes of the input before it was moved."""
        part = "rows" if self.representation == "options" else "classes"
        if self.representation == "trivial" or part not in elements.parts:
            return outputs
        moving, count = elements.parts[part].shape[1], outputs.shape[-1]
        if count < moving:
            raise ModelError(f"expected the {moving} classes that the group permutes, got {count}")
        home: Tensor = Classes(part).move(elements.inverse(), outputs)
        return home

    def check_outputs(self, group: Group, outputs: Tensor) -> None:
        """Warn of fixed classes that seem to be the rows of the input."""
        super().check_outputs(group, outputs)
        rows = group.parts.get("rows")
        fixed = self.representation == "trivial"
        if fixed and rows is not None and rows.shape[1] == outputs.shape[-1]:
            warn(
                f"{group.spec} reorders {outputs.shape[-1]} rows of the input, and there are as "
                "many classes, which are said to stay; if class k is the k-th row, pass "
                f"task=ob.tasks.{type(self).__name__}(representation='options'), or the option "
                "--representation options",
            )


def _classification_representation(given: Representation) -> Representation:
    """Return how classes move, with the names of elements and classes as text."""
    if isinstance(given, Mapping) and all(isinstance(moves, Mapping) for moves in given.values()):
        return {
            str(element): {str(old): str(new) for old, new in moves.items()}
            for element, moves in given.items()
        }
    if given not in ("trivial", "options"):
        raise InputError(
            "representation",
            "'trivial', 'options', or the classes that elements exchange, such as "
            "{'flip horizontal': {'left': 'right'}}",
            repr(given),
        )
    return given


class Classification(SampleClassTask):
    """Predict one of C classes, which stay as the input moves, or move with it.

    The score is the probability of the true class. Classes that move are brought back before
    anything else is done with them: `predicted`, `probabilities` and all that follows from them
    state the class of the input as it was given. The predicted class is that of the largest
    probability, in the precision of the outputs: logits that differ by less than its rounding
    (1e-7 in float32) are a tie, which the first class wins.

    Args:
        input: the action on the inputs, or a tree of actions; by default `Images()`, or `Volumes()`
            of inputs `[N, C, D, H, W]`.
        outputs: what the model returns, `"logits"` or `"probabilities"`; it is never guessed.
            One column, `[N]` or `[N, 1]`, is class 1 of two.
        read: a function that picks the outputs `[N, C]` from a raw model output.
        classes: the names of the classes, in the order of their indices, for display.
        representation: how classes move with the input: `"trivial"` (they stay), `"options"`
            (class k is the k-th row of the input, and goes where it goes), or for elements of the
            group the classes that they exchange, by name or index: `{"flip horizontal":
            {"left": "right"}}`, `{"angle 180": {6: 9}}`. An element is named as
            `orbical.groups.Group.name` does; the name of a coordinate alone means all its elements
            but the identity.

    Raises:
        InputError: if `outputs` is neither of the two, `classes` is not a list of names, or
            `representation` none of these.

    See Also:
        MultiLabel: Several labels for each input.
        Ordinal: Classes with an order.
        Choice: Options of a question.

    Example:
        >>> import orbical as ob
        >>> ob.tasks.Classification(input={"pos": ob.actions.Points(), "mask": ob.actions.Rows()})
        Classification()

        A model that looks for the brighter half of an image, and moves its answer with it:

        >>> def side(images):
        ...     return torch.stack([images[..., :2].sum((1, 2, 3)), images[..., 2:].sum((1, 2, 3))],
        ...                        1)
        >>> task = ob.tasks.Classification(
        ...     classes=["left", "right"], representation={"flip horizontal": {"left": "right"},
        ...                                                "flip both": {"left": "right"}})
        >>> images = torch.zeros(2, 1, 4, 4)
        >>> images[0, ..., 0] = images[1, ..., 3] = 1
        >>> scan = ob.scan(side, (images, [0, 1]), group="flips", task=task, progress=False)
        >>> scan.data["predicted"].values[0].tolist()
        [[0, 0, 0, 0], [1, 1, 1, 1]]
    """

    name: ClassVar[str] = "classification"
    score_meaning = CLASS_PROBABILITY
    truth_name: ClassVar[str] = "label"
    truth_kind: ClassVar[str] = "class"
    detail_view: ClassVar[str] = "bars"

    def read(self, raw: object, outputs: str | None = None) -> Tensor:
        """Read class probabilities `[N, C]`."""
        given = self.picked(raw)
        if not reading.is_real(given) or given.ndim not in (1, 2) or 0 in given.shape[1:]:
            raise reading.unreadable_output(given, "[sample, class], or [sample] of class 1 of two")
        if given.ndim == 1 and not given.is_floating_point():  # predictions
            raise reading.unreadable_output(given, "the scores of classes, [sample, class]")
        return class_probabilities(given, outputs or self.outputs)

    def check_target(self, target: object, count: int) -> Tensor:
        """Check class indices `[N]` or `[N, 1]`."""
        labels = reading.read_class_indices(target, count, 1, -1, "integers of shape (N,)").long()
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

    def extras(self, outputs: Tensor, target: Tensor | None, elements: Elements) -> Results:
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


LARGEST_CLASS = 32_000
"""Classes of pixels and points are stored in two bytes."""


def class_probabilities(given: Tensor, outputs: str) -> Tensor:
    """Return the probabilities `[N, C, ...]` of what a model gives, or refuse what is none."""
    of_logits = outputs == "logits"
    slack = row_sum_tolerance(given.dtype)
    given = both_classes(reading.read_precision(given), logits=of_logits, axis=1)
    if of_logits:
        return given.softmax(1)
    total = given.sum(1)
    if bool((given < -1e-6).any()) or bool(((total - 1).abs() > slack).any()):
        sums = f"{number(float(total.min()))} .. {number(float(total.max()))}"
        got = f"classes that are negative or sum to {sums}"
        raise reading.wrong_output("probabilities", got, "for logits pass outputs='logits'")
    return given.clamp(0, 1)


SCORES = {
    "rps": "ranked probability score",
    "rank_error": "distance of the predicted from the true rank",
}


class Ordinal(Classification):
    """Predict one of C ordered classes, which stay as the input moves, or move with it.

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
        representation: how classes move with the input, as for `Classification`.

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
        representation: Representation = "trivial",
    ) -> None:
        super().__init__(input, outputs, read, classes, representation)
        self.choose_score(score, SCORES)

    def variables(self, labeled: bool) -> dict[str, Variable]:
        """Declare all probabilities."""
        about = super().variables(labeled)
        about["probabilities"] = per_element("class probabilities", "class")
        return about

    def score(self, outputs: Tensor, reference: Tensor, valid: Tensor | None) -> Tensor:
        """Score probabilities `[K, B, C]` against classes."""
        return _by_rank(outputs, reference)[self.chosen]

    def extras(self, outputs: Tensor, target: Tensor | None, elements: Elements) -> Results:
        """Add the scores by rank."""
        extras = super().extras(outputs, target, elements)
        return extras if target is None else extras | _by_rank(outputs, target[None])


def _by_rank(probabilities: Tensor, label: Tensor) -> Results:
    """Return both scores `[K, B]` of probabilities `[K, B, C]` against classes `[K or 1, B]`."""
    steps = probabilities.shape[-1] - 1
    reached = probabilities.cumsum(-1)[..., :-1]
    passed = torch.arange(steps, device=label.device) >= label.long()[..., None]
    return {
        "rps": (reached - passed.to(reached)).square().sum(-1) / steps,
        "rank_error": (probabilities.argmax(-1) - label).abs().to(reached.dtype),
    }


class Choice(Classification):
    """Choose one of the options of a question; each keeps its name in any order of the options.

    A model is a function of the texts, `model(question, options)` with N questions and N lists of
    n options, that returns a score for each option at the position where it is shown, `[N, n]`; one
    column more is a tie, or an answer that refuses. A model without scores may return the letter of
    the position that it chooses, which has then all of the probability. The group reorders the
    options: `permutations:4` by all orders, `permutations:5:24` by some, `cyclic_orders:5` by those
    that bring each option once to each position, and `reversal:2` exchanges the two answers that a
    judge compares. Stored besides what `Classification` stores are

    - `probabilities`, `predicted` and `correct`, of the option itself, wherever it is shown;
    - `position`, where the chosen option is shown, from 0.

    Args:
        input: the action on the inputs; by default `{"question": Texts(), "options": Texts()}`.
        outputs: what the model returns, `"logits"` (or any log-likelihoods) or `"probabilities"`.
        read: a function that picks the scores `[N, n]` from a raw model output.
        classes: the names of the options in the order of the data, for display; A, B, ... unless
            given.

    Example:
        >>> import orbical as ob
        >>> def longest(question, options):  # and fond of what comes first
        ...     return [[len(text) + 2.0 * (place == 0) for place, text in enumerate(row)]
        ...             for row in options]
        >>> data = [("Which is a fruit?", ["an apple", "a stone"], "A"),
        ...         ("Which is a metal?", ["wood", "iron"], "B")]
        >>> scan = ob.scan(longest, data, group="permutations:2", task="choice", progress=False)
        >>> scan.data["predicted"].values[0].tolist(), scan.data["position"].values[0].tolist()
        ([[0, 1], [0, 1]], [[0, 0], [0, 0]])
    """

    name: ClassVar[str] = "choice"

    def __init__(
        self,
        input: ActionTree | None = None,
        outputs: str = "logits",
        read: Reader | None = None,
        classes: Sequence[str] | None = None,
    ) -> None:
        usual = {"question": Texts(), "options": Texts()} if input is None else input
        super().__init__(usual, outputs, read, classes, "options")

    def read(self, raw: object, outputs: str | None = None) -> Tensor:
        """Read a probability for each option, from their scores or from letters of positions."""
        given = self.picked(raw)
        texts = [*given] if isinstance(given, tuple | list | np.ndarray) else [None]
        if not all(isinstance(text, str) for text in texts):
            return super().read(raw, outputs)
        names = [str(name).lower() for name in self.classes or ()]
        letters = [chr(97 + place) for place in range(len(names))]
        said = [str(text).strip().rstrip(".").lower() for text in texts]
        for text in said:
            if text not in letters and text not in names:
                one = f"one of {', '.join(letters).upper()} for each question"
                raise reading.wrong_output(f"a score for each option, or {one}", repr(text))
        chosen = [(letters if text in letters else names).index(text) for text in said]
        return torch.eye(len(names), dtype=torch.float64)[chosen]

    def usual_group(self, x: Tree) -> str:
        """Return all orders of up to four options, and 24 orders of more."""
        if not isinstance(x, dict) or "options" not in x:
            raise InputError(
                "data",
                "questions with options",
                "other data",
                remedy="a table needs the columns question, A, B, ... and answer",
            )
        count = x["options"].shape[1]
        return f"permutations:{count}" if count <= 4 else f"permutations:{count}:24"

    def variables(self, labeled: bool) -> dict[str, Variable]:
        """Declare the position of the chosen option, and all probabilities."""
        return super().variables(labeled) | {
            "probabilities": per_element("probability of each option", "class"),
            "position": per_element("position of the chosen option, from 0"),
        }

    def extras(self, outputs: Tensor, target: Tensor | None, elements: Elements) -> Results:
        """Add the position of the chosen option."""
        extras = super().extras(outputs, target, elements)
        shown = Classes("rows").move(elements, extras["predicted"])
        return extras | {"position": shown.to(torch.int32)}
