"""The price of symmetry: what holds for any model, invariant or not.

Let eps be the share of samples on which a model differs from its most frequent answer on their
orbit. Its accuracy is at most the ceiling plus eps: giving every orbit its most frequent answer
makes the model invariant and changes only that share. Sharper, orbit by orbit and label by label,
it is at most `sum min(P(orbit, answer = c), P(orbit, label = c))`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .._arrays import ArrayLike, as_numpy
from ..errors import InputError
from . import table_checks as checks
from .bound import Bound, inapplicable_bound, lower_bound, share_upper_bound

if TYPE_CHECKING:
    from .orbit_table import OrbitTable

__all__ = ["ModelOutputs"]

Array = np.ndarray
KINDS = {
    "broken_symmetry": ("broken_symmetry", "exact"),
    "broken_at_least": ("broken_symmetry", "lower"),
    "any_accuracy": ("accuracy", "upper"),
    "any_accuracy_sharp": ("accuracy", "upper"),
    "any_ece": ("ece", "lower"),
}


@dataclass(frozen=True, eq=False)
class ModelOutputs:
    """The predictions of a model on the samples of each orbit; it need not be invariant.

    Attributes:
        mass: `[O, C]`, the probability that a sample lies in orbit o and is answered with label c.
        accuracy: the share of correct answers.
        confidence: the mean confidence, or None.
    """

    mass: Array
    accuracy: float
    confidence: float | None = None

    @property
    def broken(self) -> float:
        """The share of samples whose prediction is not the most frequent one of their orbit."""
        return float(max(0.0, 1 - self.mass.max(1).sum()))


def model_outputs_by_orbit(
    index: Array,
    first: Array,
    label: Array,
    mass: Array,
    labels: int,
    confidence: ArrayLike,
    predicted: ArrayLike,
) -> dict[str, Any]:
    """Return the outputs of samples as arguments of `OrbitTable`.

    These are one confidence and prediction for each orbit if they agree there, and otherwise the
    `ModelOutputs`. The orbit of each sample is `index`; `first` are samples of all orbits.
    """
    given = {"confidence": confidence, "predicted": predicted}
    arrays = {name: as_numpy(name, values) for name, values in given.items() if values is not None}
    spread = {}
    for name, array in arrays.items():
        if array.shape != index.shape:
            raise InputError(name, f"one for each of {len(index)} samples", array)
        numbers = array.astype(np.float64)
        spread[name] = float(np.abs(numbers - numbers[first][index]).max())
    if max(spread.values(), default=0.0) <= 1e-6:
        return {name: array[first] for name, array in arrays.items()}
    if predicted is None:
        raise InputError(
            "confidence",
            "the same value along an orbit, as an invariant classifier has",
            f"differences up to {spread['confidence']:.3g}",
            remedy="pass predicted= too, or average it over each orbit",
        )
    answer = checks.checked_table_integers("predicted", predicted, len(index), below=labels)
    cells = np.bincount(index * labels + answer, weights=mass, minlength=len(first) * labels)
    sure = None
    if confidence is not None:
        checks.probabilities("confidence", arrays["confidence"])
        sure = float(mass @ arrays["confidence"])
    accuracy = float(mass @ (answer == label))
    return {"outputs": ModelOutputs(cells.reshape(len(first), labels), accuracy, sure)}


def own_model_outputs(table: OrbitTable) -> ModelOutputs | None:
    """Return what the model of a table answers; an invariant one gives each orbit one answer."""
    if table.outputs is not None or table.predicted is None:
        return table.outputs
    mass, mean = np.zeros(table.mass.shape), None
    mass[np.arange(len(mass)), table.predicted] = table.orbit_mass
    if table.confidence is not None:
        mean = float(table.orbit_mass @ table.confidence)
    return ModelOutputs(mass, table.accuracy, mean)


def own_model_accuracy(table: OrbitTable) -> float | None:
    """Return the accuracy of the model itself, where a table is about its orbit average too."""
    if table.outputs is not None:
        return table.outputs.accuracy
    return None if table.predicted is None else table.accuracy


def any_model_bounds(table: OrbitTable, accuracy: float | None) -> dict[str, Bound]:
    """Evaluate the statements that hold for every model on a table, from its own accuracy."""
    outputs = table.outputs
    if accuracy is None:
        reason = "needs the model's predictions and confidences; the table has none"
        return {name: inapplicable_bound(*of, reason) for name, of in KINDS.items()}
    ceiling, broken, sharp, sure = table.accuracy_ceiling, 0.0, accuracy, None
    if outputs is not None:
        broken, sure = outputs.broken, outputs.confidence
        sharp = float(np.minimum(outputs.mass, table.mass).sum())
    elif table.confidence is not None:
        sure = float(table.orbit_mass @ table.confidence)
    cap = min(1.0, ceiling + broken)
    ece = inapplicable_bound("ece", "lower", "needs confidences; the table has none")
    if sure is not None:
        ece = lower_bound(sure - sharp, "ece")
    needed = lower_bound(
        accuracy - ceiling, "broken_symmetry", reason="for every model of this accuracy"
    )
    return {
        "broken_symmetry": Bound(broken, *KINDS["broken_symmetry"]),
        "broken_at_least": needed,
        "any_accuracy": share_upper_bound(cap, "accuracy"),
        "any_accuracy_sharp": share_upper_bound(sharp, "accuracy"),
        "any_ece": ece,
    }
