"""What runs in a worker process: one thread of its own that holds the models of one scan."""

from __future__ import annotations

import multiprocessing
import os
import signal
import socket
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, chdir, contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from .._imports_and_paths import words_of
from .._interrupts import end_with_parent
from .._trees import leaves
from ..data import Samples
from ..errors import InputError, MissingExtra, ModelError, OrbicalError, StoreError
from ..store import ArraySpec, ModelEntry, Record
from .description import described_models, same_model
from .recipe import PROBE_SAMPLES, Recipe
from .recipe_tickets import Ticket, ticket_versions
from .units import UnitRunner, commit_scan_unit, ready_unit_runner, run_unit

if TYPE_CHECKING:
    from ..store import Store

T = TypeVar("T")


@dataclass(frozen=True)
class Order:
    """A unit to run: where to store it, and for which models."""

    out: Path
    chunk: int
    models: list[str]
    batch_size: int
    durable: bool


def describe_in_worker(ticket: Ticket) -> tuple[Record, dict[str, ArraySpec], list[str]]:
    """Describe a scan from what its models answer here: record, arrays, and their warnings."""
    return _at_worker_desk(ticket, lambda desk: (*desk.runner.describe(), desk.warnings))


def prepare_worker(ticket: Ticket, models: tuple[ModelEntry, ...]) -> None:
    """Make a recipe ready in this process; an error names the process."""
    _at_worker_desk(ticket, lambda desk: desk.compare(models))


def run_in_worker(ticket: Ticket, order: Order) -> None:
    """Run a unit and write its results."""
    _at_worker_desk(ticket, lambda desk: desk.run(order))


def start_worker(initializer: Callable[..., object] | None, arguments: tuple[object, ...]) -> None:
    """Begin a process of a pool that was made here: it ends with the scan, also while it idles."""
    end_with_parent()
    if initializer is not None:
        initializer(*arguments)


def take_worker_device(devices: Any) -> None:
    """Choose the device of this process: the next one of a queue."""
    _here.device = devices.get()


class _WorkerDesk:
    """The thread of this process in which the models of one recipe live and work.

    Units of a process run one after another: inference mode belongs to a thread, and not every
    model can be used by two at once.
    """

    def __init__(self, ticket: Ticket) -> None:
        self.ticket = ticket
        self._thread = ThreadPoolExecutor(1, "orbical")
        self._stack = ExitStack()
        self._runner: UnitRunner | None = None
        self._stores: dict[Path, Store] = {}
        self.warnings: list[str] = []

    def do(self, work: Callable[[_WorkerDesk], T]) -> T:
        """Do work in the thread, in the folder that import paths and files are relative to."""

        def there() -> T:
            origin = self.ticket.origin
            with chdir(origin) if Path(origin).is_dir() else nullcontext():
                return work(self)

        return self._thread.submit(there).result()

    @property
    def runner(self) -> UnitRunner:
        """The recipe, made ready on first use."""
        if self._runner is None:
            with _named_worker_errors(), warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                _check_worker_versions(self.ticket)
                if self.ticket.origin not in sys.path:
                    sys.path.insert(0, self.ticket.origin)
                recipe = self.ticket.load()
                if _here.device is not None:
                    recipe = replace(recipe, device=_here.device)
                _check_data(recipe)
                self._runner = self._stack.enter_context(ready_unit_runner(recipe))
            self.warnings = [str(one.message) for one in caught if one.category is UserWarning]
        return self._runner

    def compare(self, expected: tuple[ModelEntry, ...]) -> None:
        """Refuse to go on with models that answer differently here than in the record."""
        known = {entry.name: entry for entry in expected}
        for entry in described_models(self.runner.sweep, self.runner.probes):
            if not same_model(known[entry.name], entry, same_device=True):
                raise ModelError(
                    f"worker {_own_name()}: model {entry.name!r} differs from that of the scan: "
                    f"expected fingerprint {known[entry.name].fingerprint}, got "
                    f"{entry.fingerprint}, or other outputs; use the same files and packages"
                )

    def run(self, order: Order) -> None:
        """Run a unit and commit it, unless another process was faster or the scan has ended."""
        store = self._store(order.out)
        runner = self.runner
        runner.sweep.batch_size = min(runner.sweep.batch_size, order.batch_size)
        unit = run_unit(runner, store.record.rows(order.chunk), order.models)
        if not self.ticket.valid:
            raise StoreError(f"{store.name}: the scan that this unit belongs to has ended")
        store.durable = order.durable
        commit_scan_unit(store, runner, order.chunk, unit)

    def _store(self, out: Path) -> Store:
        from ..store import open_store

        if out not in self._stores:
            store = open_store(out)
            self.compare(store.record.models)
            self._stores[out] = store
        return self._stores[out]

    def leave(self) -> None:
        """Release the models, in their thread, and end it."""
        self._runner = None
        self._thread.submit(self._stack.close).result()
        self._thread.shutdown()


@dataclass
class _Here:
    """The state of this process: a desk for the recipe in use, and the device it was given."""

    lock: threading.Lock
    desk: _WorkerDesk | None = None
    device: str | None = None


_here = _Here(threading.Lock())


def _at_worker_desk(ticket: Ticket, work: Callable[[_WorkerDesk], T]) -> T:
    with _here.lock:
        if _here.desk is None or _here.desk.ticket != ticket:
            if _here.desk is not None:
                _here.desk.leave()
            else:
                end_with_parent(_forget_recipe)
            _here.desk = _WorkerDesk(ticket)
            _ignore_ctrl_c()
        desk = _here.desk
    return desk.do(work)


def _forget_recipe() -> None:
    """Delete the recipe of a driver that was killed."""
    if _here.desk is not None:
        _here.desk.ticket.forget()


def _ignore_ctrl_c() -> None:
    """Leave Ctrl-C, which reaches all processes of a terminal, to the driver of the scan."""
    child = multiprocessing.parent_process() is not None
    if child and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.SIG_IGN)


def _own_name() -> str:
    return f"{socket.gethostname()}:{os.getpid()}"


@contextmanager
def _named_worker_errors() -> Iterator[None]:
    """Name this process in the errors of its start."""
    here = f"worker {_own_name()}"
    try:
        yield
    except InputError as error:
        raise InputError(here, problem=str(error)) from None
    except MissingExtra as error:  # has another signature than its message
        raise ModelError(f"{here}: {error}") from None
    except OrbicalError as error:
        raise type(error)(f"{here}: {error}") from None
    except OSError as error:
        raise InputError(here, problem=f"cannot find the data or a model: {error}") from error
    except (ImportError, AttributeError) as error:
        raise ModelError(
            f"{here} cannot import what the scan needs: {words_of(error)}; install it there, or "
            "start the worker where it is found"
        ) from error


def _check_worker_versions(ticket: Ticket) -> None:
    for (name, theirs), (_, own) in zip(ticket.versions, ticket_versions(), strict=True):
        if theirs != own:
            raise InputError(
                "executor",
                f"{name} {theirs} as in the process that scans",
                own,
                remedy="install the same version",
            )


def _check_data(recipe: Recipe) -> None:
    """Refuse data that this process reads differently."""
    found = Samples(recipe.samples).inputs(0, min(PROBE_SAMPLES, len(recipe.samples)))
    pairs = zip(leaves(recipe.first), leaves(found), strict=True)
    same = all(a.shape == b.shape and bool(((a == b) | (a != a)).all()) for a, b in pairs)
    if not same:
        raise InputError("data", "the samples of the process that scans", "others")
