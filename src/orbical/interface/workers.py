"""Threads in which models are asked, one question at a time each."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from typing import Any

from ..errors import ModelError


class Asked:
    """A question on its way; it is left out if nobody waits for it any more."""

    def __init__(self, question: Callable[[], Any]) -> None:
        self._question = question
        self._done = threading.Event()
        self._abandoned = False
        self._value: Any = None
        self._error: BaseException | None = None

    def answer(self) -> None:
        """Answer it, in the thread of the model."""
        if not self._abandoned:
            try:
                self._value = self._question()
            except BaseException as error:  # a model may even call sys.exit: the thread lives on
                self._error = error
        self._done.set()

    def wait(self, patience_s: float) -> Any:
        """Wait for the answer, or raise what the model raised."""
        if not self._done.wait(patience_s):
            self._abandoned = True
            raise ModelError(f"no answer within {patience_s:g} s")
        if self._error is not None:
            raise ModelError(str(self._error) or type(self._error).__name__) from self._error
        return self._value


class Worker:
    """A thread that asks one model, one question at a time.

    >>> worker = Worker("adder")
    >>> worker.ask(lambda: 1 + 1).wait(5.0)
    2
    >>> worker.close()
    """

    def __init__(self, name: str) -> None:
        self._questions: queue.SimpleQueue[Asked | None] = queue.SimpleQueue()
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
