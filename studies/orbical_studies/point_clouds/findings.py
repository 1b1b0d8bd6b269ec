"""What the point-cloud study found: sentences chosen by the numbers."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..pages import markdown, verdict
from .figures import TITLES
from .numbers import AXES, Numbers

SIDEWAYS, UPRIGHT, FORWARDS = AXES
KEPT, LOST = 0.8, 0.6
"""An accuracy above this share of the upright one is kept; below that one it is lost."""
POINT = 0.01
"""A price that is smaller is none."""


def findings(numbers: Numbers) -> str:
    """Write what the rows say, as a list; the first data set speaks unless another is named."""
    sentences = [
        _original(numbers),
        *_augmented(numbers),
        _three_planes(numbers),
        _worst_axes(numbers),
    ]
    if "invariant" in numbers.networks(numbers.data_sets[0]):
        sentences += [_flat(numbers), _calibration(numbers)]
    if "modelnet10" in numbers.data_sets:
        sentences.append(_chairs_and_monitors(numbers))
    return "\n".join(f"* {sentence}" for sentence in sentences)


def claims(numbers: Numbers) -> str:
    """Hold what the paper says of point clouds against the numbers."""
    first = numbers.data_sets[0]
    upright = numbers.mean(first, "plain", "accuracy_upright")
    again = numbers.turned(first, "plain", UPRIGHT, 180) > KEPT * upright
    paid, unpaid = (
        ", ".join(name for name in numbers.data_sets if (_price(numbers, name) > POINT) is dear)
        for dear in (True, False)
    )
    always = numbers.mean(first, "augmented", "always_ball")
    crowded = _share_small(numbers, "slices") > _share_small(numbers, "ball")
    lines = [
        [
            "the original is good near upright alone",
            verdict(_only_small(numbers))
            + ("; and along the upright axis near 180°" * again)
            + f" ({_from_upright(numbers, 'plain')}){_elsewhere(numbers)}",
        ],
        [
            "the augmented network is the more invariant one",
            f"{verdict(_flatter(numbers))}; with accuracy upright, more than a point, it pays on "
            f"{paid or 'no data set'}, not on {unpaid or 'any other'} "
            f"({_from_upright(numbers, 'augmented')})",
        ],
        [
            "a bathtub is named rightly at every rotation by the augmented network",
            f"true of {always:.0%} of the clouds of {first}; one example is no evidence",
        ],
        [
            "rotations drawn in three planes",
            "a fair picture, an unfair mean: small rotations are over-represented "
            f"({_share_small(numbers, 'slices'):.0%} below 45°, "
            f"{_share_small(numbers, 'ball'):.1%} of all rotations)"
            if crowded
            else "a fair picture and a fair mean",
        ],
    ]
    return markdown(["claim (section 3.3)", "here (accuracy: upright → all rotations)"], lines)


def _from_upright(numbers: Numbers, network: str) -> str:
    """Write a network's accuracy upright and over all rotations, for every data set."""
    return ", ".join(
        f"{name} {numbers.mean(name, network, 'accuracy_upright'):.3f} → "
        f"{numbers.mean(name, network, 'accuracy_ball'):.3f}"
        for name in numbers.data_sets
    )


def _elsewhere(numbers: Numbers) -> str:
    """Name the axes of other data sets about which the original stays good up to half a turn."""
    good = [
        f"about {axis} on {name}"
        for name in numbers.data_sets[1:]
        for axis in AXES
        if numbers.turned(name, "plain", axis, 135)
        > KEPT * numbers.mean(name, "plain", "accuracy_upright")
    ]
    return f"; it stays good at 135° {', '.join(good)}" if good else ""


def _only_small(numbers: Numbers) -> bool:
    """Whether the original keeps its accuracy at 15° and loses it over all rotations."""
    first = numbers.data_sets[0]
    upright, everywhere = (
        numbers.mean(first, "plain", name) for name in ("accuracy_upright", "accuracy_ball")
    )
    kept = numbers.turned(first, "plain", SIDEWAYS, 15)
    return kept > KEPT * upright and everywhere < LOST * upright


def _price(numbers: Numbers, data_set: str) -> float:
    """What rotated training costs of the accuracy upright."""
    plain, augmented = (
        numbers.mean(data_set, network, "accuracy_upright") for network in ("plain", "augmented")
    )
    return plain - augmented


def _flatter(numbers: Numbers) -> bool:
    """Whether the augmented network loses less over all rotations than the original does."""
    value = partial(numbers.mean, numbers.data_sets[0])
    plain, augmented = (
        value(network, "accuracy_upright") - value(network, "accuracy_ball")
        for network in ("plain", "augmented")
    )
    return augmented < plain


def _original(numbers: Numbers) -> str:
    first = numbers.data_sets[0]
    turned = partial(numbers.turned, first, "plain", SIDEWAYS)
    upright, everywhere = (
        numbers.mean(first, "plain", name) for name in ("accuracy_upright", "accuracy_ball")
    )
    return (
        f"**The original is good only for small rotations: {verdict(_only_small(numbers))}.** On "
        f"{TITLES[first].split(',')[0]} "
        f"{upright:.3f} upright, {turned(15):.3f} turned 15° about x, {turned(45):.3f} at 45°, "
        f"{everywhere:.3f} over all rotations, where naming the commonest "
        f"class would give {_commonest(numbers, first):.3f}."
    )


def _augmented(numbers: Numbers) -> list[str]:
    value = partial(numbers.mean, numbers.data_sets[0])
    price = _price(numbers, numbers.data_sets[0])
    return [
        f"**The augmented network is flatter: {verdict(_flatter(numbers))}"
        f"{', at a price' if price > 0 else ''}.** "
        f"{value('augmented', 'accuracy_ball'):.3f} over all rotations, "
        f"{value('augmented', 'worst_ball'):.3f} at the worst of them; upright it has "
        f"{value('augmented', 'accuracy_upright'):.3f}, "
        f"{abs(price):.3f} {'less' if price > 0 else 'more'} than the original with the same "
        "number of steps.",
        "**The augmented network is right at every rotation: for some clouds.** So it is "
        f"for {value('augmented', 'always_ball'):.0%} of the clouds, and right at none for "
        f"{value('augmented', 'never_ball'):.0%}; the rest depend on the rotation. One "
        "example, as the paper shows, cannot tell.",
    ]


def _three_planes(numbers: Numbers) -> str:
    planes, everywhere = (
        numbers.mean(numbers.data_sets[0], "plain", name)
        for name in ("accuracy_slices", "accuracy_ball")
    )
    return (
        f"**Three planes {'flatter' if planes > everywhere else 'do not flatter'} the original.** "
        f"They hold {_share_small(numbers, 'slices'):.0%} rotations below 45°; among all "
        "rotations, each "
        f"as likely as any other, there are {_share_small(numbers, 'ball'):.1%}. Its mean over the "
        f"paper's drawing is {planes:.3f}, and {everywhere:.3f} over all rotations."
    )


def _worst_axes(numbers: Numbers) -> str:
    first = numbers.data_sets[0]
    turned = partial(numbers.turned, first, "plain")
    tilts = explained_by(numbers, first, "plain", numbers.tilt())
    angles = explained_by(numbers, first, "plain", numbers.angle())
    level = max(turned(SIDEWAYS, 90), turned(FORWARDS, 90)) < turned(UPRIGHT, 90)
    return (
        f"**The worst axes are {'the horizontal ones' if level else 'not the horizontal'}.** "
        f"At 90° the original keeps {turned(UPRIGHT, 90):.3f} about the upright axis, "
        f"{turned(SIDEWAYS, 90):.3f} about x and {turned(FORWARDS, 90):.3f} "
        f"about z; at 180° {turned(UPRIGHT, 180):.3f}, "
        f"{turned(SIDEWAYS, 180):.3f} and {turned(FORWARDS, 180):.3f}. "
        f"Over all rotations a curve in the tilt of the upright axis explains {tilts:.0%} of the "
        f"variance of its accuracy, one in the angle of turn {angles:.0%}."
    )


def _flat(numbers: Numbers) -> str:
    first = numbers.data_sets[0]
    there = [name for name in numbers.data_sets if "invariant" in numbers.networks(name)]
    ranges = [float(np.ptp(numbers.along("ball", n, "invariant", "accuracy"))) for n in there]
    changes = [max(numbers.over_seeds(name, "invariant", "change_ball")) for name in there]
    return (
        "**The invariant network is flat**, by construction: its accuracy differs by "
        f"{max(ranges):.4f} between rotations, and no cloud's confidence by more than "
        f"{max(changes):.4f} (stored in half precision); the augmented one's by up to "
        f"{max(numbers.over_seeds(first, 'augmented', 'change_ball')):.2f}. It has "
        f"{numbers.mean(first, 'invariant', 'accuracy_ball'):.3f} everywhere, the augmented one "
        f"{numbers.mean(first, 'augmented', 'accuracy_ball'):.3f} over all."
    )


def _calibration(numbers: Numbers) -> str:
    value = partial(numbers.mean, numbers.data_sets[0])
    return (
        "**Flat is not calibrated.** The invariant network's ECE is "
        f"{value('invariant', 'ece_ball'):.3f} at every rotation (a calibrated one would show "
        f"{value('invariant', 'ece_upright_calibrated'):.3f} on so few clouds), the augmented "
        f"one's {value('augmented', 'ece_ball'):.3f} over all. The original's grows from "
        f"{value('plain', 'ece_upright'):.3f} upright to {value('plain', 'ece_ball'):.3f}: its "
        f"confidence falls only from {value('plain', 'confidence_upright'):.3f} to "
        f"{value('plain', 'confidence_ball'):.3f}."
    )


def _chairs_and_monitors(numbers: Numbers) -> str:
    value = partial(numbers.mean, "modelnet10")
    words = ", ".join(
        f"{network} {value(network, 'accuracy_upright'):.3f} → "
        f"{value(network, 'accuracy_ball'):.3f}"
        for network in numbers.networks("modelnet10")
    )
    return (
        "**ModelNet10's chairs and monitors** (upright → all rotations): "
        f"{words}. Guessing one class gives {_commonest(numbers, 'modelnet10'):.3f}."
    )


def explained_by(numbers: Numbers, data_set: str, network: str, by: NDArray) -> float:
    """The share of the accuracy's variance over all rotations that a smooth curve explains."""
    accuracy = numbers.along("ball", data_set, network, "accuracy")
    if np.ptp(accuracy) < 1e-9:
        return float("nan")
    curve: Any = np.polynomial.Polynomial.fit(by, accuracy, 6)
    return 1 - float(((accuracy - curve(by)) ** 2).mean() / accuracy.var())


def _commonest(numbers: Numbers, data_set: str) -> float:
    return max(float(row["share"]) for row in numbers.classes if row["data"] == data_set)


def _share_small(numbers: Numbers, group: str, below_deg: float = 45.0) -> float:
    matrices = numbers.groups[group].parts["space"][:, :3, :3]
    trace = np.trace(matrices, axis1=1, axis2=2)
    angle = np.rad2deg(np.arccos(np.clip((trace - 1) / 2, -1, 1)))
    return float(numbers.groups[group].weights[angle < below_deg - 1e-6].sum())
