"""Small reference networks, one module per family; some with weights that ship with the package."""

from __future__ import annotations

import pkgutil
from typing import TYPE_CHECKING

from .._lazy import lazy_exports

__all__ = sorted(m.name for m in pkgutil.iter_modules(__path__) if not m.name.startswith("_"))

if TYPE_CHECKING:
    from . import (
        classical_flow,
        detector,
        detector_training,
        digits,
        flownet,
        flownet_training,
        group_cnn,
        layout,
        pointnet,
        pointnet_training,
    )
else:  # so that `python -m orbical.zoo.digits` does not find itself already imported
    __getattr__ = lazy_exports(__name__, {}, modules=__all__)
