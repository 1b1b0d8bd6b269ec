"""Scans on a Dask cluster: workers and driver may die, and the bits stay those of one process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path

import numpy as np
import pytest
import torch

import orbical as ob
from orbical.errors import Interrupted
from orbical.scanning import executors

pytestmark = pytest.mark.system

distributed = pytest.importorskip("distributed")

NET = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 10)).requires_grad_(False)
for weight in NET.parameters():
    weight.copy_(torch.linspace(-1, 1, weight.numel()).reshape(weight.shape).sin())


def slow_net(x):
    """Answer slowly, so that a kill meets the scan at work."""
    time.sleep(0.01)
    return NET(x)


def scan(out, **settings):
    images, labels = ob.datasets.digits()
    return ob.scan(
        {"net": slow_net},
        (images[:60], labels[:60]),
        group="rotations:6",
        task="classification",
        batch_size=16,
        chunk=2,
        threads=1,
        out=out,
        progress=False,
        **settings,
    )


def same_bits(one, other):
    assert one.complete
    assert other.complete
    for name in one.arrays:
        assert np.asarray(one.arrays[name]).tobytes() == np.asarray(other.arrays[name]).tobytes()


@contextmanager
def cluster(workers):
    quiet = dict(dashboard_address=":0", processes=False, threads_per_worker=1)
    with (
        distributed.LocalCluster(n_workers=workers, protocol="tcp://", **quiet) as local,
        distributed.Client(local) as client,
    ):
        yield local, client


def test_a_cluster_without_workers_waits_says_so_and_can_be_interrupted(tmp_path, monkeypatch):
    monkeypatch.setattr(executors, "_LOOK_S", 0.05)
    path = tmp_path / "run.zarr"

    def once_it_waits(event, *arguments):
        warned = pytest.warns(UserWarning, match="has no workers; the scan waits")

        def watch():
            while not any("has no workers" in str(one.message) for one in warned.list):
                time.sleep(0.01)
            event(*arguments)

        threading.Thread(target=watch, daemon=True).start()
        return warned

    with cluster(0) as (local, client):
        previous = signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            with (
                once_it_waits(os.kill, os.getpid(), signal.SIGINT),
                pytest.raises(Interrupted, match="run the same scan again"),
            ):
                scan(path, executor=client)
        finally:
            signal.signal(signal.SIGINT, previous)
        assert not list(tmp_path.iterdir())
        with once_it_waits(local.scale, 1):
            result = scan(path, executor=client)
    same_bits(result, scan(tmp_path / "alone.zarr"))


def tasks_of(dask_scheduler) -> int:
    return len(dask_scheduler.tasks)


def executed_by(dask_worker) -> int:
    return dask_worker.state.executing_count


def drive(address: str, out: str) -> None:
    """Scan on a cluster, as a process that is killed."""
    with distributed.Client(address) as client:
        scan(Path(out), executor=client)


def wait_for(path: Path, units: int) -> None:
    while not path.exists() or len(list((path / "units").glob("0.*.json"))) < units:
        time.sleep(0.01)


@pytest.mark.slow
def test_two_of_three_workers_and_the_driver_are_killed(tmp_path):
    here = dict(env={**os.environ, "OMP_NUM_THREADS": "1"}, stderr=subprocess.DEVNULL)
    path = tmp_path / "run.zarr"
    with cluster(0) as (local, client), ExitStack() as stack:
        address = local.scheduler_address

        def started(*command):
            process = subprocess.Popen([sys.executable, *command], **here)
            stack.callback(process.wait)
            stack.callback(process.kill)
            return process

        flags = ["--no-nanny", "--nthreads", "1", "--no-dashboard", "--local-directory"]
        workers = [
            started("-m", "distributed.cli.dask_worker", address, *flags, str(tmp_path / str(one)))
            for one in range(3)
        ]
        client.wait_for_workers(3, timeout=120)
        driver = started(__file__, address, str(path))
        wait_for(path, 4)
        workers[0].kill()
        wait_for(path, 8)
        workers[1].kill()
        wait_for(path, 12)
        driver.kill()
        driver.wait()
        while client.run_on_scheduler(tasks_of) or any(client.run(executed_by).values()):
            time.sleep(0.01)  # what was begun is finished
        kept = {file.name: file.stat().st_mtime_ns for file in (path / "units").glob("*.json")}
        assert 24 <= len(kept) < 60, "the driver was killed at work"
        result = scan(path, executor=client)
        again = {file.name: file.stat().st_mtime_ns for file in (path / "units").glob("*.json")}
        assert kept.items() <= again.items(), "what was finished is not computed again"
    same_bits(result, scan(tmp_path / "alone.zarr"))
    assert not list(tmp_path.glob(".*")), "recipes of killed drivers are deleted"


if __name__ == "__main__":
    drive(*sys.argv[1:])
