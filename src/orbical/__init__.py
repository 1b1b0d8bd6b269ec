"""orbical: how models behave, and how far to trust them, along the orbits of a symmetry group.

    import orbical as ob

The names below are the public face; everything else may change.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_MODULES = (
    "actions",
    "bounds",
    "calibration",
    "datasets",
    "errors",
    "figures",
    "groups",
    "losses",
    "nero",
    "predictors",
    "recalibrate",
    "reduce",
    "studies",
    "tasks",
    "testing",
    "training",
    "zoo",
)
_FUNCTIONS = {
    "scan": "engine",
    "load": "store",
    "Scan": "store",
    "view": "interface",
    "report": "interface",
}

if TYPE_CHECKING:  # the same names, for type checkers and editors
    from . import (
        actions,
        bounds,
        calibration,
        datasets,
        errors,
        figures,
        groups,
        losses,
        nero,
        predictors,
        recalibrate,
        reduce,
        studies,
        tasks,
        testing,
        training,
        zoo,
    )
    from .engine import scan
    from .interface import report, view
    from .store import Scan, load

__all__ = [*_MODULES, *_FUNCTIONS, "__version__"]


def __getattr__(name: str) -> Any:
    # Loaded on first use: `import orbical` stays fast, and a machine that only trains
    # with our losses needs neither xarray nor zarr nor matplotlib.
    if name in _MODULES:
        return importlib.import_module(f"{__name__}.{name}")
    if name in _FUNCTIONS:
        return getattr(importlib.import_module(f"{__name__}.{_FUNCTIONS[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
