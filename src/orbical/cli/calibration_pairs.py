"""Compare saved outputs in pairs: every two models evaluated on the same samples."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import typer

from .._text import printable

if TYPE_CHECKING:
    from ..calibration import Comparison


def compared(outputs: dict[str, dict[str, Any]], settings: dict[str, Any]) -> list[dict[str, Any]]:
    """Compare every two models on the same samples; print why others are not compared."""
    rows = []
    for (a, one), (b, other) in itertools.combinations(outputs.items(), 2):
        reason = _differing(one, other)
        if reason:
            typer.echo(printable(f"{a} and {b} are not compared: {reason}"), err=True)
            continue
        for name, found in _comparisons(one, other, settings):
            numbers = {key: float(part) for key, part in vars(found).items() if key != "level"}
            rows.append({"a": a, "b": b, "measure": name, **numbers})
    return rows


def _differing(one: dict[str, Any], other: dict[str, Any]) -> str:
    import numpy as np

    kinds = ["labels" if "labels" in given else "target" for given in (one, other)]
    if kinds[0] != kinds[1]:
        return "one is a classifier and one a regressor"
    if not np.array_equal(one[kinds[0]], other[kinds[0]]):
        return f"their {'labels' if kinds[0] == 'labels' else 'targets'} differ"
    return ""


def _comparisons(
    one: dict[str, Any], other: dict[str, Any], settings: dict[str, Any]
) -> Iterator[tuple[str, Comparison]]:
    from ..calibration import (
        compare,
        compare_means,
        list_measures,
        regression_compare,
        regression_score_terms,
        top_label,
    )
    from ..calibration.measure_tables import score_terms

    if "labels" in one:
        terms = score_terms(**one), score_terms(**other)
        pairs = top_label(**one), top_label(**other)
        listed = list_measures("pair", "outputs", listed="comparison", samples=len(pairs[0][0]))
        contrast = partial(compare, a=pairs[0], b=pairs[1])
    else:
        given = [
            {key: part[key] for key in ("mean", "variance", "target")} for part in (one, other)
        ]
        terms = regression_score_terms(**given[0]), regression_score_terms(**given[1])
        size, targets = len(one["mean"]), one["mean"].ndim
        listed = list_measures("regression", listed="comparison", targets=targets, samples=size)
        a, b = ((part["mean"], part["variance"]) for part in given)
        contrast = partial(regression_compare, a=a, b=b, target=one["target"])
    for measure in listed:
        if measure.terms is not None:
            each = (part[measure.name] for part in terms)
            yield measure.name, compare_means(*each, level=settings["level"])
        elif measure.kind != "outputs":
            options = {key: settings[key] for key in ("level", "resamples", "seed")}
            options |= measure.accepted({"bins": settings["bins"]})
            yield measure.name, contrast(measure, **options)
