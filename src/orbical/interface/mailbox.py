"""Newest wins: one slot for each kind of request of a client, one answer of a kind at a time."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

Answerer = Callable[[Any], AsyncIterator[bytes]]
Sender = Callable[[bytes], Awaitable[None]]


class Mailbox:
    """Requests of one client. A newer request takes the place of an older one that still waits.

    Different kinds are answered side by side. A client that reads slowly holds up its own answers
    only, and its slots never hold more than one request each.
    """

    def __init__(self, answer: Answerer, send: Sender) -> None:
        self._answer, self._send = answer, send
        self._slots: dict[str, Any] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._sending = asyncio.Lock()

    def put(self, kind: str, message: Any) -> None:
        """Leave a request."""
        self._slots[kind] = message
        task = self._tasks.get(kind)
        if task is None or task.done():
            self._tasks[kind] = asyncio.create_task(self._empty(kind))

    async def close(self) -> None:
        """Forget all requests; what is being computed is finished, and not sent."""
        self._slots.clear()
        for task in self._tasks.values():
            task.cancel()
        with contextlib.suppress(Exception):
            await asyncio.gather(*self._tasks.values(), return_exceptions=True)

    async def _empty(self, kind: str) -> None:
        while kind in self._slots:
            async for frame in self._answer(self._slots.pop(kind)):
                async with self._sending:
                    await self._send(frame)
