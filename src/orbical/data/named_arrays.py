"""Arrays with names: `.npz` files, Zarr groups and xarray data sets, by one convention."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import InputError
from .array_source import Arrays
from .source import Source, data_stamp

_USUAL = {"x": ("images", "inputs", "X"), "y": ("labels", "targets")}


class NamedArrays(Arrays):
    """Arrays by name: `x` (or `x_NAME` for each field), and optionally `y` and `name`.

    Without `x`, arrays `images` (or `inputs`, `X`) and `labels` (or `targets`) are taken for both.
    Other arrays with one number or text for each sample are metadata columns.

    Args:
        arrays: the arrays.
        where: the file or object, for messages.
        path: the file or folder that they come from, if any.
    """

    def __init__(self, arrays: Mapping[str, Any], where: str, path: Path | None = None) -> None:
        arrays = _named_arrays_as_x_and_y(arrays)
        fields = {name.removeprefix("x_"): arrays[name] for name in arrays if name[:2] == "x_"}
        if "x" not in arrays and not fields:
            raise InputError(
                "data",
                "an array x (or x_NAME for each field) and optionally y",
                f"{', '.join(arrays) or 'no arrays'} in {where!r}",
                remedy="rename them, e.g. numpy.savez(file, x=images, y=labels)",
            )
        super().__init__(arrays.get("x", fields or None), arrays.get("y"))
        self._path = path
        rest = {
            name: arrays[name] for name in arrays if name not in ("x", "y") and name[:2] != "x_"
        }
        self.columns = {name: np.asarray(one) for name, one in rest.items() if self._fits(one)}
        names = self.columns.pop("name", None)
        self.names = None if names is None else [str(name) for name in names]
        if "classes" in rest and np.ndim(rest["classes"]) == 1:
            self.classes = [str(name) for name in np.asarray(rest["classes"])]
            self.columns.pop("classes", None)

    def _fits(self, array: object) -> bool:
        shape, kind = getattr(array, "shape", ()), np.dtype(getattr(array, "dtype", "O")).kind
        return shape == (len(self),) and kind in "fiubUTO"

    def stamp(self) -> str | None:
        """Return a hash of the sizes and times of the files."""
        return super().stamp() if self._path is None else _files_stamp(self._path)


def _named_arrays_as_x_and_y(arrays: Mapping[str, object]) -> Mapping[str, Any]:
    """Return arrays with `x` and `y` for the usual names of inputs and targets, if there is no x.

    >>> [*_named_arrays_as_x_and_y({"images": 0, "labels": 1, "age": 2})]
    ['x', 'y', 'age']
    >>> [*_named_arrays_as_x_and_y({"x": 0, "labels": 1})]
    ['x', 'labels']
    """
    if any(name == "x" or name.startswith("x_") for name in arrays):
        return arrays
    usual = {known: name for name, names in _USUAL.items() for known in names if known in arrays}
    if sorted(usual.values()) not in (["x"], ["x", "y"]):  # none, or no one knows which
        return arrays
    return {usual.get(name, name): array for name, array in arrays.items()}


def _files_stamp(path: Path) -> str:
    """Return a hash of the size and time of a file, or of all files in a folder."""
    if path.is_file():
        return data_stamp({path.name: path})
    files = sorted(file for file in path.rglob("*") if file.is_file())
    return data_stamp({file.relative_to(path).as_posix(): file for file in files})


def from_zarr(data: Any) -> Source | None:
    """Return the source of an opened Zarr group, which is not imported for it."""
    if type(data).__name__ != "Group" or type(data).__module__.partition(".")[0] != "zarr":
        return None
    return NamedArrays(dict(data.arrays()), "the Zarr group")


def from_xarray(data: Any) -> Source | None:
    """Return the source of an xarray object, which is not imported for it."""
    kinds = {kind.__name__: kind.__module__.partition(".")[0] for kind in type(data).__mro__}
    if kinds.get("Dataset") == "xarray":
        variables = {str(name): data[name] for name in data.variables if name not in data.dims}
        inputs = [name for name in data.data_vars if data[name].ndim > 1]
        if "x" not in variables and len(inputs) == 1 and not str(inputs[0]).startswith("x_"):
            variables["x"] = variables.pop(str(inputs[0]))
        return NamedArrays(variables, "the xarray data set")
    if kinds.get("DataArray") == "xarray":
        lead = data.dims[:1]
        along = {str(name): one for name, one in data.coords.items() if one.dims == lead}
        along = {name: one for name, one in along.items() if name not in data.dims}
        return NamedArrays({**along, "x": data.variable}, "the xarray array")
    return None
