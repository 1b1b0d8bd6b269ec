"""What every study's page needs: tables between markers, and CSV files that they come from.

To be removed: `framework` replaces it, and only studies in `NOT_YET_PORTED` still use it.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from orbical.errors import InputError

Row = dict[str, Any]
_MARKER = re.compile(r"<!-- table: ([\w-]+) -->.*?<!-- end -->", re.DOTALL)


def markdown(header: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """Write a Markdown table.

    >>> print(markdown(["group", "error"], [["C4", "0.05"]]))
    | group | error |
    | --- | --- |
    | C4 | 0.05 |
    """
    ruled = [header, ["---"] * len(header), *lines]
    return "\n".join("| " + " | ".join(line) + " |" for line in ruled)


def fill(text: str, tables: Mapping[str, str]) -> str:
    """Put tables between their markers, `<!-- table: NAME -->` and `<!-- end -->`.

    Args:
        text: the page.
        tables: name to Markdown.

    >>> print(fill("<!-- table: a --> old <!-- end -->", {"a": "new"}))
    <!-- table: a -->
    <BLANKLINE>
    new
    <BLANKLINE>
    <!-- end -->
    """

    def table(match: re.Match[str]) -> str:
        if match[1] not in tables:
            raise InputError(f"page: it asks for the table {match[1]!r}; there is {list(tables)}")
        return f"<!-- table: {match[1]} -->\n\n{tables[match[1]]}\n\n<!-- end -->"

    return _MARKER.sub(table, text)


def write_page(path: Path, tables: Mapping[str, str]) -> Path:
    """Fill a page in place; where there is none yet, write one that holds the tables alone."""
    if path.is_file():
        text = path.read_text(encoding="utf-8")
    else:
        text = "\n\n".join(f"<!-- table: {name} -->\n<!-- end -->" for name in tables) + "\n"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(fill(text, tables), encoding="utf-8")
    return path


def write_csv(path: Path, rows: Sequence[Row]) -> Path:
    """Write rows of numbers and words; numbers with six digits, absent ones empty."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, names, restval="", lineterminator="\n")
        writer.writeheader()
        for row in rows:
            writer.writerow({k: f"{v:.6g}" if isinstance(v, float) else v for k, v in row.items()})
    return path


def read_csv(path: Path) -> list[Row]:
    """Read what `write_csv` wrote: whole numbers, numbers, words; empty cells are left out.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     read_csv(write_csv(Path(folder) / "a.csv", [{"group": "C4", "n": 4, "error": 0.25}]))
    [{'group': 'C4', 'n': 4, 'error': 0.25}]
    """
    if not path.is_file():
        raise InputError(f"results: there is no file {str(path)!r}; run the study first")
    with path.open(newline="", encoding="utf-8") as file:
        return [
            {name: _value(text) for name, text in line.items() if text}
            for line in csv.DictReader(file)
        ]


def _value(text: str) -> Any:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def fewer_colours(path: Path, colours: int) -> Path:
    """Store a picture with so many colours, at most 256, in about a third of the space."""
    from PIL import Image

    with Image.open(path) as picture:
        reduced = picture.convert("RGB").quantize(colours)
    reduced.save(path, optimize=True)
    return path


def mean(values: Iterable[float]) -> float:
    """Average, over seeds mostly.

    >>> mean([1.0, 2.0])
    1.5
    """
    found = list(values)
    return sum(found) / len(found)


def verdict(holds: bool) -> str:
    """Say whether a sentence of a paper is borne out by the numbers.

    >>> verdict(0.9 > 0.5), verdict(float("nan") > 0.5)
    ('confirmed', 'not confirmed here')
    """
    return "confirmed" if holds else "not confirmed here"


def number(value: float) -> str:
    """Write a number with three figures, more where it is large; rounding errors are 0.

    >>> number(129.3982), number(8.2), number(0.01234), number(7.2e-08), number(1e-29)
    ('129.40', '8.20', '0.0123', '7.2e-08', '0')
    """
    size = abs(value)
    if size < 1e-15:
        return "0"
    if size < 1e-3:
        return f"{value:.1e}"
    return f"{value:.2f}" if size >= 10 else f"{value:#.3g}"


def about(values: Sequence[float], write: Callable[[float], str] = number) -> str:
    """Write the mean over seeds and the standard deviation beside it, each by `write`.

    >>> about([129.0, 130.0]), about([0.1]), about([])
    ('129.50 ± 0.707', '0.100', '')
    """
    if not values:
        return ""
    middle = mean(values)
    if len(values) < 2:
        return write(middle)
    variance = sum((value - middle) ** 2 for value in values) / (len(values) - 1)
    return f"{write(middle)} ± {write(variance**0.5)}"


def spread(values: Sequence[float], digits: int = 3) -> str:
    """Write the mean over seeds and the standard deviation with so many digits.

    >>> spread([0.1, 0.2, 0.3]), spread([0.1])
    ('0.200 ± 0.100', '0.100')
    """
    return about(values, lambda value: f"{value:.{digits}f}")
