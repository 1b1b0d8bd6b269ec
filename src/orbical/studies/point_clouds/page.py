"""The point-cloud study's page: its tables and findings, from its CSV files alone."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..pages import Row, markdown, spread, verdict, write_page
from .figures import TITLES, angle_figure, individual_figure, orbit_figure, tilt_figure
from .numbers import AXES, Numbers

TILT_EDGES = (0, 15, 30, 45, 60, 90, 120, 150, 180)


def settings_table(numbers: Numbers) -> str:
    """What was trained and asked."""
    lines = []
    for data_set in numbers.data_sets:
        row = next(row for row in numbers.summary if row["data"] == data_set)
        classes = {entry["class"] for entry in numbers.classes if entry["data"] == data_set}
        lines.append(
            [
                data_set,
                str(len(classes)),
                str(row["train"]),
                str(row["test"]),
                str(row["steps"]),
                str(len(numbers.over_seeds(data_set, row["network"], "seed"))),
            ]
        )
    header = ["data", "classes", "training clouds", "test clouds", "steps of 64 clouds", "seeds"]
    groups = ", ".join(
        f"`{group.spec}` ({len(group):,} rotations)" for group in numbers.groups.values()
    )
    return markdown(header, lines) + f"\n\nRotations: {groups}."


def accuracy_table(numbers: Numbers) -> str:
    """Accuracy upright, over the three planes, over all rotations; and at the worst element."""
    return _table_over_seeds(
        numbers,
        {
            "upright": "accuracy_upright",
            "three planes": "accuracy_slices",
            "all rotations": "accuracy_ball",
            "worst rotation": "worst_ball",
            "clouds right at all": "always_ball",
            "clouds right at none": "never_ball",
        },
    )


def calibration_table(numbers: Numbers) -> str:
    """Confidence and calibration error, upright and over all rotations."""
    return _table_over_seeds(
        numbers,
        {
            "confidence upright": "confidence_upright",
            "confidence, all rotations": "confidence_ball",
            "ECE upright": "ece_upright",
            "the same if calibrated": "ece_upright_calibrated",
            "ECE, all rotations": "ece_ball",
        },
    )


def _table_over_seeds(numbers: Numbers, columns: dict[str, str]) -> str:
    """Mean and deviation over seeds of some quantities, given by the titles of their columns."""
    lines = [
        [
            data_set,
            network,
            *(
                spread(numbers.over_seeds(data_set, network, quantity))
                for quantity in columns.values()
            ),
        ]
        for data_set in numbers.data_sets
        for network in numbers.networks(data_set)
    ]
    return markdown(["data", "network", *columns], lines)


def axes_table(numbers: Numbers) -> str:
    """Accuracy by axis and angle of turn."""
    shown = (15.0, 30.0, 45.0, 90.0, 135.0, 180.0)
    lines = []
    for data_set in numbers.data_sets:
        for network in numbers.networks(data_set):
            for axis in AXES:
                by_angle = numbers.about_axis(data_set, network, "accuracy", axis)
                near = [_nearest(by_angle, angle) for angle in shown]
                lines.append([data_set, network, axis, *(f"{value:.3f}" for value in near)])
    return markdown(["data", "network", "axis", *(f"{angle:g}°" for angle in shown)], lines)


def tilt_table(numbers: Numbers) -> str:
    """Accuracy by how far a rotation tilts what stood upright, over all rotations."""
    tilt = numbers.tilt()
    spans = list(pairwise(TILT_EDGES))
    lines = []
    for data_set in numbers.data_sets:
        for network in numbers.networks(data_set):
            accuracy = numbers.along("ball", data_set, network, "accuracy")
            cells = [accuracy[(tilt >= low) & (tilt < high + 1e-9)] for low, high in spans]
            words = [f"{cell.mean():.3f}" if len(cell) else "" for cell in cells]
            lines.append([data_set, network, *words])
    counts = [str(int(((tilt >= low) & (tilt < high + 1e-9)).sum())) for low, high in spans]
    lines.append(["", "rotations", *counts])
    return markdown(["data", "network", *(f"{low}° to {high}°" for low, high in spans)], lines)


def classes_table(numbers: Numbers) -> str:
    """Accuracy of each class, upright and over all rotations, and how often it is named."""
    first = numbers.data_sets[0]
    networks = numbers.networks(first)
    by_class: dict[str, dict[str, Row]] = {}
    for row in numbers.classes:
        if row["data"] == first:
            by_class.setdefault(row["class"], {})[row["network"]] = row
    lines = [
        [
            name,
            str(next(iter(rows.values()))["samples"]),
            *(
                f"{rows[network]['accuracy_upright']:.2f} → {rows[network]['accuracy_ball']:.2f}"
                for network in networks
            ),
            f"{rows['plain']['share']:.2f} → {rows['plain']['named_ball']:.2f}",
        ]
        for name, rows in by_class.items()
    ]
    return markdown(["class", "test clouds", *networks, "plain: share → named"], lines)


def explained_by(numbers: Numbers, data_set: str, network: str, by: NDArray) -> float:
    """The share of the accuracy's variance over all rotations that a smooth curve explains."""
    accuracy = numbers.along("ball", data_set, network, "accuracy")
    if np.ptp(accuracy) < 1e-9:
        return float("nan")
    curve: Any = np.polynomial.Polynomial.fit(by, accuracy, 6)
    return 1 - float(((accuracy - curve(by)) ** 2).mean() / accuracy.var())


def findings(numbers: Numbers) -> str:
    """What the rows say, in sentences whose numbers come from them."""
    first = numbers.data_sets[0]

    def value(network: str, quantity: str, data_set: str = first) -> float:
        return numbers.mean(data_set, network, quantity)

    def turned(network: str, axis: str, angle: float, data_set: str = first) -> float:
        by_angle = numbers.about_axis(data_set, network, "accuracy", axis)
        return _nearest(by_angle, angle)

    sideways, upright, forwards = AXES
    angles = explained_by(numbers, first, "plain", numbers.angle())
    tilts = explained_by(numbers, first, "plain", numbers.tilt())
    small = turned("plain", sideways, 15) > 0.8 * value("plain", "accuracy_upright")
    lost = value("plain", "accuracy_ball") < 0.6 * value("plain", "accuracy_upright")
    falls = {
        network: value(network, "accuracy_upright") - value(network, "accuracy_ball")
        for network in ("plain", "augmented")
    }
    price = value("plain", "accuracy_upright") - value("augmented", "accuracy_upright")
    planes = value("plain", "accuracy_slices") > value("plain", "accuracy_ball")
    level = min(turned("plain", sideways, 90), turned("plain", forwards, 90))
    sentences = [
        f"**The original is good only for small rotations: {verdict(small and lost)}.** On "
        f"{TITLES[first].split(',')[0]} "
        f"{value('plain', 'accuracy_upright'):.3f} upright, "
        f"{turned('plain', sideways, 15):.3f} turned 15° about x, "
        f"{turned('plain', sideways, 45):.3f} at 45°, "
        f"{value('plain', 'accuracy_ball'):.3f} over all rotations, where naming the commonest "
        f"class would give {_commonest(numbers, first):.3f}.",
        f"**The augmented network is flatter: {verdict(falls['augmented'] < falls['plain'])}"
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
        f"**Three planes {'flatter' if planes else 'do not flatter'} the original.** They hold "
        f"{_share_small(numbers, 'slices'):.0%} rotations below 45°; among all rotations, each "
        f"as likely as any other, there are {_share_small(numbers, 'ball'):.1%}. Its mean over the "
        f"paper's drawing is {value('plain', 'accuracy_slices'):.3f}, and "
        f"{value('plain', 'accuracy_ball'):.3f} over all rotations.",
        "**The worst axes are "
        f"{'the horizontal ones' if level < turned('plain', upright, 90) else 'not the horizontal'}"
        ".** At 90° the original keeps "
        f"{turned('plain', upright, 90):.3f} about the upright axis, "
        f"{turned('plain', sideways, 90):.3f} about x and {turned('plain', forwards, 90):.3f} "
        f"about z; at 180° {turned('plain', upright, 180):.3f}, "
        f"{turned('plain', sideways, 180):.3f} and {turned('plain', forwards, 180):.3f}. "
        f"Over all rotations a curve in the tilt of the upright axis explains {tilts:.0%} of the "
        f"variance of its accuracy, one in the angle of turn {angles:.0%}.",
    ]
    if "invariant" in numbers.networks(first):
        flat = [name for name in numbers.data_sets if "invariant" in numbers.networks(name)]
        ranges = [
            float(np.ptp(numbers.along("ball", data_set, "invariant", "accuracy")))
            for data_set in flat
        ]
        changes = [max(numbers.over_seeds(name, "invariant", "change_ball")) for name in flat]
        sentences += [
            "**The invariant network is flat**, by construction: its accuracy differs by "
            f"{max(ranges):.4f} between rotations, and no cloud's confidence by more than "
            f"{max(changes):.4f} (stored in half precision); the augmented one's by up to "
            f"{max(numbers.over_seeds(first, 'augmented', 'change_ball')):.2f}. It has "
            f"{value('invariant', 'accuracy_ball'):.3f} everywhere, the augmented one "
            f"{value('augmented', 'accuracy_ball'):.3f} over all.",
            "**Flat is not calibrated.** The invariant network's ECE is "
            f"{value('invariant', 'ece_ball'):.3f} at every rotation (a calibrated one would show "
            f"{value('invariant', 'ece_upright_calibrated'):.3f} on so few clouds), the augmented "
            f"one's {value('augmented', 'ece_ball'):.3f} over all. The original's grows from "
            f"{value('plain', 'ece_upright'):.3f} upright to {value('plain', 'ece_ball'):.3f}: its "
            f"confidence falls only from {value('plain', 'confidence_upright'):.3f} to "
            f"{value('plain', 'confidence_ball'):.3f}.",
        ]
    if "modelnet10" in numbers.data_sets:
        words = ", ".join(
            f"{network} {value(network, 'accuracy_upright', 'modelnet10'):.3f} → "
            f"{value(network, 'accuracy_ball', 'modelnet10'):.3f}"
            for network in numbers.networks("modelnet10")
        )
        sentences.append(
            "**ModelNet10's chairs and monitors** (upright → all rotations): "
            f"{words}. Guessing one class gives {_commonest(numbers, 'modelnet10'):.3f}."
        )
    return "\n".join(f"* {sentence}" for sentence in sentences)


def _nearest(by_angle: dict[float, float], angle: float) -> float:
    """The value at the angle that was measured nearest to one."""
    return by_angle[min(by_angle, key=lambda measured: abs(measured - angle))]


def _commonest(numbers: Numbers, data_set: str) -> float:
    return max(float(row["share"]) for row in numbers.classes if row["data"] == data_set)


def _share_small(numbers: Numbers, group: str, below_deg: float = 45.0) -> float:
    matrices = numbers.groups[group].parts["space"][:, :3, :3]
    trace = np.trace(matrices, axis1=1, axis2=2)
    angle = np.rad2deg(np.arccos(np.clip((trace - 1) / 2, -1, 1)))
    return float(numbers.groups[group].weights[angle < below_deg - 1e-6].sum())


TABLES = {
    "settings": settings_table,
    "findings": findings,
    "accuracy": accuracy_table,
    "calibration": calibration_table,
    "axes": axes_table,
    "tilt": tilt_table,
    "classes": classes_table,
}


def report(page: Path) -> list[Path]:
    """Write the page's tables and figures from its CSV files.

    The pictures of single clouds need the public files; they are left as they are without these.
    """
    from orbical.errors import InputError
    from orbical.figures import save

    folder = page.with_suffix("")
    numbers = Numbers(folder)
    first = numbers.data_sets[0]
    figures = {
        "slices": orbit_figure(numbers, "slices", first, "accuracy"),
        "ball": orbit_figure(numbers, "ball", first, "accuracy"),
        "ece": orbit_figure(numbers, "slices", first, "ece"),
        "angle": angle_figure(numbers),
        "tilt": tilt_figure(numbers),
    }
    for data_set in numbers.data_sets[1:]:
        figures[f"slices-{data_set}"] = orbit_figure(numbers, "slices", data_set, "accuracy")
    try:
        for name in numbers.chosen:
            figures[f"individual-{name}"] = individual_figure(numbers, name)
    except InputError as error:
        print(f"single clouds not drawn: {error}")
    written = [save(figure, folder / f"{name}.png") for name, figure in figures.items()]
    return [write_page(page, {name: table(numbers) for name, table in TABLES.items()}), *written]
