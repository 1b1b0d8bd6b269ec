"""All registered measures of a model's outputs at once, each with its interval."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor

from .._arrays import ArrayLike, as_floating
from ..data import OUTPUT_SUFFIXES, read_outputs
from ..errors import InputError, check_name
from .intervals.interval_ends import Interval
from .intervals.measure_intervals import cell_intervals, interval, regression_interval
from .measures.gaussian import gaussian_vector_target
from .numerics.sorting import ascending, take_by_row
from .pairs.from_outputs import (
    classifier_outputs,
    classwise,
    log_probabilities,
    named_outputs,
    probabilities,
    top_label,
)
from .pairs.pairs_and_weights import binary_pair, sample_weights, samples_to_pair
from .registry import (
    MEASURES,
    RESAMPLES,
    BoundMeasure,
    Draws,
    Measure,
    list_measures,
    measure_takes_weights,
)

__all__ = [
    "classification_table", "measure_table", "pair_table",
    "regression_score_terms", "regression_table", "score_terms",
]  # fmt: skip


def measure_table(
    outputs: Mapping[str, ArrayLike] | str | os.PathLike[str],
    *,
    bins: int = 15,
    level: float = 0.95,
    resamples: int = RESAMPLES,
    seed: int = 0,
    only: Collection[str] | str | None = None,
) -> dict[str, Interval]:
    """Compute every registered measure of the outputs of a classifier or a regressor.

    Args:
        outputs: arguments of `classification_table` or, with `mean`, of `regression_table`, as
            `orbical.data.read_outputs` returns them; or the path of a file that it reads.
        bins: Number of bins of the binned measures.
        level: Nominal coverage.
        resamples: Number of draws.
        seed: Seed of the draws.
        only: The names of the measures to compute, or one; all by default.

    Returns:
        The interval of each measure, by name.

    Example:
        >>> outputs = {"probs": [[0.7, 0.3], [0.4, 0.6], [0.2, 0.8]], "labels": [0, 0, 1]}
        >>> list(measure_table(outputs, resamples=50, only=["nll", "ece"]))
        ['nll', 'ece']
    """
    opened = opened_outputs(outputs)
    table: Any = regression_table if "mean" in opened else classification_table
    settings = {"bins": bins, "level": level, "resamples": resamples, "seed": seed, "only": only}
    _check_arrays_of_table(opened, table, settings)
    found: dict[str, Interval] = table(**opened, **settings)
    return found


def opened_outputs(outputs: object, usage: str = "") -> Mapping[str, Any]:
    """Return outputs by name, read from a file if that is what was passed."""
    if isinstance(outputs, str | os.PathLike) and str(outputs).endswith(OUTPUT_SUFFIXES):
        return read_outputs(Path(outputs))
    if not isinstance(outputs, Mapping):
        remedy = "scan_table takes a scan" if hasattr(outputs, "record") else usage
        raise InputError("outputs", "arrays by name, such as labels", type(outputs), remedy=remedy)
    return outputs


def _check_arrays_of_table(
    outputs: Mapping[str, ArrayLike], table: Callable[..., object], settings: Mapping[str, object]
) -> None:
    """Check that outputs have the arrays that a table needs, and no others."""
    signature = inspect.signature(table)
    try:
        signature.bind(**outputs, **settings)
    except TypeError as error:
        arrays = [name for name in signature.parameters if name not in settings]
        remedy = "orbical.data.read_outputs makes variances of aleatoric and epistemic ones"
        raise InputError(
            "outputs",
            f"some of {', '.join(arrays)}",
            ", ".join(map(str, outputs)),
            remedy=remedy if "epistemic" in outputs else f"{error}",
        ) from error


def pair_table(
    confidence: ArrayLike,
    correct: ArrayLike,
    *,
    weights: ArrayLike | None = None,
    bins: int = 15,
    level: float = 0.95,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> dict[str, Interval]:
    """Compute every registered measure of a pair, each with its interval.

    Args:
        confidence: `[N]` in [0, 1].
        correct: `[N]` boolean, or 0 and 1.
        weights: `[N]` sample weights; measures that take none are then left out.
        bins: Number of bins of the binned measures.
        level: Nominal coverage.
        resamples: Number of draws.
        seed: Seed of the draws.

    Returns:
        The interval of each measure, by name.

    Example:
        >>> found = pair_table([0.9, 0.8, 0.7, 0.6], [True, True, False, True], resamples=50)
        >>> list(found)[:6]
        ['accuracy', 'ece', 'ece_l2', 'ece_max', 'ece_mass', 'smooth_ece']
    """
    settings = MeasureTableSettings(bins, level, resamples, seed)
    given = SimpleNamespace(pair=binary_pair(confidence, correct)[:2], weights=weights)
    listed = list_measures("pair", listed="table", samples=given.pair[0].shape[-1])
    return _intervals_of_table(listed, given, settings)


@named_outputs
def classification_table(
    *,
    probs: ArrayLike | None = None,
    logits: ArrayLike | None = None,
    labels: ArrayLike,
    weights: ArrayLike | None = None,
    ignore_index: int | None = None,
    bins: int = 15,
    level: float = 0.95,
    resamples: int = RESAMPLES,
    seed: int = 0,
    only: Collection[str] | str | None = None,
) -> dict[str, Interval]:
    """Compute every registered measure of a classifier's outputs, with intervals.

    The calibrated value of a score is its mean if labels were drawn from the probabilities. The
    class-wise measures have the mean of the classes' intervals, no narrower than their own.

    Args:
        probs: Probabilities `[N, C]`; or
        logits: scores `[N, C]`. Pass one of the two.
        labels: Class indices `[N]`.
        weights: `[N]` sample weights; measures that take none are then left out.
        ignore_index: Samples with this label are left out.
        bins: Number of bins of the binned measures.
        level: Nominal coverage.
        resamples: Number of draws; a fifth of it, or less for many classes, for what is class-wise.
        seed: Seed of the draws.
        only: The names of the measures to compute, or one; all by default.

    Returns:
        The interval of each measure, by name.

    Example:
        >>> found = classification_table(probs=[[0.7, 0.3], [0.4, 0.6], [0.2, 0.8]],
        ...                              labels=[0, 0, 1], resamples=50)
        >>> round(float(found["nll"].value), 4)
        0.4987
    """
    given = TableOutputs(probs, logits, labels, weights, ignore_index)
    listed = list_measures("pair", "outputs", listed="table", samples=given.pair[0].shape[-1])
    return _intervals_of_table(
        listed, given, MeasureTableSettings(bins, level, resamples, seed), only
    )


def _intervals_of_table(
    listed: list[Measure],
    given: Any,
    settings: MeasureTableSettings,
    only: Collection[str] | str | None = None,
) -> dict[str, Interval]:
    """Compute those of the measures that can weight samples, if there are weights."""
    fitting = {
        measure.name: measure
        for measure in listed
        if given.weights is None
        or measure.terms is not None
        or measure_takes_weights(measure.function)
    }
    wanted = [*fitting] if only is None else [only] if isinstance(only, str) else [*only]
    for name in wanted:
        check_name("only", name, MEASURES)
        if name not in fitting:
            expected = f"measures in the table of these outputs, {', '.join(fitting)}"
            raise InputError("only", expected, repr(name))
    chosen = [measure for name, measure in fitting.items() if name in wanted]
    shared = _intervals_drawn_together(chosen, given, settings) if given.weights is None else {}
    return _MeasureTable(
        (
            measure.name,
            shared[measure.name]
            if measure.name in shared
            else _interval_in_table(measure, given, settings),
        )
        for measure in chosen
    )


class _MeasureTable(dict[str, Interval]):
    """Intervals by the name of their measure, printed a line each.

    >>> _MeasureTable(classification_table(probs=[[0.7, 0.3], [0.4, 0.6]], labels=[0, 0],
    ...                                 only=["accuracy", "nll"], resamples=20))
    accuracy  0.5 [...], if calibrated ...
    nll       0.6365 [...], if calibrated ...
    """

    def __repr__(self) -> str:
        width = max(map(len, self), default=0)
        return "\n".join(f"{name:<{width}}  {found}" for name, found in self.items())


def _intervals_drawn_together(
    chosen: list[Measure], given: Any, settings: MeasureTableSettings
) -> dict[str, Interval]:
    """Compute the measures of pairs in cells of confidence: those with the same cells at once."""
    by_cells: dict[Any, list[BoundMeasure]] = {}
    for measure in chosen:
        if measure.kind == "pair" and measure.table_interval is None:
            bound = measure.bind(**measure.accepted({"bins": settings.bins}))
            if bound.own_interval is None and bound.index is not None:
                by_cells.setdefault(_cells_key(bound.index), []).append(bound)
    pair = binary_pair(*given.pair)[:2] if by_cells else ()
    return {
        bound.name: found
        for sharing in by_cells.values()
        for bound, found in zip(
            sharing, cell_intervals(sharing, *pair, **settings.draws()), strict=True
        )
    }


def _cells_key(index: object) -> Any:
    """Return what two functions that sort samples into the same cells have in common."""
    return (index.func, *sorted(index.keywords.items())) if isinstance(index, partial) else index


def _interval_in_table(measure: Measure, given: Any, settings: MeasureTableSettings) -> Interval:
    if measure.table_interval is not None:
        answer: Interval = measure.table_interval(given, settings)
        return answer
    if measure.kind == "outputs":
        mass = {} if given.weights is None else {"weights": given.weights}
        return _without_interval(measure(**given.given, **mass), settings.level)
    options = {**settings.options(measure), "weights": given.weights}
    if measure.kind == "pair":
        return interval(measure, *given.pair, **options)
    return regression_interval(measure, given.mean, given.variance, given.target, **options)


def _without_interval(value: Tensor, level: float) -> Interval:
    value = value.detach().double().cpu()
    unknown = torch.full_like(value, torch.nan)
    return Interval(value, unknown, unknown, unknown, unknown, unknown, level, "none")


@named_outputs
def score_terms(
    *, probs: ArrayLike | None = None, logits: ArrayLike | None = None, labels: ArrayLike
) -> dict[str, Tensor]:
    """Compute the terms `[N]` of each score that is a mean over samples, for `compare_means`.

    Args:
        probs: Probabilities `[N, C]`; or
        logits: scores `[N, C]`. Pass one of the two.
        labels: Class indices `[N]`.

    Returns:
        The terms of each score, by name.

    Example:
        >>> score_terms(probs=[[0.5, 0.5], [0.25, 0.75]], labels=[0, 1])["brier"]
        tensor([0.5000, 0.1250], dtype=torch.float64)
    """
    listed = list_measures("pair", "outputs", listed="comparison")
    return _terms(listed, probs=probs, logits=logits, labels=labels)


def _terms(listed: list[Measure], *arrays: object, **outputs: object) -> dict[str, Tensor]:
    return {
        measure.name: measure.terms(*arrays, **outputs).detach().cpu()
        for measure in listed
        if measure.terms is not None
    }


def regression_table(
    mean: ArrayLike,
    variance: ArrayLike,
    target: ArrayLike,
    *,
    aleatoric: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    bins: int = 15,
    level: float = 0.95,
    resamples: int = RESAMPLES,
    seed: int = 0,
    only: Collection[str] | str | None = None,
) -> dict[str, Interval]:
    """Compute every registered measure of Gaussian predictions, with intervals.

    Measures of one target (ENCE, UCE, quantiles, CRPS) are left out for vectors. The squared error
    is that of all components together; a calibrated model's is its mean total variance.

    Args:
        mean: `[N]` or `[N, d]`.
        variance: As the mean, `[N, 1]`, or a full covariance `[N, d, d]`.
        target: As the mean.
        aleatoric: The part of the variance ascribed to the data, as the mean, `[N, 1]`, or all
            entries of a covariance `[N, d d]`; with it the table holds the bleed into noise-free
            data.
        weights: `[N]` sample weights; measures that take none are then left out.
        bins: Number of bins of the binned measures.
        level: Nominal coverage.
        resamples: Number of draws.
        seed: Seed of the draws.
        only: The names of the measures to compute, or one; all by default.

    Returns:
        The interval of each measure, by name.

    Example:
        >>> found = regression_table([0.0, 0.0, 0.0], [1.0, 1.0, 1.0], [1.0, -1.0, 0.5],
        ...                          resamples=50)
        >>> round(float(found["gaussian_nll"].value), 4)
        1.2939
    """
    error, _, _ = gaussian_vector_target(mean, variance, target)
    mass = sample_weights(weights, error[..., 0])
    given = TablePredictions(mean, variance, target, _per_component(aleatoric, error), mass)
    settings = MeasureTableSettings(bins, level, resamples, seed)
    single = as_floating("mean", mean).ndim == 1
    kinds = ("regression",) if aleatoric is None else ("regression", "aleatoric")
    listed = list_measures(
        *kinds, listed="table", targets=1 if single else 2, samples=error.shape[-2]
    )
    return _intervals_of_table(listed, given, settings, only)


def _per_component(aleatoric: ArrayLike | None, error: Tensor) -> Tensor | None:
    if aleatoric is None:
        return None
    noise = as_floating("aleatoric", aleatoric)
    noise = noise[:, None] if noise.ndim == 1 else noise
    return noise.expand(error.shape) if noise.shape[-1] == 1 else noise


def regression_score_terms(
    mean: ArrayLike, variance: ArrayLike, target: ArrayLike
) -> dict[str, Tensor]:
    """Compute the terms `[N]` of each score that is a mean over samples, for `compare_means`.

    Args:
        mean: `[N]` or `[N, d]`.
        variance: As the mean, `[N, 1]`, or a full covariance `[N, d, d]`.
        target: As the mean.

    Returns:
        The terms of each score, by name: squared error, NLL, GENCE, its squared form, and for one
        target the CRPS.

    Example:
        >>> regression_score_terms([0.0, 1.0], [1.0, 1.0], [1.0, 1.0])["squared_error"]
        tensor([1., 0.], dtype=torch.float64)
    """
    targets = 1 if as_floating("mean", mean).ndim == 1 else 2
    listed = list_measures("regression", listed="comparison", targets=targets)
    return _terms(listed, mean, variance, target)


@dataclass(frozen=True)
class MeasureTableSettings:
    """The settings of a table: bins of binned measures, and the draws of intervals."""

    bins: int = 15
    level: float = 0.95
    resamples: int = RESAMPLES
    seed: int = 0

    @property
    def fewer(self) -> int:
        """The number of draws of what is drawn for each class."""
        return max(20, self.resamples // 5)

    def draws(self, resamples: int | None = None) -> Draws:
        """Return the arguments of an interval."""
        draws = self.resamples if resamples is None else resamples
        return {"level": self.level, "resamples": draws, "seed": self.seed}

    def options(self, measure: Measure, resamples: int | None = None) -> dict[str, Any]:
        """Return the arguments of the interval of a measure, with its bins if it has some."""
        return {**self.draws(resamples), **measure.accepted({"bins": self.bins})}


class TableOutputs:
    """A classifier's outputs and labels, each form of them computed once."""

    def __init__(
        self,
        probs: ArrayLike | None,
        logits: ArrayLike | None,
        labels: ArrayLike,
        weights: ArrayLike | None = None,
        ignore_index: int | None = None,
    ) -> None:
        name, outputs = classifier_outputs(probs, logits)
        mass = sample_weights(weights, outputs[..., 0])
        outputs, truth, kept = samples_to_pair(labels, outputs, ignore_index)
        self.outputs: dict[str, Any] = {name: outputs}
        self.given: dict[str, Any] = {**self.outputs, "labels": truth}
        self.weights = mass if mass is None or kept is None else mass[..., kept]
        self._found: dict[str, Any] = {}

    @cached_property
    def pair(self) -> tuple[Tensor, Tensor]:
        """Return `(confidence [N], correct [N])` of the top label."""
        return top_label(**self.given)

    @cached_property
    def classwise(self) -> tuple[Tensor, Tensor]:
        """Return `(confidence [C, N], correct [C, N])` of each class."""
        return classwise(**self.given)

    @cached_property
    def classwise_in_order(self) -> tuple[Tensor, Tensor]:
        """Return `classwise`, each class in ascending order: sorted once for all measures."""
        of_class, is_class = self.classwise
        _, order = ascending(of_class)
        return take_by_row(of_class.detach(), order), take_by_row(is_class, order)

    @cached_property
    def probabilities(self) -> Tensor:
        """Return probabilities `[N, C]` in float64."""
        return probabilities(**self.outputs).detach().double()

    @cached_property
    def log_probabilities(self) -> Tensor:
        """Return log-probabilities `[N, C]` in float64."""
        return log_probabilities(**self.outputs).detach().double()

    @property
    def labels(self) -> Tensor:
        """Return class indices `[N]`."""
        labels: Tensor = self.given["labels"]
        return labels

    def once(self, key: str, compute: Callable[[], Any]) -> Any:
        """Return what several measures share, computed at the first call."""
        if key not in self._found:
            self._found[key] = compute()
        return self._found[key]


@dataclass(frozen=True)
class TablePredictions:
    """A regressor's Gaussian predictions; `aleatoric` is `[N, d]`, or None if unknown."""

    mean: ArrayLike
    variance: ArrayLike
    target: ArrayLike
    aleatoric: Any = None
    weights: Tensor | None = None
