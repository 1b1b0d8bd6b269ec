"""Text that leaves the program, without what a terminal, a spreadsheet or a parser would act on.

Names of models, samples and classes come from stores and files of others.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable
from typing import Any

_UNSAFE = re.compile("[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]")
"""Control characters, among them those that reverse the direction of text, and what XML forbids."""
_FORMULA = ("=", "+", "-", "@")


def printable(text: object) -> str:
    r"""Replace each control character by a question mark.

    >>> printable("model\x1b]0;title\x07")
    'model?]0;title?'
    """
    return _UNSAFE.sub("?", str(text))


def counted(number: int, thing: str) -> str:
    """Write a number of things, in the plural unless it is one.

    >>> counted(1, "model"), counted(8, "element")
    ('1 model', '8 elements')
    """
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"


def csv_text(rows: Iterable[Iterable[Any]]) -> str:
    """Write rows as CSV; text that a spreadsheet would run as a formula gets a leading quote.

    >>> csv_text([["name", "value"], ["=1+1", -0.5]])
    "name,value\\n'=1+1,-0.5\\n"
    """
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([_cell(value) for value in row] for row in rows)
    return text.getvalue()


def _cell(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    text = printable(value)
    return f"'{text}" if text.startswith(_FORMULA) and not _is_number(text) else text


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
