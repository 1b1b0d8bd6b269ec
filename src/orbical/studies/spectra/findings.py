"""The paper's sentences on spectra, each beside what was measured and what must be."""

from __future__ import annotations

from statistics import fmean

from ..pages import markdown
from .measures import REGIONS
from .numbers import Data, chosen, mean, number, percent, values
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
    with_detail, with_height = _at(data, "detail_all"), _at(data, "height_all")
    beyond, error = _at(data, "detail_given_height"), _at(data, "error_detail_all")
    if with_detail < LOOSE:
        verdict = "not confirmed"
    elif beyond < with_detail / 2:
        verdict = "confirmed, but height explains it better than frequency"
    else:
        verdict = "confirmed"
    return [
        "“The model tends to conflate high frequency signals with noise.”",
        verdict,
        f"Aleatoric variance goes with the detail of the true spectrum, rank correlation "
        f"{number(with_detail)}, and with its height, {number(with_height)}; with the height "
        f"taken off, {number(beyond)} is left of the first. The squared error itself goes with "
        f"detail, {number(error)}: noise is reported where the network is wrong.",
        "0 for a network that knows that there is no noise",
    ]


def _together(data: Data) -> list[str]:
    along, every = _at(data, "epistemic_along"), _at(data, "epistemic_all")
    nu, common = _at(data, "spread_nu"), _at(data, "spread_aleatoric")
    verdict = "confirmed" if along >= CLOSE else "not confirmed"
    return [
        "“The model's aleatoric uncertainty follows the epistemic uncertainty quite closely, "
        "indicating that the model can not tell them apart.”",
        f"{verdict}, but it follows by construction",
        f"Rank correlation {number(along)} along a spectrum, {number(every)} over all entries. "
        "Both are β/(α − 1), one of them divided by ν: the logarithm of what they share varies by "
        f"{number(common)}, that of ν, which alone can tell them apart, by {number(nu)}.",
        "likelihood depends on α and β(1 + ν)/ν only: it leaves the split open",
    ]


def _where(data: Data) -> list[str]:
    rows = chosen(data["wavenumbers"], STEERABLE, PENALTY)
    total = sum(row["bleed"] for row in rows)
    shares = {
        name: sum(r["bleed"] for r in rows if low <= r["wavenumber"] < high) / total
        for name, (low, high) in REGIONS.items()
    }
    listed = ", ".join(f"{name} {percent(share)}" for name, share in shares.items())
    return [
        f"“We compute an aleatoric bleed of ≈ {PAPER_BLEED}, however, this does not indicate "
        "*where* or *which dimension* contributes to most of the bleed.”",
        "corrected",
        f"Bleed {number(_at(data, 'bleed'))} here. It is a sum over wavenumbers, and its terms "
        f"say where: {listed}. The two totals cannot be compared: other spectra, points, units, "
        "and a sum of squares grows with each of them.",
        f"0; {number(_at(data, 'optimal'))} if the whole error were called noise",
    ]


def _only_tells(data: Data) -> list[str]:
    top, middle = _at(data, "bleed_top"), _at(data, "bleed_median")
    bleed, optimal = _at(data, "bleed"), _at(data, "optimal")
    return [
        "“The aleatoric bleed is only able to tell a practitioner that the model is confusing "
        "different sources of uncertainty.”",
        "corrected: a mean of squares tells less than that, and its terms tell more",
        f"The largest 1% of entries hold {percent(top)} of it; a molecule in the middle has "
        f"{number(middle)}. Beside the error it has a meaning: {percent(bleed / optimal)} of what "
        "calling the whole error noise would give.",
        "ratio 0 without bleed, 100% where all error is reported as noise",
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
        "“The ground truth mapping from molecule to label should be deterministic and accordingly "
        "the aleatoric uncertainties should be zero.”",
        "confirmed for networks that see the geometry" if limits["twins"] else "confirmed",
        "Labels calculated again for turned molecules change by a mean square of "
        f"{number(limits['label_mse'])} of the targets' variance. {blind}",
        f"bleed of the labels {number(limits['label_bleed'])}; of the twins, for bonds, "
        f"{number(limits['bonds_bleed'])}",
    ]


def _explained(data: Data) -> list[str]:
    middle, above = _at(data, "r2_median"), _at(data, "r2_above")
    if middle > 0.9:
        verdict = "confirmed"
    elif above > 0.1:
        verdict = "not reached: for some molecules, not for most"
    else:
        verdict = "not reached"
    size = data["limits"][0]["train"]
    return [
        "“Both models achieving R² scores above 0.9 and often close to 1.0 on QM9s test "
        "molecules.”",
        verdict,
        f"Median R² {number(middle)}, above .9 for {percent(above)} of the test molecules, after "
        f"training on {size:,} molecules with "
        f"{chosen(data['results'], STEERABLE, PENALTY)[0]['parameters']:,} parameters; the paper "
        "trains 37 million on about 130,000, and its spectra are not public.",
        f"1; the mean spectrum has {number(data['limits'][0]['mean_r2'])}",
    ]


def _symmetry(data: Data) -> list[str]:
    errors = {network: _at(data, "mse", network) for network in NETWORKS}
    bleeds = {network: _at(data, "bleed_median", network) for network in NETWORKS}
    ratios = {n: _at(data, "bleed", n) / _at(data, "optimal", n) for n in NETWORKS}
    order = sorted(NETWORKS, key=errors.__getitem__)
    same = order == sorted(NETWORKS, key=bleeds.__getitem__)
    gap = 1 - min(bleeds.values()) / max(bleeds.values())
    if same and gap > 0.2:
        verdict = "corrected: who errs less bleeds less, and seeing more errs less"
    elif gap > 0.2:
        verdict = "confirmed: bleed differs, but not in the order of the errors"
    else:
        verdict = "confirmed"
    listed = "; ".join(
        f"{n}: MSE {number(errors[n])}, bleed in the middle {number(bleeds[n])}, "
        f"{percent(ratios[n])} of the optimal"
        for n in order
    )
    return [
        "“Correct equivariance does little to help prevent aleatoric bleed.”",
        verdict,
        f"{listed}. All three are invariant; they differ in what they see: "
        f"{BONDS}, {DISTANCES}, or directions as well ({STEERABLE}).",
        "structural bound 0 for all that see the geometry",
    ]


def _penalty(data: Data) -> list[str]:
    without = {
        network: values(data, "bleed_median", network, 0.0)
        for network in NETWORKS
        if chosen(data["results"], network, 0.0)
    }
    listed = "; ".join(
        f"{n}: {number(fmean(found))} without, {number(_at(data, 'bleed_median', n))} with"
        for n, found in without.items()
    )
    change = [abs(fmean(found) / _at(data, "bleed_median", n) - 1) for n, found in without.items()]
    gap = [abs(mean(data, "mse", n, 0.0) / _at(data, "mse", n) - 1) for n in without]
    verdict = (
        "confirmed, and more: the penalty, not the data, sets the bleed"
        if change and fmean(change) > 3 * fmean(gap)
        else "confirmed"
    )
    return [
        "“Training stability is sensitive to a choice of λ” (E).",
        verdict,
        f"Bleed of a molecule in the middle, {listed}; the squared error changes by "
        f"{percent(fmean(gap)) if gap else 'nothing'} in the mean.",
        "likelihood alone does not say how to split a variance",
    ]
