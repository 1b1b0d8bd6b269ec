"""Runs `work(rank, folder)` of a test file in two processes of one group.

    python two_ranks.py TEST_FILE FOLDER

imports the file once and then forks, which takes milliseconds. A fork of the tests' own process
would inherit threads of torch that hang there.
"""

from __future__ import annotations

import os
import runpy
import subprocess
import sys
from pathlib import Path

import torch
from torch import distributed


def run_two_ranks(test_file: str, folder: Path) -> None:
    """Wait until both have done the work of a test file."""
    subprocess.run([sys.executable, __file__, test_file, str(folder)], check=True, timeout=120)


def _main(test_file: str, folder: str) -> None:
    sys.path.insert(0, str(Path(test_file).parent))
    tested = runpy.run_path(test_file)
    torch.set_num_threads(1)
    other = os.fork()
    rank = 0 if other else 1
    distributed.init_process_group("gloo", f"file://{folder}/rendezvous", rank=rank, world_size=2)
    tested["work"](rank, Path(folder))
    distributed.barrier()
    failed = bool(other) and os.waitpid(other, 0)[1] != 0
    os._exit(failed)  # taking the group apart can wait for ever: gloo joins a thread


if __name__ == "__main__":
    _main(*sys.argv[1:])
