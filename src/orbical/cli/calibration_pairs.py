"""Saved outputs compared in pairs: every two models that answered the same samples."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from ..calibration.comparisons import Comparison

_OF_CLASSIFIERS = ("ece", "ks", "esd", "mmce")
_OF_ONE_TARGET = ("ence", "uce", "regression_esd", "quantile_calibration")
_OF_TARGETS = ("mahalanobis_calibration", "regression_esd_normalized", "gence_fiber")
_BINNED = ("ece", "ence", "uce", "gence_fiber")


def compared(outputs: dict[str, dict[str, Any]], settings: dict[str, Any]) -> list[dict[str, Any]]:
    """Compare every two models on the same samples; say of the others why they are not."""
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
    from ..calibration import compare, compare_means, top_label
    from ..calibration.table import score_terms

    terms = score_terms(**one), score_terms(**other)
    found = {
        name: compare_means(terms[0][name], terms[1][name], level=settings["level"])
        for name in terms[0]
    }
    pairs = top_label(**one), top_label(**other)
    for name in _OF_CLASSIFIERS:
        found[name] = compare(name, *pairs, **_options(name, settings))
    return found


def _regressors(
    one: dict[str, Any], other: dict[str, Any], settings: dict[str, Any]
) -> dict[str, Comparison]:
    from ..calibration import compare_means, regression_compare, regression_score_terms

    given = [{key: part[key] for key in ("mean", "variance", "target")} for part in (one, other)]
    terms = [regression_score_terms(**part) for part in given]
    found = {
        name: compare_means(terms[0][name], terms[1][name], level=settings["level"])
        for name in terms[0]
    }
    a, b = ((part["mean"], part["variance"]) for part in given)
    size, single = len(one["mean"]), one["mean"].ndim == 1
    for name in (*(_OF_ONE_TARGET if single else ()), *_OF_TARGETS):
        if size >= 3 or "esd" not in name:
            options = _options(name, settings)
            found[name] = regression_compare(name, a, b, one["target"], **options)
    return found


def _options(name: str, settings: dict[str, Any]) -> dict[str, Any]:
    return {
        key: settings[key]
        for key in ("level", "resamples", "seed", *(("bins",) if name in _BINNED else ()))
    }
