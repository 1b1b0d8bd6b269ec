"""Checks of the arguments of tables."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._arrays import as_numpy
from ..errors import InputError

Array = np.ndarray
SUM_TOLERANCE = 1e-6


def numbers(name: str, value: Any, dims: str, size: int | None = None) -> Array:
    """Return a finite float64 array with the axes `dims`, such as `"orbit label"`.

    Example:
        >>> numbers("mass", [[0.5, 0.5]], "orbit label").shape
        (1, 2)
    """
    array = as_numpy(name, value, np.float64)
    axes = dims.split()
    if array.ndim != len(axes):
        raise InputError(
            f"{name}: expected shape [{', '.join(axes)}], got shape {list(array.shape)}"
        )
    if array.size == 0:
        raise InputError(f"{name}: expected at least one value along each of {axes}, got none")
    if not np.isfinite(array).all():
        raise InputError(f"{name}: expected finite numbers, got NaN or infinite values")
    if size is not None and len(array) != size:
        raise InputError(f"{name}: expected one for each of {size} {axes[0]}s, got {len(array)}")
    return array


def columns(name: str, value: Any) -> Array:
    """Return values `[N]` or `[N, D]` as `[N, D]`."""
    array = as_numpy(name, value, np.float64)
    return numbers(name, array[:, None] if array.ndim == 1 else array, "point coordinate")


def representation(matrices: Any, dimension: int) -> Array:
    """Return invertible matrices `[K, D, D]`."""
    array = as_numpy("representation", matrices, np.float64)
    if array.ndim != 3 or array.shape[1:] != (dimension, dimension):
        raise InputError(
            f"representation: expected matrices of shape [K, {dimension}, {dimension}], got "
            f"{list(array.shape)}"
        )
    if not np.isfinite(array).all() or np.abs(np.linalg.det(array)).min() < 1e-12:
        raise InputError("representation: expected finite and invertible matrices, got others")
    return array


def whole_numbers(name: str, value: Any, size: int, below: int | None = None) -> Array:
    """Return an int64 array `[size]` of values in [0, below).

    Example:
        >>> whole_numbers("predicted", [0, 2], size=2, below=3)
        array([0, 2])
    """
    array = as_numpy(name, value)
    if array.shape == (size, 1):
        array = array[:, 0]
    if array.shape != (size,):
        one_hot = array.ndim == 2 and len(array) == size
        hint = "; pass the indices of one-hot rows, .argmax(1)" if one_hot else ""
        raise InputError(f"{name}: expected shape [{size}], got shape {list(array.shape)}{hint}")
    if array.dtype.kind in "USO":
        hint = "number them with numpy.unique(names, return_inverse=True)[1]"
        raise InputError(f"{name}: expected whole numbers, got names; {hint}")
    if array.dtype.kind not in "iubf":
        raise InputError(f"{name}: expected whole numbers, got dtype {array.dtype}")
    if not (np.isfinite(array).all() and (array == np.floor(array)).all()):
        raise InputError(f"{name}: expected whole numbers, got fractions, NaN or infinity")
    array = array.astype(np.int64)
    low, high = int(array.min()), int(array.max())
    if low < 0 or (below is not None and high >= below):
        limit = "" if below is None else f" below {below}"
        raise InputError(
            f"{name}: expected whole numbers from 0{limit}, got values in [{low}, {high}]"
        )
    return array


def masses(name: str, value: Array) -> None:
    """Check that masses are not negative and sum to 1."""
    if value.min() < 0:
        raise InputError(f"{name}: expected masses >= 0, got {value.min():g}")
    total = float(value.sum())
    if abs(total - 1) > SUM_TOLERANCE:
        raise InputError(
            f"{name}: expected masses that sum to 1, got a sum of {total:g}; "
            "divide them by their sum with orbical.bounds.normalize"
        )


def partition(name: str, ids: Any) -> Array:
    """Check that every sample has an orbit."""
    array = as_numpy(name, ids)
    if array.dtype.kind in "iuf":
        unassigned = ~np.isfinite(array) | (array < 0)
        if unassigned.any():
            raise InputError(
                f"{name}: expected a partition of the samples, each in exactly one orbit, got "
                f"{int(unassigned.sum())} samples without an orbit (negative or NaN id)"
            )
    return array


def sample_mass(mass: Any | None, size: int) -> Array:
    """Return the mass of each sample `[size]`: the given ones, or equal ones."""
    if mass is None:
        return np.full(size, 1 / size)
    weight = numbers("mass", mass, "sample", size)
    masses("mass", weight)
    return weight


def level(value: float) -> float:
    """Check the nominal coverage of an interval."""
    if not 0 < value < 1:
        raise InputError(f"level: expected a probability in (0, 1), got {value!r}")
    return value


def probabilities(name: str, value: Array) -> None:
    """Check that values lie in [0, 1]."""
    low, high = float(value.min()), float(value.max())
    if low < 0 or high > 1:
        raise InputError(f"{name}: expected values in [0, 1], got values in [{low:g}, {high:g}]")


def normalize(mass: Any) -> Array:
    """Divide masses by their sum; tables never rescale them on their own.

    Args:
        mass: masses of any shape.

    Returns:
        Masses of the same shape that sum to 1.

    Raises:
        InputError: if a mass is negative or not finite, or all are 0.

    Example:
        >>> normalize([[2, 2], [4, 0]])
        array([[0.25, 0.25],
               [0.5 , 0.  ]])
    """
    array = as_numpy("mass", mass, np.float64)
    if array.size == 0 or not np.isfinite(array).all() or array.min() < 0:
        raise InputError("mass: expected finite masses >= 0, got others")
    total = array.sum()
    if total <= 0:
        raise InputError("mass: expected at least one positive mass, got only 0")
    return np.asarray(array / total)
