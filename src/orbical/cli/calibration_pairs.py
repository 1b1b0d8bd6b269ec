"""Compare saved outputs in pairs: every two models evaluated on the same samples."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from ..calibration import Comparison, Measure


def compared(outputs: dict[str, dict[str, Any]], settings: dict[str, Any]) -> list[dict[str, Any]]:
    """Compare every two models on the same samples; print why others are not compared."""
    rows = []
    for (a, one), (b, other) in itertools.combinations(outputs.items(), 2):
        reason = _differing(one, other)
        if reason:
            typer.echo(f"{a} and {b} are not compared: {reason}", err=True)
            continue
        pair = _classifiers if "labels" in one else _regressors
        for name, found in pair(one, other, settings).items():
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


def _classifiers(
    one: dict[str, Any], other: dict[str, Any], settings: dict[str, Any]
) -> dict[str, Comparison]:
    from ..calibration import compare, compare_means, measures, top_label
    from ..calibration.table import score_terms

    terms = score_terms(**one), score_terms(**other)
    pairs = top_label(**one), top_label(**other)
    found = {}
    for measure in measures("pair", "outputs", listed="comparison", samples=len(pairs[0][0])):
        if measure.terms is not None:
            each = (part[measure.name] for part in terms)
            found[measure.name] = compare_means(*each, level=settings["level"])
        elif measure.kind == "pair":
            found[measure.name] = compare(measure, *pairs, **_options(measure, settings))
    return found


def _regressors(
    one: dict[str, Any], other: dict[str, Any], settings: dict[str, Any]
) -> dict[str, Comparison]:
    from ..calibration import compare_means, measures, regression_compare, regression_score_terms

    given = [{key: part[key] for key in ("mean", "variance", "target")} for part in (one, other)]
    terms = [regression_score_terms(**part) for part in given]
    a, b = ((part["mean"], part["variance"]) for part in given)
    size, targets = len(one["mean"]), one["mean"].ndim
    found = {}
    for measure in measures("regression", listed="comparison", targets=targets, samples=size):
        if measure.terms is not None:
            each = (part[measure.name] for part in terms)
            found[measure.name] = compare_means(*each, level=settings["level"])
        else:
            options = _options(measure, settings)
            found[measure.name] = regression_compare(measure, a, b, one["target"], **options)
    return found


def _options(measure: Measure, settings: dict[str, Any]) -> dict[str, Any]:
    draws = {key: settings[key] for key in ("level", "resamples", "seed")}
    return {**draws, **measure.accepted({"bins": settings["bins"]})}
