"""How sets of samples are made: by a lasso on a map, of sample numbers, or from other sets."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Mapping
from functools import partial

import numpy as np

from ...errors import InputError, check_name
from ..selection import Selection, selected_polygon, set_name
from .class_answers import in_confusion_cell
from .sample_maps import sample_map
from .subset_curves import in_fan_band
from .subset_request import Answer, SubsetRequest, keep_set, mask_of_subset, packed_subset

Array = np.ndarray
_MAP = ("method", "of", "reference")


def sample_set(request: SubsetRequest) -> Answer:
    """Answer the hash, the count and the bits of the set that a recipe makes.

    A recipe is the hash of a set, or an object with one field: the name of a maker and what it is
    given, such as `{"union": ["0123456789abcdef", {"samples": [3, 5]}]}`.
    """
    mask = set_of_recipe(request, request.message.get("recipe"))
    about = {"hash": keep_set(request.view, mask), "count": int(mask.sum())}
    return about, {"bits": packed_subset(mask)}


def set_of_recipe(request: SubsetRequest, recipe: object) -> Array:
    """Return the mask `[N]` of the set that a recipe makes."""
    if isinstance(recipe, str):
        return mask_of_subset(request.view, set_name("recipe", recipe))
    if not isinstance(recipe, Mapping) or len(recipe) != 1:
        raise _expected("a hash or an object with one field", recipe)
    [(name, given)] = recipe.items()
    check_name("recipe", name, MAKERS)
    return MAKERS[name](request, given)


def _expected(what: str, got: object) -> InputError:
    return InputError("recipe", what, type(got))


def _lasso(request: SubsetRequest, given: object) -> Array:
    """Return the samples inside a polygon on the map that is stated with it."""
    if not isinstance(given, Mapping):
        raise _expected("a polygon with its map", given)
    stated = Selection.from_json({name: given[name] for name in _MAP if name in given})
    of_map = request.but(**{name: getattr(stated, name) for name in _MAP})
    return inside_lasso(np.asarray(selected_polygon(given.get("polygon"))), sample_map(of_map).xy)


def inside_lasso(corners: Array, xy: Array) -> Array:
    """Check which points `[N, 2]` lie inside a polygon `[V, 2]`, by the even-odd rule.

    >>> triangle = np.array([[0, 0], [1, 0], [0, 1]])
    >>> inside_lasso(triangle, np.array([[0.2, 0.2], [0.9, 0.9]])).tolist()
    [True, False]
    """
    from matplotlib.path import Path

    return Path(corners).contains_points(xy)


def _samples_of_recipe(request: SubsetRequest, given: object) -> Array:
    """Return the samples of a list of numbers."""
    last = request.view.samples - 1
    numbers = np.asarray(given if isinstance(given, list) else None)
    mask = np.zeros(last + 1, bool)
    if numbers.shape == (0,):
        return mask
    if numbers.dtype.kind != "i" or numbers.ndim != 1:
        raise _expected("a list of sample numbers", given)
    if numbers.min() < 0 or numbers.max() > last:
        got = f"{numbers.min()} to {numbers.max()}"
        raise InputError("recipe samples", f"0 to {last}", got)
    mask[numbers] = True
    return mask


def _bits_of_recipe(request: SubsetRequest, given: object) -> Array:
    """Return the samples of a mask that was packed into bits, in base64."""
    count = request.view.samples
    try:
        bits = np.frombuffer(base64.b64decode(given, validate=True), np.uint8)  # type: ignore[arg-type]
    except (TypeError, ValueError, binascii.Error):
        raise _expected("bits in base64", given) from None
    if len(bits) != -(-count // 8):
        raise InputError("recipe bits", f"{-(-count // 8)} bytes for {count} samples", len(bits))
    return np.unpackbits(bits, count=count, bitorder="little").view(bool)


def _combined(
    combine: Callable[[Array, Array], Array], request: SubsetRequest, given: object
) -> Array:
    if not isinstance(given, list) or len(given) != 2:
        raise _expected("two recipes", given)
    return combine(*(set_of_recipe(request, one) for one in given))


MAKERS: dict[str, Callable[[SubsetRequest, object], Array]] = {
    "band": in_fan_band,
    "bits": _bits_of_recipe,
    "cell": in_confusion_cell,
    "difference": partial(_combined, lambda one, other: one & ~other),
    "intersection": partial(_combined, np.logical_and),
    "lasso": _lasso,
    "samples": _samples_of_recipe,
    "shown": lambda request, _: request.subset.members,
    "union": partial(_combined, np.logical_or),
}
"""What a recipe may name; each returns the mask `[N]` of its samples."""
