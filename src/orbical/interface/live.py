"""Models at work while someone looks: one sample, one place, as soon as it is asked for.

Each model has a thread of its own in which it is asked one thing at a time. A model that raises or
does not answer in time is reported, and nothing else waits for it.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..errors import InputError, ModelError, unknown_name
from ..groups import Elements, Group
from ..predictors import Predictor, as_predictor
from ..samples import Samples
from ..store import Scan
from ..sweep import Sweep
from ..tasks import Task
from ..trees import Tree, leaves
from .locating import Locator, Place
from .remake import remake_action, remake_task

__all__ = ["Live", "Locator", "Place"]

PATIENCE_S = 20.0
_NO_ORBIT = ("consensus", "invariance_gap", "score_vs_consensus", "consensus_vs_truth")


class Worker:
    """A thread that asks one model, one question at a time."""

    def __init__(self, name: str) -> None:
        self._questions: queue.SimpleQueue[Any] = queue.SimpleQueue()
        # A daemon: a model that never answers must not keep the program from ending.
        threading.Thread(target=self._work, name=f"model {name}", daemon=True).start()

    def ask(self, question: Callable[[], Any]) -> Asked:
        """Put a question, and return where its answer will be."""
        asked = Asked(question)
        self._questions.put(asked)
        return asked

    def close(self) -> None:
        """Let the thread end after what it is doing."""
        self._questions.put(None)

    def _work(self) -> None:
        while (asked := self._questions.get()) is not None:
            asked.answer()


class Asked:
    """A question on its way: abandoned if nobody waits for it any more."""

    def __init__(self, question: Callable[[], Any]) -> None:
        self._question = question
        self._done = threading.Event()
        self._abandoned = False
        self._value: Any = None
        self._error: BaseException | None = None

    def answer(self) -> None:
        """Answer it, in the model's thread."""
        if not self._abandoned:
            try:
                self._value = self._question()
            except BaseException as error:
                self._error = error
        self._done.set()

    def wait(self, patience_s: float) -> Any:
        """Wait for the answer, or raise what the model raised."""
        if not self._done.wait(patience_s):
            self._abandoned = True
            raise ModelError(f"no answer within {patience_s:g} s")
        if self._error is not None:
            raise self._error
        return self._value


@dataclass(frozen=True)
class Answered:
    """What one model said: variables by name `[K, ...]`, and how long it took; or its error."""

    variables: dict[str, np.ndarray]
    milliseconds: float
    error: str = ""


class Live:
    """Inputs and models behind a scan.

    Arguments:
        scan: the scan.
        models: models by their names in the scan; may be empty.
        data: the inputs of the scan, where it did not keep them, as given to `orbical.scan`.
        task: the task, where it cannot be made from the record (a reader or action of one's own).
        preprocess: as given to `orbical.scan`.
    """

    def __init__(
        self,
        scan: Scan,
        models: Mapping[str, Any] | None = None,
        data: Any = None,
        task: Task | None = None,
        preprocess: Callable[[Tree], Tree] | None = None,
        patience_s: float = PATIENCE_S,
    ) -> None:
        self.scan = scan
        self.locator = Locator(scan.group)
        self.warnings: list[str] = []
        self.patience_s = patience_s
        self._preprocess = preprocess
        self._data = None if data is None else Samples(data)
        self._check_data()
        self.task = self._find_task(task)
        self.action = None if self.task is None else self.task.input
        if self.task is None:
            self.action = self._find_action()
        self._fields = _input_fields(scan)
        self.models: dict[str, Predictor] = {}
        self._workers: dict[str, Worker] = {}
        for name, model in (models or {}).items():
            if name not in scan.models:
                raise unknown_name("models", name, scan.models)
            self.models[name] = as_predictor(model)
        self._check_models()

    @property
    def has_inputs(self) -> bool:
        """Whether inputs are at hand."""
        return self._data is not None or bool(self._fields)

    def close(self) -> None:
        """Let the models' threads end."""
        for worker in self._workers.values():
            worker.close()
        self._workers = {}

    def input(self, sample: int) -> Tree | None:
        """Give one sample's input as a batch of one, None where inputs are not at hand."""
        if self._data is not None:
            return self._data.inputs(sample, sample + 1)
        if not self._fields:
            return None
        root = self.scan._store.root
        parts = {
            key: torch.from_numpy(np.array(root[name][sample : sample + 1]))  # type: ignore[index]
            for key, name in self._fields.items()
        }
        return _as_tree(parts)

    def moved(self, sample: int, elements: Elements) -> Tree | None:
        """Give one sample's input moved by elements, `[K, 1, ...]`; None where it cannot be."""
        given = self.input(sample)
        if given is None:
            return None
        if self.action is None:
            return None
        return self.action.apply(elements, given)

    def ask(self, sample: int, elements: Elements, names: list[str]) -> dict[str, Answered]:
        """Ask models about one sample at some elements, all models at the same time."""
        moved = self.moved(sample, elements)
        chosen = [name for name in names if name in self.models]
        if moved is None or self.task is None:
            return {}
        truth = self._truth(sample)
        asked = {
            name: self._worker(name).ask(
                lambda name=name: self._answer(name, moved, elements, truth)
            )
            for name in chosen
        }
        deadline = time.monotonic() + self.patience_s
        answers = {}
        for name, question in asked.items():
            try:
                answers[name] = question.wait(max(0.01, deadline - time.monotonic()))
            except Exception as error:
                answers[name] = Answered({}, float("nan"), str(error) or type(error).__name__)
        return answers

    def _worker(self, name: str) -> Worker:
        if name not in self._workers:
            self._workers[name] = Worker(name)
        return self._workers[name]

    def _answer(self, name: str, moved: Tree, elements: Elements, truth: Tensor | None) -> Answered:
        """Ask one model, in its own thread."""
        predictor = self.models[name]
        assert self.task is not None
        start = time.perf_counter()
        with predictor.ready(torch.device("cpu")):
            sweep = self._sweep()
            outputs = sweep.outputs_of(name, moved, len(elements))
            weights = torch.full((len(elements),), 1 / len(elements))
            summary = self.task.summarise(outputs, truth, elements, weights.double())
        took = (time.perf_counter() - start) * 1000
        declared = self.task.variables(truth is not None)
        variables = {
            key: value[0].numpy()
            for key, value in summary.items()
            if "element" in declared[key].dims and key not in _NO_ORBIT
        }
        return Answered(variables, took)

    def _sweep(self) -> _OneSweep:
        assert self.task is not None
        return _OneSweep(
            self.models, self.scan.group, self.task, torch.device("cpu"), 256, self._preprocess
        )

    def _truth(self, sample: int) -> Tensor | None:
        if self.task is None or not self.scan.labelled:
            return None
        root = self.scan._store.root
        name = self.task.truth_name
        if name not in root:
            return None
        return torch.from_numpy(np.array(root[name][sample : sample + 1]))  # type: ignore[index]

    def _find_task(self, task: Task | None) -> Task | None:
        if task is not None:
            if task.describe() != self.scan.header["task"]:
                self.warnings.append("the given task differs from that of the scan")
            return task
        try:
            return remake_task(self.scan.header["task"])
        except (InputError, ImportError, TypeError, KeyError) as error:
            self.warnings.append(f"no live answers: {error}")
            return None

    def _find_action(self) -> Any:
        try:
            return remake_action(self.scan.header["task"]["input"])
        except (InputError, ImportError, TypeError, KeyError):
            return None

    def _check_data(self) -> None:
        if self._data is None:
            return
        known = self.scan.header["data"]
        if len(self._data) != known["samples"]:
            raise InputError(
                f"data: {len(self._data)} samples given, the {known['samples']} of the scan expected"
            )

    def _check_models(self) -> None:
        """Say where a given model is not the one that was scanned; it is shown all the same."""
        if not self.models:
            return
        if self.scan.header["preprocess"] is not None and self._preprocess is None:
            self.warnings.append(
                f"inputs were prepared by {self.scan.header['preprocess']}, which is not given: "
                "live answers may differ from the scan"
            )
        if not self.has_inputs:
            self.warnings.append("no inputs are stored or given, so models cannot be asked")
        entries = {entry["name"]: entry for entry in self.scan.header["models"]}
        for name, predictor in self.models.items():
            known, given = entries[name]["fingerprint"], predictor.fingerprint()
            if known and given and known != given:
                self.warnings.append(f"model {name!r} is not the one that was scanned")


class _OneSweep(Sweep):
    """The scan's own way to ask a model, for inputs that are moved already."""

    def outputs_of(self, name: str, moved: Tree, elements: int) -> Tree:
        """Answer moved inputs `[K, 1, ...]`, in batches."""
        from ..trees import concatenate, split_leading, tree_map

        parts = []
        for start in range(0, elements, self.batch_size):
            some = tree_map(lambda leaf, s=start: leaf[s : s + self.batch_size], moved)
            shape = (len(next(leaves(some))), 1)
            raw = self.answer(name, self.prepared(some))
            parts.append(split_leading(self.read(name, raw, shape), *shape))
        outputs = concatenate(parts)
        for leaf in leaves(outputs):
            if leaf.is_floating_point() and not bool(torch.isfinite(leaf).all()):
                raise ModelError(f"model {name!r}: NaN or infinite output")
        return outputs


def _input_fields(scan: Scan) -> dict[str, str]:
    """Name the stored inputs: `{key of the batch: array}`; the key is empty for one tensor."""
    names = [
        name
        for name, array in scan._store.root.arrays()
        if array.attrs.get("meaning") == "input" and name.startswith("input")
    ]
    return {name.removeprefix("input").removeprefix("_"): name for name in sorted(names)}


def _as_tree(parts: dict[str, Tensor]) -> Tree:
    if [*parts] == [""]:
        return parts[""]
    if all(key.isdigit() for key in parts):
        return tuple(parts[key] for key in sorted(parts, key=int))
    return parts


def dense_group(group: Group) -> Group | None:
    """Give the same orbit at finer steps."""
    return Locator(group).finer()
