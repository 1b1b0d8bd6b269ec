"""The six examples of the equivariant-calibration paper as finite worlds, computed."""

from __future__ import annotations

import math

import numpy as np
from scipy.stats import truncnorm

from orbical import bounds
from orbical.actions import Points
from orbical.groups import Group, cyclic, flips, from_matrices, permutations

Array = np.ndarray


def example_1(mean: float, corner: float = 0.8, rows: int = 20_000) -> dict[str, float]:
    """Compute the unit square under shifts along x; truncated normal confidences (sigma = 0.1).

    The boundary between the labels runs from (corner, 0) to (1/2, 1), so the row on the x-axis
    dissents least, by 1 - corner of its mass. A row is an orbit; its confidence is independent of
    its height.

    >>> {name: round(value, 4) for name, value in example_1(0.5).items()}["prop1"]
    0.5798
    """
    sigma = 0.1
    law = truncnorm(-mean / sigma, (1 - mean) / sigma, loc=mean, scale=sigma)
    confidence = law.ppf((np.arange(rows) + 0.5) / rows)
    # A fixed shuffle makes height and confidence independent.
    height = (np.random.default_rng(0).permutation(rows) + 0.5) / rows
    majority = corner - (corner - 0.5) * height
    table = bounds.OrbitTable(np.stack([majority, 1 - majority], 1) / rows, confidence)
    found = bounds.classification(table, bins=100)
    exact = bounds.classification(table)
    return {
        "prop1": float(exact["prop1"]),
        "fiber_free": float(exact["fiber_free"]),
        "sharp_lower": float(found["forced_ece"]),
        "sharp_upper": float(found["sharp_upper"]),
        "sum_of_dissent": 1 - table.accuracy_ceiling,
        "least_dissent_of_an_orbit": float(table.dissent.min()),
    }


def circle() -> tuple[Array, Array]:
    """Return twenty points on the unit circle and their labels (Examples 2 and 3).

    Points come in pairs mirrored in the x-axis. On the right half one pair of five is divided, on
    the left half all five are: 14 blue (0), 6 orange (1).
    """
    angle = np.deg2rad(np.concatenate([np.linspace(9, 81, 5), np.linspace(99, 171, 5)]))
    upper = np.stack([np.cos(angle), np.sin(angle)], 1)
    x = np.concatenate([upper, upper * [1, -1]])
    lower_label = np.array([0, 0, 1, 0, 0, 1, 1, 1, 1, 1])
    return x, np.concatenate([np.zeros(10, int), lower_label])


def example_2(right: float, left: float) -> dict[str, float]:
    """Compute the reflection in the x-axis, with confidence `right` for x > 0, `left` for x < 0.

    >>> {name: round(value, 4) for name, value in example_2(1.0, 1.0).items()}["ceiling"]
    0.7
    """
    x, label = circle()
    mirror = from_matrices(plane=[np.eye(2), np.diag([1.0, -1.0])])
    confidence = np.where(x[:, 0] > 0, right, left)
    return _binary(bounds.OrbitTable.from_data(x, label, mirror, confidence=confidence))


def example_3(confidence: float) -> dict[str, float]:
    """Compute the same points under all rotations: one orbit, hence one fiber.

    >>> {name: round(value, 4) for name, value in example_3(1.0).items()}["ceiling"]
    0.7
    """
    x, label = circle()
    orbit = bounds.match_invariants(np.linalg.norm(x, axis=1), tolerance=1e-9).orbit
    return _binary(bounds.OrbitTable.from_labels(orbit, label, confidence=np.full(20, confidence)))


def _binary(table: bounds.OrbitTable) -> dict[str, float]:
    found = bounds.classification(table)
    return {
        "ceiling": table.accuracy_ceiling,
        "cor2": float(found["cor2"]),
        "fiber_free": float(found["fiber_free"]),
        "one_minus_dissent": 1 - float(table.dissent.sum()),
        "sharp_upper": float(found["sharp_upper"]),
        "sharp_lower": float(found["forced_ece"]),
    }


def example_4() -> dict[str, float]:
    """Compute twelve points of a clock, twelve labels, rotations: one label for all.

    >>> {name: round(value, 4) for name, value in example_4().items()}
    {'accuracy_ceiling': 0.0833, 'accuracy_floor': 0.0833, 'error': 0.9167}
    """
    angle = np.deg2rad(np.arange(0, 360, 30))
    table = bounds.OrbitTable.from_data(
        np.stack([np.cos(angle), np.sin(angle)], 1), np.arange(12), cyclic(12)
    )
    return {
        "accuracy_ceiling": table.accuracy_ceiling,
        "accuracy_floor": table.accuracy_floor,
        "error": 1 - table.accuracy_floor,
    }


def example_5() -> dict[str, float]:
    """Compute all orders of four points; the label is whether a comes first. One orbit.

    >>> round(example_5()["ece_of_the_calibrated_model"], 9)
    0.0
    """
    group = permutations(4)
    points = np.random.default_rng(0).normal(size=(4, 2))
    x = points[group.parts["rows"]]
    label = (group.parts["rows"][:, 0] != 0).astype(int)
    orbits = bounds.match_orbits(x, group, action=Points())
    # Its gradient vanishes nowhere, as Prop 5 asks; sums differ between orders by rounding.
    confidence = (0.75 + 0.1 * (x - points).sum((1, 2))).round(12)
    table = bounds.OrbitTable.from_labels(
        orbits.orbit, label, confidence=confidence, predicted=np.ones(24, int)
    )
    found = bounds.classification(table)
    ones = np.ones((1, 4))
    singular = [np.linalg.svd(matrix, compute_uv=False).max() for matrix in (ones, ones.T @ ones)]
    lipschitz = singular[0] * (1 + singular[1])
    return {
        "orbits": float(orbits.count),
        "accuracy_floor": table.accuracy_floor,
        "lipschitz": float(lipschitz),
        "printed_bound": table.accuracy_floor**2 / 2 / float(lipschitz),
        "ece_of_the_calibrated_model": float(found["ece"]),
        "sharp_lower": float(found["forced_ece"]),
    }


def example_6(norm: float) -> dict[str, float]:
    """Compute five point clouds, three orbits, two fibers; `norm` is ||sqrt(2 s_1 / pi)||^2.

    The values are lines in R^n; all that matters is that f varies by pi / 4 on the orbit {b, c}.
    The norm is the squared Euclidean one.

    >>> round((example_6(1.0)["thm6_minimized"] - 1) / math.pi, 4)
    0.0625
    """
    half = math.sqrt(math.pi) / 2  # so that the variance of f on {b, c} is pi / 4
    table = bounds.ValueTable(
        orbit=np.array([0, 0, 1, 1, 2]),
        value=np.array([0.0, 0.0, -half, half, 0.0]),
        mass=np.array([0.125, 0.125, 0.125, 0.125, 0.5]),
        variance=np.array([1, 1, 1, 1, 2.0]) * norm * math.pi / 2,
    )
    found = bounds.regression(table)
    return {
        "error_floor": float(found["thm2"]),
        "error_on_the_first_fiber": float(found["thm2"]) / 0.5,
        "thm6_minimized": float(found["thm6_minimized"]),
        "gence_floor_if_calibrated": found.about["gence_if_calibrated"],
    }


def symmetries_of_the_circle() -> bounds.Comparison:
    """Compare candidate symmetries on the twenty points: which would be safe?

    >>> [row["group"] for row in symmetries_of_the_circle().rows()]
    ['trivial', 'mirror in x', 'mirror in y', 'half turn', 'both mirrors', 'turns by 18 degrees']
    """

    def mirror(*signs: float) -> Group:
        return from_matrices(plane=[np.eye(2), np.diag(signs)])

    return bounds.compare_groups(
        circle(),
        {
            "mirror in x": mirror(1.0, -1.0),
            "mirror in y": mirror(-1.0, 1.0),
            "half turn": cyclic(2),
            "both mirrors": flips(),
            "turns by 18 degrees": cyclic(20),
        },
        tolerance=1e-6,
    )
