"""A learning curve: what more molecules are worth beside means by squared error."""

from __future__ import annotations

from math import log

from ..pages import Row, markdown
from .numbers import ABSENT, Data, mean, number, percent
from .settings import NETWORKS, PAPER_MOLECULES, PAPER_R2, PARTS, PENALTY, SQUARES, is_kind

CURVE = """![What is not explained, by the number of molecules](spectra/learning.png)

*Means by squared error, first seed, weights from the best validation likelihood; crosses: the
paper's training on all molecules, each seed. Dotted: the power law of the last doubling, extended.
Dashed: the paper's R² and its number of molecules.*"""


def learning_rows(data: Data, network: str) -> list[Row]:
    """One network on a part of the molecules after the other and on all, first seed, by squares.

    From the fewest molecules to the most; weights from the best validation likelihood.
    """
    seed = min(row["seed"] for row in data["results"])
    found = [
        row
        for parts in (*PARTS, 1)
        for row in data["results"]
        if is_kind(row, PENALTY, SQUARES, parts)
        if row["network"] == network and row["seed"] == seed
    ]
    return sorted(found, key=lambda row: row["train"])


def exponent(few: Row, many: Row) -> float:
    """The b of a power law `1 - R² ~ n^-b` through the medians of two trainings.

    >>> round(exponent({"train": 100, "r2_median": 0.6}, {"train": 400, "r2_median": 0.8}), 6)
    0.5
    """
    return log((1 - few["r2_median"]) / (1 - many["r2_median"])) / log(many["train"] / few["train"])


def extended(row: Row, power: float, molecules: float) -> float:
    """The median R² of a training with so many molecules, were the power law to go on.

    >>> round(extended({"train": 100, "r2_median": 0.8}, 0.5, 400), 3)
    0.9
    """
    return float(1 - (1 - row["r2_median"]) * (row["train"] / molecules) ** power)


def learning_table(data: Data) -> str:
    """R^2 and error by the number of molecules."""
    lines = [
        [
            *(network, f"{row['train']:,}", number(row["r2_median"]), percent(row["r2_above"])),
            *(number(row["mse"]), number(row["nll"])),
        ]
        for network in reversed(NETWORKS)
        for row in learning_rows(data, network)
    ]
    header = ["network", "training molecules", "R², median", "R² above .9", "squared error, mean"]
    return markdown([*header, "NLL"], lines) if lines else ABSENT


def shortfall(data: Data) -> str:
    """Say what a doubling of the molecules gains, and what is left for more of them.

    Means by squares come first: from the paper's training to them, both on all molecules, and from
    there to an R^2 of 1, which no number of molecules exceeds. The power law of the last doubling,
    extended to the paper's number of molecules, stands beside it.
    """
    curves = {network: learning_rows(data, network) for network in reversed(NETWORKS)}
    curves = {network: rows for network, rows in curves.items() if len(rows) > 1}
    if not curves:
        return ABSENT
    told = [_parted(data, network, rows) for network, rows in curves.items()]
    checks = [
        f"{network} {number(exponent(*rows[-3:-1]))} then {number(exponent(*rows[-2:]))}"
        for network, rows in curves.items()
        if len(rows) > 2
    ]
    check = (
        f"A power law would have one exponent; from each number of molecules to the next it is: "
        f"{', '.join(checks)}. "
        if checks
        else ""
    )
    factor = PAPER_MOLECULES / data["limits"][0]["train"]
    caution = (
        f"To extend it over a factor of {number(factor)}, from one seed, is to guess at the size "
        "of things; and the paper's molecules are larger than these. What more molecules would do "
        "for the paper's own loss was not tried: they might go part of the same way."
    )
    fewest = {n: (rows[0], mean(data, "r2_median", n, PENALTY)) for n, rows in curves.items()}
    enough = [n for n, (row, old) in fewest.items() if row["r2_median"] > old]
    few = min(row["train"] for row, _ in fewest.values())
    fewer = (
        f"With {few:,} molecules and squared errors, {', '.join(enough)} explain more than with "
        f"{data['limits'][0]['train']:,} and the paper's training. "
        if enough
        else ""
    )
    return "\n".join([*(f"- {one}" for one in told), "", f"{fewer}{check}{caution}", "", CURVE])


def _parted(data: Data, network: str, rows: list[Row]) -> str:
    old, last = mean(data, "r2_median", network, PENALTY), rows[-1]
    power = exponent(*rows[-2:])
    gain = last["r2_median"] - rows[-2]["r2_median"]
    said = (
        f"{network}: from {rows[-2]['train']:,} to {last['train']:,} molecules the median R² goes "
        f"from {number(rows[-2]['r2_median'])} to {number(last['r2_median'])}"
    )
    if gain <= 0:
        return f"{said}; no gain from more molecules is seen, and nothing can be extended."
    there = extended(last, power, PAPER_MOLECULES)
    needed = last["train"] * ((1 - last["r2_median"]) / (1 - PAPER_R2)) ** (1 / power)
    if last["r2_median"] >= PAPER_R2:
        goal = f"{PAPER_R2} is reached without"
    elif needed > 100 * PAPER_MOLECULES:
        goal = f"{PAPER_R2} would need more than a hundred times as many"
    else:
        goal = f"{PAPER_R2} would need {number(needed)} molecules"
    gone = (last["r2_median"] - old) / (1 - old)
    left = (
        f"From the paper's training here, {number(old)}, to 1, means by squared error go "
        f"{percent(gone)} of the way on the same molecules, which leaves {percent(1 - gone)} at "
        "most for more of them."
        if gone > 0
        else f"The paper's training here has {number(old)} on the same molecules."
    )
    return (
        f"{said}. Extended by the same power law, {PAPER_MOLECULES:,} molecules would give "
        f"{number(there)}, and {goal}. {left}"
    )
