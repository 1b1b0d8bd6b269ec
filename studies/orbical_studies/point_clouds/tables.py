"""The point-cloud study's tables, from its CSV files alone."""

from __future__ import annotations

from itertools import pairwise

from ..pages import Row, markdown, spread
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
    trained, asked = (
        sum(row[f"{what}_seconds"] for row in numbers.summary) / 60 for what in ("train", "ask")
    )
    return (
        f"{markdown(header, lines)}\n\nRotations: {groups}. Minutes, summed over the "
        f"{len(numbers.summary)} networks: {trained:.0f} to train, {asked:.0f} to ask."
    )


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
                near = (numbers.turned(data_set, network, axis, angle) for angle in shown)
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
