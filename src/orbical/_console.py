"""The console of the commands: rich's, without the control characters of what it is given."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import rich.console
from rich.segment import Segment

from ._text import printable


class Console(rich.console.Console):
    """A console on which names from elsewhere cannot move the cursor, change colors or set titles.

    Styles of our own are no part of the text here: rich adds their codes later. Colons are colons:
    a group such as `homographies:20:5:100` is not written with an emoji.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **{"emoji": False} | options)

    def render(self, *args: Any, **options: Any) -> Iterable[Segment]:
        """Render as rich does, with plain text in every segment."""
        for text, style, control in super().render(*args, **options):
            lines = text if control else "\n".join(map(printable, text.split("\n")))
            yield Segment(lines, style, control)
