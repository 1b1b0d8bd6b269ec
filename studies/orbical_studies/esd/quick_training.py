"""One short training on all images of a data set: network, optimizer, schedule, measures."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from orbical import calibration, losses

from ..framework.training import Trained, placed
from ..networks.classifiers import WhitenedNet
from .batches import Batches, Shuffled, Split, as_images, objective_of, partition
from .recording import recorded
from .settings import BASELINE, BATCH
from .training import measured

CLASSES = {"cifar10": 10, "cifar100": 100, "snli": 3, "lingnli": 3}
WIDTHS = (80, 320, 320)
RATE, MOMENTUM, RISE = 0.75, 0.85, 0.2
"""Of batches of 512; the rate is proportional to the batch."""

PATCHED = 4_000
"""Training images from which the filters of the first layer are found."""
WEIGHTS_KEPT = 1
"""The seed whose weights are kept, in half precision."""


@dataclass(frozen=True)
class Trial:
    """One training; its text is its name.

    Attributes:
        data: The data set.
        loss: The calibration loss, or the baseline's name.
        weight: Lambda.
        inner: MMCE's kernel width, SB-ECE's temperature; 0 for losses without.
        seed: Of weights, order, crops and mirrors.
        epochs: Passes over the training images.
        decay: Weight decay.
        batch: Images in a batch, of the likelihood and of the loss.
    """

    data: str
    loss: str
    weight: float
    inner: float
    seed: int
    epochs: int
    decay: float
    batch: int = BATCH

    def __str__(self) -> str:
        head = f"{self.data}/{self.loss}/lambda={self.weight:g}/inner={self.inner:g}"
        return f"{head}/batch={self.batch}/decay={self.decay:g}/seed={self.seed}"


class Flipped(Batches):
    """Batches of which a share of the images, drawn each time, is mirrored after the crop."""

    def __init__(self, *arguments: Any, share: float = 0.5, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.share = share

    def __iter__(self) -> Iterator[tuple[Tensor, Tensor]]:
        for images, labels in super().__iter__():
            mirrored = torch.rand(len(images), 1, 1, 1, **self.random) < self.share
            yield torch.where(mirrored, images.flip(-1), images), labels


def loss_of(trial: Trial) -> Callable[[Tensor, Tensor], Tensor] | None:
    """Return the calibration loss with its inner parameter; None for the likelihood alone."""
    made: dict[str, Callable[[Tensor, Tensor], Tensor] | None] = {
        "MMCE": partial(losses.mmce, phi=trial.inner),
        "SB-ECE": partial(losses.sb_ece, temperature=trial.inner),
        "ESD": losses.esd,
        "ECE": losses.ece,
        BASELINE: None,
    }
    return made[trial.loss]


@dataclass(frozen=True)
class Recipe:
    """How a network is made and trained, beside what a trial says.

    Attributes:
        network: Returns a new network for the training samples and a number of classes.
        optimizer: Returns the optimizer of parameters for a rate, a tensor, and a decay.
        rate: The highest rate, of batches of 512.
        height: Share of the rate after a share of the steps.
        batches: `batches(split, batch, generator)` returns batches.
    """

    network: Callable[[Split, int], nn.Module]
    optimizer: Callable[..., torch.optim.Optimizer]
    rate: float
    height: Callable[[float], float]
    batches: Callable[..., Shuffled]


def _height_of_cycle(share: float) -> float:
    """Return the rate after a share of the steps: from a fifth up to 1, then down to 0.

    >>> [round(_height_of_cycle(share), 2) for share in (0.0, 0.1, 0.2, 0.6, 1.0)]
    [0.2, 0.6, 1.0, 0.5, 0.0]
    """
    return min(0.2 + 0.8 * share / RISE, (1 - share) / (1 - RISE))


def whitened(split: Split, classes: int, widths: Sequence[int] = WIDTHS) -> WhitenedNet:
    """Return a new network whose first layer whitens the images of a split."""
    return WhitenedNet(as_images(split.pixels[:PATCHED]), classes, widths)


CYCLE = Recipe(
    whitened,
    partial(torch.optim.SGD, momentum=MOMENTUM, nesterov=True, fused=True),
    RATE,
    _height_of_cycle,
    partial(Flipped, crop=True),
)
"""A network that trains in seconds, with one cycle of the rate."""


@dataclass(frozen=True, eq=False)
class Training:
    """A network with what trains it; `step` takes the tensors of a batch, or of a pair of them."""

    model: nn.Module
    optimizer: torch.optim.Optimizer
    batches: Any
    step: Callable[..., None]

    def recorded(self, tensors: tuple[Tensor, ...]) -> Callable[..., None]:
        """Return the step, as one launch where the tensors are on a GPU."""
        weights = [*self.model.parameters(), *self.model.buffers()]
        return recorded(self.step, tensors, weights, self.optimizer)


def prepared(trial: Any, parts: dict[str, Split], recipe: Recipe = CYCLE) -> Training:
    """Make a new network, its optimizer, its batches, and its step, by default of a short cycle."""
    place = parts["fit"].labels.device
    torch.manual_seed(trial.seed)
    model = placed(recipe.network(parts["fit"], CLASSES[trial.data]), place)
    rate = torch.tensor(recipe.rate * trial.batch / BATCH, device=place)
    trained = [each for each in model.parameters() if each.requires_grad]
    optimizer = recipe.optimizer(trained, lr=rate, weight_decay=trial.decay)
    generator = torch.Generator(place).manual_seed(trial.seed)
    objective, batches = objective_of(
        loss_of(trial),
        trial.weight,
        parts,
        lambda split: recipe.batches(split, trial.batch, generator),
    )

    fused = torch.compile(model, disable=place.type != "cuda")

    def step(*tensors: Tensor) -> None:
        pairs = [*zip(tensors[::2], tensors[1::2], strict=True)]
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast(place.type, torch.bfloat16, enabled=place.type == "cuda"):
            loss = objective(fused, pairs[0] if len(pairs) == 1 else pairs)
        loss.backward()
        optimizer.step()

    model.train()
    torch.backends.cudnn.benchmark = True  # all batches have one shape
    return Training(model, optimizer, batches, step)


def tensors_of(batch: Any) -> tuple[Tensor, ...]:
    """Return images and labels of a batch, or of both batches of a pair, one after the other.

    >>> [len(tensors_of(batch)) for batch in ((1, 2), ((1, 2), (3, 4)))]
    [2, 4]
    """
    return batch if not isinstance(batch[0], tuple) else (*batch[0], *batch[1])


def fit(
    trial: Any,
    parts: dict[str, Split],
    recipe: Recipe = CYCLE,
    watch: Callable[[nn.Module, int], None] | None = None,
) -> tuple[nn.Module, int]:
    """Train, by default with one cycle of the rate; return the network and the number of steps.

    `watch` is called after every epoch with the network and the epoch's number, from 1.
    """
    made = prepared(trial, parts, recipe)
    rate = made.optimizer.param_groups[0]["lr"]
    highest, steps = float(rate), trial.epochs * len(made.batches)
    step, done = None, 0
    for epoch in range(1, trial.epochs + 1):
        for batch in made.batches:
            tensors = tensors_of(batch)
            step = step or made.recorded(tensors)
            rate.fill_(highest * recipe.height(done / steps))
            step(*tensors)
            done += 1
        if watch is not None:
            watch(made.model, epoch)
            made.model.train()
    return made.model, steps


def run(splits: dict[str, Split], trial: Trial) -> Trained:
    """Train and measure one network; keep confidence and correctness of the test images."""
    started = time.perf_counter()
    parts, test = partition(splits["train"]), splits["test"]
    model, steps = fit(trial, parts)
    trained = time.perf_counter() - started
    row, _, logits = measured(model, parts["validation"], test, shifted=False)
    truth = test.labels.cpu()
    scaled = logits / (row["temperature"] or 1.0)
    kept = {}
    for name, values in {"": logits, "_ts": scaled}.items():
        confidence, correct = calibration.top_label(labels=truth, logits=values)
        kept[f"confidence{name}"] = confidence.numpy().astype(np.float32)
        kept["correct"] = correct.numpy()
    if trial.seed == WEIGHTS_KEPT and trial.batch == BATCH:
        state = model.state_dict().items()
        kept |= {f"weights/{name}": value.half().cpu().numpy() for name, value in state}
    seconds = {"seconds_training": trained, "seconds": time.perf_counter() - started}
    return {**row, "steps": steps, **{k: round(v, 3) for k, v in seconds.items()}}, kept
