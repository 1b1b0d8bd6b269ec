"""The paper's claims about digits, each beside what was measured."""

from __future__ import annotations

from ..pages import Row, mean, verdict
from .measures import ALIKE, APART
from .numbers import Numbers
from .settings import ANGLES, NETWORKS, SMALL_DEG

STEP_DEG = 360 / ANGLES
NEAR = 0.05
"""Accuracies that differ by less are alike."""

ByDigit = dict[int, Row]
"""What was measured of one network, by digit."""


def findings(numbers: Numbers) -> str:
    """Write the claims and what was measured, as a list."""
    plain, augmented = (
        {digit: numbers.digits[network, digit] for digit in numbers.all_digits}
        for network in ("plain", "augmented")
    )
    sentences = [
        _zero(plain, numbers.ranked("deviation")),
        _one(plain),
        _two_and_three(plain),
        _flatter(numbers, plain, augmented),
        _small_angles(numbers, plain, augmented),
        _four(numbers, plain, augmented),
        _begin_alike(plain, augmented),
        _six_and_nine(numbers),
        _told_apart(numbers, augmented),
        _neighbours(numbers.maps["plain"]),
        _far_apart(numbers.maps["plain"]),
        _calibration(*(numbers.networks[network] for network in ("plain", "augmented"))),
    ]
    return "\n".join(f"* {sentence}" for sentence in sentences)


def _zero(plain: ByDigit, flattest: list[int]) -> str:
    words = "the flattest digit, and not flat" if flattest[0] == 0 else "not so"
    return (
        f"**The response to 0 is flat: {words}.** "
        f"Its mean score stays between {plain[0]['lowest']:.2f} and {plain[0]['highest']:.2f}, "
        f"with a deviation of {plain[0]['deviation']:.3f} along the orbit; the other digits have "
        f"{plain[flattest[1]]['deviation']:.3f} ({flattest[1]}) to "
        f"{plain[flattest[-1]]['deviation']:.3f} ({flattest[-1]}). "
        f"{1 - plain[0]['lowest'] / plain[0]['highest']:.0%} of the score is lost at the worst "
        "angle: handwritten zeros are ovals."
    )


def _one(plain: ByDigit) -> str:
    alike = min(plain[1]["upright"], plain[1]["half"]) > 2 * plain[1]["quarter"]
    two_fold = sorted(plain, key=lambda digit: -plain[digit]["harmonic_2"])[:4]
    shares = ", ".join(f"{digit} ({plain[digit]['harmonic_2']:.0%})" for digit in two_fold)
    others = " and ".join(str(digit) for digit in two_fold if digit != 1)
    return (
        f"**1 is two-fold, alike at 0° and 180°: {verdict(alike)}.** "
        f"{plain[1]['upright']:.2f} and "
        f"{plain[1]['half']:.2f} there, {plain[1]['quarter']:.2f} at a quarter turn; the second "
        f"harmonic holds {plain[1]['harmonic_2']:.0%} of its variance. The two-fold digits are, in "
        f"this order, {shares}: the paper does not mention {others}."
    )


def _two_and_three(plain: ByDigit) -> str:
    """Ask of 2 and 3 whether a half turn leaves more than a quarter of the upright score."""
    words = {
        digit: "not so" if plain[digit]["half"] > plain[digit]["upright"] / 4 else "confirmed"
        for digit in (2, 3)
    }
    both = (
        words[2]
        if words[2] == words[3]
        else f"{words[3]} for 3, {words[2]} for 2, which is partly two-fold"
    )
    return (
        f"**2 and 3 have no symmetry: {both}.** At 180° the mean score of 2 is "
        f"{plain[2]['half']:.2f} and of 3 {plain[3]['half']:.2f}, at a quarter turn "
        f"{plain[2]['quarter']:.2f} and {plain[3]['quarter']:.2f}; the second harmonic holds "
        f"{plain[2]['harmonic_2']:.0%} and {plain[3]['harmonic_2']:.0%} of the variance."
    )


def _flatter(numbers: Numbers, plain: ByDigit, augmented: ByDigit) -> str:
    ratio = [plain[d]["deviation"] / max(augmented[d]["deviation"], 1e-9) for d in plain]
    original, turned = (numbers.networks[network] for network in ("plain", "augmented"))
    return (
        f"**The augmented network is flatter for every digit: {verdict(min(ratio) > 1)}.** The "
        "deviation along the "
        f"orbit is {min(ratio):.0f} to {max(ratio):.0f} times smaller, the invariance gap "
        f"{turned['gap']:.3f} against {original['gap']:.3f}. Single digits are "
        f"less flat than their mean: the original is right at every angle for "
        f"{original['always_right']:.1%} of them, the augmented network for "
        f"{turned['always_right']:.1%}."
    )


def _small_angles(numbers: Numbers, plain: ByDigit, augmented: ByDigit) -> str:
    small, upright = (
        [mean(numbers.digits[network, d]["accuracy_small"] for d in plain) for network in NETWORKS],
        [numbers.networks[network]["accuracy_upright"] for network in NETWORKS],
    )
    surer = mean(plain[d]["upright"] - augmented[d]["upright"] for d in plain) > 0
    return (
        f"**At small angles the original is the surer one: {verdict(surer)}.** Upright the mean "
        f"probability of the true class is {mean(plain[d]['upright'] for d in plain):.3f} against "
        f"{mean(augmented[d]['upright'] for d in plain):.3f}, and the accuracy "
        f"{upright[0]:.3f} against {upright[1]:.3f}; within {SMALL_DEG}° the "
        f"accuracy is {small[0]:.3f} against {small[1]:.3f}."
    )


def _four(numbers: Numbers, plain: ByDigit, augmented: ByDigit) -> str:
    upside_down = numbers.curve("plain", 4, 180.0)
    better = augmented[4]["accuracy"] > plain[4]["accuracy"]
    return (
        f"**On 4 the augmented network is the more accurate: {verdict(better)} over the orbit.** "
        f"{augmented[4]['accuracy']:.3f} against {plain[4]['accuracy']:.3f}; upright "
        f"{numbers.curve('augmented', 4, 0.0)['accuracy']:.3f} against "
        f"{numbers.curve('plain', 4, 0.0)['accuracy']:.3f}. Upside down the original takes "
        f"{upside_down['mistaken']:.0%} of the 4s for {upside_down['mistaken_for']}."
    )


def _begin_alike(plain: ByDigit, augmented: ByDigit) -> str:
    """Tell of 6 and 9 whether the networks agree at small angles and part at larger ones."""
    small, large = (
        [
            [network[digit][f"accuracy_{angles}"] for digit in (6, 9)]
            for network in (plain, augmented)
        ]
        for angles in ("small", "large")
    )
    alike = max(abs(a - b) for a, b in zip(*small, strict=True)) < NEAR
    parted = all(turned - upright > NEAR for upright, turned in zip(*large, strict=True))
    return (
        "**On 6 and 9 both networks are alike at small angles, and the original falls off at "
        f"larger ones: {verdict(alike and parted)}.** Within {SMALL_DEG}° the original names "
        f"{small[0][0]:.1%} of the 6s and {small[0][1]:.1%} of the 9s rightly, the augmented "
        f"network {small[1][0]:.1%} and {small[1][1]:.1%}; beyond, {large[0][0]:.1%} and "
        f"{large[0][1]:.1%} against {large[1][0]:.1%} and {large[1][1]:.1%}."
    )


def _six_and_nine(numbers: Numbers) -> str:
    six, nine = (numbers.six_nine["plain", digit, 180.0]["as_other"] for digit in (6, 9))
    return (
        f"**6 and 9 are confused: {verdict(min(six, nine) > 0.1)} for the original.** Upside down "
        f"it calls {six:.0%} of the 6s a 9 and {nine:.0%} of the 9s a 6."
    )


def _told_apart(numbers: Numbers, augmented: ByDigit) -> str:
    six, nine = (numbers.six_nine["augmented", digit, 180.0] for digit in (6, 9))
    return (
        "**The augmented network tells them apart: "
        f"{verdict(min(six['right'], nine['right']) > 0.5)}.** Upside down "
        f"{six['right']:.1%} of the 6s and {nine['right']:.1%} of the 9s are right (taken for "
        f"each other: {six['as_other']:.1%} and {nine['as_other']:.1%}); over the orbit "
        f"{augmented[6]['accuracy']:.3f} and {augmented[9]['accuracy']:.3f} against "
        f"{augmented[4]['accuracy']:.3f} of the 4s. Its mean probability of the true class is "
        f"{augmented[6]['mean']:.2f} and {augmented[9]['mean']:.2f}: more than in the paper's two "
        "examples."
    )


def _neighbours(maps: Row) -> str:
    alike = maps["distance_map"] < maps["distance_random"]
    return (
        f"**Neighbours on the map respond alike: {verdict(alike)}.** The root mean square "
        "difference of "
        f"two responses is {maps['distance_map']:.3f} between a digit and its ten neighbours on "
        f"the map of the original, {maps['distance_random']:.3f} between random digits, and "
        f"{maps['distance_response']:.3f} is the least that any map could show. Two components "
        f"hold {maps['explained_1'] + maps['explained_2']:.0%} of the variance, so two responses "
        f"that differ may still lie together. The first is the mean (correlation "
        f"{maps['correlation_mean']:.2f}): colouring by the mean repeats it, colouring by the "
        "variance adds to it."
    )


def _far_apart(maps: Row) -> str:
    """Tell whether distant points differ, those too that differ in orientation alone."""
    text = (
        "**Distant points respond differently: "
        f"{verdict(maps['distance_far'] > maps['distance_random'])}.** The tenth of "
        f"{maps['pairs']:,} random pairs that lies farthest apart on the map differs by "
        f"{maps['distance_far']:.3f}."
    )
    if "map_turned" not in maps or "map_alike" not in maps:
        return text
    apart = verdict(maps["map_turned"] > 2 * maps["map_alike"])
    return (
        f"{text} Plots of one shape in different orientations lie apart: {apart}. "
        f"{maps['turned_pairs']:,} pairs differ by more than {APART:g}, and by less than {ALIKE:g} "
        f"once one of them is turned; on the map they lie {maps['map_turned']:.2f} of the distance "
        f"of random pairs apart, those that are alike as they are {maps['map_alike']:.2f}."
    )


def _calibration(plain: Row, augmented: Row) -> str:
    return (
        f"**Not in the paper: calibration.** The original's ECE is "
        f"{plain['ece_upright']:.3f} upright and {plain['ece_worst']:.3f} at its "
        f"worst angle; its confidence is {plain['confidence_orbit']:.2f} on average over "
        f"the orbit, its accuracy {plain['accuracy_orbit']:.2f}. The augmented network's "
        f"ECE is at most {augmented['ece_worst']:.3f}."
    )


def interpolation(numbers: Numbers) -> str:
    """Tell what resampling does to the digits, and which corners of the curves are its own."""
    quarters = (0.0, 90.0, 180.0, 270.0)
    beside = [(angle + step) % 360 for angle in quarters for step in (-STEP_DEG, STEP_DEG)]
    there = ", ".join(f"{numbers.accuracy('augmented', angle):.3f}" for angle in quarters)
    near = mean(numbers.accuracy("augmented", angle) for angle in beside)
    row = numbers.networks["augmented"]
    corner = ", and its worst angle is one of the four" if row["worst_angle"] in quarters else ""
    return (
        "Every digit, the upright one included, is resampled once, bilinearly. At quarter turns "
        "that changes nothing, and between them it blurs: turned and turned back, a digit differs "
        f"from itself by {row['action_defect']:.2f} of its norm on average over all angles (the "
        "scan's action defect). The small corners of the curves at 0°, 90°, 180° and 270° are "
        "therefore the interpolation's: the augmented network, which was trained on blurred "
        f"digits, has an accuracy of {there} there and of {near:.3f} at the angles beside "
        f"them{corner}. Everything larger is the network's."
    )
