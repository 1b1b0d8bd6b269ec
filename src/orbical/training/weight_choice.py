"""Choosing lambda: the lowest calibration error that costs little accuracy."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from orbical.errors import InputError

__all__ = ["Selection", "select"]

Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True)
class Selection(Generic[Key]):
    """The chosen setting, as returned by `select`.

    Attributes:
        choice: the setting.
        accuracy: its validation accuracy.
        ece: its validation ECE.
        admissible: all settings within the tolerance; empty if there is none.
    """

    choice: Key
    accuracy: float
    ece: float
    admissible: tuple[Key, ...]


def select(
    scores: Mapping[Key, tuple[float, float]], *, baseline_accuracy: float, tolerance: float = 0.015
) -> Selection[Key]:
    """Choose the setting of lowest ECE that loses at most `tolerance` of accuracy.

    Args:
        scores: for each setting (a lambda, or any key) its accuracy and ECE on VALIDATION data,
            both in 0..1.
        baseline_accuracy: validation accuracy of the model trained with the likelihood alone.
        tolerance: the largest loss of accuracy, 0.015 in the paper.

    Returns:
        The choice. If no setting is admissible, it is the most accurate one, and `admissible` is
        empty: report that.

    Example:
        >>> scores = {6.0: (0.881, 0.026), 50.0: (0.872, 0.018), 150.0: (0.864, 0.032)}
        >>> select(scores, baseline_accuracy=0.882).choice
        50.0

    Paper: ESD, section 5.2.
    """
    if not scores:
        raise InputError("scores", "at least one setting", "none")
    if not 0 <= baseline_accuracy <= 1:
        raise InputError("baseline_accuracy", "a value in [0, 1]", baseline_accuracy)
    if not tolerance >= 0:
        raise InputError("tolerance", "a number >= 0", tolerance)
    for key, (accuracy, ece) in scores.items():
        if not (0 <= accuracy <= 1 and 0 <= ece <= 1):
            raise InputError(
                "scores", "values in [0, 1]", f"accuracy {accuracy} and ECE {ece} for {key!r}"
            )
    # 1e-12: a loss of accuracy of exactly the tolerance is admissible whatever its rounding.
    floor = baseline_accuracy - tolerance - 1e-12
    admissible = tuple(key for key, (accuracy, _) in scores.items() if accuracy >= floor)
    if admissible:
        choice = min(admissible, key=lambda key: scores[key][1])
    else:
        choice = max(scores, key=lambda key: scores[key][0])
    return Selection(choice, *scores[choice], admissible)
