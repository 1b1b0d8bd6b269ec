"""The paper's sentences on spectra, each beside what was measured and what must be."""

from __future__ import annotations

from statistics import fmean

from ..pages import markdown
from .measures import POLE, REGIONS
from .numbers import (
    Data,
    at,
    by_squares,
    chosen,
    mean,
    number,
    percent,
    share_of_region,
    span,
    squares_done,
    values,
)
from .settings import (
    BONDS,
    DISTANCES,
    LIKELIHOOD,
    NETWORKS,
    PAPER_BLEED,
    PAPER_R2,
    PENALTY,
    STEERABLE,
)

CLOSE = 0.8
"""A rank correlation from which two things follow each other closely."""
LOOSE = 0.3
"""A rank correlation below which they hardly do."""
SIZES = 10.0
"""A quotient that changes by this factor is far from constant."""


def sentences(data: Data) -> str:
    """Write the table of the paper's sentences; verdicts follow from the numbers."""
    return markdown(["the paper", "verdict", "measured", "limit"], judged(data))


def judged(data: Data) -> list[list[str]]:
    """Give each sentence, its verdict, what was measured, and the limit."""
    return [
        _conflation(data),
        _together(data),
        _where(data),
        _only_tells(data),
        _zero(data),
        _explained(data),
        _symmetry(data),
        _penalty(data),
    ]


def _conflation(data: Data) -> list[str]:
    detail, height = at(data, "detail_all"), at(data, "height_all")
    error, share = at(data, "error_detail_all"), at(data, "noise_detail_all")
    if detail < LOOSE:
        verdict = "not confirmed"
    elif share < -LOOSE:
        verdict = "confirmed in size, not in share: where lines are, less of the variance is noise"
    elif error > detail - 0.1:
        verdict = "confirmed: it reports noise at lines, which is where it errs"
    else:
        verdict = "confirmed"
    return [
        "Fine structure of a spectrum is taken for noise.",
        verdict,
        f"Aleatoric variance goes with the detail of the true spectrum, rank correlation "
        f"{number(detail)}, as with its height, {number(height)}; but so does the squared error, "
        f"{number(error)}. The share of the variance that is called noise has "
        f"{number(share)} with detail{_without(data, 'noise_detail_all')}.",
        "0 for a network that knows that there is no noise",
    ]


def _without(data: Data, name: str) -> str:
    """Say what a number is without the penalty, where that was trained."""
    if not chosen(data["results"], STEERABLE, 0.0):
        return ""
    return f" ({number(mean(data, name, STEERABLE, 0.0))} without the penalty)"


def _together(data: Data) -> list[str]:
    along, every = at(data, "epistemic_along"), at(data, "epistemic_all")
    own = [at(data, f"{name}_all") for name in ("error", "epistemic_error", "noise_error")]
    shares = [row["noise_share"] for row in chosen(data["wavenumbers"], STEERABLE, PENALTY)]
    least, most = min(shares), max(shares)
    if along < CLOSE:
        verdict = "not confirmed"
    elif most * (1 - least) > SIZES * least * (1 - most):
        verdict = "confirmed in rank; their quotient is far from constant"
    else:
        verdict = "confirmed"
    return [
        "Aleatoric and epistemic uncertainty run side by side, so the network cannot part them.",
        verdict,
        f"Rank correlation {number(along)} along a spectrum, {number(every)} over all entries. "
        "Both are β/(α − 1), one of them divided by ν, and follow the squared error: aleatoric "
        f"{number(own[0])}, epistemic {number(own[1])}, ν {number(own[2])}. The share called "
        f"noise, ν/(1 + ν), runs from {percent(least, 1)} to {percent(most)} over wavenumbers "
        "(medians over molecules).",
        "likelihood sees β and ν through β(1 + ν)/ν only: it leaves the split open",
    ]


def _where(data: Data) -> list[str]:
    rows = chosen(data["wavenumbers"], STEERABLE, PENALTY)
    listed = ", ".join(
        f"{region} {percent(share_of_region(rows, 'typical', region))}" for region in REGIONS
    )
    return [
        f"The bleed, about {PAPER_BLEED}, does not say which wavenumbers it comes from.",
        "corrected",
        "It is a sum over wavenumbers, and its terms say where. Typical bleed (medians over "
        f"molecules), {span(values(data, 'typical', STEERABLE, PENALTY))} in all: {listed}. Bleed "
        f"as defined is {span(values(data, 'bleed', STEERABLE, PENALTY))} over seeds. It cannot be "
        "compared with the paper's: other spectra, points and units, on which a sum of squares "
        "depends.",
        f"0; typical {number(at(data, 'typical_limit'))} if the whole error were called noise",
    ]


def _only_tells(data: Data) -> list[str]:
    top, near = at(data, "bleed_top"), at(data, "near_pole")
    verdict = (
        "corrected: a mean of squares tells less than that, its terms tell more"
        if top > 0.9
        else "corrected: its terms tell more"
    )
    return [
        "All that bleed can tell is that kinds of uncertainty are mixed up.",
        verdict,
        f"The largest 1% of entries hold {percent(top)} of it: β/(α − 1) has a pole at α = 1, and "
        f"{percent(near, 1)} of the entries have α − 1 below {POLE:g}. What has no pole is the "
        f"share called noise, ν/(1 + ν), {percent(at(data, 'noise_share'))} in the median.",
        "share 0 without bleed",
    ]


def _zero(data: Data) -> list[str]:
    limits = data["limits"][0]
    blind = (
        f"A network on bonds cannot tell {limits['twins']:,} of {limits['molecules']:,} molecules "
        f"from another one; {limits['twins'] - limits['twins_alike']:,} of them have another "
        f"spectrum than their twin, {limits['twins_alike']:,} the same one."
        if limits["twins"]
        else f"Bonds tell all of the {limits['molecules']:,} molecules apart."
    )
    return [
        "Spectra follow from the molecule, so the true aleatoric uncertainty is zero.",
        "confirmed for networks that see the geometry" if limits["twins"] else "confirmed",
        f"Labels of {limits['turned']} molecules, calculated again after these were turned, change "
        f"by a mean square of {number(limits['label_mse'])} of the targets' variance. {blind}",
        f"bleed of the labels {number(limits['label_bleed'])}; NLL-optimal over the twins, for "
        f"bonds, {number(limits['bonds_bleed'])}",
    ]


def _explained(data: Data) -> list[str]:
    middle = {network: at(data, "r2_median", network) for network in NETWORKS}
    above = {network: at(data, "r2_above", network) for network in NETWORKS}
    best = max(NETWORKS, key=middle.__getitem__)
    if min(middle.values()) > PAPER_R2:
        verdict = "reached in the median"
    elif middle[best] > PAPER_R2:
        verdict = f"reached in the median by {reached(middle)}"
    elif above[best] > 0.1:
        verdict = "not reached: for some molecules, not for most"
    else:
        verdict = "not reached"
    if middle[best] <= PAPER_R2 and reached(_by_squares(data, "r2_median")):
        verdict += (
            f"; reached in the median by {reached(_by_squares(data, 'r2_median'))} when means "
            "learn by squared error"
        )
    listed = ", ".join(f"{n} {number(middle[n])} ({percent(above[n])})" for n in NETWORKS)
    tall = ", ".join(f"{n} {percent(at(data, 'height_top', n))}" for n in NETWORKS)
    plain = ", ".join(f"{n} {number(at(data, 'r2_absorption', n))}" for n in NETWORKS)
    return [
        "R² on test molecules lies above 0.9, often near 1.",
        verdict,
        f"Median R² of the root of the absorption (share above .9): {listed}, after training on "
        f"{data['limits'][0]['train']:,} molecules; of the absorption itself {plain}. The paper "
        "does not say of which, and has about 130,000 molecules and 37 million parameters. What is "
        "missed are the lines: of the true height of the tallest tenth of entries the answers have "
        f"{tall}."
        f"{_squares_explained(data)}",
        f"1; the mean spectrum has {number(data['limits'][0]['mean_r2'])}",
    ]


def reached(middle: dict[str, float]) -> str:
    """Name the networks whose median R^2 is above that of the paper."""
    return " and ".join(network for network, value in middle.items() if value > PAPER_R2)


def _by_squares(data: Data, name: str) -> dict[str, float]:
    """A number of each network with means by squares; none where they are not trained."""
    if not squares_done(data):
        return {}
    return {network: fmean(by_squares(data, name, network)) for network in NETWORKS}


def _squares_explained(data: Data) -> str:
    """Say what is explained where means are learnt by squares."""
    middle, above = _by_squares(data, "r2_median"), _by_squares(data, "r2_above")
    listed = ", ".join(f"{n} {number(middle[n])} ({percent(above[n])})" for n in middle)
    return (
        f" Means by squared error [below](#means-by-squared-error) have {listed}." if listed else ""
    )


def _symmetry(data: Data) -> list[str]:
    least = min(min(values(data, "bleed", network, PENALTY)) for network in NETWORKS)
    shown = least > data["limits"][0]["label_bleed"]
    listed = "; ".join(
        f"{n}: NLL {number(at(data, 'nll', n))}, typical bleed "
        f"{span(values(data, 'typical', n, PENALTY))}, {percent(at(data, 'noise_share', n))} "
        "called noise"
        for n in reversed(NETWORKS)
    )
    return [
        "A correct symmetry hardly prevents bleed.",
        "not tested whether it lowers bleed, as all three networks have the symmetry"
        + ("; that it does not prevent it is shown, as all bleed" if shown else ""),
        f"{listed}. All three are invariant; they differ in what they see: "
        f"{BONDS}, {DISTANCES}, or directions as well ({STEERABLE}). The study of "
        "[QM9](qm9.md) has a network without the symmetry.",
        "structural bound 0 for all that see the geometry",
    ]


def _penalty(data: Data) -> list[str]:
    pairs = {
        network: (at(data, "noise_share", network), mean(data, "noise_share", network, 0.0))
        for network in NETWORKS
        if chosen(data["results"], network, 0.0)
    }
    sides = [{*(values(data, "seed", n, p))} for n in pairs for p in (PENALTY, 0.0)]
    held, free = (min((len(s) for s in sides[place::2]), default=0) for place in (0, 1))
    listed = "; ".join(
        f"{n}: {percent(with_it)} with, {percent(without)} without"
        for n, (with_it, without) in pairs.items()
    )
    change = [abs(mean(data, "mse", n, 0.0) / at(data, "mse", n) - 1) for n in pairs]
    failed = sum(row["mse"] >= 1 for row in data["results"] if row["means"] == LIKELIHOOD)
    moved = bool(pairs) and all(without > 2 * with_it for with_it, without in pairs.values())
    return [
        "How stable training is depends on λ (E).",
        (f"open: {failed} trainings failed" if failed else "not tested, as no training failed")
        + ("; what λ sets here is how much is called noise" if moved else ""),
        f"Share called noise, {listed}; the squared error changes by "
        f"{percent(max(change, default=0.0))} at most. With: mean over seeds, {held} of each; "
        f"without: {free}, so that such a change of the error says little.",
        "likelihood alone does not say how to split a variance",
    ]
