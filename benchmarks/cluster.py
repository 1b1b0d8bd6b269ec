"""Scans by other processes: what an executor costs, and what a second worker brings.

Run: python benchmarks/cluster.py [one two clock]. Needs the extra `cluster`; `clock` needs two
cores that nobody else uses.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import timing
import torch
from timing import Row

import orbical as ob

SAMPLES, ELEMENTS, CHUNK, ROUNDS = 192, 24, 4, 2


def network() -> torch.nn.Module:
    """Return a small residual network, as it is used on images of 64 x 64."""
    torch.manual_seed(0)

    def block(inputs: int, outputs: int, stride: int) -> torch.nn.Module:
        conv = torch.nn.Conv2d(inputs, outputs, 3, stride, 1)
        return torch.nn.Sequential(conv, torch.nn.BatchNorm2d(outputs), torch.nn.ReLU())

    blocks = [block(3, 32, 1), block(32, 64, 2), block(64, 64, 1), block(64, 128, 2)]
    pooled = [torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(128, 10)]
    return torch.nn.Sequential(*blocks, *pooled).eval()


def scan(executor: Any = None) -> None:
    """Scan onto disk, one thread in each process."""
    images = torch.rand(SAMPLES, 3, 64, 64, generator=torch.Generator().manual_seed(0))
    with tempfile.TemporaryDirectory() as folder:
        ob.scan(
            network(),
            (images, torch.arange(SAMPLES) % 10),
            group=ob.groups.rotations(ELEMENTS),
            task="classification",
            out=Path(folder) / "run.zarr",
            batch_size=32,
            chunk=CHUNK,
            threads=1,
            executor=executor,
            progress=False,
        )


@contextmanager
def workers(count: int) -> Iterator[Any]:
    """Start Dask workers, each a process with one thread, that have scanned once.

    They keep freed memory, as the guide recommends. Their profiler is off: its cost grows with the
    time by the clock, which on a busy machine is many times that of the work.
    """
    import dask
    from distributed import Client, LocalCluster

    quiet = {"dashboard_address": ":0", "threads_per_worker": 1}
    memory = "distributed.nanny.pre-spawn-environ.MALLOC_{}_THRESHOLD_"
    settings = {memory.format("MMAP"): 2**30, memory.format("TRIM"): 2**30}
    with (
        dask.config.set({"distributed.worker.profile.enabled": False, **settings}),
        LocalCluster(n_workers=count, **quiet) as cluster,
        Client(cluster) as client,
    ):
        scan(client)
        yield client


def by_clock(work: Callable[[], Any]) -> float:
    """Return the time of a call by the clock."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def processor_times(client: Any, work: Callable[[], Any]) -> dict[str, float]:
    """Return the processor time of a call in this process and in each worker."""

    def now() -> dict[str, float]:
        return {"here": time.process_time(), **client.run(time.process_time)}

    before = now()
    work()
    return {name: after - before[name] for name, after in now().items()}


def one() -> Iterator[Row]:
    """Compare a pool of one process with the plain scan, by the processor time of both processes.

    The pool has scanned once, so the start of Python and torch in it does not count.
    """
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:

        def both() -> float:
            return time.process_time() + pool.submit(time.process_time).result()

        def seconds(executor: Any) -> float:
            before = both()
            scan(executor)
            return both() - before

        turns = [(seconds(None), seconds(pool)) for _ in range(1 + ROUNDS)][1:]
    theirs, ours = (min(times) for times in zip(*turns, strict=True))
    yield timing.at_most("scan by a pool of one process", ours, "without a pool", theirs, 1.05)


def one_worker() -> Iterator[Row]:
    """Compare one Dask worker with the plain scan, by the clock; both keep freed memory."""
    timing.keep_freed_memory()
    with workers(1) as client:
        theirs, ours = timing.in_turns(scan, lambda: scan(client), ROUNDS, by_clock)
    yield timing.at_most("scan by one Dask worker, by the clock", ours, "plain", theirs, 1.05)


def two() -> Iterator[Row]:
    """Compare two Dask workers with one, by the processor time of the busiest process.

    That is what a scan takes where each process has a core of its own.
    """
    with workers(1) as single, workers(2) as pair:
        turns = [
            [
                max(processor_times(client, lambda client=client: scan(client)).values())
                for client in (single, pair)
            ]
            for _ in range(ROUNDS)
        ]
    theirs, ours = (min(times) for times in zip(*turns, strict=True))
    work = "scan by two Dask workers, the busiest process"
    yield timing.at_least(work, ours, "by one", theirs, 1.8)


def clock() -> Iterator[Row]:
    """Compare two Dask workers with one, by the clock, on cores that nobody else uses."""
    with workers(1) as single, workers(2) as pair:
        load = os.getloadavg()[0]
        theirs, ours = timing.in_turns(lambda: scan(single), lambda: scan(pair), ROUNDS, by_clock)
    print(f"{os.cpu_count()} cores; the load of the machine was {load:.1f}")
    yield timing.at_least("scan by two Dask workers, by the clock", ours, "by one", theirs, 1.8)


if __name__ == "__main__":
    timing.run([one, one_worker, two, clock], __doc__ or "")
