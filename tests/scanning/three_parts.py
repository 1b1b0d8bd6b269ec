"""Scan in three parts at once, kill one of them at work, run it again: `three_parts.py FOLDER`.

The part that will be killed waits for that after its first units, however fast the others are.

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


asked = 0


def net(x: torch.Tensor, halt_at: int) -> torch.Tensor:
    global asked
    asked += 1
    while asked == halt_at:
        time.sleep(1)
    return NET(x)


def scan(out: Path, part: str | None, halt_at: int) -> None:
    ob.scan(
        {"net": lambda x: net(x, halt_at)},
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


def start(out: Path, part: str | None, halt_at: int = 0) -> int:
    number = os.fork()
    if number == 0:
        status = 1
        try:
            scan(out, part, halt_at)
            status = 0
        finally:
            os._exit(status)
    return number


def end(number: int) -> int:
    return os.waitpid(number, 0)[1]


def main(folder: Path) -> None:
    torch.set_num_threads(1)
    path = folder / "run.zarr"
    one, killed, other = (start(path, f"{number}/3", 8 * (number == 2)) for number in (1, 2, 3))
    assert [end(one), end(other)] == [0, 0]
    os.kill(killed, signal.SIGKILL)
    assert end(killed) == signal.SIGKILL
    assert 20 < len(list((path / "units").glob("0.*.json"))) < 31
    assert end(start(path, "2/3")) == 0
    assert end(start(folder / "alone.zarr", None)) == 0


if __name__ == "__main__":
    main(Path(sys.argv[1]))
