"""A plain training loop: epochs, progress, early stopping, checkpoints, resume."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler

from orbical._trees import tree_map
from orbical.errors import InputError

from . import _checkpoints as checkpoints
from .objectives import Objective, likelihood

__all__ = ["History", "fit"]

Scores = dict[str, float]
_Kind = TypeVar("_Kind")


@dataclass
class History:
    """The scores of a training run.

    Attributes:
        rows: the scores of each epoch: `epoch`, `loss`, and those of `validate`.
        best_epoch: the epoch of the lowest monitored score, with `patience`; else None.
        stopped_early: whether patience ran out.
    """

    rows: list[Scores] = field(default_factory=list)
    best_epoch: int | None = None
    stopped_early: bool = False

    def column(self, name: str) -> list[float]:
        """Return one score over the epochs in which it was measured.

        Args:
            name: the score's name, such as `"loss"`.

        Returns:
            Its values, in the order of epochs.
        """
        return [row[name] for row in self.rows if name in row]


def fit(
    model: nn.Module,
    batches: Iterable[Any],
    *,
    optimizer: Optimizer | Callable[[Iterator[nn.Parameter]], Optimizer],
    epochs: int,
    objective: Objective = likelihood,
    scheduler: LRScheduler | Callable[[Optimizer], LRScheduler] | None = None,
    validate: Callable[[nn.Module, int], Scores] | None = None,
    monitor: str = "loss",
    patience: int | None = None,
    checkpoint: str | Path | None = None,
    generators: Sequence[torch.Generator] = (),
    autocast: torch.dtype | None = None,
    progress: bool = False,
) -> History:
    """Train a model for some epochs, or resume a run that was killed.

    With `checkpoint`, the state after each epoch (weights, optimizer, scheduler, random states,
    history) is saved to `last.safetensors` in that folder, and the run resumes from it if it is
    there. On a CPU the resumed run equals the uninterrupted one bit for bit, provided that the
    loaders draw from the global random states or from `generators`.

    Args:
        model: the network, on the device to train on; batches are moved there.
        batches: a loader of what `objective` takes: `(inputs, labels)`, or pairs of those from
            `interleave`.
        optimizer: an optimizer of the model's parameters, or a function that makes one from
            them, such as `lambda parameters: torch.optim.Adam(parameters, lr=1e-2)`.
        epochs: the total number of passes over `batches`, including those before a resume.
        objective: the loss of the model on a batch.
        scheduler: a scheduler of the optimizer, stepped after each epoch, or a function that
            makes one from it.
        validate: called after each epoch, in evaluation mode and without gradients, with the
            model and the epoch's number (from 1); returns scores for the history, `{}` for none.
        monitor: the score to minimize: `"loss"` (mean training loss) or one of `validate`'s.
        patience: epochs without a new lowest `monitor` after which to stop; the model then gets
            the weights of its best epoch, even if all epochs were run. None trains to the end.
        checkpoint: a folder, or None.
        generators: the loaders' own random generators, saved with the checkpoint.
        autocast: dtype of mixed precision, for example `torch.bfloat16`, or None.
        progress: show a progress bar (rich).

    Returns:
        The scores of each epoch.

    Raises:
        InputError: If an argument cannot be used, or if the checkpoint is of another model.

    Example:
        >>> _ = torch.manual_seed(0)
        >>> inputs = torch.randn(64, 2)
        >>> batches = [(inputs, (inputs[:, 0] > 0).long())]
        >>> model = nn.Linear(2, 2)
        >>> history = fit(model, batches, optimizer=torch.optim.Adam(model.parameters()), epochs=3)
        >>> history.rows[2]["loss"] < history.rows[0]["loss"]
        True
    """
    _check(model, batches, epochs, monitor, validate, patience)
    if not isinstance(optimizer, Optimizer):
        optimizer = _made("optimizer", optimizer, model.parameters(), Optimizer)
    if scheduler is not None and not isinstance(scheduler, LRScheduler):
        scheduler = _made("scheduler", scheduler, optimizer, LRScheduler)
    last = None if checkpoint is None else Path(checkpoint) / "last.safetensors"
    run = _Run(model, optimizer, scheduler, generators)
    if last is not None and last.is_file():
        run.resume(last)
    history = run.history
    with _bar(progress, epochs, batches) as advance:
        for epoch in range(len(history.rows) + 1, epochs + 1):
            if history.stopped_early:
                break
            loss = _one_epoch(model, batches, objective, optimizer, autocast, advance)
            scores: Scores = {"epoch": epoch, "loss": loss}
            if scheduler is not None:
                scheduler.step()
            if validate is not None:
                with torch.no_grad():
                    scores |= validate(model.eval(), epoch)
                model.train()
            history.rows.append(scores)
            if patience is not None:
                run.keep_best(monitor, patience)
            if last is not None:
                run.save(last)
    if run.best is not None:
        model.load_state_dict(run.best)
    return history


def _made(name: str, factory: Any, argument: Any, kind: type[_Kind]) -> _Kind:
    """Call the factory of an optimizer or a scheduler."""
    made = factory(argument) if callable(factory) else factory
    if not isinstance(made, kind):
        raise InputError(
            name, f"a torch {kind.__name__} or a function that makes one", type(made).__name__
        )
    return made


def _check(
    model: nn.Module,
    batches: Iterable[Any],
    epochs: int,
    monitor: str,
    validate: Callable[[nn.Module, int], Scores] | None,
    patience: int | None,
) -> None:
    if next(model.parameters(), None) is None:
        raise InputError("model", "parameters to train", "none")
    if isinstance(batches, Sized) and len(batches) == 0:
        raise InputError("batches", "at least one batch", "an empty loader")
    if epochs < 1:
        raise InputError("epochs", "a whole number >= 1", epochs)
    if patience is not None and patience < 1:
        raise InputError("patience", "a whole number >= 1 or None", patience)
    if monitor != "loss" and validate is None:
        raise InputError("monitor", "'loss' without validate", repr(monitor))


def _one_epoch(
    model: nn.Module,
    batches: Iterable[Any],
    objective: Objective,
    optimizer: Optimizer,
    autocast: torch.dtype | None,
    advance: Callable[[], None],
) -> float:
    model.train()
    device = next(model.parameters()).device
    # Summed on the device: reading each loss would make the host wait for every step.
    total, count = torch.zeros((), dtype=torch.float64, device=device), 0
    for batch in batches:
        moved = tree_map(
            lambda leaf: leaf.to(device, non_blocking=True) if isinstance(leaf, Tensor) else leaf,
            batch,
        )
        precision = nullcontext() if autocast is None else torch.autocast(device.type, autocast)
        with precision:
            loss = objective(model, moved)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        total += loss.detach()
        count += 1
        advance()
    if count == 0:
        raise InputError("batches", "a loader that can be read again", "no batch")
    return float(total) / count


@dataclass
class _Run:
    """A training run: all that a checkpoint keeps."""

    model: nn.Module
    optimizer: Optimizer
    scheduler: LRScheduler | None
    generators: Sequence[torch.Generator]
    history: History = field(default_factory=History)
    best: dict[str, Tensor] | None = None

    def keep_best(self, monitor: str, patience: int) -> None:
        """Keep the weights of a new lowest score; stop if there was none for too long."""
        history = self.history
        row = history.rows[-1]
        if monitor not in row:
            raise InputError("monitor", f"one of {sorted(row)}", repr(monitor))
        best = history.best_epoch
        if row[monitor] < (math.inf if best is None else history.rows[best - 1][monitor]):
            history.best_epoch = len(history.rows)
            self.best = {name: v.detach().clone() for name, v in self.model.state_dict().items()}
        else:
            history.stopped_early = len(history.rows) - (best or 0) >= patience

    def save(self, path: Path) -> None:
        """Write the state after an epoch."""
        state = {
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "scheduler": None if self.scheduler is None else self.scheduler.state_dict(),
            "random": checkpoints.random_state(self.generators),
            "best": self.best,
        }
        checkpoints.save(path, state | vars(self.history))

    def resume(self, path: Path) -> None:
        """Restore a state, including the global random states."""
        state = checkpoints.load(path)
        try:
            self.model.load_state_dict(state["model"])
            self.optimizer.load_state_dict(state["optimizer"])
        except (RuntimeError, ValueError) as other:
            raise InputError(
                "checkpoint",
                "a state of this model and optimizer",
                f"{str(path)!r} of another model or optimizer ({other})",
                remedy="pass an empty folder",
            ) from other
        if self.scheduler is not None and state["scheduler"] is not None:
            self.scheduler.load_state_dict(state["scheduler"])
        checkpoints.set_random_state(state["random"], self.generators)
        self.history = History(*(state[name] for name in vars(self.history)))
        self.best = state["best"]


@contextmanager
def _bar(show: bool, epochs: int, batches: Iterable[Any]) -> Iterator[Callable[[], None]]:
    if not show:
        yield lambda: None
        return
    from rich.progress import Progress  # here: machines that only train may not have it

    total = epochs * len(batches) if isinstance(batches, Sized) else None
    with Progress() as bar:
        task = bar.add_task("training", total=total)
        yield lambda: bar.advance(task)
