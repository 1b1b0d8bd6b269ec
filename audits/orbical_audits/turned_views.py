"""Pictures that turn and are mirrored in the view of a network: families of positions, and a rule.

Views are square windows in the middle of larger pictures, so that what enters at their corners is
picture. A network is wrong in a view, or right, and it is confident there, or not.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

import orbical as ob

from .statistics import interval
from .verdicts import Verdict, stays_confident, verdict_of

GROUP = (
    "rotations by equal steps and the mirror image of each (D_n), of which quarter turns and "
    "mirror images (D4) move pixels exactly"
)
JUDGED = ("mirrored", "tilted", "rotated")
EXACT, WRONG, SURE, KNOWS, LEAST = 1e-3, 0.05, 0.5, 0.2, 10
RULE = (
    "By families of positions: **mirrored** (left and right exchanged), **tilted** (by up to "
    "30°), **rotated** (by more), over {samples}. {wrong} {sure} **Invariant** if {moved} "
    "(upper limit); **within tolerance** if less than 5 % of the {short} are wrong at some "
    "position of the family (upper limit). Otherwise, if at least ten of them are wrong "
    "somewhere: **not invariant and confident** if it is confident about more than half of the "
    "{failures} (lower limit); **not invariant, low confidence there** if it is confident about "
    "less "
    "than a fifth of them (upper limit), and of more than half of the {successes} (lower "
    "limit); else **not invariant**."
)
SECOND_WAY = (
    " A verdict counts as confirmed if other persons, moved by NumPy and Pillow, give it: "
    "**not invariant** if more than 5 % are wrong (lower limit), when tilted also more than of "
    "pictures that were tilted and tilted back (lower limit above their upper limit); **not "
    "invariant and confident** if, besides, the network is confident about more than half of the "
    "{failures} (lower limit)."
)


def families(scan: ob.Scan) -> dict[str, np.ndarray]:
    """Return which elements belong to each family of positions."""
    angle, mirrored = scan.data["angle"].values, scan.data["flip"].values == "mirrored"
    tilt = np.abs((angle + 180) % 360 - 180)
    return {
        "mirrored": mirrored & (tilt < 1),
        "tilted": ~mirrored & (tilt > 1) & (tilt < 31),
        "rotated": ~mirrored & (tilt > 31),
        "upside down": ~mirrored & (tilt > 179),
        "mirrored and rotated": mirrored & (tilt > 31),
    }


def share_of(part: np.ndarray, whole: np.ndarray, seed: int) -> dict[str, float] | None:
    """Return a share of counts `[sample, view]`, drawn by samples; None for less than ten samples.

    >>> share_of(np.ones((20, 3)), np.full((20, 3), 4), 0)
    {'value': 0.25, 'low': 0.25, 'high': 0.25, 'n': 20}
    """
    counts = np.stack([part.sum(1), whole.sum(1)], 1)
    counts = counts[counts[:, 1] > 0]
    if len(counts) < LEAST:
        return None
    return interval(counts, lambda rows: float(np.divide(*rows.sum(0))), seed=seed)


def judge(row: Mapping[str, Any], upright: Mapping[str, Any]) -> Verdict:
    """Apply the rule to the row of a family, and to that of the upright views."""
    right = upright["confident where right"]
    confident = stays_confident(row["confident where wrong"], high=SURE, low=KNOWS)
    if confident is False and not (right and right["low"] > SURE):  # it is never confident
        confident = None
    exact = row["moved by"]["high"] < EXACT
    return verdict_of(row["wrong somewhere"], WRONG, exact=exact, confident=confident)


def confirms(row: Mapping[str, Any], control: Mapping[str, Any] | None = None) -> str:
    """Return which verdict other samples give; `control` is the row of tilts that were undone."""
    limit = max(WRONG, control["wrong"]["high"]) if control else WRONG
    if row["wrong"]["low"] <= limit:
        return "none"
    sure = row["confident where wrong"]
    return str(Verdict.CONFIDENT if sure and sure["low"] > SURE else Verdict.NOT_INVARIANT)


def decide(title: str, tables: Mapping[str, Any]) -> dict[str, Verdict]:
    """Return the verdict of each network on each family; `title` has a place for the network."""
    upright = {row["network"]: row for row in tables["upright"]}
    return {
        f"{title.format(row['network'])}, {row['family']}": judge(row, upright[row["network"]])
        for row in tables["families"]
        if row["family"] in JUDGED
    }


def drawn(
    scan: ob.Scan,
    wrong: Mapping[str, np.ndarray],
    sure: Mapping[str, np.ndarray],
    words: tuple[str, str],
) -> Any:
    """Draw for each network how often it is wrong, and confident about it, at every angle.

    Args:
        scan: of which angles and mirror images are taken.
        wrong: counts `[sample, element]` of what is wrong, over one, for each network.
        confident: how many of these it is confident about.
        words: what the two panels show.
    """
    mirrored = scan.data["flip"].values == "mirrored"
    angle = (scan.data["angle"].values + 179.9) % 360 - 179.9
    colors = ob.figures.model_colors(wrong)
    with ob.figures.styled():
        fig = ob.figures.figure(ob.figures.PAGE, 2.6)
        left, right = fig.subplots(1, 2, sharey=True)
        for name, color in colors.items():
            count = wrong[name].sum(0)
            with np.errstate(invalid="ignore"):
                panels = {left: wrong[name].mean(0), right: sure[name].sum(0) / count}
            for axes, values in panels.items():
                for flip, line in ((False, "-"), (True, ":")):
                    chosen = np.flatnonzero((mirrored == flip) & ((count > 4) | (axes is left)))
                    order = chosen[np.argsort(angle[chosen])]
                    label = f"{name}{', mirrored' if flip else ''}"
                    style = {"color": color, "ls": line, "marker": "o", "ms": 2.5, "label": label}
                    axes.plot(angle[order], values[order], **style)
        for axes, word in zip((left, right), words, strict=True):
            axes.set(xlabel="angle in degrees", title=word, ylim=(-0.03, 1.03), xlim=(-185, 185))
            axes.set_xticks(range(-180, 181, 60))
        handles, labels = left.get_legend_handles_labels()
        fig.legend(handles, labels, loc="outside lower center", ncols=min(4, len(labels)))
    return fig
