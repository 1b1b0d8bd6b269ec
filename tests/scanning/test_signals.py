"""Signals: a driver that is ended in any way leaves no process and no recipe behind."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import orbical as ob

pytestmark = [
    pytest.mark.system,
    pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="needs /proc"),
]

NETS = """
import time, torch
torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 10))

def slow(x):
    time.sleep(0.05)
    return net(x)
"""
SCAN = [
    *("scan", "--data", "digits.npz", "--group", "rotations:8", "--task", "classification"),
    *("--out", "run.zarr", "--batch-size", "8", "--chunk", "4", "-m", "slow=nets:slow"),
]


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "nets.py").write_text(NETS)
    images, labels = ob.datasets.digits()
    np.savez(tmp_path / "digits.npz", x=images[:200], y=labels[:200])
    return tmp_path


def started(folder, *words):
    """Start a scan, with the usual handlers whatever the shell of the tests has set."""

    def usual():
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)

    return subprocess.Popen(
        [sys.executable, "-m", "orbical", *SCAN, *words],
        cwd=folder,
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        preexec_fn=usual,
    )


def descendants(pid):
    """The processes that a process and its children have started."""
    try:
        listed = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return []
    return [int(child) for child in listed] + [grand for c in listed for grand in descendants(c)]


def is_alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def wait_until(reached, process=None):
    while not reached():
        assert process is None or process.poll() is None, process.stderr.read()
        time.sleep(0.02)


@pytest.mark.parametrize("words", [(), ("--workers", "2")], ids=["alone", "workers"])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
def test_nothing_is_left_of_a_scan_that_is_ended(folder, number, words):
    process = started(folder, *words)
    wait_until(lambda: [*folder.glob("run.zarr/units/0.*.json")], process)
    children = descendants(process.pid)
    assert len(children) >= 2 * bool(words)
    process.send_signal(number)
    _, errors = process.communicate(timeout=120)
    if number != signal.SIGKILL:
        assert process.returncode == 130
        assert "run the same scan again to continue" in errors
        assert "Traceback" not in errors
    wait_until(lambda: not any(map(is_alive, children)))
    wait_until(lambda: [path.name for path in folder.glob(".run.zarr*")] == [])
    assert 0 < ob.load(folder / "run.zarr").share_done < 1


def test_a_recipe_is_readable_by_its_owner_only(folder):
    process = started(folder, "--workers", "2")
    wait_until(lambda: [*folder.glob(".run.zarr.recipe*")], process)
    (recipe,) = folder.glob(".run.zarr.recipe*")
    assert recipe.stat().st_mode & 0o077 == 0
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=120)
    assert not recipe.exists()


IDLE = """
import multiprocessing, os, time
from concurrent.futures import ProcessPoolExecutor
from orbical.scanning.executors import crew_of

if __name__ == "__main__":
    given = ProcessPoolExecutor(1, multiprocessing.get_context("fork"))
    print(crew_of(given, None).submit(None, os.getpid).result(), flush=True)
    time.sleep(600)
"""


def test_a_worker_that_never_had_a_unit_ends_with_its_driver(tmp_path):
    (tmp_path / "driver.py").write_text(IDLE)
    driver = subprocess.Popen(
        [sys.executable, tmp_path / "driver.py"], stdout=subprocess.PIPE, text=True
    )
    assert driver.stdout is not None
    worker = int(driver.stdout.readline())
    assert is_alive(worker)
    driver.kill()
    driver.wait()
    wait_until(lambda: not is_alive(worker))
