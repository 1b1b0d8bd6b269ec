"""Which source reads what a user passed as data."""

from __future__ import annotations

import os
from collections.abc import Iterator
from inspect import isroutine
from pathlib import Path
from typing import Any

from .._imports import name_of
from ..errors import InputError
from .array_files import read_npy
from .arrays import Arrays, check_labels, whole_array
from .files import open_path
from .graphs import from_graphs
from .hugging_face import from_hugging_face
from .named_arrays import from_xarray, from_zarr
from .source import Relabeled, Source
from .torch_datasets import from_dataset

_RECOGNIZED = (from_graphs, from_hugging_face, from_dataset, from_xarray, from_zarr)
"""Each returns a source for the data of its kind, and None for any other."""


def as_source(data: Any) -> Source:
    """Return the source of any data; a tuple of two is `(x, y)`, a list is a list of samples.

    >>> len(as_source([[1.0, 2.0], [3.0, 4.0]])), as_source(([[1.0, 2.0]], [3])).labels.tolist()
    (2, [3])
    """
    if isinstance(data, tuple) and len(data) == 2:
        inputs, labels = data
        known = _known(inputs)
        if isinstance(labels, str | os.PathLike):
            labels = read_npy(Path(labels), "labels")
        if known is None:
            return Arrays(inputs, labels)
        labels = None if labels is None else whole_array(labels, "labels")
        check_labels(labels, len(known))
        return Relabeled(known, labels)
    return _known(data) or Arrays(data)


def _known(data: Any) -> Source | None:
    """Return the source of anything but arrays and trees of them."""
    if isinstance(data, Source):
        return data
    if isinstance(data, str | os.PathLike):
        return open_path(Path(data))
    if isinstance(data, Iterator):
        raise InputError(
            "data",
            "samples of known number",
            f"a {type(data).__name__}",
            remedy="pass orbical.data.Stream(items, length)",
        )
    known = next((found for kind in _RECOGNIZED if (found := kind(data)) is not None), None)
    if known is None and isroutine(data):
        raise InputError(
            "data",
            "samples",
            f"the function {name_of(data)}",
            remedy="pass what it returns, or, if it yields samples, "
            "orbical.data.Stream(function, length)",
        )
    return known
