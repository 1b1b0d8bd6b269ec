"""The paper's claims about digits beside what was measured, from the CSV files alone."""

from __future__ import annotations

from pathlib import Path

from ..pages import Row, markdown, mean, read_csv, verdict
from .settings import ANGLES, NETWORKS, SMALL_DEG


class Numbers:
    """The CSV files of the page."""

    def __init__(self, folder: Path) -> None:
        self.networks = {row["network"]: row for row in read_csv(folder / "networks.csv")}
        self.digits = {
            (row["network"], row["digit"]): row for row in read_csv(folder / "digits.csv")
        }
        self.curves = read_csv(folder / "curves.csv")
        self.six_nine = {
            (row["network"], row["digit"], row["angle"]): row
            for row in read_csv(folder / "six-nine.csv")
        }
        self.maps = {row["network"]: row for row in read_csv(folder / "maps.csv")}

    @property
    def all_digits(self) -> list[int]:
        """The digits, in order."""
        return sorted({digit for _, digit in self.digits})

    def ranked(self, quantity: str, network: str = "plain") -> list[int]:
        """The digits from the smallest to the largest value."""
        return sorted(self.all_digits, key=lambda digit: self.digits[network, digit][quantity])

    def mistake(self, network: str, digit: int, angle: float) -> Row:
        """What a digit is mostly taken for at an angle."""
        wanted = (network, digit, angle)
        return next(
            row for row in self.curves if (row["network"], row["digit"], row["angle"]) == wanted
        )


def networks_table(numbers: Numbers) -> str:
    """Accuracy, confidence, calibration and gap of both networks."""
    columns = {
        "accuracy upright": "accuracy_upright",
        "over the orbit": "accuracy_orbit",
        "at the worst angle": "accuracy_worst",
        "worst angle": "worst_angle",
        "digits right at every angle": "always_right",
        "confidence over the orbit": "confidence_orbit",
        "ECE upright": "ece_upright",
        "ECE over the orbit": "ece_orbit",
        "invariance gap": "gap",
    }
    lines = [
        [
            title,
            *(
                f"{row[key]:g}°" if key == "worst_angle" else f"{row[key]:.3f}"
                for row in numbers.networks.values()
            ),
        ]
        for title, key in columns.items()
    ]
    samples = next(iter(numbers.networks.values()))["samples"]
    return markdown([f"{samples:,} digits, {ANGLES} rotations", *numbers.networks], lines)


def digits_table(numbers: Numbers) -> str:
    """How the plain network's mean curve of each digit varies, and its samples for both."""
    lines = []
    for digit in numbers.all_digits:
        plain, augmented = (numbers.digits[network, digit] for network in NETWORKS)
        lines.append(
            [
                str(digit),
                *(f"{plain[key]:.2f}" for key in ("upright", "quarter", "half", "lowest")),
                f"{plain['deviation']:.3f}",
                f"{plain['half_turn_difference']:.3f}",
                f"{plain['harmonic_1']:.0%}, {plain['harmonic_2']:.0%}",
                f"{plain['accuracy']:.3f}",
                f"{augmented['deviation']:.3f}",
                f"{augmented['accuracy']:.3f}",
                f"{augmented['always_right']:.0%}",
            ]
        )
    header = [
        *("digit", "at 0°", "at ±90°", "at 180°", "lowest", "deviation", "θ against θ + 180°"),
        *("1st, 2nd harmonic", "accuracy", "augmented: deviation", "accuracy"),
        "right at every angle",
    ]
    return markdown(header, lines)


def six_nine_table(numbers: Numbers) -> str:
    """6 and 9 at a few angles: right, or taken for each other."""
    lines = []
    for network in NETWORKS:
        for digit, other in ((6, 9), (9, 6)):
            cells = []
            for angle in (0.0, 30.0, 60.0, 90.0, 135.0, 180.0, 225.0, 270.0):
                row = numbers.six_nine[network, digit, angle]
                cells.append(f"{row['right']:.0%} / {row['as_other']:.0%}")
            lines.append([network, f"{digit} (right / as {other})", *cells])
    header = ["network", "digit", *(f"{a}°" for a in (0, 30, 60, 90, 135, 180, 225, 270))]
    return markdown(header, lines)


def maps_table(numbers: Numbers) -> str:
    """Whether neighbours on the map respond alike."""
    lines = [
        [
            network,
            f"{row['explained_1']:.0%}, {row['explained_2']:.0%}",
            f"{row['correlation_mean']:.3f}",
            f"{row['distance_map']:.3f}",
            f"{row['distance_response']:.3f}",
            f"{row['distance_random']:.3f}",
        ]
        for network, row in numbers.maps.items()
    ]
    header = [
        *("network", "variance of the two components", "first component against the mean"),
        *("distance to neighbours on the map", "to true neighbours", "to random digits"),
    ]
    return markdown(header, lines)


def findings(numbers: Numbers) -> str:
    """The paper's claims, each with what was measured."""
    plain = {digit: numbers.digits["plain", digit] for digit in numbers.all_digits}
    augmented = {digit: numbers.digits["augmented", digit] for digit in numbers.all_digits}
    flattest = numbers.ranked("deviation")
    two_fold = sorted(numbers.all_digits, key=lambda d: -plain[d]["harmonic_2"])
    ratio = [plain[d]["deviation"] / max(augmented[d]["deviation"], 1e-9) for d in plain]
    six, nine = (numbers.six_nine["plain", digit, 180.0] for digit in (6, 9))
    six_a, nine_a = (numbers.six_nine["augmented", digit, 180.0] for digit in (6, 9))
    small = {
        network: mean(numbers.digits[network, d]["accuracy_small"] for d in plain)
        for network in NETWORKS
    }
    upright = {network: numbers.networks[network]["accuracy_upright"] for network in NETWORKS}
    gaps = {network: numbers.networks[network] for network in NETWORKS}
    at_half = numbers.mistake("plain", 4, 180.0)
    maps = numbers.maps["plain"]
    sentences = [
        f"**The response to 0 is flat: {_flat_words(flattest)}.** "
        f"Its mean score stays between {plain[0]['lowest']:.2f} and {plain[0]['highest']:.2f}, "
        f"with a deviation of {plain[0]['deviation']:.3f} along the orbit; the other digits have "
        f"{plain[flattest[1]]['deviation']:.3f} ({flattest[1]}) to "
        f"{plain[flattest[-1]]['deviation']:.3f} ({flattest[-1]}). "
        f"{1 - plain[0]['lowest'] / plain[0]['highest']:.0%} of the score is lost at the worst "
        "angle: handwritten zeros are ovals.",
        "**1 is two-fold, alike at 0° and 180°: "
        f"{verdict(min(plain[1]['upright'], plain[1]['half']) > 2 * plain[1]['quarter'])}.** "
        f"{plain[1]['upright']:.2f} and "
        f"{plain[1]['half']:.2f} there, {plain[1]['quarter']:.2f} at a quarter turn; the second "
        f"harmonic holds {plain[1]['harmonic_2']:.0%} of its variance. The two-fold digits are, in "
        "this order, "
        + ", ".join(f"{d} ({plain[d]['harmonic_2']:.0%})" for d in two_fold[:4])
        + ": the paper does not mention "
        + " and ".join(str(d) for d in two_fold[:4] if d != 1)
        + ".",
        f"**2 and 3 have no symmetry: {_symmetry_words(plain)}.** At 180° the mean score of 2 is "
        f"{plain[2]['half']:.2f} and of 3 {plain[3]['half']:.2f}, at a quarter turn "
        f"{plain[2]['quarter']:.2f} and {plain[3]['quarter']:.2f}; the second harmonic holds "
        f"{plain[2]['harmonic_2']:.0%} and {plain[3]['harmonic_2']:.0%} of the variance.",
        f"**The augmented network is flatter for every digit: {verdict(min(ratio) > 1)}.** The "
        "deviation along the "
        f"orbit is {min(ratio):.0f} to {max(ratio):.0f} times smaller, the invariance gap "
        f"{gaps['augmented']['gap']:.3f} against {gaps['plain']['gap']:.3f}. Single digits are "
        f"less flat than their mean: the original is right at every angle for "
        f"{gaps['plain']['always_right']:.1%} of them, the augmented network for "
        f"{gaps['augmented']['always_right']:.1%}.",
        "**At small angles the original is the surer one: "
        f"{verdict(mean(plain[d]['upright'] - augmented[d]['upright'] for d in plain) > 0)}.** "
        "Upright the mean "
        f"probability of the true class is {mean(plain[d]['upright'] for d in plain):.3f} against "
        f"{mean(augmented[d]['upright'] for d in plain):.3f}, and the accuracy "
        f"{upright['plain']:.3f} against {upright['augmented']:.3f}; within {SMALL_DEG}° the "
        f"accuracy is {small['plain']:.3f} against {small['augmented']:.3f}.",
        f"**4:** over the orbit {augmented[4]['accuracy']:.3f} with augmentation, "
        f"{plain[4]['accuracy']:.3f} without; upside down the original takes "
        f"{at_half['mistaken']:.0%} of the 4s for {at_half['mistaken_for']}.",
        "**6 and 9 are confused: "
        f"{verdict(min(six['as_other'], nine['as_other']) > 0.1)} for the original.** Upside down "
        "it calls "
        f"{six['as_other']:.0%} of the 6s a 9 and {nine['as_other']:.0%} of the 9s a 6.",
        "**The augmented network tells them apart: "
        f"{verdict(min(six_a['right'], nine_a['right']) > 0.5)}.** Upside down "
        f"{six_a['right']:.1%} of the 6s and {nine_a['right']:.1%} of the 9s are right (taken for "
        f"each other: {six_a['as_other']:.1%} and {nine_a['as_other']:.1%}); over the orbit "
        f"{augmented[6]['accuracy']:.3f} and {augmented[9]['accuracy']:.3f} against "
        f"{augmented[4]['accuracy']:.3f} of the 4s. Its mean probability of the true class is "
        f"{augmented[6]['mean']:.2f} and {augmented[9]['mean']:.2f}: more than in the paper's two "
        "examples.",
        "**Neighbours on the map respond alike: "
        f"{verdict(maps['distance_map'] < maps['distance_random'])}.** The root mean square "
        "difference of "
        f"two responses is {maps['distance_map']:.3f} between a digit and its ten neighbours on "
        f"the map of the original, {maps['distance_random']:.3f} between random digits, and "
        f"{maps['distance_response']:.3f} is the least that any map could show. Two components "
        f"hold {maps['explained_1'] + maps['explained_2']:.0%} of the variance, so two responses "
        f"that differ may still lie together. The first is the mean (correlation "
        f"{maps['correlation_mean']:.2f}): colouring by the mean repeats it, colouring by the "
        "variance adds to it.",
        f"**Not in the paper: calibration.** The original's ECE is "
        f"{gaps['plain']['ece_upright']:.3f} upright and {gaps['plain']['ece_worst']:.3f} at its "
        f"worst angle; its confidence is {gaps['plain']['confidence_orbit']:.2f} on average over "
        f"the orbit, its accuracy {gaps['plain']['accuracy_orbit']:.2f}. The augmented network's "
        f"ECE is at most "
        f"{gaps['augmented']['ece_worst']:.3f}.",
    ]
    return "\n".join(f"* {sentence}" for sentence in sentences)


def _flat_words(flattest: list[int]) -> str:
    return "the flattest digit, and not flat" if flattest[0] == 0 else "not so"


def _symmetry_words(plain: dict[int, Row]) -> str:
    """Say for 2 and 3 whether a half turn leaves more than a quarter of the upright score."""
    words = {
        digit: "not so" if plain[digit]["half"] > plain[digit]["upright"] / 4 else "confirmed"
        for digit in (2, 3)
    }
    if words[2] == words[3]:
        return words[2]
    return f"{words[3]} for 3, {words[2]} for 2, which is partly two-fold"


TABLES = {
    "networks": networks_table,
    "findings": findings,
    "digits": digits_table,
    "six-nine": six_nine_table,
    "maps": maps_table,
}
