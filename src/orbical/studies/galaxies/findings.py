"""The paper's sentences on galaxies, each beside what was measured, judged by intervals."""

from __future__ import annotations

from collections.abc import Sequence

from ..pages import Row, markdown
from .numbers import FAMILIES, TITLES, Numbers, mean, points, signs, thousandths, with_interval
from .tables import rank_correlation

LITTLE = 0.01
"""An excess of ECE that is called little."""

CONTRASTS = ("slope", "gain", "over wide", "wide", "gain lost", "early", "late", "blur")


def counted(rows: Sequence[Row]) -> str:
    """Say in how many settings an interval lies above 0, and below it.

    >>> counted([{"low": 0.1, "high": 0.2}, {"low": -0.1, "high": 0.2}])
    'above 0 in 1, below in 0'
    """
    above, below, _ = signs(rows)
    return f"above 0 in {above}, below in {below}"


def verdict(rows: Sequence[Row]) -> str:
    """Judge the statement that a number is above 0, from its interval on each data set.

    >>> verdict([{"low": 0.1, "high": 0.2}, {"low": -0.1, "high": 0.2}])
    'confirmed on 1 of 2 data sets, open on the rest'
    >>> verdict([{"low": -0.1, "high": 0.2}]), verdict([{"low": -0.2, "high": -0.1}])
    ('not confirmed: every interval holds 0', 'contradicted')
    """
    above, below, _ = signs(rows)
    if not (above or below):
        return "not confirmed: every interval holds 0"
    if above == len(rows):
        return "confirmed"
    if below == len(rows):
        return "contradicted"
    if above and below:
        return f"mixed: for it on {above}, against it on {below} of {len(rows)} data sets"
    word, count = ("confirmed", above) if above else ("contradicted", below)
    return f"{word} on {count} of {len(rows)} data sets, open on the rest"


def no_effect(rows: Sequence[Row]) -> str:
    """Judge the statement that there is no clear improvement (numbers below 0 are improvements).

    >>> no_effect([{"low": -0.1, "high": 0.2}]), no_effect([{"low": -0.2, "high": -0.1}])
    ('confirmed', 'contradicted')
    """
    _, below, _ = signs(rows)
    if not below:
        return "confirmed"
    return "contradicted" if below == len(rows) else f"confirmed but for {below} of {len(rows)}"


def negated(rows: Sequence[Row]) -> list[Row]:
    """Turn the sign of values and intervals.

    >>> negated([{"value": 1.0, "low": 0.0, "high": 3.0}])
    [{'value': -1.0, 'low': -3.0, 'high': -0.0}]
    """
    return [
        row | {"value": -row["value"], "low": -row["high"], "high": -row["low"]} for row in rows
    ]


def sentences(numbers: Numbers) -> str:
    """Write the table of the paper's sentences."""
    if not numbers.photographs:
        return "*The photographs were not trained on.*"
    lines = [*_accuracy(numbers), *_calibration(numbers), *_symmetry(numbers)]
    return markdown(["the paper", "verdict", "measured"], lines)


def summary(numbers: Numbers) -> str:
    """Say in a paragraph what came out, as far as the intervals on both catalogues allow."""
    if not numbers.photographs:
        return "*The photographs were not trained on.*"
    gain, wide = (_means(numbers, name, "accuracy") for name in ("gain", "over wide"))
    gained = [*_means(numbers, "gain", "ece"), *_means(numbers, "gain", "esd")]
    more = {
        "confirmed": "A larger group makes a network more accurate",
        "contradicted": "A larger group makes a network less accurate",
    }.get(verdict(gain), "Whether a larger group makes a network more accurate stays open")
    than = (
        "more than a plain network of as many parameters"
        if verdict(wide) == "confirmed"
        else "but not more accurate, as far as these test sets tell, than a plain network of as "
        "many parameters"
    )
    above, below, _ = signs(gained)
    calibration = (
        "no change of its calibration is seen"
        if not (above or below)
        else f"ECE and ESD are better in {below} and worse in {above} of {len(gained)} comparisons"
    )
    excess = max(each for _, _, each in shares_inside(numbers).values())
    already = (
        "close to that of a perfectly calibrated network" if excess < LITTLE else "not yet good"
    )
    return (
        f"**{more}, {than}; {calibration}: it is {already}** (mean excess of ECE {excess:.3f}). At "
        "such sizes of test set a calibration error is mostly the error of measuring it: the "
        "dotted lines below are what a perfectly calibrated network would show, and they are not 0."
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


def _settings(numbers: Numbers, contrast: str, measure: str) -> list[Row]:
    """Rows of each catalogue, family and blur."""
    rows = numbers.contrast(contrast, measure)
    return [r for r in rows if r["data"] in numbers.photographs and r["family"] != "both"]


def _means(numbers: Numbers, contrast: str, measure: str) -> list[Row]:
    """Rows of the mean over families and blurs, one a catalogue."""
    rows = numbers.contrast(contrast, measure, family="both")
    return [row for row in rows if row["data"] in numbers.photographs]


def _range(rows: Sequence[Row]) -> str:
    values = [row["value"] for row in rows]
    return f"{points(min(values))} to {points(max(values))} points"


def _named(rows: Sequence[Row]) -> str:
    """Write the mean over families and blurs of each catalogue."""
    return ", ".join(
        f"{TITLES[r['data']].split(',')[0]} "
        + with_interval(r, thousandths if r["measure"] == "esd" else points)
        for r in rows
    )


def _accuracy(numbers: Numbers) -> list[list[str]]:
    each = {name: _settings(numbers, name, "accuracy") for name in CONTRASTS}
    means = {name: _means(numbers, name, "accuracy") for name in CONTRASTS}
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
            f"A doubling of n, in points, mean over families and blurs: {_named(means['slope'])}; "
            f"each of {len(each['slope'])} settings alone: {counted(each['slope'])}. Largest n "
            f"over the plain network: {_named(means['gain'])}.",
        ],
        [
            "The gain is the symmetry's (implied; sizes are alike in Table 2).",
            verdict(means["over wide"]),
            f"Largest n over a plain network with {_size(numbers):.1f} times the parameters of "
            f"D_12: {_named(means['over wide'])} points; this network over the narrow plain one: "
            f"{_named(means['wide'])}. Table 2's sizes are alike because nearly all parameters lie "
            "behind the flattened map: D_12 has 86,064 more than the CNN, which has 6,360 in its "
            "convolutions.",
        ],
        [
            "It rises most where the blur is least (Fig. 4).",
            verdict(means["gain lost"]),
            "The gain of the largest n without blur less that with the most: "
            f"{_named(means['gain lost'])} points.",
        ],
        [
            "The rise levels off as the order grows (4.7.2).",
            "in line with it: no rise is established beyond order 4"
            if rises and not saturates
            else "not confirmed",
            f"From the plain network to order 4: {_named(means['early'])} points; from order 4 to "
            f"the largest: {_named(means['late'])}.",
        ],
        [
            "Blur changes accuracy and confidence (4.7.2).",
            verdict(negated(means["blur"])) if max(confidences) < 0 else "not confirmed",
            f"Most blur less none: accuracy of the largest n {_named(means['blur'])}; mean "
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


def shares_inside(numbers: Numbers) -> dict[str, tuple[int, int, float]]:
    """Count networks with an ECE that calibrated ones show, and their mean excess over these."""
    rows = [row for row in numbers.results if row["data"] in numbers.photographs]
    kinds = {
        "plain": [row for row in rows if row["network"] == "cyclic:1"],
        "group": [row for row in rows if row["network"] != "cyclic:1" and row["width"] == 1],
    }
    return {
        name: (
            sum(row["ece"] <= row["ece_calibrated_high"] for row in some),
            len(some),
            mean([row["ece"] - row["ece_calibrated"] for row in some]),
        )
        for name, some in kinds.items()
    }


def _size(numbers: Numbers) -> float:
    """Give the parameters of the wide plain network beside those of the largest group."""
    data = numbers.photographs[0]
    largest = f"dihedral:{max(numbers.orders(data, 'dihedral'))}"
    wide = max(row["parameters"] for row in numbers.of(data=data) if row["width"] > 1)
    return wide / numbers.of(data=data, network=largest)[0]["parameters"]


def _calibration(numbers: Numbers) -> list[list[str]]:
    each = {name: _settings(numbers, name, "ece") for name in CONTRASTS}
    means = {name: _means(numbers, name, "ece") for name in CONTRASTS}
    esd = {name: _means(numbers, name, "esd") for name in CONTRASTS}
    ranges, widths = ece_ranges(numbers)
    smaller = sum(a < b for a, b in zip(ranges, widths, strict=True))
    inside = shares_inside(numbers)
    better = verdict(_means(numbers, "gain", "accuracy")) == "confirmed"
    unmoved = no_effect([*means["gain"], *esd["gain"]]) == "confirmed"
    little = max(excess for _, _, excess in inside.values()) < LITTLE
    return [
        [
            "ECE does not fall steadily with the order of C_n (4.7.2).",
            no_effect([*means["slope"], *esd["slope"]]),
            f"A doubling of n: ECE {_named(means['slope'])} points; ESD {_named(esd['slope'])} "
            f"thousandths; ECE in each of {len(each['slope'])} settings alone: "
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
            no_effect([*means["gain"], *esd["gain"]]),
            f"The largest n less the plain network: ECE {_named(means['gain'])} points; ESD "
            f"{_named(esd['gain'])} thousandths; ECE in each of {len(each['gain'])} settings "
            f"alone: {counted(each['gain'])}.",
        ],
        [
            "A correct symmetry can raise accuracy and leave calibration as it is (9).",
            "confirmed, at equal fields" if better and unmoved else "not confirmed",
            "Accuracy and ECE of the largest n less the plain network's, in points: "
            f"{_named(_means(numbers, 'gain', 'accuracy'))}; {_named(means['gain'])}.",
        ],
        [
            "A correct symmetry need not calibrate better than a network of the same size without "
            "it (9).",
            no_effect([*means["over wide"], *esd["over wide"]]),
            f"The largest n less the wide plain network: ECE {_named(means['over wide'])} points; "
            f"ESD {_named(esd['over wide'])} thousandths; ECE in each setting alone: "
            f"{counted(each['over wide'])}.",
        ],
        [
            "A symmetry alone does not make a network well calibrated (9).",
            "corrected: hardly anything is left to help with" if little else "not contradicted",
            "At or below the ECE that 97.5 % of calibrated networks would show on these test sets: "
            f"{inside['plain'][0]} of {inside['plain'][1]} plain networks and "
            f"{inside['group'][0]} of {inside['group'][1]} with a group; mean excess "
            f"{inside['plain'][2]:.3f} and {inside['group'][2]:.3f}.",
        ],
    ]


def _symmetry(numbers: Numbers) -> list[list[str]]:
    slopes = _settings(numbers, "slope", "accuracy")
    above, below, both = signs(slopes)
    trends = ", ".join(
        f"{TITLES[data].split(',')[0]} {letter}_n "
        + _range([r for r in slopes if (r["data"], r["family"]) == (data, family)])
        for data in numbers.photographs
        for family, letter in FAMILIES.items()
    )
    gaps = {
        data: [
            numbers.mean("gap_circle", data=data, network=network)
            for network in ("cyclic:1", "cyclic:4", _largest(numbers, data))
        ]
        for data in numbers.photographs
    }
    falling = all(gap == sorted(gap, reverse=True) for gap in gaps.values())
    lines = [
        [
            "C_n and D_n, and both catalogues, behave alike (4.7.2, F).",
            "not contradicted" if not below else "mixed",
            f"Accuracy, a doubling of n: {trends}. Of {len(slopes)} settings {above} lie above 0, "
            f"{below} below, {both} hold it. D_1 has two elements already, so that D_n starts "
            "higher and rises less.",
        ],
        [
            "The larger n, the more of the true symmetry a network has (4.7.2).",
            "confirmed by the gap, here" if falling else "not confirmed",
            "Invariance gap over the circle, plain, C_4 and the largest n: "
            + "; ".join(
                f"{TITLES[data].split(',')[0]} {', '.join(f'{gap:.3f}' for gap in found)}"
                for data, found in gaps.items()
            )
            + ". The paper's own networks flatten their maps after the group convolutions and are "
            "therefore not invariant.",
        ],
    ]
    if numbers.bounds:
        accuracy = mean([row["accuracy"] for row in numbers.bounds])
        ceiling = numbers.bounds[0]["ceiling"]
        turned = numbers.mean("accuracy", data="generated", network=_largest(numbers, "generated"))
        (gain,) = numbers.contrast("gain", "ece", data="generated", family="dihedral")
        harmed = gain["low"] > 0
        lines += [
            [
                "Every C_n and D_n is a correct symmetry of galaxies (4.7.2).",
                "true of these labels, not of galaxies",
                "Where the sense of the arms is the label (generated galaxies) mirrors are an "
                f"incorrect symmetry: D_n reaches {accuracy:.3f} of its ceiling {ceiling:.3f}, the "
                f"largest C_n {turned:.3f}.",
            ],
            [
                "An incorrect symmetry can spoil calibration (4.7.2).",
                "confirmed here" if harmed else "not confirmed: it becomes unsure instead",
                "ECE of the largest D_n less that of the plain network on generated galaxies: "
                f"{with_interval(gain, points)} points. The sharp interval would allow "
                f"{mean([r['lower'] for r in numbers.bounds]):.3f} to "
                f"{mean([r['upper'] for r in numbers.bounds]):.3f}; measured "
                f"{mean([r['ece'] for r in numbers.bounds]):.3f}.",
            ],
        ]
    return lines


def _largest(numbers: Numbers, data: str) -> str:
    return f"cyclic:{max(numbers.orders(data, 'cyclic'))}"
