"""How tests talk with a session, and with a server over real sockets."""

from __future__ import annotations

import asyncio
import http.client
import json
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

from websockets.asyncio.client import ClientConnection, connect

from orbical.interface.session import Session
from orbical.interface.wire import decode


def finished(talk: Coroutine[Any, Any, Any]) -> Any:
    """Run a talk to its end, in a thread: a browser open in this process has a loop of its own."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, talk).result()


def get(
    running: SimpleNamespace, path: str, method: str = "GET", **headers: str
) -> tuple[int, dict[str, str], bytes]:
    """Ask with exactly these headers, and a path that nobody tidies up."""
    connection = http.client.HTTPConnection("127.0.0.1", running.port, timeout=10)
    connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
    headers.setdefault("Host", f"127.0.0.1:{running.port}")
    for name, value in headers.items():
        connection.putheader(name.replace("_", "-"), value)
    connection.endheaders()
    answer = connection.getresponse()
    found = answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read()
    connection.close()
    return found


def dial(running: SimpleNamespace, path: str = "/ws", **options: Any) -> Any:
    headers = {"Cookie": options.pop("cookie", running.cookie), **options.pop("headers", {})}
    return connect(
        f"ws://127.0.0.1:{running.port}{path}",
        origin=options.pop("origin", running.base),
        additional_headers={name: value for name, value in headers.items() if value},
        max_size=None,
        **options,
    )


async def say(client: ClientConnection, kind: str, sequence: int = 1, **selection: Any) -> None:
    await client.send(json.dumps({"kind": kind, "sequence": sequence, "selection": selection}))


async def hear(client: ClientConnection) -> Any:
    return decode(await asyncio.wait_for(client.recv(), 20))  # type: ignore[arg-type]


def ask(session: Session, kind: str, extra: dict[str, Any] | None = None, **selection: Any) -> Any:
    """Ask a session a question, and expect the answer to be to that question."""
    header, arrays = session.handle(
        {"kind": kind, "sequence": 3, "selection": selection, **(extra or {})}
    )
    assert (header["kind"], header["sequence"]) == (kind, 3)
    return header, arrays
