"""Describe a scan in its record, and decide whether a store may be continued."""

from __future__ import annotations

import datetime
import hashlib
import importlib.metadata
import math
import os
import uuid
from collections.abc import Iterable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from .. import __version__
from .._imports_and_paths import name_of
from .._trees import Tree, leaves
from .._warnings import warn
from ..actions import Action
from ..data import Samples, hash_of_rows, read_samples_ahead
from ..errors import StoreError
from ..store import (
    ArraySpec,
    DataEntry,
    Fixed,
    GroupEntry,
    Json,
    ModelEntry,
    Record,
    RunEntry,
    Scan,
    ScoreEntry,
    TaskEntry,
    ViewsEntry,
    fixed_arrays,
)
from .forward_passes import Failures, Sweep
from .recipe import PROBE_SAMPLES, Recipe, RecipePart

if TYPE_CHECKING:
    from ..store import Store


WAYS_OUT = "choose another store, or replace this one with overwrite=True"

_MOST_NUMBERS = 64


def describe_scan(sweep: Sweep, samples: Samples, probes: Json, chunk: int) -> Record:
    """Return the record of a scan that is about to run, with units of `chunk` samples."""
    function = sweep.preprocess
    task = sweep.task
    return Record(
        run_id=uuid.uuid4().hex,
        created=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        versions=scan_versions(),
        task=TaskEntry(**described_setting(task.describe())),
        score=ScoreEntry(
            task.score_meaning, task.score_unit, task.higher_is_better, task.isometric(sweep.group)
        ),
        views=ViewsEntry(task.input_view, task.detail_view),
        group=GroupEntry(sweep.group.spec, sweep.group.fingerprint()),
        data=describe_data(samples),
        models=described_models(sweep, probes),
        keep=sorted(sweep.keep),
        preprocess=None if function is None else name_of(function),
        run=RunEntry(str(sweep.device), torch.get_num_threads(), sweep.batch_size, chunk),
    )


def numbers_per_sample(batch: Tree) -> int:
    """Return how many numbers one sample of a batch has, at least 1."""
    numbers: int = sum(leaf[:1].numel() for leaf in leaves(batch))
    return max(1, numbers)


def describe_data(samples: Samples) -> DataEntry:
    """Return what identifies data in a record; only the first samples are read."""
    first = samples.first(PROBE_SAMPLES)
    digest = hash_of_rows(*first)
    labeled = first[1] is not None
    return DataEntry(len(samples), labeled, digest, samples.stamp, samples.fingerprint)


def described_models(sweep: Sweep, probes: Json) -> tuple[ModelEntry, ...]:
    """Describe the models, by their contents and by their outputs for a few inputs."""
    return tuple(
        ModelEntry(
            name,
            predictor.source,
            predictor.fingerprint(),
            probes[name]["deterministic"],
            probes[name]["values"],
        )
        for name, predictor in sweep.predictors.items()
    )


def described_setting(setting: object) -> Any:
    """Return a setting of a task or an action as JSON values, the same each time.

    A user's own action may have any settings: large arrays are written as a hash, functions and
    other objects by name.

    >>> described_setting({"size": (3, np.float32(0.5)), "kernel": np.eye(2), "name": str.lower})
    {'size': [3, 0.5], 'kernel': [[1.0, 0.0], [0.0, 1.0]], 'name': 'builtins:str.lower'}
    """
    if setting is None or isinstance(setting, bool | int | str):
        return setting
    if isinstance(setting, float):
        return setting if math.isfinite(setting) else repr(setting)
    if isinstance(setting, Mapping):
        return {str(key): described_setting(value) for key, value in setting.items()}
    if isinstance(setting, set | frozenset):
        return sorted((described_setting(value) for value in setting), key=repr)
    if isinstance(setting, tuple | list):
        return [described_setting(value) for value in setting]
    if isinstance(setting, Tensor):
        setting = setting.detach().cpu().double().numpy()
    if isinstance(setting, np.ndarray) and setting.size > _MOST_NUMBERS:
        digest = hashlib.sha256(np.ascontiguousarray(setting).tobytes()).hexdigest()[:16]
        return f"{setting.dtype} {setting.shape} {digest}"
    if isinstance(setting, np.ndarray | np.generic):
        return described_setting(setting.tolist())
    if isinstance(setting, Action):
        return described_setting(setting.describe())
    return str(setting) if isinstance(setting, os.PathLike) else name_of(setting)


@cache
def scan_versions() -> dict[str, str]:
    """Return the versions of orbical and of the packages that compute and store."""
    packages = ("torch", "numpy", "xarray", "zarr")
    return {"orbical": __version__} | {name: importlib.metadata.version(name) for name in packages}


def failure_entries(failures: Failures, first_sample: int) -> list[Json]:
    """Return the failures of a unit for the record, one entry for each sample."""
    records: dict[int, Json] = {}
    for element, sample in sorted(failures):
        first = {"sample": first_sample + sample, "element": element, "places": 0}
        known = records.setdefault(sample, {**first, "error": failures[element, sample]})
        known["places"] += 1
    return [records[sample] for sample in sorted(records)]


def warn_of_scan_failures(scan: Scan, names: Iterable[str]) -> None:
    """Warn at the end of a scan about models that failed on some samples."""
    for name in names:
        failed = scan.failures[name]
        if failed:
            first = failed[0]
            warn(
                f"model {name!r} failed on {len(failed)} of {scan.record.data.samples} "
                f"samples, which are stored as missing; first on sample {first['sample']} at "
                f"{scan.group.name(first['element'])}: {first['error']}",
            )


def continue_scan(
    store: Store,
    given: Record,
    specs: dict[str, ArraySpec],
    facts: dict[str, Fixed],
    recipe: Recipe,
    part: RecipePart,
) -> int:
    """Continue a store: refuse another scan, redo damaged units of a part, add new models.

    Returns the batch size to continue with.
    """
    from ..store import repair

    store.add_models([])  # of a scan that was killed while it added one
    stored = store.record
    if stored.group.fingerprint != given.group.fingerprint:
        raise StoreError(
            f"{store.name} was made from another group: it holds {_short(stored.group)}, "
            f"got {_short(given.group)}; {WAYS_OUT}"
        )
    if stored.data.contradicts(given.data):
        raise StoreError(
            f"{store.name} was made from other data: it holds {_short_data(stored.data)}, got "
            f"{_short_data(given.data)}; {WAYS_OUT}"
        )
    for key in ("task", "keep", "preprocess"):
        if getattr(stored, key) != getattr(given, key):
            old, new = _differing(stored.to_json()[key], given.to_json()[key])
            raise StoreError(
                f"{store.name} was made with another {key}: it holds {old}, got {new}; {WAYS_OUT}"
            )
    _check_model_descriptions(store, given)
    for name, spec in specs.items():
        if spec.dims[:1] == ("model",) and store.shape(name)[1:] != spec.shape[1:]:
            raise StoreError(
                f"{store.name} holds {name} of shape {store.shape(name)[1:] or 'none'}, the models "
                f"return {spec.shape[1:]}; {WAYS_OUT}"
            )
    for key in ("device", "threads"):
        begun, now = getattr(stored.run, key), getattr(given.run, key)
        if begun != now:
            warn(
                f"{store.name} was started with {key} {begun}, this run has {now}: the last bits "
                "of the new values may differ",
            )
    fixed = fixed_arrays(stored.names, recipe.group, facts)
    done = repair(store, fixed, part.holds)
    for parts, what in (
        (done.restored, "files were lost or damaged and have been restored"),
        (done.unfinished, "units are damaged and will be computed again"),
    ):
        if parts:
            warn(f"{store.name}: {len(parts)} {what}")
    store.add_models([entry for entry in given.models if entry.name not in stored.names])
    _check_model_descriptions(store, given)  # another scan may have added one of the same name
    halved = [unit.batch_size for unit in store.noted() if unit.batch_size]
    return min([stored.run.batch_size, *halved])


def _check_model_descriptions(store: Store, given: Record) -> None:
    known = {entry.name: entry for entry in store.record.models}
    same_device = store.record.run.device == given.run.device
    for entry in given.models:
        if entry.name in known and not same_model(known[entry.name], entry, same_device):
            raise StoreError(
                f"{store.name} holds another model under the name {entry.name!r}: "
                f"{_short(known[entry.name])}, got {_short(entry)}; use another name, or "
                "replace the whole scan with overwrite=True"
            )


def same_model(stored: ModelEntry, given: ModelEntry, same_device: bool) -> bool:
    """Check whether contents and outputs agree: equal weights may belong to different code.

    Outputs of one content are compared on one device only, since devices round differently.
    """
    if stored.fingerprint != given.fingerprint:
        return False
    if stored.fingerprint and not same_device:
        return True
    if not (stored.deterministic and given.deterministic):
        return True
    return stored.reproduced_by(given.probe)


def _differing(stored: object, given: object) -> tuple[object, object]:
    """Return the entries in which two dictionaries differ, or two other values as they are."""
    if not (isinstance(stored, dict) and isinstance(given, dict)):
        return stored, given
    old, new = {}, {}
    for key in {**stored, **given}:
        if stored.get(key) != given.get(key):
            old[key], new[key] = _differing(stored.get(key), given.get(key))
    return old, new


def _short(entry: object) -> str:
    return ", ".join(
        f"{key} {getattr(entry, key)}"
        for key in ("spec", "source", "fingerprint")
        if getattr(entry, key, None) is not None
    )


def check_finished_samples(store: Store, recipe: Recipe, part: RecipePart) -> None:
    """Read the chunks of a part that are finished, and refuse data that differ from theirs."""
    asked = [store.record.names.index(name) for name in recipe.models]
    finished = store.done[asked].all(0)
    chunks = [int(chunk) for chunk in np.flatnonzero(finished) if part.holds(int(chunk))]
    rows = [store.record.rows(chunk) for chunk in chunks]
    ahead = read_samples_ahead(recipe.samples, rows, recipe.workers)
    for chunk, found in zip(chunks, ahead, strict=True):
        check_chunk_as_described(store, chunk, found.digest)


def check_chunk_as_described(store: Store, chunk: int, digest: str | None) -> None:
    """Refuse samples that differ from those that a finished unit was made from."""
    unit = store.unit((None, chunk))
    if unit is not None and None not in (unit.data, digest) and unit.data != digest:
        rows = store.record.rows(chunk)
        raise StoreError(
            f"{store.name} was made from other data: samples {rows.start} to {rows.stop - 1} "
            f"differ; {WAYS_OUT}"
        )


def _short_data(entry: DataEntry) -> str:
    fingerprint = entry.fingerprint or entry.first
    return f"samples {entry.samples}, fingerprint {fingerprint}"
