"""The page of the six examples: what each says, its numbers and its figures."""

from __future__ import annotations

from pathlib import Path

from orbical.bounds import Comparison

from .figures import draw
from .findings import facts
from .worlds import symmetries_of_the_circle

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
        "both cases: 1 - sum k asks for no fibers.",
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


def page_text(compared: Comparison) -> str:
    """Write the page: each example's text and numbers, then the symmetries of the circle."""
    found = facts()
    lines = [
        "# The paper's six examples, computed",
        "",
        "Examples 1 to 6 of Berman et al., *On Uncertainty Calibration for Equivariant Functions*, "
        "each computed by `orbical.bounds` on a finite world. The page is written by "
        "`orbical study examples`; the mathematics and the corrections "
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
                "![Labels, orbits and fibers of Examples 2 and 3](examples-fibers.png)",
                "",
                "*Colour and shape are the label, lines join orbits, hatching tells fibers apart.*",
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


def report(folder: Path) -> list[Path]:
    """Write the page `examples.md` and its figures into a folder; return what was written."""
    compared = symmetries_of_the_circle()
    figures = draw(folder, compared)
    page = folder / "examples.md"
    page.write_text(page_text(compared), encoding="utf-8")
    return [page, *figures]
