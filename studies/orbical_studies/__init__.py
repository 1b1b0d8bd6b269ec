"""The papers' experiments, each one command: `orbical study NAME`.

A study is a package with a function `main(arguments)` that reads its own options, so that it can
also run as `python -m orbical_studies.NAME` where only torch and numpy are installed. Its modules,
as far as it needs them:

* `settings`, what is varied; `packing`, data for another machine; `training` and `measures`;
* `collecting`, from raw answers to the CSV files beside the page, which are all that follows;
* `numbers`, how a value is found in them; `tables`, `findings` (sentences that the numbers choose)
  and `figures`;
* `page`, with `tables_of(folder)`, which makes all that the page shows, and `report`;
  `commands`, with `main`.
"""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import NamedTuple

from orbical.errors import unknown_name


class Study(NamedTuple):
    """A study: the module it lives in, and what it asks."""

    module: str
    purpose: str


STUDIES = {
    "esd": Study("esd", "Training for calibration: MNIST and CIFAR-10 with six losses."),
    "swiss-roll": Study("swiss_roll", "Harmful invariance: accuracy ceiling and ECE interval."),
    "digits": Study("digit_symmetry", "What rotation invariance costs on real digits."),
    "digits-nero": Study("digits_nero", "NERO plots of all MNIST test digits under rotation."),
    "point-clouds": Study("point_clouds", "Point clouds under rotation: three networks."),
    "detection": Study("detection", "Detectors under shifts: COCO objects, five jitter levels."),
    "piv": Study("piv", "Flow in particle images: D4, time reversal and any rotation."),
    "vector-field": Study("vector_field", "Vector fields: where a wrong symmetry puts variance."),
    "spectra": Study("spectra", "Infrared spectra: where along one uncertainty bleeds."),
    "galaxies": Study("galaxies", "Galaxies: group order and blur, accuracy and calibration."),
    "qm9": Study("qm9", "Molecules: what a correct symmetry does to errors and uncertainty."),
    "examples": Study("examples", "The six examples of the equivariant-calibration paper."),
}


def study(name: str) -> ModuleType:
    """Import one study by its name.

    Args:
        name: one of `STUDIES`.

    Returns:
        The study's module.

    Example:
        >>> study("esd").__name__
        'orbical_studies.esd'
        >>> study("esb")
        Traceback (most recent call last):
            ...
        orbical.errors.InputError: name: unknown name 'esb'; did you mean 'esd'? (known: ...)
    """
    if name not in STUDIES:
        raise unknown_name("name", name, STUDIES)
    return importlib.import_module(f"{__name__}.{STUDIES[name].module}")
