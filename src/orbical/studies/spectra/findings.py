"""The paper's sentences on spectra, each beside what was measured and what must be."""

from __future__ import annotations

from ..pages import markdown
from .measures import POLE, REGIONS
from .numbers import Data, chosen, mean, number, percent, share_of_region, values
from .settings import BONDS, DISTANCES, NETWORKS, PAPER_BLEED, PENALTY, STEERABLE

CLOSE = 0.8
"""A rank correlation from which two things follow each other closely."""
LOOSE = 0.3
"""A rank correlation below which they hardly do."""


def sentences(data: Data) -> str:
    """Write the table of the paper's sentences; verdicts follow from the numbers."""
    lines = [
        _conflation(data),
        _together(data),
        _where(data),
        _only_tells(data),
        _zero(data),
        _explained(data),
        _symmetry(data),
        _penalty(data),
    ]
    return markdown(["the paper", "verdict", "measured", "limit"], lines)


def _at(data: Data, name: str, network: str = STEERABLE) -> float:
    return mean(data, name, network, PENALTY)


def _conflation(data: Data) -> list[str]:
    detail, height = _at(data, "detail_all"), _at(data, "height_all")
    error, share = _at(data, "error_detail_all"), _at(data, "noise_detail_all")
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
    along, every = _at(data, "epistemic_along"), _at(data, "epistemic_all")
    own = [_at(data, f"{name}_all") for name in ("error", "epistemic_error", "noise_error")]
    return [
        "Aleatoric and epistemic uncertainty run side by side, so the network cannot part them.",
        "confirmed" if along >= CLOSE else "not confirmed",
        f"Rank correlation {number(along)} along a spectrum, {number(every)} over all entries. "
        "Both are β/(α − 1), one of them divided by ν, and follow the squared error: aleatoric "
        f"{number(own[0])}, epistemic {number(own[1])}, ν {number(own[2])}.",
        "likelihood sees β and ν through β(1 + ν)/ν only: it leaves the split open",
    ]


def _where(data: Data) -> list[str]:
    rows = chosen(data["wavenumbers"], STEERABLE, PENALTY)
    listed = ", ".join(
        f"{region} {percent(share_of_region(rows, 'typical', region))}" for region in REGIONS
    )
    totals = values(data, "bleed", STEERABLE, PENALTY)
    return [
        f"The bleed, about {PAPER_BLEED}, does not say which wavenumbers it comes from.",
        "corrected",
        "It is a sum over wavenumbers, and its terms say where. Typical bleed (medians over "
        f"molecules), {number(_at(data, 'typical'))} in all: {listed}. Bleed as defined is "
        f"{number(min(totals))} to {number(max(totals))} over seeds. It cannot be compared with "
        "the paper's: other spectra, points and units, on which a sum of squares depends.",
        f"0; typical {number(_at(data, 'typical_error'))} if the whole error were called noise",
    ]


def _only_tells(data: Data) -> list[str]:
    top, near = _at(data, "bleed_top"), _at(data, "near_pole")
    verdict = (
        "corrected: a mean of squares tells less than that, its terms tell more"
        if top > 0.9
        else "corrected: its terms tell more"
    )
    return [
        "All that bleed can tell is that kinds of uncertainty are mixed up.",
        verdict,
        f"The largest 1% of entries hold {percent(top)} of it: β/(α − 1) has a pole at α = 1, and "
        f"{percent(near)} of the entries have α − 1 below {POLE:g}. What has no pole is the share "
        f"called noise, ν/(1 + ν), {percent(_at(data, 'noise_share'))} in the median.",
        "share 0 without bleed",
    ]


def _zero(data: Data) -> list[str]:
    limits = data["limits"][0]
    blind = (
        f"A network on bonds cannot tell {limits['twins']:,} of {limits['molecules']:,} molecules "
        "from a stereoisomer."
        if limits["twins"]
        else f"None of the {limits['molecules']:,} molecules shares its bonds with another, so "
        "that bonds are enough to know it by."
    )
    return [
        "Spectra follow from the molecule, so the true aleatoric uncertainty is zero.",
        "confirmed for networks that see the geometry" if limits["twins"] else "confirmed",
        "Labels calculated again for turned molecules change by a mean square of "
        f"{number(limits['label_mse'])} of the targets' variance. {blind}",
        f"bleed of the labels {number(limits['label_bleed'])}; of the twins, for bonds, "
        f"{number(limits['bonds_bleed'])}",
    ]


def _explained(data: Data) -> list[str]:
    middle = {network: _at(data, "r2_median", network) for network in NETWORKS}
    above = {network: _at(data, "r2_above", network) for network in NETWORKS}
    best = max(NETWORKS, key=middle.__getitem__)
    if middle[best] > 0.9:
        verdict = "confirmed"
    elif above[best] > 0.1:
        verdict = "not reached: for some molecules, not for most"
    else:
        verdict = "not reached"
    listed = ", ".join(f"{n} {number(middle[n])} ({percent(above[n])})" for n in NETWORKS)
    tall = ", ".join(f"{n} {percent(_at(data, 'height_top', n))}" for n in NETWORKS)
    return [
        "R² on test molecules lies above 0.9, often near 1.",
        verdict,
        f"Median R² (share above .9): {listed}, after training on {data['limits'][0]['train']:,} "
        "molecules; the paper has about 130,000 and 37 million parameters. What is missed are the "
        f"lines: of the true height of the tallest tenth of entries the answers have {tall}.",
        f"1; the mean spectrum has {number(data['limits'][0]['mean_r2'])}",
    ]


def _symmetry(data: Data) -> list[str]:
    shares = {network: _at(data, "noise_share", network) for network in NETWORKS}
    other = {
        network: mean(data, "noise_share", network, 0.0)
        for network in NETWORKS
        if chosen(data["results"], network, 0.0)
    }
    between = max(shares.values()) - min(shares.values())
    by_penalty = max((abs(other[n] - shares[n]) for n in other), default=0.0)
    bleeds = {network: _at(data, "typical", network) for network in NETWORKS}
    likelihoods = {network: _at(data, "nll", network) for network in NETWORKS}
    order = sorted(NETWORKS, key=likelihoods.__getitem__)
    if by_penalty > 2 * between:
        verdict = "confirmed: the penalty sets the share called noise, not what a network sees"
    elif order == sorted(NETWORKS, key=bleeds.__getitem__):
        verdict = "corrected: the likelier network bleeds less"
    else:
        verdict = "confirmed"
    listed = "; ".join(
        f"{n}: NLL {number(likelihoods[n])}, squared error {number(_at(data, 'mse', n))} in the "
        f"mean and {number(_at(data, 'mse_median', n))} in the median, typical bleed "
        f"{number(bleeds[n])}, {percent(shares[n])} called noise"
        for n in order
    )
    return [
        "A correct symmetry hardly prevents bleed.",
        verdict,
        f"{listed}. All three are invariant; they differ in what they see: "
        f"{BONDS}, {DISTANCES}, or directions as well ({STEERABLE}).",
        "structural bound 0 for all that see the geometry",
    ]


def _penalty(data: Data) -> list[str]:
    pairs = {
        network: (_at(data, "noise_share", network), mean(data, "noise_share", network, 0.0))
        for network in NETWORKS
        if chosen(data["results"], network, 0.0)
    }
    listed = "; ".join(
        f"{n}: {percent(held)} with, {percent(free)} without" for n, (held, free) in pairs.items()
    )
    change = [abs(mean(data, "mse", n, 0.0) / _at(data, "mse", n) - 1) for n in pairs]
    moved = bool(pairs) and all(free > 2 * held for held, free in pairs.values())
    return [
        "How stable training is depends on λ (E).",
        "confirmed, and more: it sets how much is called noise" if moved else "not confirmed",
        f"Share called noise, {listed}; the squared error changes by "
        f"{percent(max(change, default=0.0))} at most.",
        "likelihood alone does not say how to split a variance",
    ]


def orders(data: Data) -> str:
    """Say which network is best by what, and whether likelihood and error agree."""
    by = {
        "likelihood": "nll",
        "the median squared error": "mse_median",
        "the mean squared error": "mse",
    }
    found = {
        title: sorted(NETWORKS, key=lambda n, name=name: _at(data, name, n))  # type: ignore[misc]
        for title, name in by.items()
    }
    listed = "; ".join(f"by {title}: {', '.join(order)}" for title, order in found.items())
    said = f"From the best to the worst, {listed}."
    if found["likelihood"] == found["the mean squared error"]:
        return f"{said} The likelier network errs less."
    best = found["likelihood"][0]
    lowest = min(NETWORKS, key=lambda n: _at(data, "height_top", n))
    why = (
        f": {best}, the likeliest, is the most exact in the median, and answers least of the "
        "height of lines. It tells where a line may stand by its variance"
        if best == lowest == found["the median squared error"][0]
        else ""
    )
    return (
        f"{said} Likelihood and error do not agree{why}. A loss that weighs slopes by the variance "
        "(`losses.beta_nll` is one for Gaussians), or a squared error beside it, would ask for "
        "another balance; it is not tried here."
    )
