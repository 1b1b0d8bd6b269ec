"""What the particle-flow study found: sentences chosen by the numbers, and the numbers."""

from __future__ import annotations

from collections.abc import Sequence

from ..pages import Row, markdown, verdict
from .settings import MODELS
from .tables import chosen, mean
from .verdicts import (
    ALIKE,
    GATHERED,
    NEAR,
    Number,
    Samples,
    average,
    best_still,
    far_off,
    gap_makes_error,
    gathered,
    reversed_farneback,
    square,
    stand_ins,
    time_of,
    turned_farneback,
    within,
    worse_consensus,
    worst_moved,
)

TURNED = {
    "exact": "**Farneback is equivariant under turns and mirrors.**",
    "nearly": "**Farneback is nearly equivariant under turns and mirrors.**",
    "not": "**Farneback is not equivariant under turns and mirrors.**",
}
TURNED_MEANING = {
    "exact": "what the paper calls near-perfect is exact to rounding there. What gap it has comes "
    "from time reversal.",
    "nearly": "near-perfect, as the paper says, and not exact.",
    "not": "not the near-perfect that the paper calls it.",
}
REVERSED = {
    "alike": "**Its gap in time is a convention more than a fault.**",
    "more": "**Its gap in time is more than a convention.**",
    "less": "**Its gap in time is less than that of an estimator of forward flow.**",
    "mixed": "**Its gap in time is no convention alone: the sets of pairs do not agree.**",
}
TIMES = {
    ("middle", "first"): "**Which time a network answers is learnt, or not.**",
    ("first", "middle"): "**Which time a network answers is learnt, or not.**",
    ("middle", "middle"): "**Both networks have learnt the time of their truth.**",
    ("first", "first"): "**Neither network has learnt the time of its truth.**",
}
TIME_MEANING = {
    "middle": "has learnt the mid-time that its training truth had",
    "first": "stays with the first frame, to which its layers warp",
    "unclear": "is as near to the one as to the other",
}
SEEN = "**The directed network is "
ACCURACY = {
    (
        True,
        True,
    ): "the most accurate on the pairs as they are, and the worst once they are moved.**",
    (True, False): "the most accurate on the pairs as they are, and not the worst once they are "
    "moved.**",
    (False, True): "not the most accurate on the pairs as they are, and the worst once they are "
    "moved.**",
    (False, False): "neither the most accurate on the pairs as they are nor the worst once they "
    "are moved.**",
}
GATHERING = {
    "all": "**Errors gather in some places.**",
    "some": "**Errors gather in some places, for some flows and models.**",
    "none": "**Errors do not gather.**",
}


def findings(rows: Sequence[Row], rotations: Sequence[Row]) -> str:
    """Write a list in Markdown; numbers of several sets of pairs stand beside each other.

    Args:
        rows: of `samples.csv`.
        rotations: rows of `rotations.csv`.
    """
    samples = Samples(rows)

    def number(function: Number, model: str, digits: int = 3, **wanted: object) -> str:
        found = samples.each(function, model, **wanted)
        return " / ".join(f"{value:.{digits}f}" for value in found)

    def numbers(function: Number, digits: int = 3) -> str:
        return ", ".join(f"{model} {number(function, model, digits)}" for model in MODELS)

    def still(model: str) -> str:
        return number(average("gap"), model, kind="turbulence")

    def times(model: str) -> str:
        given, carried = average("error"), average("error_forward_truth")
        return f"from {number(given, model)} to {number(carried, model)} px"

    lost = max(row["gap_plane"] for row in chosen(rows, model="farneback"))
    angles = sorted({row["angle"] for row in rotations})
    swing = []
    for model in MODELS:
        here = chosen(rotations, model=model)
        curve = [mean(chosen(here, angle=angle), "error") for angle in angles]
        swing.append(f"{model} {max(curve) / min(curve):.1f}")
    shares = samples.shares()
    turned = turned_farneback(samples)
    answered = time_of(samples, "directed"), time_of(samples, "symmetric")
    points = [
        f"{TURNED[turned]} The largest gap over D4 of any pair is {lost:.1e} px: "
        f"{TURNED_MEANING[turned]} Gap over D4 × time: {numbers(square('gap'))} px.",
        f"{REVERSED[reversed_farneback(samples)]} Its answers forwards and backwards "
        f"differ by {number(average('time_difference'), 'farneback')} px; a perfect estimator of "
        f"forward flow would by {number(average('self_advection'), 'farneback')} px, the mean of "
        "|u · ∇u|. That is over all pairs; by kind of flow it is in the table of time reversal.",
        f"{TIMES.get(answered, '**Which time a network answers is not settled here.**')} Judged by "
        "the truth carried to the first frame instead of the given one, the directed network goes "
        f"{times('directed')}, the symmetric one {times('symmetric')}: the directed one "
        f"{TIME_MEANING[answered[0]]}, the symmetric one {TIME_MEANING[answered[1]]}.",
        f"{SEEN}{ACCURACY[best_still(samples), worst_moved(samples)]} "
        f"As they are: {numbers(average('error'))} px. At the worst of the 16 "
        f"elements: {numbers(average('error_worst'))} px.",
        f"{_cause(samples)} The same network with moved training pairs has a gap of "
        f"{number(square('gap'), 'symmetric')} px. And on turbulence, which had no direction in "
        f"training, the directed network's gap is {still('directed')} px, Farneback's "
        f"{still('farneback')} px. {_price(samples)}",
        "**Consensus.** The mean of the un-moved answers has an error of "
        f"{numbers(average('consensus_error'))} px: {_consensus(samples)} than the answer to the "
        f"pair as it is. As a stand-in for the truth it gives {_stand_in(samples)}; correlation of "
        f"the two plots: {numbers(average('consensus_likeness'), 2)}. A flat plot leaves nothing "
        "to correlate, and what all elements get wrong alike stays unseen.",
        f"**Any angle.** Worst over best angle of the mean error: {', '.join(swing)}.",
        f"{GATHERING[gathered(shares)]} The worst tenth of the pixels holds "
        f"{100 * min(shares):.0f} to {100 * max(shares):.0f} % of the squared error, by kind of "
        "flow and model; Gaussian errors of one size everywhere would give "
        f"{100 * GATHERED:.0f} %.",
    ]
    beside = (
        f"Where two numbers stand: {' / '.join(samples.sets)}\n\n" if len(samples.sets) > 1 else ""
    )
    return beside + "\n".join(f"* {point}" for point in points)


def paper_table(rows: Sequence[Row]) -> str:
    """Hold what the paper says against the rows of `samples.csv`."""
    samples = Samples(rows)
    turned, reversed_ = turned_farneback(samples), reversed_farneback(samples)
    equivariant = {
        "exact": "confirmed, and sharper: exact to rounding under D4",
        "nearly": "confirmed under D4",
        "not": "not confirmed here",
    }[turned]
    convention = {
        "alike": "by about as much as any estimator of forward flow must",
        "more": "by more than an estimator of forward flow must",
        "less": "by less than an estimator of forward flow must",
        "mixed": "by what depends on the pairs",
    }[reversed_]
    learned = {
        True: "confirmed for a network whose training flows had a direction",
        False: "not confirmed here, even for a network whose training flows had a direction",
    }[far_off(samples)]
    near = [
        words
        for words, holds in (
            ("the same network with moved training pairs", within(samples, "symmetric")),
            (
                "the directed one on turbulence, which has no direction",
                within(samples, "directed", kind="turbulence"),
            ),
        )
        if holds
    ]
    if far_off(samples):
        learned += (
            "; not a property of learned models, for near Farneback (up to "
            f"{NEAR:g} times its gap): {', and '.join(near)}"
            if near
            else "; and for one with moved training pairs as well"
        )
    # An average hides a gap where the most accurate model has the largest.
    others = [model for model in MODELS if model != "directed"]
    hides = best_still(samples) and all(
        samples.below(square("gap"), model, ["directed"]) for model in others
    )
    turbulence, everywhere = (
        gathered(samples.shares(kind="turbulence")),
        gathered(samples.shares()),
    )
    gathering = verdict(turbulence == "all")
    if everywhere == "all":
        gathering += ", and not for turbulence alone: every kind of flow and every model"
    lines = [
        [
            "Farneback is nearly equivariant",
            f"{equivariant}; under time reversal it differs from itself {convention}",
        ],
        ["the learned model has less", learned],
        [
            "an average error hides it",
            verdict(hides)
            + (
                ": by the error of the pairs as they are the directed network is the best of the "
                "four, by the gap the worst"
                if hides
                else ""
            ),
        ],
        ["in turbulence errors gather in some places, so an average says little", gathering],
        [
            "samples of high variance are found in the embedding",
            "looked at in `orbical demo piv`, not measured: pairs of large spread lie apart there; "
            "of which kinds they are, says the gap by kind",
        ],
        ["consensus can stand in for the truth (said of detection)", _stand_in(samples)],
    ]
    return markdown(["the paper says", "found here"], lines)


def _cause(samples: Samples) -> str:
    """Say what breaks the symmetry of the directed network, if it is broken."""
    if not far_off(samples):
        return "**The direction of the training flows hardly breaks the symmetry.**"
    moved, still = within(samples, "symmetric"), within(samples, "directed", kind="turbulence")
    return {
        (True, True): "**It is the direction of the training flows that breaks the symmetry, not "
        "learning.**",
        (True, False): "**Moved training pairs mend the symmetry; flows without direction are not "
        "spared without them.**",
        (False, True): "**Flows without direction are spared; moved training pairs do not mend "
        "the symmetry of the others.**",
        (False, False): "**Learning itself breaks the symmetry, moved training pairs or not.**",
    }[moved, still]


def _price(samples: Samples) -> str:
    """Say what moved training pairs cost on the pairs as they are."""
    error = average("error")
    if samples.below(error, "directed", ["symmetric"]):
        return "At equal budget the moved pairs cost accuracy on the pairs as they are."
    if samples.below(error, "symmetric", ["directed"]):
        return "At equal budget the moved pairs add accuracy on the pairs as they are, too."
    return "At equal budget the sets disagree on what moved pairs do to the pairs as they are."


def _consensus(samples: Samples) -> str:
    """Say for which models the consensus is worse than one answer."""
    worse = worse_consensus(samples)
    if not worse:
        return "for all no worse"
    if len(worse) == len(MODELS):
        return "for all worse"
    return f"for all but {_listed(worse)} no worse"


def _stand_in(samples: Samples) -> str:
    """Say for which models the consensus gives a plot like that of the truth."""
    alike, made = stand_ins(samples), gap_makes_error(samples)
    measure = f"(correlation {ALIKE:g} or more)"
    if not alike:
        return f"a like plot {measure} for no model"
    if len(alike) == len(MODELS):
        return f"a like plot {measure} for every model"
    if alike == made:
        return (
            f"a like plot {measure} only where the gap is as large as the error: {_listed(alike)}"
        )
    return f"a like plot {measure} for {_listed(alike)} alone"


def _listed(names: Sequence[str]) -> str:
    """Join names by `and`."""
    return " and ".join(names)
