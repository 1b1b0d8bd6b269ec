"""What the Swiss roll study found: tables and sentences, from its rows alone."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from itertools import pairwise

from ..pages import Row, markdown, spread
from .settings import INVARIANT, PLAIN

World = tuple[float, float]
PAPER = {
    eighths: {"accuracy": accuracy, "ece": ece}
    for eighths, accuracy, ece in (
        *((1, 0.575, 0.217), (2, 0.620, 0.230), (3, 0.665, 0.255), (4, 0.725, 0.203)),
        *((5, 0.770, 0.207), (6, 0.835, 0.140), (7, 0.905, 0.090), (8, 0.965, 0.034)),
    )
}
"""Fig. 3 of the paper for its invariant network, by eighths of correct invariance: one run each."""
NEARLY = 0.02
"""An accuracy no more than this below its ceiling nearly reaches it; within it a curve is flat."""


def world_name(world: World) -> str:
    """Name a world by its share of correct invariance.

    >>> world_name((0.25, 0.75)), world_name((0.0, 0.0))
    ('2/8', 'all extrinsic')
    """
    return "all extrinsic" if sum(world) == 0 else f"{8 * world[0]:g}/8"


def printed(world: World, quantity: str) -> str:
    """What the paper's figure shows for its invariant network, where it shows something.

    >>> printed((0.125, 0.875), "ece"), printed((0.0, 1.0), "ece")
    ('0.217', '')
    """
    found = PAPER.get(round(8 * world[0]), {}) if sum(world) else {}
    return f"{found[quantity]:.3f}" if found else ""


def worlds_of(rows: Sequence[Row]) -> list[World]:
    """The worlds, in the order of the rows."""
    return list(dict.fromkeys((row["correct"], row["incorrect"]) for row in rows))


def line_of(rows: Sequence[Row]) -> list[World]:
    """Give the worlds of the paper's line, by their share of correct invariance."""
    return sorted(world for world in worlds_of(rows) if sum(world))


def values(
    rows: Sequence[Row], column: str, network: str, world: World, epoch: int | None = None
) -> list[float]:
    """One column over the seeds: of a network in a world, after some epochs (by default the last).

    >>> row = {"correct": 0.0, "incorrect": 1.0, "network": PLAIN, "epoch": 9, "ece": 0.5}
    >>> values([row], "ece", PLAIN, (0.0, 1.0))
    [0.5]
    """
    at = max(row["epoch"] for row in rows) if epoch is None else epoch
    wanted = (network, at, *world)
    return [
        row[column]
        for row in rows
        if (row["network"], row["epoch"], row["correct"], row["incorrect"]) == wanted
    ]


def settings_table(rows: Sequence[Row]) -> str:
    """What was trained and measured."""
    last = max(row["epoch"] for row in rows)
    ends = [row for row in rows if row["epoch"] == last]
    gap = max(row["gap"] for row in ends if row["network"] == INVARIANT)
    sizes = {row["network"]: row["parameters"] for row in rows}
    lines = [
        ["seeds", ", ".join(str(seed) for seed in sorted({row["seed"] for row in rows}))],
        ["training runs", str(len(ends))],
        ["epochs", str(last)],
        ["training points", str(rows[0]["train"])],
        ["test points", f"{rows[0]['test']:,}"],
        *([f"parameters, {name}", f"{count:,}"] for name, count in sizes.items()),
        [f"{INVARIANT}: largest change of a probability under the swap", f"{gap:.1e}"],
        ["minutes of processor time, all runs", f"{sum(row['seconds'] for row in ends) / 60:.1f}"],
    ]
    return markdown(["setting", "value"], lines)


def accuracy_table(rows: Sequence[Row]) -> str:
    """Accuracy beside its exact ceiling and the paper's values."""
    lines = [
        [
            world_name(world),
            f"{values(rows, 'ceiling', INVARIANT, world)[0]:.4f}",
            spread(values(rows, "accuracy", INVARIANT, world)),
            f"{max(values(rows, 'accuracy', INVARIANT, world)):.4f}",
            printed(world, "accuracy"),
            spread(values(rows, "accuracy", PLAIN, world)),
        ]
        for world in worlds_of(rows)
    ]
    header = ["correct share", "ceiling", INVARIANT, "its best seed", "paper's invariant", PLAIN]
    return markdown(header, lines)


def ece_table(rows: Sequence[Row]) -> str:
    """ECE inside its sharp interval, beside the paper's values."""
    lines = [
        [
            world_name(world),
            *(
                spread(values(rows, column, INVARIANT, world))
                for column in ("sharp_lower", "ece", "sharp_upper")
            ),
            printed(world, "ece"),
            spread(values(rows, "ece", PLAIN, world)),
        ]
        for world in worlds_of(rows)
    ]
    header = ["lower end", f"ECE, {INVARIANT}", "upper end", "paper's invariant", f"ECE, {PLAIN}"]
    return markdown(["correct share", *header], lines)


def bias_table(rows: Sequence[Row]) -> str:
    """ECE of the whole test world beside ECE of small test sets drawn from it."""
    lines = []
    for world in worlds_of(rows):
        for network in (INVARIANT, PLAIN):
            whole, small, deviation, calibrated = (
                values(rows, column, network, world)
                for column in ("ece", "small_ece", "small_spread", "small_calibrated")
            )
            lines.append(
                [
                    world_name(world),
                    network,
                    spread(whole),
                    spread(small),
                    f"{sum(deviation) / len(deviation):.3f}",
                    f"{sum(calibrated) / len(calibrated):.3f}",
                    printed(world, "ece") if network == INVARIANT else "",
                ]
            )
    size, draws = rows[0]["small"], rows[0]["draws"]
    header = [
        *("correct share", "network", f"{rows[0]['test']:,} points"),
        f"{size} points, mean of {draws} sets",
        *("deviation between sets", f"{size} points, if calibrated", "paper's invariant"),
    ]
    return markdown(header, lines)


def epochs_table(rows: Sequence[Row]) -> str:
    """How ECE and its lower end grow with training."""
    stages = sorted({row["epoch"] for row in rows})
    lines = [
        [
            world_name(world),
            *(
                spread(values(rows, column, INVARIANT, world, epoch))
                for epoch in stages
                for column in ("accuracy", "sharp_lower", "ece")
            ),
        ]
        for world in worlds_of(rows)
    ]
    header = [f"{name}, {e}" for e in stages for name in ("accuracy", "lower end", "ECE")]
    return markdown(["correct share", *header], lines)


def findings(rows: Sequence[Row]) -> str:
    """What the rows say, in sentences whose numbers come from them."""

    def mean(column: str, world: World, network: str = INVARIANT) -> float:
        found = values(rows, column, network, world)
        return sum(found) / len(found)

    line = line_of(rows)
    ends = [row for row in rows if row["network"] == INVARIANT]
    below = [mean("ceiling", world) - mean("accuracy", world) for world in line]
    above = sum(row["accuracy"] > row["ceiling"] + 1e-9 for row in ends)
    outside = sum(
        not row["sharp_lower"] - 1e-4 <= row["ece"] <= row["sharp_upper"] + 1e-4 for row in ends
    )
    ceiling = "The ceiling holds" if above == 0 else "The ceiling is broken"
    reached = "and is nearly reached" if max(below) <= NEARLY else "and is not reached everywhere"
    sentences = [
        f"**{ceiling} {reached}.** {above} of {len(ends)} measurements of the "
        f"{INVARIANT} network lie above it; after the last epoch the mean accuracy is "
        f"{min(below):.3f} to {max(below):.3f} below it. The {PLAIN}, which sees the height, has "
        f"{min(mean('accuracy', w, PLAIN) for w in line):.3f} to "
        f"{max(mean('accuracy', w, PLAIN) for w in line):.3f}.",
        f"**The interval {'holds' if outside == 0 else 'is broken'}.** {outside} of {len(ends)} "
        "measured ECEs lie outside it.",
    ]
    for eighths in (1, 4):
        world = (eighths / 8, 1 - eighths / 8)
        if world not in line:
            continue
        forced, whole = mean("sharp_lower", world), mean("ece", world)
        deviation = (mean("ceiling", world) * (1 - mean("ceiling", world)) / 200) ** 0.5
        sentences.append(
            f"**At {world_name(world)} correct** the ECE is {whole:.3f}, of which "
            f"{forced:.3f} ({forced / whole:.0%}) is forced by the symmetry. On "
            f"{rows[0]['small']} points the same networks show {mean('small_ece', world):.3f} on "
            f"average, and would show {mean('small_calibrated', world):.3f} if they were perfectly "
            f"calibrated; the paper prints {printed(world, 'ece')}. Its accuracy there is "
            f"{printed(world, 'accuracy')} against a ceiling of {mean('ceiling', world):.4f}: on "
            f"200 points an accuracy at the ceiling has a standard deviation of {deviation:.3f}."
        )
    first, final = line[0], line[-1]
    levels = [mean("accuracy", world, PLAIN) for world in line]
    falls = levels[0] - levels[-1] > NEARLY
    reason = (
        ": the height alone tells the labels of an incorrect world, those of a correct one must be "
        f"learnt in the plane from {rows[0]['train']} points"
    )
    sentences.append(
        f"**The {PLAIN} is {'not flat' if max(levels) - min(levels) > NEARLY else 'flat'}.** From "
        f"{world_name(first)} to {world_name(final)} accuracy "
        f"goes from {levels[0]:.3f} to {levels[-1]:.3f}, "
        f"its ECE from {mean('ece', first, PLAIN):.3f} to {mean('ece', final, PLAIN):.3f}"
        f"{reason if falls else ''}."
    )
    return "\n".join(f"* {sentence}" for sentence in sentences)


def trend(rows: Sequence[Row]) -> str:
    """Say whether accuracy rises and ECE falls with the correct share, as the paper sees it.

    A step against the trend counts where it is larger than the deviation over seeds beside it.
    """
    line = line_of(rows)

    def steps(column: str, sign: int) -> tuple[bool, bool]:
        """Whether the ends differ as the trend has it, and no step goes against it."""
        found = [values(rows, column, INVARIANT, world) for world in line]
        means = [sign * statistics.fmean(each) for each in found]
        widths = [statistics.stdev(each) if len(each) > 1 else 0.0 for each in found]
        steady = all(
            means[later] - means[sooner] >= -max(widths[sooner], widths[later])
            for sooner, later in pairwise(range(len(line)))
        )
        return means[-1] > means[0], steady

    words = []
    for column, sign, name, verb in (
        ("accuracy", 1, "accuracy", "rise"),
        ("ece", -1, "the ECE", "fall"),
        ("sharp_lower", -1, "the lower end of its interval", "fall"),
    ):
        goes, steady = steps(column, sign)
        if goes:
            words.append(f"{name} {verb}s" + ("" if steady else " but not at every step"))
        else:
            words.append(f"{name} does not {verb}")
    whole = all(all(steps(column, sign)) for column, sign in (("accuracy", 1), ("ece", -1)))
    return (
        f"The trend itself is {'reproduced' if whole else 'not reproduced in full'}: as the "
        f"correct share rises, {words[0]}, {words[1]}, and {words[2]} (steps within a standard "
        "deviation over seeds left aside)."
    )


TABLES = {
    "settings": settings_table,
    "findings": findings,
    "accuracy": accuracy_table,
    "ece": ece_table,
    "bias": bias_table,
    "epochs": epochs_table,
    "trend": trend,
}
