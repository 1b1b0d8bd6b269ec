"""Scans by other processes: what an executor costs, and what a second worker brings.

Run: python benchmarks/cluster.py [one two]. Both need cores that nobody else uses: by the clock,
two workers on a busy machine wait for each other's neighbors. Needs the extra `cluster`.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import timing
import torch
from timing import Row

import orbical as ob

SAMPLES, ELEMENTS, CHUNK, ROUNDS = 96, 24, 4, 3


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
    """Start Dask workers, each a process with one thread, that have scanned once."""
    from distributed import Client, LocalCluster

    quiet = {"dashboard_address": ":0", "threads_per_worker": 1}
    with LocalCluster(n_workers=count, **quiet) as cluster, Client(cluster) as client:
        scan(client)
        yield client


def by_clock(work: Callable[[], Any]) -> float:
    """Return the time of a call by the clock."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def processor_time(client: Any, work: Callable[[], Any]) -> float:
    """Return the processor time of a call here and in the workers."""
    before = sum(client.run(time.process_time).values()) + time.process_time()
    work()
    return float(sum(client.run(time.process_time).values()) + time.process_time() - before)


def one() -> Iterator[Row]:
    """Compare a Dask worker with the plain scan in this process, by processor time."""
    scan()
    with workers(1) as client:
        turns = [
            (timing.processor_seconds(scan), processor_time(client, lambda: scan(client)))
            for _ in range(ROUNDS)
        ]
    theirs, ours = (min(times) for times in zip(*turns, strict=True))
    yield timing.at_most("scan by one Dask worker", ours, "scan in this process", theirs, 1.05)


def two() -> Iterator[Row]:
    """Compare two Dask workers with one, by the clock."""
    with workers(1) as single, workers(2) as pair:
        theirs, ours = timing.in_turns(lambda: scan(single), lambda: scan(pair), ROUNDS, by_clock)
    load = os.getloadavg()[0]
    print(f"{os.cpu_count()} cores, load {load:.1f}")
    yield timing.at_least("scan by two Dask workers", ours, "by one", theirs, 1.8)


if __name__ == "__main__":
    timing.run([one, two], __doc__ or "")
