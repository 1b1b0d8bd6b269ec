"""The reader of arrays for code that computes with NumPy, and needs no torch for that."""

from __future__ import annotations

from typing import Any

import numpy as np

from .errors import InputError

ArrayLike = Any
"""A torch tensor, a NumPy array or scalar, a pandas or xarray object, a (nested) list of numbers,
or anything else with `__dlpack__` or `__array__`."""


def as_numpy(name: str, values: ArrayLike, dtype: type | None = None) -> np.ndarray:
    """Read an argument as a NumPy array, for code that computes with NumPy.

    Example:
        >>> as_numpy("mass", [0.5, 0.5])
        array([0.5, 0.5])
    """
    if not isinstance(values, np.ndarray | list | tuple):
        from ._arrays import as_array

        values = as_array(name, values).detach().cpu().numpy()
    try:
        return np.asarray(values, dtype=dtype)
    except (TypeError, ValueError) as error:
        raise InputError(name, "an array of numbers", error) from error
