"""What a table is computed from: outputs or predictions that are read once, and its settings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from torch import Tensor

from .._arrays import ArrayLike
from ._sorting import ascending, take
from .inputs import kept_samples, sample_weights
from .outputs import classwise, given_outputs, log_probabilities, probabilities, top_label


@dataclass(frozen=True)
class Settings:
    """The settings of a table: bins of binned measures, and the draws of intervals."""

    bins: int = 15
    level: float = 0.95
    resamples: int = 1000
    seed: int = 0

    @property
    def fewer(self) -> int:
        """The number of draws of what is drawn for each class."""
        return max(20, self.resamples // 5)

    def draws(self, resamples: int | None = None) -> dict[str, Any]:
        """Return the arguments of an interval."""
        draws = self.resamples if resamples is None else resamples
        return {"level": self.level, "resamples": draws, "seed": self.seed}


class Outputs:
    """A classifier's outputs and labels, each form of them computed once."""

    def __init__(
        self,
        probs: ArrayLike | None,
        logits: ArrayLike | None,
        labels: ArrayLike,
        weights: ArrayLike | None = None,
        ignore_index: int | None = None,
    ) -> None:
        name, outputs = given_outputs(probs, logits)
        mass = sample_weights(weights, outputs[..., 0])
        outputs, truth, kept = kept_samples(labels, outputs, ignore_index)
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
        return take(of_class.detach(), order), take(is_class, order)

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
class Predictions:
    """A regressor's Gaussian predictions; `aleatoric` is `[N, d]`, or None if unknown."""

    mean: ArrayLike
    variance: ArrayLike
    target: ArrayLike
    aleatoric: Any = None
    weights: Tensor | None = None
