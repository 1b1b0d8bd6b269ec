"""Schedule passes over all samples, one at a time, visible parts of the page first."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from threadpoolctl import ThreadpoolController


class PassScheduler:
    """Turns at reading a scan.

    Concurrent passes would all finish late. A patient pass takes a turn for each block of samples
    and lets others go first. A pass waits for nothing else during its turn.

    Within a turn matrix products use one thread: blocks are small, and on a busy machine threads
    that wait for each other cost twenty times what they save.

    >>> passes = PassScheduler()
    >>> with passes.turn():
    ...     "reading"
    'reading'
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._busy = False
        self._urgent = 0
        self._libraries = ThreadpoolController()

    @contextmanager
    def turn(self, patient: bool = False) -> Iterator[None]:
        """Wait for a turn and hold it."""
        with self._changed:
            self._urgent += not patient
            self._changed.wait_for(lambda: not self._busy and not (patient and self._urgent))
            self._busy = True
        try:
            with self._libraries.limit(limits=1, user_api="blas"):
                yield
        finally:
            with self._changed:
                self._busy = False
                self._urgent -= not patient
                self._changed.notify_all()
