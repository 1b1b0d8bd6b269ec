"""The tutorials are notebooks without outputs, which run whenever the site is built."""

from __future__ import annotations

import json
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

pytestmark = pytest.mark.docs

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "docs" / "tutorials"
NAMES = {
    "audit-a-classifier",
    "audit-an-interatomic-potential",
    "calibrate-under-rotation",
    "does-the-order-matter",
    "scan-a-million-images",
    "which-symmetry-should-i-build-in",
}


def test_all_tutorials_are_listed_and_hold_code_without_outputs() -> None:
    assert {path.stem for path in FOLDER.glob("*.ipynb")} == NAMES
    listed = (FOLDER / "index.md").read_text("utf-8")
    for name in NAMES:
        assert f"({name}.md)" in listed
        cells = json.loads((FOLDER / f"{name}.ipynb").read_text("utf-8"))["cells"]
        outputs = [cell["outputs"] for cell in cells if cell["cell_type"] == "code"]
        assert outputs
        assert not any(outputs)


@pytest.mark.slow
def test_an_error_in_a_cell_ends_the_build(tmp_path: Path, monkeypatch) -> None:
    nbformat = pytest.importorskip("nbformat", reason="nbformat is not installed")
    errors = pytest.importorskip("nbclient.exceptions", reason="nbclient is not installed")
    spec = spec_from_file_location("tutorials", ROOT / "docs" / ".tutorials.py")
    tutorials = module_from_spec(spec)
    spec.loader.exec_module(tutorials)
    monkeypatch.setattr(tutorials, "CACHE", tmp_path / "cache")
    broken = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("1 / 0")])
    nbformat.write(broken, tmp_path / "broken.ipynb")
    with pytest.raises(errors.CellExecutionError, match="ZeroDivisionError"):
        tutorials._executed(tmp_path / "broken.ipynb")
    assert list((tmp_path / "cache").iterdir()) == []
