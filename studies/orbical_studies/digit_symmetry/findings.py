"""What the digit study found: sentences chosen by the numbers."""

from __future__ import annotations

from .numbers import DIGITS, PLAIN, SMOOTH, Results, wilson
from .settings import QUANTISED, SMOOTHING


def findings(results: Results) -> str:
    """Write what the files say, as a list."""
    sentences = [_collision(results), _slant(results), _mirrors(results), _quantised(results)]
    return "\n".join(f"* {sentence}" for sentence in sentences)


def _errors(results: Results, images: str, *groups: str) -> list[str]:
    rows = results.summaries(images)
    return [f"{100 * rows[name]['wrong'] / rows[name]['count']:.2f} %" for name in groups]


def _collision(results: Results) -> str:
    """Tell whether half turns make 6 and 9 of each other, and which digit they harm most."""
    both = sum(n for (a, _), n in results.confused("trivial").items() if a in (6, 9))
    without, half_turns, all_turns = (
        results.pairs(group).get((6, 9), 0) for group in ("trivial", "C2", "SO(2)")
    )
    collide = wilson(without, both)[1] < wilson(half_turns, both)[0]
    error = {
        digit: [results.digit_error(group, digit) for group in ("trivial", "C2")]
        for digit in DIGITS
    }
    worst = max(DIGITS, key=lambda digit: error[digit][1] - error[digit][0])
    return (
        f"**6 and 9 {'collide' if collide else 'do not collide'} under half turns.** They are "
        f"taken for each other {without} times without a "
        f"symmetry, {half_turns} times under C2, {all_turns} times under SO(2). The "
        f"digit that C2 harms most is {worst}: {100 * error[worst][0]:.1f} % "
        f"wrong without it, {100 * error[worst][1]:.1f} % with it."
    )


def _slant(results: Results) -> str:
    """Tell what turns forgive, and what those beyond slant cost."""
    turns = ("trivial", "within 30°", "SO(2)")
    plain, smooth = (_errors(results, images, *turns) for images in (PLAIN, SMOOTH))
    prices = []
    for images in (PLAIN, SMOOTH):
        rows = results.summaries(images)
        price = (rows["SO(2)"]["wrong"] - rows["within 30°"]["wrong"]) / rows["SO(2)"]["count"]
        prices.append(f"{'cost' if price > 0 else 'save'} {100 * abs(price):.2f}")
    return (
        f"**Slant and collision.** The error is {plain[0]} without turns, {plain[1]} with turns "
        f"within 30°, {plain[2]} with all turns (smoothed: {', '.join(smooth)}). "
        "Turns beyond slant, which can make one digit of another, "
        f"{prices[0]} points (smoothed: {prices[1]}), the difference of the last two."
    )


def _mirrors(results: Results) -> str:
    """Tell whether D4 is wrong more often than its turns alone."""
    cost = all(
        rows["D4"]["wrong"] > rows["C4"]["wrong"]
        for rows in (results.summaries(images) for images in SMOOTHING)
    )
    return (
        f"**{'Mirrors cost beside turns' if cost else 'Mirrors cost nothing beside turns'}.** "
        + "D4 is wrong on {}, C4, which is its turns alone, on {} (smoothed: {}, {}).".format(
            *_errors(results, PLAIN, "D4", "C4"), *_errors(results, SMOOTH, "D4", "C4")
        )
    )


def _quantised(results: Results) -> str:
    """Tell what each symmetry takes off the exact ceiling of the finest binary images."""
    side, threshold = QUANTISED[-1]
    cost = {
        row["group"]: f"{100 * row['cost']:.2f}"
        for row in results.quantised
        if (row["side"], row["threshold"]) == (side, threshold)
    }
    return (
        f"**The exact answer on binary images** of {side} x {side} pixels, threshold {threshold}: "
        f"C2 lowers the ceiling by {cost['C2']} points, C4 by {cost['C4']}, D4 by {cost['D4']}."
    )
