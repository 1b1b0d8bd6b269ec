"""Many small trainings on one device: worker processes that share a queue of jobs.

Small networks keep a GPU busy only a part of the time, the rest going into launching kernels from
Python; several processes fill the gaps. The parent alone receives results, each as it arrives.
"""

from __future__ import annotations

import queue
import time
import traceback
from collections.abc import Callable, Sequence
from typing import Any

import torch

Setup = Callable[[], Any]
Work = Callable[[Any, Any], Any]


def run_jobs(
    jobs: Sequence[Any],
    setup: Setup,
    work: Work,
    finished: Callable[[Any, Any], None],
    *,
    workers: int,
    deadline: float = float("inf"),
    say: Callable[[str], None] = print,
) -> None:
    """Do every job, in this process or in several, and hand over each result as it ends.

    Args:
        jobs: in the order in which to start them; each prints as its name.
        setup: called once in each process; what it returns goes to `work`. Both must be functions
            of a module (or partials of such), for other processes to find them.
        work: `work(settings, job)` gives the result of a job.
        finished: `finished(job, result)` is called in this process.
        workers: processes; 0 works in this one.
        deadline: `time.time()` after which no job may still run; a worker starts one only if its
            longest so far would end before.
        say: tells a person of failures.

    >>> run_jobs([1, 2], dict, lambda settings, job: job * 10, print, workers=0)
    1 10
    2 20
    """
    if not workers:
        _work(_Listed(jobs), _Direct(finished, say), setup, work, deadline)
        return
    context = torch.multiprocessing.get_context("spawn")
    waiting, answers = context.Queue(), context.Queue()
    for job in jobs:
        waiting.put(job)
    processes = [
        context.Process(target=_worker, args=(waiting, answers, setup, work, deadline), daemon=True)
        for _ in range(min(workers, len(jobs)))
    ]
    for process in processes:
        process.start()
    receive = _Direct(finished, say)
    while any(process.is_alive() for process in processes) or not answers.empty():
        try:
            receive.put(answers.get(timeout=1.0))
        except queue.Empty:
            continue
    for process in processes:
        process.join()
        if process.exitcode:
            say(f"a worker ended with status {process.exitcode}")


def _worker(waiting: Any, answers: Any, setup: Setup, work: Work, deadline: float) -> None:
    torch.set_num_threads(1)
    _work(waiting, answers, setup, work, deadline)


def _work(waiting: Any, answers: Any, setup: Setup, work: Work, deadline: float) -> None:
    settings = setup()
    longest = 0.0
    while True:
        try:
            job = waiting.get(timeout=1.0)
        except queue.Empty:
            return
        if time.time() + longest > deadline:
            answers.put(("said", f"no time is left for {job}", None))
            continue
        start = time.time()
        try:
            answers.put(("done", job, work(settings, job)))
        except Exception:  # one job's failure must not end the others
            answers.put(("said", f"{job} failed:\n{traceback.format_exc()}", None))
        longest = max(longest, time.time() - start)


class _Listed:
    """A list that reads as a queue."""

    def __init__(self, jobs: Sequence[Any]) -> None:
        self._jobs = iter(jobs)

    def get(self, timeout: float) -> Any:
        try:
            return next(self._jobs)
        except StopIteration:
            raise queue.Empty from None


class _Direct:
    """A queue of answers that acts on each at once."""

    def __init__(self, finished: Callable[[Any, Any], None], say: Callable[[str], None]) -> None:
        self._finished, self._say = finished, say

    def put(self, answer: tuple[str, Any, Any]) -> None:
        kind, content, result = answer
        if kind == "done":
            self._finished(content, result)
        else:
            self._say(content)
