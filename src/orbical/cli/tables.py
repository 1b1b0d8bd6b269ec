"""Tables that several commands print."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..store.scan_result import Scan

_SHARES = ("accuracy", "confidence")
_CHANGES = {
    "changed": "predictions that change on the orbit",
    "changed_pairs": "pairs of elements that disagree",
}


def print_summary(scan: Scan, console: Any = None) -> None:
    """Print a column a model: how good it is at the identity, over the orbit and at its worst."""
    from rich.table import Table

    from .._console import Console
    from ..groups import PLACES
    from ..nero import summary
    from ..tasks import CLASS_PROBABILITY

    facts = summary(scan)
    table = Table(title=f"{scan.data.sizes['sample']:,} samples, {scan.group.spec}")
    table.add_column("")
    for model in facts["model"].values:
        table.add_column(str(model), justify="right")
    shown = [name for name in ("score", *_SHARES) if name in facts]
    if scan.record.score.meaning == CLASS_PROBABILITY and "accuracy" in shown:
        shown.remove("score")  # it says little beside the accuracy
    for name in shown:
        lead = f"{name}, "
        if name == "score":  # its meaning is long: a line of its own
            table.add_row(scan.record.score.meaning)
            lead = "  "
        for place in map(str, facts["place"].values):
            values = facts[name].sel(place=place).values
            table.add_row(f"{lead}{PLACES[place]}", *(_number(value, name) for value in values))
        table.add_section()
    table.add_row("worst element", *map(str, facts["worst_name"].values))
    table.add_row("invariance gap", *(f"{gap:.3g}" for gap in facts["invariance_gap"].values))
    for name, words in _CHANGES.items():
        if name in facts:
            table.add_row(words, *(_number(share, "accuracy") for share in facts[name].values))
    defect = f"{float(facts['action_defect']):.3g}"
    table.add_row("action defect (of the data)", *[defect] * len(facts["model"]))
    (console or Console()).print(table)


def _number(value: float, name: str) -> str:
    if math.isnan(value):
        return "none"  # no detection at all, say
    return f"{value:.1%}" if name in _SHARES else f"{value:.4g}"
