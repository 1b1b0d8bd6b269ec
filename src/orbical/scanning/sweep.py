"""The hot path of a scan: transform a batch, run the models, summarize their outputs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from .._imports import name_of, words_of
from .._trees import (
    Tree,
    as_tensors,
    concatenate,
    flatten_leading,
    leaves,
    split_leading,
    to_device,
    tree_map,
)
from ..actions import Action, first_lacking
from ..data import Rows
from ..errors import InputError, ModelError
from ..groups import Elements, Group
from ..predictors import PartialOutputs, Predictor, Raw, count_inputs
from ..tasks import Task, Variable

MOST_CLASSES = 256
"""The consensus over more classes is stored only where `keep` names it."""

Failures = dict[tuple[int, int], str]
"""The errors that a model raised, by element and sample of a batch."""


@dataclass
class Sweep:
    """Models, a group and a task, ready to run on whole orbits.

    `batch_size` is the number of transformed inputs in one forward pass; running out of memory on
    the device halves it. Each transformed batch passes through all models, so it is made once.
    """

    predictors: Mapping[str, Predictor]
    group: Group
    task: Task
    device: torch.device
    batch_size: int
    preprocess: Callable[[Tree], Tree] | None = None
    keep: frozenset[str] = frozenset()
    _blocks: dict[int, list[Elements]] = field(default_factory=dict)
    _reuses: set[str] = field(default_factory=set)
    shapes: dict[tuple[str, str], tuple[int, ...]] = field(default_factory=dict)
    """The shape that a variable of a model has for each sample and element."""

    def __post_init__(self) -> None:
        for name, predictor in self.predictors.items():
            try:
                predictor.request(self.task.quantities)
            except ModelError as error:
                raise ModelError(f"model {name!r}: {error}") from error

    def run(
        self,
        batch: Tree,
        target: Tensor | None,
        names: list[str],
        advance: Callable[[int], None] = lambda inputs: None,
    ) -> Unit:
        """Run the models on the orbits of a batch; an accelerator works on after it."""
        given, batch = batch, to_device(batch, self.device)
        doubt = self.task.input.doubt(batch)
        target = None if target is None else to_device(target, self.device)
        while True:
            try:
                outputs, raw, defect, failures = self._outputs(batch, names, advance)
                broken = {
                    name: without(self.task.faults(outputs[name]), failures[name]) for name in names
                }
                summaries = {
                    name: self._summary(name, outputs.pop(name), raw[name], target)
                    for name in names
                }
                defect = defect.transpose(0, 1)
                return Unit(summaries, defect, broken, failures, given, doubt).to_host()
            except torch.OutOfMemoryError:
                if self.batch_size == 1:
                    raise
                self.batch_size //= 2
                torch.cuda.empty_cache()

    def answers(self, batch: Tree, name: str) -> Tree:
        """Return one model's outputs along the orbits of a batch, `[K, B, ...]`, or raise."""
        outputs, _, _, failures = self._outputs(batch, [name], lambda inputs: None)
        for (element, sample), why in failures[name].items():
            raise ModelError(
                f"model {name!r} failed on sample {sample} at {self.group.name(element)}: {why}"
            )
        return outputs[name]

    def _summary(
        self, name: str, outputs: Tree, raw: Tensor | None, target: Tensor | None
    ) -> dict[str, Tensor]:
        declared = self.task.variables(target is not None)
        summary = self.task.summarize(outputs, target, self.group, self._weights)
        for key, values in summary.items():
            self.check_shape(name, key, declared[key], values)
        summary = {
            key: values
            for key, values in summary.items()
            if self.stores(key, declared[key], values)
        }
        if raw is not None:
            summary["outputs"] = raw.transpose(0, 1)
        return summary

    def check_shape(self, model: str, name: str, variable: Variable, values: Tensor) -> None:
        """Refuse a variable, such as one number for each class, whose shape is not that at first.

        Numbers of other classes would be stored under the names of these.
        """
        shape = tuple(values.shape[2 if "element" in variable.dims else 1 :])
        expected = self.shapes.setdefault((model, name), shape)
        if shape != expected:
            axes = ", ".join(variable.dims[-len(shape) :])
            raise ModelError(
                f"model {model!r}: expected {name} of shape {expected} ({axes}) for all inputs, as "
                f"for the first, got {shape}"
            )

    def stores(self, name: str, variable: Variable, values: Tensor) -> bool:
        """Check whether a variable is stored: optional and large ones only where `keep` asks.

        A consensus over a thousand classes would be larger than all else.
        """
        by_class = name == "consensus" and variable.dims[-1] == "class"
        large = by_class and values.shape[-1] > MOST_CLASSES
        return name in self.keep or not (variable.optional or large)

    @cached_property
    def _weights(self) -> Tensor:
        weights: Tensor = to_device(torch.as_tensor(self.group.weights), self.device)
        return weights

    def _outputs(
        self, batch: Tree, names: list[str], advance: Callable[[int], None]
    ) -> tuple[dict[str, Tree], dict[str, Tensor | None], Tensor, dict[str, Failures]]:
        """Return all outputs, element first: `{model: [K, B, ...]}`."""
        samples = count_inputs(batch)
        collected: dict[str, list[Tree]] = {name: [] for name in names}
        raws: dict[str, list[Tensor]] = {name: [] for name in names}
        failures: dict[str, Failures] = {name: {} for name in names}
        defects = []
        for rows in _slices(samples, self.batch_size):
            some = tree_map(lambda leaf, rows=rows: leaf[rows], batch)
            blocks = self._element_blocks(count_inputs(some))
            answers: dict[str, list[Tree]] = {name: [] for name in names}
            kept: dict[str, list[Tensor]] = {name: [] for name in names}
            lost: list[Tensor] = []
            start = 0  # the first element of the block
            for elements in blocks:
                moved = self.task.input.apply(elements, some)
                lost.append(self.task.input.defect(elements, some, moved))
                shape = (len(elements), count_inputs(some))
                inputs = self.prepared(moved)
                for name in names:
                    raw = self.answer(name, inputs)
                    answers[name].append(self.read(name, raw, moved, elements))
                    failures[name] |= {
                        (start + place // shape[1], rows.start + place % shape[1]): why
                        for place, why in errors_in(raw).items()
                    }
                    if "outputs" in self.keep:
                        kept[name].append(split_leading(only_tensor(name, raw), *shape))
                    advance(shape[0] * shape[1])
                start += shape[0]
            for name in names:
                collected[name].append(concatenate(answers[name]))
                raws[name] += [torch.cat(kept[name])] if kept[name] else []
            defects.append(torch.cat(lost))
        outputs = {name: concatenate(parts, 1) for name, parts in collected.items()}
        whole = {name: torch.cat(parts, 1) if parts else None for name, parts in raws.items()}
        return outputs, whole, torch.cat(defects, 1), failures

    def prepared(self, moved: Tree) -> Tree:
        """Return moved inputs `[K, B, ...]` as one batch, preprocessed if the user asked for it.

        A failure there is the user's, and is said to be.
        """
        inputs = self.task.input.decode(flatten_leading(moved))
        if self.preprocess is None:
            return inputs
        name = name_of(self.preprocess)
        try:
            prepared = self.preprocess(copied(inputs))
        except torch.OutOfMemoryError:
            raise
        except Exception as error:
            raise InputError(
                "preprocess", problem=f"{name} raised {type(error).__name__}: {words_of(error)}"
            ) from error
        if prepared is None:
            raise InputError("preprocess", f"{name} to return a batch", "None")
        return as_tensors(prepared) if isinstance(prepared, np.ndarray) else prepared

    def answer(self, name: str, inputs: Tree) -> Raw:
        """Run one model, and name it in the error if it fails.

        It gets a copy: a model that writes into its inputs (`x.sub_(mean)`, `batch.pop("mask")`)
        would change what others see, and may do so in some calls only.
        """
        try:
            raw = self.predictors[name](copied(inputs))
            return copied(raw) if name in self._reuses else raw
        except torch.OutOfMemoryError:
            raise
        except (ModelError, InputError) as error:
            raise ModelError(f"model {name!r}: {error}{_if_gray(inputs)}") from error
        except Exception as error:
            raise ModelError(
                f"model {name!r} raised {type(error).__name__} for inputs {_shapes(inputs)}: "
                f"{words_of(error)}{_if_gray(inputs)}"
            ) from error

    def compare(self, name: str, first: object, second: object) -> None:
        """Detect a model that writes every output into the same memory, from two outputs.

        Its outputs are copied from then on, since the next one would overwrite them.
        """
        if {*_places(first)} & {*_places(second)}:
            self._reuses.add(name)

    def read(self, name: str, raw: object, moved: Tree, elements: Elements) -> Tree:
        """Return what the task reads from a raw output for inputs `[K, B, ...]` that K moved."""
        count, samples = len(elements), next(leaves(moved)).shape[1]
        given = raw.outputs if isinstance(raw, PartialOutputs) else raw
        try:
            outputs = self.task.read(given, self.predictors[name].outputs)
            expected, got = count * samples, count_inputs(outputs)
            if got != expected:
                raise ModelError(f"expected {expected} outputs for as many inputs, got {got}")
            outputs = to_device(split_leading(outputs, count, samples), self.device)
            return self.task.at_home(self.task.joined(outputs, moved), elements)
        except ModelError as error:
            raise ModelError(f"model {name!r}: {error}") from error

    def _element_blocks(self, samples: int) -> list[Elements]:
        """Return blocks of elements that fill a batch; kept, because actions cache by block."""
        size = max(1, self.batch_size // samples)
        if size not in self._blocks:
            self._blocks[size] = [self.group[rows] for rows in _slices(len(self.group), size)]
        return self._blocks[size]


@dataclass
class Unit:
    """The results of one chunk: `{model: variables}` and the action defect `[B, K]`.

    The arrays travel from the accelerator while the next chunk is being computed; `wait` is called
    before they are read. `failures` are the places where a model raised and gave no answer;
    `doubt` marks a batch whose values may not be finite. `read` are the samples as they were read,
    and `target` their targets.
    """

    summaries: dict[str, dict[str, Tensor]]
    defect: Tensor
    broken: dict[str, dict[str, Tensor]]
    failures: dict[str, Failures]
    batch: Tree
    doubt: Tensor | None
    landed: torch.cuda.Event | None = None
    read: Rows | None = None
    target: Tensor | None = None

    def to_host(self) -> Unit:
        """Start copying all arrays to the memory of the host."""
        summaries, defect, broken, doubt = tree_map(
            lambda leaf: None if leaf is None else leaf.to("cpu", non_blocking=True),
            (self.summaries, self.defect, self.broken, self.doubt),
        )
        landed = torch.cuda.Event() if self.defect.is_cuda else None
        if landed is not None:
            landed.record()
        return Unit(summaries, defect, broken, self.failures, self.batch, doubt, landed)

    def wait(self, action: Action, group: Group, first_sample: int) -> None:
        """Wait for the arrays, and refuse data and outputs that cannot be used."""
        if self.landed is not None:
            self.landed.synchronize()
        if self.doubt is not None and bool(self.doubt):
            action.check_values(self.batch, first_sample)
        for name, faults in self.broken.items():
            refuse_faults(f"model {name!r}", faults, group, self.batch, first_sample)


def _if_gray(inputs: Tree) -> str:
    """Return the remedy for gray images in a network for color images, which may be the cause."""
    gray = isinstance(inputs, Tensor) and inputs.ndim == 4 and inputs.shape[1] == 1
    return "; if the network takes color images, pass preprocess='color'" if gray else ""


def _shapes(inputs: Tree) -> str:
    """Describe inputs by the shape of each field, with its name if it has one.

    >>> _shapes({"pos": torch.zeros(2, 3), "mask": torch.zeros(2)})
    'mask (2,), pos (2, 3)'
    """
    fields = sorted(inputs.items()) if isinstance(inputs, dict) else [("", inputs)]
    shapes = [
        (name, tuple(getattr(leaf, "shape", ())) if isinstance(leaf, Tensor) else str(leaf))
        for name, field in fields
        for leaf in ([f"{len(field)} texts"] if isinstance(field, list) else leaves(field))
    ]
    return ", ".join(f"{name} {shape}".strip() for name, shape in shapes)


def copied(tree: Tree) -> Tree:
    """Return the tensors of a tree in memory of their own, and lists of texts as lists."""
    if isinstance(tree, Tensor):
        return tree.clone()
    if type(tree) is dict:
        return {name: copied(field) for name, field in tree.items()}
    return type(tree)(map(copied, tree)) if type(tree) in (tuple, list) else tree


def _places(raw: object) -> Iterator[int]:
    """Yield the memory addresses of the tensors in a raw output."""
    for leaf in leaves(raw):
        if isinstance(leaf, Tensor) and leaf.numel():
            yield leaf.data_ptr()


def _slices(count: int, size: int) -> Iterator[slice]:
    for start in range(0, count, size):
        yield slice(start, min(start + size, count))


def refuse_faults(
    model: str, faults: dict[str, Tensor], group: Group, batch: Tree, first_sample: int = 0
) -> None:
    """Refuse outputs that cannot be used: because of the data, if these are not finite.

    An action may allow NaN, for example as padding; a model that cannot use it is not at fault.
    """
    for fault, marks in faults.items():
        # By NumPy: to look at so little, torch would first wake all of its threads.
        for element, sample in np.argwhere(marks.cpu().numpy())[:1]:
            where = f"sample {first_sample + sample} at {group.name(int(element))}"
            if any(first_lacking(leaf[sample : sample + 1]) is not None for leaf in leaves(batch)):
                raise InputError(
                    "data",
                    "finite numbers",
                    f"NaN or infinity, for which {model} returns {fault} ({where})",
                )
            raise ModelError(f"{model}: {fault} for {where}")


def errors_in(raw: object) -> dict[int, str]:
    """Return the errors of a raw output, by position in the batch."""
    return raw.errors if isinstance(raw, PartialOutputs) else {}


def without(faults: dict[str, Tensor], failures: Failures) -> dict[str, Tensor]:
    """Clear the marks `[K, B]` where a model is known to have failed."""
    for element, sample in failures:
        for marks in faults.values():
            marks[element, sample] = False
    return faults


def only_tensor(name: str, raw: object) -> Tensor:
    """Check that a raw output is one tensor, so that it can be stored."""
    if not isinstance(raw, Tensor):
        raise ModelError(
            f"model {name!r}: expected one tensor as raw output for keep='outputs', got "
            f"{type(raw).__name__}"
        )
    return raw
