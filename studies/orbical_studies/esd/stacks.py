"""Small classifiers that train as one: many losses, weights and seeds in the same steps.

The parameters of all networks are stacked, so that a step costs as many operations as that of one
network. Every network sees batches of its own, and AdamW treats every parameter by itself, so each
trains as if it were alone.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call, stack_module_state, vmap
from torch.nn import functional

from orbical import calibration

MEASURES: dict[str, Callable[..., Tensor]] = {
    "MMCE": calibration.mmce_squared,
    "SB-ECE": calibration.sb_ece,
    "ESD": calibration.esd,
}
"""What each loss of `orbical.losses` is on pairs `[networks, n]` of confidence and correctness."""

INNER = {"MMCE": "phi", "SB-ECE": "temperature"}
"""Name of the inner parameter of a measure; ESD has none."""


@dataclass(frozen=True)
class Trial:
    """One training; its text is its name. The loss `NLL` is the likelihood alone."""

    loss: str
    weight: float
    inner: float
    seed: int
    batch: int
    epochs: int

    def __str__(self) -> str:
        head = f"{self.loss}/lambda={self.weight:g}/inner={self.inner:g}/batch={self.batch}"
        return f"{head}/epochs={self.epochs}/seed={self.seed}"


@dataclass(frozen=True)
class Recipe:
    """How networks are made and trained.

    Attributes:
        network: Returns a new network, a function of samples and of `shared`.
        rate: The highest learning rate; it rises over the first tenth and falls to 0.
        decay: Weight decay of AdamW.
    """

    network: Callable[[], nn.Module]
    rate: float
    decay: float


@dataclass(frozen=True)
class Samples:
    """Samples `[n, ...]` and labels `[n]` on one device."""

    inputs: Tensor
    labels: Tensor


class Classifiers:
    """Classifiers of one shape with stacked parameters.

    Args:
        networks: Modules of one shape; not changed.
        shared: Passed to every network after its samples, such as a table of vectors.
    """

    def __init__(self, networks: Sequence[nn.Module], *shared: Tensor) -> None:
        self.parameters, self.buffers = stack_module_state(list(networks))
        self.shape = copy.deepcopy(networks[0]).to("meta")
        self.shared = shared

    def __call__(self, inputs: Tensor, *, own: bool) -> Tensor:
        """Return logits `[networks, n, classes]` of samples `[n, ...]`.

        Args:
            inputs: The samples; `[networks, n, ...]` if every network has its own.
            own: Whether every network has its own samples.
        """
        every = 0 if own else None
        answer = vmap(self._answer, in_dims=(0, 0, every), randomness="different")
        place = inputs.device.type
        with torch.autocast(place, torch.bfloat16, enabled=place == "cuda"):
            logits: Tensor = answer(self.parameters, self.buffers, inputs)
        return logits.float()

    def _answer(self, weights: Mapping[str, Tensor], kept: Mapping[str, Tensor], x: Tensor) -> Any:
        return functional_call(self.shape, (dict(weights), dict(kept)), (x, *self.shared))

    @torch.no_grad()
    def logits(self, inputs: Tensor, chunk: int = 1_000) -> Tensor:
        """Return logits `[networks, n, classes]` of samples `[n, ...]` in evaluation mode."""
        self.shape.eval()
        return torch.cat([self(part, own=False) for part in inputs.split(chunk)], 1)


def train_together(
    recipe: Recipe,
    trials: Sequence[Trial],
    fit: Samples,
    held_out: Samples,
    *shared: Tensor,
) -> Classifiers:
    """Train a network for each trial.

    A step takes a batch for the likelihood and one for the calibration loss. The likelihood alone
    also learns from the samples held out for calibration, in as many steps as the others take.

    Args:
        recipe: The networks and their optimizer.
        trials: Of one batch size and one number of epochs.
        fit: Samples for the likelihood.
        held_out: Samples for the calibration loss.
        shared: Passed to every network after its samples.

    Returns:
        The trained networks.
    """
    (batch, epochs), *others = {(trial.batch, trial.epochs) for trial in trials}
    assert not others, "a stack has one batch size and one number of epochs"
    place = fit.labels.device
    networks = []
    for trial in trials:
        torch.manual_seed(trial.seed)
        networks.append(recipe.network().to(place))
    stack = Classifiers(networks, *shared)
    stack.shape.train()
    inputs = torch.cat([fit.inputs, held_out.inputs])
    labels = torch.cat([fit.labels, held_out.labels])
    every = torch.arange(len(labels))
    batch = min(batch, len(fit.labels), len(held_out.labels))
    steps = epochs * (len(fit.labels) // batch)
    rows = [_batches(trial, every, len(fit.labels), (steps, batch)) for trial in trials]
    order = torch.stack(rows, 1).to(place)
    optimizer = torch.optim.AdamW(
        list(stack.parameters.values()), recipe.rate, weight_decay=recipe.decay
    )
    cycle = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, recipe.rate, steps, pct_start=0.1, anneal_strategy="linear", cycle_momentum=False
    )
    minimize = Objective(trials, place)
    for chosen in order:
        loss = minimize(stack(inputs[chosen], own=True), labels[chosen])
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        cycle.step()
    return stack


def _batches(trial: Trial, every: Tensor, fit: int, shape: tuple[int, int]) -> Tensor:
    """Return the samples of each step `[steps, 2 batch]`: for the likelihood, then held out."""
    generator = torch.Generator().manual_seed(trial.seed)
    own = every if trial.loss not in MEASURES else every[:fit]
    parts = (_shuffled(rows, shape[0] * shape[1], generator) for rows in (own, every[fit:]))
    return torch.cat([part.reshape(shape) for part in parts], 1)


def _shuffled(rows: Tensor, count: int, generator: torch.Generator) -> Tensor:
    """Return `count` rows: all of them in a random order, then in another, and so on."""
    rounds = -(-count // len(rows))
    each = [rows[torch.randperm(len(rows), generator=generator)] for _ in range(rounds)]
    return torch.cat(each)[:count]


class Objective:
    """The sum over networks of `NLL + weight * calibration loss`.

    Args:
        trials: One for each network.
        place: Device of the networks.

    Example:
        >>> trials = [Trial("NLL", 0.0, 0.0, 0, 4, 1), Trial("ESD", 10.0, 0.0, 0, 4, 1)]
        >>> minimize = Objective(trials, torch.device("cpu"))
        >>> minimize(torch.zeros(2, 8, 3), torch.zeros(2, 8, dtype=torch.long))
        tensor(6.64..., dtype=torch.float64)
    """

    def __init__(self, trials: Sequence[Trial], place: torch.device) -> None:
        self.parts = []
        for loss, inner in dict.fromkeys((trial.loss, trial.inner) for trial in trials):
            if loss not in MEASURES:
                continue
            alike = [(trial.loss, trial.inner) == (loss, inner) for trial in trials]
            rows = torch.tensor(alike).nonzero()[:, 0]
            weights = torch.tensor([trial.weight for trial in trials], dtype=torch.float64)[rows]
            settings = {INNER[loss]: inner} if loss in INNER else {}
            measure = partial(MEASURES[loss], **settings)
            self.parts.append((measure, rows.to(place), weights.to(place)))

    def __call__(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Return the sum.

        Args:
            logits: `[networks, 2 batch, classes]`; the likelihood takes the first half.
            labels: `[networks, 2 batch]`.
        """
        half = labels.shape[1] // 2
        own = logits[:, :half].flatten(0, 1), labels[:, :half].flatten()
        total = len(logits) * functional.cross_entropy(*own)
        confidence, predicted = logits[:, half:].softmax(-1).max(-1)
        correct = predicted == labels[:, half:]
        for measure, rows, weights in self.parts:
            total = total + (weights * measure(confidence[rows], correct[rows])).sum()
        return total
