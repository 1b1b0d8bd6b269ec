"""The recipe of a scan: models, data, group and task, checked before any model runs."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from torch import Tensor

from .._trees import Tree
from ..actions import check_group
from ..data.samples import Samples
from ..errors import InputError, unknown_name, whole_number
from ..groups import Group, as_group
from ..predictors import Predictor, as_predictor
from ..store.record import DataEntry
from ..tasks import Task, as_task

PROBE_SAMPLES = 2


@dataclass(frozen=True)
class Recipe:
    """All that a process needs to run any unit of a scan.

    Models are kept as they were given, by name: a process that was started elsewhere imports or
    opens its own. `first` and `first_target` are what models are probed with; `target` has the
    targets of all samples where they are known before these are read. `workers` processes read
    ahead.
    """

    models: dict[str, Any]
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

    @cached_property
    def predictors(self) -> dict[str, Predictor]:
        """The models of this process."""
        return {name: _as_named(name, model) for name, model in self.models.items()}

    def target_of(self, rows: slice, targets: Any) -> Tensor | None:
        """Return the targets of some samples, checked, from what was read with them."""
        if self.target is not None:
            return self.target[rows]
        return None if targets is None else self.task.check_target(targets, len(targets))

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "predictors"}


def plan(
    models: Any,
    data: Any,
    *,
    group: Group | str,
    task: Task | str,
    keep: str | Iterable[str],
    batch_size: int | str,
    chunk: int | str,
    device: str,
    threads: int,
    workers: int,
    fingerprint: str | None,
    known: DataEntry | None,
    preprocess: Callable[[Tree], Tree] | None,
) -> Recipe:
    """Check the arguments of a scan; nothing is computed or written yet.

    Files of images that are `known` from the store to continue are not looked at again.
    """
    named = _named_models(models)
    predictors = {name: _as_named(name, model) for name, model in named.items()}
    group = as_group(group)
    task = as_task(task)
    if fingerprint is not None and not (isinstance(fingerprint, str) and fingerprint):
        raise InputError("fingerprint", "a text that names the data", repr(fingerprint))
    samples = Samples(task.take(data), task.names(data), fingerprint)
    if known is None or known.stamp is None or known.stamp != samples.stamp:
        samples.source.check()
    task = _with_classes(task, samples).for_inputs(samples.first(PROBE_SAMPLES)[0])
    first, first_target, target = checked_data(samples, group, task)
    kept = _checked_keep(keep, task)
    if preprocess is not None and not callable(preprocess):
        raise InputError("preprocess", "a function of a batch", repr(preprocess))
    if batch_size != "auto":
        batch_size = whole_number("batch_size", batch_size, 1, "'auto' or ")
    rows = None if chunk == "auto" else whole_number("chunk", chunk, 1, "'auto' or ")
    recipe = Recipe(
        named,
        samples,
        first,
        first_target,
        target,
        group,
        task,
        preprocess,
        kept,
        batch_size,
        rows,
        device,
        threads,
        whole_number("workers", workers, 0),
    )
    vars(recipe)["predictors"] = predictors  # made already, and nothing is loaded twice
    return recipe


def checked_data(
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
    if samples.labels is None:
        return first, None if targets is None else task.check_target(targets, count), None
    target = task.check_target(samples.labels, len(samples))
    return first, target[:count], target


def _with_classes(task: Task, samples: Samples) -> Task:
    """Return a task that knows the class names of the data, if it has none of its own."""
    if samples.classes is None or getattr(task, "classes", samples.classes) is not None:
        return task
    named = copy.copy(task)
    named.classes = [str(name) for name in samples.classes]  # type: ignore[attr-defined]
    return named


def _named_models(models: Any) -> dict[str, Any]:
    if isinstance(models, list | tuple):
        raise InputError(
            "models", "a model or a dictionary of names and models", f"a {type(models).__name__}"
        )
    named = dict(models) if isinstance(models, Mapping) else {"model": models}
    if not named:
        raise InputError("models", "at least one model", "none")
    wrong = [name for name in named if not isinstance(name, str) or not name]
    if wrong:
        raise InputError("models", "names that are non-empty strings", repr(wrong[0]))
    return named


def _as_named(name: str, model: Any) -> Predictor:
    try:
        return as_predictor(model)
    except InputError as error:
        raise error.about(f"model {name!r}") from error


def _checked_keep(keep: str | Iterable[str], task: Task) -> frozenset[str]:
    if keep is None or not isinstance(keep, Iterable):
        raise InputError("keep", "the names of what to store", repr(keep))
    chosen = frozenset([keep] if isinstance(keep, str) else keep)
    optional = [name for name, variable in task.variables(True).items() if variable.optional]
    known = {*optional, "outputs", "inputs", "consensus"}
    for name in sorted(chosen - known):
        raise unknown_name("keep", name, known)
    return chosen
