"""What the particle-flow study found, in sentences with the measured numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..pages import Row
from .settings import MODELS
from .tables import chosen, kinds_of, mean, root_mean_square, sets_of

Number = Callable[[Sequence[Row]], float]


def average(column: str) -> Number:
    """Give the mean of a column as a function of rows."""
    return lambda rows: mean(rows, column)


def square(column: str) -> Number:
    """Give the root mean square of a column as a function of rows."""
    return lambda rows: root_mean_square(rows, column)


def findings(samples: Sequence[Row], rotations: Sequence[Row]) -> str:
    """Write a list in Markdown; numbers of several sets of pairs stand beside each other.

    Args:
        samples: rows of `samples.csv`.
        rotations: rows of `rotations.csv`.
    """
    sets = sets_of(samples)

    def number(function: Number, model: str, digits: int = 3, **wanted: object) -> str:
        found = [function(chosen(samples, set=name, model=model, **wanted)) for name in sets]
        return " / ".join(f"{value:.{digits}f}" for value in found)

    def numbers(function: Number, digits: int = 3) -> str:
        return ", ".join(f"{model} {number(function, model, digits)}" for model in MODELS)

    def still(model: str) -> str:
        return number(average("gap"), model, kind="turbulence")

    lost = max(row["gap_plane"] for row in chosen(samples, model="farneback"))
    angles = sorted({row["angle"] for row in rotations})
    swing = []
    for model in MODELS:
        here = chosen(rotations, model=model)
        curve = [mean(chosen(here, angle=angle), "error") for angle in angles]
        swing.append(f"{model} {max(curve) / min(curve):.1f}")
    shares = [
        mean(chosen(samples, set=name, kind=kind, model=model), "hard_share")
        for name in sets
        for kind in kinds_of(samples, name)
        for model in MODELS
    ]
    points = [
        f"**Farneback is equivariant under turns and mirrors.** The largest gap over D4 of any "
        f"pair is {lost:.1e} px: what the paper calls near-perfect is exact to rounding there. All "
        f"of its gap comes from time reversal. Gap over D4 × time: {numbers(square('gap'))} px.",
        "**Its gap in time is a convention more than a fault.** Its answers forwards and backwards "
        f"differ by {number(average('time_difference'), 'farneback')} px; a perfect estimator of "
        f"forward flow would by {number(average('self_advection'), 'farneback')} px, the mean of "
        "|u · ∇u|.",
        "**Which time a network answers is learnt, or not.** Judged by the truth carried to the "
        "first frame instead of the given one, the directed network goes from "
        f"{number(average('error'), 'directed')} to "
        f"{number(average('error_forward_truth'), 'directed')} px, the symmetric one from "
        f"{number(average('error'), 'symmetric')} to "
        f"{number(average('error_forward_truth'), 'symmetric')} px: one has learnt the mid-time "
        "that its training truth had, the other stays with the first frame, to which its layers "
        "warp.",
        "**The directed network is the most accurate on the pairs as they are, and the worst once "
        f"they are moved.** As they are: {numbers(average('error'))} px. At the worst of the 16 "
        f"elements: {numbers(average('error_worst'))} px.",
        "**It is the direction of the training flows that breaks the symmetry, not learning.** The "
        "same network with moved training pairs has a gap of "
        f"{number(square('gap'), 'symmetric')} px. And on turbulence, which had no direction in "
        f"training, the directed network's gap is {still('directed')} px, Farneback's "
        f"{still('farneback')} px. At equal budget the moved pairs cost accuracy on the pairs as "
        "they are.",
        "**Consensus.** The mean of the un-moved answers has an error of "
        f"{numbers(average('consensus_error'))} px: for all but the directed network no worse than "
        "the answer to the pair as it is. As a stand-in for the truth it gives the same plot only "
        "where the gap makes the error; correlation of the two plots: "
        f"{numbers(average('consensus_likeness'), 2)}. A flat plot leaves nothing to correlate, "
        "and what all elements get wrong alike stays unseen.",
        f"**Any angle.** Worst over best angle of the mean error: {', '.join(swing)}.",
        "**Errors gather in some places.** The worst tenth of the pixels holds "
        f"{100 * min(shares):.0f} to {100 * max(shares):.0f} % of the squared error, by kind of "
        "flow and model.",
    ]
    beside = f"Where two numbers stand: {' / '.join(sets)}\n\n" if len(sets) > 1 else ""
    return beside + "\n".join(f"* {point}" for point in points)
