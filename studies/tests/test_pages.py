"""Every committed page is what its study's report step writes from the committed CSV files."""

from __future__ import annotations

import importlib
from pathlib import Path
from types import ModuleType

import pytest

from orbical.errors import InputError
from orbical_studies import STUDIES, study
from orbical_studies.pages import fill

DOCS = Path(__file__).parents[2] / "docs" / "studies"


def page_module(name: str) -> ModuleType:
    """Find what writes a study's page."""
    return importlib.import_module(f"orbical_studies.{STUDIES[name].module}.page")


@pytest.mark.parametrize("name", STUDIES)
def test_a_committed_page_says_what_its_csv_files_say(name: str) -> None:
    page = page_module(name)
    if not hasattr(page, "tables_of"):
        pytest.skip(f"{name}: its tables are not made from CSV files")
    text = (DOCS / f"{name}.md").read_text(encoding="utf-8")
    tables = page.tables_of(DOCS / name)
    assert fill(text, tables) == text
    unused = [table for table in tables if f"<!-- table: {table} -->" not in text]
    assert unused == []


@pytest.mark.parametrize("name", [name for name in STUDIES if name != "examples"])
def test_a_report_without_results_is_refused(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "none.md"
    with pytest.raises(SystemExit) as stopped:
        study(name).main(["report", "--page", str(page)])
    assert stopped.value.code == 2
    assert "there is no file" in capsys.readouterr().err
    assert not page.exists()


def test_the_index_leads_to_every_page() -> None:
    text = (DOCS / "index.md").read_text(encoding="utf-8")
    assert [name for name in STUDIES if f"[{name}]({name}.md)" not in text] == []


def test_a_page_that_asks_for_an_unknown_table_is_refused() -> None:
    with pytest.raises(InputError, match="asks for the table 'other'"):
        fill("<!-- table: other --><!-- end -->", {"ece": ""})
