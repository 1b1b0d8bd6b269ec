"""What the search of the site finds first, as a hook of mkdocs, and what it does not index.

Answers come before reference and experiments. The source code of functions is most of the
reference by size; whoever searches for a word looks for what is said about it.
"""

from __future__ import annotations

import re
from typing import Any

from mkdocs.plugins import CombinedEvent, event_priority

SOURCE = re.compile(r'<details class="mkdocstrings-source">.*?</details>', re.DOTALL)
BOOSTS = {
    **{"faq": 4, "install": 4, "glossary": 3, "guide": 2, "tutorials": 1.5, "cli": 1, "api": 0.6},
    **{"audits": 0.5, "benchmarks": 0.5, "studies": 0.4, "design": 0.4, "releasing": 0.3},
}
"""How much a word counts on a page or in a folder; elsewhere 1."""
_whole: dict[str, str] = {}


def on_page_markdown(text: str, page: Any, **_: Any) -> str:
    """Set how much the words of a page count."""
    place = page.file.src_uri.split("/")[0].removesuffix(".md")
    page.meta.setdefault("search", {"boost": BOOSTS.get(place, 1)})
    return text


@event_priority(100)  # before the search reads the page
def _leave_source_out(context: Any, page: Any, **_: Any) -> Any:
    _whole[page.url] = page.content
    page.content = SOURCE.sub("", page.content)
    return context


@event_priority(-100)  # after it
def _put_source_back(context: Any, page: Any, **_: Any) -> Any:
    page.content = _whole.pop(page.url)
    return context


on_page_context = CombinedEvent(_leave_source_out, _put_source_back)
