"""Work behind a page: daemon threads, queues of requests, and long work that says how far it is."""

from __future__ import annotations

import asyncio
import atexit
import ctypes
import os
import queue
import sys
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from concurrent.futures import Executor, Future, wait
from contextlib import contextmanager, suppress
from typing import Any

from ..errors import ModelError, OrbicalError
from ..store import Json

GRACE_S = 2.0
"""How long the program waits for running tasks at its end."""

_RUNNING: set[Future[object]] = set()


class BackgroundPool(Executor):
    """A thread pool that does not delay the end of the program.

    Python's own pool waits for running tasks at exit, so that a map of many samples or a model that
    hangs would block Ctrl-C. Threads are started when they are needed.

    >>> pool = BackgroundPool(2, "adders")
    >>> pool.submit(pow, 2, 5).result(5)
    32
    >>> pool.shutdown()
    """

    def __init__(self, threads: int, name: str, begin: Callable[[], None] | None = None) -> None:
        self._tasks: queue.SimpleQueue[tuple[Future[object], Callable[[], object]] | None]
        self._tasks = queue.SimpleQueue()
        self._idle = threading.Semaphore(0)
        self._most, self._name, self._threads = threads, name, 0
        self._begin = begin or (lambda: None)
        self._closed = False
        self._since: float | None = None

    @property
    def busy_s(self) -> float:
        """How long ago the task begun last began; 0 if it has ended."""
        since = self._since
        return 0.0 if since is None else time.monotonic() - since

    def submit(
        self, function: Callable[..., object], /, *args: object, **options: object
    ) -> Future[Any]:
        """Submit a task and return its future."""
        future: Future[object] = Future()
        if self._closed:
            future.cancel()
            return future
        self._tasks.put((future, lambda: function(*args, **options)))
        if not self._idle.acquire(blocking=False) and self._threads < self._most:
            self._threads += 1
            name = f"{self._name} {self._threads}"
            threading.Thread(target=self._work, name=name, daemon=True).start()
        return future

    def shutdown(self, wait: bool = False, *, cancel_futures: bool = False) -> None:
        """Drop tasks that have not begun, and end the threads after the others."""
        self._closed = True
        for _ in range(self._threads):
            self._tasks.put(None)

    def _work(self) -> None:
        self._begin()
        while (task := self._tasks.get()) is not None:
            future, function = task
            if self._closed:
                future.cancel()
            if not future.set_running_or_notify_cancel():
                continue
            _RUNNING.add(future)
            self._since = time.monotonic()
            try:
                result = function()
            except BaseException as error:  # a model may even call sys.exit: the thread lives on
                future.set_exception(error)
            else:
                future.set_result(result)
            self._since = None
            _RUNNING.discard(future)
            self._idle.release()


def model_result_within(future: Future[object], patience_s: float) -> Any:
    """Wait for a model's result; raise a `ModelError` if it raised or did not answer in time.

    A task that has not begun by then is dropped.
    """
    if not wait([future], patience_s).done:
        future.cancel()
        raise ModelError(f"no answer within {patience_s:.2g} s")
    error = future.exception()
    if error is not None:
        raise ModelError(str(error) or type(error).__name__) from error
    return future.result()


def _wait_for_tasks() -> bool:
    """Wait for running tasks, not for long; return whether all have ended.

    Python ends daemon threads wherever they are, and within torch that aborts the program.
    """
    return not wait({*_RUNNING}, GRACE_S).not_done


def exit_despite_background(status: int = 0) -> None:
    """End a command although tasks run that do not end, before Python aborts in one of them."""
    try:
        ended = _wait_for_tasks()
    except KeyboardInterrupt:  # again: without waiting, then
        ended = False
    if not ended:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


atexit.register(_wait_for_tasks)


STOP = "stop"
"""The kind of a message that ends the answer to an earlier one: `{"kind": "stop", "of": KIND}`."""
Answerer = Callable[[Json, Callable[[], bool]], AsyncIterator[bytes]]
"""Answers a request, given whether nobody waits for it any more."""
WORKERS = 2
Sender = Callable[[bytes], Awaitable[None]]


class AsyncRequestQueue:
    """The requests of one client, answered in an event loop.

    A newer request replaces one of the same kind that still waits. Different kinds are answered
    concurrently. A client that reads slowly delays only its own answers, and at most one request of
    each kind waits.
    """

    def __init__(self, answer: Answerer, send: Sender) -> None:
        self._answer, self._send = answer, send
        self._slots: dict[str, Json] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._newest: dict[str, object] = {}
        self._sending = asyncio.Lock()

    def put(self, kind: str, message: Json) -> None:
        """Add a request, or stop one; long work for an older request of its kind ends."""
        if kind == STOP:
            self._newest.pop(str(message.get("of")), None)
            return
        self._slots[kind] = self._newest[kind] = message
        task = self._tasks.get(kind)
        if task is None or task.done():
            self._tasks[kind] = asyncio.create_task(self._empty(kind))

    async def close(self) -> None:
        """Drop all requests; running computations finish, and their answers are not sent."""
        self._slots.clear()
        self._newest.clear()
        for task in self._tasks.values():
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)

    async def _empty(self, kind: str) -> None:
        while kind in self._slots:
            message = self._slots.pop(kind)
            async for frame in self._answer(message, self._outdated(kind, message)):
                async with self._sending:
                    await self._send(frame)

    def _outdated(self, kind: str, message: Json) -> Callable[[], bool]:
        return lambda: self._newest.get(kind) is not message


async def frames_from(pool: BackgroundPool, frames: Iterator[bytes]) -> AsyncIterator[bytes]:
    """Yield frames that are made one after the other in a thread of a pool."""
    loop = asyncio.get_running_loop()
    while (frame := await loop.run_in_executor(pool, next, frames, None)) is not None:
        yield frame


class ThreadedRequestQueue:
    """The requests of one client where no event loop runs: its own has a thread.

    At most two kinds are answered at the same time.
    """

    def __init__(
        self,
        answer: Callable[[Json, Callable[[], bool]], Iterator[bytes]],
        send: Callable[[bytes], None],
    ) -> None:
        async def deliver(frame: bytes) -> None:
            send(frame)

        self._loop = asyncio.new_event_loop()
        self._pool = BackgroundPool(WORKERS, "orbical widget")
        self._queue = AsyncRequestQueue(
            lambda message, outdated: frames_from(self._pool, answer(message, outdated)), deliver
        )
        run = self._loop.run_forever
        threading.Thread(target=run, name="orbical widget requests", daemon=True).start()

    def put(self, kind: str, message: Json) -> None:
        """Add a request, or stop one."""
        self._loop.call_soon_threadsafe(self._queue.put, kind, message)

    def close(self) -> None:
        """Accept no more requests."""
        self._loop.call_soon_threadsafe(self._end)
        self._pool.shutdown()

    def _end(self) -> None:
        self._loop.create_task(self._queue.close()).add_done_callback(lambda _: self._loop.stop())


TICK_S = 0.3
"""The time between two reports to the page."""
_NICE = 10
_MOST_GUESSED = 0.95


class Stopped(OrbicalError):
    """Long work was stopped by the reader."""


class BackgroundProgress:
    """How far a computation is, told by its thread and read by another.

    >>> progress = BackgroundProgress()
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


def progress_of(message: Mapping[str, object]) -> BackgroundProgress:
    """Return the progress of a request; one that nobody reads, if it has none."""
    found = message.get("progress")
    return found if isinstance(found, BackgroundProgress) else BackgroundProgress()


def yield_to_readers() -> None:
    """Lower the priority of this thread, where the system has one for threads.

    Threads that it starts inherit it, so that a drag on the page goes first.
    """
    if hasattr(os, "setpriority"):
        with suppress(OSError):
            own = os.getpriority(os.PRIO_PROCESS, os.getpid())  # a view may run under `nice`
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), own + _NICE)
