"""The registry of measures: one entry each, read by tables, commands, the interface and the docs.

A new measure is its function and one call of `register`. It then appears in the tables, in
`orbical calibration`, as a threshold of `orbical check`, in the interface and in the reference.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, TypedDict

import numpy as np
from torch import Tensor

from ..errors import InputError, check_name, check_type, unknown_name
from .intervals.levels import RESAMPLES as RESAMPLES

__all__ = [
    "MEASURES", "Measure", "list_measures", "measure_entry", "measure_title", "quantity_title",
    "register",
]  # fmt: skip


KINDS = {
    "pair": ("(confidence, correct)", "confidence and correctness", "ece"),
    "outputs": (
        "(probs or logits, labels)",
        "the outputs of the model for all classes",
        "nll",
    ),
    "regression": ("(mean, variance, target)", "mean and variance", "gence"),
    "aleatoric": ("(aleatoric)", "aleatoric variance", "aleatoric_bleed"),
}
"""What a measure is computed from: its arrays, the same in words, and a measure of the kind."""

LISTS = ("table", "comparison", "orbit", "view")
"""Where measures are listed: tables of a model, comparisons of two, orbits of a scan, the view."""

REPORTS = ("subsets", "all samples")
"""What a report records of a measure: values of all samples, classes, named sets and findings, or
of all samples only, for a measure that is slow.
"""

_ARRAYS = ("probs", "logits", "weights", "ignore_index")
"""Arguments of measures that are no options of theirs."""


Index = Callable[[Tensor], tuple[Tensor, int]]
OfCells = Callable[..., Tensor]
"""Computes a measure from `Cells` of confidence."""


def measure_takes_weights(function: Callable[..., object]) -> bool:
    """Check whether a function has the argument `weights`."""
    return "weights" in inspect.signature(function).parameters


@dataclass(frozen=True)
class WhitenedMeasure:
    """A measure of d targets as a function of squared Mahalanobis distances and determinants.

    Both are the same in every frame, and a calibrated model's distances follow chi-squared whatever
    its covariances: nothing has to be factorized again in a resample.

    Attributes:
        statistic: reduces distances `[..., N]` and d to what is kept of them.
        drawn: draws the statistics of a calibrated model from a shape, d and a generator.
        value: maps statistics and log-determinants `[..., N]`, and d, to the measure.
        distance: maps the same to the distance of which the value estimates the power.
    """

    statistic: Callable[[Tensor, int], Tensor]
    drawn: Callable[[tuple[int, ...], int, np.random.Generator], np.ndarray]
    value: Callable[[Tensor, Tensor, int], Tensor]
    distance: Callable[[Tensor, Tensor, int], Tensor]


class Draws(TypedDict, total=False):
    """The arguments of an interval that is drawn."""

    level: float
    resamples: int
    seed: int


@dataclass(frozen=True)
class BoundMeasure:
    """A measure with its options set.

    Attributes:
        name: The measure's name.
        value: The function of samples, `(confidence, correct)` or `(mean, variance, target)`.
        distance: The plug-in distance of which the value estimates the power; None for a mean.
        power: 1 for a distance, 2 for its square.
        index: Sorts samples into cells, where the measure can be computed from cells.
        cell_value: The value, computed from cells.
        cell_distance: The distance, computed from cells.
        one_target: Whether a regression measure takes one target, `[..., N]`, or vectors,
            `[..., N, d]`; None if unknown, as for a user's function.
        marginal: Whether only the diagonal of a full covariance matters.
        moment: The power of the errors whose mean is all that a regression measure compares with
            the prediction; None if it compares the whole distribution, or that is unknown.
        whitened: The measure as a function of Mahalanobis distances alone, where it is one.
        bin_ends: Computes the ends of the interval from accuracy, confidence and number of samples
            of each bin, and the level, where resampling does not find them.
        own_interval: Computes the interval of a pair, where nothing has to be drawn for it.
        terms: The terms `[..., N]` of a mean over samples, where they are known.
    """

    name: str
    value: Callable[..., Tensor]
    distance: Callable[..., Tensor] | None
    power: int = 1
    index: Index | None = None
    cell_value: OfCells | None = None
    cell_distance: OfCells | None = None
    one_target: bool | None = None
    marginal: bool = False
    moment: int | None = None
    whitened: WhitenedMeasure | None = None
    bin_ends: Callable[[Tensor, Tensor, Tensor, float], tuple[Tensor, Tensor]] | None = None
    own_interval: Callable[..., Any] | None = None
    terms: Callable[..., Tensor] | None = None

    @property
    def drawn(self) -> Callable[..., Tensor]:
        """The function whose draws make an interval: the distance, if there is one."""
        return self.value if self.distance is None else self.distance

    def values(
        self, function: Callable[..., Tensor], *arrays: Tensor, weights: Tensor | None = None
    ) -> Tensor:
        """Evaluate one of the measure's functions: float64 on the CPU, without a gradient."""
        value = function(*arrays, **({} if weights is None else {"weights": weights}))
        if not isinstance(value, Tensor):
            raise InputError(
                "measure",
                "a function that reduces the last axis and returns a tensor",
                f"{self.name}, which returns {type(value).__name__}",
                remedy="as in (confidence - correct.double()).mean(-1).abs()",
            )
        return value.detach().double().cpu()


def check_takes_weights(measure: BoundMeasure, weights: Tensor | None) -> None:
    """Refuse weights, where there are some, for a measure that has no such argument."""
    if weights is not None and not measure_takes_weights(measure.value):
        raise InputError(
            "weights",
            f"none, since {measure.name} takes no weights",
            remedy="use a measure that has the argument weights",
        )


@dataclass(frozen=True)
class Measure:
    """An entry of the registry: a measure, and everything said about it.

    Attributes:
        name: The name in code, tables and thresholds.
        function: Computes it from the arrays of its kind, reducing over samples.
        title: The short name that people know it by.
        meaning: One line, without a full stop: the full name, and after a colon what it measures.
        kind: What it is computed from, a key of `KINDS`.
        unit: The unit of its values.
        higher_is_better: The direction; lower is better by default.
        target: The value of a calibrated model; None if that depends on the data.
        options: Options of the function that are fixed in this entry.
        metric_class: The torchmetrics class in `orbical.calibration.metrics`, if it has one.
        loss: The function of `orbical.losses` that trains for it, if there is one.
        interval: How its interval is made: "consistency" (resampling the data and labels of a
            calibrated model), "bootstrap" (a mean over samples: Student's t, or the exact interval
            of the accuracy), or "none".
        listed: Where it is listed, names of `LISTS`.
        report: What a report records of it, a name of `REPORTS`; a report computes no measure.
        one_target: For regression, whether it takes a single target only; None if unknown.
        minimum: The least number of samples.
        terms: For a mean over samples, the function that returns its terms `[N]`.
        binding: Makes the `BoundMeasure` from options, where the function alone does not say
            enough for a fast interval.
        table_interval: Computes the interval for a table, where the kind's own does not apply.

    Example:
        >>> from orbical.calibration import MEASURES
        >>> MEASURES["ece"].title, MEASURES["ece"]([0.9, 0.9], [True, False], bins=10)
        ('ECE', tensor(0.4000, dtype=torch.float64))
    """

    name: str
    function: Callable[..., Any]
    title: str
    meaning: str
    kind: str = "pair"
    unit: str = ""
    higher_is_better: bool = False
    target: float | None = 0.0
    options: Mapping[str, Any] = field(default_factory=dict)
    metric_class: str | None = None
    loss: str | None = None
    interval: str = "consistency"
    listed: tuple[str, ...] = LISTS
    report: str = "subsets"
    one_target: bool | None = None
    minimum: int = 1
    terms: Callable[..., Tensor] | None = None
    binding: Callable[..., BoundMeasure] | None = None
    table_interval: Callable[..., Any] | None = None

    @property
    def bounds(self) -> tuple[float, float] | None:
        """The values between which it lies, if its unit says so; a Brier score is up to 2."""
        highest = {"share": 1.0, "probability": 1.0, "probability squared": 2.0}.get(self.unit)
        return None if highest is None else (0.0, highest)

    @property
    def long_name(self) -> str:
        """The name in full, for axes of figures."""
        return self.meaning.partition(":")[0]

    def __call__(self, *arrays: Any, **options: Any) -> Tensor:
        """Compute the measure; options such as `bins` may be given by keyword."""
        own, rest = self.split(options)
        return self.bind(**own).value(*arrays, **rest)

    def bind(self, **options: Any) -> BoundMeasure:
        """Return the measure with options set, as intervals use it."""
        _, unknown = self.split(options)
        if unknown:
            raise InputError("options", problem=f"{self.name} does not take {', '.join(unknown)}")
        chosen = {**self.options, **options}
        if self.binding is not None:
            found = self.binding(self.name, **chosen)
        else:
            function = partial(self.function, **chosen)
            distance = None if self.interval == "bootstrap" else function
            found = BoundMeasure(self.name, function, distance)
        return replace(found, one_target=self.one_target, terms=self.terms)

    @cached_property
    def settings(self) -> dict[str, object]:
        """The options of the measure, with the values that they have in this entry."""
        arguments = inspect.signature(self.function).parameters.values()
        known = {part.name: part.default for part in arguments if part.default is not part.empty}
        options = {name: value for name, value in known.items() if name not in _ARRAYS}
        return {**options, **self.options}

    def accepted(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return those of some keywords, such as `bins`, that the measure has as options."""
        return self.split(given)[0]

    def split(self, given: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """Split keywords into options of the measure, such as `bins`, and the rest."""
        own = {name: value for name, value in given.items() if name in self.settings}
        return own, {name: value for name, value in given.items() if name not in own}

    def metric(self, **options: Any) -> Any:
        """Return the measure as a torchmetrics metric, for evaluation loops.

        Example:
            >>> from orbical.calibration import MEASURES
            >>> MEASURES["ece_l2"].metric(bins=10)
            ECE()
        """
        metrics = importlib.import_module(".metrics", __package__)  # torchmetrics takes long
        if self.metric_class is None:
            return metrics.metric_of_measure(self, **options)
        made = getattr(metrics, self.metric_class)
        fixed = {} if made.entry.options else self.options
        return made(**{**fixed, **options})


MeasureLike = str | Measure | BoundMeasure | Callable[..., Tensor]
"""A measure by its name, as an entry of the registry, or as a function that is a distance."""

MEASURES: dict[str, Measure] = {}
"""All registered measures by name."""


def register(measure: Measure) -> Measure:
    """Add a measure to the registry.

    Args:
        measure: The entry. Its function takes the arrays of its kind and reduces over samples: for
            "pair" `(confidence [..., N], correct [..., N])`.

    Returns:
        The entry.

    Raises:
        InputError: If the name is taken or not an identifier, or a field is not a known one.

    Example:
        >>> from orbical import calibration
        >>> def bias(confidence, correct):
        ...     return (confidence - correct.double()).mean(-1).abs()
        >>> entry = calibration.register(calibration.Measure(
        ...     "bias", bias, title="bias", meaning="mean confidence less accuracy"))
        >>> found = calibration.pair_table([0.9, 0.8, 0.7], [True, False, True], resamples=20)
        >>> round(float(found["bias"].value), 4)
        0.1333
        >>> del calibration.MEASURES["bias"]
    """
    if not isinstance(measure, Measure):
        raise InputError(
            "measure",
            "a Measure",
            type(measure),
            remedy="pass Measure(name, function, title=..., meaning=...)",
        )
    if not measure.name.isidentifier():
        raise InputError("name", "an identifier", repr(measure.name))
    if measure.name in MEASURES:
        raise InputError("name", "a new name", f"{measure.name!r}, which is registered")
    check_name("kind", measure.kind, KINDS)
    check_name("report", measure.report, REPORTS)
    for name in measure.listed:
        check_name("listed", name, LISTS)
    MEASURES[measure.name] = measure
    return measure


def list_measures(
    *kinds: str, listed: str | None = None, targets: int = 1, samples: int | None = None
) -> list[Measure]:
    """Return registered measures, in the order of registration.

    Args:
        kinds: Kinds to return, keys of `KINDS`; all if none is given.
        listed: Only those listed there, a name of `LISTS`.
        targets: The number of target components; measures of one target are left out for more.
        samples: The number of samples; measures that need more are left out.

    Returns:
        The entries.

    Example:
        >>> from orbical.calibration import list_measures
        >>> [measure.title for measure in list_measures("pair", listed="view")]
        ['ECE', 'smooth ECE', 'KS', 'ESD', 'MMCE']
    """
    return [
        measure
        for measure in MEASURES.values()
        if (not kinds or measure.kind in kinds)
        and (listed is None or listed in measure.listed)
        and not (measure.one_target and targets > 1)
        and (samples is None or samples >= measure.minimum)
    ]


_WORDS = {
    "ap": "AP",
    "correct": "accuracy",
    "ece": "ECE",
    "f1": "F1",
    "iou": "IoU",
    "mae": "MAE",
    "nll": "NLL",
    "oks": "OKS",
    "pck": "PCK",
    "rmse": "RMSE",
    "std": "standard deviation",
    "vs": "vs.",
}
"""The words in names of stored quantities that are not written as they are."""


def quantity_title(name: str) -> str:
    """Return the title of a quantity that a scan stores, for menus and axes.

    >>> quantity_title("mean_iou"), quantity_title("ap"), quantity_title("forces_vs_consensus")
    ('Mean IoU', 'AP', 'Forces vs. consensus')
    """
    check_type("name", name, str, "the name of a stored quantity")
    words = " ".join(_WORDS.get(word, word) for word in name.split("_"))
    return words[:1].upper() + words[1:]


def measure_title(name: str) -> str:
    """Return a measure's title, or of an unknown name what stands before a comma titled.

    >>> from orbical import calibration
    >>> measure_title("aleatoric_bleed, component 2")
    'aleatoric bleed, component 2'
    """
    check_type("name", name, str, "the name of a measure")
    first, comma, rest = name.partition(",")
    return (MEASURES[first].title if first in MEASURES else first) + comma + rest


def bound_measure(measure: MeasureLike, kind: str, options: Mapping[str, object]) -> BoundMeasure:
    """Find a measure of a kind by name, or take a function as a distance, and set its options."""
    if isinstance(measure, BoundMeasure):
        if options:
            raise InputError("options", "none beside a bound measure", ", ".join(options))
        return measure
    if callable(measure) and not isinstance(measure, Measure):
        function = partial(measure, **options)
        return BoundMeasure(
            getattr(measure, "__name__", type(measure).__name__), function, function
        )
    return measure_entry(measure, kind).bind(**options)


def measure_entry(measure: str | Measure, *kinds: str) -> Measure:
    """Return a measure, given by its name or as it is, that must be of one of some kinds.

    >>> from orbical import calibration
    >>> measure_entry("nll", "pair")
    Traceback (most recent call last):
    orbical.errors.InputError: measure: expected a measure of confidence and correctness such as ...
    """
    if not isinstance(measure, str | Measure):
        raise InputError("measure", "a name such as 'ece'", type(measure))
    if not isinstance(measure, Measure) and measure not in MEASURES:
        raise unknown_name("measure", measure, [entry.name for entry in list_measures(*kinds)])
    entry = measure if isinstance(measure, Measure) else MEASURES[measure]
    if entry.kind not in kinds:
        _, needed, example = KINDS[kinds[0]]
        remedy = "pass these to classification_table, or as outputs.npz to orbical check"
        raise InputError(
            "measure",
            f"a measure of {needed} such as {example}",
            f"{entry.name!r}, which needs {KINDS[entry.kind][1]}",
            remedy=remedy if entry.kind == "outputs" else "",
        )
    return entry
