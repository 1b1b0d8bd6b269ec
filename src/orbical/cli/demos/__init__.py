"""The demos, one module each: a new demo is a new module and nothing else.

A module has a line `PURPOSE` and a function `run(options) -> DemoResult`. It uses only data that
ship with packages or that orbical generates.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from ...errors import check_name

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ...store import Scan

DEMOS = sorted(module.name for module in pkgutil.iter_modules(__path__))


@dataclass(frozen=True)
class DemoOptions:
    """The options of a demo; None stands for its own number of samples and the shipped weights."""

    name: str
    out: Path
    samples: int | None
    overwrite: bool
    weights: Path | None = None

    @property
    def store(self) -> Path:
        """The path of the scan; all demos share a folder, so that one view shows them all."""
        return self.out / f"{self.name}.zarr"

    def scan(self, models: Mapping[str, object], data: object, **settings: Any) -> Scan:
        """Scan the models and save the result."""
        from ...scanning import scan

        return scan(models, data, out=self.store, overwrite=self.overwrite, **settings)


@dataclass(frozen=True)
class DemoResult:
    """The results of a demo: the scan, its models for live inference, and figures by name."""

    scan: Scan
    models: Mapping[str, object]
    figures: Mapping[str, Figure]


def most_variable(scan: Scan, model: str | None = None) -> int:
    """Return the sample whose score varies most over the group, for one model or on average."""
    score = scan.data["score"] if model is None else scan.data["score"].sel(model=[model])
    return int(score.std("element").mean("model").values.argmax())


def usual_figures(
    scan: Scan, sample: int, image: object, classes: Sequence[str] | None
) -> dict[str, Figure]:
    """Draw the mean score at every element, and the response of one sample."""
    from ... import figures, nero

    response = nero.individual(scan, sample)
    if classes is not None:
        response = response.assign_coords(label=classes[int(response["label"])])
    return {
        "aggregate": figures.aggregate(nero.aggregate(scan)),
        "individual": figures.individual(response, image=image),
    }


def find_demo(name: str) -> ModuleType:
    """Import a demo by name.

    >>> find_demo("digit")
    Traceback (most recent call last):
        ...
    orbical.errors.InputError: NAME: unknown name 'digit'; did you mean 'digits'? ...
    """
    check_name("NAME", name, DEMOS)
    return importlib.import_module(f"{__name__}.{name}")
