"""The paper's sentences on vector fields, each beside what was measured and what must be."""

from __future__ import annotations

from dataclasses import dataclass
from math import isclose

from orbical.calibration import gence_floor

from ..pages import Row, markdown, mean, number, verdict
from .tables import Data, Kind, World, between, limit, over_angles, values
from .training import EQUIVARIANT, PLAIN

SCALAR: Kind = (EQUIVARIANT, "scalar")
FULL: Kind = (EQUIVARIANT, "full")
FREE: Kind = (PLAIN, "scalar")
SPIRAL: World = ("spiral", "square")
SINUSOID: World = ("sinusoid", "square")
DISC: World = ("sinusoid", "disc")
ALIKE = 0.05
"""Two numbers that differ by no more than this share are called the same."""
MAHALANOBIS = 3
"""The mean squared Mahalanobis distance of a calibrated network in space."""

Line = tuple[str, str, str, str]
"""The paper's sentence, the verdict, what was measured, the limit."""


@dataclass(frozen=True)
class Measured:
    """Means over seeds, and what networks have to reach, by field and network."""

    data: Data

    @property
    def spiral(self) -> Row:
        """The limits of the spiral on the square."""
        return limit(self.data, SPIRAL)

    @property
    def sinusoid(self) -> Row:
        """The limits of the sinusoid on the square."""
        return limit(self.data, SINUSOID)

    def at(self, column: str, world: World, kind: Kind) -> float:
        """One column, the mean over seeds."""
        return mean(values(self.data, column, world, kind))

    def shown(self, column: str, world: World, kind: Kind) -> str:
        """The same, written."""
        return number(self.at(column, world, kind))

    def angles(
        self, world: World, kind: Kind, column: str = "xy_mse"
    ) -> tuple[tuple[float, float], str]:
        """Least and largest value over the angle, and the two written."""
        ends = over_angles(self.data, column, world, kind)
        return ends, between(*ends)

    def times_less(self, world: World, kind: Kind = SCALAR) -> float:
        """How many times less an equivariant network bleeds than the perceptron."""
        return self.at("bleed", world, FREE) / self.at("bleed", world, kind)


def commuting(found: Measured) -> Line:
    """Which moves the spiral keeps; a fact of the field, not of networks."""
    turn, mirror, half_turn = (
        number(found.spiral[name]) for name in ("turn", "mirror", "half_turn")
    )
    return (
        "The spiral is incorrect and extrinsic, because rotations of space are not "
        "commutative (6.1.1).",
        "corrected",
        f"Rotations in the plane commute with it: defect {turn}. What "
        f"breaks it are mirrors, {mirror}, and half turns about axes in the "
        f"plane, which mirror it, {half_turn}. Tilts lead off the data.",
        "0 for a network that is equivariant under rotations in the plane alone",
    )


def translations(found: Measured) -> Line:
    """What a shift does to the sinusoid; a fact of the field, not of networks."""
    return (
        "E(3) is correct for the sinusoid: its elements, translations among them, leave norms "
        "as they are (6.1.1).",
        "corrected",
        f"Not translations: a shift by 1 changes the sinusoid by {number(found.sinusoid['shift'])}"
        " in the mean square. The network is equivariant under O(3), not E(3).",
        "an answer to one point that translations leave as it is, is constant",
    )


def missed_means(found: Measured) -> Line:
    """Hold the error on the spiral against the least that is possible."""
    least, error = found.spiral["error"] / 2, found.at("xy_mse", SPIRAL, SCALAR)
    exactly = isclose(error, least, rel_tol=ALIKE)
    missed = error > 2 * found.at("xy_mse", SPIRAL, FREE)
    return (
        "On the spiral the means of the E(3) network miss the data (6.1.1) and are close to 0 "
        "(Fig. 6).",
        verdict(missed) + (", exactly" if missed and exactly else ""),
        f"MSE {number(error)} on the spiral, "
        f"{found.shown('xy_mse', SPIRAL, FREE)} for the perceptron.",
        f"least MSE {number(least)}, of the mean 0",
    )


def large_variances(found: Measured) -> Line:
    """Hold the variance against the squared error that it stands for."""
    ratio = found.at("trace", SPIRAL, SCALAR) / found.at("error", SPIRAL, SCALAR)
    same = isclose(ratio, 1, rel_tol=ALIKE)
    return (
        "Its variances are so large because β-NLL has a local minimum at variances far above "
        "the squared error (6.1.1).",
        "corrected" if same else "not settled here",
        f"The variance is {'' if same else 'not '}the squared error: their ratio is {ratio:.3f}. "
        "At β = 1 the "
        "derivative by s is (1 − e²/s)/2 on average, which vanishes at s = E[e²] only.",
        "ratio 1 at the only stationary point",
    )


def near_the_perceptron(found: Measured) -> Line:
    """Compare the β-NLL of both networks over the angle."""
    (low, _), tied = found.angles(SPIRAL, SCALAR, "xy_beta_nll")
    (_, high), free = found.angles(SPIRAL, FREE, "xy_beta_nll")
    return (
        "At every angle its β-NLL stays near that of the perceptron (6.1.1, Fig. 7).",
        "not confirmed" if low > high + 1 else "confirmed",
        f"β-NLL {tied} over the angle against {free} for the perceptron. As a score it is not "
        "proper: without error it is least at s = 1/e, not at 0.",
        f"{number(found.spiral['scalar_xy_beta_nll'])} at the equivariant optimum, 0 for a perfect "
        "network",
    )


def lower_on_the_sinusoid(found: Measured) -> Line:
    """Hold error, β-NLL and bleed of a correct symmetry against the perceptron's."""
    pairs = {
        name: (found.at(column, SINUSOID, SCALAR), found.at(column, SINUSOID, FREE))
        for name, column in (
            *(("MSE", "xy_mse"), ("bleed", "bleed")),
            *(("β-NLL", "xy_beta_nll"), ("NLL", "nll")),
        )
    }
    lower = {name: tied < free for name, (tied, free) in pairs.items()}
    printed = ("MSE", "bleed", "β-NLL")
    judged = (
        (" and ".join(name for name in printed if lower[name] is holds), word)
        for holds, word in ((True, "confirmed"), (False, "corrected"))
    )
    said = {name: f"{number(tied)} against {number(free)}" for name, (tied, free) in pairs.items()}
    gain = pairs["MSE"][1] / pairs["MSE"][0]
    text = (
        f"MSE {said['MSE']} ({gain:.0f} times less), bleed {said['bleed']} "
        f"({found.times_less(SINUSOID):.0f} times less). "
    )
    if lower["NLL"] and not lower["β-NLL"]:
        swapped = " against ".join(number(value) for value in reversed(pairs["β-NLL"]))
        text += (
            f"β-NLL, not proper, prefers the perceptron, {swapped}, for its larger variance; NLL, "
            f"which is proper, does not: {said['NLL']}."
        )
    else:
        text += f"β-NLL, not proper, {said['β-NLL']}; NLL, which is proper, {said['NLL']}."
    return (
        "On the sinusoid equivariance lowers MSE, β-NLL and bleed (6.1.1).",
        "; ".join(f"{names}: {word}" for names, word in judged if names),
        text,
        "0; the paper's own network, `c x`, cannot go below "
        f"{number(found.sinusoid['linear_error'] / 2)}",
    )


def flat_over_angles(found: Measured) -> Line:
    """Ask whether the error depends on the angle, where the symmetry is right and where not."""
    right, on_sinusoid = found.angles(SINUSOID, SCALAR)
    wrong, on_spiral = found.angles(SPIRAL, SCALAR)
    flat, also = (isclose(*ends, rel_tol=ALIKE) for ends in (right, wrong))
    _, square = found.angles(SINUSOID, FREE)
    _, disc = found.angles(DISC, FREE)
    return (
        "On the sinusoid MSE and NLL do not depend on the angle, a benefit of the correct "
        "symmetry (Fig. 7).",
        verdict(flat) + (", but not special" if flat and also else ""),
        f"MSE over the angle: sinusoid {on_sinusoid}, and {'as flat ' if also else ''}on the "
        f"spiral, {on_spiral}, because both fields turn with the plane. Perceptron on "
        f"the sinusoid: square {square}, disc {disc}: on the square its corners leave the "
        "training data.",
        "constant for every equivariant network, right or wrong",
    )


def into_the_variance(found: Measured) -> Line:
    """Hold the bleed on the spiral against what likelihood leads to."""
    one, spiral = found.at("bleed", SPIRAL, SCALAR), found.spiral
    predicted = isclose(one, spiral["scalar_bleed"], rel_tol=ALIKE)
    added = one > 2 * found.at("bleed", SPIRAL, FREE)
    return (
        "What the network cannot fit ends up as aleatoric variance (6.1.1); an incorrect "
        "symmetry adds to bleed (9).",
        verdict(added) + (", and predicted" if added and predicted else ""),
        f"Bleed {number(one)} with one variance, "
        f"{found.shown('bleed', SPIRAL, FULL)} with a covariance, "
        f"{found.shown('bleed', SPIRAL, FREE)} for the perceptron.",
        f"NLL-optimal {number(spiral['scalar_bleed'])} and {number(spiral['full_bleed'])}; "
        f"within the bound of the covariance's head {number(spiral['full_head_bleed'])}",
    )


def bounded_from_below(found: Measured) -> Line:
    """Say what Theorem 3 leaves; a fact of the fields, not of networks."""
    return (
        "Theorem 3 bounds the bleed from below (6).",
        "true and empty",
        "The truth has no variance, and an equivariant network may answer 0.",
        f"structural bound {number(found.spiral['bleed_floor'])} on both fields",
    )


def costs_of_a_wrong_symmetry(found: Measured) -> Line:
    """Compare the calibration of both networks on the spiral."""
    tied, free = (found.at("gence_fiber", SPIRAL, kind) for kind in (SCALAR, FREE))
    worse = tied > (1 + ALIKE) * free
    total = found.at("mahalanobis", SPIRAL, SCALAR)
    right = isclose(total, MAHALANOBIS, rel_tol=ALIKE)
    large = found.at("mahalanobis", SPIRAL, FREE) < MAHALANOBIS
    at_best = (
        number(found.spiral[f"scalar_{name}"]) for name in ("gence", "gence_fiber", "mahalanobis")
    )
    return (
        "Incorrect and extrinsic equivariance cost accuracy and calibration (9).",
        "confirmed" if worse else "corrected",
        f"GENCE {found.shown('gence', SPIRAL, SCALAR)} on the spiral against "
        f"{found.shown('gence', SPIRAL, FREE)} for the perceptron; in fibre means "
        f"{number(tied)} against {number(free)}: {'worse' if worse else 'no worse'}. "
        f"In total the equivariant variance is {'right' if right else 'not right'}, mean squared "
        f"Mahalanobis distance {number(total)}, the perceptron's too "
        f"{'large' if large else 'small'}, {found.shown('mahalanobis', SPIRAL, FREE)}. "
        "What is wrong in both is the shape: one "
        "variance for all coordinates has a third of it out of the plane, where no error is.",
        f"calibrated: GENCE {number(gence_floor)}, fibre means 0, Mahalanobis {MAHALANOBIS}; at "
        f"the equivariant optimum {', '.join(at_best)}",
    )


def calibration_of_a_right_symmetry(found: Measured) -> Line:
    """Ask whether a correct symmetry is nearer to calibrated in every measure."""
    nearer = (
        abs(found.at(name, SINUSOID, SCALAR) - best) < abs(found.at(name, SINUSOID, FREE) - best)
        for name, best in (("gence", gence_floor), ("mahalanobis", MAHALANOBIS))
    )
    gence, on_disc, distance = (
        f"{found.shown(name, world, SCALAR)} against {found.shown(name, world, FREE)}"
        for name, world in (("gence", SINUSOID), ("gence", DISC), ("mahalanobis", SINUSOID))
    )
    return (
        "A correct symmetry need not calibrate better than a network of the same size without "
        "it (9).",
        verdict(not all(nearer)),
        f"GENCE on the sinusoid {gence} (on the disc {on_disc}), mean squared Mahalanobis "
        f"distance {distance}.",
        f"calibrated: {number(gence_floor)} and {MAHALANOBIS}",
    )


def bleed_of_a_right_symmetry(found: Measured) -> Line:
    """Compare the bleed of a correct symmetry with the perceptron's on square and disc."""
    less, on_disc = (found.times_less(world) for world in (SINUSOID, DISC))
    covariance = (f"{found.times_less(world, FULL):.0f}" for world in (SINUSOID, DISC))
    return (
        "A correct symmetry does not lower bleed below that of a free network (6.1), but on "
        "the sinusoid it could keep bleed away (9).",
        "the second holds here" if min(less, on_disc) > 1 else "the first holds here",
        f"Bleed {less:.0f} times less on the square, {on_disc:.0f} times less on the disc, with "
        f"one variance; with a covariance {' and '.join(covariance)} times less.",
        f"0; {number(found.sinusoid['full_head_bleed'])} within the bound of the covariance's head",
    )


SENTENCES = (
    commuting,
    translations,
    missed_means,
    large_variances,
    near_the_perceptron,
    lower_on_the_sinusoid,
    flat_over_angles,
    into_the_variance,
    bounded_from_below,
    costs_of_a_wrong_symmetry,
    calibration_of_a_right_symmetry,
    bleed_of_a_right_symmetry,
)


def sentences(data: Data) -> str:
    """Write the table of the paper's sentences, with numbers of the square from the rows."""
    lines = [judge(Measured(data)) for judge in SENTENCES]
    return markdown(["the paper", "verdict", "measured (square)", "limit"], lines)
