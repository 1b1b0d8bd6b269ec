"""The numbers of the six examples, each beside what the paper prints."""

from __future__ import annotations

from dataclasses import dataclass

from .worlds import example_1, example_2, example_3, example_4, example_5, example_6


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
                first[0.5]["fiber_free"],
                "0.58 - 0.2",
                "tighter, and true",
            ),
        ],
        "2": [
            Fact("accuracy ceiling", two["ceiling"], "not stated", "0.3 of the mass dissents"),
            Fact("Cor 2, two fibers", two["cor2"], "0.9", "true, not the best"),
            Fact("Cor 2, one fibre", one["cor2"], "0.7", "agrees"),
            Fact("1 - sum k, two fibers", two["one_minus_dissent"], "0.9", "fibers do not matter"),
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
                six["thm6_minimized"],
                "1 + pi/8 = 1.3927",
                "1 + pi/16: the factor 1/2 of r(s1) was lost",
            ),
        ],
    }
