"""What the ESD study found: sentences chosen by the numbers, from result lines alone."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from itertools import combinations

from ..pages import Row
from .settings import BASELINE, BATCH, LOSSES, PAPER_TABLE_1, SMALLER_BATCHES
from .summaries import COLUMNS, Spread, chosen_weights, table_1, trained

SAFE = 0.2
"""A loss is not safe under a shift that brings its ECE above this."""
PAPER_ECE = list(COLUMNS).index("ECE")


def change(rows: Sequence[Row], data: str, loss: str, weight: float, column: str) -> Spread:
    """Give a loss less the baseline, seed by seed."""
    part, score = COLUMNS[column]
    baseline = {row["seed"]: row for row in trained(rows, data, loss=BASELINE)}
    return Spread.of(
        row[part][score] - baseline[row["seed"]][part][score]
        for row in trained(rows, data, loss=loss, weight=weight)
        if row["seed"] in baseline
    )


def changes(rows: Sequence[Row], data: str, column: str) -> dict[str, Spread]:
    """Give the change of each loss at its chosen lambda."""
    chosen = chosen_weights(rows, data)
    return {
        loss: change(rows, data, loss, chosen[loss], column) for loss in LOSSES if loss in chosen
    }


def goes(found: Spread) -> str:
    """Say which way a change goes, if it is larger than its deviation over seeds, two at least.

    >>> goes(Spread(-0.03, 0.01, 3)), goes(Spread(-0.01, 0.02, 3)), goes(Spread(0.02, 0.01, 3))
    ('lower', 'unclear', 'higher')
    """
    if found.count < 2 or abs(found.mean) <= found.deviation:
        return "unclear"
    return "lower" if found.mean < 0 else "higher"


def points(found: Spread) -> str:
    """Write a change in points; of a single seed without a deviation.

    >>> points(Spread(-0.03, 0.01, 3)), points(Spread(-0.03, 0.0, 1))
    ('-3.00 ± 1.00', '-3.00')
    """
    deviation = f" ± {100 * found.deviation:.2f}" if found.count > 1 else ""
    return f"{100 * found.mean:+.2f}{deviation}"


def findings(rows: Sequence[Row]) -> str:
    """Write what both data sets say, as a list; without them, that they are missing."""
    if any("ESD" not in chosen_weights(rows, data) for data in PAPER_TABLE_1):
        return "(no results yet)"
    sentences = [
        _digits(rows),
        _esd(rows),
        _order(rows),
        _temperature(rows),
        *([shifts] if (shifts := _shifts(rows)) else []),
        _seeds(rows),
    ]
    return "\n".join(f"* {sentence}" for sentence in sentences)


def _mean(rows: Sequence[Row], data: str, loss: str, column: str) -> float:
    return table_1(rows, data)[loss][1][column].mean


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names) if names else "none"


def _digits(rows: Sequence[Row]) -> str:
    """Tell what is left to gain on MNIST, and whether the paper's reduction appears."""
    found = changes(rows, "mnist", "ECE")
    scaled = _mean(rows, "mnist", BASELINE, "ECE after TS")
    ahead = [loss for loss in found if _mean(rows, "mnist", loss, "ECE") < scaled]
    head = (
        f"On MNIST {_listed(ahead)} does better than one temperature"
        if ahead
        else "On MNIST no loss does as well as one temperature"
    )
    lower = [
        f"{loss} ({100 * _mean(rows, 'mnist', loss, 'ECE'):.2f} %)"
        for loss in found
        if goes(found[loss]) == "lower"
    ]
    paper = PAPER_TABLE_1["mnist"]
    reduction = (paper["ESD"][PAPER_ECE] - paper[BASELINE][PAPER_ECE]) / 100
    appears = (
        "appears" if goes(found["ESD"]) == "lower" and found["ESD"].mean <= reduction / 2 else None
    )
    epochs = max(row["epochs"] for row in trained(rows, "mnist"))
    return (
        f"**{head}.** The likelihood alone reaches an ECE of "
        f"{100 * _mean(rows, 'mnist', BASELINE, 'ECE'):.2f} %, and one temperature brings it to "
        f"{100 * scaled:.2f} %. Lower than the likelihood before scaling, by more than a standard "
        f"deviation of the change: {_listed(lower)}. The paper's reduction for ESD, from "
        f"{paper[BASELINE][PAPER_ECE]:.2f} % to {paper['ESD'][PAPER_ECE]:.2f} %, "
        f"{appears or 'does not appear'} at {epochs} epochs. The paper trains for 250; what that "
        "would change was not tested."
    )


def _esd(rows: Sequence[Row]) -> str:
    """Tell what ESD does on CIFAR-10, at the chosen lambda, at larger ones, in small batches."""
    weight = chosen_weights(rows, "cifar10")["ESD"]
    found = change(rows, "cifar10", "ESD", weight, "ECE")
    paper = PAPER_TABLE_1["cifar10"]
    printed = paper["ESD"][PAPER_ECE] - paper[BASELINE][PAPER_ECE]
    way = goes(found)
    if way == "lower":
        size = "less" if 100 * found.mean > printed else "no less"
        head = f"On CIFAR-10 ESD lowers the ECE, by {size} than in the paper"
    elif way == "higher":
        head = "On CIFAR-10 ESD raises the ECE"
    else:
        head = "On CIFAR-10 ESD changes the ECE by no more than seeds do"
    larger = sorted(
        {row["weight"] for row in trained(rows, "cifar10", loss="ESD") if row["weight"] > weight}
    )
    beyond = [
        f"λ = {each:g}: ECE {points(change(rows, 'cifar10', 'ESD', each, 'ECE'))}, accuracy "
        f"{points(change(rows, 'cifar10', 'ESD', each, 'accuracy'))} "
        f"(seeds: {change(rows, 'cifar10', 'ESD', each, 'ECE').count})"
        for each in larger
    ]
    text = (
        f"**{head}, at the λ that the rule allows.** {points(found)} points at λ = {weight:g}, "
        f"against {printed:+.2f} in the paper."
    )
    if beyond:
        text += f" Larger λ, in points: {'; '.join(beyond)}."
    small = min((BATCH, *SMALLER_BATCHES))
    runs = trained(rows, "cifar10", loss="ESD", weight=weight, batch=small)
    if runs:
        accuracy, ece = (
            100 * statistics.fmean(row["test"][name] for row in runs)
            for name in ("accuracy", "ece")
        )
        text += (
            f" With batches of {small} ESD has {ece:.1f} % at {accuracy:.1f} % accuracy; the "
            "likelihood alone was not trained with such batches, which take "
            f"{BATCH // small} times as many steps, so how much of that is due to ESD is not known."
        )
    return text


def _order(rows: Sequence[Row]) -> str:
    """Hold the order of the losses on CIFAR-10 against the paper's."""
    eces, prices = (changes(rows, "cifar10", name) for name in ("ECE", "accuracy"))
    paper = PAPER_TABLE_1["cifar10"]
    both = [loss for loss in eces if loss in paper]
    ours = sorted(both, key=lambda loss: eces[loss].mean)
    theirs = sorted(both, key=lambda loss: paper[loss][PAPER_ECE])
    clearly_swapped = any(
        eces[behind].mean + max(eces[ahead].deviation, eces[behind].deviation) < eces[ahead].mean
        for ahead, behind in combinations(theirs, 2)
    )
    if ours == theirs:
        head = "The order of the losses is the paper's"
    elif clearly_swapped:
        head = "The order of the losses is not the paper's"
    else:
        head = "The order of the losses differs from the paper's by no more than seeds do"
    most = min(eces, key=lambda loss: eces[loss].mean)
    dearest = min(prices, key=lambda loss: prices[loss].mean)
    return (
        f"**{head}.** By the mean "
        f"change of the ECE on CIFAR-10, lowest first: {', '.join(ours)}; in the paper "
        f"{', '.join(theirs)}. Of all losses {most} lowers the ECE most ({points(eces[most])}, "
        f"accuracy {points(prices[most])}), and {dearest} pays most accuracy "
        f"({points(prices[dearest])}). Where no λ is within 1.5 points, the most accurate one is "
        'taken, and the table of choices says "none".'
    )


def _temperature(rows: Sequence[Row]) -> str:
    """Hold one temperature on the likelihood against every loss, before and after scaling."""
    outdone, ranks, ahead = [], [], []
    for data in PAPER_TABLE_1:
        table = {loss: summary for loss, (_, summary) in table_1(rows, data).items()}
        scaled = {loss: summary["ECE after TS"].mean for loss, summary in table.items()}
        outdone.append(
            all(scaled[BASELINE] < table[loss]["ECE"].mean for loss in table if loss != BASELINE)
        )
        rank = sorted(scaled, key=scaled.__getitem__).index(BASELINE) + 1
        clear = [
            loss
            for loss, found in changes(rows, data, "ECE after TS").items()
            if goes(found) == "lower"
        ]
        ranks.append(f"{rank} of {len(scaled)} on {data} (clearly lower: {_listed(clear)})")
        ahead.append(goes(changes(rows, data, "ECE after TS")["ESD"]) == "lower")
    head = (
        "One temperature on the plain likelihood outdoes every loss before scaling"
        if all(outdone)
        else "One temperature on the plain likelihood does not outdo every loss before scaling"
    )
    esd = "ours as well" if all(ahead) else "ours in part" if any(ahead) else "ours does not"
    return (
        f"**{head}.** After scaling the likelihood alone has the place, lowest ECE first, "
        f"{', '.join(ranks)}. The paper's ESD stays ahead after scaling; {esd}."
    )


def _strongest(rows: Sequence[Row], data: str) -> dict[str, dict[str, float]]:
    """The mean ECE at the strongest of each shift, by shift and loss."""
    found: dict[str, dict[str, float]] = {}
    for loss, points_of in _shifted(rows, data).items():
        for shift in dict.fromkeys(point["shift"] for point in points_of):
            here = [point for point in points_of if point["shift"] == shift]
            most = max(point["strength"] for point in here)
            found.setdefault(shift, {})[loss] = statistics.fmean(
                point["ece"] for point in here if point["strength"] == most
            )
    return found


def _shifted(rows: Sequence[Row], data: str) -> dict[str, list[Row]]:
    """All measurements on shifted images, by loss at its chosen lambda."""
    found = {
        loss: [
            point
            for row in trained(rows, data, loss=loss, weight=weight)
            for point in row.get("shifts", [])
        ]
        for loss, weight in chosen_weights(rows, data).items()
    }
    return {loss: each for loss, each in found.items() if each}


def _shifts(rows: Sequence[Row]) -> str:
    """Tell what shifts do to each loss, where they were measured."""
    found = _shifted(rows, "cifar10")
    if BASELINE not in found:
        return ""
    strongest = _strongest(rows, "cifar10")
    safe = [
        loss for loss in found if max(each.get(loss, 0.0) for each in strongest.values()) <= SAFE
    ]
    head = "no loss is safe" if not safe else f"an ECE up to {SAFE:.0%} keep: {_listed(safe)}"
    values = [value for each in strongest.values() for value in each.values()]
    before, after = (
        {loss: statistics.fmean(point[name] for point in each) for loss, each in found.items()}
        for name in ("ece", "ece_ts")
    )
    low, low_after = (min(each, key=each.__getitem__) for each in (before, after))
    ends = [
        f"{shift} {low_end} ({100 * each[low_end]:.0f} %) and {high_end} "
        f"({100 * each[high_end]:.0f} %)"
        for shift, each in _strongest(rows, "mnist").items()
        for low_end, high_end in [
            (min(each, key=each.__getitem__), max(each, key=each.__getitem__))
        ]
    ]
    digits = f" On MNIST lowest and highest at the strongest {', '.join(ends)}." if ends else ""
    return (
        f"**On shifted images {head}.** On CIFAR-10 the ECE at the strongest of each shift is "
        f"{100 * min(values):.0f} to {100 * max(values):.0f} %, by loss and shift. On "
        f"average over shifts and strengths, lowest before scaling: {low} "
        f"({100 * before[low]:.1f} %; {BASELINE} {100 * before[BASELINE]:.1f} %); after it: "
        f"{low_after} ({100 * after[low_after]:.1f} %; {BASELINE} "
        f"{100 * after[BASELINE]:.1f} %).{digits}"
    )


def _seeds(rows: Sequence[Row]) -> str:
    """Tell how far apart the seeds lie, for a reader who compares two lines of a table."""
    apart = []
    for data in PAPER_TABLE_1:
        scores = [summary["accuracy"] for _, summary in table_1(rows, data).values()]
        low, high = (100 * of(score.deviation for score in scores) for of in (min, max))
        apart.append(f"{low:.2f} to {high:.2f} points on {data} ({scores[0].count} seeds)")
    return (
        "**How far apart seeds are.** The standard deviation of the accuracy is, by loss, "
        f"{', '.join(apart)}: a difference of that size between two lines of a table is no finding."
    )
