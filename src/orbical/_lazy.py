"""Names that are imported on first use: those of a package, pandas, xarray, SciPy's rotations."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING

__all__ = ["lazy_exports", "pd", "transform", "xr"]


class _Package:
    """A package that is imported when one of its names is first used."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> object:
        return getattr(importlib.import_module(self._name), attribute)


if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr
    from scipy.spatial import transform
else:  # which take a second to load, and which nothing needs until a table or an array is made
    pd, xr, transform = _Package("pandas"), _Package("xarray"), _Package("scipy.spatial.transform")


def lazy_exports(
    package: str, names: Mapping[str, str], modules: Collection[str] = ()
) -> Callable[[str], object]:
    """Return the `__getattr__` of a package that imports some of its names on first use.

    Type checkers read the imports of the same names under `TYPE_CHECKING` instead; a test
    compares the two.

    Args:
        package: `__name__` of the package.
        names: What each of its modules exports, as one text, by the name of the module.
        modules: Names that are modules, if `names` does not have them.

    Example:
        >>> lazy_exports("collections", {"abc": "Sized Hashable"})("Sized").__name__
        'Sized'
    """
    homes = {name: module for module, exported in names.items() for name in exported.split()}

    def resolve(name: str) -> object:
        if name in homes:
            return getattr(importlib.import_module(f"{package}.{homes[name]}"), name)
        if name in modules:
            return importlib.import_module(f"{package}.{name}")
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return resolve
