"""How long a store of very many samples takes to create, to continue and to open.

python benchmarks/many_samples.py 100000000

The data are made when they are read, one unit is computed, and the marks of all other units are
hard links to its own: opening a store lists them. Each step runs in a process of its own.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import torch

import orbical as ob
from orbical.store.checksums import mark_name

UNITS = 65_000  # the most that a scan chooses by itself


class Made(ob.data.Source):
    """Images that are made when they are read, with their labels."""

    def __init__(self, count: int) -> None:
        self._count = count

    def __len__(self) -> int:
        return self._count

    def read(self, start: int, stop: int) -> Any:
        """Make some images."""
        numbers = torch.arange(start, stop)
        return (numbers % 251)[:, None, None, None].float().expand(-1, 1, 4, 4), numbers % 3


def net(x: torch.Tensor) -> torch.Tensor:
    """Return three numbers of each image."""
    return x.flatten(1)[:, :3]


def one_unit(path: Path, count: int) -> None:
    """Run one unit of a scan: create the store, or continue it."""
    settings: dict[str, Any] = {"group": "cyclic:4", "task": "classification", "progress": False}
    settings |= {"chunk": -(-count // UNITS), "fingerprint": "made"}
    ob.scan(net, Made(count), out=path, part=f"1/{UNITS}", **settings)


def link(path: Path, count: int) -> None:
    """Mark all units as finished."""
    store = ob.load(path)._store
    for (model, _), name in [*store.units.items()]:
        for chunk in range(1, store.record.chunks):
            key = (model, chunk)
            os.link(
                path / "units" / name,
                path / "units" / mark_name(key, store.origin(model), noted=False),
            )
    print(f"{store.record.chunks:,} units of {store.record.run.chunk:,} samples; ", end="")


def open_it(path: Path, count: int) -> None:
    """Open a store and see what is done."""
    scan = ob.load(path)
    assert scan.record.data.samples == count
    print(f"{scan.share_done:.2%} done; ", end="")


def label(path: Path, count: int) -> None:
    """Open a store as a labeled data set, and read a unit of it."""
    scan = ob.load(path)
    print(f"{dict(scan.data.sizes)}, mean {scan.read('score', 0, 0).mean():.3f}; ", end="")


STEPS = {
    "create": one_unit,
    "mark": link,
    "open": open_it,
    "data": label,
    "continue": one_unit,
}


def main() -> None:
    """Run one step, or all of them."""
    count = int(sys.argv[1])
    if len(sys.argv) > 2:
        before = time.perf_counter()
        STEPS[sys.argv[3]](Path(sys.argv[2]), count)
        took, peak = time.perf_counter() - before, resource.getrusage(resource.RUSAGE_SELF)
        print(f"{took:.2f} s, peak {peak.ru_maxrss / 1e3:.0f} MB")
        return
    with tempfile.TemporaryDirectory() as folder:
        for name in STEPS:
            print(f"{name:14}", end="", flush=True)
            command = [sys.executable, __file__, str(count), f"{folder}/run.zarr", name]
            if subprocess.run(command, check=False).returncode:
                break


if __name__ == "__main__":
    main()
