"""Being stopped: by Ctrl-C or a signal of a scheduler, with a message how to continue."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from .errors import Interrupted

# Docker, SLURM and `timeout` send SIGTERM, and a terminal that is closed SIGHUP.
_Handler = Callable[[int, FrameType | None], object] | signal.Handlers
_USUAL: dict[int, _Handler] = {
    signal.SIGINT: signal.default_int_handler,
    signal.SIGTERM: signal.SIG_DFL,
}
if hasattr(signal, "SIGHUP"):  # not on Windows
    _USUAL[signal.SIGHUP] = signal.SIG_DFL


@contextmanager
def stoppable(kept: bool) -> Iterator[None]:
    """Raise the first Ctrl-C, SIGTERM or SIGHUP as `Interrupted`, and ignore others until then.

    Somebody else's handler stays in place, as does that of an outer `stoppable`.
    """
    ours = []
    if threading.current_thread() is threading.main_thread():
        ours = [number for number in _USUAL if signal.getsignal(number) is _USUAL[number]]
    stopped = False

    def stop(number: int, frame: FrameType | None) -> None:
        nonlocal stopped
        if not stopped:
            stopped = True
            raise KeyboardInterrupt

    for number in ours:
        signal.signal(number, stop)
    try:
        yield
    except Interrupted:
        raise
    except KeyboardInterrupt:
        raise Interrupted(f"stopped; {how_to_go_on(kept)}") from None
    finally:
        for number in ours:
            signal.signal(number, _USUAL[number])


def how_to_go_on(kept: bool) -> str:
    """Return what to do after an interruption."""
    return "run the same scan again to continue" if kept else "the result was in memory and is lost"


_clean_ups: list[Callable[[], None]] = []


def end_with_parent(clean_up: Callable[[], None] = lambda: None) -> None:
    """End this worker process when the process that started it is gone, however it ended.

    A pool does not notice the death of its driver: its workers would wait for work for ever.
    """
    parent = multiprocessing.parent_process()
    if parent is None:  # not started by multiprocessing: a Dask worker has a nanny
        return
    _clean_ups.append(clean_up)
    if len(_clean_ups) > 1:  # watched already
        return

    def watch() -> None:
        parent.join()
        for last_work in _clean_ups:
            last_work()
        os._exit(1)

    threading.Thread(target=watch, name="orbical-parent", daemon=True).start()
