"""What the search of the site does not index, as a hook of mkdocs: the source code of functions.

It is most of the reference by size. Whoever searches for a word looks for what is said about it.
"""

from __future__ import annotations

import re
from typing import Any

from mkdocs.plugins import CombinedEvent, event_priority

SOURCE = re.compile(r'<details class="mkdocstrings-source">.*?</details>', re.DOTALL)
_whole: dict[str, str] = {}


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
