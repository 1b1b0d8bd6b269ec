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
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler, OneCycleLR

from orbical import calibration

from .recording import recorded

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


def _rise_and_fall(optimizer: Optimizer, steps: int) -> LRScheduler:
    """Return the schedule of a rate that rises over the first tenth and falls to 0."""
    highest = float(optimizer.param_groups[0]["lr"])
    shape: dict[str, Any] = {"anneal_strategy": "linear", "cycle_momentum": False}
    return OneCycleLR(optimizer, highest, steps, pct_start=0.1, **shape)


@dataclass(frozen=True)
class Recipe:
    """How networks are made and trained.

    Attributes:
        network: Returns a new network, a function of samples and of `shared`.
        rate: The highest learning rate.
        decay: Weight decay of AdamW.
        schedule: Returns the schedule of an optimizer over a number of steps; by default the rate
            rises over the first tenth and falls to 0. None keeps it.
        kind: The class of the stack.
    """

    network: Callable[[], nn.Module]
    rate: float
    decay: float
    schedule: Callable[[Optimizer, int], LRScheduler] | None = _rise_and_fall
    kind: type[Classifiers] | None = None


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
    watch: Callable[[Classifiers, int], None] | None = None,
) -> Classifiers:
    """Train a network for each trial.

    A step takes a batch for the likelihood and one for the calibration loss. The likelihood alone
    also learns from the samples held out for calibration, in as many steps as the others of its
    stack take. Networks of one seed that learn from the same samples see the same batches.

    Args:
        recipe: The networks and their optimizer.
        trials: Of one batch size and one number of epochs.
        fit: Samples for the likelihood.
        held_out: Samples for the calibration loss.
        shared: Passed to every network after its samples.
        watch: Called after every epoch with the networks and its number, from 1.

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
    stack = (recipe.kind or Classifiers)(networks, *shared)
    inputs = torch.cat([fit.inputs, held_out.inputs])
    labels = torch.cat([fit.labels, held_out.labels])
    every = torch.arange(len(labels))
    batch = min(batch, len(fit.labels), len(held_out.labels))
    interleaved = any(trial.loss in MEASURES for trial in trials)
    length = len(fit.labels if interleaved else labels) // batch
    alike = len({(trial.seed, trial.loss in MEASURES) for trial in trials}) == 1
    rows = [
        _batches(trial, every, len(fit.labels), (epochs * length, batch))
        for trial in trials[: 1 if alike else None]
    ]
    order = torch.stack(rows, 1)[..., : 2 * batch if interleaved else batch].to(place)
    on_gpu = place.type == "cuda"
    weights = list(stack.parameters.values())
    rate: Any = torch.tensor(recipe.rate, device=place) if on_gpu else recipe.rate
    optimizer = torch.optim.AdamW(
        weights, rate, weight_decay=recipe.decay, capturable=on_gpu, fused=on_gpu
    )
    cycle = recipe.schedule(optimizer, len(order)) if recipe.schedule else None
    minimize = Objective(trials, place)

    def step(chosen: Tensor) -> None:
        logits = stack(inputs[chosen[0]] if alike else inputs[chosen], own=not alike)
        loss = minimize(logits, labels[chosen].expand(len(trials), -1))
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()

    stack.shape.train()
    step = recorded(step, order[:1].unbind(), [*weights, *stack.buffers.values()], optimizer)
    for done, chosen in enumerate(order, 1):
        step(chosen)
        if cycle is not None:
            cycle.step()
        if watch is not None and done % length == 0:
            watch(stack, done // length)
            stack.shape.train()
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
            logits: `[networks, 2 batch, classes]`; the likelihood takes the first half, or all of
                `[networks, batch, classes]` where no network has a calibration loss.
            labels: `[networks, 2 batch]`.
        """
        half = labels.shape[1] // 2 if self.parts else labels.shape[1]
        own = logits[:, :half].flatten(0, 1), labels[:, :half].flatten()
        total = len(logits) * functional.cross_entropy(*own)
        confidence, predicted = logits[:, half:].softmax(-1).max(-1)
        correct = predicted == labels[:, half:]
        for measure, rows, weights in self.parts:
            total = total + (weights * measure(confidence[rows], correct[rows])).sum()
        return total
