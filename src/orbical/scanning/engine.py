"""Run a scan: every model on every sample at every element of a group, safely to disk."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from .._imports_and_paths import as_path
from .._interrupts import how_to_go_on, stoppable
from .._text import percent
from ..actions import Images
from ..errors import InputError, Interrupted, StoreError, errors_with_usage, whole_number
from ..groups import Group
from ..store import ArraySpec, Fixed, Scan, claimed_part, exists, in_turn, locked, remove_leftovers
from ..tasks import TASKS, Reader, Task, task_takes
from .description import WAYS_OUT, check_finished_samples, continue_scan, warn_of_scan_failures
from .executors import Remote, crew_of, remote_recipe
from .probing import unprobed_arrays
from .progress import scan_progress_bar
from .recipe import Recipe, RecipePart, plan, recipe_part
from .units import UnitRunner, ready_unit_runner

if TYPE_CHECKING:  # xarray and zarr are loaded when a scan is stored, not when the engine is
    from ..store import Store


def _task_for_scan_argument(argument: str) -> str:
    """Return the task that takes an argument which users may look for in `scan`.

    >>> _task_for_scan_argument("outputs")
    'pass task=ob.tasks.Classification(outputs=...)'
    >>> _task_for_scan_argument("gone")
    ''
    """
    if argument in inspect.signature(Images).parameters:
        return f"pass task=ob.tasks.Classification(ob.actions.Images({argument}=...))"
    takers = [
        name for name in sorted(TASKS, key="classification".__ne__) if task_takes(name, argument)
    ]
    return f"pass task=ob.tasks.{TASKS[takers[0]].__name__}({argument}=...)" if takers else ""


@errors_with_usage(
    '(models, data, group="rotations:72", task="classification")', _task_for_scan_argument
)
def scan(
    models: object,
    data: object,
    *,
    group: Group | str | None = None,
    task: Task | str = "classification",
    out: str | Path | None = None,
    resume: bool = True,
    overwrite: bool = False,
    keep: str | Iterable[str] = (),
    batch_size: int | str = "auto",
    chunk: int | str = "auto",
    durable: bool = False,
    timeout: float | None = None,
    device: str = "auto",
    devices: str | Sequence[str] | None = None,
    threads: int | str = "auto",
    executor: object = None,
    part: str | None = None,
    workers: int = 0,
    fingerprint: str | None = None,
    preprocess: object = None,
    read: Reader | None = None,
    progress: bool | Callable[[int, int], None] = True,
) -> Scan:
    """Evaluate models along the orbits of a data set.

    Every model is evaluated on every sample, transformed by every element of the group. The result
    holds a summary of the models' outputs, and their scores.

    Args:
        models: a model, or a dictionary of names and models: torch modules, exported programs, ONNX
            files, scikit-learn estimators, ASE calculators, functions (see `orbical.predictors`).
        data: the inputs, or a tuple `(inputs, targets)`: arrays with a leading sample dimension, a
            list of samples, a torch `Dataset` or `DataLoader`, a data set of Hugging Face, an
            xarray object, a list of PyG graphs; a path: a folder of images, a table `.csv` or
            `.parquet`, `.npy`, `.npz` or Zarr; or a source of `orbical.data`. The task `atoms` also
            takes a list of `ase.Atoms`, or a file of them such as `.xyz`. Each sample is read once.
        group: the sampled group, or its text such as `"rotations:72"`; a task of options has one
            of its own, the orders of these.
        task: the task, or its name; as for `orbical scan`, classification unless given.
        out: the folder to write to, a Zarr store. The default keeps the result in memory.
        resume: continue a store that holds part of this scan. A scan of other data, another group
            or other models of the same names is refused; new models are added.
        overwrite: replace an existing store, once the new scan is known to be possible.
        keep: what else to store: `"inputs"`, `"outputs"` (the raw model outputs), `"consensus"`
            over more than 256 classes, and what the task offers, such as `"probabilities"` or
            `"flow"`; several as a list, or with commas between them.
        batch_size: the number of transformed inputs in a forward pass, or `"auto"`.
        chunk: the number of samples in a unit, the most that a killed scan can lose; `"auto"`
            makes files of a few megabytes.
        durable: wait until each unit is on the disk before it counts as finished, so that a power
            failure loses no more than a kill.
        timeout: the longest time, in seconds, that a model may take for a batch; a model that hangs
            then ends the scan with an error, and finished units are kept. None waits forever.
        device: a torch device, or `"auto"`.
        devices: several devices, each with a process of its own: `"all"` GPUs, or a list.
        threads: the number of CPU threads of each process; `"auto"` takes that of torch, or 1
            with an executor. Equal threads and batch sizes give equal bits.
        executor: who runs the units: a `dask.distributed.Client`, a
            `concurrent.futures.ProcessPoolExecutor`, or another object with `submit`. Workers
            write to `out` themselves, so it must be a folder or a URL that all of them see.
        part: run only part `"i/n"` of the units, i from 1 to n; other processes run the others
            into the same folder. `"auto"` reads it from a job array of SLURM, Grid Engine, LSF,
            PBS, Kubernetes or AWS Batch, from srun or from torchrun.
        workers: the number of processes that read samples ahead; 0 reads in this one.
        fingerprint: a text that identifies the data, such as their version. A store with the same
            text is continued without reading the samples that are finished.
        preprocess: what is applied to each transformed batch before the models: a function, the
            names of `orbical.data.ImagePreprocessing` such as `"imagenet"` or `"imagenet,bgr"`,
            transforms of torchvision or timm, or an image processor of transformers.
        read: a function that picks the outputs from what the models return, such as
            `lambda out: out["logits"]`; the same as `read` of the task.
        progress: whether to show a progress bar; or a function, which is called with the
            evaluations done and their total after every batch.

    Returns:
        The scan. With `out`, the same call resumes it after an interruption.

    Raises:
        InputError: an argument cannot be used.
        ModelError: a model cannot be loaded, or the task cannot read its outputs.
        StoreError: the store cannot be read, written or continued.

    See Also:
        load: Open the result again.
        orbical.check: Compare a scan with thresholds.
        orbical.worst_case: Search between the elements of a scan.

    Example:
        >>> import orbical as ob, torch
        >>> net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 10))
        >>> images, labels = ob.datasets.digits()
        >>> ob.scan(net, (images[:20], labels[:20]), group="rotations:8", task="classification",
        ...         progress=False)
        Scan(classification, rotations:8: 1 model x 20 samples x 8 elements, complete)
    """
    from ..store import check_overwritable, create, open_store

    crew = crew_of(executor, devices)
    share = recipe_part(part)
    if part is not None and (crew is not None or overwrite):
        raise InputError(
            "part",
            "neither an executor nor overwrite=True, since parts share one store",
            f"part {share}",
            remedy="to scan anew, delete the store first",
        )
    path = None if out is None else as_path("out", out)
    if path is not None and path.suffix in (".zip", ".tar", ".gz"):
        raise InputError(
            "out",
            "the name of a folder",
            repr(str(path)),
            remedy="scan into a folder such as run.zarr and pack it afterwards",
        )
    taken = path is not None and exists(path)
    stored = None
    if taken and overwrite:
        check_overwritable(path)  # type: ignore[arg-type]
    elif taken:  # what is no store is refused at once
        stored = _store_for_engine(path).record.data  # type: ignore[arg-type]
    if taken and not (resume or overwrite):
        raise StoreError(
            f"{str(path)!r} exists; continue it with resume=True, or replace it with overwrite=True"
        )
    if threads == "auto":
        threads = torch.get_num_threads() if crew is None else 1
    recipe = plan(
        models,
        data,
        group=group,
        task=task,
        keep=keep,
        batch_size=batch_size,
        chunk=chunk,
        device=device,
        threads=whole_number("threads", threads, 1, "'auto' or "),
        workers=workers,
        fingerprint=fingerprint,
        known=stored,
        preprocess=preprocess,
        read=read,
        timeout=timeout,
    )
    if crew is not None or part is not None:
        _check_engine_can_share(path, recipe)
    with stoppable(out is not None), ExitStack() as stack:
        work: UnitRunner | Remote
        if crew is None or path is None:
            work = stack.enter_context(ready_unit_runner(recipe))
        else:
            work = stack.enter_context(remote_recipe(recipe, crew, path))
        if isinstance(work, UnitRunner) and part is None and (overwrite or not taken):
            _checked_facts_of_scan(recipe, work.specs)
            work.begin()
        record, specs = work.describe()
        facts = _checked_facts_of_scan(recipe, specs)
        remove_leftovers(path)
        # Only now: a mistake above must not cost the result that is overwritten.
        new = partial(create, path, record, specs, recipe.group, facts, overwrite)
        known = partial(
            continue_scan, given=record, specs=specs, facts=facts, recipe=recipe, part=share
        )
        if part is not None and path is not None:
            store, size = _shared_scan(stack, path, share, new, known)
        elif taken and not overwrite:
            stack.enter_context(locked(path))
            store = open_store(path)  # type: ignore[arg-type]
            size = known(store)
        else:
            store, size = new(), record.run.batch_size
            stack.enter_context(locked(path))
        store.durable = durable
        if not store.record.data.confirms(record.data):
            check_finished_samples(store, recipe, share)
        _fill_scan(store, work, list(recipe.models), share, size, progress)
    result = Scan(store if path is None else open_store(path))
    warn_of_scan_failures(result, recipe.models)
    return result


def _store_for_engine(path: Path) -> Store:
    """Open a store to continue it; what cannot be read may still be replaced."""
    from ..store import check_overwritable, open_store

    try:
        return open_store(path)
    except StoreError as error:
        remedy = WAYS_OUT
        try:
            check_overwritable(path)
        except StoreError:  # what is no store is never replaced
            remedy = "choose another folder with out=FOLDER"
        text = str(error)
        raise StoreError(text if "overwrite=True" in text else f"{text}; {remedy}") from error


def _check_engine_can_share(path: Path | None, recipe: Recipe) -> None:
    """Refuse a store or data that several processes cannot share."""
    if path is None or getattr(path, "protocol", "") == "memory":
        given = "none" if path is None else repr(str(path))
        raise InputError("out", "a folder or a URL that all processes see", given)
    if recipe.samples.source.in_order:
        raise InputError(
            "data",
            "samples that can be read in any order",
            "a stream",
            remedy="scan it in one process",
        )


def _shared_scan(
    stack: ExitStack,
    path: Path,
    part: RecipePart,
    new: Callable[[], Store],
    known: Callable[[Store], int],
) -> tuple[Store, int]:
    """Open the store that the parts of a scan write to; the first of them creates it."""
    from ..store import open_store

    if not exists(path):
        try:
            new()
        except StoreError:
            if not exists(path):  # else another part was faster
                raise
    stack.enter_context(locked(path, shared=True))
    with in_turn(path):
        stack.enter_context(claimed_part(path, str(part)))
    store = open_store(path)
    return store, known(store)


def _checked_facts_of_scan(recipe: Recipe, specs: Mapping[str, ArraySpec]) -> dict[str, Fixed]:
    """Return the facts about the samples, if no coordinate of the group is named as a result."""
    group, facts = recipe.group, unprobed_arrays(recipe, specs)
    names = {*specs, *facts, "model", "sample", "label", "weight", "name"}
    taken = sorted({*group.coords} & names)
    if taken:
        raise InputError(
            "group",
            "coordinates with names of their own",
            f"{taken[0]!r} in {group.spec}, which is the name of a result of the scan",
        )
    return facts


def _fill_scan(
    store: Store,
    work: UnitRunner | Remote,
    asked: list[str],
    part: RecipePart,
    batch_size: int,
    progress: bool | Callable[[int, int], None],
) -> None:
    """Run the units of a part that are not done, each chunk for all its models at once."""
    record = store.record
    own = [chunk for chunk in range(record.chunks) if part.holds(chunk)]
    done = dict(zip(record.names, store.done, strict=True))
    lacking = {chunk: [name for name in asked if not done[name][chunk]] for chunk in own}
    pending = {chunk: names for chunk, names in lacking.items() if names}
    elements = store.shape("action_defect")[1]
    samples = {chunk: len(range(record.data.samples)[record.rows(chunk)]) for chunk in own}
    total = sum(samples.values()) * len(asked) * elements
    left = sum(samples[chunk] * len(pending[chunk]) for chunk in pending) * elements
    try:
        with scan_progress_bar(total, total - left, elements * len(asked), progress) as advance:
            work.fill(store, pending, batch_size, advance)
    except KeyboardInterrupt:
        if store.path is not None:
            store.reload()  # units may have been written by others
        share = store.done[[record.names.index(name) for name in asked]].mean()
        again = how_to_go_on(store.path is not None)
        raise Interrupted(f"stopped at {percent(share)} of {store.name}; {again}") from None
