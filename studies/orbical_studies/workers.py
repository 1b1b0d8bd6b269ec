"""Many small trainings on one device, side by side in worker processes.

Small networks keep a GPU busy only part of the time; several processes fill the gaps. The parent
alone receives results, each as it arrives.
"""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from typing import Any

import torch

_process: dict[str, Any] = {}
"""What this process has loaded, and how long its longest job took."""


def run_jobs(
    jobs: Sequence[Any],
    setup: Callable[[], Any],
    work: Callable[[Any, Any], Any],
    finished: Callable[[Any, Any], None],
    *,
    workers: int,
    deadline: float = float("inf"),
) -> None:
    """Run every job, in this process or in several, and pass on each result as it arrives.

    Args:
        jobs: In the order to start them; each prints as its name.
        setup: Called once in each process; what it returns is passed to `work`. Both must be
            importable from a module (or be partials of such).
        work: `work(loaded, job)` returns the result of a job.
        finished: `finished(job, result)` is called in this process.
        workers: The number of processes; 0 runs the jobs in this one.
        deadline: `time.time()` after which no job may still run. A process starts one only if its
            longest so far would end before.

    Example:
        >>> run_jobs([1, 2], dict, lambda loaded, job: job * 10, print, workers=0)
        1 10
        2 20
    """

    def receive(job: Any, result: Any, failure: str) -> None:
        if failure:
            print(failure, flush=True)
        else:
            finished(job, result)

    if not workers:
        _prepare(setup)
        for job in jobs:
            receive(job, *_attempt(work, job, deadline))
        return
    context = get_context("spawn")
    with ProcessPoolExecutor(workers, context, _prepare, (setup, 1)) as pool:
        started = {pool.submit(_attempt, work, job, deadline): job for job in jobs}
        try:
            for future in as_completed(started):
                receive(started[future], *future.result())
        except BrokenProcessPool:
            print("a worker process died; run the step again to continue", flush=True)


def _prepare(setup: Callable[[], Any], threads: int | None = None) -> None:
    if threads is not None:
        torch.set_num_threads(threads)
    _process.update(loaded=setup(), longest=0.0)


def _attempt(work: Callable[[Any, Any], Any], job: Any, deadline: float) -> tuple[Any, str]:
    """Return the result of a job, or why there is none: one failure must not end the others."""
    start = time.time()
    if start + _process["longest"] > deadline:
        return None, f"no time is left for {job}"
    try:
        return work(_process["loaded"], job), ""
    except Exception:
        return None, f"{job} failed:\n{traceback.format_exc()}"
    finally:
        _process["longest"] = max(_process["longest"], time.time() - start)
