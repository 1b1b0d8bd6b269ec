"""How far a first look is: read by the page, written by the thread that scans."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from ...errors import Interrupted, OrbicalError

REST_S = 0.4
"""How long the scan waits after the last request of the reader, who has precedence."""
LEAST_BETWEEN_S = 2.0
"""The least time between two updates of the page."""


class Status:
    """The number of the current run, and what the page is told about it.

    A newer run ends an older one, which finds out at its next `check`.

    >>> status = Status()
    >>> first, second = status.begin("scanning"), status.begin("scanning")
    >>> status.tell(first, share=0.5)
    >>> status.read()["share"]
    0.0
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._run = 0
        self._told: dict[str, Any] = {
            "phase": "scanning",
            "version": 0,
            "look": 0,
            "share": 0.0,
            "seconds_left": None,
            "sentence": "",
            "error": "",
        }

    def begin(self, phase: str, **news: Any) -> int:
        """Begin a run, or end the current one without another; return its number."""
        with self._lock:
            self._run += 1
            self._told |= {"phase": phase, "error": "", "seconds_left": None, **news}
            return self._run

    def tell(self, number: int, **news: Any) -> None:
        """Note news of a run, unless it was ended."""
        with self._lock:
            if number == self._run:
                self._told |= news

    def shown(self, number: int, sentence: str, anew: bool) -> None:
        """Note that the page can show more; anew, if its plots must be made again."""
        with self._lock:
            if number == self._run:
                self._told["version"] += 1
                self._told["look"] += anew
                self._told["sentence"] = sentence

    def check(self, number: int) -> None:
        """Raise if a run was ended."""
        if number != self._run:
            raise Interrupted("stopped")

    def read(self) -> dict[str, Any]:
        """Return what the page is told."""
        with self._lock:
            return dict(self._told)

    @contextmanager
    def reported(self, number: int) -> Iterator[None]:
        """Report errors of a run to the page; one that was ended is left in silence."""
        try:
            yield
        except Interrupted:
            pass
        except Exception as error:  # shown in the page, which goes on
            text = str(error) if isinstance(error, OrbicalError) else repr(error)
            self.tell(number, phase="failed", error=text, seconds_left=None)


class Refinement:
    """The fine scan as it goes on: its share, the time left, and updates of the page.

    Args:
        status: what the page is told.
        number: the number of the run.
        unit: the evaluations of a unit.
        idle_s: returns how long ago the reader moved.
        update: shows the finished units; True the first time.
    """

    def __init__(
        self,
        status: Status,
        number: int,
        unit: int,
        idle_s: Callable[[], float],
        update: Callable[[bool], None],
    ) -> None:
        self._status, self._number, self._unit = status, number, unit
        self._idle_s, self._update = idle_s, update
        self._begun: tuple[float, int] | None = None
        self._rested = 0.0
        self._units, self._updated_at, self._updates = 0, time.monotonic(), 0

    def advance(self, done: int, total: int) -> None:
        """Let the reader go first; note progress; update the page when units are finished."""
        self._wait_for_reader()
        now = time.monotonic()
        self._begun = self._begun or (now, done)
        since, before = self._begun
        took = now - since - self._rested
        left = None if done <= before else (total - done) * took / (done - before)
        self._status.tell(self._number, share=done / total, seconds_left=left)
        units = (done - 1) // self._unit  # a unit is written after its last evaluation
        if units > self._units and now - self._updated_at > LEAST_BETWEEN_S:
            self._units, self._updated_at = units, now
            self.show()

    def show(self) -> None:
        """Update the page."""
        self._update(self._updates == 0)
        self._updates += 1

    def _wait_for_reader(self) -> None:
        start = time.monotonic()
        self._status.check(self._number)
        while self._idle_s() < REST_S:
            self._status.check(self._number)
            time.sleep(0.02)
        if self._begun is not None:
            self._rested += time.monotonic() - start
