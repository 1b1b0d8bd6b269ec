"""What every task offers: how an answer is read, how good it is, what an orbit of them says."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from .._imports import name_of, words_of
from .._trees import Tree, as_tensors, leaves
from ..actions import Action, as_action, view_of
from ..errors import InputError, ModelError
from ..groups import Elements, Group

Reader = Callable[[Any], Any]
Move = Callable[[Elements, Tensor], Tensor]
"""What moves `[K or 1, B, ...]` along by K elements."""


@dataclass(frozen=True)
class Variable:
    """A result of a scan: its dimensions after `model`, what it means, and how it is read.

    Args:
        dims: the dimensions, such as `("sample", "element")`.
        meaning: a phrase for legends and tables.
        optional: whether it is stored only if `keep=` names it.
        unit: `"share"` for values in 0..1, a unit such as `"px"`, or nothing.
        higher_is_better: the direction of a quality; None where there is none.
    """

    dims: tuple[str, ...]
    meaning: str
    optional: bool = False
    unit: str = ""
    higher_is_better: bool | None = None

    @property
    def attributes(self) -> dict[str, Any]:
        """What the stored array says of itself."""
        better = self.higher_is_better
        return {
            "meaning": self.meaning,
            "units": self.unit,
            **({} if better is None else {"higher_is_better": better}),
        }


ACTION_DEFECT = Variable(
    ("sample", "element"),
    "relative loss of the transformation itself, there and back",
    higher_is_better=False,
)


class Task(ABC):
    """A kind of question put to a model, and what its answers along an orbit mean.

    A task has an input action and an output action (the representation in which answers turn), a
    score, a mean for the consensus, and a declared schema. `read` overrides how a raw model output
    becomes what the task expects. The views name what an interactive display shows.
    """

    name: ClassVar[str]
    score_meaning: ClassVar[str]
    higher_is_better: ClassVar[bool]
    score_unit: ClassVar[str] = ""
    truth_name: ClassVar[str] = "target"
    detail_view: ClassVar[str] = "values"
    quantities: tuple[str, ...] = ()
    """What a model that can be asked for several things is asked for."""

    def __init__(self, input: Any, output: Any, read: Reader | None = None) -> None:
        self.input: Action = as_action(input)
        self.output: Action = as_action(output)
        self._read = read

    # What a task must say.

    @abstractmethod
    def read(self, raw: Any, outputs: str | None = None) -> Tree:
        """Turn a model's raw output for N inputs into the task's outputs, or refuse it clearly.

        `outputs` is what the predictor states about its own outputs, if it does.
        """

    @abstractmethod
    def check_target(self, target: Any, count: int) -> Tensor:
        """Check the ground truth of `count` samples and return it as a tensor."""

    @abstractmethod
    def check_range(self, target: Tensor, outputs: Tree) -> None:
        """Check the ground truth against what a model answers for the first samples."""

    @abstractmethod
    def variables(self, labeled: bool) -> dict[str, Variable]:
        """Declare the results of a scan with or without ground truth."""

    @property
    @abstractmethod
    def truth_dims(self) -> tuple[str, ...]:
        """Name the dimensions of the truth after `sample`."""

    @abstractmethod
    def score(self, outputs: Tensor, reference: Tensor, valid: Tensor | None) -> Tensor:
        """Score `outputs[K, B, ...]` against a reference that has been moved along, `[K, B]`."""

    @abstractmethod
    def extras(self, outputs: Tree, target: Tensor | None, elements: Elements) -> dict[str, Tensor]:
        """Give the task's own variables, element first."""

    # What a task may say.

    @property
    def input_view(self) -> str:
        """Name the view of the inputs: that of the input action, where a task names no other."""
        return view_of(self.input)

    def take(self, data: Any) -> Any:
        """Turn data of the task's own kind into arrays, as `x` or `(x, y)`."""
        return data

    def names(self, data: Any) -> list[str] | None:
        """Give the names of samples, for display, where data of the task's own kind have some."""
        return None

    def joined(self, outputs: Tree, moved: Tree) -> Tree:
        """Join to outputs `[K, B, ...]` what the moved inputs tell of them: what is padding."""
        return outputs

    def primary(self, outputs: Tree) -> Tensor:
        """Give the tensor of the outputs that the output action moves."""
        return outputs

    def companions(self, outputs: Tree) -> dict[str, tuple[Tensor, Move]]:
        """Give what stands beside the primary answer, `[K, B, ...]`, and how each of it moves."""
        return {}

    def faults(self, outputs: Tree) -> dict[str, Tensor]:
        """Mark the answers `[K, B]` that cannot be used, under the words that say why."""
        marks = [~torch.isfinite(leaf).flatten(2).all(-1) for leaf in leaves(outputs)]
        return {"NaN or infinite output": torch.stack(marks).any(0)}

    def reference(self, consensus: Tensor) -> Tensor:
        """Turn a consensus into the kind of truth that `score` compares with."""
        return consensus

    def average(self, outputs: Tensor, weights: Tensor, valid: Tensor | None) -> Tensor:
        """Average un-transformed outputs `[K, B, ...]` over the group, to `[B, ...]`.

        As the first answer plus the mean difference from it, so that rounding does not add up over
        many elements where all answers agree.
        """
        first = outputs[0]
        return first + torch.einsum("k,k...->...", weights.to(outputs.dtype), outputs - first)

    def deviation(self, outputs: Tensor, center: Tensor, valid: Tensor | None) -> Tensor:
        """Give the squared distance of un-transformed outputs from their mean, `[K, B]`."""
        return (outputs - center[None]).double().square().flatten(2).sum(-1)

    def scale(self, answers: Tensor) -> Tensor:
        """Give the size of answers `[B, ...]` against which their errors are measured in tests.

        It is the largest entry; a task whose answers have several units has one for each.
        """
        return answers.abs().max()

    def isometric(self, group: Group) -> bool:
        """Whether the score cannot change when output and truth move together by this group."""
        return all(
            np.allclose(part @ part.transpose(0, 2, 1), np.eye(part.shape[-1]), atol=1e-9)
            for part in (group.linear(name) for name in ("plane", "space") if name in group.parts)
        )

    def settings(self) -> dict[str, Any]:
        """Return the arguments of the constructor other than `input` and `read`."""
        return {}

    def describe(self) -> dict[str, Any]:
        """Return what identifies the task in the record of a scan."""
        reader = self._read
        return {
            "name": self.name,
            "input": self.input.describe(),
            "output": self.output.describe(),
            "read": None if reader is None else name_of(reader),
            "settings": self.settings(),
        }

    @staticmethod
    def from_record(described: Mapping[str, Any], read: Reader | None = None) -> Task:
        """Make a task from what `describe` returned, as the record of a scan holds it.

        Only the tasks of orbical itself are made, by name: nothing that a record names is ever
        imported. A task that was made with `read=` and is restored without it can move, score and
        show what is stored, but refuses to read a raw model output.

        Args:
            described: the description of the task.
            read: the function that picks the outputs, where the task had one.

        Returns:
            The task.

        Example:
            >>> from orbical.tasks import Classification
            >>> Task.from_record(Classification(outputs="probabilities").describe())
            Classification(outputs='probabilities')
        """
        from . import TASKS  # every task imports this module

        name = str(described["name"])
        if name not in TASKS:
            raise InputError(f"task: {name!r} is not a task of orbical; pass the task itself")
        if read is None and described["read"] is not None:
            read = _refuse_to_read(str(described["read"]))
        task = TASKS[name]._restored(
            described["settings"], Action.from_record(described["input"]), read
        )
        if {**task.describe(), "read": None} != {**described, "read": None}:
            raise InputError(f"task: {name!r} has settings that its record does not hold")
        return task

    @classmethod
    def _restored(cls, settings: Mapping[str, Any], input: Action, read: Reader | None) -> Task:
        return cls(input=input, read=read, **settings)

    def common_variables(self, labeled: bool, output_dims: tuple[str, ...]) -> dict[str, Variable]:
        """Declare what every task stores: the consensus, the gap, and the scores against them.

        Args:
            labeled: whether the truth is known.
            output_dims: the dimensions of one output.

        Returns:
            Names and variables, to which a task adds its own.
        """
        quality: dict[str, Any] = {
            "unit": self.score_unit,
            "higher_is_better": self.higher_is_better,
        }
        orbit = ("sample", "element")
        variables = {
            "score_vs_consensus": Variable(orbit, "score against the consensus", **quality),
            "consensus": Variable(("sample", *output_dims), "mean of the un-transformed answers"),
            "invariance_gap": Variable(
                ("sample",),
                "root mean square distance of the un-transformed answers from their mean",
            ),
        }
        if labeled:
            variables["score"] = Variable(orbit, "score against the truth", **quality)
            variables["consensus_vs_truth"] = Variable(
                ("sample",), "score of the consensus", **quality
            )
        return variables

    # What follows from it.

    def picked(self, raw: Any) -> Any:
        """Apply the user's `read`, where one is given."""
        if self._read is None:
            return raw
        try:
            return as_tensors(self._read(raw))
        except Exception as error:
            raise ModelError(
                f"read {name_of(self._read)} raised {type(error).__name__} for the raw output "
                f"{described(raw)}: {words_of(error)}"
            ) from error

    def summarize(
        self, outputs: Tree, target: Tensor | None, elements: Elements, weights: Tensor
    ) -> dict[str, Tensor]:
        """Turn all answers along the orbits of a batch into the variables of a scan.

        Outputs are element first, `[K, B, ...]`. All K answers of a sample are at hand, so the
        consensus (the mean of the un-transformed answers) needs no second pass.
        """
        answers = self.primary(outputs)
        backward = elements.inverse()
        home = self.output.move(backward, answers)
        home_valid = self.output.valid(backward, answers)
        consensus = self.average(home, weights, home_valid)
        gap = torch.einsum("k,kb->b", weights.double(), self.deviation(home, consensus, home_valid))
        valid = self.output.valid(elements, answers)
        judged = self.reference(consensus)
        summary = {
            "consensus": consensus,
            "invariance_gap": gap.sqrt().float(),
            "score_vs_consensus": self.score(
                answers, self.output.move(elements, judged[None]), valid
            ),
        }
        if target is not None:
            seen = self.output.valid(elements, target)  # the truth may reach beyond the answers
            summary["score"] = self.score(answers, self.output.move(elements, target[None]), seen)
            summary["consensus_vs_truth"] = self.score(consensus[None], target[None], None)[0]
        summary |= self.extras(outputs, target, elements)
        declared = self.variables(target is not None)
        return {
            name: value.transpose(0, 1) if "element" in declared[name].dims else value
            for name, value in summary.items()
        }


def as_truth(target: Any) -> Tensor:
    """Take the ground truth as a tensor, or refuse what holds no numbers."""
    if isinstance(target, Tensor):
        return target
    try:
        array = np.array(target)  # a copy: a tensor may share neither a view nor what is read-only
    except (TypeError, ValueError, RuntimeError) as error:
        raise InputError(f"labels: numbers for each sample expected: {error}") from error
    if array.dtype.kind not in "fiubc":
        given = ", ".join(repr(one) for one in array.reshape(-1)[:1].tolist())
        raise InputError(f"labels: {given or array.dtype} given, numbers for each sample expected")
    return torch.from_numpy(array.astype(array.dtype.newbyteorder("="), copy=False))


def class_names(classes: Any) -> list[str] | None:
    """Check the names of classes, in the order of their indices."""
    if classes is None:
        return None
    if isinstance(classes, str) or not isinstance(classes, Iterable):
        raise InputError(f"classes: {classes!r} given, a list of names expected")
    return [str(name) for name in classes]


def described(given: Any) -> str:
    """Say what a model gave: its shape, or its kind."""
    if isinstance(given, Tensor):
        return f"{given.dtype} of shape {tuple(given.shape)}"
    return type(given).__name__


def single_or_double(values: Tensor) -> Tensor:
    """Give whole numbers and half precision as single precision, and leave the rest."""
    return values if values.dtype in (torch.float32, torch.float64) else values.float()


def is_real(given: Any) -> bool:
    """Whether a model gave real numbers."""
    return isinstance(given, Tensor) and not given.is_complex()


def _refuse_to_read(name: str) -> Reader:
    """Return a reader for a task whose own one, of this name, is not at hand."""

    def refuse(raw: Any) -> Any:
        raise InputError(f"task: outputs were read by {name}; pass that function as read")

    return refuse
