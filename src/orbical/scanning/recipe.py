"""The recipe of a scan: models, data, group and task, checked before any model runs."""

from __future__ import annotations

import copy
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from torch import Tensor

from .._trees import Tree
from ..actions import check_group
from ..data import Samples, checked_preprocessing, is_lazy
from ..errors import InputError, real_number, unknown_name, whole_number
from ..groups import Group, as_group
from ..predictors import Predictor, as_predictor
from ..store import DataEntry, Json, row_runs
from ..tasks import Reader, Task, as_task

PROBE_SAMPLES = 2
_MOST_TARGETS = 1 << 22
"""Of more samples the targets are not held: they are read, and stored, with each unit."""
_CHECKED_AT_ONCE = 1 << 18  # targets
_SECONDS = "None or a number of seconds"


@dataclass(frozen=True)
class Recipe:
    """All that a process needs to run any unit of a scan.

    Models are kept as they were given, by name: a process that was started elsewhere imports or
    opens its own. `first` and `first_target` are what models are probed with; `target` has the
    targets of all samples where they are known before these are read. `workers` processes read
    ahead.
    """

    models: Json
    samples: Samples
    first: Tree
    first_target: Tensor | None
    target: Tensor | None
    group: Group
    task: Task
    preprocess: Callable[[Tree], Tree] | None
    keep: frozenset[str]
    batch_size: int | str
    chunk: int | None
    device: str
    threads: int
    workers: int
    timeout: float | None = None

    @cached_property
    def predictors(self) -> dict[str, Predictor]:
        """The models of this process."""
        return {name: _as_named(name, model) for name, model in self.models.items()}

    @property
    def units_hold_targets(self) -> bool:
        """Whether targets are stored with the units: those that come with samples, and maps.

        Maps are large: an accelerator would wait until those of all samples are written.
        """
        return self.target is None or self.task.truth_kind == "map"

    def target_of(self, rows: slice, targets: Any) -> Tensor | None:
        """Return the targets of some samples, checked, from what was read with them."""
        if self.target is not None:
            return self.task.compact(self.target[rows])
        if targets is None:
            return None
        return self.task.compact(self.task.check_target(targets, len(targets)))

    def __getstate__(self) -> Json:
        return {name: value for name, value in vars(self).items() if name != "predictors"}


def plan(
    models: object,
    data: object,
    *,
    group: Group | str | None,
    task: Task | str,
    keep: str | Iterable[str],
    batch_size: int | str,
    chunk: int | str = "auto",
    device: str,
    threads: int,
    workers: int = 0,
    fingerprint: str | None = None,
    known: DataEntry | None = None,
    preprocess: object,
    read: Reader | None = None,
    timeout: float | None = None,
) -> Recipe:
    """Check the arguments of a scan; nothing is computed or written yet.

    Files of images that are `known` from the store to continue are not looked at again.
    """
    named = _named_models_of_recipe(models)
    predictors = {name: _as_named(name, model) for name, model in named.items()}
    given_group = None if group is None else as_group(group)
    task = _reading(as_task(task), read)
    if fingerprint is not None and not (isinstance(fingerprint, str) and fingerprint):
        raise InputError("fingerprint", "a text that names the data", repr(fingerprint))
    taken = task.take(data)
    samples = Samples(taken, task.names(taken), fingerprint)
    if known is None or known.stamp is None or known.stamp != samples.stamp:
        samples.source.check()
    _check_kind(task, samples.source.usual_task)
    first_inputs = samples.first(PROBE_SAMPLES)[0]
    task = _recipe_task_with_classes(task, samples).for_inputs(first_inputs, samples.source.action)
    plain = given_group or as_group(task.usual_group(first_inputs))
    first, first_target, target = checked_recipe_data(samples, plain, task)
    acting = task.on_outputs(plain)
    kept = _checked_keep_of_recipe(keep, task)
    prepare = checked_preprocessing(preprocess, first)
    if batch_size != "auto":
        batch_size = whole_number("batch_size", batch_size, 1, "'auto' or ")
    rows = None if chunk == "auto" else whole_number("chunk", chunk, 1, "'auto' or ")
    recipe = Recipe(
        named,
        samples,
        first,
        first_target,
        target,
        acting,
        task,
        prepare,
        kept,
        batch_size,
        rows,
        device,
        threads,
        whole_number("workers", workers, 0),
        None if timeout is None else real_number("timeout", timeout, "> 0", _SECONDS),
    )
    vars(recipe)["predictors"] = predictors  # made already, and nothing is loaded twice
    return recipe


def checked_recipe_data(
    samples: Samples, group: Group, task: Task
) -> tuple[Tree, Tensor | None, Tensor | None]:
    """Return the first inputs, their targets, and those of all samples if they are known.

    The group must be able to move the inputs. Only the first samples are read.
    """
    first, targets = samples.first(PROBE_SAMPLES)
    check_group(task.input, group, first)
    task.check_group(group, first)
    task.input.check_values(first)
    count = min(PROBE_SAMPLES, len(samples))
    labels = samples.source.labels
    if labels is not None and not is_lazy(labels) and len(samples) <= _MOST_TARGETS:
        target = task.check_target(labels, len(samples))
        return first, task.compact(target[:count]), target
    if labels is not None:  # checked now, and again with the samples of each unit
        for rows in row_runs(len(samples), _CHECKED_AT_ONCE):
            task.check_target(labels[rows], rows.stop - rows.start)
    known = None if targets is None else task.compact(task.check_target(targets, count))
    return first, known, None


def _reading(task: Task, read: Reader | None) -> Task:
    """Return a task that picks outputs by a function, if one was passed."""
    if read is None:
        return task
    if not callable(read):
        raise InputError("read", "a function of a raw model output", repr(read))
    chosen = copy.copy(task)
    chosen._read = read
    return chosen


def _check_kind(task: Task, usual: str | None) -> None:
    """Refuse classes that stay where the data have options that move."""
    if usual is not None and getattr(task, "representation", None) == "trivial":
        raise InputError(
            "task",
            f"{usual!r} for questions with options",
            f"{task.name!r}, whose classes stay where they are",
            remedy=f"pass task={usual!r}",
        )


def _recipe_task_with_classes(task: Task, samples: Samples) -> Task:
    """Return a task that knows the class names of the data, if it has none of its own."""
    if samples.source.classes is None or not hasattr(task, "classes"):
        return task
    of_data = [str(name) for name in samples.source.classes]
    if task.classes is not None:
        _check_class_order_of_recipe(task.classes, of_data)
        return task
    named = copy.copy(task)
    named.classes = of_data
    return named


def _check_class_order_of_recipe(classes: Sequence[str], of_data: Sequence[str]) -> None:
    """Refuse names of which the data number one differently; names they do not have are display."""
    places = {name: place for place, name in enumerate(of_data)}
    for place, name in enumerate(classes):
        if places.get(name, place) != place:
            raise InputError(
                "classes",
                f"{name!r} as class {places[name]}, as the data number it",
                f"class {place}",
                remedy="pass the classes with the data, such as orbical.data.Table(path, "
                "classes=...) or orbical.data.ImageFolder(path, classes=...)",
            )


def _named_models_of_recipe(models: object) -> Json:
    if isinstance(models, list | tuple):
        raise InputError(
            "models",
            "a model or a dictionary of names and models",
            f"a {type(models).__name__}",
            remedy='name them, {"first": net, "second": other}',
        )
    named = dict(models) if isinstance(models, Mapping) else {"model": models}
    if not named:
        raise InputError("models", "at least one model", "none")
    weights = next((found for found in (named, *named.values()) if _is_state(found)), None)
    if weights is not None:
        raise InputError(
            "models",
            "networks",
            "weights without a network (a state dict)",
            remedy="build the network, and load them with its load_state_dict",
        )
    wrong = [name for name in named if not isinstance(name, str) or not name]
    if wrong:
        raise InputError("models", "names that are non-empty strings", repr(wrong[0]))
    return named


def _is_state(given: object) -> bool:
    """Check whether an object is a state dict: tensors by name."""
    return (
        isinstance(given, Mapping)
        and bool(given)
        and all(isinstance(value, Tensor) for value in given.values())
    )


def _as_named(name: str, model: object) -> Predictor:
    try:
        return as_predictor(model)
    except InputError as error:
        raise error.about(f"model {name!r}") from error


def _checked_keep_of_recipe(keep: str | Iterable[str], task: Task) -> frozenset[str]:
    if keep is None or not isinstance(keep, Iterable):
        raise InputError("keep", "the names of what to store", repr(keep))
    texts = [keep] if isinstance(keep, str) else keep
    chosen = frozenset(name.strip() for text in texts for name in str(text).split(","))
    variables = task.variables(True)
    optional = {name for name, variable in variables.items() if variable.optional}
    known = optional | {"outputs", "inputs", "consensus"}
    for name in sorted(chosen - known - variables.keys()):  # all others are stored anyway
        raise unknown_name("keep", name, known)
    return chosen & known


@dataclass(frozen=True)
class RecipePart:
    """The part `number` of `count`, counted from 1."""

    number: int = 1
    count: int = 1

    def holds(self, chunk: int) -> bool:
        """Check whether a chunk of samples belongs to this part."""
        return chunk % self.count == self.number - 1

    def __str__(self) -> str:
        return f"{self.number}/{self.count}"


WHOLE = RecipePart()


def recipe_part(given: str | None, environment: Mapping[str, str] = os.environ) -> RecipePart:
    """Return the part that a text names; `auto` reads it from what started this process.

    >>> recipe_part("3/16").holds(2), recipe_part("3/16").holds(3)
    (True, False)
    >>> str(recipe_part("auto", {"RANK": "0", "WORLD_SIZE": "4"}))
    '1/4'
    >>> job = {"AWS_BATCH_JOB_ARRAY_INDEX": "2", "AWS_BATCH_JOB_ARRAY_SIZE": "16"}
    >>> str(recipe_part("auto", job))
    '3/16'
    """
    if given is None:
        return WHOLE
    if given == "auto":
        return _recipe_part_from_environment(environment)
    found = re.fullmatch(r"(\d{1,9})/(\d{1,9})", given) if isinstance(given, str) else None
    if found is None or not 1 <= int(found[1]) <= int(found[2]):
        raise InputError("part", "'auto' or i/n with i from 1 to n, such as 3/16", repr(given))
    return RecipePart(int(found[1]), int(found[2]))


_PARTS = "ORBICAL_PARTS"  # set by the user where a scheduler does not tell how many there are
_SCHEDULERS = {  # the number of a task, the first, the last and their step; or texts of numbers
    "a SLURM job array": [f"SLURM_ARRAY_TASK_{name}" for name in ("ID", "MIN", "MAX", "STEP")],
    "a Grid Engine array": [f"SGE_TASK_{name}" for name in ("ID", "FIRST", "LAST", "STEPSIZE")],
    "an LSF array": ["LSB_JOBINDEX", "1", "LSB_JOBINDEX_END", "LSB_JOBINDEX_STEP"],
    "a PBS array": ["PBS_ARRAY_INDEX", "1", _PARTS, "1"],
    "torchrun": ["RANK", "0", "WORLD_SIZE", "1"],
    "a Kubernetes indexed job": ["JOB_COMPLETION_INDEX", "0", _PARTS, "1"],
    "an AWS Batch array": ["AWS_BATCH_JOB_ARRAY_INDEX", "0", "AWS_BATCH_JOB_ARRAY_SIZE", "1"],
    "srun": ["SLURM_PROCID", "0", "SLURM_NTASKS", "1"],
}


def _recipe_part_from_environment(environment: Mapping[str, str]) -> RecipePart:
    """Return the part of this task, by what its scheduler tells it."""
    known = {name: int(text) for name, text in environment.items() if _is_count(text)}
    found = [
        name
        for name, (task, *_) in _SCHEDULERS.items()
        if task in known and not (name == "an LSF array" and known[task] == 0)
    ]
    if len(found) > 1 and found[-1] == "srun":  # which also starts the script of an array
        found.pop()
    if len(found) != 1:
        raise InputError(
            "part",
            f"{', '.join(_SCHEDULERS)} for 'auto'",
            " and ".join(found) or "none of these",
            remedy="pass i/n, such as 3/16",
        )
    task, first, last, step = _SCHEDULERS[found[0]]
    if last not in known:
        raise InputError(
            "part",
            f"the number of parts of {found[0]} in {last}",
            "none",
            remedy=f"export {last}=16",
        )
    begin, each = known.get(first, int(first) if _is_count(first) else 1), known.get(step, 1)
    # The last task of those that count from 0 is one less than their number.
    end = known[last] - (1 if first == "0" else 0)
    count = known.get("SLURM_ARRAY_TASK_COUNT", 0) if found == ["a SLURM job array"] else 0
    if (end - begin) % each or (count and end - begin != each * (count - 1)):
        raise InputError(
            "part",
            "a job array of regular numbers, such as --array=1-16, for 'auto'",
            f"{count or 'some'} from {begin} to {end}",
            remedy="pass i/n, such as 3/16",
        )
    number = (known[task] - begin) // each + 1
    return recipe_part(f"{number}/{(end - begin) // each + 1}")


def _is_count(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) < 10
