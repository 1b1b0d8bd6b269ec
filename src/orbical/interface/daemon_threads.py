"""Daemon threads: they never keep the program from ending, whatever they are doing."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future, wait
from typing import Any

from ..errors import ModelError


class DaemonPool(Executor):
    """A thread pool that does not delay the end of the program.

    Python's own pool waits for running tasks at exit, so that a map of many samples or a model that
    hangs would block Ctrl-C.

    >>> pool = DaemonPool(2, "adders")
    >>> pool.submit(pow, 2, 5).result(5)
    32
    >>> pool.shutdown()
    """

    def __init__(self, threads: int, name: str) -> None:
        self._tasks: queue.SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None]
        self._tasks = queue.SimpleQueue()
        self._threads = threads
        for number in range(threads):
            threading.Thread(target=self._work, name=f"{name} {number}", daemon=True).start()

    def submit(self, function: Callable[..., Any], /, *args: Any, **options: Any) -> Future[Any]:
        """Submit a task and return its future."""
        future: Future[Any] = Future()
        self._tasks.put((future, lambda: function(*args, **options)))
        return future

    def shutdown(self, wait: bool = False, *, cancel_futures: bool = False) -> None:
        """End the threads after their current tasks."""
        for _ in range(self._threads):
            self._tasks.put(None)

    def _work(self) -> None:
        while (task := self._tasks.get()) is not None:
            future, function = task
            if not future.set_running_or_notify_cancel():
                continue
            try:
                future.set_result(function())
            except BaseException as error:  # a model may even call sys.exit: the thread lives on
                future.set_exception(error)


def result_within(future: Future[Any], patience_s: float) -> Any:
    """Wait for a model's result; raise a `ModelError` if it raised or did not answer in time.

    A task that has not begun by then is dropped.
    """
    if not wait([future], patience_s).done:
        future.cancel()
        raise ModelError(f"no answer within {patience_s:g} s")
    error = future.exception()
    if error is not None:
        raise ModelError(str(error) or type(error).__name__) from error
    return future.result()
