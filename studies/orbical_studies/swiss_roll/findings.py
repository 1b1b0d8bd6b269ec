"""What the Swiss roll study found: sentences chosen by the numbers."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from itertools import pairwise

from .. import pages
from ..pages import Row
from .numbers import World, line_of, printed, values, world_name
from .settings import INVARIANT, PLAIN

NEARLY = 0.02
"""An accuracy no more than this below its ceiling nearly reaches it; within it a curve is flat."""


def findings(rows: Sequence[Row]) -> str:
    """Write what the rows say, as a list."""
    shown = [(eighths / 8, 1 - eighths / 8) for eighths in (1, 4)]
    sentences = [
        _ceiling(rows),
        _interval(rows),
        *(_forced(rows, world) for world in shown if world in line_of(rows)),
        _perceptron(rows),
    ]
    return "\n".join(f"* {sentence}" for sentence in sentences)


def _mean(rows: Sequence[Row], column: str, world: World, network: str = INVARIANT) -> float:
    return pages.mean(values(rows, column, network, world))


def _ceiling(rows: Sequence[Row]) -> str:
    """Tell whether the ceiling holds, and how near the accuracy comes to it."""
    line = line_of(rows)
    measured = [row for row in rows if row["network"] == INVARIANT]
    above = sum(row["accuracy"] > row["ceiling"] + 1e-9 for row in measured)
    below = [_mean(rows, "ceiling", world) - _mean(rows, "accuracy", world) for world in line]
    free = [_mean(rows, "accuracy", world, PLAIN) for world in line]
    holds = "The ceiling holds" if above == 0 else "The ceiling is broken"
    reached = "and is nearly reached" if max(below) <= NEARLY else "and is not reached everywhere"
    return (
        f"**{holds} {reached}.** {above} of {len(measured)} measurements of the "
        f"{INVARIANT} network lie above it; after the last epoch the mean accuracy is "
        f"{min(below):.3f} to {max(below):.3f} below it. The {PLAIN}, which sees the height, has "
        f"{min(free):.3f} to {max(free):.3f}."
    )


def _interval(rows: Sequence[Row]) -> str:
    """Tell whether every measured ECE lies inside its sharp interval."""
    measured = [row for row in rows if row["network"] == INVARIANT]
    outside = sum(
        not row["sharp_lower"] - 1e-4 <= row["ece"] <= row["sharp_upper"] + 1e-4 for row in measured
    )
    return (
        f"**The interval {'holds' if outside == 0 else 'is broken'}.** {outside} of "
        f"{len(measured)} measured ECEs lie outside it."
    )


def _forced(rows: Sequence[Row], world: World) -> str:
    """Tell how much of a world's ECE the symmetry forces, and what a small test set adds."""
    forced, whole, ceiling, small, calibrated = (
        _mean(rows, column, world)
        for column in ("sharp_lower", "ece", "ceiling", "small_ece", "small_calibrated")
    )
    size = rows[0]["small"]
    deviation = (ceiling * (1 - ceiling) / size) ** 0.5
    return (
        f"**At {world_name(world)} correct** the ECE is {whole:.3f}, of which "
        f"{forced:.3f} ({forced / whole:.0%}) is forced by the symmetry. On "
        f"{size} points the same networks show {small:.3f} on "
        f"average, and would show {calibrated:.3f} if they were perfectly "
        f"calibrated; the paper prints {printed(world, 'ece')}. Its accuracy there is "
        f"{printed(world, 'accuracy')} against a ceiling of {ceiling:.4f}: on "
        f"{size} points an accuracy at the ceiling has a standard deviation of {deviation:.3f}."
    )


def _perceptron(rows: Sequence[Row]) -> str:
    """Tell whether the network that sees the height is flat along the paper's line."""
    line = line_of(rows)
    levels = [_mean(rows, "accuracy", world, PLAIN) for world in line]
    first, last = (_mean(rows, "ece", world, PLAIN) for world in (line[0], line[-1]))
    reason = (
        ": the height alone tells the labels of an incorrect world, those of a correct one must be "
        f"learnt in the plane from {rows[0]['train']} points"
    )
    return (
        f"**The {PLAIN} is {'not flat' if max(levels) - min(levels) > NEARLY else 'flat'}.** From "
        f"{world_name(line[0])} to {world_name(line[-1])} accuracy "
        f"goes from {levels[0]:.3f} to {levels[-1]:.3f}, its ECE from {first:.3f} to {last:.3f}"
        f"{reason if levels[0] - levels[-1] > NEARLY else ''}."
    )


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
