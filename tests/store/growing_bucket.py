"""A scan that Dask workers write into a bucket, one of them killed, viewed while it grows.

    python tests/store/growing_bucket.py 100000 page.png

needs `moto[server]`, `s3fs` and, for the picture, playwright and Chromium. It compares the result
with a local scan bit for bit, and prints what took how long.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import distributed
import numpy as np
import torch
from s3_server import s3_server

import orbical as ob
from orbical.errors import StoreError
from orbical.interface import open_session

UNITS = 200


class Linear(torch.nn.Module):
    """A model that takes its time now and then, so that a scan can be watched."""

    def __init__(self, pause: float = 0.0) -> None:
        super().__init__()
        weight = torch.randn(10, 64, generator=torch.Generator().manual_seed(0))
        self.weight = torch.nn.Parameter(weight, requires_grad=False)
        self.pause = pause

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        time.sleep(self.pause)
        return x.flatten(1) @ self.weight.T


Linear.__module__ = "growing_bucket"  # as workers import it


def scan(count: int, out: str | Path, pause: float = 0.0, **settings: Any) -> ob.Scan:
    """Scan some random images, which the view finds in the store."""
    images = torch.rand(count, 1, 8, 8, generator=torch.Generator().manual_seed(3))
    return ob.scan(
        Linear(pause),
        (images, torch.arange(count) % 10),
        group="cyclic:4",
        task="classification",
        keep="inputs",
        chunk=max(20, count // UNITS),
        out=out,
        threads=1,
        progress=False,
        **settings,
    )


def watch(
    count: int, url: str, picture: Callable[[Any], None] = lambda session: None
) -> dict[str, Any]:
    """Scan into a bucket; view it while it grows, kill a worker, and view it to the end."""
    seen: dict[str, Any] = {"shares": []}
    here = {"PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path])}
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, env=here
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        pids = [*client.run(os.getpid).values()]
        start = time.monotonic()
        running = threading.Thread(
            target=scan, args=(count, url), kwargs={"executor": client, "pause": 1e-3}
        )
        running.start()
        session = _opened(url, running)
        while running.is_alive():
            told = _asked(session, "preview")[0]
            if told["share"] not in seen["shares"]:
                seen["shares"].append(told["share"])
            if told["share"] > 0.2 and "killed" not in seen:
                os.kill(pids[0], signal.SIGKILL)
                seen["killed"] = told["share"]
                seen["samples"] = _asked(session, "aggregate")[0]["count"]
                picture(session)
            running.join(0.5)
        seen["seconds"] = time.monotonic() - start
    while (told := _asked(session, "preview")[0])["phase"] != "finished":
        time.sleep(0.5)
    seen["curve"] = _asked(session, "aggregate")[1]["values"]
    return seen


def _opened(url: str, running: threading.Thread) -> Any:
    """Open a view as soon as there is a unit to see."""
    while running.is_alive():
        try:
            if ob.load(url).share_done > 0:
                break
        except StoreError:
            pass
        time.sleep(0.2)
    return open_session(url)


def _asked(session: Any, kind: str) -> Any:
    return session.handle({"kind": kind, "sequence": 1, "selection": {}})


def assert_equal(found: ob.Scan, expected: ob.Scan) -> int:
    """Compare all arrays, and return how many there are."""
    assert found.complete
    for name in expected.data.variables:
        np.testing.assert_array_equal(found.data[name].values, expected.data[name].values, name)
    return len(expected.data.variables)


def _photographed(session: Any, path: str) -> None:
    """Open the page in Chromium and save a picture of it."""
    from playwright.sync_api import sync_playwright

    from orbical.interface.server import Server

    server = Server(session, port=0)
    server.start()
    program = shutil.which("chromium-headless-shell") or shutil.which("chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1440, "height": 900})
        page.goto(server.url, timeout=120_000)
        page.wait_for_function("document.querySelectorAll('canvas').length > 5", timeout=120_000)
        page.wait_for_timeout(5000)  # pictures of the inputs come last
        page.screenshot(path=path, timeout=300_000)
        browser.close()
    server.stop()


if __name__ == "__main__":
    count, *pictures = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder, s3_server("runs"):
        began = time.monotonic()
        expected = scan(int(count), Path(folder) / "run.zarr")
        print(f"local scan of {int(count):,} images: {time.monotonic() - began:.1f} s")
        seen = watch(
            int(count),
            "s3://runs/run.zarr",
            lambda session: _photographed(session, pictures[0]) if pictures else None,
        )
        found = ob.load("s3://runs/run.zarr")
        arrays = assert_equal(found, expected)
        print(
            f"result: {int(count):,} images into a bucket by two Dask workers in "
            f"{seen['seconds']:.0f} s, one killed at {seen['killed']:.0%}; a view saw "
            f"{len(seen['shares'])} states of it from {min(seen['shares']):.1%} on, and "
            f"{seen['samples']:,} samples when the worker was killed; all {arrays} arrays equal "
            "those of a local scan bit for bit"
        )
