"""One pass over all samples at a time: what is seen first is answered first."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from threadpoolctl import ThreadpoolController


class PassScheduler:
    """Turns at reading a scan.

    Passes that run side by side would all end late. A patient one takes a turn for each block of
    samples, and lets those go first that are not. Whoever has a turn waits for nothing else.

    Within a turn matrix products use one thread: those of blocks are small, and on a busy machine
    threads that wait for each other cost twenty times what they bring.

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
        """Wait for a turn, and have it."""
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
