"""Ten thousand questions in 24 orders: memory that does not grow, and a scan that goes on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import orbical as ob

pytestmark = pytest.mark.system

SCRIPT = """
import csv, os, resource, signal, sys
import orbical as ob

data, out, kill_after = sys.argv[1], sys.argv[2], int(sys.argv[3])
calls = 0

def model(question, options):
    global calls
    calls += len(question)
    if kill_after and calls > kill_after:
        os.kill(os.getpid(), signal.SIGKILL)
    return [[len(text) % 7 + 0.5 * (p == 0) for p, text in enumerate(row)] for row in options]

scan = ob.scan(model, data, group="permutations:4", task="choice", out=out, progress=False,
               batch_size=512, chunk=250)
print(scan.complete, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
"""


def questions(path: Path, count: int) -> Path:
    rng = np.random.default_rng(0)
    lengths = rng.integers(3, 40, (count, 4))
    lines = [
        ",".join([f"Question {q}?", *("x" * n + str(k) for k, n in enumerate(row)), "ABCD"[q % 4]])
        for q, row in enumerate(lengths)
    ]
    path.write_text("\n".join(lines))
    return path


def run(folder: Path, data: Path, out: str, kill_after: int = 0) -> subprocess.CompletedProcess:
    script = folder / "run.py"
    script.write_text(SCRIPT)
    words = [sys.executable, str(script), str(data), str(folder / out), str(kill_after)]
    return subprocess.run(words, capture_output=True, text=True, env={**os.environ}, check=False)


def test_memory_does_not_grow_and_a_killed_scan_goes_on(tmp_path):
    few, many = (questions(tmp_path / f"{count}.csv", count) for count in (1000, 10_000))
    small = run(tmp_path, few, "few.zarr")
    killed = run(tmp_path, many, "many.zarr", kill_after=100_000)
    assert killed.returncode == -signal.SIGKILL
    done = ob.load(tmp_path / "many.zarr")
    assert 0 < done.share_done < 1
    resumed = run(tmp_path, many, "many.zarr")
    assert resumed.stdout.startswith("True"), resumed.stderr
    whole = run(tmp_path, many, "whole.zarr")
    first, second = (int(one.stdout.split()[1]) for one in (small, whole))
    assert second - first < 60  # megabytes, of which the file and its texts need a part
    for name in ("probabilities", "position", "correct"):
        a, b = (ob.load(tmp_path / out).data[name].values for out in ("many.zarr", "whole.zarr"))
        assert np.array_equal(a, b)
