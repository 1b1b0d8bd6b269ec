"""The outputs of every two models, compared by every measure."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from .._arrays import ArrayLike
from .._warnings import warn
from ..errors import errors_with_usage
from .intervals.bounded_means import samples_to_decide_by_width
from .intervals.comparisons import Comparison, compare, regression_compare
from .intervals.mean_intervals import compare_means
from .measure_tables import (
    MeasureTableSettings,
    opened_outputs,
    regression_score_terms,
    score_terms,
)
from .pairs.from_outputs import top_label
from .registry import RESAMPLES, list_measures

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["compare_outputs"]

_COMPARED = '({"a": {"probs": a, "labels": labels}, "b": {"probs": b, "labels": labels}})'
_GAUSSIAN = ("mean", "variance", "target")
_DIFFERENCE = ("difference", "low", "high", "p_value")


@errors_with_usage(_COMPARED)
def compare_outputs(
    outputs: Mapping[str, Mapping[str, ArrayLike] | str | os.PathLike[str]],
    *,
    bins: int = 15,
    level: float = 0.95,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> pd.DataFrame:
    """Compare the outputs of every two models on the same samples.

    Args:
        outputs: the outputs of each model, as `measure_table` takes them. Two models whose labels
            or targets differ are not compared, with a warning.
        bins: Number of bins of the binned measures.
        level: Nominal coverage.
        resamples: Number of draws.
        seed: Seed of the draws.

    Returns:
        A row for each pair of models and measure: `a`, `b`, `measure`, `difference` (a minus b),
        the ends `low` and `high` of its interval, `p_value`, and `needed`: where the interval
        contains 0, about how many samples would show a difference of this size, with a probability
        of 80 %; missing elsewhere; and the `caution` of the comparison, if any.

    Example:
        >>> labels = [0, 1, 0, 1, 1]
        >>> probs = {"a": [[0.9, 0.1]] * 5, "b": [[0.4, 0.6]] * 5}
        >>> outputs = {name: {"probs": part, "labels": labels} for name, part in probs.items()}
        >>> compare_outputs(outputs, resamples=50)["measure"].tolist()[:3]
        ['accuracy', 'nll', 'brier']
    """
    import pandas as pd

    settings = {"bins": bins, "level": level, "resamples": resamples, "seed": seed}
    usage = f"call compare_outputs{_COMPARED}"
    named = opened_outputs(outputs, usage)
    opened = {name: opened_outputs(one, usage) for name, one in named.items()}
    rows = []
    for (a, one), (b, other) in itertools.combinations(opened.items(), 2):
        kinds = ["labels" if "labels" in given else "target" for given in (one, other)]
        if kinds[0] != kinds[1]:
            reason = "one is a classifier and one a regressor"
        elif len(one[kinds[0]]) != len(other[kinds[0]]):
            sizes = [f"{len(given[kinds[0]]):,}" for given in (one, other)]
            reason = f"they have {' and '.join(sizes)} samples"
        elif not np.array_equal(one[kinds[0]], other[kinds[0]]):
            reason = f"their {'labels' if kinds[0] == 'labels' else 'targets'} differ"
        else:
            for name, found in _comparisons_of_outputs(one, other, settings):
                numbers = {key: float(getattr(found, key)) for key in _DIFFERENCE}
                said = {
                    "needed": _needed(numbers, len(one[kinds[0]]), level),
                    "caution": found.caution,
                }
                rows.append({"a": a, "b": b, "measure": name, **numbers, **said})
            continue
        warn(f"{a} and {b} are not compared: {reason}")
    return pd.DataFrame(rows)


def _needed(found: Mapping[str, float], samples: int, level: float) -> int | None:
    """Return how many samples would show a difference, if these do not."""
    if not found["low"] <= 0 <= found["high"]:
        return None
    end = found["low"] if found["difference"] > 0 else found["high"]
    return samples_to_decide_by_width(found["difference"], end, 0.0, samples, level)


def _comparisons_of_outputs(
    one: Mapping[str, Any], other: Mapping[str, Any], settings: dict[str, Any]
) -> Iterator[tuple[str, Comparison]]:
    contrast: Any
    if "labels" in one:
        terms = score_terms(**one), score_terms(**other)
        pairs = top_label(**one), top_label(**other)
        listed = list_measures("pair", "outputs", listed="comparison", samples=len(pairs[0][0]))
        contrast = partial(compare, a=pairs[0], b=pairs[1])
    else:
        given = [{key: part[key] for key in _GAUSSIAN} for part in (one, other)]
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
            yield (
                measure.name,
                contrast(measure, **MeasureTableSettings(**settings).options(measure)),
            )
