"""Request queues that keep only the newest request of each kind."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

STOP = "stop"
"""The kind of a message that ends the answer to an earlier one: `{"kind": "stop", "of": KIND}`."""
Answerer = Callable[[Any, Callable[[], bool]], AsyncIterator[bytes]]
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
        self._slots: dict[str, Any] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._newest: dict[str, object] = {}
        self._sending = asyncio.Lock()

    def put(self, kind: str, message: Any) -> None:
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

    def _outdated(self, kind: str, message: Any) -> Callable[[], bool]:
        return lambda: self._newest.get(kind) is not message


class ThreadedRequestQueue:
    """The requests of one client, answered in threads.

    A newer request replaces one of the same kind that still waits. At most two kinds are answered
    at the same time.
    """

    def __init__(
        self,
        answer: Callable[[Any, Callable[[], bool]], Iterable[bytes]],
        send: Callable[[bytes], None],
    ) -> None:
        self._answer, self._send = answer, send
        self._slots: dict[str, Any] = {}
        self._busy: set[str] = set()
        self._newest: dict[str, object] = {}
        self._lock = threading.Lock()
        self._pool = ThreadPoolExecutor(WORKERS, thread_name_prefix="orbical widget")

    def put(self, kind: str, message: Any) -> None:
        """Add a request, or stop one; long work for an older request of its kind ends."""
        with self._lock:
            if kind == STOP:
                self._newest.pop(str(message.get("of")), None)
                return
            self._slots[kind] = self._newest[kind] = message
            if kind in self._busy:
                return
            self._busy.add(kind)
        self._pool.submit(self._empty, kind)

    def close(self) -> None:
        """Accept no more requests."""
        self._newest.clear()
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _empty(self, kind: str) -> None:
        while True:
            with self._lock:
                if kind not in self._slots:
                    self._busy.discard(kind)
                    return
                message = self._slots.pop(kind)
            for frame in self._answer(message, self._outdated(kind, message)):
                self._send(frame)

    def _outdated(self, kind: str, message: Any) -> Callable[[], bool]:
        return lambda: self._newest.get(kind) is not message
