"""Every committed page is what its study writes from the committed results."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from orbical_studies import STUDIES, study
from orbical_studies.__main__ import main
from orbical_studies.framework import Paths, Results
from orbical_studies.framework.page import render


@pytest.fixture(params=STUDIES)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_a_committed_page_is_rendered_from_the_committed_results(name: str) -> None:
    paths = Paths.in_checkout(name)
    text = render(study(name).study, Results(paths.results), paths.template)
    assert text == paths.page.read_text(encoding="utf-8")


def test_the_figures_of_a_page_are_committed_and_no_others(name: str) -> None:
    paths = Paths.in_checkout(name)
    shown = set(re.findall(rf"\({name}/([^)]+\.png)\)", paths.page.read_text(encoding="utf-8")))
    assert shown == {path.name for path in paths.figures.iterdir()}


def test_a_page_without_results_is_refused_in_one_line(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if not Paths.in_checkout(name).results.is_dir():
        pytest.skip(f"{name}: its page needs no results")
    page = tmp_path / "none.md"
    with pytest.raises(SystemExit) as stopped:
        main([name, "page", "--results", str(tmp_path / "none"), "--page", str(page)])
    assert stopped.value.code == 2
    message = capsys.readouterr().err
    assert "there is no file" in message
    assert message.count("\n") == 1
    assert not page.exists()


def test_the_index_leads_to_every_page() -> None:
    text = (Paths.in_checkout("index").page).read_text(encoding="utf-8")
    assert [name for name in STUDIES if f"[{name}]({name}.md)" not in text] == []
