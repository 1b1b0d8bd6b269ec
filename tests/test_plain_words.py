"""Pages for users say things in the words of the field."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
PAGES = [
    *ROOT.glob("*.md"),
    *DOCS.rglob("*.md"),
    *DOCS.rglob("*.ipynb"),
    *ROOT.glob("studies/pages/*.md"),
]
INSTEAD = {
    r"(how|too|so|as|more|less) sure": "confident",
    r"sure(r|ness)": "confidence",
    r"turned (by|upside|about)": "rotated",
    r"trainings": "runs",
    r"the likelihood alone": "cross-entropy",
    r"nam(e|es|ed) \S+ rightly": "classifies correctly",
    r"(?<!there )is no (file|folder|number|image|name|store|scan|failure|property)": "is not a",
    r"(has|have) not(?=[.,;:)])": "does not have",
    r"its kin": "related",
    r"[\d.]+ us": "µs",
    r"unlike most of (its|their) orbit": "breaks the symmetry",
}
"""Expressions that a reader stumbles over, and what to write in their place."""
NOT_PROSE = re.compile(
    r"^```.*?^```|`[^`\n]+`|\{[{%].*?[%}]\}|\]\([^)]*\)|<[^>]*>", re.DOTALL | re.MULTILINE
)


def prose(text: str, notebook: bool = False) -> str:
    """Return the sentences of a page, without code, formulas of templates and links."""
    if notebook:
        cells = json.loads(text)["cells"]
        text = "\n".join("".join(c["source"]) for c in cells if c["cell_type"] == "markdown")
    return NOT_PROSE.sub(" ", text)


def private(text: str) -> dict[str, str]:
    """Return what a text should not say, with what it should say."""
    found = {}
    for expression, better in INSTEAD.items():
        for one in re.finditer(rf"\b{expression}\b", text, re.IGNORECASE):
            found[one[0]] = better
    return found


def test_pages_use_the_words_of_the_field() -> None:
    said = {
        page.relative_to(ROOT).as_posix(): private(
            prose(page.read_text(encoding="utf-8"), page.suffix == ".ipynb")
        )
        for page in PAGES
    }
    assert {page: words for page, words in said.items() if words} == {}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("The network is too sure.", ["too sure"]),
        ("Turned by 90° it is no image.", ["Turned by", "is no image"]),
        ("a class that these data have not.", ["have not"]),
        ("It takes 12.5 us.", ["12.5 us"]),
        ("They have not changed. There is no image. `trainings.csv`", []),
        ("![Runs](trainings.png) was returned by `scan`", []),
    ],
)
def test_what_is_refused_and_what_is_not(text: str, words: list[str]) -> None:
    assert sorted(private(prose(text))) == sorted(words)
