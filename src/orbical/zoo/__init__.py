"""Small reference networks, one module per family; some with weights that ship with the package."""

from __future__ import annotations

import importlib
import pkgutil
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from . import digits as digits

_MODULES = [module.name for module in pkgutil.iter_modules(__path__)]
__all__ = sorted(name for name in _MODULES if not name.startswith("_"))


def __getattr__(name: str) -> ModuleType:
    # On first use, so that `python -m orbical.zoo.digits` does not find itself already imported.
    if name in __all__:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
