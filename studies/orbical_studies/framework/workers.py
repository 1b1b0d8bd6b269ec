"""Many small trainings on one device, side by side in worker processes.

Small networks keep a GPU busy only part of the time; several processes fill the gaps. The parent
alone receives results, each as it arrives.
"""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from typing import Any

import torch

_process: dict[str, Any] = {}
"""What this process has loaded, and how long its latest job took."""


def run_jobs(
    plan: Callable[[], Iterable[Any]],
    setup: Callable[[], Any],
    work: Callable[[Any, Any], Any],
    finished: Callable[[Any, Any], None],
    *,
    workers: int,
    deadline: float = float("inf"),
) -> None:
    """Run every job of a plan, in this process or in several, and pass on results as they arrive.

    Args:
        plan: Lists the jobs, in the order to start them; each prints as its name. Asked again
            after every result, so that what comes next can depend on it; jobs that were started
            are not started again.
        setup: Called once in each process; what it returns is passed to `work`. Both must be
            importable from a module (or be partials of such).
        work: `work(loaded, job)` returns the result of a job.
        finished: `finished(job, result)` is called in this process.
        workers: The number of processes; 0 runs the jobs in this one.
        deadline: `time.time()` after which no job may still run. A process starts one only if it
            would end before, were it as long as its latest one.

    Example:
        >>> results = []
        >>> run_jobs(
        ...     lambda: ["a", "b"] if len(results) < 2 else ["c"],
        ...     setup=dict,
        ...     work=lambda loaded, job: job.upper(),
        ...     finished=lambda job, result: results.append(result),
        ...     workers=0,
        ... )
        >>> results
        ['A', 'B', 'C']
    """
    started: set[str] = set()

    def waiting() -> Any:
        job = next((each for each in plan() if str(each) not in started), None)
        started.add(str(job))
        return job

    def receive(job: Any, result: Any, failure: str) -> None:
        if failure:
            print(failure, flush=True)
        else:
            finished(job, result)

    if not workers:
        _prepare(setup)
        while (job := waiting()) is not None:
            receive(job, *_attempt(work, job, deadline))
        return
    running: dict[Future[Any], Any] = {}
    with ProcessPoolExecutor(workers, get_context("spawn"), _prepare, (setup, 1)) as pool:
        try:
            while True:
                while len(running) < workers and (job := waiting()) is not None:
                    running[pool.submit(_attempt, work, job, deadline)] = job
                if not running:
                    return
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    receive(running.pop(future), *future.result())
        except BrokenProcessPool:
            print("a worker process died; run the step again to continue", flush=True)


def _prepare(setup: Callable[[], Any], threads: int | None = None) -> None:
    if threads is not None:
        torch.set_num_threads(threads)
    _process.update(loaded=setup(), latest=0.0)


def _attempt(work: Callable[[Any, Any], Any], job: Any, deadline: float) -> tuple[Any, str]:
    """Return the result of a job, or why there is none: one failure must not end the others."""
    start = time.time()
    if start + _process["latest"] > deadline:
        return None, f"no time is left for {job}"
    try:
        return work(_process["loaded"], job), ""
    except Exception:
        return None, f"{job} failed:\n{traceback.format_exc()}"
    finally:
        _process["latest"] = time.time() - start
