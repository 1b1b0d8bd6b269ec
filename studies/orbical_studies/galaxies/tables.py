"""The galaxy study's tables, from its CSV files alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from ..pages import Row, markdown, spread
from .numbers import (
    FAMILIES,
    TITLES,
    Numbers,
    mean,
    points,
    short,
    thousandths,
    unsigned_zero,
    with_interval,
)

MEASURES = {
    "accuracy": "accuracy",
    "ece": "ECE",
    "esd": "ESD (1e-3)",
    "overconfidence": "confidence - accuracy",
}


def settings_table(numbers: Numbers) -> str:
    """What was trained and measured."""
    rows = numbers.results
    tested = {data: numbers.of(data=data)[0]["galaxies"] for data in numbers.data}
    seeds = sorted({row["seed"] for row in rows})
    lines = [
        ["seeds", ", ".join(str(seed) for seed in seeds)],
        ["networks trained", str(len(rows))],
        ["of them with fewer seeds", incomplete(numbers) or "none"],
        ["epochs", str(rows[0]["epochs"])],
        *(
            [f"steps, {TITLES[data]}", f"{numbers.of(data=data)[0]['steps']:,}"]
            for data in numbers.data
        ),
        *([f"test galaxies, {TITLES[data]}", f"{count:,}"] for data, count in tested.items()),
        *(
            [
                f"NLL on training and on test galaxies, {TITLES[data].split(',')[0]}",
                f"{numbers.mean('train_nll', data=data):.3f}, {numbers.mean('nll', data=data):.3f}",
            ]
            for data in numbers.data
        ),
        ["hours, all trainings and measurements", f"{sum(r['seconds'] for r in rows) / 3600:.1f}"],
    ]
    return markdown(["setting", "value"], lines)


def incomplete(numbers: Numbers) -> str:
    """Name the networks that were not trained with every seed, and how many seeds they have."""
    seeds = len({row["seed"] for row in numbers.results})
    counts = Counter((row["data"], row["network"], row["blur"]) for row in numbers.results)
    return "; ".join(
        f"{TITLES[data].split(',')[0]}, {short(network)}, blur {blur:g}: {count} seeds"
        + (" (a largest n)" if _is_largest(numbers, data, network) else "")
        for (data, network, blur), count in counts.items()
        if count < seeds
    )


def _is_largest(numbers: Numbers, data: str, network: str) -> bool:
    row = numbers.of(data=data, network=network)[0]
    return row["order"] == max(numbers.orders(data, row["family"]))


def _ends(rows: Sequence[Row], measure: str, digits: int, scale: float = 1.0) -> str:
    """Write mean and deviation over seeds, and the mean ends of the seeds' intervals."""
    low, high = (scale * mean([row[f"{measure}_{end}"] for row in rows]) for end in ("low", "high"))
    middle, *deviation = spread([scale * row[measure] for row in rows], digits).split(" ", 1)
    about = " ".join([unsigned_zero(middle), *deviation])
    return f"{about} [{low:.{digits}f}, {high:.{digits}f}]"


def scores_table(data: str, numbers: Numbers) -> str:
    """Accuracy, ECE and ESD of all networks at the least and the most blur."""
    if data not in numbers.data:
        return "*not trained*"
    blurs = numbers.blurs(data)
    lines = []
    for blur in blurs:
        for network in numbers.networks(data):
            rows = numbers.of(data=data, network=network, blur=blur)
            if not rows:
                continue
            lines.append(
                [
                    f"{blur:g}",
                    short(network),
                    f"{rows[0]['parameters']:,}",
                    _ends(rows, "accuracy", 3),
                    _ends(rows, "ece", 3),
                    f"{mean([row['ece_calibrated'] for row in rows]):.3f}",
                    _ends(rows, "esd", 2, 1e3),
                    points(mean([row["overconfidence"] for row in rows])),
                    f"{mean([row['defect_group'] for row in rows]):.1e}",
                    f"{mean([row['gap_circle'] for row in rows]):.3f}",
                ]
            )
    header = [
        *("blur (px)", "network", "parameters", "accuracy [95 %]", "ECE [95 %]"),
        *("a calibrated network's ECE", "ESD (1e-3) [95 %]", "confidence - accuracy (points)"),
        *("largest change over its own group", "gap over the circle"),
    ]
    return markdown(header, lines)


def contrasts_table(measures: Sequence[str], numbers: Numbers) -> str:
    """How some measures change with the order."""
    lines = []
    for data in numbers.data:
        for family, letter in (FAMILIES | {"both": "*mean*"}).items():
            for blur in ["all"] if family == "both" else numbers.blurs(data):
                where = {"data": data, "family": family, "blur": blur}
                cells = [
                    "".join(
                        with_interval(row, thousandths if measure == "esd" else points)
                        for row in numbers.contrast(contrast, measure, **where)
                    )
                    for measure in measures
                    for contrast in ("slope", "gain", "over wide")
                ]
                named = [letter, "all"] if family == "both" else [f"{letter}_n", f"{blur:g}"]
                lines.append([numbers.title(data), *named, *cells])
    header = ["data", "family", "blur (px)"]
    for measure in measures:
        header += [f"{MEASURES[measure]}, a doubling of n", "largest n over plain"]
        header += ["largest n over wide plain"]
    return markdown(header, lines)


def refit_table(numbers: Numbers) -> str:
    """The networks' own answers beside a regression refitted on the test set."""
    lines = []
    for data in numbers.data:
        rows = numbers.of(data=data)
        own, refitted = ([row[name] for row in rows] for name in ("ece", "refitted_ece"))
        lines.append(
            [
                TITLES[data],
                *(f"{mean([row[c] for row in rows]):.3f}" for c in ("accuracy", "ece")),
                *(
                    f"{mean([row[f'refitted_{c}'] for row in rows]):.3f}"
                    for c in ("accuracy", "ece")
                ),
                unsigned_zero(f"{rank_correlation(own, refitted):.2f}"),
            ]
        )
    header = [
        *("data, all networks", "accuracy", "ECE", "refitted accuracy", "refitted ECE"),
        "rank correlation of the two ECE",
    ]
    return markdown(header, lines)


def rank_correlation(one: Sequence[float], other: Sequence[float]) -> float:
    """Give Spearman's correlation.

    >>> rank_correlation([1.0, 2.0, 3.0], [2.0, 1.0, 3.0])
    0.5
    """
    ranks = np.argsort(np.argsort([one, other])) - (len(one) - 1) / 2
    return float((ranks[0] * ranks[1]).sum() / np.square(ranks[0]).sum())


def circle_table(numbers: Numbers) -> str:
    """How flat the NERO plots are: least and largest value over the circle, without blur."""
    lines = []
    for data in numbers.data:
        for network in numbers.networks(data):
            rows = numbers.circle(data, network, 0.0)
            if not rows:
                continue
            cells = []
            for measure in ("accuracy", "confidence", "ece"):
                values = [row[measure] for row in rows]
                cells.append(f"{min(values):.3f} to {max(values):.3f}")
            gap = numbers.mean("gap_circle", data=data, network=network, blur=0)
            lost = numbers.mean("action_defect", data=data, network=network, blur=0)
            lines.append(
                [TITLES[data].split(",")[0], short(network), *cells, f"{gap:.3f}", f"{lost:.3f}"]
            )
    header = ["data", "network", "accuracy", "confidence", "ECE", "invariance gap", "action defect"]
    return markdown(header, lines)


def bounds_table(numbers: Numbers) -> str:
    """Mirror-invariant networks on generated galaxies, beside what their symmetry allows."""
    if not numbers.bounds:
        return "*not trained*"
    names = list(dict.fromkeys(row["network"] for row in numbers.bounds))
    lines = []
    for name in names:
        rows = [row for row in numbers.bounds if row["network"] == name]
        lines.append(
            [
                short(name),
                f"{mean([row['ceiling'] for row in rows]):.4f}",
                spread([row["accuracy"] for row in rows], 4),
                f"{mean([row['lower'] for row in rows]):.3f}",
                spread([row["ece"] for row in rows]),
                f"{mean([row['upper'] for row in rows]):.3f}",
                f"{max(row['mirror_gap'] for row in rows):.1e}",
            ]
        )
    header = [
        *("network", "accuracy ceiling", "accuracy", "least ECE", "ECE", "largest ECE"),
        "mirrored - upright confidence, largest",
    ]
    return markdown(header, lines)


def neighbours_table(numbers: Numbers) -> str:
    """How near photographs come to each other under a group."""
    if not numbers.neighbours:
        return "*not measured*"
    lines = [
        [
            TITLES[row["data"]].split(",")[0],
            row["group"],
            f"{row['least']:.3f}",
            f"{row['nearest']:.3f}",
            f"{row['turning']:.3f}",
            f"{row['matched']} of {row['galaxies']:,}",
            f"{row['wrong']:.3f} [{row['wrong_low']:.3f}, {row['wrong_high']:.3f}]",
        ]
        for row in numbers.neighbours
    ]
    header = [
        *("data", "group", "nearest pair", "nearest other, median", "there and back"),
        *("matched", "nearest other of another class"),
    ]
    return markdown(header, lines)
