"""Small reference networks, one module per family; some with weights that ship with the package."""

from __future__ import annotations

import pkgutil
from typing import TYPE_CHECKING

from .._lazy import lazy_exports

__all__ = sorted(m.name for m in pkgutil.iter_modules(__path__) if not m.name.startswith("_"))

if TYPE_CHECKING:
    from . import classical_flow, detector, digits, flownet, group_cnn, layout, pointnet
else:
    __getattr__ = lazy_exports(__name__, {}, modules=__all__)
