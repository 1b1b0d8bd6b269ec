"""Means by squared error beside the paper's training: what changes, and what more data would."""

from __future__ import annotations

from collections.abc import Callable
from math import log
from statistics import fmean

from ..pages import Row, markdown
from .findings import LOOSE, compared
from .numbers import Data, by_squares, mean, number, percent, span, spread, squares_done, values
from .settings import (
    BEST,
    LAST,
    LIKELIHOOD,
    NETWORKS,
    PAPER_MOLECULES,
    PARTS,
    PENALTY,
    SQUARES,
    is_kind,
)

WAYS = {
    (LIKELIHOOD, BEST): "likelihood, the paper's",
    (SQUARES, BEST): "squared error",
    (SQUARES, LAST): "squared error, end of schedule",
}
"""How means are learnt and where weights are taken, in words."""
PAPER_R2 = 0.9
CHANGED = 0.05
"""A rank correlation that changes by more is another one."""
PICTURE = """![Error, bleed and share called noise, before and after](spectra/remedy.png)

*Steerable network with the penalty, both trainings, weights from the best validation likelihood;
median of the seeds, bands from the least to the largest.*"""
CURVE = """![What is not explained, by the number of molecules](spectra/learning.png)

*Means by squared error, first seed; crosses: the paper's training on all molecules, each seed.
Dotted: the power law of the last doubling, extended. Dashed: the paper's R² and its number of
molecules.*"""
ABSENT = "Not trained: `orbical study spectra train --only squares` does it."


def squares_table(data: Data) -> str:
    """The paper's training and its remedy, network by network."""
    lines = []
    for network in reversed(NETWORKS):
        for (means, taken), words in WAYS.items():
            kind = {"means": means, "taken": taken}
            if not values(data, "mse", network, PENALTY, **kind):
                continue

            def own(name: str, network: str = network, kind: dict[str, str] = kind) -> list[float]:
                return values(data, name, network, PENALTY, **kind)

            lines.append(
                [
                    *(network, words),
                    spread(own("r2_median")),
                    spread(own("r2_above"), percent),
                    spread(own("r2_absorption")),
                    spread(own("mse")),
                    spread(own("height_top"), percent),
                    spread(own("nll")),
                    span(own("bleed")),
                    span(own("typical")),
                    spread(own("noise_share"), percent),
                    spread(own("error_all")),
                    spread(own("inside_50"), percent),
                    spread(own("inside_90"), percent),
                ]
            )
    return markdown(
        [
            *("network", "means by", "R², median", "R² above .9", "R² of absorption, median"),
            *("squared error, mean", "answer over truth in the tallest tenth", "NLL", "bleed"),
            *("typical bleed", "share called noise, median", "aleatoric variance and error, rank"),
            *("inside the 50% interval", "inside the 90% interval"),
        ],
        lines,
    )


def remedy(data: Data) -> str:
    """Say what means by squared error change, and which of the paper's claims with them."""
    if not squares_done(data):
        return ABSENT
    return "\n\n".join([_accuracy(data), _price(data), _marks(data), _sees(data), PICTURE])


def _both(data: Data, name: str, network: str) -> tuple[float, float]:
    """A number of the paper's training and of means by squares, averaged over seeds."""
    return mean(data, name, network, PENALTY), fmean(by_squares(data, name, network))


def _from_to(data: Data, name: str, shown: Callable[[float], str] = number) -> str:
    """Write a number of each network before and after."""
    pairs = {network: _both(data, name, network) for network in reversed(NETWORKS)}
    return ", ".join(f"{n} {shown(old)} to {shown(new)}" for n, (old, new) in pairs.items())


def _direction(data: Data, name: str) -> str:
    """Say whether a number rises for all networks, falls for all, or neither, beyond seeds."""
    signs = set()
    for network in NETWORKS:
        old = values(data, name, network, PENALTY)
        new = by_squares(data, name, network)
        signs.add(1 if min(new) > max(old) else -1 if max(new) < min(old) else 0)
    if signs == {1}:
        return "rises for all three networks"
    if signs == {-1}:
        return "falls for all three networks"
    return "does not change alike for the three networks"


def _accuracy(data: Data) -> str:
    order = sorted(NETWORKS, key=lambda n: fmean(by_squares(data, "r2_median", n)), reverse=True)
    best = fmean(by_squares(data, "r2_median", order[0]))
    reached = "is reached" if best > PAPER_R2 else "is not reached"
    return (
        f"**What is explained.** The median R² {_direction(data, 'r2_median')}: "
        f"{_from_to(data, 'r2_median')}. The mean squared error {_direction(data, 'mse')}: "
        f"{_from_to(data, 'mse')}. The paper's {PAPER_R2} {reached} in the median; "
        f"{percent(fmean(by_squares(data, 'r2_above', order[0])))} of the test molecules are above "
        f"it for {order[0]}. From the best to the worst, by R²: {', '.join(order)}. "
        f"{_where_taken(data, order[0])}"
    )


def _where_taken(data: Data, network: str) -> str:
    """Say what the rest of the schedule does to a network after its best likelihood."""

    def at(name: str, taken: str) -> float:
        return fmean(by_squares(data, name, network, taken=taken))

    return (
        f"Taken at the end of the schedule in the place of its best validation likelihood, "
        f"{network} has a median R² of {number(at('r2_median', LAST))} in the place of "
        f"{number(at('r2_median', BEST))}, and an NLL of {number(at('nll', LAST))} in the place of "
        f"{number(at('nll', BEST))}."
    )


def _price(data: Data) -> str:
    ratio = [
        fmean(by_squares(data, "mse", n)) / fmean(by_squares(data, "train_mse", n))
        for n in NETWORKS
    ]
    worse = [new > old for old, new in (_both(data, "nll", n) for n in NETWORKS)]
    if all(worse):
        said = "It costs likelihood"
    elif any(worse):
        said = "It costs some networks likelihood"
    else:
        said = "It costs no likelihood"
    return (
        f"**What it costs.** {said}, NLL: {_from_to(data, 'nll')}. Variances are learnt from "
        f"errors on training molecules, and errors on new ones are {number(min(ratio))} to "
        f"{number(max(ratio))} times as large, in squares. Inside the 50% interval lie: "
        f"{_from_to(data, 'inside_50', percent)} of the truths."
    )


def _marks(data: Data) -> str:
    pairs = [_both(data, "error_all", n) for n in NETWORKS]
    change = [new - old for old, new in pairs]
    if min(new for _, new in pairs) < LOOSE:
        said = "no longer holds for every network"
    elif max(abs(value) for value in change) < CHANGED:
        said = "holds as before"
    elif max(change) < 0:
        said = "holds, less closely"
    elif min(change) > 0:
        said = "holds, more closely"
    else:
        said = "holds, for some networks more closely and for some less"
    return (
        f"**Whether bleed marks where a network goes wrong.** That {said}: rank correlation of "
        f"aleatoric variance and squared error, {_from_to(data, 'error_all')}. The share called "
        f"noise {_direction(data, 'noise_share')}: {_from_to(data, 'noise_share', percent)}."
    )


def _sees(data: Data) -> str:
    before, after = compared(data), compared(data, means=SQUARES)
    typical = "; ".join(
        f"{n} {span(values(data, 'typical', n, PENALTY))} before, "
        f"{span(by_squares(data, 'typical', n))} now"
        for n in reversed(NETWORKS)
    )
    steps = {number(fmean(by_squares(data, "steps", n))) for n in NETWORKS}
    equal = "with equal numbers of steps" if len(steps) == 1 else "with unequal numbers of steps"
    answer = (
        "The answer is the one before"
        if before == after
        else f"The answer was another one before: {before}"
    )
    return (
        f"**Whether a network that sees more bleeds less.** By typical bleed, {equal} "
        f"({' or '.join(sorted(steps))}): {after}. {answer}. Typical bleed: {typical}."
    )


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
    """Part the distance to the paper's R^2 into what the loss and what the data are to blame for.

    The loss first: from the paper's training to means by squares, both on all molecules; then the
    data: from there to the paper's number of molecules, were the power law of the last doubling to
    go on.
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
        f"To extend it over a factor of {number(factor)} is to guess at the size of things; and "
        "the paper's molecules are larger than these."
    )
    return "\n".join([*(f"- {one}" for one in told), "", f"{check}{caution}", "", CURVE])


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
        goal = f"{PAPER_R2} is reached"
    elif needed > 100 * PAPER_MOLECULES:
        goal = f"{PAPER_R2} would need more than a hundred times as many"
    else:
        goal = f"{PAPER_R2} would need {number(needed)} molecules"
    loss = (last["r2_median"] - old) / (there - old)
    return (
        f"{said}. Extended by the same power law, {PAPER_MOLECULES:,} molecules would give "
        f"{number(there)}, and {goal}. Of the distance from the paper's training here, "
        f"{number(old)}, to that, the loss is {percent(loss)} and the data {percent(1 - loss)}."
    )
