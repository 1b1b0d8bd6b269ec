"""The six examples of the equivariant-calibration paper, computed, with what the paper prints.

`python -m orbical.studies.examples docs/studies` writes `examples.md` and its figures.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from orbical.bounds import (
    Comparison,
    OrbitTable,
    ValueTable,
    classification,
    compare_groups,
    match_invariants,
    match_orbits,
    regression,
)

if TYPE_CHECKING:
    from orbical.groups import Group

Array = np.ndarray


@dataclass(frozen=True)
class Fact:
    """One number of an example: ours beside the paper's, and what separates them."""

    name: str
    value: float
    printed: str
    remark: str


def example_1(mean: float, corner: float = 0.8, rows: int = 20_000) -> dict[str, float]:
    """Unit square under shifts along x, with truncated normal confidences (sigma = 0.1).

    The boundary between the labels runs from (corner, 0) to (1/2, 1), so the row on the x-axis
    dissents least, by 1 - corner of its mass. A row is an orbit; its confidence is independent of
    its height.

    >>> {name: round(value, 4) for name, value in example_1(0.5).items()}["prop1"]
    0.5798
    """
    from scipy.stats import truncnorm

    sigma = 0.1
    law = truncnorm(-mean / sigma, (1 - mean) / sigma, loc=mean, scale=sigma)
    confidence = law.ppf((np.arange(rows) + 0.5) / rows)
    # A fixed shuffle makes height and confidence independent.
    height = (np.random.default_rng(0).permutation(rows) + 0.5) / rows
    majority = corner - (corner - 0.5) * height
    table = OrbitTable(np.stack([majority, 1 - majority], 1) / rows, confidence)
    bounds = classification(table, bins=100)
    exact = classification(table)
    return {
        "prop1": float(exact["prop1"]),
        "fibre_free": float(exact["fibre_free"]),
        "sharp_lower": float(bounds["sharp_lower"]),
        "sharp_upper": float(bounds["sharp_upper"]),
        "sum_of_dissent": 1 - table.accuracy_ceiling,
        "least_dissent_of_an_orbit": float(table.dissent.min()),
    }


def circle() -> tuple[Array, Array]:
    """Twenty points on the unit circle and their labels (Examples 2 and 3).

    Points come in pairs mirrored in the x-axis. On the right half one pair of five is divided, on
    the left half all five are: 14 blue (0), 6 orange (1).
    """
    angle = np.deg2rad(np.concatenate([np.linspace(9, 81, 5), np.linspace(99, 171, 5)]))
    upper = np.stack([np.cos(angle), np.sin(angle)], 1)
    x = np.concatenate([upper, upper * [1, -1]])
    lower_label = np.array([0, 0, 1, 0, 0, 1, 1, 1, 1, 1])
    return x, np.concatenate([np.zeros(10, int), lower_label])


def example_2(right: float, left: float) -> dict[str, float]:
    """Reflection in the x-axis, with confidence `right` where x > 0 and `left` where x < 0.

    >>> {name: round(value, 4) for name, value in example_2(1.0, 1.0).items()}["ceiling"]
    0.7
    """
    from orbical.groups import from_matrices

    x, label = circle()
    mirror = from_matrices(plane=[np.eye(2), np.diag([1.0, -1.0])])
    confidence = np.where(x[:, 0] > 0, right, left)
    table = OrbitTable.from_data(x, label, mirror, confidence=confidence)
    return _binary(table)


def example_3(confidence: float) -> dict[str, float]:
    """The same points under all rotations: one orbit, hence one fibre.

    >>> {name: round(value, 4) for name, value in example_3(1.0).items()}["ceiling"]
    0.7
    """
    x, label = circle()
    orbit = match_invariants(np.linalg.norm(x, axis=1), tolerance=1e-9)
    table = OrbitTable.from_labels(orbit, label, confidence=np.full(20, confidence))
    return _binary(table)


def _binary(table: OrbitTable) -> dict[str, float]:
    bounds = classification(table)
    return {
        "ceiling": table.accuracy_ceiling,
        "cor2": float(bounds["cor2"]),
        "fibre_free": float(bounds["fibre_free"]),
        "one_minus_dissent": 1 - float(table.dissent.sum()),
        "sharp_upper": float(bounds["sharp_upper"]),
        "sharp_lower": float(bounds["sharp_lower"]),
    }


def example_4() -> dict[str, float]:
    """Twelve points of a clock, twelve labels, rotations: one label for all.

    >>> {name: round(value, 4) for name, value in example_4().items()}
    {'accuracy_ceiling': 0.0833, 'accuracy_floor': 0.0833, 'error': 0.9167}
    """
    from orbical.groups import cyclic

    angle = np.deg2rad(np.arange(0, 360, 30))
    table = OrbitTable.from_data(
        np.stack([np.cos(angle), np.sin(angle)], 1), np.arange(12), cyclic(12)
    )
    return {
        "accuracy_ceiling": table.accuracy_ceiling,
        "accuracy_floor": table.accuracy_floor,
        "error": 1 - table.accuracy_floor,
    }


def example_5() -> dict[str, float]:
    """All orders of four points; the label tells whether the first is a. One orbit.

    >>> round(example_5()["ece_of_the_calibrated_model"], 9)
    0.0
    """
    from orbical.actions import Points
    from orbical.groups import permutations

    group = permutations(4)
    points = np.random.default_rng(0).normal(size=(4, 2))
    x = points[group.parts["rows"]]
    label = (group.parts["rows"][:, 0] != 0).astype(int)
    orbits = match_orbits(x, group, action=Points())
    table = OrbitTable.from_labels(
        orbits.orbit, label, confidence=np.full(24, 0.75), predicted=np.ones(24, int)
    )
    bounds = classification(table)
    ones = np.ones((1, 4))
    singular = [np.linalg.svd(matrix, compute_uv=False).max() for matrix in (ones, ones.T @ ones)]
    lipschitz = singular[0] * (1 + singular[1])
    return {
        "orbits": float(orbits.count),
        "accuracy_floor": table.accuracy_floor,
        "lipschitz": float(lipschitz),
        "printed_bound": table.accuracy_floor**2 / 2 / float(lipschitz),
        "ece_of_the_calibrated_model": float(bounds["ece"]),
        "sharp_lower": float(bounds["sharp_lower"]),
    }


def example_6(norm: float) -> dict[str, float]:
    """Five point clouds, three orbits, two fibres; `norm` is ||sqrt(2 s_1 / pi)||^2.

    The values are lines in R^n; all that matters is that f varies by pi / 4 on the orbit {b, c}.
    The norm is the squared Euclidean one.

    >>> round((example_6(1.0)["thm6_minimised"] - 1) / math.pi, 4)
    0.0625
    """
    half = math.sqrt(math.pi) / 2  # so that the variance of f on {b, c} is pi / 4
    table = ValueTable(
        orbit=np.array([0, 0, 1, 1, 2]),
        value=np.array([0.0, 0.0, -half, half, 0.0]),
        mass=np.array([0.125, 0.125, 0.125, 0.125, 0.5]),
        variance=np.array([1, 1, 1, 1, 2.0]) * norm * math.pi / 2,
    )
    bounds = regression(table)
    return {
        "error_floor": float(bounds["thm2"]),
        "error_on_the_first_fibre": float(bounds["thm2"]) / 0.5,
        "thm6_minimised": float(bounds["thm6_minimised"]),
        "gence_floor_if_calibrated": bounds.about["gence_if_calibrated"],
    }


def symmetries_of_the_circle() -> Comparison:
    """Compare candidate symmetries on the twenty points: which would be safe?

    >>> [row["group"] for row in symmetries_of_the_circle().rows()]
    ['trivial', 'mirror in x', 'mirror in y', 'half turn', 'both mirrors', 'turns by 18 degrees']
    """
    from orbical.groups import cyclic, flips, from_matrices

    def mirror(*signs: float) -> Group:
        return from_matrices(plane=[np.eye(2), np.diag(signs)])

    return compare_groups(
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


def facts() -> dict[str, list[Fact]]:
    """Compute all six examples: their numbers beside what the paper prints."""
    first = {mean: example_1(mean) for mean in (0.5, 0.25, 0.75)}
    two, one, turned = example_2(1.0, 0.99), example_2(1.0, 1.0), example_3(1.0)
    four, five, six = example_4(), example_5(), example_6(1.0)
    return {
        "1": [
            *(
                Fact(f"Prop 1, mean {mean}", found["prop1"], f"about {printed}", "agrees")
                for (mean, found), printed in zip(
                    first.items(), ("0.58", "0.75", "0.75"), strict=True
                )
            ),
            Fact(
                "least dissent of an orbit",
                first[0.5]["least_dissent_of_an_orbit"],
                "1 - r = 0.2",
                "a row has no mass: the paper compares a density with a probability",
            ),
            Fact(
                "sum of all dissent",
                first[0.5]["sum_of_dissent"],
                "not used",
                "what Prop 1 may be lowered by for two labels",
            ),
            Fact(
                "Prop 1 - sum k, mean 0.5",
                first[0.5]["fibre_free"],
                "0.58 - 0.2",
                "tighter, and true",
            ),
        ],
        "2": [
            Fact("accuracy ceiling", two["ceiling"], "not stated", "0.3 of the mass dissents"),
            Fact("Cor 2, two fibres", two["cor2"], "0.9", "true, not the best"),
            Fact("Cor 2, one fibre", one["cor2"], "0.7", "agrees"),
            Fact("1 - sum k, two fibres", two["one_minus_dissent"], "0.9", "fibres do not matter"),
            Fact("1 - sum k, one fibre", one["one_minus_dissent"], "0.7", "agrees"),
        ],
        "3": [
            Fact("accuracy ceiling", turned["ceiling"], "0.7", "agrees"),
            Fact("Cor 2", turned["cor2"], "0.7", "agrees"),
        ],
        "4": [
            Fact("error of any model", four["error"], "1/12", "11 of 12 points are wrong"),
            Fact("accuracy floor", four["accuracy_floor"], "11/12", "one label is right once"),
        ],
        "5": [
            Fact("orbits", five["orbits"], "1", "agrees"),
            Fact("accuracy floor m'", five["accuracy_floor"], "0.25", "agrees"),
            Fact("Lipschitz constant", five["lipschitz"], "1 / 0.03", "n = 4 rows, not 24"),
            Fact("Prop 5's bound", five["printed_bound"], "0.001", "false: see the next line"),
            Fact(
                "ECE of h_Y = 1, h_P = 3/4",
                five["ece_of_the_calibrated_model"],
                "at least 0.001",
                "a perfectly calibrated invariant model exists",
            ),
        ],
        "6": [
            Fact("error on the fibre of s1", six["error_on_the_first_fibre"], "pi/8", "agrees"),
            Fact(
                "Thm 6, minimised, at norm 1",
                six["thm6_minimised"],
                "1 + pi/8 = 1.3927",
                "1 + pi/16: the factor 1/2 of r(s1) was lost",
            ),
        ],
    }


TEXT = {
    "1": (
        "Two labels on the unit square, shifts along x",
        "Rows are orbits. The boundary between the labels runs from (0.8, 0) to (0.5, 1), so "
        "the row on the x-axis is the least divided one, by 0.2 of its own length. Confidences "
        "follow a normal law of width 0.1 cut to [0, 1]. Prop 1 is E[max(p, 1 - p)]. The paper "
        "then subtracts the 0.2, which is a share of a row; as a probability the row has none. "
        "What may be subtracted is the dissent of all rows together, 0.35, and that is more.",
    ),
    "2": (
        "Two labels on a circle, reflection",
        "Twenty points, 14 blue and 6 orange, mirrored in the x-axis: one of five orbits on the "
        "right half is divided, all five on the left. The paper bounds the ECE by 0.9 when the "
        "halves have different confidences and by 0.7 when they have one. The second holds in "
        "both cases: 1 - sum k asks for no fibres.",
    ),
    "3": (
        "The same points, all rotations",
        "One orbit, one fibre, 14 of 20 in the majority.",
    ),
    "4": (
        "A clock with twelve labels",
        "An invariant model gives all twelve points one label, which is right once. The paper "
        "takes the minority label's dissent for 1/12; it is 11/12, and an orbit that omits a "
        "label altogether has kappa = q, not 0 as its Note 1 says.",
    ),
    "5": (
        "DeepSets on four points",
        "All 24 orders of four points are one orbit; the label tells whether a comes first. "
        "Prop 5 claims a positive ECE for every invariant model. Saying 1 with confidence 3/4 "
        "is invariant and perfectly calibrated. (The network acts on n = 4 rows, so its "
        "Lipschitz constant is 2 (1 + 4) = 10; 24 is the number of orders.)",
    ),
    "6": (
        "Point clouds, two variances",
        "Orbits {a+, ax}, {b, c}, {d} with masses 1/4, 1/4, 1/2; the first two share the "
        "variance s1. f differs on {b, c} by a variance of pi/4, so the error on the fibre of "
        "s1 is pi/8, and the fibre holds half of all mass: GENCE <= 1 + (pi/16) / ||sqrt(2 s1 / "
        "pi)||^2, the norm being the squared Euclidean one, for the error-minimising model.",
    ),
}


def run(out: str | Path) -> Path:
    """Write the page `examples.md` and its figures into a folder; return the page."""
    from orbical.figures import bounds as draw
    from orbical.figures import save

    folder = Path(out)
    x, label = circle()
    side = np.where(x[:, 0] > 0, 0.9, 0.8)
    mirrored = np.tile(np.arange(10), 2)
    save(
        draw.fibres(
            x,
            label,
            [mirrored, mirrored, np.zeros(20, int)],
            [side, np.full(20, 0.9), np.full(20, 0.9)],
            ["reflection, two confidences", "reflection, one confidence", "all rotations"],
            label_names=["blue label", "orange label"],
        ),
        folder / "examples-fibres.png",
    )
    table = OrbitTable.from_labels(mirrored, label, confidence=side, predicted=np.zeros(20, int))
    save(draw.calibration_interval(classification(table)), folder / "examples-interval.png")
    compared = symmetries_of_the_circle()
    save(draw.group_comparison(compared), folder / "examples-groups.png")
    page = folder / "examples.md"
    page.write_text(_page(facts(), compared), encoding="utf-8")
    return page


def _page(found: dict[str, list[Fact]], compared: Comparison) -> str:
    lines = [
        "# The paper's six examples, computed",
        "",
        "Examples 1 to 6 of Berman et al., *On Uncertainty Calibration for Equivariant Functions*, "
        "each computed by `orbical.bounds` on a finite world. The page is written by "
        "`python -m orbical.studies.examples docs/studies`; the mathematics and the corrections "
        "are told in [Theory](../theory.md).",
    ]
    for number, (title, text) in TEXT.items():
        lines += ["", f"## Example {number}: {title}", "", text, ""]
        lines += ["| quantity | computed | paper | remark |", "|---|---|---|---|"]
        lines += [
            f"| {fact.name} | {fact.value:.4f} | {fact.printed} | {fact.remark} |"
            for fact in found[number]
        ]
        if number == "3":
            lines += [
                "",
                "![Labels, orbits and fibres of Examples 2 and 3](examples-fibres.png)",
                "",
                "*Colour and shape are the label, lines join orbits, hatching tells fibres apart.*",
                "",
                "![The calibration interval of Example 2](examples-interval.png)",
                "",
                "*Example 2 with confidences 0.9 and 0.8, for the model that says blue everywhere: "
                "the sharp interval, the model's own ECE, and every named bound.*",
            ]
    lines += [
        "",
        "## Which symmetry would be safe on the circle?",
        "",
        "The question before anything is trained, answered by `compare_groups` for the twenty "
        "points of Examples 2 and 3: how accurate an invariant model can be at best and at worst, "
        "where each symmetry takes the data, and how much over-confidence it forces on a model "
        "that is certain (p = 1).",
        "",
        "| symmetry | elements | orbits | ceiling | floor | correct | incorrect | forced |",
        "|---|---|---|---|---|---|---|---|",
        *(
            f"| {row['group']} | {row['elements']} | {row['orbits']} "
            f"| {row['accuracy_ceiling']:.2f} | {row['accuracy_floor']:.2f} "
            f"| {row['correct']:.2f} | {row['incorrect']:.2f} "
            f"| {row['forced_at_full_confidence']:.2f} |"
            for row in compared.rows()
        ),
        "",
        "![Candidate symmetries of the circle](examples-groups.png)",
        "",
        "*Left: accuracy of invariant models, from floor to ceiling. Middle: where the group takes "
        "the data. Right: forced calibration error against confidence.*",
    ]
    return "\n".join(lines) + "\n"


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the page into the folder named on the command line."""
    parser = argparse.ArgumentParser(prog="orbical study examples", description=__doc__)
    parser.add_argument("out", nargs="?", default="docs/studies", help="folder for the page")
    print(run(parser.parse_args(arguments).out))


if __name__ == "__main__":
    main()
