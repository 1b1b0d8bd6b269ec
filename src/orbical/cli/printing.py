"""How results are printed: on the console, as JSON, CSV, Markdown and LaTeX."""

from __future__ import annotations

import inspect
import json
import math
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import wraps
from itertools import groupby
from typing import Annotated, Any, NamedTuple

import typer

from .._text import csv_text, in_column, json_values, printable
from ..errors import InputError

_FORMATS = {
    "json": "Print the results as JSON.",
    "csv": "Print the results as CSV.",
    "markdown": "Print Markdown tables.",
    "latex": "Print LaTeX tables.",
}
_SIGNS = {sign: f"\\{sign}" for sign in "&%$#_{}"}
_SIGNS |= {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}


class Number(NamedTuple):
    """A number, with what belongs to it: its standard deviation, or its interval and a note."""

    value: float
    spread: float | None = None
    interval: tuple[float, float] | None = None
    note: str = ""
    bold: bool = False


def with_interval(row: Any, name: str, note: str = "") -> Number:
    """Return a number of a table with its ends, `name_low` and `name_high`.

    >>> with_interval({"ece": 0.1, "ece_low": 0.0, "ece_high": 0.2}, "ece")
    Number(value=0.1, spread=None, interval=(0.0, 0.2), note='', bold=False)
    """
    value, low, high = (float(row[f"{name}{end}"]) for end in ("", "_low", "_high"))
    return Number(value, interval=(low, high), note=note)


class Span(NamedTuple):
    """An interval."""

    low: float
    high: float


Cell = str | Number | Span
Columns = dict[str, Callable[[Any], Cell]]
"""The columns of a table by their headings: how each writes a row."""


@dataclass(frozen=True)
class Sheet:
    """A table: `name`, and `about` on the console, are its title.

    Where tables with the same headings are joined, `corner` is the heading of their names.
    """

    name: str
    headings: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    about: str = ""
    caption: str = ""
    corner: str = ""

    @classmethod
    def of(cls, name: str, rows: Iterable[Any], columns: Columns, **texts: str) -> Sheet:
        """Make a table with a row for each object.

        >>> Sheet.of("", [0.5], {"share": Number, "as text": str}).rows
        [[Number(value=0.5, spread=None, interval=None, note='', bold=False), '0.5']]
        """
        cells = [[write(row) for write in columns.values()] for row in rows]
        return cls(name, [*columns], cells, **texts)


def format_flags(*formats: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Add a flag for each format to a command, which takes the one chosen as `format_`."""
    flags = []
    for name in formats:
        kind = inspect.Parameter.KEYWORD_ONLY
        flag = Annotated[bool, typer.Option(f"--{name}", help=_FORMATS[name])]
        flags.append(inspect.Parameter(f"as_{name}", kind, default=False, annotation=flag))

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        parameters = inspect.signature(command, eval_str=True).parameters.items()

        @wraps(command)
        def run(*args: object, **options: object) -> None:
            chosen = [name for name in formats if options.pop(f"as_{name}", False)]
            if len(chosen) > 1:
                given = ", ".join(f"--{name}" for name in chosen)
                raise InputError(given, "at most one of them", len(chosen))
            command(*args, **options, format_=(chosen or ["text"])[0])

        kept = [parameter for name, parameter in parameters if name != "format_"]
        run.__signature__ = inspect.Signature([*kept, *flags])  # type: ignore[attr-defined]
        return run

    return decorate


def print_results(
    format_: str,
    content: object,
    sheets: Sequence[Sheet] = (),
    footer: str = "",
    records: Iterable[Mapping[str, object]] | None = None,
) -> None:
    """Print results in a format: the content, its `records`, or sheets with a footer."""
    if format_ == "json":
        print_json(content)
    elif format_ == "csv":
        rows: Any = content if records is None else records
        keys = list(dict.fromkeys(key for row in rows for key in row))
        sys.stdout.write(csv_text([keys, *([row.get(key) for key in keys] for row in rows)]))
    elif format_ == "text":
        for sheet in sheets:
            _print_sheet(sheet)
        if footer:
            typer.echo(footer)
    else:
        for joined in _joined(sheets):
            typer.echo(latex(joined) if format_ == "latex" else _as_markdown(joined))


def print_json(content: object) -> None:
    """Print JSON that every parser reads: numbers that are not finite become null."""
    sys.stdout.write(json.dumps(json_values(content), indent=2, allow_nan=False) + "\n")


def print_facts(facts: Iterable[tuple[str, object]]) -> None:
    """Print names in bold, and what they are."""
    from rich.table import Table
    from rich.text import Text

    from .._console import Console

    table = Table(show_header=False, box=None, padding=(0, 2))
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    for name, value in facts:
        table.add_row(name, Text(printable(value)))
    Console(soft_wrap=True).print(table)


def _joined(sheets: Iterable[Sheet]) -> Iterable[Sheet]:
    for (corner, headings), same in groupby(sheets, lambda one: (one.corner, [*one.headings])):
        if corner:
            rows = [[sheet.name, *row] for sheet in same for row in sheet.rows]
            yield Sheet("", [corner, *headings], rows)
        else:
            yield from same


def _is_wordy(sheet: Sheet, column: int) -> bool:
    """Check whether a column holds words, not numbers."""
    texts = [cell for row in sheet.rows if isinstance(cell := row[column], str)]
    return len(texts) == len(sheet.rows) and not any(map(_is_number, texts))


def _is_number(text: str) -> bool:
    return text.rstrip("%").replace(".", "", 1).isdigit()


def _as_text(cell: Cell) -> str:
    """Write a cell for the console; a dash where there is no interval.

    >>> _as_text(Number(0.5, spread=0.01)), _as_text(Span(0.0, 1.5)), _as_text(Span(0.0, math.nan))
    ('0.5000 ± 0.0100', '[0, 1.5000]', '-')
    """
    if isinstance(cell, str):
        return cell
    if isinstance(cell, Span):
        return _ends(cell, in_column) or "-"
    spread = "" if cell.spread is None else f" ± {in_column(cell.spread)}"
    return "\n".join([in_column(cell.value) + spread, *_below(cell, _as_text)])


def _ends(span: Span, written: Callable[[float], str]) -> str:
    """Write an interval in brackets, or nothing if its ends are unknown."""
    known = not math.isnan(span.low + span.high)
    return f"[{written(span.low)}, {written(span.high)}]" if known else ""


def _below(cell: Number, written: Callable[[Cell], str]) -> list[str]:
    """Write what belongs to a number: its interval and its note."""
    beside: list[Cell] = [] if cell.interval is None else [Span(*cell.interval)]
    return [written(part) for part in [*beside, cell.note] if part]


def _print_sheet(sheet: Sheet) -> None:
    """Print a table without frames: 80 columns hold every interval on one line."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    from .._console import Console

    # As Text, whose brackets the console does not read as markup.
    table = Table(
        title=Text(sheet.name + sheet.about) if sheet.name else None,
        title_justify="left",
        caption=sheet.caption or None,
        caption_justify="left",
        box=box.SIMPLE_HEAD,
        show_edge=False,
        padding=0,
    )
    for column, heading in enumerate(sheet.headings):
        wordy = _is_wordy(sheet, column)
        noted = any(isinstance(cell := row[column], Number) and cell.note for row in sheet.rows)
        table.add_column(
            Text(heading),
            justify="left" if wordy else "right",
            no_wrap=not wordy and not noted,
            overflow="fold",
            min_width=max(map(len, heading.split()), default=0),  # no heading is split
        )
    for row in sheet.rows:
        style = ["bold" if isinstance(cell, Number) and cell.bold else "" for cell in row]
        table.add_row(*(Text(_as_text(c), style=s) for c, s in zip(row, style, strict=True)))
    console = Console()
    console.print(table)
    console.print()


def _as_markdown(sheet: Sheet) -> str:
    r"""Write a table in Markdown.

    >>> print(_as_markdown(Sheet("", ["name", "ECE"], [["a|b", Number(0.01, interval=(0, 0.02))]])))
    | name | ECE |
    |---|---:|
    | a\|b | 0.0100 [0, 0.0200] |
    <BLANKLINE>
    """
    lines = [[*sheet.headings], *sheet.rows]
    cells = [
        [printable(_as_text(c).replace("\n", " ")).replace("|", r"\|") for c in row]
        for row in lines
    ]
    rows = [f"| {' | '.join(row)} |" for row in cells]
    rule = "|".join("---" if _is_wordy(sheet, i) else "---:" for i in range(len(sheet.headings)))
    return "\n".join([rows[0], f"|{rule}|", *rows[1:], ""])


def _in_latex(cell: Cell) -> str:
    r"""Write a cell in LaTeX: numbers and intervals as mathematics.

    >>> _in_latex(Number(3.2e-6)), _in_latex(Number(0.5, 0.01)), _in_latex(Span(0.0, 1.5e-5))
    ('$3.2 \\times 10^{-6}$', '$0.5000 \\pm 0.0100$', '$[0, 1.5 \\times 10^{-5}]$')
    """
    if isinstance(cell, str):
        return "".join(_SIGNS.get(sign, sign) for sign in printable(cell.replace("\n", " ")))
    if isinstance(cell, Span):
        ends = _ends(cell, _in_mathematics)
        return f"${ends}$" if ends else "--"
    spread = "" if cell.spread is None else rf" \pm {_in_mathematics(cell.spread)}"
    return " ".join([f"${_in_mathematics(cell.value)}{spread}$", *_below(cell, _in_latex)])


def _in_mathematics(value: float) -> str:
    """Write a number within mathematics: powers of ten as such, and infinity."""
    text = in_column(value).replace("inf", r"\infty").replace("nan", r"\mathrm{nan}")
    digits, power, exponent = text.partition("e")
    return rf"{digits} \times 10^{{{int(exponent)}}}" if power else text


def latex(sheet: Sheet) -> str:
    r"""Write a table in LaTeX.

    >>> print(latex(Sheet("", ["method", "ECE"], [["esd_a", Number(0.01)]])))
    \begin{tabular}{lr}
    \hline
    method & ECE \\
    \hline
    esd\_a & $0.0100$ \\
    \hline
    \end{tabular}
    """
    lines = [" & ".join(map(_in_latex, row)) + r" \\" for row in (sheet.headings, *sheet.rows)]
    columns = ["l" if _is_wordy(sheet, i) else "r" for i in range(len(sheet.headings))]
    begin = [f"\\begin{{tabular}}{{{''.join(columns)}}}", r"\hline", lines[0], r"\hline"]
    return "\n".join([*begin, *lines[1:], r"\hline", r"\end{tabular}"])
