"""The server, asked over real sockets: what it serves and answers, and what it withstands."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import re
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from talking import dial, finished, get, hear, say
from websockets.exceptions import ConnectionClosed

from orbical.errors import InputError
from orbical.interface import open_session
from orbical.interface.server import MOST_MESSAGE_BYTES, Server, serve
from orbical.interface.session import Session

Serving = Callable[..., SimpleNamespace]


def test_every_file_has_its_type_and_the_strict_headers(running: SimpleNamespace) -> None:
    types = {
        "app.js": "text/javascript",
        "app.css": "text/css",
        "icon.svg": "image/svg+xml",
    }
    for path, kind in types.items():
        status, headers, _ = get(running, f"/{path}", Cookie=running.cookie)
        assert status == 200
        assert headers["content-type"].startswith(kind)
        assert "default-src 'none'" in headers["content-security-policy"]
        assert "unsafe" not in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["cross-origin-resource-policy"] == "same-origin"
        assert "immutable" in headers["cache-control"]
    _, headers, _ = get(running, "/", Cookie=running.cookie)
    assert headers["cache-control"] == "no-store"


def test_a_process_that_only_serves_does_not_search_its_imports_for_garbage(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[int] = []
    monkeypatch.setattr(Server, "run", lambda server: seen.append(gc.get_freeze_count()))
    server = Server(session, port=0)
    try:
        serve(server, open_browser=False)
    finally:
        gc.unfreeze()
        server.close()
    assert seen[0] > 10_000


def test_the_page_uses_relative_addresses_only(running: SimpleNamespace) -> None:
    _, _, body = get(running, "/", Cookie=running.cookie)
    addresses = re.findall(r'(?:src|href)="([^"?]+)', body.decode())
    assert sorted(addresses) == ["app.css", "app.js", "icon.svg"]  # few, so that it loads fast


def test_requests_are_answered_with_their_number(running: SimpleNamespace) -> None:
    async def talk() -> None:
        async with dial(running) as client:
            for sequence, kind in enumerate(("state", "aggregate", "embedding", "subset", "list")):
                await say(client, kind, sequence)
                header, arrays = await hear(client)
                assert (header["kind"], header["sequence"]) == (kind, sequence)
                assert arrays

    finished(talk())


def test_a_bad_request_is_told_and_the_socket_stays(running: SimpleNamespace) -> None:
    async def talk() -> None:
        async with dial(running) as client:
            await say(client, "sample", 4, sample=10_000)
            header, _ = await hear(client)
            assert header["sequence"] == 4
            assert "sample" in header["error"]
            await say(client, "sample", 5, sample=3)
            assert (await hear(client))[0]["sequence"] == 5

    finished(talk())


@pytest.mark.parametrize(
    "message",
    [
        b"\x00\x01\x02",
        "",
        "not json",
        "[]",
        "3",
        '{"kind": "nothing"}',
        '{"kind": ["state"]}',
        '{"kind": "__class__"}',
        "[" * 100_000,
        json.dumps({"kind": "state", "sequence": 1, "more": "x" * MOST_MESSAGE_BYTES}),
    ],
    ids=["bytes", "empty", "text", "list", "number", "kind", "kinds", "dunder", "deep", "huge"],
)
def test_malformed_and_oversized_messages_end_the_socket_alone(
    running: SimpleNamespace, message: Any
) -> None:
    async def talk() -> None:
        async with dial(running) as bad, dial(running) as good:
            await bad.send(message)
            with pytest.raises(ConnectionClosed) as closed:
                await asyncio.wait_for(bad.recv(), 10)
            assert closed.value.rcvd is not None
            assert closed.value.rcvd.code == (1009 if len(message) > MOST_MESSAGE_BYTES else 1007)
            await say(good, "state")
            assert (await hear(good))[0]["kind"] == "state"

    finished(talk())


def test_text_that_is_no_text_ends_the_socket_without_a_traceback(
    running: SimpleNamespace, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    async def talk() -> None:
        async with dial(running) as client:
            await client.send(b'{"kind": "\xff"}', text=True)
            with pytest.raises(ConnectionClosed) as closed:
                await client.recv()
            assert closed.value.rcvd is not None
            assert closed.value.rcvd.code == 1007
        async with dial(running) as client:
            await say(client, "place", 1)
            await client.recv()

    finished(talk())
    assert "Traceback" not in capfd.readouterr().err
    assert not [one for one in caplog.records if one.exc_info]


def test_of_ten_thousand_rapid_requests_the_newest_is_answered(running: SimpleNamespace) -> None:
    async def talk() -> int:
        async with dial(running) as client:
            await say(client, "sample", 0)
            await hear(client)
            for sequence in range(1, 10_001):
                await say(client, "sample", sequence, sample=sequence % 120)
            answers, newest = 0, 0
            while newest < 10_000:
                header, _ = await hear(client)
                assert header["sequence"] > newest  # never an older one after a newer one
                newest = header["sequence"]
                answers += 1
            return answers

    answers = finished(talk())
    assert answers < 10_000


def test_a_drag_with_a_slow_model_never_queues(
    serving: Serving, folder: Path, nets: dict[str, torch.nn.Module]
) -> None:
    calls, free = [], threading.Event()

    def slow(x: torch.Tensor) -> torch.Tensor:
        calls.append(len(x))
        free.wait(60)
        return nets["first"](x)

    free.set()
    session = open_session(folder / "digits.zarr", {"first": slow})
    session.scan_view().live.patience_s = 60
    running = serving(session)

    async def drag() -> None:
        async with dial(running) as client:
            await say(client, "place", 0)
            await hear(client)
            calls.clear()
            free.clear()
            for sequence in range(1, 61):
                await say(client, "place", sequence, position=[sequence * 1.3])
            await say(client, "state", 61)
            await hear(client)  # so all that was asked before has arrived
            free.set()
            while (await hear(client))[0]["sequence"] < 60:
                pass

    finished(drag())
    assert len(calls) <= 2  # the first, or the first and the last


def test_kinds_do_not_wait_for_each_other(
    serving: Serving, folder: Path, nets: dict[str, torch.nn.Module]
) -> None:
    free = threading.Event()

    def model(x: torch.Tensor) -> torch.Tensor:
        free.wait(60)
        return nets["first"](x)

    free.set()
    session = open_session(folder / "digits.zarr", {"first": model})
    session.scan_view().live.patience_s = 60
    running = serving(session)
    free.clear()

    async def talk() -> list[str]:
        async with dial(running) as client:
            await say(client, "place", 1)
            await say(client, "sample", 2)
            first = await hear(client)
            free.set()
            return [header["kind"] for header, _ in (first, await hear(client))]

    assert finished(talk()) == ["sample", "place"]


@pytest.mark.skipif(not hasattr(os, "setpriority"), reason="threads have no priorities here")
def test_what_can_wait_is_computed_with_less_priority_than_a_click(
    serving: Serving, session: Session, monkeypatch: pytest.MonkeyPatch, setpriority: Any
) -> None:
    monkeypatch.setattr(os, "setpriority", setpriority)
    heard: dict[str, int] = {}
    answer = session.answer

    def noted(message: Any, progress: Any = None) -> bytes:
        heard[message["kind"]] = os.getpriority(os.PRIO_PROCESS, threading.get_native_id())
        return answer(message, progress)

    monkeypatch.setattr(session, "answer", noted)
    running = serving(session)

    async def talk() -> None:
        async with dial(running) as client:
            for sequence, kind in enumerate(("columns", "consistency", "sample", "aggregate")):
                await say(client, kind, sequence)
                await hear(client)

    finished(talk())
    assert min(heard["columns"], heard["consistency"]) > max(heard["sample"], heard["aggregate"])


def test_two_clients_ask_at_once_and_get_their_own(running: SimpleNamespace) -> None:
    async def one(number: int) -> None:
        async with dial(running) as client:
            for sequence in range(20):
                await say(client, "sample", sequence, sample=number)
                header, _ = await hear(client)
                assert header["sample"] == number

    async def both() -> None:
        await asyncio.gather(one(5), one(99))

    finished(both())


def test_a_client_that_vanishes_in_the_middle_leaves_nothing_behind(
    running: SimpleNamespace,
) -> None:
    async def vanish() -> None:
        for _ in range(5):
            client = await dial(running)
            for sequence in range(50):
                await say(client, "embedding", sequence, method="isomap")
                await say(client, "place", sequence, sample=sequence)
            client.transport.abort()
        async with dial(running) as client:
            await say(client, "state", 7)
            assert (await hear(client))[0]["sequence"] == 7

    finished(vanish())
    deadline = time.monotonic() + 60
    while running.server.clients and time.monotonic() < deadline:
        time.sleep(0.02)
    assert running.server.clients == 0


def test_a_client_that_does_not_read_holds_up_nobody_else(running: SimpleNamespace) -> None:
    async def talk() -> None:
        async with dial(running, max_queue=1) as deaf, dial(running) as client:
            for sequence in range(3000):
                await say(deaf, "embedding", sequence)
            await say(client, "sample", 1)
            await hear(client)
            deaf.transport.abort()

    finished(talk())


@pytest.mark.parametrize(
    "begun", ["", "GET / HTTP/1.1\r\nHost: 127.0", "GET / HTTP/1.1\r\n\r\nGET"]
)
def test_a_request_that_does_not_end_is_given_up(
    running: SimpleNamespace, monkeypatch: pytest.MonkeyPatch, begun: str
) -> None:
    monkeypatch.setattr("orbical.interface.server.TIMEOUT_S", 0.3)
    wait_until_given_up(running, begun)


def wait_until_given_up(running: SimpleNamespace, begun: str) -> None:
    """Begin a request, and wait until the server closes the connection."""
    with socket.create_connection(("127.0.0.1", running.port), timeout=60) as half:
        half.sendall(begun.encode())
        while half.recv(1 << 16):
            pass


def test_a_socket_outlives_the_patience_for_requests(
    running: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("orbical.interface.server.TIMEOUT_S", 0.2)

    async def talk() -> None:
        async with dial(running) as client:
            await asyncio.to_thread(wait_until_given_up, running, "GET")
            await say(client, "state")
            assert (await hear(client))[0]["kind"] == "state"

    finished(talk())


def test_a_model_that_raises_is_shown_and_the_server_lives_on(
    serving: Serving, folder: Path
) -> None:
    def broken(x: torch.Tensor) -> torch.Tensor:
        raise RuntimeError("no more")

    running = serving(open_session(folder / "digits.zarr", {"first": broken}))

    async def talk() -> None:
        async with dial(running) as client:
            for sequence in range(3):
                await say(client, "place", sequence)
                header, arrays = await hear(client)
                assert "no more" in header["errors"]["first"]
                assert "detail/probabilities" in arrays

    finished(talk())


def test_a_slow_map_announces_itself_first(serving: Serving, folder: Path) -> None:
    running = serving(open_session(folder / "digits.zarr"))

    async def talk() -> None:
        async with dial(running) as client:
            await say(client, "embedding", 3, method="tsne")
            first, _ = await hear(client)
            assert (first["sequence"], first["progress"]) == (3, 0)
            answer, arrays = await hear(client)
            while "progress" in answer:  # it says how far it is
                answer, arrays = await hear(client)
            assert arrays["xy"].shape == (120, 2)

    finished(talk())


def test_ports(session: Session) -> None:
    first = Server(session)
    second = Server(session)
    assert first.port != second.port
    with pytest.raises(InputError, match=rf"port: expected .* got {first.port}"):
        Server(session, port=first.port)
    with pytest.raises(InputError, match=r"port: expected .* got 70000"):
        Server(session, port=70_000)
    assert first.guard.token != second.guard.token
    assert len(first.guard.token) >= 32
    folder, token = first.guard.folder, first.guard.token
    assert first.url == f"http://127.0.0.1:{first.port}/{folder}/?token={token}"
    first.close()
    second.close()
