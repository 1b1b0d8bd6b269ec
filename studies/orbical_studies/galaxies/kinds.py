"""Plain, group and wide plain networks on photographs: how well each kind is calibrated."""

from __future__ import annotations

from dataclasses import dataclass

from ..pages import Row, markdown
from .numbers import Numbers, mean, points

EXPECTED = 0.025
"""Share of calibrated networks whose ECE lies above the upper end of its calibrated interval."""

LITTLE = 0.01
"""An excess of ECE that is called little."""

TITLES = {"plain": "plain", "group": "with a group", "wide": "wide plain"}


@dataclass(frozen=True)
class Kind:
    """Networks of one kind: their number, and how many show more than calibrated ones would."""

    count: int
    above: int
    esd_above: int
    excess: float
    overconfidence: float
    train_nll: float
    nll: float

    @property
    def share(self) -> float:
        """Share of the networks above what 97.5 % of calibrated ones show."""
        return self.above / self.count


def kinds(numbers: Numbers, data: str = "") -> dict[str, Kind]:
    """Count the networks on photographs, or on those of one catalogue, by kind."""
    chosen = [data] if data else numbers.photographs
    rows = [row for row in numbers.results if row["data"] in chosen]
    members = {
        "plain": [row for row in rows if row["network"] == "cyclic:1"],
        "group": [row for row in rows if row["network"] != "cyclic:1" and row["width"] == 1],
        "wide": [row for row in rows if row["width"] > 1],
    }
    return {name: _kind(some) for name, some in members.items() if some}


def _kind(rows: list[Row]) -> Kind:
    return Kind(
        count=len(rows),
        above=sum(row["ece"] > row["ece_calibrated_high"] for row in rows),
        esd_above=sum(row["esd_low"] > 0 for row in rows),
        excess=mean([row["ece"] - row["ece_calibrated"] for row in rows]),
        overconfidence=mean([row["overconfidence"] for row in rows]),
        train_nll=mean([row["train_nll"] for row in rows]),
        nll=mean([row["nll"] for row in rows]),
    )


def kinds_table(numbers: Numbers) -> str:
    """How many networks of each kind show more than calibrated ones would."""
    if not numbers.photographs:
        return "*The photographs were not trained on.*"
    lines = []
    for data in ("", *numbers.photographs):
        for name, kind in kinds(numbers, data).items():
            where = numbers.title(data) if data else "both"
            lines.append(
                [
                    *(where, TITLES[name], str(kind.count)),
                    f"{kind.above} ({100 * kind.share:.0f} %)",
                    f"{kind.esd_above} ({100 * kind.esd_above / kind.count:.0f} %)",
                    f"{kind.excess:.4f}",
                    points(kind.overconfidence),
                    f"{kind.train_nll:.3f}, {kind.nll:.3f}",
                ]
            )
    header = [
        *("catalogue", "networks", "number", "ECE above its calibrated limit"),
        *("ESD interval above 0", "mean excess of ECE", "confidence - accuracy (points)"),
        "NLL on training and on test galaxies",
    ]
    return markdown(header, lines)
