"""The paper's sentences on vector fields, each beside what was measured and what must be."""

from __future__ import annotations

from orbical.calibration import gence_floor

from ..pages import markdown, mean, number
from .tables import Data, Kind, World, between, limit, over_angles, values
from .training import EQUIVARIANT, PLAIN

SCALAR: Kind = (EQUIVARIANT, "scalar")
FULL: Kind = (EQUIVARIANT, "full")
FREE: Kind = (PLAIN, "scalar")
SPIRAL: World = ("spiral", "square")
SINUSOID: World = ("sinusoid", "square")
DISC: World = ("sinusoid", "disc")


def sentences(data: Data) -> str:
    """Write the table of the paper's sentences, with numbers of the square from the rows."""

    def at(column: str, world: World, kind: Kind) -> float:
        return mean(values(data, column, world, kind))

    def shown(column: str, world: World, kind: Kind) -> str:
        return number(at(column, world, kind))

    def flatness(world: World, kind: Kind, column: str = "xy_mse") -> str:
        return between(*over_angles(data, column, world, kind))

    spiral, sinusoid = limit(data, SPIRAL), limit(data, SINUSOID)
    ratio = at("trace", SPIRAL, SCALAR) / at("error", SPIRAL, SCALAR)
    gain = at("xy_mse", SINUSOID, FREE) / at("xy_mse", SINUSOID, SCALAR)
    less = _less(data, SINUSOID)
    lines = [
        [
            "The spiral is incorrect and extrinsic, because rotations of space are not "
            "commutative (6.1.1).",
            "corrected",
            f"Rotations in the plane commute with it: defect {number(spiral['turn'])}. What "
            f"breaks it are mirrors, {number(spiral['mirror'])}, and half turns about axes in the "
            f"plane, which mirror it, {number(spiral['half_turn'])}. Tilts lead off the data.",
            "0 for a network that is equivariant under rotations in the plane alone",
        ],
        [
            "E(3) is correct for the sinusoid: its elements, translations among them, leave norms "
            "as they are (6.1.1).",
            "corrected",
            f"Not translations: a shift by 1 changes the sinusoid by {number(sinusoid['shift'])} in"
            " the mean square. The network is equivariant under O(3), not E(3).",
            "an answer to one point that translations leave as it is, is constant",
        ],
        [
            "On the spiral the means of the E(3) network miss the data (6.1.1) and are close to 0 "
            "(Fig. 6).",
            "confirmed, exactly",
            f"MSE {shown('xy_mse', SPIRAL, SCALAR)} on the spiral, "
            f"{shown('xy_mse', SPIRAL, FREE)} for the perceptron.",
            f"least MSE {number(spiral['error'] / 2)}, of the mean 0",
        ],
        [
            "Its variances are so large because β-NLL has a local minimum at variances far above "
            "the squared error (6.1.1).",
            "corrected",
            f"The variance is the squared error: their ratio is {ratio:.3f}. At β = 1 the "
            "derivative by s is (1 − e²/s)/2 on average, which vanishes at s = E[e²] only.",
            "ratio 1 at the only stationary point",
        ],
        [
            "At every angle its β-NLL stays near that of the perceptron (6.1.1, Fig. 7).",
            "not confirmed",
            f"β-NLL {flatness(SPIRAL, SCALAR, 'xy_beta_nll')} over the angle against "
            f"{flatness(SPIRAL, FREE, 'xy_beta_nll')} for the perceptron. As a score it is not "
            "proper: without error it is least at s = 1/e, not at 0.",
            f"{number(spiral['scalar_xy_beta_nll'])} at the equivariant optimum, 0 for a perfect "
            "network",
        ],
        [
            "On the sinusoid equivariance lowers MSE, β-NLL and bleed (6.1.1).",
            "MSE and bleed: confirmed; β-NLL: corrected",
            f"MSE {shown('xy_mse', SINUSOID, SCALAR)} against {shown('xy_mse', SINUSOID, FREE)} "
            f"({gain:.0f} times less), bleed {shown('bleed', SINUSOID, SCALAR)} against "
            f"{shown('bleed', SINUSOID, FREE)} ({less:.0f} times less). β-NLL, not proper, "
            f"prefers the perceptron, {shown('xy_beta_nll', SINUSOID, FREE)} against "
            f"{shown('xy_beta_nll', SINUSOID, SCALAR)}, for its larger variance; NLL, which is "
            f"proper, does not: {shown('nll', SINUSOID, SCALAR)} against "
            f"{shown('nll', SINUSOID, FREE)}.",
            f"0; the paper's own network, `c x`, cannot go below {number(_half(sinusoid))}",
        ],
        [
            "On the sinusoid MSE and NLL do not depend on the angle, a benefit of the correct "
            "symmetry (Fig. 7).",
            "confirmed, but not special",
            f"MSE over the angle: sinusoid {flatness(SINUSOID, SCALAR)}, and as flat on the spiral,"
            f" {flatness(SPIRAL, SCALAR)}, because both fields turn with the plane. Perceptron on "
            f"the sinusoid: square {flatness(SINUSOID, FREE)}, disc "
            f"{flatness(DISC, FREE)}: on the square its corners leave the "
            "training data.",
            "constant for every equivariant network, right or wrong",
        ],
        [
            "What the network cannot fit ends up as aleatoric variance (6.1.1); an incorrect "
            "symmetry adds to bleed (9).",
            "confirmed, and predicted",
            f"Bleed {shown('bleed', SPIRAL, SCALAR)} with one variance, "
            f"{shown('bleed', SPIRAL, FULL)} with a covariance, {shown('bleed', SPIRAL, FREE)} for "
            "the perceptron.",
            f"NLL-optimal {number(spiral['scalar_bleed'])} and {number(spiral['full_bleed'])}; "
            f"within the bound of the covariance's head {number(spiral['full_head_bleed'])}",
        ],
        [
            "Theorem 3 bounds the bleed from below (6).",
            "true and empty",
            "The truth has no variance, and an equivariant network may answer 0.",
            f"structural bound {number(spiral['bleed_floor'])} on both fields",
        ],
        [
            "Incorrect and extrinsic equivariance cost accuracy and calibration (9).",
            "corrected",
            f"GENCE {shown('gence', SPIRAL, SCALAR)} on the spiral against "
            f"{shown('gence', SPIRAL, FREE)} for the perceptron; in fibre means "
            f"{shown('gence_fibre', SPIRAL, SCALAR)} against {shown('gence_fibre', SPIRAL, FREE)}: "
            "no worse. In total the equivariant variance is right, mean squared Mahalanobis "
            f"distance {shown('mahalanobis', SPIRAL, SCALAR)}, the perceptron's too large, "
            f"{shown('mahalanobis', SPIRAL, FREE)}. What is wrong in both is the shape: one "
            "variance for all coordinates has a third of it out of the plane, where no error is.",
            f"calibrated: GENCE {number(gence_floor)}, fibre means 0, Mahalanobis 3; at the "
            f"equivariant optimum {number(spiral['scalar_gence'])}, "
            f"{number(spiral['scalar_gence_fibre'])}, {number(spiral['scalar_mahalanobis'])}",
        ],
        [
            "A correct symmetry need not calibrate better than a network of the same size without "
            "it (9).",
            "confirmed",
            f"GENCE on the sinusoid {shown('gence', SINUSOID, SCALAR)} against "
            f"{shown('gence', SINUSOID, FREE)} (on the disc {shown('gence', DISC, SCALAR)} against "
            f"{shown('gence', DISC, FREE)}), mean squared Mahalanobis distance "
            f"{shown('mahalanobis', SINUSOID, SCALAR)} against "
            f"{shown('mahalanobis', SINUSOID, FREE)}.",
            f"calibrated: {number(gence_floor)} and 3",
        ],
        [
            "A correct symmetry does not lower bleed below that of a free network (6.1), but on "
            "the sinusoid it could keep bleed away (9).",
            "the second holds here" if min(less, _less(data, DISC)) > 1 else "the first holds here",
            f"Bleed {less:.0f} times less on the square, "
            f"{_less(data, DISC):.0f} times less on the disc, with one variance; with a covariance "
            f"{_less(data, SINUSOID, FULL):.0f} and {_less(data, DISC, FULL):.0f} times less.",
            f"0; {number(sinusoid['full_head_bleed'])} within the bound of the covariance's head",
        ],
    ]
    return markdown(["the paper", "verdict", "measured (square)", "limit"], lines)


def _half(bound: dict) -> float:
    """Give the least MSE over the plane's coordinates of the maps `c x`."""
    return float(bound["linear_error"]) / 2


def _less(data: Data, world: World, kind: Kind = SCALAR) -> float:
    """Say how many times less an equivariant network bleeds than the perceptron."""
    return mean(values(data, "bleed", world, FREE)) / mean(values(data, "bleed", world, kind))
