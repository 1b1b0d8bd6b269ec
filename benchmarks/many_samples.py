"""How long a store of very many samples takes to create, to continue and to open.

python benchmarks/many_samples.py 100000000
python benchmarks/many_samples.py 10000000 scan

The data, their names, labels and a column are made when they are read; one unit is computed, and
the marks of all other units are hard links to its own: opening a store lists them. With `scan` four
workers compute all units instead. Each step runs in a process of its own.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

import orbical as ob
from orbical.store.checksums_and_units import unit_mark_name

UNITS = 65_000  # the most that a scan chooses by itself


@dataclass
class Made(Sequence[Any]):
    """What is made from the numbers of the samples when it is sliced."""

    size: int
    make: Callable[[np.ndarray], Any]

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, rows: Any) -> Any:
        return self.make(np.arange(*rows.indices(self.size)))


def names(rows: np.ndarray) -> list[str]:
    """Return the names of files."""
    return [f"photos/{row:012}.jpg" for row in rows]


def classes(rows: np.ndarray) -> np.ndarray:
    """Return labels."""
    return rows % 3


class Images(ob.data.Source):
    """Images that are made when they are read, with names, labels and a column."""

    def __init__(self, count: int) -> None:
        self._count = count
        self.names, self.labels = Made(count, names), Made(count, classes)
        self.columns: Any = {"site": Made(count, np.sqrt)}

    def __len__(self) -> int:
        return self._count

    def read(self, start: int, stop: int) -> Any:
        """Make some images."""
        numbers = torch.arange(start, stop)
        return (numbers % 251)[:, None, None, None].float().expand(-1, 1, 4, 4), None


def net(x: torch.Tensor) -> torch.Tensor:
    """Return three numbers of each image."""
    return x.flatten(1)[:, :3]


def one_unit(path: Path, count: int) -> None:
    """Run one unit of a scan: create the store, or continue it."""
    run(path, count, chunk=-(-count // UNITS), part=f"1/{UNITS}")


def run(path: Path, count: int, **settings: Any) -> None:
    """Run a scan."""
    settings |= {"group": "cyclic:4", "task": "classification", "progress": False}
    ob.scan(net, Images(count), out=path, fingerprint="made", **settings)


def whole(path: Path, count: int) -> None:
    """Run all units by four workers."""
    with ProcessPoolExecutor(4) as workers:
        run(path, count, executor=workers)


def link(path: Path, count: int) -> None:
    """Mark all units as finished."""
    store = ob.load(path)._store
    for (model, _), name in [*store.units.items()]:
        for chunk in range(1, store.record.chunks):
            key = (model, chunk)
            os.link(
                path / "units" / name,
                path / "units" / unit_mark_name(key, store.origin(model), noted=False),
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
    "scan": whole,
}


def main() -> None:
    """Run one step, or all of them."""
    count = int(sys.argv[1])
    if len(sys.argv) > 3:
        before = time.perf_counter()
        STEPS[sys.argv[3]](Path(sys.argv[2]), count)
        took, peak = time.perf_counter() - before, resource.getrusage(resource.RUSAGE_SELF)
        print(f"{took:.2f} s, peak {peak.ru_maxrss / 1e3:.0f} MB")
        return
    with tempfile.TemporaryDirectory() as folder:
        for name in ["scan", "open", "data"] if "scan" in sys.argv else [*STEPS][:-1]:
            print(f"{name:14}", end="", flush=True)
            command = [sys.executable, __file__, str(count), f"{folder}/run.zarr", name]
            if subprocess.run(command, check=False).returncode:
                break


if __name__ == "__main__":
    main()
