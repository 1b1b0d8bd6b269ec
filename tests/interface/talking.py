"""How tests talk with a session, and with a server over real sockets."""

from __future__ import annotations

import asyncio
import gzip
import http.client
import json
import math
import random
import struct
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import numpy as np
from websockets.asyncio.client import ClientConnection, connect

from orbical.interface.session import KINDS, Session
from orbical.interface.wire import DTYPES, PNG


def decode(frame: bytes) -> tuple[dict[str, Any], dict[str, Any]]:
    """Read a frame as the page does: its header, and its arrays by name."""
    (length,) = struct.unpack_from("<I", frame)
    header = json.loads(frame[4 : 4 + length].decode())
    arrays: dict[str, Any] = {}
    start = 4 + length
    for entry in header.pop("arrays"):
        count = math.prod(entry["shape"])
        if entry["dtype"] == PNG:
            size = count
            arrays[entry["name"]] = frame[start : start + size]
        else:
            kind = np.dtype(DTYPES[entry["dtype"]]).newbyteorder("<")
            size = count * kind.itemsize
            flat = np.frombuffer(frame, kind, count, start)
            arrays[entry["name"]] = flat.reshape(entry["shape"])
        start += size + (-size % 4)
    return header, arrays


def decode_part(part: bytes) -> tuple[dict[str, Any], dict[str, Any]]:
    """Read a part of a report as its page does."""
    header, arrays = decode(gzip.decompress(part))
    for name, about in header.pop("quantised").items():
        codes = arrays[name].astype(np.int64)
        if about["bits"] == 16:
            low, high = codes.reshape(2, -1)
            codes = np.cumsum(low + 256 * high) % 65536
        found = about["low"] + about["step"] * codes
        if "last" in about:
            found = np.where(codes == 0, 0, 1 / (1 + np.exp(-found)))
            found = np.where(codes == about["last"], 1, found)
        found = np.where(codes == about["missing"], np.nan, found)
        arrays[name] = found.reshape(about["shape"])
    return header, arrays | {name: arrays[first] for name, first in header.pop("same").items()}


def finished(talk: Coroutine[Any, Any, Any]) -> Any:
    """Run a talk to its end, in a thread: a browser open in this process has a loop of its own."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, talk).result()


def get(
    running: SimpleNamespace, path: str, method: str = "GET", **headers: str
) -> tuple[int, dict[str, str], bytes]:
    """Ask with exactly these headers, and a path that nobody tidies up."""
    connection = http.client.HTTPConnection("127.0.0.1", running.port, timeout=30)
    connection.putrequest(method, running.folder + path, skip_host=True, skip_accept_encoding=True)
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
        f"ws://127.0.0.1:{running.port}{running.folder}{path}",
        origin=options.pop("origin", running.base),
        additional_headers={name: value for name, value in headers.items() if value},
        max_size=None,
        open_timeout=60,
        **options,
    )


async def say(client: ClientConnection, kind: str, sequence: int = 1, **selection: Any) -> None:
    await client.send(json.dumps({"kind": kind, "sequence": sequence, "selection": selection}))


async def hear(client: ClientConnection) -> Any:
    return decode(await asyncio.wait_for(client.recv(), 30))  # type: ignore[arg-type]


def lassoed(session: Session, polygon: Any, **map_of: str) -> str:
    """Make a set by a lasso on a map, and return its hash."""
    recipe = {"lasso": {"polygon": [[*corner] for corner in polygon], **map_of}}
    found: str = session.handle({"kind": "set", "recipe": recipe})[0]["hash"]
    return found


def ask(session: Session, kind: str, extra: dict[str, Any] | None = None, **selection: Any) -> Any:
    """Ask a session a question, and expect the answer to be to that question."""
    header, arrays = session.handle(
        {"kind": kind, "sequence": 3, "selection": selection, **(extra or {})}
    )
    assert (header["kind"], header["sequence"]) == (kind, 3)
    return header, arrays


def message(rng: random.Random, sequence: int) -> str:
    """A request: usually sound, sometimes nonsense in a sound frame."""
    selection: dict[str, Any] = {
        "sample": rng.choice([0, 5, 119, 119, 10**9]),
        "element": rng.choice([-1, 0, 7, 8]),
        "metric": rng.choice(["", "", "ece", "confidence", "nonsense"]),
        "filter": rng.choice([[], [], ["label:3"], ["label:77"], ["gap:0.."], ["name:x"]]),
        "dense": rng.random() < 0.1,
        "position": rng.choice([[], [], [12.5], [1.0, 2.0]]),
    }
    kind = rng.choice([one for one in KINDS if one != "export"])
    extra = {"samples": [1, 2]} if kind == "hover" else {}
    if rng.random() < 0.05:
        selection["sample"] = rng.choice([None, "x", [[]], 1.5])
    return json.dumps({"kind": kind, "sequence": sequence, "selection": selection, **extra})
