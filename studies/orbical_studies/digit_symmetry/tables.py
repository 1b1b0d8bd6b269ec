"""The digit study's tables, from its CSV files alone."""

from __future__ import annotations

from ..pages import markdown
from .numbers import DIGITS, SMOOTH, Results, least_error, wilson
from .settings import SMOOTHING


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
