"""The Swiss roll study's tables, from its rows alone."""

from __future__ import annotations

from collections.abc import Sequence

from ..pages import Row, markdown, spread
from .numbers import printed, values, world_name, worlds_of
from .settings import INVARIANT, PLAIN


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
