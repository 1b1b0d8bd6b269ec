"""The papers' experiments, each one command: `orbical study NAME`.

A study is a module with a function `main(arguments)` that reads its own options, so that it can
also run as `python -m orbical.studies.NAME` where only torch and numpy are installed.
"""

from __future__ import annotations

import importlib
from types import ModuleType

from orbical.errors import unknown_name

STUDIES = {
    "esd": "Training for calibration: MNIST and CIFAR-10 with six losses (ESD paper).",
}


def study(name: str) -> ModuleType:
    """Import one study by its name.

    Args:
        name: one of `STUDIES`.

    Returns:
        The study's module.

    Example:
        >>> study("esd").__name__
        'orbical.studies.esd'
        >>> study("esb")
        Traceback (most recent call last):
            ...
        orbical.errors.InputError: name: unknown name 'esb'; did you mean 'esd'? (known: esd)
    """
    if name not in STUDIES:
        raise unknown_name("name", name, STUDIES)
    return importlib.import_module(f"{__name__}.{name}")
