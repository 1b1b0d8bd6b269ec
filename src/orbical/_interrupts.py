"""Ctrl-C: the first one stops the work, more of them do not lose the message how to continue."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from .errors import Interrupted


@contextmanager
def stoppable(kept: bool) -> Iterator[None]:
    """Raise the first Ctrl-C as `Interrupted`, with a message, and ignore others until then.

    Somebody else's handler of Ctrl-C stays in place, as does that of an outer `stoppable`.
    """
    ours = threading.current_thread() is threading.main_thread()
    if ours and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _raise_once())
    else:
        ours = False
    try:
        yield
    except Interrupted:
        raise
    except KeyboardInterrupt:
        raise Interrupted(f"stopped; {how_to_go_on(kept)}") from None
    finally:
        if ours:
            signal.signal(signal.SIGINT, signal.default_int_handler)


def how_to_go_on(kept: bool) -> str:
    """Return what to do after an interruption."""
    return "run the same scan again to continue" if kept else "the result was in memory and is lost"


def _raise_once() -> Any:
    seen: list[int] = []

    def handle(number: int, frame: Any) -> None:
        seen.append(number)
        if len(seen) == 1:
            raise KeyboardInterrupt

    return handle
