"""The speed and memory that the documentation claims, measured by the benchmark itself."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARK = Path(__file__).resolve().parents[2] / "benchmarks" / "calibration.py"


@pytest.mark.benchmark
@pytest.mark.parametrize("row", ["esd", "mmce", "ece", "interval"])
def test_targets_are_met(row, tmp_path):
    found = tmp_path / "rows.json"
    subprocess.run([sys.executable, str(BENCHMARK), row, "--json", str(found)], check=True)
    missed = [line for line in json.loads(found.read_text())["rows"] if not line["met"]]
    assert not missed
