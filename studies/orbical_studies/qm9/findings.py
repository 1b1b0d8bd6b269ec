"""What the page says in words, chosen from the numbers."""

from __future__ import annotations

import math

import numpy as np

from ..pages import mean
from .contests import (
    Contest,
    better_bleeds_less,
    contest,
    share_against_error,
    shares,
    times,
    untrained_rows,
)
from .numbers import Data, limit, networks_of, values
from .paper import SYMBOLS, TABLE
from .sentences import ALONG, at, sentences, shorter
from .settings import (
    ALL,
    COMPARED,
    GIN_NAME,
    INVARIANT_NAME,
    ORIENTED_NAME,
    PROPERTIES,
    SINGLE,
)
from .writing import ends, number


def answer(data: Data) -> str:
    """Answer the study's question in a few sentences."""
    columns = ("mae", "bleed_99", "coverage", "ence", "nll")
    lines = []
    if ORIENTED_NAME in networks_of(data):
        free = {c: contest(data, c, INVARIANT_NAME, ORIENTED_NAME) for c in columns[:-1]}
        turned = {
            c: contest(data, c, ORIENTED_NAME, ORIENTED_NAME, ("turned", "given"))
            for c in columns[:-1]
        }
        lines += [
            "* **The symmetry alone**, the invariant network against the same one that also sees "
            f"directions: error {times(free['mae'].ratio)} ({free['mae'].text} properties), bleed "
            f"{times(free['bleed_99'].ratio)} ({free['bleed_99'].text}; {free['bleed_99'].range}), "
            f"coverage error {times(free['coverage'].ratio)} ({free['coverage'].text}), ENCE "
            f"{times(free['ence'].ratio)} ({free['ence'].text})." + shorter(data),
            "* **Turned molecules** change nothing for the invariant network. Of the other one the "
            f"error is then {times(turned['mae'].ratio)}, the bleed "
            f"{times(turned['bleed_99'].ratio)}, and the coverage error "
            f"{times(turned['coverage'].ratio)} ({turned['coverage'].text}): "
            + _when_turned(turned["mae"], turned["coverage"], turned["bleed_99"]),
        ]
    seen = {c: contest(data, c, INVARIANT_NAME, GIN_NAME) for c in columns[:-1]}
    agree, correlation = better_bleeds_less(data)
    lines += [
        f"* **What a network sees**, distances against bonds: error {times(seen['mae'].ratio)} "
        f"({seen['mae'].text}), bleed {times(seen['bleed_99'].ratio)} ({seen['bleed_99'].text}), "
        f"coverage error {times(seen['coverage'].ratio)} ({seen['coverage'].text}), ENCE "
        f"{times(seen['ence'].ratio)} ({seen['ence'].text}).",
        "* **Where the uncertainty goes** is not fixed by the likelihood: the aleatoric share of "
        f"the variance, which should be 0, is {ends(shares(data, GIN_NAME))} for GIN and "
        f"{ends(shares(data, INVARIANT_NAME))} for the invariant network. "
        + (
            "It grows as errors shrink"
            if (along := share_against_error(data)) < -ALONG
            else "It does not follow the error"
        )
        + f", rank correlation {along:.2f}.",
        f"* **Bleed follows the error**: the more accurate of the two networks bleeds less on "
        f"{agree} of {len(PROPERTIES)} properties; over networks and properties, whose scales "
        f"differ widely, the rank correlation is {correlation:.2f}."
        if correlation > ALONG
        else f"* **Bleed does not follow the error**: rank correlation {correlation:.2f}.",
    ]
    return "\n".join(lines)


def _when_turned(error: Contest, coverage: Contest, bleed: Contest) -> str:
    """Say what a network without symmetry makes of molecules in positions it has not seen."""
    if coverage.alike:
        return "it learnt, from molecules that lie in many ways, not to mind."
    if error.alike:
        return (
            "its answers shift a little, each by itself and some properties all together, which "
            "hardly shows in the error, and the quantiles that it predicts do not know."
        )
    return "it knows less, and does not say so." if bleed.alike else "it knows less, and says so."


def untrained(data: Data) -> str:
    """Say in sentences which rows compare untrained networks."""
    texts = {
        "worse": "Neither learnt, and at least one is no better than the mean",
        "hardly": "Both hardly better than the mean",
        "one": "One learnt and one did not",
        "both": "Both learnt",
    }
    rows = untrained_rows(data)
    lines = [f"* **{texts[kind]}:** {', '.join(names) or 'none'}." for kind, names in rows.items()]
    a = limit(data, "rotational_a")
    lines.append(
        f"* A is a case of its own. With the linear molecules in, of which two are stored with an "
        "A of hundreds of thousands, its deviation is "
        f"{a['deviation_all']:,.0f} GHz in place of {number(a['deviation'])}, and the mean is off "
        f"by {number(a['mean_mae_all'])} deviations: the printed errors "
        f"{number(a['paper_gin_mae'])} and {number(a['paper_invariant_mae'])} would then be "
        f"{a['paper_gin_mae'] / a['mean_mae_all']:.0f} and "
        f"{a['paper_invariant_mae'] / a['mean_mae_all']:.0f} times that of predicting the mean. "
        "The paper does not say how A was scored."
    )
    return "\n".join(lines)


def unbounded(data: Data) -> str:
    """Say how few molecules decide the bleed of all."""
    near, powers, most = [], [], []
    for name in PROPERTIES:
        for network in networks_of(data):
            near += values(data, "unbounded", name, network)
            bleeds = values(data, "bleed", name, network)
            powers.append((math.log10(max(bleeds) / min(bleeds)), SYMBOLS[name], network))
            most += [
                whole / rest
                for whole, rest in zip(bleeds, values(data, "bleed_99", name, network), strict=True)
            ]
    power, name, network = max(powers)
    return (
        f"Molecules with α < 1.01 are at most {max(near):.2%} of the test set, in half of all "
        f"trainings and properties no more than {float(np.median(near)):.3%}. Yet the bleed of "
        f"all molecules is at least {min(most):.1f} times, in the median "
        f"{number(float(np.median(most)))} times, that without the worst 1 %, and between the "
        f"seeds of one network it differs by up to {power:.0f} powers of ten ({name}, {network})."
    )


def hidden(data: Data) -> str:
    """Say what a z-score of total energies hides."""
    whole, atoms = (limit(data, name)["deviation"] for name in ("u0", "u0_atom"))
    paper = TABLE["u0"].invariant_mae
    return (
        f"A z-score hides this. The deviation of U₀ is {number(whole)} eV, {whole / atoms:.0f} "
        f"times that of U₀ atom, all of it composition: the paper's better error, {paper} "
        f"deviations of U₀, is {paper * whole:.0f} eV, and the same network's error of U₀ atom, "
        f"{TABLE['u0_atom'].invariant_mae} deviations, is "
        f"{TABLE['u0_atom'].invariant_mae * atoms:.1f} eV."
    )


def alone(data: Data) -> str:
    """Say whether a backbone of its own changes who is better, and what it does."""
    columns = ("mae", "nll", "coverage", "ence", "bleed_99")
    same = total = 0
    changes: dict[str, list[float]] = {"mae": [], "coverage": []}
    for name in SINGLE:
        for column in columns:
            shared, own = (
                [at(data, column, name, network, target=target) for network in COMPARED]
                for target in (ALL, name)
            )
            same += (shared[0] < shared[1]) == (own[0] < own[1])
            total += 1
            if column in changes:
                changes[column] += [math.log(b / a) for a, b in zip(shared, own, strict=True)]
    error, coverage = (math.exp(mean(found)) for found in changes.values())
    return (
        f"GIN and the invariant network keep their order in {same} of {total} comparisons. On a "
        f"backbone of its own the error of a property is {times(error)} and the coverage error "
        f"{times(coverage)}"
        + (": freer networks are surer of themselves." if error < 1 < coverage else ".")
    )


def converged(data: Data) -> str:
    """Say what the last tenth of the training still gained."""
    gains = {
        (name, network): mean(values(data, "gain", name, network))
        for name in PROPERTIES
        for network in networks_of(data)
    }
    name, network = max(gains, key=gains.__getitem__)
    small = sum(gain < 0.02 for gain in gains.values())
    return (
        f"In the last tenth of the epochs validation errors fell by less than 2 % in {small} of "
        f"{len(gains)} cases, at most by {gains[name, network]:.1%} ({SYMBOLS[name]}, {network})."
    )


FINDINGS = {
    "answer": answer,
    "sentences": sentences,
    "untrained-rows": untrained,
    "unbounded": unbounded,
    "hidden": hidden,
    "alone": alone,
    "converged": converged,
}
