"""The page of the six examples: what each says, and its numbers beside the paper's."""

from __future__ import annotations

from dataclasses import dataclass

from orbical.bounds import Comparison

from .examples import example_1, example_2, example_3, example_4, example_5, example_6


@dataclass(frozen=True)
class Fact:
    """One number of an example: ours beside the paper's, and what separates them."""

    name: str
    value: float
    printed: str
    remark: str


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


def page_text(compared: Comparison) -> str:
    """Write the page: each example's text and numbers, then the symmetries of the circle."""
    found = facts()
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
