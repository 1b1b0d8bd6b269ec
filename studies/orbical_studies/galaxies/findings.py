"""The paper's claims on galaxies, each beside what was measured, judged by intervals."""

from __future__ import annotations

from ..pages import markdown
from .chosen import by_catalogue, by_setting, named, signed_rows, value_range
from .kinds import EXPECTED, LITTLE, kinds
from .kinds import TITLES as KINDS
from .numbers import FAMILIES, Numbers, mean, points, short, signs, thousandths, with_interval
from .training import DEFECT_SAMPLES
from .verdicts import counted, negated, no_improvement, verdict, worsening

ROUNDING = 1e-5
"""A change of a probability that single precision explains."""

CONTRASTS = ("slope", "gain", "over wide", "wide", "gain lost", "early", "late", "blur")


def sentences(numbers: Numbers) -> str:
    """Write the table of the paper's claims."""
    if not numbers.photographs:
        return "*The photographs were not trained on.*"
    judged = (_accuracy, _calibration, _symmetry, _mirrors)
    lines = [line for judge in judged for line in judge(numbers)]
    return markdown(["the paper", "verdict", "measured"], lines)


def _accuracy(numbers: Numbers) -> list[list[str]]:
    each = {name: by_setting(numbers, name, "accuracy") for name in CONTRASTS}
    means = {name: by_catalogue(numbers, name, "accuracy") for name in CONTRASTS}
    rises, saturates = signs(means["early"])[0], signs(means["late"])[0]
    confidences = [
        numbers.mean("confidence", data=data, blur=numbers.blurs(data)[-1])
        - numbers.mean("confidence", data=data, blur=numbers.blurs(data)[0])
        for data in numbers.photographs
    ]
    return [
        [
            "Accuracy rises with the order of the group (Fig. 4, 4.7.2).",
            verdict(means["slope"]),
            f"A doubling of n, in points, mean over families and blurs: {named(means['slope'])}; "
            f"each of {len(each['slope'])} settings alone: {counted(each['slope'])}. Largest n "
            f"over the plain network: {named(means['gain'])}.",
        ],
        [
            "The gain is the symmetry's (implied; sizes are alike in Table 2).",
            verdict(means["over wide"]),
            f"Largest n (mean of C_n and D_n) over a plain network with {_sizes(numbers)}: "
            f"{named(means['over wide'])} points; this network over the narrow plain one: "
            f"{named(means['wide'])}. Table 2's sizes are alike because nearly all parameters lie "
            "behind the flattened map: D_12 has 86,064 more than the CNN, which has 6,360 in its "
            "convolutions.",
        ],
        [
            "It rises most where the blur is least (Fig. 4).",
            verdict(means["gain lost"]),
            "The gain of the largest n without blur less that with the most: "
            f"{named(means['gain lost'])} points.",
        ],
        [
            "The rise levels off as the order grows (4.7.2).",
            "in line with it: no rise is established beyond order 4"
            if rises and not saturates
            else "not confirmed",
            f"From the plain network to order 4: {named(means['early'])} points; from order 4 to "
            f"the largest: {named(means['late'])}.",
        ],
        [
            "Blur changes accuracy and confidence (4.7.2).",
            verdict(negated(means["blur"])) if max(confidences) < 0 else "not confirmed",
            f"Most blur less none: accuracy of the largest n {named(means['blur'])}; mean "
            f"confidence of all networks {', '.join(points(c) for c in confidences)} points.",
        ],
    ]


def ece_ranges(numbers: Numbers) -> tuple[list[float], list[float]]:
    """Give, for each setting, the range of ECE over the orders, and one network's interval."""
    ranges, widths = [], []
    for data, family, blur in numbers.settings():
        where = {"data": data, "family": family, "blur": blur, "width": 1}
        values = [numbers.mean("ece", order=n, **where) for n in numbers.orders(data, family)]
        ranges.append(max(values) - min(values))
        widths.append(mean([row["ece_high"] - row["ece_low"] for row in numbers.of(**where)]))
    return ranges, widths


def _sizes(numbers: Numbers) -> str:
    """Say how many times the parameters of the largest groups the wide plain network has."""
    data = numbers.photographs[0]
    wide = max(row["parameters"] for row in numbers.of(data=data) if row["width"] > 1)
    times = []
    for family, letter in FAMILIES.items():
        order = max(numbers.orders(data, family))
        (size, *_) = (r["parameters"] for r in numbers.of(data=data, network=f"{family}:{order}"))
        times.append(f"{wide / size:.1f} times the parameters of {letter}_{order}")
    return " and ".join(times)


def left_to_help(numbers: Numbers) -> tuple[str, str]:
    """Judge whether calibration is left to gain: the verdict, and the counts behind it."""
    found = kinds(numbers)
    little = max(kind.excess for kind in found.values()) < LITTLE
    most = max(found, key=lambda name: found[name].excess)
    nothing = max(kind.share for kind in found.values()) <= 2 * EXPECTED
    word = (
        "not contradicted"
        if not little
        else "corrected: hardly anything is left to help with"
        if nothing
        else "corrected: little is left to help with, though not nothing, and most of it in the "
        f"{KINDS[most]} networks"
    )
    counts = ", ".join(
        f"{kind.above} of {kind.count} {KINDS[name]} ({100 * kind.share:.0f} %)"
        for name, kind in found.items()
    )
    excess = ", ".join(f"{kind.excess:.4f}" for kind in found.values())
    over = ", ".join(points(kind.overconfidence) for kind in found.values())
    return word, (
        f"Above the ECE that {100 - 100 * EXPECTED:g} % of calibrated networks stay below on these "
        f"test sets ({100 * EXPECTED:g} % expected): {counts}. In this order, mean excess of ECE "
        f"{excess}, confidence less accuracy {over} points."
    )


def _calibration(numbers: Numbers) -> list[list[str]]:
    each = {name: by_setting(numbers, name, "ece") for name in CONTRASTS}
    means = {name: by_catalogue(numbers, name, "ece") for name in CONTRASTS}
    esd = {name: by_catalogue(numbers, name, "esd") for name in CONTRASTS}
    ranges, widths = ece_ranges(numbers)
    smaller = sum(a < b for a, b in zip(ranges, widths, strict=True))
    over = {
        name: signed_rows(numbers, name, reference)
        for name, reference in (("slope", "plain"), ("gain", "plain"), ("over wide", "wide"))
    }
    same = no_improvement([*means["gain"], *esd["gain"], *over["gain"]])
    signed = by_setting(numbers, "over wide", "overconfidence")
    left, counts = left_to_help(numbers)
    return [
        [
            "ECE does not fall steadily with the order of C_n (4.7.2).",
            no_improvement([*means["slope"], *esd["slope"], *over["slope"]]),
            f"A doubling of n: ECE {named(means['slope'])} points; ESD {named(esd['slope'])} "
            f"thousandths; confidence less accuracy {named(over['slope'])} points; "
            f"ECE in each of {len(each['slope'])} settings alone: "
            f"{counted(each['slope'])}.",
        ],
        [
            "ECE varies strongly with the order (Fig. 4).",
            "corrected: within the noise of one test set"
            if smaller == len(ranges)
            else f"corrected in {smaller} of {len(ranges)} settings",
            f"Over all orders ECE (mean over seeds) ranges by {min(ranges):.3f} to "
            f"{max(ranges):.3f}; the 95 % interval of a single network is {mean(widths):.3f} wide.",
        ],
        [
            "A correct symmetry does not help calibration as it helps accuracy (4.7.2).",
            same,
            f"The largest n less the plain network: ECE {named(means['gain'])} points; ESD "
            f"{named(esd['gain'])} thousandths; confidence less accuracy {named(over['gain'])} "
            f"points; ECE in each of {len(each['gain'])} settings "
            f"alone: {counted(each['gain'])}.",
        ],
        [
            "A correct symmetry can raise accuracy and leave calibration as it is (9).",
            f"accuracy: {verdict(by_catalogue(numbers, 'gain', 'accuracy'))}, at equal fields; "
            f"calibration: {same.partition(': ')[0] if same.startswith('open') else same}",
            "Accuracy and ECE of the largest n less the plain network's, in points: "
            f"{named(by_catalogue(numbers, 'gain', 'accuracy'))}; {named(means['gain'])}.",
        ],
        [
            "A correct symmetry need not calibrate better than a network of the same size without "
            "it (9).",
            no_improvement([*means["over wide"], *esd["over wide"], *over["over wide"]]),
            f"The largest n less the wide plain network: ECE {named(means['over wide'])} points; "
            f"ESD {named(esd['over wide'])} thousandths; confidence less accuracy "
            f"{named(over['over wide'])} points; ECE in each setting alone: "
            f"{counted(each['over wide'])}, confidence less accuracy: {counted(signed)}.",
        ],
        [
            "A symmetry alone does not make a network well calibrated (9).",
            left,
            counts,
        ],
    ]


def _symmetry(numbers: Numbers) -> list[list[str]]:
    slopes = by_setting(numbers, "slope", "accuracy")
    above, below, both = signs(slopes)
    trends = ", ".join(
        f"{Numbers.title(data)} {letter}_n "
        + value_range([r for r in slopes if (r["data"], r["family"]) == (data, family)])
        for data in numbers.photographs
        for family, letter in FAMILIES.items()
    )
    gaps = {
        data: [
            numbers.mean("gap_circle", data=data, network=network, blur=0)
            for network in ("cyclic:1", "cyclic:4", _largest(numbers, data))
        ]
        for data in numbers.photographs
    }
    falling = all(gap == sorted(gap, reverse=True) for gap in gaps.values())
    return [
        [
            "C_n and D_n, and both catalogues, behave alike (4.7.2, F).",
            f"in line with it: {above} of {len(slopes)} rise, none falls"
            if above and not below
            else verdict(slopes),
            f"Accuracy, a doubling of n: {trends}. Of {len(slopes)} settings {above} lie above 0, "
            f"{below} below, {both} hold it. D_1 has two elements already, so that D_n starts "
            "higher and rises less.",
        ],
        [
            "The larger n, the more of the true symmetry a network has (4.7.2).",
            "confirmed by the gap, here" if falling else "not confirmed",
            f"Invariance gap over the circle without blur, mean over seeds, plain, C_4 and "
            f"{short(_largest(numbers, numbers.photographs[0]))}: "
            + "; ".join(
                f"{Numbers.title(data)} {', '.join(f'{gap:.3f}' for gap in found)}"
                for data, found in gaps.items()
            )
            + f". The paper's own networks flatten their maps after the group convolutions and are "
            f"therefore not invariant; those here are so {exactly(numbers)}.",
        ],
    ]


def _mirrors(numbers: Numbers) -> list[list[str]]:
    """Judge mirrors where they are an incorrect symmetry: on generated galaxies, if there are."""
    if not numbers.bounds:
        return []
    ceiling = numbers.bounds[0]["ceiling"]
    accuracy, lower, ece, upper = (
        mean([row[name] for row in numbers.bounds])
        for name in ("accuracy", "lower", "ece", "upper")
    )
    turned = numbers.mean("accuracy", data="generated", network=_largest(numbers, "generated"))
    worse = [
        row
        for measure in ("ece", "esd", "overconfidence")
        for row in numbers.contrast("gain", measure, data="generated", family="dihedral")
    ]
    shown = ", ".join(
        with_interval(row, thousandths if row["measure"] == "esd" else points) for row in worse
    )
    return [
        [
            "Every C_n and D_n is a correct symmetry of galaxies (4.7.2).",
            "true of these labels, not of galaxies",
            "Where the sense of the arms is the label (generated galaxies) mirrors are an "
            f"incorrect symmetry: D_n reaches {accuracy:.3f} of its ceiling {ceiling:.3f}, the "
            f"largest C_n {turned:.3f}.",
        ],
        [
            "An incorrect symmetry can spoil calibration (4.7.2).",
            worsening(worse),
            "The largest D_n less the plain network on generated galaxies, ECE in points, ESD "
            f"in thousandths and confidence less accuracy in points: {shown}. The sharp "
            f"interval would allow {lower:.3f} to {upper:.3f}; measured {ece:.3f}.",
        ],
    ]


def exactly(numbers: Numbers) -> str:
    """Say to which groups the networks are invariant exactly, and how far the others are."""
    largest: dict[str, float] = {}
    for row in numbers.results:
        if (
            row["data"] in numbers.photographs
            and row["network"] != "cyclic:1"
            and row["width"] == 1
        ):
            name = short(row["network"])
            largest[name] = max(largest.get(name, 0.0), row["defect_group"])
    exact = [name for name, defect in largest.items() if defect < ROUNDING]
    rest = [name for name in largest if name not in exact]
    words = f"to rounding for {', '.join(exact)}" if exact else "nowhere to rounding"
    if rest:
        most = max(largest[name] for name in rest)
        words += (
            f", and for {', '.join(rest)} as far as turning pixels allows (of {DEFECT_SAMPLES} "
            f"test galaxies one changes a class probability by up to {most:.2f} over the group)"
        )
    return words


def _largest(numbers: Numbers, data: str) -> str:
    return f"cyclic:{max(numbers.orders(data, 'cyclic'))}"
