"""What the particle-flow study found: sentences chosen by the numbers, and the numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ..pages import Row, markdown, verdict
from .settings import MODELS
from .tables import chosen, mean
from .verdicts import (
    ALIKE,
    GATHERED,
    NEAR,
    NEIGHBOURS,
    TOLD,
    Number,
    Samples,
    average,
    best_still,
    far_off,
    gain,
    gap_makes_error,
    gathered,
    reversed_farneback,
    square,
    stand_ins,
    time_of,
    told_by_place,
    turned_farneback,
    within,
    worse_consensus,
    worst_moved,
)

NOT_MEASURED = "not measured here"
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


@dataclass(frozen=True)
class Writer:
    """Writes numbers of the samples; those of several sets of pairs beside each other."""

    samples: Samples

    def one(self, function: Number, model: str, digits: int = 3, **wanted: object) -> str:
        """A number of one model."""
        found = self.samples.each(function, model, **wanted)
        return " / ".join(f"{value:.{digits}f}" for value in found)

    def all(self, function: Number, digits: int = 3) -> str:
        """A number of every model, with its name."""
        return ", ".join(f"{model} {self.one(function, model, digits)}" for model in MODELS)


def findings(rows: Sequence[Row], rotations: Sequence[Row]) -> str:
    """Write a list in Markdown; numbers of several sets of pairs stand beside each other.

    Args:
        rows: of `samples.csv`.
        rotations: rows of `rotations.csv`.
    """
    samples = Samples(rows)
    write = Writer(samples)
    points = [
        _turned(samples, write),
        _reversed(samples, write),
        _times(samples, write),
        f"{SEEN}{ACCURACY[best_still(samples), worst_moved(samples)]} "
        f"As they are: {write.all(average('error'))} px. At the worst of the 16 "
        f"elements: {write.all(average('error_worst'))} px.",
        _broken(samples, write),
        "**Consensus.** The mean of the un-moved answers has an error of "
        f"{write.all(average('consensus_error'))} px: {_consensus(samples)} than the answer to the "
        f"pair as it is. As a stand-in for the truth it gives {_stand_in(samples)}; correlation of "
        f"the two plots: {write.all(average('consensus_likeness'), 2)}. A flat plot leaves nothing "
        "to correlate, and what all elements get wrong alike stays unseen.",
        _any_angle(rotations),
        _places(samples),
    ]
    beside = (
        f"Where two numbers stand: {' / '.join(samples.sets)}\n\n" if len(samples.sets) > 1 else ""
    )
    return beside + "\n".join(f"* {point}" for point in points)


def _turned(samples: Samples, write: Writer) -> str:
    """Tell how Farneback answers turned and mirrored pairs."""
    kind = turned_farneback(samples)
    lost = max(row["gap_plane"] for row in chosen(samples.rows, model="farneback"))
    return (
        f"{TURNED[kind]} The largest gap over D4 of any pair is {lost:.1e} px: "
        f"{TURNED_MEANING[kind]} Gap over D4 × time: {write.all(square('gap'))} px."
    )


def _reversed(samples: Samples, write: Writer) -> str:
    """Tell how Farneback answers pairs in reverse."""
    return (
        f"{REVERSED[reversed_farneback(samples)]} Its answers forwards and backwards differ by "
        f"{write.one(average('time_difference'), 'farneback')} px; a perfect estimator of forward "
        f"flow would by {write.one(average('self_advection'), 'farneback')} px, the mean of "
        "|u · ∇u|. That is over all pairs; by kind of flow it is in the table of time reversal."
    )


def _times(samples: Samples, write: Writer) -> str:
    """Tell whether the networks answer for the middle of the two frames or for the first."""
    directed, symmetric = (time_of(samples, model) for model in ("directed", "symmetric"))
    heading = TIMES.get(
        (directed, symmetric), "**Which time a network answers is not settled here.**"
    )
    given, carried = average("error"), average("error_forward_truth")
    change = {
        model: f"from {write.one(given, model)} to {write.one(carried, model)} px"
        for model in ("directed", "symmetric")
    }
    return (
        f"{heading} Judged by the truth carried to the first frame instead of the given one, the "
        f"directed network goes {change['directed']}, the symmetric one {change['symmetric']}: the "
        f"directed one {TIME_MEANING[directed]}, the symmetric one {TIME_MEANING[symmetric]}."
    )


def _broken(samples: Samples, write: Writer) -> str:
    """Tell what breaks the directed network's symmetry, and what mending it costs."""
    still = {
        model: write.one(average("gap"), model, kind="turbulence")
        for model in ("directed", "farneback")
    }
    return (
        f"{_cause(samples)} The same network with moved training pairs has a gap of "
        f"{write.one(square('gap'), 'symmetric')} px. And on turbulence, which had no direction in "
        f"training, the directed network's gap is {still['directed']} px, Farneback's "
        f"{still['farneback']} px. {_price(samples)}"
    )


def _any_angle(rotations: Sequence[Row]) -> str:
    """Tell how much the error of each model swings with the angle."""
    angles = sorted({row["angle"] for row in rotations})
    swing = []
    for model in MODELS:
        here = chosen(rotations, model=model)
        curve = [mean(chosen(here, angle=angle), "error") for angle in angles]
        swing.append(f"{model} {max(curve) / min(curve):.1f}")
    return f"**Any angle.** Worst over best angle of the mean error: {', '.join(swing)}."


def _places(samples: Samples) -> str:
    """Tell whether errors gather in some pixels."""
    shares = samples.shares()
    return (
        f"{GATHERING[gathered(shares)]} The worst tenth of the pixels holds "
        f"{100 * min(shares):.0f} to {100 * max(shares):.0f} % of the squared error, by kind of "
        "flow and model; Gaussian errors of one size everywhere would give "
        f"{100 * GATHERED:.0f} %."
    )


def paper_table(rows: Sequence[Row]) -> str:
    """Hold what the paper says against the rows of `samples.csv`."""
    samples = Samples(rows)
    lines = [
        ["Farneback is nearly equivariant", _nearly_equivariant(samples)],
        ["the learned model has less", _learned(samples)],
        ["an average error hides it", _hidden(samples)],
        [
            "in turbulence errors gather in some places, so an average says little",
            _gathering(samples),
        ],
        ["samples of high variance are found in the embedding", _found_on_map(samples)],
        ["classical methods do for simple flows, learned ones for complex ones", _complex(samples)],
        ["learned methods are faster", _faster(samples)],
        ["consensus can stand in for the truth (said of detection)", _stand_in(samples)],
    ]
    return markdown(["the paper says", "found here"], lines)


def _nearly_equivariant(samples: Samples) -> str:
    """Judge Farneback under D4, and under time reversal."""
    under_turns = {
        "exact": "confirmed, and sharper: exact to rounding under D4",
        "nearly": "confirmed under D4",
        "not": "not confirmed here",
    }[turned_farneback(samples)]
    under_time = {
        "alike": "by about as much as any estimator of forward flow must",
        "more": "by more than an estimator of forward flow must",
        "less": "by less than an estimator of forward flow must",
        "mixed": "by what depends on the pairs",
    }[reversed_farneback(samples)]
    return f"{under_turns}; under time reversal it differs from itself {under_time}"


def _learned(samples: Samples) -> str:
    """Judge the gap of the directed network, and whether learning is to blame."""
    if not far_off(samples):
        return "not confirmed here, even for a network whose training flows had a direction"
    nearness = {
        "the same network with moved training pairs": within(samples, "symmetric"),
        "the directed one on turbulence, which has no direction": within(
            samples, "directed", kind="turbulence"
        ),
    }
    near = ", and ".join(words for words, holds in nearness.items() if holds)
    return "confirmed for a network whose training flows had a direction" + (
        "; not a property of learned models, for near Farneback (up to "
        f"{NEAR:g} times its gap): {near}"
        if near
        else "; and for one with moved training pairs as well"
    )


def _hidden(samples: Samples) -> str:
    """Judge whether an average hides a gap: the most accurate model has the largest."""
    hides = best_still(samples) and all(
        samples.below(square("gap"), model, ["directed"]) for model in MODELS if model != "directed"
    )
    return verdict(hides) + (
        ": by the error of the pairs as they are the directed network is the best of the four, by "
        "the gap the worst"
        if hides
        else ""
    )


def _gathering(samples: Samples) -> str:
    """Judge whether errors gather in some places, in turbulence and elsewhere."""
    text = verdict(gathered(samples.shares(kind="turbulence")) == "all")
    if gathered(samples.shares()) == "all":
        text += ", and not for turbulence alone: every kind of flow and every model"
    return text


def _found_on_map(samples: Samples) -> str:
    """Judge whether the place of a pair on the map tells how much its error varies."""
    told = {model: told_by_place(samples, model, "error_spread") for model in MODELS}
    if any(math.isnan(value) for value in told["directed"]):
        return NOT_MEASURED
    written = ", ".join(
        f"{model} {' / '.join(f'{value:.2f}' for value in values)}"
        for model, values in told.items()
    )
    size = min(
        value for model in MODELS for value in told_by_place(samples, model, "error_over_orbit")
    )
    most = max(value for values in told.values() for value in values)
    return (
        f"{verdict(min(told['directed']) >= TOLD)} for the directed network, whose gap is the "
        "question: rank correlation of a pair's spread along the orbit with that of its "
        f"{NEIGHBOURS} neighbours on the map (two principal components): {written}. Of the mean "
        f"error it is {size:.2f} or more in all"
        + (": what the map shows first is how large the error is" if size > most else "")
    )


def _complex(samples: Samples) -> str:
    """Judge whether the directed network gains more over Farneback where the flow is complex."""
    uniform, turbulent = gain(samples, "uniform"), gain(samples, "turbulence")
    more = all(second > first for first, second in zip(uniform, turbulent, strict=True))
    written = [" / ".join(f"{value:.1f}" for value in side) for side in (uniform, turbulent)]
    return (
        f"{verdict(more)}: Farneback's error is {written[0]} times the directed network's in "
        f"uniform flow, {written[1]} times in turbulence"
    )


def _faster(samples: Samples) -> str:
    """Judge the time of one answer on a processor."""
    taken = {model: samples.each(average("milliseconds"), model) for model in MODELS}
    if any(math.isnan(value) for values in taken.values() for value in values):
        return NOT_MEASURED
    written = Writer(samples).all(average("milliseconds"), 0)
    faster = samples.below(average("milliseconds"), "directed", ["farneback"])
    return (
        f"{verdict(faster)} on a processor: {written} ms of processor time a pair; on an "
        "accelerator it was not timed"
    )


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
