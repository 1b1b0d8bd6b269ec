"""Means by squared error beside the paper's training: what changes, and at what cost."""

from __future__ import annotations

from collections.abc import Callable
from statistics import fmean, median

import numpy as np

from ..pages import markdown
from .comparisons import compared
from .findings import LOOSE, judged, reached
from .numbers import (
    ABSENT,
    Data,
    by_squares,
    chosen,
    mean,
    number,
    percent,
    span,
    spread,
    squares_done,
    values,
)
from .settings import (
    BATCH,
    BEST,
    LAST,
    LIKELIHOOD,
    NETWORKS,
    PAPER_R2,
    PENALTY,
    SQUARES,
    STEERABLE,
    is_kind,
)

WAYS = {
    (LIKELIHOOD, BEST): "likelihood, the paper's",
    (SQUARES, BEST): "squared error",
    (SQUARES, LAST): "squared error, end of schedule",
}
"""How means are learnt and where weights are taken, in words."""
SAME = 0.03
"""Shares of truths in an interval that differ by less are taken as one."""
UNTRIED = "How stable training is depends on λ (E)."
"""The sentence on which means by squares, always with the penalty, say nothing."""
CHANGED = 0.05
"""A rank correlation that changes by more is another one."""
PICTURE = """![Error, bleed and share called noise, before and after](spectra/remedy.png)

*Steerable network with the penalty, both trainings, weights from the best validation likelihood;
median of the seeds, bands from the least to the largest.*"""


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


def claims_table(data: Data) -> str:
    """The verdicts on the paper's sentences after its own training, and with means by squares."""
    if not squares_done(data):
        return ABSENT
    pairs = zip(judged(data), judged(as_paper(data)), strict=True)
    lines = [
        [own[0], own[1], "the same" if own[1] == other[1] else other[1], other[2]]
        for own, other in pairs
        if own[2] != other[2] and own[0] != UNTRIED
    ]
    header = ["the paper", "after its training", "with means by squared error", "measured there"]
    return markdown(header, lines)


def as_paper(data: Data) -> Data:
    """Put networks with means by squares in the place of those that the paper trains."""
    return {
        name: [row | {"means": LIKELIHOOD} for row in rows if is_kind(row, PENALTY, SQUARES)]
        if name in ("results", "wavenumbers")
        else rows
        for name, rows in data.items()
    }


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
    order = _order({n: fmean(by_squares(data, "r2_median", n)) for n in NETWORKS})
    before = _order({n: mean(data, "r2_median", n, PENALTY) for n in NETWORKS})
    there = reached({n: fmean(by_squares(data, "r2_median", n)) for n in order})
    goal = f"is reached in the median by {there}" if there else "is not reached in the median"
    seen = ", the more the more they see" if order == [*reversed(NETWORKS)] else ""
    changed = f"; it was {', '.join(before)}" if before != order else ", as before"
    return (
        f"**What is explained.** The median R² {_direction(data, 'r2_median')}: "
        f"{_from_to(data, 'r2_median')}. The mean squared error {_direction(data, 'mse')}: "
        f"{_from_to(data, 'mse')}. The paper's {PAPER_R2} {goal}; "
        f"{percent(fmean(by_squares(data, 'r2_above', order[0])))} of the test molecules are above "
        f"it for {order[0]}. {_sampled(data)} From the best to the worst, by R²: "
        f"{', '.join(order)}{seen}{changed}. "
        f"{_steps_taken(data)} {_where_taken(data)}"
    )


def _sampled(data: Data) -> str:
    """Say how far the medians are known from so many test molecules, and which lie at the goal."""
    found = {network: median_interval(data, network) for network in reversed(NETWORKS)}
    listed = ", ".join(f"{n} {number(low)} to {number(high)}" for n, (low, high) in found.items())
    near = [n for n, (low, high) in found.items() if low < PAPER_R2 < high]
    blurred = f": {' and '.join(near)} cannot be told from {PAPER_R2}" if near else ""
    return f"95% intervals of the medians over test molecules: {listed}{blurred}."


def median_interval(data: Data, network: str) -> tuple[float, float]:
    """The 95% interval of the median R^2 over test molecules, mean over seeds, means by squares.

    The order statistics at the shares `1/2 ± 1.96 / (2 sqrt(n))` of n molecules hold the median in
    95 of 100 samples, whatever the distribution.
    """
    rows = chosen(data["explained"], network, PENALTY, means=SQUARES)
    shares = sorted({row["share"] for row in rows})
    middle = [fmean(row["r2"] for row in rows if row["share"] == share) for share in shares]
    reach = 1.96 / (2 * data["limits"][0]["test"] ** 0.5)
    low, high = np.interp([0.5 - reach, 0.5 + reach], shares, middle)
    return float(low), float(high)


def _order(found: dict[str, float]) -> list[str]:
    return sorted(found, key=found.__getitem__, reverse=True)


def _steps_taken(data: Data) -> str:
    """Say after how many steps weights were taken, so that more steps can be told from the loss."""
    an_epoch = -(-data["limits"][0]["train"] // BATCH)
    old, new = (
        ", ".join(f"{n} {number(an_epoch * fmean(epochs(n)))}" for n in reversed(NETWORKS))
        for epochs in (
            lambda n: values(data, "best_epoch", n, PENALTY),
            lambda n: by_squares(data, "best_epoch", n),
        )
    )
    return (
        f"Weights are those after so many steps: {new}; in the paper's training here they were "
        f"those after {old}."
    )


def _where_taken(data: Data) -> str:
    """Say what the rest of the schedule does to networks after their best likelihood."""

    def at(name: str, taken: str) -> dict[str, float]:
        return {n: fmean(by_squares(data, name, n, taken=taken)) for n in reversed(NETWORKS)}

    def changed(name: str) -> str:
        old, new = at(name, BEST), at(name, LAST)
        return ", ".join(f"{n} {number(old[n])} to {number(new[n])}" for n in old)

    return (
        "From the best validation likelihood to the end of the schedule the median R² goes on: "
        f"{changed('r2_median')}; and NLL: {changed('nll')}. Of the paper's training here the "
        "answers at the best validation likelihood alone were kept."
    )


def _price(data: Data) -> str:
    worse = [new > old for old, new in (_both(data, "nll", n) for n in NETWORKS)]
    if all(worse):
        said = "It costs likelihood"
    elif any(worse):
        said = "It costs some networks likelihood"
    else:
        said = "It costs no likelihood"
    return f"**What it costs.** {said}, NLL: {_from_to(data, 'nll')}. {_why(data)}"


def _why(data: Data) -> str:
    """Say at which entries likelihood is lost or won, and whether intervals have a part in it."""
    inside = [_both(data, "inside_50", n) for n in NETWORKS]
    same = max(abs(new - old) for old, new in inside) < SAME
    ratio = [
        fmean(by_squares(data, "mse", n)) / fmean(by_squares(data, "train_mse", n))
        for n in NETWORKS
    ]
    return (
        f"Over the tallest tenth of entries NLL {_direction(data, 'nll_top')}: "
        f"{_from_to(data, 'nll_top')}; over the others it {_direction(data, 'nll_rest')}: "
        f"{_from_to(data, 'nll_rest')}. The median squared error {_direction(data, 'mse_median')}: "
        f"{_from_to(data, 'mse_median')}. Of the truths the 50% interval holds "
        f"{'as many as before' if same else 'other shares than before'}: "
        f"{_from_to(data, 'inside_50', percent)}. Variances are learnt from errors on training "
        f"molecules, and errors on new ones are {number(min(ratio))} to {number(max(ratio))} times "
        "as large, in squares; that this is why intervals hold too few was not tested."
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
        f"({' or '.join(sorted(steps))}): {after}. {answer}. Typical bleed "
        f"{_direction(data, 'typical')}: {typical}. {_at_the_end(data)} {_places(data)}"
    )


def _at_the_end(data: Data) -> str:
    """Say what typical bleed is with the weights of the end, and how much the choice counts."""
    ends = "; ".join(
        f"{n} {span(by_squares(data, 'typical', n, taken=LAST))}" for n in reversed(NETWORKS)
    )
    more = True
    for network in NETWORKS:
        before = fmean(values(data, "typical", network, PENALTY))
        best, last = (
            fmean(by_squares(data, "typical", network, taken=taken)) for taken in (BEST, LAST)
        )
        more = more and before / best < best / last
    counts = ": where weights are taken counts for more than the loss" if more else ""
    return (
        f"At the end of the schedule it is {ends}, and "
        f"{compared(data, means=SQUARES, taken=LAST)}{counts}."
    )


def _places(data: Data) -> str:
    """Say at how many wavenumbers the typical bleed of the steerable network falls."""
    fallen = []
    rows = {
        means: chosen(data["wavenumbers"], STEERABLE, PENALTY, means=means)
        for means in (LIKELIHOOD, SQUARES)
    }
    for place in sorted({row["wavenumber"] for row in rows[SQUARES]}):
        old, new = (
            median(row["typical"] for row in rows[means] if row["wavenumber"] == place)
            for means in (LIKELIHOOD, SQUARES)
        )
        fallen.append(new < old)
    return (
        f"The sum hides where: for {STEERABLE} it falls at {percent(fmean(fallen))} of the "
        "wavenumbers and rises at the others (medians over seeds)."
    )
