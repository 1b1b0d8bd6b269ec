"""What the detection study found: the paper's sentences held against the numbers.

A claim is asked of every seed by itself: it is confirmed where all of them say so.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from statistics import stdev

from ..pages import Row, mean, spread, verdict
from .settings import JITTERS, complete_seeds
from .tables import percent, repetition, values_of

FLAT = 0.5
"""Share of the score at the centre that a flat plot still has at its corners."""

AS_SURE = 0.8
"""Share of the confidence at the centre that a detector has elsewhere if it is hardly less sure."""


PRICE = ": the height falls with the width; whether longer training lifts it was not tested"


def held(claims: Sequence[bool]) -> str:
    """Say by how many seeds a sentence of the paper is borne out.

    >>> held([True]), held([True, True]), held([True, False, True])
    ('confirmed', 'confirmed by all 2 seeds', 'confirmed by 2 of 3 seeds')
    >>> held([False, False])
    'not confirmed here'
    """
    if len(claims) == 1 or not any(claims):
        return verdict(any(claims))
    return f"{verdict(True)} by {'all' if all(claims) else f'{sum(claims)} of'} {len(claims)} seeds"


def agreed(claims: Sequence[bool], yes: str, no: str) -> str:
    """Say what all seeds say, or in how many of them it is so.

    >>> agreed([True, True], "it grows", "it falls"), agreed([False], "it grows", "it falls")
    ('it grows', 'it falls')
    >>> agreed([True, False, False], "it grows", "it falls")
    'in 1 of 3 seeds it grows'
    """
    if any(claims) and not all(claims):
        return f"in {sum(claims)} of {len(claims)} seeds {yes}"
    return yes if all(claims) else no


def by_seed(rows: Sequence[Row]) -> list[list[Row]]:
    """Sort rows by seed, in the order of the levels."""
    seeds = dict.fromkeys(row["seed"] for row in rows)
    return [[row for row in rows if row["seed"] == seed] for seed in seeds]


def widens(levels: Sequence[Row]) -> bool:
    """Whether one seed's peak is the wider the more jitter there was."""
    growing = all(a["width_px"] <= b["width_px"] for a, b in pairwise(levels))
    return growing and levels[-1]["width_px"] > levels[0]["width_px"]


def is_centred(level: Row) -> bool:
    """Whether a detector is good near the centre alone."""
    return bool(level["corner"] < FLAT * level["centre"])


def is_flat(level: Row) -> bool:
    """Whether a detector's mean plot is nearly flat."""
    return bool(level["corner"] > FLAT * level["centre"])


def lowers(levels: Sequence[Row]) -> bool:
    """Whether one seed's score at the centre falls with jitter."""
    return all(a["centre"] >= b["centre"] for a, b in pairwise(levels))


def findings(
    levels: Sequence[Row],
    consensus: Sequence[Row],
    dark: Sequence[Row],
    period: Sequence[Row],
    certainty: Sequence[Row],
) -> str:
    """Hold the paper's claims against the numbers."""
    seeds = by_seed(levels)
    first, last = JITTERS[0], JITTERS[-1]

    def told(jitter: int, name: str) -> str:
        return spread(values_of(levels, jitter, name), 3)

    widths = ", ".join(spread(values_of(levels, jitter, "width_px"), 1) for jitter in JITTERS)
    peaks = ", ".join(told(jitter, "centre") for jitter in JITTERS)
    flat = held([is_flat(rows[-1]) for rows in seeds])
    price = all(is_flat(rows[-1]) and lowers(rows) for rows in seeds)
    turned = [rows[-1]["orbit"] > rows[0]["orbit"] for rows in seeds]
    spots = [row for row in dark if row["jitter"] == last]
    sentences = [
        f"**The more jitter, the wider the peak: {held([widens(rows) for rows in seeds])}.** The "
        f"shifts whose score is at least half of the best fill a square of {widths} pixels a side "
        "at 0, 25, 50, 75 and 100 % (66 is everything).",
        "**Without jitter a detector is good near the centre alone: "
        f"{held([is_centred(rows[0]) for rows in seeds])}.** {told(first, 'centre')} at the "
        f"centre, {told(first, 'corner')} at the corners.",
        f"**With 100 % jitter the mean plot is nearly flat: {flat}"
        f"{', at a price the paper does not show' if price else ''}.** It "
        f"has {told(last, 'centre')} at the centre, {told(last, 'corner')} at the "
        f"corners. Of equal budget, the levels reach {peaks} at the centre"
        f"{PRICE if price else ''}. Over the orbit "
        f"{agreed(turned, 'the order turns round', 'the order stays')}: "
        f"{told(first, 'orbit')} at 0 %, {told(last, 'orbit')} at 100 %.",
        "**Single plots have dark spots even with 100 % jitter: "
        f"{held([row['dark'] > 0 for row in spots])}.** The 100 % "
        f"detector has {spread(values_of(dark, last, 'dark'), 0)} dark spots on "
        f"{spread(values_of(dark, last, 'objects'), 0)} key objects. The "
        "paper found the same boxes in another order of confidence; here the box is there and a "
        f"wrong one comes first at {percent(values_of(dark, last, 'wrong_first'))} of them, "
        "confidence alone is lost at "
        f"{percent(values_of(dark, last, 'confidence_lost'))}, and the box itself at "
        f"{percent(values_of(dark, last, 'box_lost'))}.{grid_sentence(period)}",
        consensus_sentence(consensus),
        calibration_sentence(levels, certainty),
    ]
    return "\n".join(f"* {sentence}" for sentence in sentences)


def calibration_sentence(levels: Sequence[Row], certainty: Sequence[Row]) -> str:
    """Tell the calibration error at the centre and over the orbit, and in which sense it errs.

    Args:
        levels: a row a training.
        certainty: a row a level of one seed.
    """
    first, last = JITTERS[0], JITTERS[-1]
    ece = [
        spread(values_of(levels, jitter, f"ece_{place}"), 3)
        for jitter in (first, last)
        for place in ("centre", "orbit")
    ]
    worse = all(row["ece_orbit"] > row["ece_centre"] for row in levels if row["jitter"] == first)
    found = certainty[0]
    sure = found["confidence_orbit"] > max(
        found["precision_orbit"], AS_SURE * found["confidence_centre"]
    )
    lost = ": away from where it was trained, the detector errs more and is hardly less sure"
    return (
        "**Calibration and the peak.** The ECE of detections (confidence against precision "
        f"at IoU 0.5) is {ece[0]} at the centre and {ece[1]} over the orbit at 0 %, {ece[2]} and "
        f"{ece[3]} at 100 %. At 0 % (seed 0) detections over the "
        f"orbit have a mean confidence of {found['confidence_orbit']:.2f}, and "
        f"{100 * found['precision_orbit']:.1f} % of them are right; at the centre "
        f"{found['confidence_centre']:.2f} and {100 * found['precision_centre']:.1f} %"
        f"{lost if worse and sure else ''}."
    )


def consensus_sentence(rows: Sequence[Row]) -> str:
    """Tell whether the consensus does as well as the truth, in each seed."""
    first, last = JITTERS[0], JITTERS[-1]
    apart = all(
        max(row["median_miss"] for row in mine) < min(row["median_hit"] for row in mine)
        for mine in by_seed(rows)
    )
    as_well = [min(row["median_miss"] for row in mine) > 0.9 for mine in by_seed(rows)]
    hits, misses = (
        [mean(values_of(rows, jitter, name)) for jitter in JITTERS]
        for name in ("median_hit", "median_miss")
    )
    return (
        f"**The consensus does as well as the truth: {'corrected' if apart else held(as_well)}.** "
        "The paper shows one object. Over all, the two plots have a median correlation by level of "
        f"{min(hits):.2f} to {max(hits):.2f} where the consensus is the key object and of "
        f"{min(misses):.2f} to {max(misses):.2f} elsewhere; it is the key object for "
        f"{percent(values_of(rows, first, 'hit'))} of the objects at 0 %, "
        f"{percent(values_of(rows, last, 'hit'))} at 100 %. A "
        "consensus says how steady a detector is, not whether it is right, nor of which of several "
        "objects it is."
    )


def grid_sentence(rows: Sequence[Row]) -> str:
    """Tell whether single plots repeat with the cells of the network, where lags are so fine."""
    six, eight, ten, sixteen = (repetition(rows, 100, lag) for lag in (6, 8, 10, 16))
    if not six:
        return ""
    repeating = [
        min(eighth, sixteenth) > max(between)
        for eighth, sixteenth, *between in zip(eight, sixteen, six, ten, strict=True)
    ]
    begun = agreed(repeating, "plots repeat", "plots do not repeat")
    return (
        f" {begun[0].upper()}{begun[1:]} with the grid of the network, whose cells are 8 pixels "
        "wide and 16 at its coarser level: the correlation of a plot with itself is "
        f"{spread(eight, 2)} at a lag of 8 pixels and {spread(sixteen, 2)} at 16, against "
        f"{spread(six, 2)} at 6 and {spread(ten, 2)} at 10."
    )


def training_sentence(trained: Sequence[Row]) -> str:
    """Tell how many trainings there are, of how many steps, and what is left out.

    Args:
        trained: a row a training, as `train` wrote it.
    """
    seeds = complete_seeds(trained)
    used = [row for row in trained if row["seed"] in seeds]
    steps = sorted({row["steps"] for row in used})
    each = f"{steps[0]:,}" if len(steps) == 1 else f"{steps[0]:,} to {steps[-1]:,}"
    many = f"seeds {', '.join(map(str, seeds))}" if len(seeds) > 1 else f"seed {seeds[0]} alone"
    text = (
        f"* **Training**: AdamW, {each} steps of {used[0]['batch']} views for each of "
        f"{len(used)} detectors, the five levels with {many}. Only the key object is a "
        "target; cells inside other objects are neither target nor background, so that levels "
        "differ in nothing but where the key object was. Weights are averages over the last steps, "
        "and no score chose among them."
    )
    early = sum(row["steps"] < row["asked"] for row in used)
    if early:
        text += f" {early} of them were stopped by the time before their last step."
    left_out = sorted({row["seed"] for row in trained} - set(seeds))
    if left_out:
        text += f" Of seed {', '.join(map(str, left_out))} a level is missing: left out."
    return text


def resolution_sentence(levels: Sequence[Row], objects: Sequence[Row]) -> str:
    """Tell which neighbouring levels the seeds do not tell apart, and what they leave out.

    Args:
        levels: a row a training.
        objects: a row a level and key object, means over the seeds.
    """
    if len(by_seed(levels)) == 1:
        return (
            "* **Spread**: there is one training a level; differences between neighbouring levels "
            "of a hundredth in score are not claimed."
        )
    blurred = [
        f"{low} and {high} % {words}"
        for name, words in (("centre", "at the centre"), ("orbit", "over the orbit"))
        for low, high in pairwise(JITTERS)
        if _overlap(values_of(levels, low, name), values_of(levels, high, name))
    ]
    return (
        "* **Spread**: numbers are means ± standard deviations over the seeds. The scores of "
        "neighbouring levels, at the centre and over the orbit, have ranges over the seeds that "
        + (f"overlap for {', '.join(blurred)}." if blurred else "overlap nowhere.")
        + " Seeds do not tell what other key objects would: the standard error of a mean over "
        f"these is up to {_standard_error(objects, 'centre'):.3f} at the centre and "
        f"{_standard_error(objects, 'orbit'):.3f} over the orbit, and more where one image has "
        "several."
    )


def _standard_error(objects: Sequence[Row], name: str) -> float:
    """The largest standard error over key objects of a level's mean, as if independent."""
    found = [values_of(objects, jitter, name) for jitter in JITTERS]
    return max(stdev(scores) / len(scores) ** 0.5 for scores in found)


def _overlap(first: Sequence[float], second: Sequence[float]) -> bool:
    return max(min(first), min(second)) <= min(max(first), max(second))


def counting_sentence(consensus: Sequence[Row]) -> str:
    """Tell what average precision and calibration error count."""
    books = [100 * row["book"] for row in consensus]
    return (
        "* **What AP and ECE count**: every labelled object of the five classes in view, though "
        'only the key object was a target, which keeps AP low; a "book" counts as wrong where '
        "books are unlabelled. The score of the key object is touched by neither. In "
        f"{min(books):.0f} to {max(books):.0f} % of the consensuses of a training the first "
        "cluster is a book."
    )
