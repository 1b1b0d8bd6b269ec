"""What the detection study found: tables, and the paper's sentences held against the numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np

from ..pages import Row, markdown, verdict
from .settings import JITTERS

HIT = 0.5


def level_table(rows: Sequence[Row]) -> str:
    """Tell how good each level is, and how wide its peak."""
    header = [
        "jitter", "score, centre", "over the orbit", "at the corners", "width of the peak (px)",
        "IoU, centre", "IoU, orbit", "AP, centre", "AP, orbit", "ECE, centre", "ECE, orbit",
        "invariance gap",
    ]  # fmt: skip
    names = (
        "centre", "orbit", "corner", "width_px", "iou_centre", "iou_orbit", "ap_centre", "ap_orbit",
        "ece_centre", "ece_orbit", "gap",
    )  # fmt: skip
    lines = [
        [
            f"{row['jitter']} %",
            *(f"{row[name]:.0f}" if name == "width_px" else f"{row[name]:.3f}" for name in names),
        ]
        for row in rows
    ]
    return markdown(header, lines)


def class_table(rows: Sequence[Row]) -> str:
    """Tell the score of each class: centre, and mean over the orbit."""
    classes = list(dict.fromkeys((row["class"], row["objects"]) for row in rows))
    found = {(row["jitter"], row["class"]): row for row in rows}
    lines = [
        [
            f"{jitter} %",
            *(
                f"{found[jitter, name]['centre']:.3f} / {found[jitter, name]['orbit']:.3f}"
                for name, _ in classes
            ),
        ]
        for jitter in JITTERS
    ]
    return markdown(["jitter", *(f"{name} ({count})" for name, count in classes)], lines)


def consensus_summary(rows: Sequence[Row]) -> dict[int, dict[str, float]]:
    """Put all key objects of a level into a few numbers."""
    summary = {}
    for jitter in JITTERS:
        mine = [row for row in rows if row["jitter"] == jitter]
        agree = np.array([row["correlation"] for row in mine])
        hit = np.array([row["consensus_iou"] for row in mine]) >= HIT
        summary[jitter] = {
            "objects": len(mine),
            "median": float(np.nanmedian(agree)),
            "alike": float(np.nanmean(agree > 0.9)),
            "hit": float(hit.mean()),
            "median_hit": float(np.nanmedian(agree[hit])),
            "alike_hit": float(np.nanmean(agree[hit] > 0.9)),
            "median_miss": float(np.nanmedian(agree[~hit])),
        }
    return summary


def consensus_table(rows: Sequence[Row]) -> str:
    """Tell how alike the plots against truth and consensus are."""
    header = [
        "jitter", "median correlation", "above 0.9", "consensus is the key object",
        "median correlation there", "above 0.9 there", "median correlation elsewhere",
    ]  # fmt: skip
    lines = [
        [
            f"{jitter} %",
            f"{found['median']:.2f}",
            f"{found['alike']:.0%}",
            f"{found['hit']:.0%}",
            f"{found['median_hit']:.2f}",
            f"{found['alike_hit']:.0%}",
            f"{found['median_miss']:.2f}",
        ]
        for jitter, found in consensus_summary(rows).items()
    ]
    return markdown(header, lines)


def dark_table(rows: Sequence[Row]) -> str:
    """Tell how many dark spots there are, and what is lost there."""
    header = [
        "jitter", "dark spots", "share of all shifts", "key objects with one", "box lost",
        "order changed", "confidence alone lost",
    ]  # fmt: skip
    lines = [
        [
            f"{row['jitter']} %",
            str(row["dark"]),
            f"{row['share']:.2%}",
            str(row["objects"]),
            f"{row['box_lost']:.0%}",
            f"{row['order_changed']:.0%}",
            f"{row['confidence_lost']:.0%}",
        ]
        for row in rows
    ]
    return markdown(header, lines)


def period_table(rows: Sequence[Row]) -> str:
    """Tell the autocorrelation of single plots by lag."""
    lags = sorted({row["lag_px"] for row in rows})
    found = {(row["jitter"], row["lag_px"]): row for row in rows}
    lines = [
        [
            f"{jitter} % ({found[jitter, lags[0]]['objects']})",
            *(f"{(found[jitter, lag]['dx'] + found[jitter, lag]['dy']) / 2:.2f}" for lag in lags),
        ]
        for jitter in JITTERS
    ]
    return markdown(["jitter (objects)", *(f"{lag} px" for lag in lags)], lines)


def findings(
    levels: Sequence[Row], consensus: Sequence[Row], dark: Sequence[Row], period: Sequence[Row]
) -> str:
    """Hold the paper's claims against the numbers."""
    first, last = levels[0], levels[-1]
    widths = ", ".join(f"{row['width_px']:.0f}" for row in levels)
    peaks = ", ".join(f"{row['centre']:.3f}" for row in levels)
    agree = consensus_summary(consensus)
    hits = [found["median_hit"] for found in agree.values()]
    misses = [found["median_miss"] for found in agree.values()]
    lags = {(row["jitter"], row["lag_px"]): (row["dx"] + row["dy"]) / 2 for row in period}
    widening = all(a["width_px"] <= b["width_px"] for a, b in pairwise(levels))
    lowering = all(a["centre"] >= b["centre"] for a, b in pairwise(levels))
    flat = last["corner"] > 0.5 * last["centre"]
    sentences = [
        "**The more jitter, the wider the peak: "
        f"{verdict(widening and last['width_px'] > first['width_px'])}.** The shifts whose score "
        f"is at least half of the best fill a square of {widths} pixels a side at 0, 25, 50, 75 "
        "and 100 % (66 is everything).",
        "**Without jitter a detector is good near the centre alone: "
        f"{verdict(first['corner'] < 0.5 * first['centre'])}.** {first['centre']:.3f} at the "
        f"centre, {first['corner']:.3f} at the corners.",
        f"**With 100 % jitter the plot is nearly flat: {verdict(flat)}"
        f"{' on average, at a price the paper does not show' if flat and lowering else ''}.** The "
        f"mean plot has {last['centre']:.3f} at the centre, {last['corner']:.3f} at the corners. "
        f"Of equal budget, the levels reach {peaks} at the centre"
        f"{': the height falls with the width' if lowering else ''}. Over the orbit "
        f"{'the order turns round' if last['orbit'] > first['orbit'] else 'the order stays'}: "
        f"{first['orbit']:.3f} at 0 %, {last['orbit']:.3f} at 100 %.",
        "**Single plots have dark spots even with 100 % jitter: "
        f"{verdict(dark[-1]['dark'] > 0)}.** The 100 % "
        f"detector has {dark[-1]['dark']} dark spots on {dark[-1]['objects']} key objects. The "
        "paper found the same boxes in another order of confidence; here the order changes at "
        f"{dark[-1]['order_changed']:.0%} of them, confidence alone is lost at "
        f"{dark[-1]['confidence_lost']:.0%}, and the box itself at {dark[-1]['box_lost']:.0%}."
        f"{_grid_sentence(lags)}",
        "**The consensus does as well as the truth: "
        f"{'corrected' if max(misses) < min(hits) else verdict(min(misses) > 0.9)}.** The paper "
        "shows one "
        "object. Over all, the two plots have a median correlation by level of "
        f"{min(hits):.2f} to {max(hits):.2f} where the consensus is the key object and of "
        f"{min(misses):.2f} to {max(misses):.2f} elsewhere; it is the key object for "
        f"{agree[0]['hit']:.0%} of the objects at 0 %, {agree[100]['hit']:.0%} at 100 %. A "
        "consensus says how steady a detector is, not whether it is right.",
        "**Calibration and the peak.** The ECE of detections (confidence against precision "
        f"at IoU 0.5) is {first['ece_centre']:.3f} at the centre and {first['ece_orbit']:.3f} over "
        f"the orbit at 0 %, {last['ece_centre']:.3f} and {last['ece_orbit']:.3f} at 100 %"
        + (
            ": away from where it was trained, the detector is wrong and sure of it."
            if first["ece_orbit"] > first["ece_centre"]
            else "."
        ),
    ]
    return "\n".join(f"* {sentence}" for sentence in sentences)


def _grid_sentence(lags: Mapping[tuple[int, int], float]) -> str:
    """Tell whether single plots repeat with the cells of the network, where lags are so fine."""
    if not {(100, lag) for lag in (6, 8, 10, 16)} <= lags.keys():
        return ""
    six, eight, ten, sixteen = (lags[100, lag] for lag in (6, 8, 10, 16))
    begun = (
        "They come back with the grid of the network, whose cells are"
        if min(eight, sixteen) > max(six, ten)
        else "They do not come back with the grid of the network, whose cells are"
    )
    return (
        f" {begun} 8 pixels wide and 16 at its coarser level: the correlation of a plot with "
        f"itself is {eight:.2f} at a lag of 8 pixels and {sixteen:.2f} at 16, against {six:.2f} at "
        f"6 and {ten:.2f} at 10."
    )
