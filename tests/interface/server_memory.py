"""Ask a server many times and print how much memory it has: `python FILE 16000`.

The server runs in a process of its own, so that its memory is its own.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import random
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from talking import dial, message

import orbical as ob

TOLD = 8
"""How often the memory is printed."""


def served(folder: Path, told: Any) -> None:
    """Serve a scan of 400 digits, and a model that answers live."""
    from orbical.interface import open_session
    from orbical.interface.server import Server

    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 10))
    images, labels = ob.datasets.digits()
    path = folder / "run.zarr"
    about: dict[str, Any] = {"group": "rotations:24", "keep": "inputs", "progress": False}
    ob.scan(net, (images[:400], labels[:400]), out=path, task="classification", **about)
    server = Server(open_session(path, {"model": net}), port=0)
    cookie = server.guard.cookie_header().partition(";")[0]
    told.put((server.port, cookie, f"/{server.guard.folder}"))
    server.run()


def resident(process: int) -> int:
    """Return the memory of a process, in MB."""
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith("VmRSS"))) // 1024


async def asked(running: SimpleNamespace, first: int, count: int) -> None:
    """Ask, and read all answers; a client leaves after 100 requests."""
    for start in range(first, first + count, 100):
        async with dial(running) as client:
            for sequence in range(start, start + 100):
                rng = random.Random(sequence)
                await client.send(message(rng, sequence))
                await asyncio.wait_for(client.recv(), 60)


def main(requests: int) -> list[int]:
    """Return the memory of the server in MB after each part of the requests."""
    context = multiprocessing.get_context("spawn")
    told = context.Queue()
    with tempfile.TemporaryDirectory() as folder:
        process = context.Process(target=served, args=(Path(folder), told), daemon=True)
        process.start()
        port, cookie, place = told.get()
        base = f"http://127.0.0.1:{port}"
        running = SimpleNamespace(port=port, cookie=cookie, folder=place, base=base)

        def parts() -> Iterator[int]:
            for part in range(TOLD):
                asyncio.run(asked(running, part * (requests // TOLD), requests // TOLD))
                yield resident(process.pid or 0)

        try:
            return [*parts()]
        finally:
            process.terminate()
            process.join()


if __name__ == "__main__":
    number = int(sys.argv[1])
    found = main(number)
    each = number // TOLD
    print(f"result: MB after each {each:,} of {number:,} requests: {', '.join(map(str, found))}")
