"""The paper's rule for lambda."""

from __future__ import annotations

import pytest

from orbical.errors import InputError
from orbical.training import select


def test_the_lowest_ece_within_the_tolerance_wins() -> None:
    scores = {0.6: (0.93, 0.05), 2.0: (0.915, 0.03), 6.0: (0.90, 0.01)}
    chosen = select(scores, baseline_accuracy=0.93)
    assert chosen.choice == 2.0
    assert (chosen.accuracy, chosen.ece) == (0.915, 0.03)
    assert chosen.admissible == (0.6, 2.0)


def test_a_loss_of_exactly_the_tolerance_is_admissible() -> None:
    assert select({1: (0.915, 0.01), 2: (0.93, 0.02)}, baseline_accuracy=0.93).choice == 1


def test_the_tolerance_can_be_changed() -> None:
    scores = {"a": (0.80, 0.01), "b": (0.93, 0.02)}
    assert select(scores, baseline_accuracy=0.93, tolerance=0.2).choice == "a"
    assert select(scores, baseline_accuracy=0.93, tolerance=0.0).choice == "b"


def test_without_an_admissible_setting_the_most_accurate_is_named_as_not_admissible() -> None:
    chosen = select({1: (0.5, 0.01), 2: (0.6, 0.2)}, baseline_accuracy=0.9)
    assert chosen.choice == 2
    assert chosen.admissible == ()


@pytest.mark.parametrize(
    ("scores", "baseline", "tolerance", "word"),
    [
        ({}, 0.9, 0.015, "scores"),
        ({1: (92.0, 0.1)}, 0.9, 0.015, "scores"),
        ({1: (0.9, float("nan"))}, 0.9, 0.015, "scores"),
        ({1: (0.9, 0.1)}, 92.0, 0.015, "baseline_accuracy"),
        ({1: (0.9, 0.1)}, 0.9, -0.1, "tolerance"),
    ],
)
def test_wrong_inputs_are_refused_by_name(
    scores: dict[int, tuple[float, float]], baseline: float, tolerance: float, word: str
) -> None:
    with pytest.raises(InputError, match=rf"^{word}"):
        select(scores, baseline_accuracy=baseline, tolerance=tolerance)
