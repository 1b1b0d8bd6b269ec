"""The demos: one file each, found by its name, so that a new one is a new file and nothing else.

A demo's module has a line `PURPOSE` and a function `run(order) -> Made`. It uses only data that
ship with the packages or that orbical generates.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

from ...errors import unknown_name

DEMOS = sorted(module.name for module in pkgutil.iter_modules(__path__))


@dataclass(frozen=True)
class Order:
    """What a user asked of a demo; `samples` is None where the demo shall choose."""

    name: str
    out: Path
    samples: int | None
    overwrite: bool
    train: bool

    @property
    def store(self) -> Path:
        """Where the scan goes: all demos in one folder, so that one view shows them all."""
        return self.out / f"{self.name}.zarr"

    @property
    def folder(self) -> Path:
        """Where figures and weights go."""
        return self.out / self.name


@dataclass(frozen=True)
class Made:
    """What a demo made: the scan, its models for live inference, and figures by name."""

    scan: Any
    models: Mapping[str, Any]
    figures: Mapping[str, Any] = field(default_factory=dict)


def find(name: str) -> ModuleType:
    """Import a demo by its name.

    >>> find("digit")
    Traceback (most recent call last):
        ...
    orbical.errors.InputError: NAME: unknown name 'digit'; did you mean 'digits'? ...
    """
    if name not in DEMOS:
        raise unknown_name("NAME", name, DEMOS)
    return importlib.import_module(f"{__name__}.{name}")
