"""The papers' experiments, each one command: `orbical-study NAME`. See `studies/README.md`."""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import NamedTuple

from orbical.errors import unknown_name


class Entry(NamedTuple):
    """A line of the list of studies: the package it lives in, and what it is about."""

    module: str
    purpose: str


STUDIES = {
    "esd": Entry("esd", "Training for calibration: MNIST and CIFAR-10 with six losses."),
    "swiss-roll": Entry("swiss_roll", "Harmful invariance: accuracy ceiling and ECE interval."),
    "digits": Entry("digit_symmetry", "What rotation invariance costs on real digits."),
    "digits-nero": Entry("digits_nero", "NERO plots of all MNIST test digits under rotation."),
    "point-clouds": Entry("point_clouds", "Point clouds under rotation: three networks."),
    "detection": Entry("detection", "Detectors under shifts: COCO objects, five jitter levels."),
    "piv": Entry("piv", "Flow in particle images: D4, time reversal and any rotation."),
    "vector-field": Entry("vector_field", "Vector fields: where a wrong symmetry puts variance."),
    "spectra": Entry("spectra", "Infrared spectra: where along one uncertainty bleeds."),
    "galaxies": Entry("galaxies", "Galaxies: group order and blur, accuracy and calibration."),
    "qm9": Entry("qm9", "Molecules: what a correct symmetry does to errors and uncertainty."),
    "examples": Entry("examples", "The six examples of the equivariant-calibration paper."),
}

INDEX = "index"  # the page before all of them, filled from the results of each


def study(name: str) -> ModuleType:
    """Import one study by its name.

    Args:
        name: One of `STUDIES`, or `INDEX` for the page that lists them.

    Returns:
        The study's package, with the `framework.Study` as its attribute `study`.

    Example:
        >>> study("swiss-roll").study.name
        'swiss-roll'
        >>> study("esb")
        Traceback (most recent call last):
            ...
        orbical.errors.InputError: name: unknown name 'esb'; did you mean 'esd'? (known: ...)
    """
    if name not in (*STUDIES, INDEX):
        raise unknown_name("name", name, STUDIES)
    module = "overview" if name == INDEX else STUDIES[name].module
    return importlib.import_module(f"{__name__}.{module}")
