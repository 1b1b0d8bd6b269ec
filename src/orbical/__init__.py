"""orbical: how models behave, and how far to trust them, along the orbits of a symmetry group.

    import orbical as ob

    scan = ob.scan(net, (images, labels), group="rotations:72", task="classification")
    ob.nero.summary(scan)                            # upright, over the orbit, at its worst
    ob.figures.aggregate(ob.nero.aggregate(scan))    # angle by angle, as a figure
    ob.view(scan)                                    # or in the browser, or in a notebook

Four questions, and where their answers are:

* How does a model behave along the orbits of its inputs? `scan`, `nero`, `embedding`, `view`,
  `report`, `figures`; `groups`, `actions` and `tasks` say what moves and what is judged.
* Can its confidence be trusted there? `calibration`.
* What does a built-in symmetry make possible, at best and at worst? `bounds`.
* How is it made better? `losses`, `training`, `recalibrate`.

`testing.equivariance_error` audits a network in a line; `datasets` and `zoo` are data and networks
to begin with. All of these names are the public face; everything else
may change.
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
    "embedding",
    "errors",
    "figures",
    "groups",
    "losses",
    "nero",
    "predictors",
    "recalibrate",
    "tasks",
    "testing",
    "training",
    "zoo",
)
_FUNCTIONS = {
    "scan": "scanning",
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
        embedding,
        errors,
        figures,
        groups,
        losses,
        nero,
        predictors,
        recalibrate,
        tasks,
        testing,
        training,
        zoo,
    )
    from .interface import report, view
    from .scanning import scan
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
