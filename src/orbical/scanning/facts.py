"""What is stored once about the samples: names, labels, class names and metadata columns."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..errors import InputError
from .probing import CLASSES, truth_arrays
from .recipe import Recipe

if TYPE_CHECKING:
    from ..store.layout import ArraySpec, Fixed

_RESERVED = ("class", "element", "group", "label", "model", "name", "sample", "units", "weight")


def sample_facts(recipe: Recipe, results: Mapping[str, ArraySpec]) -> dict[str, Fixed]:
    """Return the arrays that are known before the scan; `results` are those that it fills."""
    from ..store.layout import Fixed

    found = truth_arrays(recipe.task, recipe.target)
    if recipe.samples.names is not None:
        about = {"units": "", "long_name": "name of the sample"}
        found["name"] = Fixed(("sample",), np.array(recipe.samples.names), about)
    classes = getattr(recipe.task, "classes", None)
    if isinstance(classes, list):  # a task of the user's may mean a number by it
        _check_classes(classes, results)
        about = {"meaning": "class names", "units": "", "long_name": "name of the class"}
        found["class_name"] = Fixed(("class",), np.array(classes), about)
    declared = recipe.task.variables(True)  # a score that is none would look like one
    taken = {*_RESERVED, *declared, *results, *found, *recipe.group.coords}
    for name, values in recipe.samples.columns.items():
        own = re.sub(r"\W+", "_", str(name)).strip("_")  # xarray separates names by spaces
        if not own or own in taken:
            raise InputError(
                "data",
                "metadata columns with names of their own",
                f"{name!r}, which a scan uses itself",
                remedy="rename it, or choose others with columns= (--columns)",
            )
        taken.add(own)
        about = {"meaning": "metadata", "units": "", "long_name": str(name)}
        found[own] = Fixed(("sample",), np.asarray(values), about)
    return found


def _check_classes(classes: Sequence[str], results: Mapping[str, ArraySpec]) -> None:
    """Refuse names of another number of classes than the models have."""
    for spec in results.values():
        sizes = dict(zip(spec.dims, spec.shape, strict=True))
        count = spec.attributes.get(CLASSES, sizes.get("class"))
        if count not in (None, len(classes)):
            raise InputError(
                "classes",
                f"the names of the model's {count} classes",
                len(classes),
                remedy="pass all of them with classes= (--classes)",
            )
