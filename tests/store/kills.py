"""Kill scans at random moments and see that nothing is lost: `python kills.py 50 SIGTERM`.

The process imports everything once and then forks: scans that are killed, every second one with a
pool of two workers, and readers that look at what is left. A fork takes milliseconds, an import
takes seconds.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import random
import signal
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import torch

import orbical as ob
import orbical.scanning.engine  # all before the forks
import orbical.store.creation
import orbical.store.scan_result
import orbical.tasks.classification
from orbical.errors import Interrupted
from orbical.store.zarr_store import open_store

torch.manual_seed(0)
NET = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 10)).eval()
IMAGES, LABELS = torch.rand(40, 1, 8, 8), torch.arange(40) % 10
PAUSE_S = 0.004
PATIENCE_S = 60.0
STOPPED = 130
_USUAL = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL}


class Slow(torch.nn.Module):
    """A network that takes its time, so that a kill meets the scan at work."""

    def __init__(self) -> None:
        super().__init__()
        self.net = NET

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        time.sleep(PAUSE_S)
        return self.net(x)


def scan(path: Path, workers: int = 0) -> None:
    """Run, or continue, the scan, here or in worker processes."""
    for number in (signal.SIGINT, signal.SIGTERM):  # whatever the shell has set
        signal.signal(number, _USUAL[number])
    warnings.simplefilter("ignore")
    context = multiprocessing.get_context("fork")
    pool = ProcessPoolExecutor(workers, context) if workers else None
    ob.scan(
        {"slow": Slow()},
        (IMAGES, LABELS),
        group="rotations:9",
        task="classification",
        batch_size=9,
        chunk=4,
        out=path,
        progress=False,
        threads=1,
        executor=pool,
    )


def finished(path: Path) -> dict[str, Any]:
    """Return the checksums of the finished units of a store; all of them are verified."""
    warnings.simplefilter("ignore")
    if not path.exists():
        return {}
    found = ob.load(path)
    for array in found.arrays.values():
        array[:]
    store = found._store
    return {str(key): unit.files for key, unit in store.read_units([*store.units])}


def content(path: Path) -> dict[str, Any]:
    """Return the checksums of a complete store."""
    assert ob.load(path).complete
    store = open_store(path)
    return {"units": {str(key): unit.files for key, unit in store.read_units([*store.units])}}


def child(work: Callable[[], Any], result: Path | None = None) -> int:
    """Fork a process that writes what `work` returns as JSON."""
    number = os.fork()
    if number == 0:
        status = 1
        try:
            answer = work()
            if result is not None:
                result.write_text(json.dumps(answer))
            status = 0
        except Interrupted:
            status = STOPPED
        finally:
            os._exit(status)
    return number


def answer_of(work: Callable[[], Any], folder: Path) -> Any:
    """Run `work` in a process of its own and return its answer."""
    result = folder / "answer.json"
    _, status = os.waitpid(child(work, result), 0)
    assert status == 0, "a reader failed"
    return json.loads(result.read_text())


def wait_for(path: Path, units: int, process: int) -> None:
    """Wait until so many units are finished, or the scan has ended."""
    while not path.exists() or len(list((path / "units").glob("*.json"))) < units:
        time.sleep(PAUSE_S / 4)
        if os.waitid(os.P_PID, process, os.WEXITED | os.WNOHANG | os.WNOWAIT):
            return


def descendants(process: int) -> list[int]:
    """Return the processes that a process and its children have started."""
    try:
        listed = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    except OSError:
        return []
    return [int(one) for one in listed] + [more for one in listed for more in descendants(int(one))]


def orphans(processes: list[int]) -> int:
    """Return how many processes are still there when they had the time to notice and to end."""

    def alive(process: int) -> bool:
        try:
            return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
        except OSError:
            return False

    end = time.monotonic() + PATIENCE_S
    while any(map(alive, processes)) and time.monotonic() < end:
        time.sleep(PAUSE_S)
    return sum(map(alive, processes))


def main(kills: int, folder: Path, number: signal.Signals = signal.SIGKILL) -> dict[str, int]:
    """Kill until `kills` scans have been killed; return what was seen."""
    torch.set_num_threads(1)
    rng = random.Random(0)
    whole = folder / "whole.zarr"
    os.waitpid(child(lambda: scan(whole)), 0)
    expected = answer_of(lambda: content(whole), folder)
    seen = {"kills": 0, "in the middle": 0, "units lost": 0, "orphans": 0, "stores": 0}
    while seen["kills"] < kills:
        path = folder / f"run{seen['stores']}.zarr"
        workers = 2 * (seen["stores"] % 2)
        seen["stores"] += 1
        before: dict[str, Any] = {}
        while seen["kills"] < kills:
            process = child(lambda path=path, workers=workers: scan(path, workers))  # type: ignore[misc]
            wait_for(path, len(before) + rng.randrange(6), process)
            time.sleep(rng.uniform(0, 10 * PAUSE_S))
            started = descendants(process)
            os.kill(process, number)
            _, status = os.waitpid(process, 0)
            seen["orphans"] += orphans(started)
            ended = os.waitstatus_to_exitcode(status)
            if ended not in (STOPPED, -number):
                assert ended == 0, f"the scan failed: {ended}"
                break
            seen["kills"] += 1
            after = answer_of(lambda path=path: finished(path), folder)  # type: ignore[misc]
            seen["in the middle"] += 0 < len(after) < len(expected["units"])
            seen["units lost"] += sum(after.get(key) != files for key, files in before.items())
            before = after
        os.waitpid(child(lambda path=path: scan(path)), 0)  # type: ignore[misc]
        assert answer_of(lambda path=path: content(path), folder) == expected  # type: ignore[misc]
    return seen


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as there:
        seen = main(int(sys.argv[1]), Path(there), signal.Signals[sys.argv[2]])
    print(
        f"result: {seen['kills']} kills, {seen['in the middle']} in the middle of a scan: units "
        f"lost {seen['units lost']}, processes left {seen['orphans']}, all bits the same"
    )
    print(json.dumps(seen), flush=True)
