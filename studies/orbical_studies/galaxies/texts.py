"""The galaxy study's paragraphs: what came out, the refitted regression, shared orbits."""

from __future__ import annotations

from .chosen import by_catalogue, named, signed_rows
from .findings import exactly
from .kinds import TITLES, kinds
from .numbers import Numbers, mean, points, signs
from .tables import incomplete, rank_correlation
from .verdicts import unseen, verdict

MARGIN = 0.2
"""An end of an interval that lies nearer to 0 than this share of its width is near."""


def summary(numbers: Numbers) -> str:
    """Say in a paragraph what came out, as far as the intervals on both catalogues allow."""
    if not numbers.photographs:
        return "*The photographs were not trained on.*"
    gain, wide = (by_catalogue(numbers, name, "accuracy") for name in ("gain", "over wide"))
    more = {
        "confirmed": "A larger group makes a network more accurate",
        "contradicted": "A larger group makes a network less accurate",
    }.get(verdict(gain), "Whether a larger group makes a network more accurate stays open")
    than = (
        "and more so than a plain network of as many parameters"
        if verdict(wide) == "confirmed"
        else "but not, as far as these test sets tell, more accurate than a plain network of as "
        "many parameters"
    )
    found = kinds(numbers)
    excess = ", ".join(f"{TITLES[name]} {kind.excess:.4f}" for name, kind in found.items())
    return (
        f"**{more}, {than}. {_calibration_summary(numbers)}** Most of an ECE on so few test images "
        f"is the error of measuring it: its mean excess over what perfectly calibrated networks "
        f"show (the dotted lines below, which are not 0) is, by kind of network: {excess}."
    )


def _calibration_summary(numbers: Numbers) -> str:
    """Say what ECE, ESD and the signed contrast show, at equal fields and at equal parameters."""
    parts = []
    for contrast, against, reference in (
        ("gain", "the plain network with as many fields", "plain"),
        ("over wide", "the plain network of as many parameters", "wide"),
    ):
        signed = signed_rows(numbers, contrast, reference)
        rest = [*by_catalogue(numbers, contrast, "ece"), *by_catalogue(numbers, contrast, "esd")]
        if not any(signs([*rest, *signed])[:2]):
            parts.append(f"Against {against} {unseen([*rest, *signed])}.")
            continue
        _, less, _ = signs(signed)
        words = (
            f"it is less overconfident on {less} of {len(signed)} catalogues: confidence less "
            f"accuracy changes by {named(signed)} points"
            if less
            else f"confidence less accuracy changes by {named(signed)} points"
        )
        above, below, _ = signs(rest)
        others = (
            f"by ECE and ESD, which are blunter, {unseen(rest)}"
            if not (above or below)
            else f"ECE and ESD are better in {below} and worse in {above} of {len(rest)} contrasts"
        )
        parts.append(f"Against {against} {words}; {others}.")
    return " ".join(parts)


def exactness_text(numbers: Numbers) -> str:
    """Say how invariant the networks are, and how many seeds they have."""
    if not numbers.photographs:
        return "*The photographs were not trained on.*"
    short_of = incomplete(numbers)
    seeds = len({row["seed"] for row in numbers.results})
    fewer = f" but for {short_of}" if short_of else ""
    return (
        f"The networks are invariant {exactly(numbers)}. "
        f"Each was trained with {seeds} seeds{fewer}."
    )


def budget_text(numbers: Numbers) -> str:
    """Say how long was trained, and what that leaves open."""
    steps = ", ".join(
        f"{numbers.of(data=data)[0]['steps']:,} steps on {numbers.title(data)}"
        for data in numbers.data
    )
    return (
        f"{numbers.results[0]['epochs']} epochs are {steps}, the same for every network; the paper "
        "trains for 100 epochs. Nothing here shows that the networks had converged, and a network "
        "that is stopped early is often better calibrated than one that is trained on: what is "
        "said of calibration holds for this budget, and the paper's may show more."
    )


def coverage_text(numbers: Numbers) -> str:
    """Say how often the intervals of differences hold the truth on simulated networks."""
    if not numbers.coverage:
        return "*not measured: `orbical study galaxies coverage`*"
    names = {"accuracy": "accuracy", "esd": "ESD", "overconfidence": "confidence less accuracy"}
    found = "; ".join(
        f"{title} "
        + " and ".join(
            f"{100 * row['covered']:.0f} %" for row in numbers.coverage if row["measure"] == name
        )
        for name, title in names.items()
    )
    return (
        f"In {numbers.coverage[0]['worlds']} simulated worlds each, with two equally accurate "
        "networks of three seeds, both calibrated or one too confident by 5 points, the nominal "
        f"95 % interval of their difference held the truth in: {found}."
    )


def fit_text(numbers: Numbers) -> str:
    """Say which kind of network fits its training galaxies most closely, beside overconfidence."""
    found = kinds(numbers) if numbers.photographs else {}
    if len(found) < 2:
        return "*There is one kind of network only.*"
    closest = min(found, key=lambda name: found[name].train_nll)
    surest = max(found, key=lambda name: found[name].overconfidence)
    kind = found[closest]
    gap = ", ".join(
        f"{TITLES[name]} {each.nll - each.train_nll:.3f}" for name, each in found.items()
    )
    return (
        f"The {TITLES[closest]} networks fit their training galaxies most closely (NLL "
        f"{kind.train_nll:.3f}; test less training: {gap})"
        + (
            ", and they are the most overconfident ones: at equal parameters the symmetry may act "
            "by keeping a network from fitting its training galaxies so closely, which is not "
            "told apart here from a direct effect."
            if closest == surest
            else f"; the most overconfident ones are the {TITLES[surest]} networks."
        )
    )


def refit_text(numbers: Numbers) -> str:
    """Say what the refitted regression tells of the networks."""
    rows = numbers.results
    accuracy = mean([row["refitted_accuracy"] - row["accuracy"] for row in rows])
    correlated = max(
        abs(
            rank_correlation(
                *([row[name] for row in numbers.of(data=data)] for name in ("ece", "refitted_ece"))
            )
        )
        for data in numbers.data
    )
    tells = "hardly anything" if correlated < 0.3 else "something"
    return (
        f"Its accuracy differs by {points(accuracy)} points from the networks' own: it has seen "
        f"the answers. Its ECE tells {tells} about theirs (rank correlation at most "
        f"{correlated:.2f} in size over all networks of a data set)."
    )


def matching_text(numbers: Numbers) -> str:
    """Say whether the photographs give orbits that several galaxies share."""
    if not numbers.neighbours:
        return "*not measured*"
    matched = sum(row["matched"] for row in numbers.neighbours)
    least = min(row["least"] / row["turning"] for row in numbers.neighbours)
    found = (
        f"Even after the best turn or mirror the nearest two test galaxies are {least:.1f} times "
        "further apart than a galaxy is from itself after a turn there and back. None are "
        "matched, every ceiling is 1, and the bounds do not apply."
        if not matched
        else f"{matched} galaxies have another within what a turn there and back costs; the least "
        f"ceiling is {min(row['ceiling'] for row in numbers.neighbours):.3f}."
    )
    pairs = []
    for data in numbers.photographs:
        rows = [row for row in numbers.neighbours if row["data"] == data]
        pairs.append((rows[0]["wrong"], rows[-1]["wrong_low"]))
    rising = any(free < low for free, low in pairs)
    guide = "rises" if rising else "does not rise"
    return (
        f"{found} How often the nearest other galaxy is of another class is a guide to what a "
        f"symmetry costs: it {guide} where turns and mirrors are allowed"
        + ("." if rising else ", in agreement with a correct symmetry.")
    )


def marginal_text(numbers: Numbers) -> str:
    """Say how near to 0 the interval of what mirrors do to the ECE comes."""
    rows = numbers.contrast("gain", "ece", data="generated", family="dihedral")
    if not rows:
        return "*not measured*"
    low, high = rows[0]["low"], rows[0]["high"]
    if min(abs(low), abs(high)) > MARGIN * (high - low):
        return (
            f"The verdict on ECE above is clear: 0 is far from both ends of its interval "
            f"({points(low)} to {points(high)} points)."
        )
    return (
        f"The verdict on ECE above is marginal: one end of its interval ({points(low)} to "
        f"{points(high)} points) lies near 0, and on which side depends on the seeds and on how "
        "their chance is counted."
    )
