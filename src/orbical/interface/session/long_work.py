"""Long work: it says how far it is, shows what it has so far, and can be stopped."""

from __future__ import annotations

import ctypes
import os
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

from ...errors import OrbicalError
from ...store import Json

TICK_S = 0.3
"""The time between two reports to the page."""
_NICE = 10
_MOST_GUESSED = 0.95


class Stopped(OrbicalError):
    """Long work was stopped by the reader."""


class Progress:
    """How far a computation is, told by its thread and read by another.

    >>> progress = Progress()
    >>> progress.tell(0.5, "half")
    >>> about, arrays = progress.news()
    >>> about["progress"], about["note"], arrays
    (0.5, 'half', {})
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._share, self._note = 0.0, ""
        self._since = time.monotonic()
        self._expected: tuple[float, float] | None = None
        self._partial: tuple[Json, Json] | None = None
        self._stopped = False
        self._thread: int | None = None

    def tell(self, share: float, note: str = "", partial: tuple[Json, Any] | None = None) -> None:
        """Note how much is done, 0 to 1, and what can be shown already; raise if stopped."""
        with self._lock:
            self._share, self._note = share, note or self._note
            self._partial = self._partial if partial is None else partial
        self.check()

    def expect(self, seconds: float) -> None:
        """Note how long work that cannot be watched will take from now."""
        self._expected = time.monotonic(), seconds

    def check(self) -> None:
        """Raise if the work was stopped."""
        if self._stopped:
            raise Stopped("stopped")

    def stop(self) -> None:
        """Stop the work: at its next report, or at once where it is interruptible."""
        self._stopped = True
        with self._lock:
            if self._thread is not None:
                thread = ctypes.c_ulong(self._thread)
                ctypes.pythonapi.PyThreadState_SetAsyncExc(thread, ctypes.py_object(Stopped))

    @contextmanager
    def interruptible(self) -> Iterator[None]:
        """Let `stop` raise within code of others, which reports nothing."""
        self.check()
        with self._lock:
            self._thread = threading.get_ident()
        try:
            yield
        finally:
            with self._lock:
                self._thread = None

    def news(self) -> tuple[Json, Json]:
        """Return the share, the time left if it is known, and what can be shown, once."""
        with self._lock:
            share, partial, self._partial = self._share, self._partial, None
            took = time.monotonic() - self._since
            left = took * (1 - share) / share if share > 0 else None
            if self._expected is not None:
                since, seconds = self._expected
                passed = time.monotonic() - since
                share = max(share, min(_MOST_GUESSED, passed / max(seconds, 1e-3)))
                left = max(0.0, seconds - passed)
        about, arrays = partial or ({}, {})
        return {**about, "progress": share, "seconds_left": left, "note": self._note}, arrays


def progress_of(message: Mapping[str, Any]) -> Progress:
    """Return the progress of a request; one that nobody reads, if it has none."""
    found = message.get("progress")
    return found if isinstance(found, Progress) else Progress()


def yield_to_readers() -> None:
    """Lower the priority of this thread, where the system has one for threads.

    Threads that it starts inherit it, so that a drag on the page goes first.
    """
    if hasattr(os, "setpriority"):
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICE)
