"""Kill a scan that overwrites another at each of its file operations: `python FILE STEP`.

Whatever is left, the next scan must be able to use the folder, and must clean up; every second one
resumes, the others overwrite. Forks are killed;
this process imports everything once, and starts no thread.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch

import orbical as ob
import orbical.scanning.engine  # all before the forks
import orbical.store.creation
import orbical.store.scan_result
import orbical.tasks.classification
from orbical.errors import StoreError

torch.manual_seed(0)
NETS = [torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 10)).eval() for _ in range(2)]
DATA = torch.rand(6, 1, 8, 8), torch.arange(6)
EVENTS = {"open", "os.rename", "os.remove", "os.rmdir", "os.mkdir"}
KILLED = 9


def scan(path: Path, net: int, **options: Any) -> ob.Scan:
    warnings.simplefilter("ignore")
    return ob.scan(
        NETS[net],
        DATA,
        group="rotations:3",
        task="classification",
        chunk=3,
        out=path,
        progress=False,
        **options,
    )


def in_fork(work: Callable[[], object]) -> int:
    """Return the exit status of a fork that does some work."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            work()
            status = 0
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def overwrite(path: Path, number: int) -> None:
    """Overwrite a store; die at a file operation in its folder."""
    left = number

    def count(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal left
        if event in EVENTS and str(path.parent) in str(arguments[0]):
            left -= 1
            if left < 0:
                os._exit(KILLED)

    sys.addaudithook(count)
    scan(path, 1, overwrite=True)


def resumed(path: Path) -> ob.Scan:
    """Continue the scan that is there: of the new model, or else still that of the old one."""
    try:
        return scan(path, 1)
    except StoreError:
        return scan(path, 0)


def use(path: Path, again: Callable[[Path], ob.Scan]) -> None:
    """Read what is left, if it is there, and scan into it."""
    if path.exists():
        ob.load(path)
    assert again(path).complete
    left = [*path.parent.iterdir()]
    assert left == [path], f"left: {left}"


def main(folder: Path, step: int) -> int:
    """Return the number of kills after which the next scan worked."""
    sound = folder / "sound.zarr"
    assert in_fork(lambda: scan(sound, 0)) == 0
    number = 0
    while True:
        path = folder / f"{number}" / "run.zarr"
        shutil.copytree(sound, path)
        status = in_fork(lambda path=path, number=number: overwrite(path, number * step))
        again = (partial(scan, net=1, overwrite=True), resumed)[number % 2]
        found = in_fork(partial(use, path, again))
        assert found == 0, f"unusable after {number * step}"
        if status == 0:
            return number
        assert status == KILLED
        number += 1


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as there:
        killed = main(Path(there), int(sys.argv[1]))
    print(f"result: {killed} kills: all usable, nothing left")
