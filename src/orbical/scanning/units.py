"""Units of a scan: make a recipe ready in this process, run a unit, commit its results."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from .._imports_and_paths import words_of
from ..data import SampleRows, Samples, read_rows, read_samples_ahead, to_numpy
from ..errors import InputError, ModelError
from ..predictors import count_inputs
from ..store import MOST_UNITS, ArraySpec, Json, Record, row_runs
from .description import (
    check_chunk_as_described,
    describe_scan,
    failure_entries,
    numbers_per_sample,
)
from .forward_passes import PassResults, Sweep
from .probing import (
    PROBE_ELEMENTS,
    input_fields,
    probe_model_for_scan,
    probed_array_specs,
    truth_specs,
    unprobed_truth_arrays,
)
from .recipe import Recipe

if TYPE_CHECKING:  # xarray and zarr are loaded when a scan is stored, not when the engine is
    from ..store import Store

_MAPS_HELD = 8
_SHARE_OF_MEMORY = 8
"""A forward pass may take one such part of an accelerator: larger ones are hardly faster."""

_MOST_UNITS = 512
_MOST_CHOSEN_UNITS = 65_000  # a unit is a file of each array
_WRITTEN = 1 << 24  # bytes of the results of a model in a unit


@dataclass
class UnitRunner:
    """A recipe in this process: models on their device, and what probes found out about them."""

    recipe: Recipe
    sweep: Sweep
    probes: Json
    _begun: tuple[PassResults, Iterator[SampleRows]] | None = None

    def describe(self) -> tuple[Record, dict[str, ArraySpec]]:
        """Return the record of the scan, and the arrays of its results."""
        record = describe_scan(self.sweep, self.recipe.samples, self.probes, self.unit_size)
        return record, self.specs

    @cached_property
    def unit_size(self) -> int:
        """The number of samples in a unit."""
        return unit_size(self.sweep, self.recipe.samples, self.specs, self.recipe.chunk)

    @cached_property
    def specs(self) -> dict[str, ArraySpec]:
        """The arrays of the results."""
        recipe, target = self.recipe, self.recipe.first_target
        specs = probed_array_specs(self.sweep, recipe.samples, target, self.probes)
        if recipe.units_hold_targets and target is not None:
            specs |= truth_specs(recipe.task, target, len(recipe.samples))
        return specs

    def check_range(self, target: Tensor | None) -> None:
        """Check targets that came with samples against what the models answer."""
        if self.recipe.target is None and target is not None:
            for probe in self.probes.values():
                self.recipe.task.check_range(target, probe["outputs"])

    def begin(self) -> None:
        """Start the first unit of a new scan, so that an accelerator works while a store is made.

        On the CPU nothing is gained by it.
        """
        recipe = self.recipe
        if self.sweep.device.type == "cuda":
            chunks = [*row_runs(len(recipe.samples), self.unit_size)]
            ahead = read_samples_ahead(recipe.samples, chunks, recipe.workers)
            first = next(ahead)
            unit = run_unit(self, chunks[0], list(recipe.models), read=first)
            self._begun = unit, chain([first], ahead)

    def fill(
        self,
        store: Store,
        pending: Mapping[int, list[str]],
        batch_size: int,
        advance: Callable[[int], None],
    ) -> None:
        """Run units in order; a unit is written while an accelerator computes the next.

        On the CPU each unit is written before the next begins, so a kill loses one at the most.
        """
        self.sweep.batch_size = batch_size
        chunks = {chunk: store.record.rows(chunk) for chunk in pending}
        unit, ahead = self._begun or (
            None,
            read_samples_ahead(self.recipe.samples, [*chunks.values()], self.recipe.workers),
        )
        with ThreadPoolExecutor(1) as writer:  # its end waits for the last unit, also on Ctrl-C
            waiting: Future[None] | None = None
            for (chunk, rows), read in zip(chunks.items(), ahead, strict=True):
                if unit is None:
                    unit = run_unit(self, rows, pending[chunk], advance, read)
                else:
                    advance(unit.defect.numel() * len(pending[chunk]))
                if waiting is not None:
                    waiting.result()
                waiting = writer.submit(commit_scan_unit, store, self, chunk, unit)
                if unit.landed is None:
                    waiting.result()
                unit = None
            if waiting is not None:
                waiting.result()


@contextmanager
def ready_unit_runner(recipe: Recipe) -> Iterator[UnitRunner]:
    """Make a recipe ready in this thread; each process probes, since it holds its own models."""
    device = _device_of_units(recipe.device)
    with ExitStack() as stack:
        stack.callback(torch.set_num_threads, torch.get_num_threads())
        torch.set_num_threads(recipe.threads)
        for predictor in recipe.predictors.values():
            stack.enter_context(predictor.ready(device))
        size = recipe.batch_size
        if isinstance(size, str):
            size = _choose_batch_size(numbers_per_sample(recipe.first), device)
        sweep = Sweep(
            recipe.predictors,
            recipe.group,
            recipe.task,
            device,
            size,
            recipe.preprocess,
            recipe.keep,
            timeout=recipe.timeout,
        )
        target = recipe.first_target if recipe.target is None else recipe.target
        if device.type == "cuda":
            torch.cuda.reset_peak_memory_stats(device)
        probes = {
            name: probe_model_for_scan(sweep, name, recipe.first, target)
            for name in recipe.predictors
        }
        sweep.output_numbers = max(
            numbers_per_sample(probe["outputs"]) for probe in probes.values()
        )
        if recipe.batch_size == "auto":
            inputs, outputs = numbers_per_sample(recipe.first), sweep.output_numbers
            least = _choose_batch_size(max(outputs, _MAPS_HELD * inputs), device)
            most = min(size, _choose_batch_size(max(outputs, inputs), device))
            sweep.batch_size = max(least, min(most, _unit_batch_limit_by_memory(sweep, recipe)))
        yield UnitRunner(recipe, sweep, probes)


def run_unit(
    runner: UnitRunner,
    rows: slice,
    models: list[str],
    advance: Callable[[int], None] = lambda inputs: None,
    read: SampleRows | None = None,
) -> PassResults:
    """Run models on the orbits of a chunk of samples; an accelerator works on after it.

    `read` are the samples, if they have been read already.
    """
    recipe = runner.recipe
    read = read_rows(recipe.samples, rows) if read is None else read
    target = recipe.target_of(rows, read.targets)
    runner.check_range(target)
    try:
        unit = runner.sweep.run(read.inputs, target, models, advance)
    except (InputError, ModelError):  # a model may refuse what is wrong with the data
        recipe.task.input.check_values(read.inputs, rows.start)
        raise
    unit.read, unit.target = read, target
    return unit


def commit_scan_unit(store: Store, runner: UnitRunner, chunk: int, unit: PassResults) -> None:
    """Write the arrays of a chunk, then the flag of each model whose unit this completes."""
    sweep = runner.sweep
    first = store.record.rows(chunk).start
    digest = unit.read.digest if unit.read is not None else None
    check_chunk_as_described(store, chunk, digest)
    shared = (None, chunk) not in store.units
    known: dict[str, Any] = {}
    if shared and runner.recipe.units_hold_targets:
        truth = unprobed_truth_arrays(sweep.task, unit.target)
        known |= {name: fixed.values for name, fixed in truth.items()}
    if shared and "inputs" in sweep.keep:
        known |= {name: to_numpy(leaf) for name, leaf in input_fields(unit.batch)}
    store.write_arrays(None, chunk, known)  # large, and an accelerator is still busy
    unit.wait(sweep.task.input, sweep.group, first)
    if shared:
        defect = {"action_defect": to_numpy(unit.defect)}
        store.finish(None, chunk, defect, data=digest, written=known)
    for name, summary in unit.summaries.items():
        values = {key: to_numpy(one) for key, one in summary.items()}
        failures = failure_entries(unit.failures[name], first)
        model = store.record.names.index(name)
        store.finish(model, chunk, values, failures, sweep.batch_size)


def _device_of_units(device: str) -> torch.device:
    if device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    refused = InputError("device", "'auto' or a torch device of this machine", repr(device))
    if not isinstance(device, str | torch.device):
        raise refused
    try:
        chosen = torch.device(device)
    except RuntimeError:
        remedy = "for an NVIDIA GPU pass 'cuda'" if device == "gpu" else "see torch.device"
        raise refused.about("device", remedy=remedy) from None
    try:
        torch.zeros(1, device=chosen).sum().item()
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        why = words_of(error).partition(". ")[0]  # what follows is about the making of torch
        got = f"{device!r} ({why})"
        raise InputError("device", refused.expected, got, remedy="pass 'cpu'") from None
    return chosen


def _unit_batch_limit_by_memory(sweep: Sweep, recipe: Recipe) -> int:
    """Return how many inputs a model can take, by the memory that the probes took.

    On a CPU it is not known: a model that returns maps holds many more numbers than an input has.
    """
    inputs, device = numbers_per_sample(recipe.first), sweep.device
    if device.type != "cuda":
        held = _MAPS_HELD if _MAPS_HELD * sweep.output_numbers >= inputs else 1
        return _choose_batch_size(held * inputs, device)
    # What libraries keep for their own work is there after the probes too.
    taken = torch.cuda.max_memory_allocated(device) - torch.cuda.memory_allocated(device)
    probed = len(sweep.group[:PROBE_ELEMENTS]) * count_inputs(recipe.first)
    total = torch.cuda.get_device_properties(device).total_memory
    return int(total // _SHARE_OF_MEMORY * probed // max(1, taken))


def _choose_batch_size(numbers: int, device: torch.device) -> int:
    """Return the number of inputs in a forward pass, from the numbers in an input or an output."""
    budget, most = (2**28, 2**16) if device.type == "cuda" else (2**20, 2**8)
    return max(1, min(budget // numbers, most))


def unit_size(
    sweep: Sweep, samples: Samples, specs: Mapping[str, ArraySpec], chunk: int | None
) -> int:
    """Return the number of samples in a unit, chosen if it is not given."""
    if chunk is None:
        chunk = _choose_unit_size(sweep, samples, specs)
        if any(predictor.one_at_a_time for predictor in sweep.predictors.values()):
            # Slow models: a kill loses one sample, or few where so many files would be too many.
            chunk = min(chunk, max(1, len(samples) // _MOST_UNITS))
        chunk = max(chunk, -(-len(samples) // _MOST_CHOSEN_UNITS))
    return min(max(chunk, -(-len(samples) // MOST_UNITS)), len(samples))


def _choose_unit_size(sweep: Sweep, samples: Samples, specs: Mapping[str, ArraySpec]) -> int:
    """Return the number of samples in a unit, which is a file of each array.

    Arrays of one number for each element have half a megabyte, or two on an accelerator, and the
    results of a model 16, so that files are few and memory hardly grows with the data; the
    inputs of a unit fit into memory; and a kill loses little work, which the numbers in the
    transformed inputs or in their outputs measure.
    """
    inputs, elements = numbers_per_sample(samples.inputs(0, 1)), len(sweep.group)
    of_model = (spec for spec in specs.values() if spec.dims[0] == "model")
    results = sum(math.prod(one.shape[2:]) * np.dtype(one.dtype).itemsize for one in of_model)
    # An accelerator splits its work by divisors of the number of samples.
    large = sweep.device.type == "cuda"
    file, work, held, even = (2**19, 2**33, 2**27, 64) if large else (2**17, 2**29, 2**24, 1)
    most = min(file, work // max(inputs, sweep.output_numbers)) // elements
    rows = int(max(1, min(most, held // inputs, _WRITTEN // results)))
    return rows // even * even or rows
