"""Scan in three parts at once, kill one of them at work, run it again: `three_parts.py FOLDER`.

The process imports everything once and then forks the parts, which takes milliseconds.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

import torch

import orbical as ob
import orbical.scanning.engine  # all before the forks
import orbical.store.creation
import orbical.store.scan_result
import orbical.tasks.classification

torch.manual_seed(0)
NET = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 10)).eval()
IMAGES, LABELS = torch.rand(61, 1, 8, 8), torch.arange(61) % 10


def slow_net(x: torch.Tensor) -> torch.Tensor:
    time.sleep(0.004)
    return NET(x)


def scan(out: Path, part: str | None = None) -> None:
    ob.scan(
        {"net": slow_net},
        (IMAGES, LABELS),
        group="rotations:6",
        task="classification",
        batch_size=12,
        chunk=2,
        threads=1,
        out=out,
        part=part,
        progress=False,
    )


def start(out: Path, part: str | None) -> int:
    number = os.fork()
    if number == 0:
        status = 1
        try:
            scan(out, part)
            status = 0
        finally:
            os._exit(status)
    return number


def end(number: int) -> int:
    return os.waitpid(number, 0)[1]


def main(folder: Path) -> None:
    torch.set_num_threads(1)
    path = folder / "run.zarr"
    parts = [start(path, f"{number}/3") for number in (1, 2, 3)]
    while not path.exists() or len(list((path / "units").glob("0.*.json"))) < 9:
        time.sleep(0.001)
    os.kill(parts[1], signal.SIGKILL)
    assert [end(part) for part in parts] == [0, signal.SIGKILL, 0]
    assert end(start(path, "2/3")) == 0
    assert end(start(folder / "alone.zarr", None)) == 0


if __name__ == "__main__":
    main(Path(sys.argv[1]))
