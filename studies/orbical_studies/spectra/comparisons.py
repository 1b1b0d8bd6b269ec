"""What is said beside the spectra study's tables: of networks, budgets and calibration."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from ..pages import Row
from .findings import SIZES
from .measures import REGIONS
from .numbers import Data, at, chosen, number, percent, values
from .settings import BATCH, NETWORKS, PENALTY, STEERABLE


def orders(data: Data) -> str:
    """Say which network is best by what, and whether likelihood and error agree."""
    by = {
        "likelihood": "nll",
        "the median squared error": "mse_median",
        "the mean squared error": "mse",
    }
    found = {
        title: sorted(NETWORKS, key=lambda n, name=name: at(data, name, n))  # type: ignore[misc]
        for title, name in by.items()
    }
    listed = "; ".join(f"by {title}: {', '.join(order)}" for title, order in found.items())
    said = f"From the best to the worst, {listed}."
    if found["likelihood"] == found["the mean squared error"]:
        return f"{said} The likelier network errs less.{unequal_steps(data)}"
    best = found["likelihood"][0]
    lowest = min(NETWORKS, key=lambda n: at(data, "height_top", n))
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
    steps = {network: at(data, "steps", network) for network in NETWORKS}
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
        worse = [at(data, "validation_last", n) - at(data, "validation_nll", n) for n in NETWORKS]
        said += (
            f" By the end it was {number(min(worse))} to {number(max(worse))} worse, which speaks "
            "against a lack of steps; and the rate had come down in part only, so that no network "
            "is what the end of its schedule would make of it."
        )
    return said + unequal_steps(data)


def _best_at(data: Data, network: str) -> float:
    """At which share of its training a network was at its best, mean over seeds."""
    an_epoch = -(-data["limits"][0]["train"] // BATCH)
    return at(data, "best_epoch", network) * an_epoch / at(data, "steps", network)


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
    inside = {share: [at(data, f"inside_{share}", n) for n in NETWORKS] for share in (50, 90)}
    too_sure = all(max(found) < share / 100 - 0.01 for share, found in inside.items())
    ratio = [at(data, "ence", n) / at(data, "ence_floor", n) for n in NETWORKS]
    below = all(at(data, "gence", n) < at(data, "gence_floor", n) for n in NETWORKS)
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
    squares = [(at(data, "square", n), at(data, "square_floor", n)) for n in NETWORKS]
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
    totals = [at(data, "typical_total", n) / at(data, "typical_limit", n) for n in NETWORKS]
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
