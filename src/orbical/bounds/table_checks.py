"""Checks of the arguments of tables."""

from __future__ import annotations

import numpy as np

from .._arrays import ArrayLike, as_numpy
from ..errors import InputError, real_number

Array = np.ndarray
SUM_TOLERANCE = 1e-6


def checked_table_numbers(name: str, value: ArrayLike, dims: str, size: int | None = None) -> Array:
    """Return a finite float64 array with the axes `dims`, such as `"orbit label"`.

    Example:
        >>> checked_table_numbers("mass", [[0.5, 0.5]], "orbit label").shape
        (1, 2)
    """
    array = as_numpy(name, value, np.float64)
    axes = dims.split()
    if array.ndim != len(axes):
        raise InputError(name, f"shape [{', '.join(axes)}]", array)
    if array.size == 0:
        raise InputError(name, f"at least one value along each of {axes}", "none")
    if not np.isfinite(array).all():
        raise InputError(name, "finite numbers", "NaN or infinite values")
    if size is not None and len(array) != size:
        raise InputError(name, f"one for each of {size} {axes[0]}s", len(array))
    return array


def columns(name: str, value: ArrayLike) -> Array:
    """Return values `[N]` or `[N, D]` as `[N, D]`."""
    array = as_numpy(name, value, np.float64)
    return checked_table_numbers(
        name, array[:, None] if array.ndim == 1 else array, "point coordinate"
    )


def checked_table_representation(matrices: ArrayLike, dimension: int) -> Array:
    """Return invertible matrices `[K, D, D]`."""
    array = as_numpy("representation", matrices, np.float64)
    if array.ndim != 3 or array.shape[1:] != (dimension, dimension):
        raise InputError(
            "representation", f"matrices of shape [K, {dimension}, {dimension}]", array
        )
    if not np.isfinite(array).all() or np.linalg.cond(array).max() > 1e12:
        raise InputError("representation", "finite and invertible matrices", "others")
    return array


def of_kind(table: object, *kinds: type) -> None:
    """Refuse what is not a table of one of these kinds; a scan is told how it becomes one."""
    if not isinstance(table, kinds):
        first = kinds[0].__name__
        wanted = ("an " if first[0] in "AEIO" else "a ") + " or ".join(k.__name__ for k in kinds)
        remedy = f"make one with {first}.from_scan" if hasattr(table, "record") else ""
        raise InputError("table", wanted, type(table), remedy=remedy)


def orthogonal(matrices: Array) -> bool:
    """Check whether all matrices `[K, D, D]` keep lengths.

    >>> orthogonal(np.eye(2)[None]), orthogonal(2 * np.eye(2)[None])
    (True, False)
    """
    identity = np.eye(matrices.shape[1])
    return bool(np.allclose(matrices.transpose(0, 2, 1) @ matrices, identity, atol=1e-9))


def checked_table_integers(
    name: str, value: ArrayLike, size: int, below: int | None = None
) -> Array:
    """Return an int64 array `[size]` of values in [0, below).

    Example:
        >>> checked_table_integers("predicted", [0, 2], size=2, below=3)
        array([0, 2])
    """
    array = as_numpy(name, value)
    if array.shape == (size, 1):
        array = array[:, 0]
    if array.shape != (size,):
        one_hot = array.ndim == 2 and len(array) == size
        hint = "pass the indices of one-hot rows, .argmax(1)" if one_hot else ""
        raise InputError(name, f"shape [{size}]", array, remedy=hint)
    if array.dtype.kind in "USO":
        hint = "number them with numpy.unique(names, return_inverse=True)[1]"
        raise InputError(name, "whole numbers", "names", remedy=hint)
    if array.dtype.kind not in "iubf":
        raise InputError(name, "whole numbers", f"dtype {array.dtype}")
    if array.dtype.kind == "f" and not np.all(np.isfinite(array) & (array == np.floor(array))):
        raise InputError(name, "whole numbers", "fractions, NaN or infinity")
    array = array.astype(np.int64)
    low, high = int(array.min()), int(array.max())
    if low < 0 or (below is not None and high >= below):
        limit = "" if below is None else f" below {below}"
        raise InputError(name, f"whole numbers from 0{limit}", f"values in [{low}, {high}]")
    return array


def check_table_masses(name: str, least: float, total: float) -> None:
    """Check that masses, of which the least and the sum are given, are >= 0 and sum to 1."""
    if least < 0:
        raise InputError(name, "masses >= 0", f"{least:g}")
    if abs(total - 1) > SUM_TOLERANCE:
        raise InputError(
            name,
            "masses that sum to 1",
            f"a sum of {total:g}",
            remedy="divide them by their sum with orbical.bounds.normalize",
        )


def partition(name: str, ids: ArrayLike) -> Array:
    """Check that every sample has an orbit."""
    array = as_numpy(name, ids)
    if array.dtype.kind in "iuf":
        unassigned = ~np.isfinite(array) | (array < 0)
        if unassigned.any():
            raise InputError(
                name,
                "a partition of the samples, each in exactly one orbit",
                f"{int(unassigned.sum())} samples without an orbit (negative or NaN id)",
            )
    return array


def sample_mass(mass: ArrayLike | None, size: int) -> Array:
    """Return the mass of each sample `[size]`: the given ones, or equal ones."""
    if mass is None:
        return np.full(size, 1 / size)
    weight = checked_table_numbers("mass", mass, "sample", size)
    check_table_masses("mass", weight.min(), weight.sum())
    return weight


def level(value: float) -> float:
    """Check the nominal coverage of an interval."""
    return real_number("level", value, "in (0, 1)", "a probability")


def probabilities(name: str, value: Array) -> None:
    """Check that values lie in [0, 1]."""
    low, high = float(value.min()), float(value.max())
    if low < 0 or high > 1:
        raise InputError(name, "values in [0, 1]", f"values in [{low:g}, {high:g}]")


def normalize(mass: ArrayLike) -> Array:
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
        raise InputError("mass", "finite masses >= 0", "others")
    total = array.sum()
    if total <= 0:
        raise InputError("mass", "at least one positive mass", "only 0")
    return np.asarray(array / total)
