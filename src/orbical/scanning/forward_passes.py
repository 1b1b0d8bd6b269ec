"""The hot path of a scan: transform a batch, run the models, summarize their outputs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import chdir
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor

from .._imports_and_paths import name_of, words_of
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
from ..actions import Action, nonfinite_sample
from ..data import SampleRows
from ..errors import InputError, ModelError
from ..groups import Elements, Group
from ..predictors import PartialOutputs, Predictor, Raw, count_inputs
from ..store import row_runs
from ..tasks import Task, Variable
from .deadline import Deadline, Late

MOST_CLASSES = 256
"""The consensus over more classes is stored only where `keep` names it."""

_SMALL_OUTPUTS = (2**19, 2**24)
"""Numbers in outputs along whole orbits that are held at once, on a CPU and on an accelerator."""

_TOO_LARGE = "CUDNN_STATUS_NOT_SUPPORTED"
"""What a kernel of cuDNN says that cannot take so many inputs at once."""

Failures = dict[tuple[int, int], str]
"""The errors that a model raised, by element and sample of a batch."""


@dataclass
class Sweep:
    """Models, a group and a task, ready to run on whole orbits.

    `batch_size` is the number of transformed inputs in one forward pass; running out of memory on
    the device halves it. `output_numbers` is how many an output has. Each transformed batch passes
    through all models, so it is made once. A model that takes longer than `timeout` seconds for one
    ends the scan.
    """

    predictors: Mapping[str, Predictor]
    group: Group
    task: Task
    device: torch.device
    batch_size: int
    preprocess: Callable[[Tree], Tree] | None = None
    keep: frozenset[str] = frozenset()
    output_numbers: int = 1
    timeout: float | None = None
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
    ) -> PassResults:
        """Run the models on the orbits of a batch; an accelerator works on after it."""
        given, batch = batch, to_device(batch, self.device)
        doubt = self.task.input.doubt(batch)
        target = None if target is None else to_device(target, self.device)
        told = 0

        def tell(inputs: int) -> None:
            nonlocal told
            told += inputs
            advance(inputs)

        while True:
            try:
                parts = [
                    self._run_some(batch, target, rows, names, tell)
                    for rows in self._samples_at_once(count_inputs(batch))
                ]
                return PassResults.joined(parts, given, doubt).to_host()
            except torch.OutOfMemoryError:
                if self.batch_size == 1:
                    raise
                tell(-told)  # all of them run again
                self.batch_size //= 2
                torch.cuda.empty_cache()

    def _samples_at_once(self, count: int) -> list[slice]:
        """Return samples that are summarized together, in even parts with the fewest passes.

        The memory of their outputs limits them. Whole orbits fill a batch where they can. Outputs
        of more samples are collected where they are small; on a CPU they should stay in its cache.
        """
        small = _SMALL_OUTPUTS[self.device.type == "cuda"] // self.output_numbers
        most = max(1, min(self.batch_size, max(self.batch_size, small) // len(self.group)))
        best = fewest = count * len(self.group) + 1
        parts = -(-count // most)
        while parts < min(fewest, count + 1):
            passes = parts * self._blocks_in(-(-count // parts))
            if passes < fewest:
                best, fewest = parts, passes
            parts += 1
        ends = [count * part // best for part in range(best + 1)]
        return [slice(start, end) for start, end in pairwise(ends)]

    def answers(self, batch: Tree, name: str) -> Tree:
        """Return one model's outputs along the orbits of a batch, `[K, B, ...]`, or raise."""
        found = []
        for rows in row_runs(count_inputs(batch), self.batch_size):
            some = tree_map(lambda leaf, rows=rows: leaf[rows], batch)
            passes = [*self._passes(some, [name])]
            for _, one in passes:
                for (element, sample), why in one.failures.items():
                    where = f"{rows.start + sample} at {self.group.name(element)}"
                    raise ModelError(f"model {name!r} failed on sample {where}: {why}")
            found.append(concatenate([one.outputs for _, one in passes]))
        return concatenate(found, 1)

    def _run_some(
        self,
        batch: Tree,
        target: Tensor | None,
        rows: slice,
        names: list[str],
        advance: Callable[[int], None],
    ) -> PassResults:
        """Run the models on the orbits of some samples of a batch, which are held at once."""
        some = tree_map(lambda leaf: leaf[rows], batch)
        truth = None if target is None else target[rows]
        orbits = {
            name: self.task.along(truth, self.group, self._weights, self.keep) for name in names
        }
        passes: dict[str, list[_Pass]] = {name: [] for name in names}
        for name, one in self._passes(some, names):
            orbits[name].add(one.outputs, one.elements)
            passes[name].append(replace(one, outputs=None))
            advance(one.defect.numel())
        broken, failures = {}, {}
        for name, each in passes.items():
            lost = {place: why for one in each for place, why in one.failures.items()}
            broken[name] = without_failed_of_pass(concatenate([one.faults for one in each]), lost)
            failures[name] = {(k, rows.start + sample): why for (k, sample), why in lost.items()}
        summaries = {
            name: self._stored(name, orbits.pop(name).summary(), passes[name], target is not None)
            for name in names
        }
        defect = torch.cat([one.defect for one in passes[names[0]]]).transpose(0, 1)
        return PassResults(summaries, defect, broken, failures, some, None)

    def _passes(self, some: Tree, names: list[str]) -> Iterator[tuple[str, _Pass]]:
        """Yield what each model answers, a block of elements after the other."""
        start, samples = 0, count_inputs(some)
        for elements in self._element_blocks(samples):
            moved = self.task.input.apply(elements, some)
            defect = self.task.input.defect(elements, some, moved)
            inputs = self.prepared(moved)
            for name in names:
                raw = self.answer(name, inputs)
                outputs = self.read(name, raw, moved, elements)
                failures = {
                    (start + place // samples, place % samples): why
                    for place, why in errors_in_pass(raw).items()
                }
                kept = None
                if "outputs" in self.keep:
                    kept = split_leading(only_tensor_of_pass(name, raw), len(elements), samples)
                faults = self.task.faults(outputs)
                yield name, _Pass(elements, defect, outputs, faults, failures, kept)
            start += len(elements)

    def _stored(
        self, name: str, summary: dict[str, Tensor], passes: list[_Pass], labeled: bool
    ) -> dict[str, Tensor]:
        """Return the variables of a summary that are stored."""
        declared = self.task.variables(labeled)
        stored = {}
        for key, values in summary.items():
            self.check_shape(name, key, declared[key], values)
            if self.stores(key, declared[key], values):
                stored[key] = values
        raws = [one.raw for one in passes if one.raw is not None]
        if raws:
            stored["outputs"] = torch.cat(raws).transpose(0, 1)
        return stored

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

    def prepared(self, moved: Tree) -> Tree:
        """Return moved inputs `[K, B, ...]` as one batch, preprocessed if the user asked for it.

        A failure there is the user's, and is said to be.
        """
        inputs = self.task.input.decode(flatten_leading(moved))
        if self.preprocess is None:
            return inputs
        name = name_of(self.preprocess)
        try:
            prepared = self.preprocess(copied_inputs(inputs))
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
            given = copied_inputs(inputs)
            with chdir("."):  # to which paths of results and data may be relative
                raw = self._in_time(lambda: self.predictors[name](given))
            return copied_inputs(raw) if name in self._reuses else raw
        except Late:
            count = count_inputs(inputs)
            raise ModelError(
                f"model {name!r} took more than {self.timeout:g} s for a batch of {count} inputs, "
                "the timeout; finished units are kept"
            ) from None
        except torch.OutOfMemoryError:
            raise
        except (ModelError, InputError) as error:
            raise ModelError(f"model {name!r}: {error}{_if_gray(inputs)}") from error
        except Exception as error:
            if _TOO_LARGE in str(error) and self.batch_size > 1:
                raise torch.OutOfMemoryError(str(error)) from error
            raise ModelError(
                f"model {name!r} raised {type(error).__name__} for inputs "
                f"{_pass_input_shapes(inputs)}: {words_of(error)}{_if_gray(inputs)}"
            ) from error

    @cached_property
    def _in_time(self) -> Callable[[Callable[[], Raw]], Raw]:
        return (lambda work: work()) if self.timeout is None else Deadline(self.timeout)

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
                raise ModelError(
                    f"expected {expected} outputs for as many inputs, got {got}"
                    f"{_pass_remedy_for_fields(moved, got)}"
                )
            outputs = to_device(split_leading(outputs, count, samples), self.device)
            return self.task.at_home(self.task.joined(outputs, moved), elements)
        except ModelError as error:
            raise ModelError(f"model {name!r}: {error}") from error

    def _blocks_in(self, samples: int) -> int:
        """Return how many batches the orbits of some samples take."""
        return -(-len(self.group) // max(1, self.batch_size // samples))

    def _element_blocks(self, samples: int) -> list[Elements]:
        """Return even blocks of elements that fit a batch; kept, because actions cache by block."""
        fewest = self._blocks_in(samples)
        if fewest == 1:
            return [self.group]
        size = -(-len(self.group) // fewest)
        if size not in self._blocks:
            self._blocks[size] = [self.group[rows] for rows in row_runs(len(self.group), size)]
        return self._blocks[size]


@dataclass(frozen=True)
class _Pass:
    """What a model answers for a block of elements, `[k, B, ...]`, and where it failed `[K, B]`."""

    elements: Elements
    defect: Tensor
    outputs: Tree
    faults: dict[str, Tensor]
    failures: Failures
    raw: Tensor | None


@dataclass
class PassResults:
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
    read: SampleRows | None = None
    target: Tensor | None = None

    @staticmethod
    def joined(parts: list[PassResults], batch: Tree, doubt: Tensor | None) -> PassResults:
        """Return the results of all samples of a batch from those of some at a time."""
        failures: dict[str, Failures] = {name: {} for name in parts[0].failures}
        for part in parts:
            for name, found in part.failures.items():
                failures[name] |= found
        return PassResults(
            concatenate([part.summaries for part in parts]),
            torch.cat([part.defect for part in parts]),
            concatenate([part.broken for part in parts], 1),
            failures,
            batch,
            doubt,
        )

    def to_host(self) -> PassResults:
        """Start copying all arrays to the memory of the host."""
        summaries, defect, broken, doubt = tree_map(
            lambda leaf: None if leaf is None else leaf.to("cpu", non_blocking=True),
            (self.summaries, self.defect, self.broken, self.doubt),
        )
        landed = torch.cuda.Event() if self.defect.is_cuda else None
        if landed is not None:
            landed.record()
        return replace(
            self, summaries=summaries, defect=defect, broken=broken, doubt=doubt, landed=landed
        )

    def wait(self, action: Action, group: Group, first_sample: int) -> None:
        """Wait for the arrays, and refuse data and outputs that cannot be used."""
        if self.landed is not None:
            self.landed.synchronize()
        if self.doubt is not None and bool(self.doubt):
            action.check_values(self.batch, first_sample)
        for name, faults in self.broken.items():
            refuse_faults_of_pass(f"model {name!r}", faults, group, self.batch, first_sample)


def _if_gray(inputs: Tree) -> str:
    """Return the remedy for gray images in a network for color images, which may be the cause."""
    gray = isinstance(inputs, Tensor) and inputs.ndim == 4 and inputs.shape[1] == 1
    return "; if the network takes color images, pass preprocess='color'" if gray else ""


def _pass_remedy_for_fields(inputs: Tree, got: int) -> str:
    """Return the remedy for a function that took a dictionary of fields for a batch.

    >>> _pass_remedy_for_fields({"question": torch.zeros(8), "options": torch.zeros(8)}, 2)
    "; a batch is a dictionary of 'question', 'options': name the function's parameters so"
    """
    if not isinstance(inputs, dict) or len(inputs) != got:
        return ""
    names = ", ".join(map(repr, inputs))
    return f"; a batch is a dictionary of {names}: name the function's parameters so"


def _pass_input_shapes(inputs: Tree) -> str:
    """Describe inputs by the shape of each field, with its name if it has one.

    >>> _pass_input_shapes({"pos": torch.zeros(2, 3), "mask": torch.zeros(2)})
    'mask (2,), pos (2, 3)'
    """
    fields = sorted(inputs.items()) if isinstance(inputs, dict) else [("", inputs)]
    shapes = [
        (name, tuple(leaf.shape) if hasattr(leaf, "shape") else str(leaf))
        for name, field in fields
        for leaf in ([f"{len(field)} texts"] if isinstance(field, list) else leaves(field))
    ]
    return ", ".join(f"{name} {shape}".strip() for name, shape in shapes)


def copied_inputs(tree: Tree) -> Tree:
    """Return the tensors of a tree in memory of their own, and lists of texts as lists."""
    if isinstance(tree, Tensor):
        return tree.clone()
    if type(tree) is dict:
        return {name: copied_inputs(field) for name, field in tree.items()}
    return type(tree)(map(copied_inputs, tree)) if type(tree) in (tuple, list) else tree


def _places(raw: object) -> Iterator[int]:
    """Yield the memory addresses of the tensors in a raw output."""
    for leaf in leaves(raw):
        if isinstance(leaf, Tensor) and leaf.numel():
            yield leaf.data_ptr()


def refuse_faults_of_pass(
    model: str, faults: dict[str, Tensor], group: Group, batch: Tree, first_sample: int = 0
) -> None:
    """Refuse outputs that cannot be used: because of the data, if these are not finite.

    An action may allow NaN, for example as padding; a model that cannot use it is not at fault.
    """
    for fault, marks in faults.items():
        # By NumPy: to look at so little, torch would first wake all of its threads.
        for element, sample in np.argwhere(marks.cpu().numpy())[:1]:
            where = f"sample {first_sample + sample} at {group.name(int(element))}"
            if any(
                nonfinite_sample(leaf[sample : sample + 1]) is not None for leaf in leaves(batch)
            ):
                raise InputError(
                    "data",
                    "finite numbers",
                    f"NaN or infinity, for which {model} returns {fault} ({where})",
                )
            raise ModelError(f"{model}: {fault} for {where}")


def errors_in_pass(raw: object) -> dict[int, str]:
    """Return the errors of a raw output, by position in the batch."""
    return raw.errors if isinstance(raw, PartialOutputs) else {}


def without_failed_of_pass(faults: dict[str, Tensor], failures: Failures) -> dict[str, Tensor]:
    """Clear the marks `[K, B]` where a model is known to have failed."""
    for element, sample in failures:
        for marks in faults.values():
            marks[element, sample] = False
    return faults


def only_tensor_of_pass(name: str, raw: object) -> Tensor:
    """Check that a raw output is one tensor, so that it can be stored."""
    if not isinstance(raw, Tensor):
        raise ModelError(
            f"model {name!r}: expected one tensor as raw output for keep='outputs', got "
            f"{type(raw).__name__}"
        )
    return raw
