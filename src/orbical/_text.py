"""Text that leaves the program, without what a terminal, a spreadsheet or a parser would act on.

Names of models, samples and classes come from stores and files of others.
"""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from numbers import Real
from typing import Any, SupportsFloat

_UNSAFE = re.compile("[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]")
"""Control characters, among them those that reverse the direction of text, and what XML forbids."""
_FORMULA = ("=", "+", "-", "@")


def printable(text: object) -> str:
    r"""Replace each control character by a question mark.

    >>> printable("model\x1b]0;title\x07")
    'model?]0;title?'
    """
    return _UNSAFE.sub("?", str(text))


def counted(count: int, thing: str) -> str:
    """Write a number of things, in the plural unless it is one.

    >>> counted(1, "model"), counted(8192, "element")
    ('1 model', '8,192 elements')
    """
    return f"{count:,} {thing}" if count == 1 else f"{count:,} {thing}s"


def first_names(names: Sequence[str], most: int = 3) -> str:
    """List the first of some names.

    >>> first_names(["a", "b", "c", "d"])
    'a, b, c, ...'
    """
    return ", ".join(names[:most]) + (", ..." if len(names) > most else "")


def number(value: SupportsFloat) -> str:
    """Write a number in a sentence: four digits, without trailing zeros.

    >>> [number(value) for value in (0.5, 1234.56, 3.21e-6, float("nan"))]
    ['0.5', '1235', '3.21e-06', 'nan']
    """
    return f"{float(value):.4g}"


def in_column(value: SupportsFloat) -> str:
    """Write a number below others: at most four decimals, and few where it is far from 1.

    >>> [in_column(value) for value in (0.57079, 427.36812, 16292.7, 3.2e-6, -1.24e7, 0.0)]
    ['0.5708', '427.37', '16293', '3.2e-06', '-1.2e+07', '0']
    """
    value = float(value)
    size = abs(value)
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    if size < 1e-3 or size >= 1e5:
        return f"{value:.1e}"
    return f"{value:.{max(0, min(4, 4 - math.floor(math.log10(size))))}f}"


def p_value(value: SupportsFloat) -> str:
    """Write a p-value; what is smaller than three decimals show is no more precise than that.

    >>> [p_value(value) for value in (0.0, 0.00099, 0.001, 0.0466, 1.0)]
    ['< 0.001', '< 0.001', '0.001', '0.047', '1.000']
    """
    return "< 0.001" if float(value) < 0.001 else f"{float(value):.3f}"


def plain(value: object) -> str:
    """Write a label: a number without trailing zeros, anything else as it is.

    >>> plain(45.0), plain("cat")
    ('45', 'cat')
    """
    return f"{value:g}" if isinstance(value, Real) else str(value)


def on_scale(value: float, largest: float) -> str:
    """Write a value beside others, of which the largest has three digits.

    >>> on_scale(0.25, 1.0), on_scale(12.3, 450.0), on_scale(2e-3, 5e-3)
    ('0.25', '12', '0.00200')
    >>> on_scale(2e-7, 5e-6), on_scale(1e-14, 1e-9)
    ('2.0e-07', '0')
    """
    if 0 < largest < 1e-4:
        return f"{value:.1e}" if abs(value) >= 1e-3 * largest else "0"
    decimals = min(6, max(0, 2 - math.floor(math.log10(largest or 1.0))))
    return f"{value:.{min(decimals, 2) if largest >= 0.1 else decimals}f}"


def percent(share: SupportsFloat, decimals: int = 0) -> str:
    """Write a share in percent.

    >>> percent(0.95), percent(0.1234, 1)
    ('95%', '12.3%')
    """
    return f"{float(share):.{decimals}%}"


def common_beginning(texts: Collection[Any]) -> int:
    """Return how many of their first letters, or tokens, all texts share.

    >>> common_beginning(["prob_cat", "prob_dog"]), common_beginning([(1, 2, 3), (1, 2, 4), (1, 5)])
    (5, 1)
    """
    first, last = min(texts), max(texts)  # of sorted texts, the others are between these
    alike = (place for place, (a, b) in enumerate(zip(first, last, strict=False)) if a != b)
    return next(alike, min(len(first), len(last)))


def json_values(value: object) -> Any:
    """Convert arrays, numbers and containers to what JSON has; no number that is not finite.

    >>> import numpy as np
    >>> json_values({"a": float("nan"), "b": (np.int64(1), np.float32(0.5)), "c": np.zeros(2)})
    {'a': None, 'b': [1, 0.5], 'c': [0.0, 0.0]}
    """
    if isinstance(value, Mapping):
        return {str(key): json_values(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [json_values(part) for part in value]
    if hasattr(value, "tolist"):  # of NumPy
        return json_values(value.tolist())
    return None if isinstance(value, float) and not math.isfinite(value) else value


def csv_text(rows: Iterable[Iterable[object]]) -> str:
    """Write rows as CSV; text that a spreadsheet would run as a formula gets a leading quote.

    >>> csv_text([["name", "value"], ["=1+1", -0.5]])
    "name,value\\n'=1+1,-0.5\\n"
    """
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([_cell(value) for value in row] for row in rows)
    return text.getvalue()


def _cell(value: object) -> object:
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
