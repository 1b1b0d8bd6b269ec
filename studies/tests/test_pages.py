"""Every committed page is what its study writes from the committed results."""

from __future__ import annotations

import operator
import re
from pathlib import Path

import pytest
from markdown.extensions.toc import slugify

import orbical
from orbical_studies import INDEX, STUDIES, study
from orbical_studies.__main__ import main
from orbical_studies.framework import Paths, Results
from orbical_studies.framework.page import anchors, parted, render


@pytest.fixture(params=STUDIES)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.mark.parametrize("name", [*STUDIES, INDEX])
def test_a_committed_page_is_rendered_from_the_committed_results(name: str) -> None:
    paths = Paths.in_checkout(name)
    text = render(study(name).study, Results(paths.results), paths.template)
    page, protocol = parted(text, name)
    assert page == paths.page.read_text(encoding="utf-8")
    assert not protocol or protocol == paths.protocol.read_text(encoding="utf-8")


def test_the_figures_of_a_page_are_committed_and_no_others(name: str) -> None:
    paths = Paths.in_checkout(name)
    shown = re.findall(rf"\({name}/([^)]+\.png)\)", paths.page.read_text(encoding="utf-8"))
    shown += re.findall(r"\(([^)/]+\.png)\)", paths.protocol.read_text(encoding="utf-8"))
    assert {*shown} == {path.name for path in paths.figures.glob("*.png")}


@pytest.mark.parametrize("name", [*STUDIES, INDEX])
def test_a_page_is_short(name: str) -> None:
    text = Paths.in_checkout(name).page.read_text(encoding="utf-8")
    assert sum(any(map(str.isalnum, word)) for word in text.split()) <= 1200
    assert f"({name}/protocol.md" in text


def test_a_page_shows_its_verdicts(name: str) -> None:
    text = Paths.in_checkout(name).page.read_text(encoding="utf-8")
    assert re.search(r"^\| .*(verdict|decide) \|$", text, re.MULTILINE)


def test_no_link_of_a_page_or_protocol_is_dead(name: str) -> None:
    paths = Paths.in_checkout(name)
    for page in (paths.page, paths.protocol):
        for link in re.findall(r"\]\(([^)]+)\)", page.read_text(encoding="utf-8")):
            path, _, part = link.partition("#")
            target = page.parent / path if path else page
            assert "//" in link or target.is_file(), link
            if part and target.suffix == ".md" and not part.startswith("orbical."):
                assert f"#{part}" in anchors(target.read_text(encoding="utf-8")), link


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
    text = Paths.in_checkout(INDEX).page.read_text(encoding="utf-8")
    assert [name for name in STUDIES if f"[{name}]({name}.md)" not in text] == []
    pictures = [path.stem for path in _targets(text) if path.suffix == ".webp"]
    assert sorted(pictures) == sorted(f"study-{name}" for name in STUDIES)


def _numbered(*items: str) -> list[str]:
    """Write `Fig.:3` as three items."""
    parts = [item.partition(":") for item in items]
    return [f"{kind} {n + 1}" for kind, _, last in parts for n in range(int(last))]


ITEMS = {
    "P1": [
        *_numbered("Fig.:13", "Table:2", "Thm:8", "Prop.:6", "Cor.:2"),
        *_numbered("Ex.:6", "Remark:3", "Note:1"),
        *("Eq. 5", "Def. 7", "App. A", "Sec. 7"),
        *("ε LUMO", "Δε", "U₀", "U", "U₀ atom", "G atom", "A", "B", "C", "⟨R²⟩"),
    ],
    "P2": [
        *_numbered("Fig.:6", "Table:3", "Thm:3"),
        *("Eq. 3", "Eq. 9", "Eq. 10", "App. C", "App. D", "Lemma 1.1", "Lemma 2.1"),
        *("Lemma 3.1", "Lemma 3.2", "Lemma 3.3", "Lemma 3.4"),
        *("MNIST", "CIFAR-10", "CIFAR-100", "ImageNet-100", "SNLI", "ANLI"),
    ],
    "P3": [*_numbered("Fig.:13"), "App. C", "future work"],
}
VERDICTS = {
    *("confirmed", "not confirmed here", "contradicted"),
    *("corrected", "open", "impossible here", "reproduced"),
}


def _rows() -> list[list[str]]:
    text = Paths.in_checkout(INDEX).protocol.read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if re.match(r"\| P\d ", line)]
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines]


def test_the_index_judges_every_item_of_the_papers() -> None:
    found = {(row[0][:2], item) for row in _rows() for item in row[0][3:].split(", ")}
    wanted = {(paper, item) for paper, items in ITEMS.items() for item in items}
    assert wanted - found == set()
    for row in _rows():
        words = re.findall(r"\*\*(.+?)\*\*", row[3])
        assert {word.split(" in ")[0] for word in words or ["none"]} <= VERDICTS, row


def _targets(text: str) -> list[Path]:
    folder = Paths.in_checkout(INDEX).page.parent
    return [folder / link.partition("#")[0] for link in re.findall(r"\]\(([^)]+)\)", text)]


def test_no_link_of_the_index_is_dead() -> None:
    paths = Paths.in_checkout(INDEX)
    assert all(len(row) == 6 and "](" in row[4] and row[5] for row in _rows())
    for page in (paths.page, paths.protocol):
        for link in re.findall(r"\]\(([^)]+)\)", page.read_text(encoding="utf-8")):
            path, _, part = link.partition("#")
            target = page.parent / path if path else page
            assert target.is_file(), link
            if part.startswith("orbical."):
                operator.attrgetter(part.removeprefix("orbical."))(orbical)
                continue
            assert not part or f"#{part}" in anchors(target.read_text("utf-8")), link


def test_anchors_are_those_of_the_site() -> None:
    headings = ["The paper's regime", "Fig. 5: λ – and ε", "C_12 (size) & more"]
    assert anchors("\n".join(f"## {each}" for each in headings)) == {
        f"#{slugify(each, '-')}" for each in headings
    }
