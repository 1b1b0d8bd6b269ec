"""Tables of `orbical calibration` for a paper, in LaTeX."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .calibration_tables import short, small_probability, titled

_SIGNS = {sign: f"\\{sign}" for sign in "&%$#_{}"} | {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
}


def in_math(value: float, spread: float | None = None) -> str:
    r"""Write a number, and its standard deviation, as mathematics.

    >>> in_math(0.0123), in_math(3.2e-6), in_math(0.5, 0.01)
    ('$0.0123$', '$3.2 \\times 10^{-6}$', '$0.5000 \\pm 0.0100$')
    """
    second = "" if spread is None else rf" \pm {_plain(spread)}"
    return f"${_plain(value)}{second}$"


def span_in_math(low: float, high: float) -> str:
    r"""Write an interval as mathematics; a dash where there is none.

    >>> span_in_math(0.0, 1.5e-5)
    '$[0, 1.5 \\times 10^{-5}]$'
    """
    if low != low or high != high:
        return "--"
    return f"$[{_plain(low)}, {_plain(high)}]$"


def _plain(value: float) -> str:
    """Write a number within mathematics: powers of ten as such, and infinity."""
    text = short(value).replace("inf", r"\infty").replace("nan", r"\mathrm{nan}")
    digits, power, exponent = text.partition("e")
    return rf"{digits} \times 10^{{{int(exponent)}}}" if power else text


def latex_table(cells: Mapping[str, Mapping[str, str]], corner: str) -> str:
    r"""Write a table with a row for each method and a column for each measure.

    >>> print(latex_table({"esd_a": {"ece": "$0.01$"}}, "method"))
    \begin{tabular}{lr}
    \hline
    method & ECE \\
    \hline
    esd\_a & $0.01$ \\
    \hline
    \end{tabular}
    """
    measures = list(dict.fromkeys(key for row in cells.values() for key in row))
    titles = [corner, *(titled(key) for key in measures)]
    rows = [
        [_escaped(name), *(row.get(key, "--") for key in measures)] for name, row in cells.items()
    ]
    return _tabular(titles, rows, left=1)


def latex_numbers(plain: dict[str, dict[str, dict[str, float]]], corner: str, level: float) -> str:
    """Write a row for each measure of each model: value, interval, and the calibrated values."""
    rows = [
        [
            _escaped(name),
            _escaped(titled(measure)),
            in_math(row["value"]),
            span_in_math(row["low"], row["high"]),
            in_math(row["calibrated"]),
            span_in_math(row["calibrated_low"], row["calibrated_high"]),
        ]
        for name, table in plain.items()
        for measure, row in table.items()
    ]
    titles = [corner, "measure", "value", f"{level:.0%} interval", "if calibrated", "its range"]
    return _tabular(titles, rows, left=2)


def latex_orbit(rows: list[dict[str, Any]]) -> str:
    """Write a row for each measure of each model along the orbit, intervals behind the values."""
    from ..calibration import PLACES

    cells = [
        [
            _escaped(row["model"]),
            _escaped(titled(row["measure"])),
            *(
                in_math(row[place]) + " " + span_in_math(row[f"{place}_low"], row[f"{place}_high"])
                for place in PLACES
            ),
            in_math(row["mean_calibrated"]),
            _escaped(row["worst_element"]),
        ]
        for row in rows
    ]
    titles = ["model", "measure", *PLACES.values(), "mean if calibrated", "worst element"]
    return _tabular(titles, cells, left=2)


def latex_comparisons(comparisons: list[dict[str, Any]], level: float) -> str:
    """Write a row for each difference of two models."""
    rows = [
        [
            _escaped(row["a"]),
            _escaped(row["b"]),
            _escaped(titled(row["measure"])),
            in_math(row["difference"]),
            span_in_math(row["low"], row["high"]),
            f"${small_probability(row['p_value'])}$",
        ]
        for row in comparisons
    ]
    return _tabular(["a", "b", "measure", "a - b", f"{level:.0%} interval", "p"], rows, left=3)


def _tabular(titles: list[str], rows: list[list[str]], left: int) -> str:
    """Write a table whose cells are LaTeX already; the first columns are set to the left."""
    lines = [
        f"\\begin{{tabular}}{{{'l' * left}{'r' * (len(titles) - left)}}}",
        "\\hline",
        " & ".join(_escaped(title) for title in titles) + r" \\",
        "\\hline",
        *(" & ".join(row) + r" \\" for row in rows),
        "\\hline",
        "\\end{tabular}",
    ]
    return "\n".join(lines)


def _escaped(text: str) -> str:
    return "".join(_SIGNS.get(sign, sign) for sign in text)
