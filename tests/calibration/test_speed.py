"""The speed and memory that the documentation claims, measured by the benchmark itself."""

from __future__ import annotations

import json
import subprocess
import sys
import warnings
from pathlib import Path

import analysis
import pytest

import orbical as ob

BENCHMARK = Path(__file__).resolve().parents[2] / "benchmarks" / "calibration.py"


@pytest.mark.benchmark
@pytest.mark.parametrize("row", ["esd", "mmce", "ece", "interval"])
def test_targets_are_met(row, tmp_path):
    found = tmp_path / "rows.json"
    subprocess.run([sys.executable, str(BENCHMARK), row, "--json", str(found)], check=True)
    missed = [line for line in json.loads(found.read_text())["rows"] if not line["met"]]
    assert not missed


@pytest.mark.parametrize("work", analysis.ORBIT_WORK)
def test_what_the_analysis_benchmark_measures_runs_on_a_small_scan(work, small_store, monkeypatch):
    monkeypatch.setattr(sys, "argv", [])
    monkeypatch.setattr(warnings, "showwarning", warnings.showwarning)  # the command sets its own
    known = {"ob": ob, "command": analysis.command, "store": small_store}
    eval(analysis.ORBIT_WORK[work], known)


@pytest.fixture(scope="module")
def small_store(tmp_path_factory):
    path = tmp_path_factory.mktemp("analysis") / "run.zarr"
    analysis.synthetic_scan(path, samples=60, elements=6)
    return str(path)


@pytest.mark.benchmark
@pytest.mark.parametrize("row", ["orbit_memory", "report", "saved_outputs"])
def test_analysis_meets_its_targets(row):
    missed = [found for found in getattr(analysis, row)() if not found.met]
    assert not missed
