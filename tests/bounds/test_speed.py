"""The speed that is claimed for bounds: the rows of benchmarks/bounds.py meet their targets."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks"


@pytest.mark.benchmark
@pytest.mark.parametrize("row", ["classification_bounds", "matching"])
def test_the_benchmark_meets_its_targets(row: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if not FOLDER.is_dir():
        pytest.skip("benchmarks absent: this is not a checkout")
    monkeypatch.syspath_prepend(str(FOLDER))
    spec = importlib.util.spec_from_file_location("bounds_benchmark", FOLDER / "bounds.py")
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "bounds_benchmark", module)
    spec.loader.exec_module(module)
    for result in getattr(module, row)():
        assert result.met, result
