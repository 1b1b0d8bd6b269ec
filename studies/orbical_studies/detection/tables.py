"""The detection study's tables: one line a level, mean and deviation over the seeds."""

from __future__ import annotations

from collections.abc import Sequence

from ..pages import Row, markdown, mean, spread
from .settings import JITTERS


def values_of(rows: Sequence[Row], jitter: int, name: str) -> list[float]:
    """One number of a level, of every seed."""
    return [row[name] for row in rows if row["jitter"] == jitter]


def percent(values: Sequence[float], digits: int = 0) -> str:
    """Write shares as percent, mean and deviation over seeds.

    >>> percent([0.25]), percent([0.2, 0.4])
    ('25 %', '30 ± 14 %')
    """
    return f"{spread([100 * value for value in values], digits)} %"


def _table(
    rows: Sequence[Row], columns: Sequence[tuple[str, str, int]], shares: Sequence[str] = ()
) -> str:
    """One line a level, mean and deviation over seeds.

    Args:
        rows: one a training.
        columns: header, name and digits of each.
        shares: names of those written in percent.
    """
    lines = []
    for jitter in JITTERS:
        cells = [
            (percent if name in shares else spread)(values_of(rows, jitter, name), digits)
            for _, name, digits in columns
        ]
        lines.append([f"{jitter} %", *cells])
    return markdown(["jitter", *(header for header, _, _ in columns)], lines)


def level_table(rows: Sequence[Row]) -> str:
    """Tell how good each level is, and how wide its peak."""
    columns = [
        ("score, centre", "centre", 3),
        ("over the orbit", "orbit", 3),
        ("at the corners", "corner", 3),
        ("width of the peak (px)", "width_px", 1),
        ("IoU, centre", "iou_centre", 3),
        ("IoU, orbit", "iou_orbit", 3),
    ]
    return _table(rows, columns)


def detections_table(rows: Sequence[Row]) -> str:
    """Tell how good and how honest all detections of each level are."""
    columns = [
        ("AP, centre", "ap_centre", 3),
        ("AP, orbit", "ap_orbit", 3),
        ("ECE, centre", "ece_centre", 3),
        ("ECE, orbit", "ece_orbit", 3),
        ("invariance gap", "gap", 3),
    ]
    return _table(rows, columns)


def class_table(rows: Sequence[Row]) -> str:
    """Tell the score of each class: centre, and mean over the orbit, means over seeds."""
    classes = list(dict.fromkeys((row["class"], row["objects"]) for row in rows))
    lines = []
    for jitter in JITTERS:
        cells = [f"{jitter} %"]
        for name, _ in classes:
            mine = [row for row in rows if row["jitter"] == jitter and row["class"] == name]
            cells.append(
                " / ".join(f"{mean(row[part] for row in mine):.3f}" for part in ("centre", "orbit"))
            )
        lines.append(cells)
    return markdown(["jitter", *(f"{name} ({count})" for name, count in classes)], lines)


def consensus_table(rows: Sequence[Row]) -> str:
    """Tell how alike the plots against truth and consensus are."""
    columns = [
        ("median correlation", "median", 2),
        ("above 0.9", "alike", 0),
        ("consensus is the key object", "hit", 0),
        ("median correlation there", "median_hit", 2),
        ("above 0.9 there", "alike_hit", 0),
        ("median correlation elsewhere", "median_miss", 2),
    ]
    return _table(rows, columns, shares=("alike", "hit", "alike_hit"))


def dark_table(rows: Sequence[Row]) -> str:
    """Tell how many dark spots there are, and what is lost there."""
    columns = [
        ("dark spots", "dark", 0),
        ("share of all shifts", "share", 2),
        ("key objects with one", "objects", 0),
        ("box lost", "box_lost", 0),
        ("wrong box first", "wrong_first", 0),
        ("confidence alone lost", "confidence_lost", 0),
    ]
    shares = ("share", "box_lost", "wrong_first", "confidence_lost")
    return _table(rows, columns, shares)


def period_table(rows: Sequence[Row]) -> str:
    """Tell the autocorrelation of single plots by lag.

    >>> period_table([])
    'The shifts lie too far apart to tell.'
    """
    lags = sorted({row["lag_px"] for row in rows})
    if not lags:
        return "The shifts lie too far apart to tell."
    lines = []
    for jitter in JITTERS:
        objects = mean(values_of(rows, jitter, "objects"))
        lines.append(
            [
                f"{jitter} % ({objects:.0f})",
                *(spread(repetition(rows, jitter, lag), 2) for lag in lags),
            ]
        )
    return markdown(["jitter (objects)", *(f"{lag} px" for lag in lags)], lines)


def repetition(rows: Sequence[Row], jitter: int, lag: int) -> list[float]:
    """Correlation of a level's plots with themselves at a lag, of every seed."""
    return [
        (row["dx"] + row["dy"]) / 2
        for row in rows
        if row["jitter"] == jitter and row["lag_px"] == lag
    ]
