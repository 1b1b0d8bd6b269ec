"""The base class of tasks: how outputs are read, scored and summarized along an orbit.

A task declares what a scan stores of them: dimensions, meanings, units.
"""

from __future__ import annotations

import inspect
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NoReturn, TypedDict, Unpack

import numpy as np
import torch
from torch import Tensor

from .. import actions
from .._imports_and_paths import name_of, words_of
from .._trees import Tree, as_tensors, concatenate, leaves
from ..actions import Action, ActionTree, Settings, flat_actions
from ..errors import InputError, ModelError, WithUsage, check_name
from ..groups import Elements, Group
from .point_samples import CLOUDS
from .reading import described_value

Reader = Callable[[Any], object]
Results = dict[str, Tensor]
"""Variables of a scan by name."""
Move = Callable[[Elements, Tensor], Tensor]
"""A function that moves `[K or 1, B, ...]` by K elements."""


@dataclass(frozen=True)
class Variable:
    """A result of a scan: its dimensions after `model`, what it means, and how it is read.

    Args:
        dims: the dimensions, such as `("sample", "element")`.
        meaning: a phrase for legends and tables.
        optional: whether it is stored only if `keep=` names it.
        unit: `"share"` for values in 0..1, a unit such as `"px"`, or nothing.
        higher_is_better: the direction of a quality; None where there is none.
        averaged: of the score of a consensus, whether `OrbitAverage` makes a model that has it.
    """

    dims: tuple[str, ...]
    meaning: str
    optional: bool = False
    unit: str = ""
    higher_is_better: bool | None = None
    averaged: bool | None = None

    @property
    def attributes(self) -> dict[str, object]:
        """The attributes of the stored array."""
        known = {"higher_is_better": self.higher_is_better, "averaged": self.averaged}
        return {
            "meaning": self.meaning,
            "units": self.unit,
            **{name: value for name, value in known.items() if value is not None},
        }


class About(TypedDict, total=False):
    """What is said of a variable besides its meaning."""

    optional: bool
    unit: str
    higher_is_better: bool
    averaged: bool


def per_element(meaning: str, *dims: str, **about: Unpack[About]) -> Variable:
    """Declare a variable that each sample has at each element, with further dimensions."""
    return Variable(("sample", "element", *dims), meaning, **about)


def per_sample(meaning: str, *dims: str, **about: Unpack[About]) -> Variable:
    """Declare a variable that each sample has once, with further dimensions."""
    return Variable(("sample", *dims), meaning, **about)


SHARE: About = {"unit": "share", "higher_is_better": True}
"""How a share that should be large is read."""

ACTION_DEFECT = per_element(
    "relative loss of the transformation itself, there and back", higher_is_better=False
)


@dataclass(frozen=True)
class TaskOrbit:
    """The answers to a batch along its orbits, and their consensus.

    Attributes:
        answers: `[K, B, ...]`, as predicted for the moved inputs.
        home: the same, un-transformed, and `seen`, the mask of their valid places.
        consensus: their mean, `[B, ...]`.
        moved: the reference of the consensus moved along, and `valid`, its mask.
    """

    answers: Tensor
    home: Tensor
    seen: Tensor | None
    consensus: Tensor
    moved: Tensor
    valid: Tensor | None
    elements: Elements
    weights: Tensor


class Task(WithUsage, ABC):
    """What a model predicts, how a prediction is scored, and how it moves with the input.

    A task has an input action, an output action (the representation in which outputs move), a
    score, a mean for the consensus, and a declared schema. `read` overrides how a raw model output
    becomes what the task expects. The views name what an interactive display shows.

    Args:
        input: the action on the inputs, or a tree of actions; None for `Images()`, or `Volumes()`
            of inputs with five dimensions.
        output: the action on the outputs.
        read: a function that picks the outputs from a raw model output.
    """

    name: ClassVar[str]
    score_meaning: str
    higher_is_better: ClassVar[bool]
    score_unit: str = ""
    gap_unit: str = ""
    """The unit of the invariance gap: `"share"` if it lies in 0..1."""
    truth_name: ClassVar[str] = "target"
    truth_kind: ClassVar[str] = "values"
    """What the truth of a sample is: one `class`, `labels`, `values`, a `map`, `boxes`, `points`,
    `text`, or the `quantities` of a structure of atoms."""
    detail_view: ClassVar[str] = "values"
    unseen_score: ClassVar[float | None] = None
    """The score against the consensus of a view that shows none of it, where it is not missing."""
    primary_output: ClassVar[str | None] = None
    """Of several tensors that a model returns, the one that is compared along the orbit."""
    truth_dims: tuple[str, ...] = ()
    """The dimensions of the targets after `sample`."""
    has_mean: bool = True
    """Whether outputs have a mean over the orbit that is an output of the task."""
    quantities: tuple[str, ...] = ()
    """The quantities to request from a model that offers several."""
    scores: Mapping[str, str] = {}
    """What each of several scores means, of which the user chooses one."""

    def __init__(
        self, input: ActionTree | None, output: ActionTree, read: Reader | None = None
    ) -> None:
        self.input: Action = actions.as_action(actions.Images() if input is None else input)
        self._input_by_shape = input is None
        self.output: Action = actions.as_action(output)
        self._read = read

    def __repr__(self) -> str:
        """Return the call that makes the task, without settings that have their defaults."""
        usual = inspect.signature(type(self)).parameters
        given = (
            f"{name}={value!r}"
            for name, value in self.settings().items()
            if name not in usual or value != usual[name].default
        )
        return f"{type(self).__name__}({', '.join(given)})"

    # What a task must say.

    @abstractmethod
    def read(self, raw: object, outputs: str | None = None) -> Tree:
        """Return the task's outputs from a model's raw output for N inputs, or raise `ModelError`.

        `outputs` is what the predictor states about its own outputs, if it does.
        """

    @abstractmethod
    def check_target(self, target: object, count: int) -> Tensor:
        """Check the targets of `count` samples and return them as a tensor."""

    @abstractmethod
    def variables(self, labeled: bool) -> dict[str, Variable]:
        """Declare the results of a scan with or without targets."""

    @abstractmethod
    def score(self, outputs: Tensor, reference: Tensor, valid: Tensor | None) -> Tensor:
        """Score `outputs[K, B, ...]` against a reference moved by the same elements, `[K, B]`."""

    @abstractmethod
    def extras(self, outputs: Tree, target: Tensor | None, elements: Elements) -> Results:
        """Return the task's own variables, element first."""

    # What a task may say.

    def orbit_extras(self, outputs: Tree, target: Tensor | None, orbit: TaskOrbit) -> Results:
        """Return the task's own variables that need the outputs along the whole orbit."""
        return {}

    @property
    def input_view(self) -> str:
        """The view of the inputs; by default the one of the input action."""
        return actions.action_view(self.input)

    def check_range(self, target: Tensor, outputs: Tree) -> None:
        """Check the targets against a model's outputs for the first samples."""

    def compact(self, target: Tensor) -> Tensor:
        """Return checked targets as they are stored, those of some samples at a time."""
        return target

    def check_group(self, group: Group, x: Tree) -> None:
        """Check that the effect of a group on the outputs for inputs x is known, before any run."""
        unknown = sorted(self.output.unknown(group) - actions.action_parts_in_place(self.input))
        if unknown:
            names = ", ".join(type(leaf).__name__ for leaf in flat_actions(self.output))
            raise InputError(
                "group",
                f"parts that the action of the outputs ({names}) knows",
                f"{' and '.join(unknown)} in {group.spec}",
                remedy="pass the task an action of the outputs that knows them, or list them in "
                "`in_place` of the action of the inputs if they leave outputs as they are",
            )

    def for_inputs(self, x: Tree, action: ActionTree | None = None) -> Task:
        """Return the task with the action that suits the inputs, where none was given.

        The data may state the `action` themselves; otherwise it follows from the shape.
        """
        if self._input_by_shape and action is not None:
            return self._restored(self.settings(), actions.as_action(action), self._read)
        if self._input_by_shape and isinstance(x, Tensor) and x.ndim == len(actions.Volumes.dims):
            return self._restored(self.settings(), actions.Volumes(), self._read)
        if self._input_by_shape and isinstance(x, dict) and {*x} == {*CLOUDS}:
            return self._restored(self.settings(), actions.as_action(CLOUDS), self._read)
        return self

    def take(self, data: object) -> Any:
        """Convert data of the task's own kind to arrays, as `x` or `(x, y)`."""
        return data

    def names(self, data: object) -> list[str] | None:
        """Return the names of the samples for display, if what `take` returned has any."""
        return None

    def sample_name(self, x: Tree, index: int, names: Sequence[str] | None) -> str:
        """Return what a message calls one of the inputs x: its number, and its name if known."""
        return f"sample {index}" + (f": {names[index]}" if names else "")

    def usual_group(self, x: Tree) -> str:
        """Return the group of inputs x where none was chosen, or raise."""
        raise InputError("group", "a group, such as 'rotations:72'", "none")

    def on_outputs(self, group: Group) -> Group:
        """Return a group with what its elements do to outputs alone, such as classes."""
        return group

    def joined(self, outputs: Tree, moved: Tree) -> Tree:
        """Add to outputs `[K, B, ...]` what only the moved inputs know, such as the padding."""
        return outputs

    def at_home(self, outputs: Tree, elements: Elements) -> Tree:
        """Bring outputs `[K, B, ...]` that are only ever compared in the frame of the input there.

        Classes are: all that follows sees the class of the input as it was given.
        """
        return outputs

    def check_outputs(self, group: Group, outputs: Tree) -> None:
        """Check that the group can move outputs `[N, ...]`."""
        self.output.check(group, self.primary(outputs))

    def primary(self, outputs: Tree) -> Tensor:
        """Return the tensor that moves with the input and is compared along the orbit."""
        tensor: Tensor = outputs if self.primary_output is None else outputs[self.primary_output]
        return tensor

    def companions(self, outputs: Tree) -> dict[str, tuple[Tensor, Move]]:
        """Return what accompanies the primary output, `[K, B, ...]`, and how each part moves."""
        return {}

    def faults(self, outputs: Tree) -> dict[str, Tensor]:
        """Return masks `[K, B]` of outputs that cannot be used, by the reason."""
        # The largest and the smallest number tell; a look at each takes ten times as long.
        flat = (leaf.flatten(2) for leaf in leaves(outputs))
        marks = [
            ~(leaf.amax(-1).isfinite() & leaf.amin(-1).isfinite())
            if leaf.shape[-1]
            else torch.zeros(leaf.shape[:2], dtype=torch.bool, device=leaf.device)
            for leaf in flat
        ]
        return {"NaN or infinite output": torch.stack(marks).any(0)}

    def reference(self, consensus: Tensor) -> Tensor:
        """Convert a consensus to the kind of target that `score` compares with."""
        return consensus

    def average(self, outputs: Tensor, weights: Tensor, valid: Tensor | None) -> Tensor:
        """Average un-transformed outputs `[K, B, ...]` over the group, to `[B, ...]`."""
        return self.output.mean(outputs, weights)

    def deviation(self, outputs: Tensor, center: Tensor, valid: Tensor | None) -> Tensor:
        """Return the squared distance of un-transformed outputs from their mean, `[K, B]`."""
        return (outputs - center[None]).double().square().flatten(2).sum(-1)

    def scale(self, answers: Tensor) -> Tensor:
        """Return the scale of outputs `[B, ...]`, which relative errors in tests are measured by.

        By default the largest entry, padding aside; a task with outputs in several units has one
        for each.
        """
        return answers.nan_to_num(0.0).abs().max()

    def parts(self, answers: Tensor) -> dict[str, Tensor]:
        """Return the parts of primary outputs `[K, B, ...]` that tests of a model name."""
        return {"prediction": answers}

    def isometric(self, group: Group) -> bool:
        """Check whether the score is unchanged when output and target move together."""
        if isinstance(self.output, actions.Trivial | actions.Rows | actions.Frames):
            return True
        return not group.has_homographies and all(
            np.allclose(part @ part.transpose(0, 2, 1), np.eye(part.shape[-1]), atol=1e-9)
            for part in (group.linear(name) for name in ("plane", "space") if name in group.parts)
        )

    def settings(self) -> Settings:
        """Return the arguments of the constructor other than `input` and `read`.

        Each is an attribute of its name; `score` is kept as `chosen`, and `output` as `_output`.
        What a record cannot hold, or has no attribute, is left out.
        """
        kept = {name: _KEPT_AS.get(name, name) for name in inspect.signature(type(self)).parameters}
        found = {
            name: _plain(getattr(self, attribute))
            for name, attribute in kept.items()
            if name not in ("input", "read") and hasattr(self, attribute)
        }
        return {name: value for name, value in found.items() if _can_be_recorded(value)}

    def describe(self) -> Settings:
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
            raise InputError(
                "task", problem=f"{name!r} is not a task of orbical", remedy="pass the task itself"
            )
        if read is None and described["read"] is not None:
            read = _missing_task_reader(str(described["read"]))
        task = TASKS[name]._restored(
            described["settings"], Action.from_record(described["input"]), read
        )
        if {**task.describe(), "read": None} != {**described, "read": None}:
            raise InputError("task", problem=f"{name!r} has settings that its record does not hold")
        return task

    @classmethod
    def _restored(cls, settings: Mapping[str, Any], input: Action, read: Reader | None) -> Task:
        given = {name: actions.restored_action_setting(value) for name, value in settings.items()}
        return cls(input=input, read=read, **given)

    def common_variables(self, labeled: bool, output_dims: tuple[str, ...]) -> dict[str, Variable]:
        """Declare what every task stores: the consensus, the gap, and the scores against them.

        Args:
            labeled: whether the truth is known.
            output_dims: the dimensions of one output.

        Returns:
            Names and variables, to which a task adds its own.
        """
        quality: About = {"unit": self.score_unit, "higher_is_better": self.higher_is_better}
        variables = {
            "score_vs_consensus": per_element("score against the consensus", **quality),
            "consensus": per_sample("mean of the un-transformed predictions", *output_dims),
            "invariance_gap": per_sample(
                "root mean square distance of the un-transformed predictions from their mean",
                unit=self.gap_unit,
            ),
        }
        if labeled:
            variables["score"] = per_element("score against the truth", **quality)
            ability: About = {**quality, "averaged": self.has_mean}
            variables["consensus_vs_truth"] = per_sample("score of the consensus", **ability)
            variables |= {name: per_element(what, **quality) for name, what in self.scores.items()}
        return variables

    def choose_score(self, score: str, meanings: Mapping[str, str]) -> None:
        """Keep the scores of a task, all of which are stored, and which is `score`, or raise."""
        check_name("score", score, meanings)
        self.scores, self.chosen, self.score_meaning = meanings, score, meanings[score]

    # What follows from it.

    def picked(self, raw: object) -> Any:
        """Apply the user's `read`; without one, take the logits of a Hugging Face output."""
        if self._read is None:
            return raw["logits"] if isinstance(raw, Mapping) and "logits" in raw else raw
        try:
            return as_tensors(self._read(raw))
        except Exception as error:
            raise ModelError(
                f"read {name_of(self._read)} raised {type(error).__name__} for the raw output "
                f"{described_value(raw)}: {words_of(error)}"
            ) from error

    def summarize(
        self, outputs: Tree, target: Tensor | None, elements: Elements, weights: Tensor
    ) -> Results:
        """Return the variables of a scan from all outputs along the orbits of a batch.

        Outputs are element first, `[K, B, ...]`. All K answers of a sample are at hand, so the
        consensus (the mean of the un-transformed predictions) needs no second pass.
        """
        answers = self.primary(outputs)
        backward = elements.inverse()
        home, seen = self.output.move(backward, answers), self.output.valid(backward, answers)
        consensus = self.average(home, weights, seen)
        gap = torch.einsum("k,kb->b", weights.double(), self.deviation(home, consensus, seen))
        moved = self.output.move(elements, self.reference(consensus)[None])
        valid = self.output.valid(elements, answers)
        against = self.score(answers, moved, valid)
        if self.unseen_score is not None:
            against = against.nan_to_num(self.unseen_score)
        summary = {
            "consensus": consensus,
            "invariance_gap": gap.sqrt().float(),
            "score_vs_consensus": against,
        }
        if target is not None:
            inside = self.output.valid(elements, target)  # the truth may reach beyond the answers
            summary["score"] = self.score(answers, self.output.move(elements, target[None]), inside)
            summary["consensus_vs_truth"] = self.score(consensus[None], target[None], None)[0]
        summary |= self.extras(outputs, target, elements)
        orbit = TaskOrbit(answers, home, seen, consensus, moved, valid, elements, weights)
        summary |= self.orbit_extras(outputs, target, orbit)
        return self._sample_first(summary, target is not None)

    def along(
        self,
        target: Tensor | None,
        elements: Elements,
        weights: Tensor,
        keep: Collection[str] | None = None,
    ) -> TaskOutputs:
        """Return what takes outputs block by block; a task of large ones keeps only their sums.

        `keep` are the optional variables that are asked for, None for all.
        """
        return TaskOutputs(self, target, elements, weights, keep)

    def _sample_first(self, summary: Results, labeled: bool) -> Results:
        """Exchange the axes of results that are element first, as they are stored."""
        declared = self.variables(labeled)
        return {
            name: value.transpose(0, 1) if "element" in declared[name].dims else value
            for name, value in summary.items()
        }


class TaskOutputs:
    """The outputs of a model along the orbits of a batch: taken block by block, then summarized."""

    def __init__(
        self,
        task: Task,
        target: Tensor | None,
        elements: Elements,
        weights: Tensor,
        keep: Collection[str] | None = None,
    ) -> None:
        self.task, self.target, self.elements, self.weights = task, target, elements, weights
        declared = task.variables(target is not None).items()
        optional = {name for name, variable in declared if variable.optional}
        self.left_out = set() if keep is None else optional - {*keep}
        self.parts: list[Tree] = []

    def add(self, outputs: Tree, elements: Elements) -> None:
        """Take the outputs `[k, B, ...]` of the next elements."""
        self.parts.append(outputs)

    def summary(self) -> Results:
        """Return the variables of the scan, once all elements were added."""
        outputs = concatenate(self.parts)
        return self.task.summarize(outputs, self.target, self.elements, self.weights)


_KEPT_AS = {"score": "chosen", "output": "_output"}


def _plain(value: object) -> object:
    """Return a setting as a record holds it."""
    if isinstance(value, Action):
        return value.describe()
    if isinstance(value, Mapping):
        return {name: _plain(one) for name, one in value.items()}
    return [_plain(one) for one in value] if isinstance(value, tuple | list) else value


def _can_be_recorded(value: object) -> bool:
    try:
        return bool(json.dumps(value))
    except (TypeError, ValueError):
        return False


def _missing_task_reader(name: str) -> Reader:
    """Return a stand-in for the reader of this name, which is not available."""

    def refuse(raw: object) -> NoReturn:
        raise InputError(
            "task", problem=f"outputs were read by {name}", remedy="pass that function as read"
        )

    return refuse
