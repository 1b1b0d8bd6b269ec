"""A limit on the time of a call, for models that hang."""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Any, TypeVar

import torch

T = TypeVar("T")


class Deadline:
    """Calls functions in a thread of its own, and stops waiting for one that takes too long.

    Nothing ends a thread that hangs, in C perhaps: it is left behind, and ends with the process.

    Args:
        seconds: the longest time of a call.

    Example:
        >>> Deadline(60.0)(lambda: 6 * 7)
        42
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._asked: SimpleQueue[Callable[[], None]] | None = None

    def __call__(self, work: Callable[[], T]) -> T:
        """Return what the function returns, or raise what it raises; late ones raise `Late`."""
        result: Future[T] = Future()
        # Modes of torch belong to a thread.
        modes = torch.is_inference_mode_enabled(), torch.is_grad_enabled()
        context = contextvars.copy_context()
        self._queue().put(lambda: context.run(lambda: _settle(result, work, *modes)))
        try:
            return result.result(self.seconds)
        except TimeoutError:
            if result.done():  # the function's own
                raise
            self._asked = None
            raise Late from None

    def _queue(self) -> SimpleQueue[Callable[[], None]]:
        if self._asked is None:
            self._asked = SimpleQueue()
            threading.Thread(target=_serve, args=(self._asked,), daemon=True).start()
        return self._asked

    def __getstate__(self) -> dict[str, Any]:
        return {"seconds": self.seconds, "_asked": None}


class Late(Exception):
    """A call took too long."""


def _serve(asked: SimpleQueue[Callable[[], None]]) -> None:
    while True:
        asked.get()()


def _settle(result: Future[T], work: Callable[[], T], inference: bool, grad: bool) -> None:
    try:
        with torch.inference_mode(inference), torch.set_grad_enabled(grad):
            result.set_result(work())
    except BaseException as error:
        result.set_exception(error)
