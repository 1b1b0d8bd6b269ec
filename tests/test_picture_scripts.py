"""The scripts that draw the pictures of the documentation run, in a copy of it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
QUICK = ("audits", "groups")
SLOW = ("calibration", "causes", "decisions", "gallery", "metrics", "training", "uncertainty")
NEEDS = {
    **dict.fromkeys(("calibration", "decisions", "gallery", "training", "uncertainty"), "mlxtend"),
    "causes": "sklearn",
}


@pytest.mark.parametrize(
    "name",
    [
        *(pytest.param(name, marks=pytest.mark.docs) for name in QUICK),
        *(pytest.param(name, marks=pytest.mark.slow) for name in SLOW),
    ],
)
def test_a_picture_script_draws_what_the_documentation_shows(name: str, tmp_path: Path) -> None:
    pytest.importorskip(NEEDS.get(name, "matplotlib"))
    shutil.copytree(ROOT / "docs", tmp_path / "docs")
    shutil.copytree(ROOT / "audits" / "results", tmp_path / "audits" / "results")
    before = _written(tmp_path / "docs")
    script = tmp_path / "docs" / "figures" / f"{name}.py"
    run = subprocess.run(
        [sys.executable, script],
        cwd=tmp_path,
        env={**os.environ, "MPLBACKEND": "Agg"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    after = _written(tmp_path / "docs")
    assert after.keys() == before.keys()  # a new picture is one that the documentation lacks
    assert any(after[path] > before[path] for path in after) or run.stdout


def _written(folder: Path) -> dict[Path, int]:
    """Return when each picture or page was written."""
    kinds = {".png", ".webp", ".svg", ".md"}
    return {path: path.stat().st_mtime_ns for path in folder.rglob("*") if path.suffix in kinds}
