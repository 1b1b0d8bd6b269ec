"""Live models: outputs for one sample at one orbit position, on request.

Each model has its own thread, which runs one request at a time. A model that raises or does not
answer in time is reported, and nothing else waits for it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
import torch
from threadpoolctl import ThreadpoolController
from torch import Tensor

from .._trees import Tree, concatenate, leaves, to_device, tree_map
from ..actions import Action
from ..data import Samples, as_preprocessing, recorded_preprocessing
from ..errors import InputError, ModelError, OrbicalError
from ..groups import Elements
from ..predictors import Predictor, as_predictor
from ..scanning import Sweep, describe_data, described_setting, errors_in_pass
from ..store import ModelEntry, Scan
from ..tasks import Reader, Task
from .background import BackgroundPool, model_result_within
from .orbit_positions import OrbitLocator

Array = np.ndarray

PATIENCE_S = 10.0
PROBE_PATIENCE_S = 3.0
BATCH = 256
FIRST_BATCH = 8
BATCH_S = 0.1
"""About how long a batch of finer steps may take: as long a drag waits at most."""
_PROBE_SAMPLES, _PROBE_ELEMENTS, _PROBE_NUMBERS = 2, 4, 16


@dataclass(frozen=True)
class LiveAnswer:
    """The answer of one model: variables by name `[K, ...]` and the time taken, or its error."""

    variables: dict[str, Array]
    milliseconds: float
    error: str = ""


@dataclass(frozen=True)
class LiveExtras:
    """What a user passes beside a scan.

    Attributes:
        models: Models by their names in the scan, for live outputs.
        data: The inputs, if the scan did not keep them, as passed to `orbical.scan`.
        task: The task, if it cannot be made from the record (a custom action).
        preprocess: As passed to `orbical.scan`.
        read: How outputs are read, as passed to the task; without it models are not run.
        orbits: The orbit id of each sample, for bounds.
        classes: Names of the classes.
        worst: The result of `orbical.worst_case` for the scan, or a file of it.
        names: Names of the samples.
    """

    models: Mapping[str, object] = field(default_factory=dict)
    data: object = None
    task: Task | None = None
    preprocess: object = None
    read: Reader | None = None
    orbits: Any = None
    classes: Sequence[str] | None = None
    worst: object = None
    names: Sequence[str] | None = None

    def of(self, scan: Scan) -> LiveExtras:
        """Return them with the models of one scan only."""
        own = {name: model for name, model in self.models.items() if name in scan.models}
        return replace(self, models=own)


class LiveModels:
    """Inputs and models of a scan.

    Args:
        scan: The scan.
        row: Reads one sample of a stored array, `(name, sample, model or None)`.
        extras: The models, the inputs and the task, if the user passed them.
    """

    def __init__(
        self, scan: Scan, row: Callable[[str, int, int | None], Array], extras: LiveExtras
    ) -> None:
        self.scan, self._row, self.patience_s = scan, row, PATIENCE_S
        self.locator = OrbitLocator(scan.group)
        self.warnings: list[str] = []
        given = as_preprocessing(extras.preprocess)
        self._preprocess = given or recorded_preprocessing(scan.record.preprocess)
        self._fields = _input_fields(scan)
        self.models = {name: as_predictor(model) for name, model in extras.models.items()}
        stated = extras.task is not None or extras.read is not None
        self._readable = stated or scan.record.task.read is None
        self.task = self._find_task(extras.task, extras.read)
        self.data = None if extras.data is None else self._taken(extras.data)
        self.action = self._find_action() if self.task is None else self.task.input
        self._workers: dict[str, BackgroundPool] = {}
        self._sweeps: dict[tuple[str, torch.device], Sweep] = {}
        self._starting = threading.Lock()
        self._libraries = ThreadpoolController()
        self._check_models()

    def _taken(self, data: object) -> Samples:
        """Take the inputs, which must be those of the scan, as far as their first samples tell."""
        samples = Samples(data if self.task is None else self.task.take(data))
        known = self.scan.record.data
        if len(samples) != known.samples:
            raise InputError("data", f"the {known.samples} samples of the scan", len(samples))
        given = None if self.task is None else describe_data(samples)
        if given is not None and given.labeled == known.labeled and given.first != known.first:
            raise InputError("data", "the data of the scan", "other samples")
        return samples

    def read_from(self, scan: Scan, row: Callable[[str, int, int | None], Array]) -> None:
        """Read stored inputs from the same scan, opened again."""
        self.scan, self._row = scan, row

    @property
    def has_inputs(self) -> bool:
        """Whether inputs are available."""
        return self.data is not None or bool(self._fields)

    @property
    def answering(self) -> list[str]:
        """The models that can run."""
        askable = self.has_inputs and self.task is not None and self._readable
        return [*self.models] if askable else []

    def close(self) -> None:
        """End the models' threads."""
        with self._starting:
            for worker in self._workers.values():
                worker.shutdown()
            self._workers = {}

    def input(self, sample: int) -> Tree | None:
        """Return one sample's input as a batch of one, None if inputs are not available."""
        if self.data is not None:
            return self.data.inputs(sample, sample + 1)
        rows = {key: self._stored(name, sample) for key, name in self._fields.items()}
        if not rows or [*rows] == [""]:
            return rows.get("")
        if all(key.isdigit() for key in rows):
            return tuple(rows[key] for key in sorted(rows, key=int))
        return rows

    def _stored(self, name: str, sample: int, model: int | None = None) -> Tensor:
        """Read one sample of a stored array as a batch of one."""
        return torch.from_numpy(np.array(self._row(name, sample, model)))[None]

    def moved(self, sample: int, elements: Elements) -> Tree | None:
        """Return one sample's transformed inputs `[K, 1, ...]`, None if they cannot be made."""
        given = self.input(sample)
        return None if given is None or self.action is None else self.action.apply(elements, given)

    def ask(
        self, sample: int, elements: Elements, names: list[str], moved: Tree | None = None
    ) -> dict[str, LiveAnswer]:
        """Run models on one sample at some elements, all models at the same time."""
        chosen = [name for name in names if name in self.answering]
        if not chosen:
            return {}
        moved = self.moved(sample, elements) if moved is None else moved
        truth, consensus = self.truth(sample), self._consensus(sample, chosen)
        answers, asked = {}, {}
        for name in chosen:
            worker = self._worker(name)
            if worker.busy_s > self.patience_s:  # it would keep everybody waiting again
                why = f"still busy with an earlier input, for {worker.busy_s:.0f} s"
                answers[name] = LiveAnswer({}, float("nan"), why)
            else:
                question = (elements, moved, truth, consensus.get(name))
                asked[name] = worker.submit(self._answer, name, *question)
        deadline = time.monotonic() + self.patience_s
        for name, one in asked.items():
            try:
                answers[name] = model_result_within(one, max(0.01, deadline - time.monotonic()))
            except OrbicalError as error:
                answers[name] = LiveAnswer({}, float("nan"), str(error))
        return answers

    def module(self, name: str) -> torch.nn.Module | None:
        """Return the torch module of a model, None if it is not one."""
        found = getattr(self.models[name], "module", None)
        return found if isinstance(found, torch.nn.Module) else None

    def settings(self, name: str) -> dict[str, Any]:
        """Return how a model runs here: its device and what is applied to its batches."""
        return {"device": str(_device_of(self.models[name])), "preprocess": self._preprocess}

    def run(self, name: str, work: Callable[[], object]) -> Any:
        """Do some work with a model in its own thread."""
        return model_result_within(self._worker(name).submit(work), self.patience_s)

    def ask_along(
        self, sample: int, elements: Elements, names: list[str]
    ) -> Iterator[tuple[Array, dict[str, LiveAnswer]]]:
        """Run models on many elements: yield their places and the answers, coarse to fine.

        Batches are short, so that other requests come in between. A model that fails is not run on
        the remaining batches.
        """
        willing = [name for name in names if name in self.answering]
        order, start, size = coarse_to_fine(len(elements)), 0, FIRST_BATCH
        while start < len(order) and willing:
            places = order[start : start + size]
            began = time.perf_counter()
            answers = self.ask(sample, elements[places], willing)
            took = (time.perf_counter() - began) / len(places)
            yield places, answers
            willing = [name for name in willing if not answers[name].error]
            start, size = start + size, int(max(1, min(BATCH, 2 * size, BATCH_S / max(took, 1e-6))))

    def _worker(self, name: str) -> BackgroundPool:
        with self._starting:
            if name not in self._workers:
                self._workers[name] = BackgroundPool(1, f"model {name}")
            return self._workers[name]

    def _answer(
        self,
        name: str,
        elements: Elements,
        moved: Tree,
        truth: Tensor | None,
        consensus: Tensor | None,
    ) -> LiveAnswer:
        """Run one model on one sample moved by K elements, in its own thread."""
        task = self.task
        assert task is not None
        start = time.perf_counter()
        outputs = self._outputs(name, moved, elements)
        took = (time.perf_counter() - start) * 1000
        weights = torch.full((len(elements),), 1 / len(elements), dtype=torch.float64)
        with torch.inference_mode():
            summary = task.summarize(outputs, truth, elements, weights)
            declared = task.variables(truth is not None)
            variables = {
                key: value[0].numpy()
                for key, value in summary.items()
                if "element" in declared[key].dims and not key.endswith("vs_consensus")
            }
            if consensus is not None:  # the stored one, moved along
                answers = task.primary(outputs)
                judged = task.output.move(elements, task.reference(consensus)[None])
                scores = task.score(answers, judged, task.output.valid(elements, answers))
                variables["score_vs_consensus"] = scores[:, 0].numpy()
        return LiveAnswer(variables, took)

    def _outputs(self, name: str, moved: Tree, elements: Elements) -> Tree:
        """Run a model on transformed inputs `[K, B, ...]` as a scan does, in batches."""
        assert self.task is not None
        predictor = self.models[name]
        device = _device_of(predictor)
        sweep = self._sweep(name, device)
        parts = []
        # Models run at the same time: threads of each on all cores would wait for each other.
        share = max(1, torch.get_num_threads() // len(self.models))
        with self._libraries.limit(limits=share, user_api="openmp"), predictor.ready(device):
            for start in range(0, len(next(leaves(moved))), BATCH):
                some = tree_map(lambda leaf, s=start: leaf[s : s + BATCH], moved)
                some = to_device(some, device)
                raw = sweep.answer(name, sweep.prepared(some))
                block = elements[start : start + BATCH]
                for why in errors_in_pass(raw).values():
                    raise ModelError(f"model {name!r}: {why}")
                parts.append(tree_map(lambda leaf: leaf.cpu(), sweep.read(name, raw, some, block)))
        outputs = concatenate(parts)
        for fault, marks in self.task.faults(outputs).items():
            if bool(marks.any()):
                raise ModelError(f"model {name!r}: {fault}")
        return outputs

    def _sweep(self, name: str, device: torch.device) -> Sweep:
        """Return the sweep of one model, built for its first request.

        Only the thread of the model uses it. A model that the user moved to another device gets a
        new one.
        """
        if (name, device) not in self._sweeps:
            assert self.task is not None
            own, group = {name: self.models[name]}, self.scan.group
            sweep = Sweep(own, group, self.task, device, BATCH, self._preprocess)
            self._sweeps[name, device] = sweep
        return self._sweeps[name, device]

    def truth(self, sample: int) -> Tensor | None:
        """Return one sample's truth as a batch of one, None if it is not known."""
        if self.task is None or not self.scan.labeled:
            return None
        name = self.task.truth_name
        return self._stored(name, sample) if name in self.scan.stored else None

    def _consensus(self, sample: int, names: list[str]) -> dict[str, Tensor]:
        if "consensus" not in self.scan.stored:
            return {}
        numbers = {name: self.scan.models.index(name) for name in names}
        rows = {name: self._stored("consensus", sample, model) for name, model in numbers.items()}
        # Unfinished samples have no consensus.
        return {name: row for name, row in rows.items() if bool(row.isfinite().any())}

    def _find_task(self, task: Task | None, read: Reader | None) -> Task | None:
        if task is not None:
            if described_setting(task.describe()) != asdict(self.scan.record.task):
                self.warnings.append("the task passed differs from that of the scan")
            return task
        described = self.scan.record.task
        if self.models and not self._readable:
            read_by = f"outputs were read by {described.read}; pass that function as read"
            self.warnings.append(f"models cannot run: {read_by}")
        try:
            return Task.from_record(asdict(described), read)
        except (InputError, ImportError, TypeError, KeyError) as error:
            if self.models and self._readable:
                self.warnings.append(f"models cannot run: {error}")
            return None

    def _find_action(self) -> Action | None:
        try:
            return Action.from_record(self.scan.record.task.input)
        except (InputError, ImportError, TypeError, KeyError):
            return None

    def _check_models(self) -> None:
        """Warn about models that are not the ones scanned; they are shown all the same."""
        if not self.models:
            return
        prepared = self.scan.record.preprocess
        if prepared is not None and self._preprocess is None:
            self.warnings.append(
                f"inputs were preprocessed by {prepared}, which was not passed as preprocess: live "
                "outputs may differ from the scan"
            )
        if not self.has_inputs:
            self.warnings.append("models cannot run: the scan stores no inputs; pass them as data")
        entries = {entry.name: entry for entry in self.scan.record.models}
        for name, predictor in self.models.items():
            other = entries[name].is_known_not_to_be(predictor.fingerprint())
            if other or not self._answers_alike(name, entries[name]):
                self.warnings.append(f"model {name!r} is not the one that was scanned")

    def _answers_alike(self, name: str, entry: ModelEntry) -> bool:
        """Check whether a model reproduces the outputs in the record; one that fails passes."""
        if not entry.probe or not entry.deterministic or name not in self.answering:
            return True
        elements = self.scan.group[:_PROBE_ELEMENTS]
        count = min(_PROBE_SAMPLES, self.scan.record.data.samples)
        inputs = [self.input(sample) for sample in range(count)]
        assert self.action is not None
        moved = self.action.apply(elements, concatenate(inputs))
        try:
            outputs = self._worker(name).submit(self._outputs, name, moved, elements)
            answered = model_result_within(outputs, PROBE_PATIENCE_S)
        except OrbicalError:
            return True  # what it says when asked will be shown
        flat = [leaf.flatten(0, 1).flatten()[:_PROBE_NUMBERS] for leaf in leaves(answered)]
        numbers = torch.cat([part.double() for part in flat]).nan_to_num(0.0)
        return entry.reproduced_by(numbers.numpy())


def coarse_to_fine(count: int) -> Array:
    """Return the places of a list so that every part of it is spread over the whole.

    >>> coarse_to_fine(8).tolist()
    [0, 4, 2, 6, 1, 3, 5, 7]
    """
    steps = [1 << k for k in range(max(1, count).bit_length() - 1, -1, -1)]
    seen = dict.fromkeys(place for step in steps for place in range(0, count, step))
    return np.array([*seen], int)


def _device_of(predictor: Predictor) -> torch.device:
    """Return the device of a model: moving it back and forth for one input costs far more."""
    module = getattr(predictor, "module", None)
    first = next(module.parameters(), None) if isinstance(module, torch.nn.Module) else None
    return torch.device("cpu") if first is None else first.device


def _input_fields(scan: Scan) -> dict[str, str]:
    """Return the stored inputs as `{key of the batch: array}`; one tensor has an empty key."""
    inputs = {name for name, array in scan.arrays.items() if array.attrs.get("meaning") == "input"}
    names = sorted(name for name in inputs if name.startswith("input"))
    return {name.removeprefix("input").removeprefix("_"): name for name in names}
