"""The finding of a scan in a sentence: the same in Python, the terminal, the page and reports."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from .._lazy import xr
from .._text import counted, number, percent
from ..calibration import CautionedMean, bounded_mean_interval
from ..groups import Group, spoken_name
from ..store import FINISHED, Scan, ScanArrays, arrays_of
from ..tasks import quantity_rounding
from . import sums_and_means
from .changes import answer_names, changes_are_binary, sample_changes
from .molecule_violations import Violation, scanned_quantities, violations_of

Array = np.ndarray

METRICS = {"accuracy": "correct", "confidence": "confidence", "score": "score"}
"""What a summary states of each model, and the arrays that it is the mean of."""
MOST_MODELS = 2
"""Of more models the worst and the best are named."""
_SURE = 0.05
"""Confidence that exceeds the accuracy by more is called too much."""
_WIDE = 0.1
"""Intervals of shares that are wider are stated."""
_MOVES = {
    ("angle",): ("upright", "over all rotations", "rotated by {:.4g}°"),
    ("dx", "dy"): ("in place", "over all shifts", "shifted by ({:.4g}, {:.4g})"),
    ("scale",): ("in full size", "over all scales", "scaled by {:.4g}"),
}
"""Words for the identity, the orbit and an element, by the coordinates of a group."""


@dataclass(frozen=True)
class Headline:
    """What a scan found.

    Attributes:
        text: It, in a sentence; empty if nothing is finished.
        element: The element at which the least stable model is worst.
        model: That model, by its index.
    """

    text: str
    element: int
    model: int


def headline(scan: Scan | xr.Dataset) -> str:
    """Describe what was found in a sentence: how good each model is, and where it fails.

    It states the accuracy (for other tasks the mean score) at the identity, over the orbit and at
    the worst element, and the confidence there. Without labels it states how many predictions
    change along the orbit.

    Args:
        scan: a scan, or its `data`.

    Returns:
        The sentence; empty if no sample is finished.

    Example:
        >>> import orbical as ob, torch
        >>> images, labels = ob.datasets.digits()
        >>> def brightness(images):
        ...     return torch.stack([images.mean((1, 2, 3)), -images.mean((1, 2, 3))], 1)
        >>> scan = ob.scan(brightness, (images[:20], labels[:20] * 0), group="cyclic:4",
        ...                task="classification", progress=False)
        >>> ob.nero.headline(scan)
        'model: 100.0 % (83–100 %) correct upright and over all rotations (20 samples).'

    See Also:
        summary: The numbers of the sentence.
    """
    arrays = arrays_of(scan)
    return headline_of(arrays, headline_curves(arrays), finished_samples(arrays)).text


def headline_of(
    arrays: ScanArrays,
    curves: Mapping[str, Array],
    samples: Array,
    changes: Callable[[ScanArrays], Mapping[str, Array]] = sample_changes,
) -> Headline:
    """Find the headline of a scan.

    Args:
        arrays: the arrays of the scan.
        curves: the mean of each quantity at every element, from `headline_curves`.
        samples: the number of finished samples of each model.
        changes: returns the share `changed` of each sample `[M, N]`.
    """
    if not samples.any():
        return Headline("", arrays.group.identity, 0)
    worst = worst_elements(curves, arrays)
    means = sums_and_means.mean_of_curves(_ranked_by(curves), arrays.weights)
    better = "accuracy" in curves or _higher_is_better(arrays)
    order = np.argsort(np.nan_to_num(means if better else -means, nan=np.inf), kind="stable")
    least = int(order[0])
    shown = order if len(order) <= MOST_MODELS else order[[0, -1]]

    def changing() -> Array:
        """Return the share of what changes for each shown model, 0 if nothing can be compared."""
        return np.nan_to_num([*map(sums_and_means.known_mean, changes(arrays)["changed"][shown])])

    name = arrays.response_name("score")
    if name == FINISHED and answer_names(arrays):  # no labels, but answers that can be compared
        clauses = [f"prediction changes for {_share(share)}" for share in changing()]
    else:
        ends = zip(shown, worst[shown], means[shown], strict=True)
        right = _correct_terms_of_headline(arrays) if "accuracy" in curves else None
        clauses = [_headline_clause_of_model(curves, arrays, right, *end) for end in ends]
        orbit = headline_words(arrays.group, arrays.group.identity)[1]
        broken = _broken_quantities_of_headline(arrays)
        clauses = [
            "; ".join(filter(None, [text, *broken[model]]))
            or f"predictions are the same {orbit}, up to rounding"
            for model, text in zip(shown, clauses, strict=True)
        ]
        if not changes_are_binary(arrays):  # maps, whose mean scores hide what changes
            parts = "points" if "point_class" in arrays else "pixels"
            clauses = [
                f"{text}; {_share(value)} of {parts} change their class" if value else text
                for text, value in zip(clauses, changing(), strict=True)
            ]
    named = [f"{arrays.models[model]}: {text}" for model, text in zip(shown, clauses, strict=True)]
    some = f"Of {len(order)} models, " if len(order) > len(shown) else ""
    count = counted(int(samples.max()), "sample")
    return Headline(f"{some}{'; '.join(named)} ({count}).", int(worst[least]), least)


def headline_curves(
    arrays: ScanArrays, curve: Callable[[str], Array] | None = None
) -> dict[str, Array]:
    """Return the mean of each quantity of a summary at every element, `[M, K]`."""
    curve = curve or (lambda name: sums_and_means.sums_over(arrays, name).mean[:, 0])
    return {
        title: curve(arrays.response_name(metric))
        for title, metric in METRICS.items()
        if metric == "score" or metric in arrays
    }


def finished_samples(arrays: ScanArrays) -> Array:
    """Return the number of finished samples of each model."""
    return np.asarray(np.isfinite(sums_and_means.moments(arrays, FINISHED).orbit_mean).sum(1))


def worst_elements(curves: Mapping[str, Array], arrays: ScanArrays) -> Array:
    """Return the element of the least accuracy, and of the worst score among equals, by model."""
    score = curves["score"] if _higher_is_better(arrays) else -curves["score"]
    score = np.where(np.isnan(score), np.inf, score)
    if "accuracy" in curves:
        accuracy = np.where(np.isnan(curves["accuracy"]), np.inf, curves["accuracy"])
        score = np.where(accuracy == accuracy.min(1, keepdims=True), score, np.inf)
    return np.asarray(score.argmin(1))


def headline_words(group: Group, element: int) -> tuple[str, str, str]:
    """Return words for the identity, for the whole orbit and for an element.

    >>> from orbical.groups import rotations
    >>> headline_words(rotations(12), 1)
    ('upright', 'over all rotations', 'rotated by 30°')
    """
    names = tuple(group.coords)
    if names == ("rx", "ry", "rz"):  # a rotation vector
        angle = np.linalg.norm([group.coords[name][element] for name in names])
        return "as they are", "over all rotations", f"rotated by {angle:.0f}°"
    if names not in _MOVES:
        return "as they are", "over the orbit", f"at {spoken_name(group, element)}"
    here, orbit, there = _MOVES[names]
    return here, orbit, there.format(*(group.coords[name][element] for name in names))


def _ranked_by(curves: Mapping[str, Array]) -> Array:
    return curves["accuracy"] if "accuracy" in curves else curves["score"]


def _higher_is_better(arrays: ScanArrays) -> bool:
    return bool(arrays.attributes(arrays.response_name("score")).get("higher_is_better", True))


def _correct_terms_of_headline(arrays: ScanArrays) -> Callable[[int], list[Array]]:
    """Return what reads the known terms of `correct` of a model at each element.

    Where they are true or false their numbers tell all, which one pass counts.
    """
    if arrays.dtype("correct").kind != "b":
        return lambda model: [
            sums_and_means.known_terms(one, binary=True)
            for one in sums_and_means.element_columns(arrays, "correct", model)
        ]
    sums = sums_and_means.sums_over(arrays, "correct")
    return lambda model: [
        np.arange(count) < right
        for count, right in zip(sums.count[model, 0], sums.total[model, 0], strict=True)
    ]


def _headline_clause_of_model(
    curves: Mapping[str, Array],
    arrays: ScanArrays,
    right: Callable[[int], list[Array]] | None,
    model: int,
    worst: int,
    mean: float,
) -> str:
    """Describe how good one model is at the identity, over the orbit and at its worst element.

    Empty if its score is that of an equivariant model, up to rounding.
    """
    name, identity = arrays.response_name("score"), arrays.group.identity
    about = arrays.attributes(name)
    here, orbit, there = headline_words(arrays.group, worst)
    write = _share if "accuracy" in curves or about.get("units") == "share" else number
    values = [_ranked_by(curves)[model, identity], mean, _ranked_by(curves)[model, worst]]
    first, whole, last = map(write, values)
    # With labels it is stated how good they are.
    error = name == FINISHED and not _higher_is_better(arrays)
    if error and max(values) <= quantity_rounding(about.get("units", ""), higher_is_better=False):
        return ""
    what = ("", " correct") if "accuracy" in curves else (f"{arrays.score} ", "")
    own = ", measured against its own average over the orbit" if name == FINISHED else ""
    same = first == whole == last
    if right is not None:
        columns = right(model)
        first, last = map(_with_interval, ([columns[identity]], columns))
        first = last if worst == identity and not same else first
    if same:
        return f"{what[0]}{first}{what[1]} {here} and {orbit}{own}"
    clause = f"{what[0]}{first}{what[1]} {here}, {whole} {orbit} and {last} {there}{own}"
    if worst == identity:
        clause = f"{what[0]}{first}{what[1]} {here}, where it is worst, and {whole} {orbit}{own}"
    if "accuracy" not in curves or "confidence" not in curves:
        return clause
    return clause + _headline_on_confidence(arrays, model, worst)


def _headline_on_confidence(arrays: ScanArrays, model: int, worst: int) -> str:
    """Describe the confidence at an element, and where there is nothing to be confident of."""

    def there(name: str) -> Array:
        blocks = (arrays.responses(name, rows, model) for rows in arrays.blocks(name))
        return np.concatenate([block[:, worst] for block in blocks])

    correct, sure = there("correct"), there("confidence")
    judged, has = ~np.isnan(correct), ~np.isnan(correct) & ~np.isnan(sure)
    missed = int(judged.sum() - has.sum())
    unscored = f", no prediction to score in {missed:,} of {judged.sum():,}" if missed else ""
    if not has.any():
        return unscored
    mean = float(sure[has].mean(dtype=float))
    still = "still " if mean > correct[has].mean(dtype=float) + _SURE else ""
    where = "in the others" if missed else "there"
    return f"{unscored}, {'and ' if missed else ''}{still}{_share(mean)} confident {where}"


def _broken_quantities_of_headline(arrays: ScanArrays) -> list[list[str]]:
    """Describe which quantities of atoms each model breaks; the score is one alone."""
    each: dict[str, dict[str, Violation]] = {name: {} for name in arrays.models}
    for found in violations_of(arrays):
        each[found.model][found.quantity] = found
    undecided = "not decided, no molecule has results at two elements"
    return [
        [
            f"{name} {found[name].finding if name in found else undecided}"
            for name in scanned_quantities(arrays)
            if name not in found or not found[name].equivariant
        ]
        for found in each.values()
    ]


def _with_interval(columns: list[Array]) -> str:
    """Write the share of samples that are right at the worst element, with a wide interval."""
    (share, low, high), _ = sums_and_means.mean_at_worst(
        columns, lambda *one: CautionedMean(bounded_mean_interval(*one))
    )
    wide = f" ({100 * low:.0f}–{100 * high:.0f} %)" if high - low > _WIDE else ""
    return _share(float(share)) + wide


def _share(value: float) -> str:
    return percent(value, 1).replace("%", " %")
