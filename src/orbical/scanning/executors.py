"""Run the units of a scan by an executor: a pool of processes, a Dask cluster, what has `submit`.

Workers write their units themselves; the driver submits them, counts them, and submits those of
dead workers again.
"""

from __future__ import annotations

import multiprocessing
import sys
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import BrokenExecutor, CancelledError, ProcessPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from .._warnings import warn
from ..errors import InputError, ModelError
from ..store import ArraySpec, Record
from . import workers
from .recipe import Recipe
from .recipe_tickets import Ticket, forget_other_tickets, spilled_recipe

if TYPE_CHECKING:
    from ..store import Store

_USUAL_PLACES = 512
_MOST_DEATHS = 3  # in a row, without a result between them
_POLL_S = 0.05
_LOOK_S = 2.0
_GRACE_S = 1.0


class Pool:
    """An executor of `concurrent.futures`, or anything with its `submit`.

    A pool of processes that has lost one is of no use any more, and is replaced by a new one.

    Args:
        given: the executor; None for a pool that is started here.
        start: starts a pool of processes, which replaces another; of a pool one that is like it.
    """

    def __init__(self, given: Any, start: Callable[[], ProcessPoolExecutor] | None = None) -> None:
        if isinstance(given, ProcessPoolExecutor):
            start = partial(_pool_like, given)
        self._given, self._start = given, start
        usable = given is not None and (start is None or not _forks(given))
        self._executor = given if usable or start is None else start()

    def submit(self, worker: object, call: Callable[..., object], *arguments: Any) -> Any:
        """Submit a call, to any worker."""
        return self._executor.submit(call, *arguments)

    def workers(self) -> list[object]:
        """Return the workers that can be told apart: here one stands for all."""
        return [None]

    def places(self) -> int:
        """Return how many calls can run at once; many, if that is not known."""
        return int(getattr(self._executor, "_max_workers", None) or _USUAL_PLACES)

    def lack(self) -> str | None:
        """Return what the scan waits for, if it cannot go on."""
        return None

    def renew(self) -> None:
        """Replace a broken pool of processes."""
        if self._start is not None:
            self.close()
            self._executor = self._start()

    def close(self) -> None:
        """End the processes that were started here, without waiting for their units.

        Idle ones end by themselves; one that is killed leaves semaphores, of which Python warns.
        """
        if self._executor is not self._given:
            processes = [*(self._executor._processes or {}).values()]
            self._executor.shutdown(wait=False, cancel_futures=True)
            deadline = time.monotonic() + _GRACE_S
            for process in processes:
                process.join(max(0.0, deadline - time.monotonic()))
                process.terminate()


class DaskExecutor:
    """A client of `dask.distributed`, which repeats the calls of workers that die."""

    def __init__(self, client: Any) -> None:
        if client.asynchronous:
            raise InputError("executor", "a synchronous Dask client", "an asynchronous one")
        self._client = client

    def submit(self, worker: object, call: Callable[..., object], *arguments: Any) -> Any:
        """Submit a call, to a worker as long as it is there."""
        place = {} if worker is None else {"workers": [worker], "allow_other_workers": True}
        return self._client.submit(call, *arguments, pure=False, **place)

    def workers(self) -> list[object]:
        """Return the addresses of the workers."""
        found = self._client.scheduler_info(n_workers=-1)
        if "workers" not in found:  # the client has given up and is closed
            raise ModelError(
                f"executor: the Dask scheduler {self._client.scheduler.address} is gone; finished "
                "units are kept: run the same scan again to continue"
            )
        return list(found["workers"])

    def places(self) -> int:
        """Return how many calls can run at once."""
        return int(max(1, sum(self._client.nthreads().values())))

    def lack(self) -> str | None:
        """Return what the scan waits for, if it cannot go on."""
        if self.workers():
            return None
        return f"the cluster {self._client.scheduler.address} has no workers"

    def renew(self) -> None:
        """Do nothing: the cluster replaces its workers."""

    def close(self) -> None:
        """Do nothing: the cluster is the user's."""


Crew = Pool | DaskExecutor


class Remote:
    """A scan whose units are run by others: its recipe on disk, and who runs them."""

    def __init__(self, recipe: Recipe, crew: Crew, ticket: Ticket) -> None:
        self._recipe = recipe
        self._crew = crew
        self._ticket = ticket

    def describe(self) -> tuple[Record, dict[str, ArraySpec]]:
        """Return the record of the scan and its arrays, from one worker; all must agree with it."""
        ticket = self._ticket
        (_, found), *_ = self._each([None], lambda _: (None, workers.describe_in_worker, ticket))
        record, specs, messages = found
        for message in messages:
            warn(message)
        prepare = workers.prepare_worker, ticket, record.models
        list(self._each(self._crew.workers(), lambda worker: (worker, *prepare)))
        return record, specs

    def fill(
        self,
        store: Store,
        pending: Mapping[int, list[str]],
        batch_size: int,
        advance: Callable[[int], None],
    ) -> None:
        """Run units, in any order."""
        assert store.path is not None
        forget_other_tickets(self._ticket, store.path)
        out = store.path.absolute()

        def call(chunk: int) -> tuple[Any, ...]:
            order = workers.Order(out, chunk, pending[chunk], batch_size, store.durable)
            return None, workers.run_in_worker, self._ticket, order

        for chunk, _ in self._each(pending, call):
            rows = store.record.rows(chunk)
            orbits = (rows.stop - rows.start) * len(pending[chunk])
            advance(orbits * len(self._recipe.group))

    def _each(
        self, keys: Iterable[Any], call: Callable[[Any], tuple[Any, ...]]
    ) -> Iterator[tuple[Any, Any]]:
        """Yield `(key, result)` of calls as they finish; calls of dead workers are repeated."""
        waiting = deque(keys)
        running: dict[Any, Any] = {}
        places = self._crew.places()
        deaths = 0
        try:
            while waiting or running:
                died = None
                while waiting and len(running) < 2 * places and died is None:
                    try:
                        running[self._crew.submit(*call(waiting[0]))] = waiting[0]
                        waiting.popleft()
                    except _deaths() as error:
                        died = error
                for future in self._finished(running) if died is None else [*running]:
                    try:
                        result = future.result()
                    except _deaths() as error:
                        died = error
                        waiting.appendleft(running.pop(future))
                        continue
                    deaths = 0
                    yield running.pop(future), result
                    places = max(places, self._crew.places())  # clusters grow
                if died is not None:
                    deaths += 1
                    _refuse_deaths(deaths, died)
                    self._crew.renew()
        finally:
            for future in running:
                future.cancel()

    def _finished(self, running: Mapping[Any, Any]) -> list[Any]:
        """Wait until some calls have finished; warn where there is nobody to run them."""
        looked, warned = time.monotonic(), False
        while not (found := [future for future in running if future.done()]):
            time.sleep(_POLL_S)
            if not warned and time.monotonic() - looked > _LOOK_S:
                looked, lack = time.monotonic(), self._crew.lack()
                warned = lack is not None
                if warned:
                    warn(f"{lack}; the scan waits for some, Ctrl-C stops it")
        return found


@contextmanager
def remote_recipe(recipe: Recipe, crew: Crew, out: Path) -> Iterator[Remote]:
    """Send a recipe to those who will run it; it is gone when the scan ends."""
    try:
        with spilled_recipe(recipe, out) as ticket:
            yield Remote(recipe, crew, ticket)
    finally:
        crew.close()


def crew_of(executor: object, devices: str | Sequence[str] | None) -> Crew | None:
    """Return who runs the units of a scan; None for this process."""
    if devices is not None:
        if executor is not None:
            raise InputError("devices", "no devices with an executor", "both")
        return Pool(None, partial(_pool_on, _listed_executor_devices(devices)))
    if executor is None:
        return None
    if type(executor).__module__.startswith("distributed.") and hasattr(executor, "scheduler_info"):
        return DaskExecutor(executor)
    if not callable(getattr(executor, "submit", None)):
        raise InputError(
            "executor",
            "a dask.distributed.Client, a ProcessPoolExecutor or another object with submit",
            repr(executor),
        )
    return Pool(executor)


def _listed_executor_devices(devices: str | Sequence[str]) -> list[str]:
    if devices == "all":
        found = [f"cuda:{number}" for number in range(torch.cuda.device_count())]
        if not found:
            raise InputError("devices", "at least one GPU for 'all'", "none")
        return found
    if isinstance(devices, str) or not devices:
        raise InputError("devices", "'all' or a list of devices", repr(devices))
    return [str(device) for device in devices]


def _forks(executor: ProcessPoolExecutor) -> bool:
    """Check whether new processes are forks, in which the threads of torch hang."""
    context: Any = executor._mp_context
    return bool(context.get_start_method() == "fork")


def _pool_like(executor: Any) -> ProcessPoolExecutor:
    """Return a new pool of as many processes, which are not forks."""
    context = executor._mp_context
    if _forks(executor):
        context = multiprocessing.get_context("spawn")
    begin = executor._initializer, executor._initargs
    return ProcessPoolExecutor(executor._max_workers, context, workers.start_worker, begin)


def _pool_on(devices: Sequence[str]) -> ProcessPoolExecutor:
    """Return a new pool with one process for each device."""
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    for device in devices:
        queue.put(device)
    begin = workers.take_worker_device, (queue,)
    return ProcessPoolExecutor(len(devices), context, workers.start_worker, begin)


def _deaths() -> tuple[type[BaseException], ...]:
    """Return the errors that a call raises when its worker has died."""
    distributed = sys.modules.get("distributed")
    killed = () if distributed is None else (distributed.scheduler.KilledWorker,)
    return BrokenExecutor, CancelledError, *killed


def _refuse_deaths(deaths: int, error: BaseException) -> None:
    if deaths > _MOST_DEATHS:
        raise ModelError(
            f"executor: {deaths} times in a row, workers died before they finished a unit "
            f"({type(error).__name__}: {error}); finished units are kept. Memory may be short; in "
            "a script, call the scan below: if __name__ == '__main__':"
        ) from error
