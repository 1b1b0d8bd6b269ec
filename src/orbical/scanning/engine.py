"""Run a scan: every model on every sample at every element of a group, safely to disk."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from .._imports import as_path, words_of
from .._interrupts import how_to_go_on, stoppable
from .._trees import Tree, leaves
from ..actions import check_group
from ..data.samples import Samples
from ..errors import InputError, Interrupted, ModelError, StoreError, check_name, unknown_name
from ..groups import Group, as_group
from ..groups.group import whole_number
from ..predictors import Predictor, as_predictor
from ..tasks import TASKS, Task
from .description import adopt, describe_scan, failures_of, warn_of_failures
from .probing import (
    PROBE_SAMPLES,
    array_specs,
    as_numpy,
    input_fields,
    probe_model,
    truth_arrays,
)
from .progress import progress_bar
from .sweep import Sweep, Unit

if TYPE_CHECKING:  # xarray and zarr are loaded when a scan is stored, not when the engine is
    from ..store.arrays import Store
    from ..store.scan_result import Scan


def scan(
    models: Any,
    data: Any,
    *,
    group: Group | str,
    task: Task | str,
    out: str | Path | None = None,
    resume: bool = True,
    overwrite: bool = False,
    keep: str | Iterable[str] = (),
    batch_size: int | str = "auto",
    chunk: int | str = "auto",
    durable: bool = False,
    device: str = "auto",
    preprocess: Callable[[Tree], Tree] | None = None,
    progress: bool = True,
) -> Scan:
    """Evaluate models along the orbits of a data set.

    Every model is evaluated on every sample, transformed by every element of the group. The result
    holds the models' outputs in brief, and how good they are.

    Args:
        models: a model, or a dictionary of names and models: torch modules, exported programs, ONNX
            files, scikit-learn estimators, ASE calculators, functions (see `orbical.predictors`).
        data: the inputs, or `(inputs, targets)`, with a leading sample dimension, or a torch
            `Dataset`. The task `atoms` also takes a list of `ase.Atoms`.
        group: the sampled group, or its text such as `"rotations:72"`.
        task: the task, or its name.
        out: the folder to write to, a Zarr store. The default keeps the result in memory.
        resume: continue a store that holds part of this scan. A scan of other data, another group
            or other models of the same names is refused; new models are added.
        overwrite: replace an existing store, once the new scan is known to be possible.
        keep: what else to store: `"inputs"`, `"outputs"` (the raw model outputs), `"consensus"`
            over more than 256 classes, and what the task offers, such as `"probabilities"` or
            `"flow"`.
        batch_size: the number of transformed inputs in a forward pass, or `"auto"`.
        chunk: the number of samples in a unit, which is what a kill can lose at most; `"auto"`
            makes files of a few megabytes.
        durable: wait until each unit is on the disk before it counts as finished, so that a power
            failure loses no more than a kill.
        device: a torch device, or `"auto"`.
        preprocess: a function applied to each transformed batch before the models.
        progress: whether to show a progress bar.

    Returns:
        The scan. With `out`, the same call resumes it after an interruption.

    Raises:
        InputError: an argument cannot be used.
        ModelError: a model cannot be loaded, or the task cannot read its outputs.
        StoreError: the store cannot be read, written or continued.

    Example:
        >>> import orbical as ob, torch
        >>> net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 10))
        >>> images, labels = ob.datasets.digits()
        >>> ob.scan(net, (images[:20], labels[:20]), group="rotations:8", task="classification",
        ...         progress=False)
        Scan(classification, rotations:8: 1 model x 20 samples x 8 elements, complete)
    """
    from ..store import arrays as stores
    from ..store.scan_result import Scan

    predictors = _named_predictors(models)
    group = as_group(group)
    task = as_task(task)
    samples, first, target = checked_data(data, group, task)
    kept = _checked_keep(keep, task)
    if preprocess is not None and not callable(preprocess):
        raise InputError(f"preprocess: expected a function of a batch, got {preprocess!r}")
    path = None if out is None else as_path("out", out)
    if path is not None and path.suffix in (".zip", ".tar", ".gz"):
        raise InputError(
            f"out: expected the name of a folder, got {str(path)!r}; scan into a folder such as "
            "run.zarr and pack it afterwards"
        )
    exists = path is not None and path.exists()
    if exists:
        stores.open_store(path)  # type: ignore[arg-type] # what is no store is refused at once
    if exists and not (resume or overwrite):
        raise StoreError(f"{str(path)!r} exists; resume it or overwrite it")
    where = _choose_device(device)
    with stoppable(out is not None), ExitStack() as stack:
        for predictor in predictors.values():
            stack.enter_context(predictor.ready(where))
        size = _choose_batch_size(batch_size, first, where)
        sweep = Sweep(predictors, group, task, where, size, preprocess, kept)
        probes = {name: probe_model(sweep, name, first, target) for name in predictors}
        rows = None if chunk == "auto" else whole_number("chunk", chunk, 1, "'auto' or ")
        record = describe_scan(sweep, samples, target, probes, rows)
        truth = truth_arrays(task, target)
        specs = array_specs(sweep, samples, target, probes)
        _check_coordinates(group, [*specs, *truth])
        if exists and overwrite:  # only now: a mistake above must not cost the old result
            stores.remove(path)  # type: ignore[arg-type]
        if exists and not overwrite:
            stack.enter_context(stores.locked(path))
            store = stores.open_store(path)  # type: ignore[arg-type]
            adopt(store, record, specs, truth, samples, sweep)
        else:
            store = stores.create(path, record, specs, group, truth, samples.names)
            stack.enter_context(stores.locked(path))
        store.durable = durable
        _fill(store, sweep, samples, target, progress)
    result = Scan(store if path is None else stores.open_store(path))
    warn_of_failures(result, predictors)
    return result


def checked_data(data: Any, group: Group, task: Task) -> tuple[Samples, Tree, Tensor | None]:
    """Return the samples, the first inputs and the targets, if a group can move them."""
    samples = Samples(task.take(data), task.names(data))
    first = samples.inputs(0, PROBE_SAMPLES)
    check_group(task.input, group, first)
    task.input.check_values(first)
    target = None if samples.y is None else task.check_target(samples.y, len(samples))
    return samples, first, target


def _fill(
    store: Store, sweep: Sweep, samples: Samples, target: Tensor | None, progress: bool
) -> None:
    """Run all units that are not done, each chunk of samples for all its models at once."""
    record = store.record
    names = record.names
    done = store.done
    asked = [names.index(name) for name in sweep.predictors]
    pending = [
        (chunk, [m for m in asked if not done[m, chunk]])
        for chunk in range(done.shape[1])
        if not done[asked, chunk].all()
    ]
    elements = len(sweep.group)
    total = len(samples) * elements * len(asked)
    skipped = total - sum(
        (record.rows(chunk).stop - record.rows(chunk).start) * elements * len(left)
        for chunk, left in pending
    )
    waiting: tuple[Any, ...] | None = None  # on its way from an accelerator, which works on
    try:
        with progress_bar(total, skipped, elements * len(asked), progress) as advance:
            for chunk, left in pending:
                rows = record.rows(chunk)
                batch = samples.inputs(rows.start, rows.stop)
                truth = None if target is None else target[rows]
                try:
                    unit = sweep.run(batch, truth, [names[model] for model in left], advance)
                except (InputError, ModelError):  # a model may refuse what is wrong with the data
                    sweep.task.input.check_values(batch, rows.start)
                    raise
                if waiting is not None:
                    _write(store, sweep, *waiting)
                waiting = (chunk, dict(zip(left, unit.summaries, strict=True)), unit)
                if unit.landed is None:  # at hand already: a kill loses one unit at the most
                    _write(store, sweep, *waiting)
                    waiting = None
            if waiting is not None:
                _write(store, sweep, *waiting)
    except KeyboardInterrupt:
        if waiting is not None:  # it is finished, and writing it twice would change nothing
            _write(store, sweep, *waiting)
        share = store.done[asked].mean()
        again = how_to_go_on(store.path is not None)
        raise Interrupted(f"stopped at {share:.0%} of {store.name}; {again}") from None


def _write(
    store: Store,
    sweep: Sweep,
    chunk: int,
    models: dict[int, str],
    unit: Unit,
) -> None:
    """Write the arrays of a chunk, then the flag of each model whose unit this completes."""
    first = store.record.rows(chunk).start
    unit.wait(sweep.task.input, sweep.group, first)
    if (None, chunk) not in store.units:
        shared = {"action_defect": as_numpy(unit.defect)}
        if "inputs" in sweep.keep:
            shared |= {name: as_numpy(leaf) for name, leaf in input_fields(unit.batch)}
        store.finish(None, chunk, shared)
    for model, name in models.items():
        values = {key: as_numpy(one) for key, one in unit.summaries[name].items()}
        failures = failures_of(unit.failures[name], first)
        store.finish(model, chunk, values, failures, sweep.batch_size)


def _named_predictors(models: Any) -> dict[str, Predictor]:
    if isinstance(models, list | tuple):
        raise InputError(
            "models: expected a model or a dictionary of names and models, got a "
            f"{type(models).__name__}"
        )
    named = dict(models) if isinstance(models, Mapping) else {"model": models}
    if not named:
        raise InputError("models: expected at least one model, got none")
    wrong = [name for name in named if not isinstance(name, str) or not name]
    if wrong:
        raise InputError(f"models: expected names that are non-empty strings, got {wrong[0]!r}")
    return {name: _as_named(name, model) for name, model in named.items()}


def _as_named(name: str, model: Any) -> Predictor:
    try:
        return as_predictor(model)
    except InputError as error:
        raise InputError(f"model {name!r}: {str(error).removeprefix('model: ')}") from error


def _check_coordinates(group: Group, specs: Iterable[str]) -> None:
    """Refuse a group with a coordinate that has the name of a result."""
    taken = sorted({*group.coords} & {*specs, "model", "sample", "label", "weight", "name"})
    if taken:
        raise InputError(
            f"group: expected coordinates with names of their own, got {taken[0]!r} in "
            f"{group.spec}, which is the name of a result of the scan"
        )


def as_task(task: Task | str) -> Task:
    """Return a task from a task or its name."""
    if isinstance(task, Task):
        return task
    if not isinstance(task, str):
        given = f"the class {task.__name__}" if isinstance(task, type) else type(task).__name__
        raise InputError(f"task: expected a task such as orbical.tasks.Flow(), got {given}")
    check_name("task", task, TASKS)
    return TASKS[task]()  # type: ignore[call-arg]


def _checked_keep(keep: str | Iterable[str], task: Task) -> frozenset[str]:
    if keep is None or not isinstance(keep, Iterable):
        raise InputError(f"keep: expected the names of what to store, got {keep!r}")
    chosen = frozenset([keep] if isinstance(keep, str) else keep)
    optional = [name for name, variable in task.variables(True).items() if variable.optional]
    known = {*optional, "outputs", "inputs", "consensus"}
    for name in sorted(chosen - known):
        raise unknown_name("keep", name, known)
    return chosen


def _choose_device(device: str) -> torch.device:
    if device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    wanted = f"device: expected 'auto' or a torch device of this machine, got {device!r}"
    if not isinstance(device, str | torch.device):
        raise InputError(wanted)
    try:
        chosen = torch.device(device)
    except RuntimeError:
        remedy = "for an NVIDIA GPU pass 'cuda'" if device == "gpu" else "see torch.device"
        raise InputError(f"{wanted}; {remedy}") from None
    try:
        torch.zeros(1, device=chosen).sum().item()
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        why = words_of(error).partition(". ")[0]  # what follows is about the making of torch
        raise InputError(f"{wanted} ({why}); pass 'cpu'") from None
    return chosen


def _choose_batch_size(batch_size: int | str, first: Tree, device: torch.device) -> int:
    if batch_size == "auto":
        numbers = sum(leaf[0].numel() for leaf in leaves(first))
        budget, most = (2**28, 2**16) if device.type == "cuda" else (2**20, 2**8)
        result: int = max(1, min(budget // max(numbers, 1), most))
        return result
    return whole_number("batch_size", batch_size, 1, "'auto' or ")
