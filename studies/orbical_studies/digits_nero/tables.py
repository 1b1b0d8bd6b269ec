"""The tables of the digits' NERO plots, from the CSV files alone."""

from __future__ import annotations

from ..pages import markdown
from .numbers import Numbers
from .settings import ANGLES, NETWORKS


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
            f"{row['distance_far']:.3f}",
        ]
        for network, row in numbers.maps.items()
    ]
    header = [
        *("network", "variance of the two components", "first component against the mean"),
        *("distance to neighbours on the map", "to true neighbours", "to random digits"),
        "of the farthest tenth on the map",
    ]
    return markdown(header, lines)
