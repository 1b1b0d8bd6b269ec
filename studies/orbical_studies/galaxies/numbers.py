"""The galaxy study's numbers, found by data set, network, blur and contrast."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..pages import Row, read_csv

TITLES = {
    "efigi": "EFIGI, three classes",
    "galaxyzoo2": "Galaxy Zoo 2, spiral or not",
    "generated": "generated, mirrors of another class",
}
PHOTOGRAPHS = ("efigi", "galaxyzoo2")
FAMILIES = {"cyclic": "C", "dihedral": "D"}


def short(network: str) -> str:
    """Name a network by its group.

    >>> short("dihedral:4"), short("cyclic:1"), short("cyclic:1 x 5")
    ('D_4', 'plain', 'plain, 5 x wider')
    """
    group, _, width = network.partition(" x ")
    family, order = group.split(":")
    name = "plain" if group == "cyclic:1" else f"{FAMILIES[family]}_{order}"
    return f"{name}, {width} x wider" if width else name


def mean(values: Sequence[float]) -> float:
    """Average, over seeds for instance.

    >>> mean([1.0, 2.0])
    1.5
    """
    return sum(values) / len(values)


@dataclass(frozen=True)
class Numbers:
    """All rows of the study's CSV files."""

    results: list[Row]
    angles: list[Row]
    contrasts: list[Row]
    neighbours: list[Row]
    bounds: list[Row]
    coverage: list[Row]

    @property
    def data(self) -> list[str]:
        """The data sets, in the order of the rows."""
        return list(dict.fromkeys(row["data"] for row in self.results))

    @property
    def photographs(self) -> list[str]:
        """The data sets of real galaxies."""
        return [name for name in self.data if name in PHOTOGRAPHS]

    @staticmethod
    def title(data: str) -> str:
        """The short name of a data set."""
        return TITLES[data].split(",")[0]

    def networks(self, data: str) -> list[str]:
        """The networks trained on a data set, in the order of the rows."""
        return list(dict.fromkeys(row["network"] for row in self.of(data=data)))

    def blurs(self, data: str) -> list[float]:
        """The blurs of a data set, least first."""
        return sorted({row["blur"] for row in self.of(data=data)})

    def orders(self, data: str, family: str) -> list[int]:
        """The orders trained in a family, least first."""
        return sorted({row["order"] for row in self.of(data=data, family=family, width=1)})

    def of(self, **wanted: object) -> list[Row]:
        """Rows of results whose entries are the wanted ones."""
        return [row for row in self.results if all(row[k] == v for k, v in wanted.items())]

    def over_seeds(self, column: str, **wanted: object) -> list[float]:
        """One column over the seeds."""
        return [float(row[column]) for row in self.of(**wanted)]

    def mean(self, column: str, **wanted: object) -> float:
        """Average a column over rows."""
        return mean(self.over_seeds(column, **wanted))

    def contrast(self, contrast: str, measure: str, **wanted: object) -> list[Row]:
        """Rows of one contrast of one measure."""
        wanted |= {"contrast": contrast, "measure": measure}
        return [row for row in self.contrasts if all(row[k] == v for k, v in wanted.items())]

    def circle(self, data: str, network: str, blur: float) -> list[Row]:
        """Rows of one network along the circle."""
        wanted = (data, network, blur)
        return [r for r in self.angles if (r["data"], r["network"], r["blur"]) == wanted]

    def settings(self) -> Iterator[tuple[str, str, float]]:
        """Go through data set, family and blur of the photographs."""
        for data in self.photographs:
            for family in FAMILIES:
                for blur in self.blurs(data):
                    yield data, family, blur


def signs(rows: Sequence[Row]) -> tuple[int, int, int]:
    """Count the rows whose interval lies above 0, below 0, and on both sides.

    >>> signs([{"low": 0.1, "high": 0.2}, {"low": -0.1, "high": 0.2}])
    (1, 0, 1)
    """
    above = sum(row["low"] > 0 for row in rows)
    below = sum(row["high"] < 0 for row in rows)
    return above, below, len(rows) - above - below


def with_interval(row: Row, show: Callable[[float], str]) -> str:
    """Write a contrast with its interval."""
    return f"{show(row['value'])} [{show(row['low'])}, {show(row['high'])}]"


def points(value: float) -> str:
    """Write a difference of shares in points, signed.

    >>> points(0.0123), points(-0.0004)
    ('+1.2', '0.0')
    """
    return unsigned_zero(f"{100 * value:+.1f}")


def thousandths(value: float) -> str:
    """Write a difference of ESD in thousandths, signed.

    >>> thousandths(-0.00012)
    '-0.12'
    """
    return unsigned_zero(f"{1e3 * value:+.2f}")


def unsigned_zero(text: str) -> str:
    """Write a rounded 0 without its sign.

    >>> unsigned_zero("-0.00"), unsigned_zero("-0.01")
    ('0.00', '-0.01')
    """
    return text if float(text) else text.lstrip("+-")


def read(folder: Path) -> Numbers:
    """Read the study's CSV files; those of data that were not used are empty."""

    def rows(name: str) -> list[Row]:
        path = folder / f"{name}.csv"
        return read_csv(path) if path.is_file() else []

    return Numbers(
        results=read_csv(folder / "results.csv"),
        angles=rows("angles"),
        contrasts=rows("contrasts"),
        neighbours=rows("neighbours"),
        bounds=rows("bounds"),
        coverage=rows("coverage"),
    )
