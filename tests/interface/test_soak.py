"""A soak of the server: clients that ask, hang up and misbehave, while models raise and hang."""

from __future__ import annotations

import asyncio
import logging
import random
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from talking import decode, dial, finished, hear, message, say
from websockets.exceptions import ConnectionClosed

from orbical.interface import open_session
from orbical.interface.server import LIVE_THREADS, PATIENT_KINDS, THREADS
from orbical.interface.session import KINDS
from orbical.interface.session.session import MOST_LONG

pytestmark = pytest.mark.system

OF_LIBRARIES = ("asyncio_", "ThreadPoolExecutor-", "zarr_io")
"""Names of the threads of zarr and dask, which begin with their first work and are few."""

Serving = Callable[..., SimpleNamespace]


@pytest.fixture
def awake() -> Any:
    """Models wait for this event; it is set in the end, whatever happens."""
    event = threading.Event()
    event.set()
    yield event
    event.set()


@pytest.fixture
def models(awake: threading.Event) -> dict[str, Any]:
    """A model that hangs while `awake` is cleared, and one that sometimes raises."""

    def sleepy(x: torch.Tensor) -> torch.Tensor:
        awake.wait(60)
        return torch.zeros(len(x), 10)

    def moody(x: torch.Tensor) -> torch.Tensor:
        if float(x.sum()) % 1 > 0.7:
            raise ValueError("not today")
        return torch.zeros(len(x), 10)

    return {"first": sleepy, "second": moody}


async def visit(running: SimpleNamespace, seed: int) -> int:
    """One client: it asks, reads some answers or none, and leaves politely or not."""
    rng = random.Random(seed)
    answered = 0
    async with dial(running, close_timeout=0.2) as client:
        try:
            for sequence in range(rng.randrange(1, 12)):
                await client.send(message(rng, sequence))
                if rng.random() < 0.5:
                    header, _ = decode(await asyncio.wait_for(client.recv(), 60))  # type: ignore[arg-type]
                    assert header["kind"] in KINDS
                    answered += 1
            if rng.random() < 0.1:
                await client.send("{")  # ends this socket alone
            if rng.random() < 0.4:
                client.transport.abort()  # a cable is pulled
        except ConnectionClosed:
            pass
    return answered


def soak(running: SimpleNamespace, clients: int, at_once: int = 8) -> int:
    """Let clients come and go, some at a time; return how many answers they read."""

    async def all_of_them() -> int:
        gate = asyncio.Semaphore(at_once)

        async def one(seed: int) -> int:
            async with gate:
                return await visit(running, seed)

        return sum(await asyncio.gather(*(one(seed) for seed in range(clients))))

    return int(finished(all_of_them()))


@pytest.mark.slow
def test_the_memory_of_a_server_does_not_grow_with_its_requests() -> None:
    from server_memory import main

    with ThreadPoolExecutor(1) as own:  # a browser's driver may hold a loop in this thread
        found = own.submit(main, 3200).result()
    assert max(found[4:]) < 1.05 * found[3], found


@pytest.mark.parametrize("clients", [60, pytest.param(5_000, marks=pytest.mark.slow)])
def test_clients_come_and_go_and_leave_nothing_behind(
    serving: Serving,
    folder: Path,
    models: dict[str, Any],
    clients: int,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    running = serving(open_session(folder / "digits.zarr", models))
    before = {*threading.enumerate()}
    with caplog.at_level(logging.WARNING):
        answered = soak(running, clients)
        end = time.monotonic() + 60
        while running.server.clients and time.monotonic() < end:
            time.sleep(0.02)
    assert running.server.clients == 0
    assert answered > clients
    said = [record.getMessage() for record in caplog.records if record.name != "websockets.client"]
    assert not [text for text in said if "exception" in text.lower() or "never" in text]
    assert "Traceback" not in capfd.readouterr().err
    pools = THREADS + LIVE_THREADS + len(PATIENT_KINDS) + MOST_LONG + len(models)
    begun = [one for one in threading.enumerate() if one not in before]
    assert len([one for one in begun if not one.name.startswith(OF_LIBRARIES)]) <= pools, begun
    with capfd.disabled():
        print(f"\nresult: {clients:,} clients: {answered:,} responses read, lost 0, tracebacks 0")


def test_a_model_that_hangs_keeps_no_page_waiting(
    serving: Serving,
    folder: Path,
    models: dict[str, Any],
    awake: threading.Event,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    session = open_session(folder / "digits.zarr", models)
    answer, begun = session.answer, threading.Semaphore(0)

    def counted(*given: Any) -> bytes:
        begun.release()
        return answer(*given)

    monkeypatch.setattr(session, "answer", counted)
    session.scan_view().live.patience_s = 60  # a model is given up later than the others wait
    running = serving(session)
    awake.clear()

    async def talk() -> None:
        waiting = [await dial(running).__aenter__() for _ in range(12)]  # more than threads answer
        for client in waiting:
            await say(client, "place", 1)
        for _ in waiting:
            assert await asyncio.to_thread(begun.acquire, timeout=60)
        async with dial(running) as other:
            for sequence, kind in enumerate(("state", "aggregate", "color", "list"), 2):
                await say(other, kind, sequence)
                assert (await hear(other))[0]["sequence"] == sequence
        awake.set()
        for client in waiting:
            assert (await hear(client))[0]["kind"] == "place"
            await client.close()

    finished(talk())


def test_a_client_that_is_gone_is_not_written_to_again_and_again(
    serving: Serving,
    folder: Path,
    models: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    session = open_session(folder / "digits.zarr", models)
    loops: list[asyncio.AbstractEventLoop] = []
    computed, noticed, answered = threading.Event(), threading.Event(), threading.Semaphore(0)

    def frames(*_: Any) -> Any:
        loops.append(asyncio.get_running_loop())

        def answer() -> Any:
            computed.wait(20)
            answered.release()
            yield b"frame"

        return answer()

    monkeypatch.setattr(session, "frames", frames)
    running = serving(session)
    kinds = [kind for kind in KINDS if kind != "export"]

    async def talk() -> None:
        async with dial(running, close_timeout=0.2) as client:
            for sequence, kind in enumerate(kinds):
                await say(client, kind, sequence)
            while len(loops) < len(kinds):
                await asyncio.sleep(0.01)
            loops[0].call_soon_threadsafe(noticed.wait, 20)  # all that follows arrives at once
            client.transport.abort()
            computed.set()
            for _ in kinds:
                assert await asyncio.to_thread(answered.acquire, timeout=60)
            noticed.set()

    finished(talk())
    while running.server.clients:
        time.sleep(0.02)
    assert "socket.send() raised exception." not in caplog.messages
