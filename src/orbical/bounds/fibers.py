"""Fibers: samples of one confidence, and the accuracies that a constrained model can have there."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._arrays import ArrayLike
from ..errors import InputError
from . import table_checks as checks

__all__ = ["Fibers", "fibers_from_errors"]

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class Fibers:
    """Fibers of the confidence, with the accuracies that the constraint allows on each.

    Attributes:
        mass: `[F]`, r(p), the mass of the fiber; positive, summing to 1.
        confidence: `[F]`, p, the (mass-weighted mean) confidence on the fiber.
        best: `[F]`, M_p, the greatest accuracy any admissible model has on the fiber.
        worst: `[F]`, m_p, the least accuracy any admissible model has on the fiber.
        accuracy: `[F]`, Acc_p of the model at hand, or None when only confidences are known.
        index: `[O]`, the fiber of each orbit, if the fibers were made from orbits; -1 for an orbit
            in a fiber without mass.

    `fibers_from_errors` makes one from any constraint that bounds errors on fibers (P1 section 8);
    `OrbitTable.fibers` makes one from a symmetry.
    """

    mass: Array
    confidence: Array
    best: Array
    worst: Array
    accuracy: Array | None = None
    index: Array | None = None

    def __len__(self) -> int:
        return len(self.mass)

    @property
    def least_error(self) -> Array:
        """K_p = 1 - M_p `[F]`, the error no admissible model can avoid on the fiber."""
        return 1 - self.best

    @property
    def forced_overconfidence(self) -> Array:
        """(p - M_p)_+ `[F]`: the overconfidence of every admissible model on the fiber."""
        return np.asarray(np.maximum(0, self.confidence - self.best))


def fibers_from_errors(
    mass: ArrayLike,
    confidence: ArrayLike,
    least_error: ArrayLike,
    greatest_error: ArrayLike,
    accuracy: ArrayLike | None = None,
) -> Fibers:
    """Make fibers from error bounds of any constraint, not only a symmetry.

    P1 section 8: bounds of the errors on fibers also bound the calibration error. Pass the result
    to `orbical.bounds.classification`.

    Args:
        mass: `[F]`, r(p), summing to 1.
        confidence: `[F]` in [0, 1].
        least_error: `[F]`, the least error that the constraint allows on the fiber.
        greatest_error: `[F]`, the greatest.
        accuracy: `[F]`, the accuracy of the model on the fiber, if known.

    Returns:
        The fibers of positive mass.

    Raises:
        InputError: if sizes differ, or values contradict each other.

    Example:
        >>> fibers = fibers_from_errors([0.5, 0.5], [0.9, 0.6], [0.3, 0.0], [1.0, 1.0])
        >>> fibers.forced_overconfidence.round(3)
        array([0.2, 0. ])
    """
    given = {"mass": mass, "confidence": confidence, "accuracy": accuracy}
    given |= {"least_error": least_error, "greatest_error": greatest_error}
    arrays = {
        n: checks.checked_table_numbers(n, v, "fiber") for n, v in given.items() if v is not None
    }
    sizes = {name: len(array) for name, array in arrays.items()}
    if len(set(sizes.values())) > 1:
        raise InputError("fibers", "one value for each fiber", f"sizes {sizes}")
    checks.check_table_masses("mass", arrays["mass"].min(), arrays["mass"].sum())
    for name in sizes.keys() - {"mass"}:
        checks.probabilities(name, arrays[name])
    best, worst = 1 - arrays["least_error"], 1 - arrays["greatest_error"]
    if (best < worst).any():
        raise InputError("least_error", "at most greatest_error on every fiber", "more")
    right = arrays.get("accuracy")
    if right is not None and ((right > best + 1e-9) | (right < worst - 1e-9)).any():
        raise InputError(
            "accuracy",
            "values that least_error and greatest_error allow",
            "others",
            remedy="the model does not obey the constraint",
        )
    held = arrays["mass"] > 0
    return Fibers(
        mass=arrays["mass"][held],
        confidence=arrays["confidence"][held],
        best=best[held],
        worst=worst[held],
        accuracy=None if right is None else right[held],
    )


def fiber_index(confidence: Array, bins: int | None) -> Array:
    """Return the fiber of each confidence: equal values, or the bins of `orbical.calibration.ece`.

    Example:
        >>> fiber_index(np.array([0.9, 0.2, 0.9]), None)
        array([1, 0, 1])
        >>> fiber_index(np.array([0.9, 0.2, 0.91]), 5)
        array([4, 0, 4])
    """
    if bins is None:
        return np.unique(confidence, return_inverse=True)[1]
    if isinstance(bins, bool) or not isinstance(bins, int | np.integer) or bins < 1:
        raise InputError("bins", "None or a whole number >= 1", repr(bins))
    import torch

    from ..calibration import bin_index

    return bin_index(torch.from_numpy(confidence), int(bins)).numpy()


def fibers_are_single(values: Array) -> bool:
    """Check whether no value occurs twice; a sort of values is much faster than one of places.

    Example:
        >>> fibers_are_single(np.array([0.9, 0.2])), fibers_are_single(np.array([0.9, 0.2, 0.9]))
        (True, False)
    """
    ordered = np.sort(values)
    return bool((ordered[1:] != ordered[:-1]).all())
