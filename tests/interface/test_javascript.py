"""The front end's own tests, run by node."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

TESTS = sorted((Path(__file__).resolve().parents[1] / "web").glob("*.test.mjs"))


@pytest.mark.parametrize("path", TESTS, ids=lambda path: path.name.removesuffix(".test.mjs"))
def test_the_front_end_passes_its_tests_in_node(path: Path) -> None:
    program = shutil.which("node")
    if program is None:
        pytest.skip("node is not installed")
    # Without --test, which would start a second process to watch the first.
    done = subprocess.run([program, str(path)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
