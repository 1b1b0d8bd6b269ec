"""Daemon threads: they never keep the program from ending, whatever they are doing."""

from __future__ import annotations

import atexit
import os
import queue
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import Executor, Future, wait
from typing import Any

from ..errors import ModelError

GRACE_S = 2.0
"""How long the program waits for running tasks at its end."""

_RUNNING: set[Future[Any]] = set()


class DaemonPool(Executor):
    """A thread pool that does not delay the end of the program.

    Python's own pool waits for running tasks at exit, so that a map of many samples or a model that
    hangs would block Ctrl-C. Threads are started when they are needed.

    >>> pool = DaemonPool(2, "adders")
    >>> pool.submit(pow, 2, 5).result(5)
    32
    >>> pool.shutdown()
    """

    def __init__(self, threads: int, name: str, begin: Callable[[], None] | None = None) -> None:
        self._tasks: queue.SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None]
        self._tasks = queue.SimpleQueue()
        self._idle = threading.Semaphore(0)
        self._most, self._name, self._threads = threads, name, 0
        self._begin = begin or (lambda: None)
        self._closed = False
        self._since: float | None = None

    @property
    def busy_s(self) -> float:
        """How long ago the task begun last began; 0 if it has ended."""
        since = self._since
        return 0.0 if since is None else time.monotonic() - since

    def submit(self, function: Callable[..., Any], /, *args: Any, **options: Any) -> Future[Any]:
        """Submit a task and return its future."""
        future: Future[Any] = Future()
        if self._closed:
            future.cancel()
            return future
        self._tasks.put((future, lambda: function(*args, **options)))
        if not self._idle.acquire(blocking=False) and self._threads < self._most:
            self._threads += 1
            name = f"{self._name} {self._threads}"
            threading.Thread(target=self._work, name=name, daemon=True).start()
        return future

    def shutdown(self, wait: bool = False, *, cancel_futures: bool = False) -> None:
        """Drop tasks that have not begun, and end the threads after the others."""
        self._closed = True
        for _ in range(self._threads):
            self._tasks.put(None)

    def _work(self) -> None:
        self._begin()
        while (task := self._tasks.get()) is not None:
            future, function = task
            if self._closed:
                future.cancel()
            if not future.set_running_or_notify_cancel():
                continue
            _RUNNING.add(future)
            self._since = time.monotonic()
            try:
                result = function()
            except BaseException as error:  # a model may even call sys.exit: the thread lives on
                future.set_exception(error)
            else:
                future.set_result(result)
            self._since = None
            _RUNNING.discard(future)
            self._idle.release()


def result_within(future: Future[Any], patience_s: float) -> Any:
    """Wait for a model's result; raise a `ModelError` if it raised or did not answer in time.

    A task that has not begun by then is dropped.
    """
    if not wait([future], patience_s).done:
        future.cancel()
        raise ModelError(f"no answer within {patience_s:.2g} s")
    error = future.exception()
    if error is not None:
        raise ModelError(str(error) or type(error).__name__) from error
    return future.result()


def wait_for_tasks() -> bool:
    """Wait for running tasks, not for long; return whether all have ended.

    Python ends daemon threads wherever they are, and within torch that aborts the program.
    """
    return not wait({*_RUNNING}, GRACE_S).not_done


def leave(status: int = 0) -> None:
    """End a command although tasks run that do not end, before Python aborts in one of them."""
    try:
        ended = wait_for_tasks()
    except KeyboardInterrupt:  # again: without waiting, then
        ended = False
    if not ended:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


atexit.register(wait_for_tasks)
