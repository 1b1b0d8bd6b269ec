"""`orbical demo detection`: generated scenes, shipped weights, nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from orbical import load
from orbical.cli.demos import DemoOptions, find_demo

pytestmark = pytest.mark.docs


def test_the_demo_scans_generated_scenes_with_shipped_detectors(
    tmp_path: Path, monkeypatch
) -> None:
    demo = find_demo("detection")
    monkeypatch.setattr(demo, "STEP", 16)  # 25 shifts instead of 289
    made = demo.run(DemoOptions("detection", tmp_path, 4, overwrite=False))
    scan = load(tmp_path / "detection.zarr")
    assert {*scan.models} == {*made.models} == {"centered", "jittered"}
    mean = scan.data["score"].mean(("sample", "element"))
    assert float(mean.sel(model="jittered")) > 0.7 > 0.3 > float(mean.sel(model="centered"))
    assert scan.data["input"].shape == (4, 3, 192, 192)
    assert scan.record.task.settings["classes"] == ["disc", "square", "triangle", "cross", "ring"]
    assert {*made.figures} == {"aggregate", "individual"}
