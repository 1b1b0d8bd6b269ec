"""orbical: evaluate models, and how far to trust them, along the orbits of a symmetry group.

    import orbical as ob

    scan = ob.scan(net, (images, labels), group="rotations:72", task="classification")
    ob.nero.summary(scan)                            # at the identity, on average, at worst
    ob.figures.aggregate(ob.nero.aggregate(scan))    # angle by angle, as a figure
    ob.view(scan)                                    # in the browser, or in a notebook

Four questions, and where to find the answers:

* How does a model behave along the orbits of its inputs? `scan`, `nero`, `embedding`, `view`,
  `report`, `figures`; `worst_case` and `flips` search between the sampled elements. `groups`,
  `actions` and `tasks` define what moves and what is scored.
* Can its confidence be trusted there? `calibration`; sets with guaranteed coverage are in
  `conformal`, and when not to answer in `selective`. `check` holds a scan against thresholds.
* What does a built-in symmetry allow, at best and at worst? `bounds`.
* How do I make it better? `advise` says what helps; `losses`, `training`, `recalibrate`.

`testing.equivariance_error` checks a network in one line, `integrations` connects other tools, and
`datasets` and `zoo` have data and networks to start with. These names are the public API; anything
else may change.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._lazy import lazy_exports

__version__ = "0.1.0"

if TYPE_CHECKING:
    from . import (
        actions,
        advice,
        bounds,
        calibration,
        conformal,
        data,
        datasets,
        embedding,
        errors,
        figures,
        groups,
        integrations,
        interface,
        losses,
        nero,
        predictors,
        recalibrate,
        selective,
        tasks,
        testing,
        training,
        zoo,
    )
    from .adversarial import flips, worst_case
    from .advice import advise
    from .checks import check
    from .interface import report, view
    from .scanning import scan
    from .store import Scan, load

__all__ = [
    "Scan", "__version__", "actions", "advice", "advise", "bounds", "calibration", "check",
    "conformal", "data", "datasets", "embedding", "errors", "figures", "flips", "groups",
    "integrations", "interface", "load", "losses", "nero", "predictors", "recalibrate", "report",
    "scan", "selective", "tasks", "testing", "training", "view", "worst_case", "zoo",
]  # fmt: skip

if not TYPE_CHECKING:  # a machine that only trains with our losses needs neither xarray nor zarr
    __getattr__ = lazy_exports(
        __name__,
        {
            "adversarial": "flips worst_case",
            "advice": "advise",
            "checks": "check",
            "interface": "report view",
            "scanning": "scan",
            "store": "Scan load",
        },
        modules=__all__,
    )


def __dir__() -> list[str]:
    return sorted(__all__)
