"""What the digit study found: tables and sentences, from its CSV files alone."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

from ..pages import Row, markdown, read_csv
from .settings import QUANTISED, SMOOTHING

PLAIN, SMOOTH = SMOOTHING
DIGITS = range(10)


@dataclass(frozen=True)
class Results:
    """The rows of the four CSV files."""

    groups: list[Row]
    confusions: list[Row]
    collisions: list[Row]
    quantised: list[Row]

    @classmethod
    def read(cls, folder: Path) -> Results:
        """Read the files of a folder."""
        names = ("groups", "confusions", "collisions", "quantised")
        return cls(*(read_csv(folder / f"{name}.csv") for name in names))

    def summaries(self, images: str = PLAIN) -> dict[str, Row]:
        """The summary of each group, in the order of the study."""
        return {row["group"]: row for row in self.groups if row["images"] == images}

    def confused(self, group: str, images: str = PLAIN) -> dict[tuple[int, int], int]:
        """How often each digit's neighbour is each digit."""
        return {
            (row["digit"], row["neighbour"]): row["times"]
            for row in self.confusions
            if (row["group"], row["images"]) == (group, images)
        }

    def pairs(self, group: str) -> dict[tuple[int, int], int]:
        """How often two digits are taken for each other, most often first."""
        found: dict[tuple[int, int], int] = {}
        for (a, b), times in self.confused(group).items():
            if a != b:
                key = (min(a, b), max(a, b))
                found[key] = found.get(key, 0) + times
        return dict(sorted(found.items(), key=lambda item: (-item[1], item[0])))

    def digit_error(self, group: str, digit: int) -> float:
        """The share of one digit's images whose neighbour is another digit."""
        own = {b: n for (a, b), n in self.confused(group).items() if a == digit}
        return 1 - own.get(digit, 0) / sum(own.values())


def wilson(wrong: int, count: int) -> tuple[float, float]:
    """Wilson's 95 % interval of a share.

    >>> low, high = wilson(5, 100)
    >>> round(low, 4), round(high, 4)
    (0.0215, 0.1118)
    """
    z = 1.959964
    share, shrink = wrong / count, 1 + z * z / count
    middle = (share + z * z / (2 * count)) / shrink
    reach = z / shrink * math.sqrt(share * (1 - share) / count + (z / (2 * count)) ** 2)
    return middle - reach, middle + reach


def least_error(nearest_error: float, labels: int = 10) -> float:
    """The least error that a nearest-neighbour error leaves possible, with unlimited data.

    Cover and Hart: with R* the best error there is, the nearest neighbour's R satisfies
    `R* <= R <= R* (2 - C / (C - 1) R*)`; this is the second inequality solved for R*.

    >>> round(least_error(0.0942, labels=10), 4)
    0.0484
    """
    shape = labels / (labels - 1)
    return (1 - math.sqrt(max(0.0, 1 - shape * nearest_error))) / shape


def error_table(results: Results) -> str:
    """Errors of each group beside the trivial one's."""
    lines = []
    smooth = results.summaries(SMOOTH)
    base = results.summaries()["trivial"]
    for name, row in results.summaries().items():
        low, high = wilson(row["wrong"], row["count"])
        error = row["wrong"] / row["count"]
        beside = smooth[name]
        lines.append(
            [
                name,
                str(row["elements"]),
                f"{100 * error:.2f} [{100 * low:.2f}, {100 * high:.2f}]",
                f"{100 * (row['wrong'] - base['wrong']) / row['count']:+.2f}",
                str(row["newly_wrong"]),
                str(row["newly_right"]),
                f"{100 * least_error(error):.2f}",
                f"{100 * beside['wrong'] / beside['count']:.2f}",
                f"{row['action_defect']:.3f}, {beside['action_defect']:.3f}",
            ]
        )
    header = [
        *("group", "elements", "error (%) [95 %]", "change (points)", "newly wrong"),
        *("newly right", "least error left (%)", "error, smoothed (%)", "action defect"),
    ]
    return markdown(header, lines)


def digit_table(results: Results) -> str:
    """The error of each digit in each group, in percent."""
    names = list(results.summaries())
    lines = [
        [str(digit), *(f"{100 * results.digit_error(name, digit):.1f}" for name in names)]
        for digit in DIGITS
    ]
    return markdown(["digit", *names], lines)


def pair_table(results: Results, most: int = 6) -> str:
    """The pairs that each group confuses more often than the trivial group does."""
    base = results.pairs("trivial")
    lines = []
    for name in results.summaries():
        found = results.pairs(name)
        gained = {pair: times - base.get(pair, 0) for pair, times in found.items()}
        ordered = found if name == "trivial" else dict(sorted(gained.items(), key=lambda i: -i[1]))
        shown = [
            f"{a}-{b}: {found[a, b]}" + ("" if name == "trivial" else f" ({gained[a, b]:+d})")
            for a, b in list(ordered)[:most]
        ]
        six_nine = f"{found.get((6, 9), 0)}"
        lines.append([name, six_nine, ", ".join(shown)])
    return markdown(["group", "6-9", "pairs, most gained first"], lines)


def quantised_table(results: Results) -> str:
    """The exact ceiling of each group on quantised images."""
    lines = [
        [
            f"{row['side']} x {row['side']}, above {row['threshold']}",
            row["group"],
            str(row["orbits"]),
            f"{100 * row['alone']:.0f}",
            f"{row['accuracy_ceiling']:.4f}",
            f"{row['cost']:.4f}",
            f"{row['incorrect']:.3f}",
            f"{row['extrinsic']:.3f}",
            row.get("pairs", ""),
        ]
        for row in results.quantised
    ]
    header = [
        *("quantisation", "group", "orbits", "alone in its orbit (%)", "accuracy ceiling"),
        *("cost of the symmetry", "incorrect", "extrinsic", "images lost, by pair"),
    ]
    return markdown(header, lines)


def settings_table(results: Results) -> str:
    """What was measured."""
    row = results.groups[0]
    seconds = sum(each["seconds"] for each in results.groups)
    lines = [
        ["data", f"{row['data']}, {row['count']:,} images"],
        ["samples of SO(2)", str(results.summaries()["SO(2)"]["elements"])],
        ["width of the smoothing (pixels)", f"{SMOOTHING[SMOOTH]:g}"],
        ["minutes for all neighbours", f"{seconds / 60:.1f}"],
    ]
    return markdown(["setting", "value"], lines)


def findings(results: Results) -> str:
    """What the files say, in sentences whose numbers come from them."""

    def errors(images: str, *groups: str) -> list[str]:
        rows = results.summaries(images)
        return [f"{100 * rows[name]['wrong'] / rows[name]['count']:.2f} %" for name in groups]

    def six_nine(group: str) -> int:
        return results.pairs(group).get((6, 9), 0)

    def harm(digit: int) -> float:
        return results.digit_error("C2", digit) - results.digit_error("trivial", digit)

    worst = max(DIGITS, key=harm)
    both = sum(n for (a, _), n in results.confused("trivial").items() if a in (6, 9))
    turns = ("trivial", "within 30°", "SO(2)")
    plain, smooth = errors(PLAIN, *turns), errors(SMOOTH, *turns)
    price = {
        images: 100
        * (rows["SO(2)"]["wrong"] - rows["within 30°"]["wrong"])
        / rows["SO(2)"]["count"]
        for images in SMOOTHING
        for rows in [results.summaries(images)]
    }
    side, threshold = QUANTISED[-1]
    cost = {
        row["group"]: f"{100 * row['cost']:.2f}"
        for row in results.quantised
        if (row["side"], row["threshold"]) == (side, threshold)
    }
    collide = wilson(six_nine("trivial"), both)[1] < wilson(six_nine("C2"), both)[0]
    mirrors = all(
        rows["D4"]["wrong"] > rows["C4"]["wrong"]
        for rows in (results.summaries(images) for images in SMOOTHING)
    )
    sentences = [
        f"**6 and 9 {'collide' if collide else 'do not collide'} under half turns.** They are "
        f"taken for each other {six_nine('trivial')} times without a "
        f"symmetry, {six_nine('C2')} times under C2, {six_nine('SO(2)')} times under SO(2). The "
        f"digit that C2 harms most is {worst}: {100 * results.digit_error('trivial', worst):.1f} % "
        f"wrong without it, {100 * results.digit_error('C2', worst):.1f} % with it.",
        f"**Slant and collision.** The error is {plain[0]} without turns, {plain[1]} with turns "
        f"within 30°, {plain[2]} with all turns (smoothed: {smooth[0]}, {smooth[1]}, {smooth[2]}). "
        "Turns beyond slant, which can make one digit of another, "
        f"{'cost' if price[PLAIN] > 0 else 'save'} {abs(price[PLAIN]):.2f} points "
        f"(smoothed: {'cost' if price[SMOOTH] > 0 else 'save'} {abs(price[SMOOTH]):.2f}), the "
        "difference of the last two.",
        f"**{'Mirrors cost beside turns' if mirrors else 'Mirrors cost nothing beside turns'}.** "
        + "D4 is wrong on {}, C4, which is its turns alone, on {} (smoothed: {}, {}).".format(
            *errors(PLAIN, "D4", "C4"), *errors(SMOOTH, "D4", "C4")
        ),
        f"**The exact answer on binary images** of {side} x {side} pixels, threshold {threshold}: "
        f"C2 lowers the ceiling by {cost['C2']} points, C4 by {cost['C4']}, D4 by {cost['D4']}.",
    ]
    return "\n".join(f"* {sentence}" for sentence in sentences)


TABLES = {
    "settings": settings_table,
    "findings": findings,
    "errors": error_table,
    "digits": digit_table,
    "pairs": pair_table,
    "quantised": quantised_table,
}
