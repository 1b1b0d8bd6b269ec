"""What the torchmetrics classes share: options of a measure, and the states that metrics keep."""

from __future__ import annotations

import inspect
from typing import Any, ClassVar

import torch
from torch import Tensor
from torchmetrics import Metric
from torchmetrics.utilities import dim_zero_cat, rank_zero_warn

from ...errors import check_name
from .. import built_in_measures as built_in_measures  # the measures that classes are made of
from ..pairs.pairs_and_weights import at_least_pairs
from ..registry import MEASURES, Measure

_OF_ALL = (
    "compute_on_cpu", "compute_with_cache", "dist_sync_fn", "dist_sync_on_step",
    "distributed_available_fn", "process_group", "sync_on_compute",
)  # fmt: skip
"""The keywords of `torchmetrics.Metric`."""

_ANY = [0.5, 0.6, 0.7]
_TRIAL: dict[str, tuple[object, ...]] = {
    "pair": (_ANY, [True, False, True]),
    "regression": (_ANY, _ANY, _ANY),
}
_TRIAL_OUTPUTS = {"probs": [[0.5, 0.5], [0.9, 0.1]], "labels": [0, 1]}
"""A few samples: computing a measure of them checks its options when a metric is made."""


class MeasureMetric(Metric):
    """A metric of a registered measure, `class KS(..., measure="ks")`, with the measure's options.

    Attributes:
        entry: The measure.
        keywords: The keywords of the class beside the options of the measure.
        settings: All its options, with their values.
        function: The measure with these options, of samples.
    """

    is_differentiable = False
    full_state_update = False
    plot_lower_bound: float | None = 0.0
    entry: ClassVar[Measure]
    keywords: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls, measure: str | None = None, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        if measure is None:
            return
        cls.entry = MEASURES[measure]
        cls.higher_is_better = cls.entry.higher_is_better
        known = inspect.signature(cls.entry.function).parameters
        own = [known[name] for name in cls.entry.settings if name not in cls.entry.options]
        options = inspect.Parameter("options", inspect.Parameter.VAR_KEYWORD)
        cls.__signature__ = inspect.Signature([*own, options])  # type: ignore[attr-defined]

    def __init__(self, *, measure: Measure | None = None, **options: Any) -> None:
        entry = self.entry if measure is None else measure
        own, rest = entry.split(options)
        try:
            super().__init__(**rest)
        except ValueError as error:
            for name in rest if "Unexpected keyword" in str(error) else ():
                check_name(type(self).__name__, name, [*entry.settings, *self.keywords, *_OF_ALL])
            raise
        self.settings = {**entry.settings, **own}
        self._minimum = entry.minimum
        self.function = entry.bind(**own).value
        if measure is None:
            trial = _TRIAL.get(entry.kind, ())
            self.function(*trial, **({} if trial else _TRIAL_OUTPUTS))

    def _add(self, weights: Tensor | None, *arrays: Tensor, **outputs: Tensor) -> None:
        """Add a batch that was checked."""
        raise NotImplementedError

    def _keep_sums(self, **shapes: tuple[int, ...]) -> None:
        """Keep sums over samples, in arrays of these shapes."""
        for name, shape in shapes.items():
            self.add_state(name, torch.zeros(shape, dtype=torch.float64), dist_reduce_fx="sum")

    def _sums(self) -> list[Any]:
        return [getattr(self, name) for name in self._defaults]

    def _add_sums(self, *parts: Tensor | float) -> None:
        states = vars(self)  # a module's own setattr looks for parameters first
        for name, part in zip(self._defaults, parts, strict=True):
            states[name] = states[name] + part

    def plot(self, val: Any = None, ax: Any = None) -> Any:
        """Plot a value, or the values of several steps, as torchmetrics does.

        Args:
            val: Results of `forward` or `compute`; the current value by default.
            ax: A matplotlib axis to draw in.

        Returns:
            Figure and axis.
        """
        return self._plot(val, ax)


class MeanMetric(MeasureMetric):
    """A mean over samples: keeps the weighted sum of its terms, and of their weights.

    Its states carry its name: a collection joins metrics whose states agree after the first batch,
    and two different means may agree there by chance.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._keep_sums(**{f"{self.entry.name}_{part}": () for part in ("sum", "mass")})

    def _add(self, weights: Tensor | None, *arrays: Tensor, **outputs: Tensor) -> None:
        """Add the terms `[N]` of a batch with their weights."""
        assert self.entry.terms is not None
        terms = self.entry.terms(*arrays, **outputs).detach().double()
        each = torch.ones_like(terms) if weights is None else weights
        terms = terms.where(each > 0, 0.0)  # those that do not count may be infinite
        self._add_sums((terms * each).sum(), each.sum())

    def compute(self) -> Tensor:
        """Return the mean over everything seen so far."""
        total, mass = self._sums()
        mean: Tensor = total / mass
        return mean


class KeptMetric(MeasureMetric):
    """A measure of all samples together, which are therefore kept."""

    arrays: ClassVar[tuple[str, ...]]

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        for name in (*self.arrays, "mass"):
            self.add_state(name, [], dist_reduce_fx="cat")

    def _add(self, weights: Tensor | None, *arrays: Tensor, **outputs: Tensor) -> None:
        """Keep a batch; weights of 1 take the memory of a single one."""
        if weights is None:
            one = torch.ones(1, dtype=torch.float64, device=arrays[0].device)
            weights = one.expand(len(arrays[0]))
        for state, part in zip(self._sums(), (*arrays, weights), strict=True):
            state.append(part)

    def compute(self) -> Tensor:
        """Return the measure of everything seen so far."""
        if any(isinstance(part, list) and not part for part in self._sums()):
            return self._too_few(0)
        *seen, mass = (dim_zero_cat(part) for part in self._sums())
        if (count := int((mass > 0).sum())) < self._minimum:
            return self._too_few(count)
        weights = {} if bool((mass == 1).all()) else {"weights": mass}
        return self.function(*seen, **weights)

    def _too_few(self, count: int) -> Tensor:
        """Return NaN: the last batch of an epoch may have few samples, and `forward` its value."""
        name, least = type(self).__name__, at_least_pairs(self._minimum, "sample")
        rank_zero_warn(f"{name}: expected {least}, got {count}; the value is NaN", UserWarning)
        return torch.tensor(torch.nan, dtype=torch.float64, device=self.device)
