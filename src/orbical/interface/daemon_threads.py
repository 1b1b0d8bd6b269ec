"""Daemon threads: they never keep the program from ending, whatever they are doing."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any

from ..errors import ModelError


class PendingAnswer:
    """A pending answer; its question is skipped if nothing waits for it anymore."""

    def __init__(self, question: Callable[[], Any]) -> None:
        self._question = question
        self._done = threading.Event()
        self._abandoned = False
        self._value: Any = None
        self._error: BaseException | None = None

    def answer(self) -> None:
        """Run the question, in the model's thread."""
        if not self._abandoned:
            try:
                self._value = self._question()
            except BaseException as error:  # a model may even call sys.exit: the thread lives on
                self._error = error
        self._done.set()

    def wait(self, patience_s: float) -> Any:
        """Wait for the answer; raise a `ModelError` if the model raised or did not answer."""
        if not self._done.wait(patience_s):
            self._abandoned = True
            raise ModelError(f"no answer within {patience_s:g} s")
        if self._error is not None:
            raise ModelError(str(self._error) or type(self._error).__name__) from self._error
        return self._value


class ModelThread:
    """The thread of one model, which runs one question at a time.

    >>> worker = ModelThread("adder")
    >>> worker.ask(lambda: 1 + 1).wait(5.0)
    2
    >>> worker.close()
    """

    def __init__(self, name: str) -> None:
        self._questions: queue.SimpleQueue[PendingAnswer | None] = queue.SimpleQueue()
        threading.Thread(target=self._work, name=f"model {name}", daemon=True).start()

    def ask(self, question: Callable[[], Any]) -> PendingAnswer:
        """Submit a question and return its pending answer."""
        asked = PendingAnswer(question)
        self._questions.put(asked)
        return asked

    def close(self) -> None:
        """End the thread after its current question."""
        self._questions.put(None)

    def _work(self) -> None:
        while (asked := self._questions.get()) is not None:
            asked.answer()


class DaemonPool(Executor):
    """A thread pool that does not delay the end of the program.

    Python's own pool waits for running tasks at exit, so that a map of many samples or a model that
    hangs would block Ctrl-C.

    >>> pool = DaemonPool(2)
    >>> pool.submit(pow, 2, 5).result(5)
    32
    >>> pool.shutdown()
    """

    def __init__(self, threads: int) -> None:
        self._tasks: queue.SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None]
        self._tasks = queue.SimpleQueue()
        self._threads = threads
        for number in range(threads):
            threading.Thread(target=self._work, name=f"answers {number}", daemon=True).start()

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
            except BaseException as error:
                future.set_exception(error)
