"""Tables of words, numbers and intervals, on the console and in LaTeX."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from .._text import printable

_SIGNS = {sign: f"\\{sign}" for sign in "&%$#_{}"} | {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
}


class Number(NamedTuple):
    """A number, with what belongs to it: its standard deviation, or its interval and a note."""

    value: float
    spread: float | None = None
    interval: tuple[float, float] | None = None
    note: str = ""
    bold: bool = False


class Span(NamedTuple):
    """An interval."""

    low: float
    high: float


Cell = str | Number | Span


def short(value: float) -> str:
    """Write a number in at most four decimals or five digits, and few where it is far from 1.

    >>> [short(value) for value in (0.57079, 427.36812, 16292.7, 3.2e-6, -1.24e7, 0.0)]
    ['0.5708', '427.37', '16293', '3.2e-06', '-1.2e+07', '0']
    """
    size = abs(value)
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    if size < 1e-3 or size >= 1e5:
        return f"{value:.1e}"
    return f"{value:.{max(0, min(4, 4 - math.floor(math.log10(size))))}f}"


def _as_text(cell: Cell) -> str:
    """Write a cell for the console; a dash where there is no interval.

    >>> _as_text(Number(0.5, spread=0.01)), _as_text(Span(0.0, 1.5)), _as_text(Span(0.0, math.nan))
    ('0.5000 ± 0.0100', '[0, 1.5000]', '-')
    """
    if isinstance(cell, str):
        return cell
    if isinstance(cell, Span):
        known = not math.isnan(cell.low + cell.high)
        return f"[{short(cell.low)}, {short(cell.high)}]" if known else "-"
    spread = "" if cell.spread is None else f" ± {short(cell.spread)}"
    below = [] if cell.interval is None else [_as_text(Span(*cell.interval))]
    return "\n".join([short(cell.value) + spread, *below, *filter(None, [cell.note])])


def print_sheet(
    title: str,
    headings: Sequence[str],
    rows: Iterable[Sequence[Cell]],
    caption: str | None = None,
) -> None:
    """Print a table without frames: 80 columns hold every interval on one line."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    from .._console import Console

    # As Text, whose brackets the console does not read as markup.
    table = Table(
        title=Text(title),
        title_justify="left",
        caption=caption,
        caption_justify="left",
        box=box.SIMPLE_HEAD,
        show_edge=False,
        padding=0,
    )
    for place, heading in enumerate(headings):
        wraps = place == 0 or "worst" in heading
        table.add_column(Text(heading), justify="right" if place else "left", no_wrap=not wraps)
    for row in rows:
        style = ["bold" if isinstance(cell, Number) and cell.bold else "" for cell in row]
        table.add_row(*(Text(_as_text(c), style=s) for c, s in zip(row, style, strict=True)))
    console = Console()
    console.print(table)
    console.print()


def _in_latex(cell: Cell) -> str:
    r"""Write a cell in LaTeX: numbers and intervals as mathematics.

    >>> _in_latex(Number(3.2e-6)), _in_latex(Number(0.5, 0.01)), _in_latex(Span(0.0, 1.5e-5))
    ('$3.2 \\times 10^{-6}$', '$0.5000 \\pm 0.0100$', '$[0, 1.5 \\times 10^{-5}]$')
    """
    if isinstance(cell, str):
        return "".join(_SIGNS.get(sign, sign) for sign in printable(cell))
    if isinstance(cell, Span):
        known = not math.isnan(cell.low + cell.high)
        return f"$[{_plain(cell.low)}, {_plain(cell.high)}]$" if known else "--"
    spread = "" if cell.spread is None else rf" \pm {_plain(cell.spread)}"
    beside = [] if cell.interval is None else [_in_latex(Span(*cell.interval))]
    note = [_in_latex(cell.note)] if cell.note else []
    return " ".join([f"${_plain(cell.value)}{spread}$", *beside, *note])


def _plain(value: float) -> str:
    """Write a number within mathematics: powers of ten as such, and infinity."""
    text = short(value).replace("inf", r"\infty").replace("nan", r"\mathrm{nan}")
    digits, power, exponent = text.partition("e")
    return rf"{digits} \times 10^{{{int(exponent)}}}" if power else text


def latex_sheet(headings: Sequence[str], rows: Iterable[Sequence[Cell]], words: int = 1) -> str:
    r"""Write a table in LaTeX; its first columns hold words.

    >>> print(latex_sheet(["method", "ECE"], [["esd_a", Number(0.01)]]))
    \begin{tabular}{lr}
    \hline
    method & ECE \\
    \hline
    esd\_a & $0.0100$ \\
    \hline
    \end{tabular}
    """
    lines = [" & ".join(map(_in_latex, row)) + r" \\" for row in (headings, *rows)]
    columns = "l" * words + "r" * (len(headings) - words)
    begin = [f"\\begin{{tabular}}{{{columns}}}", r"\hline", lines[0], r"\hline"]
    return "\n".join([*begin, *lines[1:], r"\hline", r"\end{tabular}"])
