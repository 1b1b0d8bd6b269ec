"""The paper's sentences on spectra, each beside what was measured and what must be."""

from __future__ import annotations

from itertools import pairwise
from statistics import fmean
from typing import Any

from ..pages import Row, markdown
from .measures import POLE, REGIONS
from .numbers import (
    Data,
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
from .settings import BATCH, BONDS, DISTANCES, LIKELIHOOD, NETWORKS, PAPER_BLEED, PENALTY, STEERABLE

CLOSE = 0.8
"""A rank correlation from which two things follow each other closely."""
LOOSE = 0.3
"""A rank correlation below which they hardly do."""
SIZES = 10.0
"""A quotient that changes by this factor is far from constant."""


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
        f"0; typical {number(_at(data, 'typical_limit'))} if the whole error were called noise",
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
    plain = ", ".join(f"{n} {number(_at(data, 'r2_absorption', n))}" for n in NETWORKS)
    return [
        "R² on test molecules lies above 0.9, often near 1.",
        verdict,
        f"Median R² of the root of the absorption (share above .9): {listed}, after training on "
        f"{data['limits'][0]['train']:,} molecules; of the absorption itself {plain}. The paper "
        "does not say of which, and has about 130,000 molecules and 37 million parameters. What is "
        "missed are the "
        f"lines: of the true height of the tallest tenth of entries the answers have {tall}."
        f"{_squares_explained(data)}",
        f"1; the mean spectrum has {number(data['limits'][0]['mean_r2'])}",
    ]


def _squares_explained(data: Data) -> str:
    """Say what is explained where means are learnt by squares."""
    if not squares_done(data):
        return ""
    middle = {n: fmean(by_squares(data, "r2_median", n)) for n in NETWORKS}
    above = {n: fmean(by_squares(data, "r2_above", n)) for n in NETWORKS}
    listed = ", ".join(f"{n} {number(middle[n])} ({percent(above[n])})" for n in NETWORKS)
    return f" Means by squared error [below](#means-by-squared-error) have {listed}."


def _symmetry(data: Data) -> list[str]:
    least = min(min(values(data, "bleed", network, PENALTY)) for network in NETWORKS)
    shown = least > data["limits"][0]["label_bleed"]
    listed = "; ".join(
        f"{n}: NLL {number(_at(data, 'nll', n))}, typical bleed "
        f"{span(values(data, 'typical', n, PENALTY))}, {percent(_at(data, 'noise_share', n))} "
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
        network: (_at(data, "noise_share", network), mean(data, "noise_share", network, 0.0))
        for network in NETWORKS
        if chosen(data["results"], network, 0.0)
    }
    sides = [{*(values(data, "seed", n, p))} for n in pairs for p in (PENALTY, 0.0)]
    held, free = (min((len(s) for s in sides[place::2]), default=0) for place in (0, 1))
    listed = "; ".join(
        f"{n}: {percent(with_it)} with, {percent(without)} without"
        for n, (with_it, without) in pairs.items()
    )
    change = [abs(mean(data, "mse", n, 0.0) / _at(data, "mse", n) - 1) for n in pairs]
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
        return f"{said} The likelier network errs less.{unequal_steps(data)}"
    best = found["likelihood"][0]
    lowest = min(NETWORKS, key=lambda n: _at(data, "height_top", n))
    why = (
        f": {best}, the likeliest, is the most exact in the median, and answers least of the "
        "height of lines. It tells where a line may stand by its variance"
        if best == lowest == found["the median squared error"][0]
        else ""
    )
    return (
        f"{said} Likelihood and error do not agree{why}.{unequal_steps(data)} What means learnt by "
        "their squared error change is [below](#means-by-squared-error)."
    )


def unequal_steps(data: Data) -> str:
    """Say which network took fewer steps than the others, where one did."""
    steps = {network: _at(data, "steps", network) for network in NETWORKS}
    least, most = min(NETWORKS, key=steps.__getitem__), max(steps.values())
    if steps[least] > 0.95 * most:
        return ""
    others = " and ".join(n for n in NETWORKS if steps[n] == most)
    return (
        f" The budgets were unequal: {least} took {number(steps[least])} steps in its time, "
        f"{others} {number(most)}; it was at its best after {percent(_best_at(data, least))} of "
        "its own."
    )


def budgets(data: Data) -> str:
    """Say where in the training networks were taken, and what follows for unequal budgets."""
    shares = {network: _best_at(data, network) for network in NETWORKS}
    taken = ", ".join(f"{n} {percent(shares[n])}" for n in reversed(NETWORKS))
    said = f"Validation likelihood was best at this share of the training: {taken}."
    if max(shares.values()) < 0.9:
        worse = [_at(data, "validation_last", n) - _at(data, "validation_nll", n) for n in NETWORKS]
        said += (
            f" By the end it was {number(min(worse))} to {number(max(worse))} worse, which speaks "
            "against a lack of steps; and the rate had come down in part only, so that no network "
            "is what the end of its schedule would make of it."
        )
    return said + unequal_steps(data)


def _best_at(data: Data, network: str) -> float:
    """At which share of its training a network was at its best, mean over seeds."""
    an_epoch = -(-data["limits"][0]["train"] // BATCH)
    return _at(data, "best_epoch", network) * an_epoch / _at(data, "steps", network)


def seeing(data: Data) -> str:
    """Say whether networks that see more of a molecule bleed less, in the paper's training."""
    return (
        "Does a network that sees more of a molecule bleed less? By typical bleed, with the "
        f"penalty: {compared(data)}.{unequal_steps(data)}"
    )


def compared(data: Data, **kind: Any) -> str:
    """Compare the typical bleed of networks with that of those which see less, seed by seed.

    One network is below another where each of its seeds is below each of the other's.
    """
    found = {network: values(data, "typical", network, PENALTY, **kind) for network in NETWORKS}
    told = []
    for less, more in pairwise(NETWORKS):
        if min(len(found[less]), len(found[more])) < 2:
            told.append(f"{more} and {less} have too few seeds to compare")
        elif max(found[more]) < min(found[less]):
            told.append(f"{more} bleeds less than {less}")
        elif min(found[more]) > max(found[less]):
            told.append(f"{more} bleeds more than {less}")
        else:
            told.append(f"seeds of {more} and {less} overlap")
    return "; ".join(told)


def sureness(data: Data) -> str:
    """Say what the calibration table shows, from the networks with the penalty."""
    inside = {share: [_at(data, f"inside_{share}", n) for n in NETWORKS] for share in (50, 90)}
    too_sure = all(max(found) < share / 100 - 0.01 for share, found in inside.items())
    ratio = [_at(data, "ence", n) / _at(data, "ence_floor", n) for n in NETWORKS]
    below = all(_at(data, "gence", n) < _at(data, "gence_floor", n) for n in NETWORKS)
    held = "; ".join(
        f"{percent(min(found))} to {percent(max(found))} of the truths in the {share}% interval"
        for share, found in inside.items()
    )
    said = "too sure at both levels" if too_sure else "judged by their intervals"
    places = ", ".join(
        f"{region} {number(_over_floor(chosen(data['wavenumbers'], STEERABLE, PENALTY), region))}"
        for region in REGIONS
    )
    text = (
        f"Networks with the penalty are {said}: {held}. ENCE is {number(min(ratio))} to "
        f"{number(max(ratio))} times its floor; of the steerable network, {places} times."
    )
    squares = [(_at(data, "square", n), _at(data, "square_floor", n)) for n in NETWORKS]
    if below and all(own < drawn for own, drawn in squares):
        listed = ", ".join(
            f"{n} {percent(own)} against {percent(drawn)}"
            for n, (own, drawn) in zip(NETWORKS, squares, strict=True)
        )
        text += (
            " GENCE lies below its floor, which is no praise: where variances are large, the few "
            "large errors do not occur that their tails predict. Squared error over variance, "
            f"against errors drawn: {listed}; in expectation it would be 100%, by errors so rare "
            "that no draw has them."
        )
    totals = [_at(data, "typical_total", n) / _at(data, "typical_limit", n) for n in NETWORKS]
    if min(totals) > SIZES:
        text += (
            f" Their whole typical variance, squared and summed, is "
            f"{number(min(totals))} to {number(max(totals))} times that of the errors: it comes "
            "from tails which the test molecules do not show."
        )
    return text


def _over_floor(rows: list[Row], region: str) -> float:
    """ENCE over its floor, both averaged over the wavenumbers of one of `REGIONS`."""
    low, high = REGIONS[region]
    inside = [row for row in rows if low <= row["wavenumber"] < high]
    return sum(row["ence"] for row in inside) / sum(row["ence_floor"] for row in inside)
