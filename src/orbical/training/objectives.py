"""What a training step minimizes: the likelihood alone, or with a calibration loss interleaved."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sized
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from orbical.errors import InputError

Objective = Callable[[nn.Module, Any], Tensor]


class Interleaved:
    """Pairs of batches, one from each of two loaders; made by `interleave`."""

    def __init__(self, train: Iterable[Any], calibration: Iterable[Any]) -> None:
        self.train = train
        self.calibration = calibration

    def __iter__(self) -> Iterator[tuple[Any, Any]]:
        held_out = iter(self.calibration)
        for batch in self.train:
            try:
                other = next(held_out)
            except StopIteration:
                held_out = iter(self.calibration)
                other = next(held_out, None)
                if other is None:
                    raise InputError(
                        "calibration: the loader is empty when it is read again; "
                        "expected one that can be iterated more than once, not an iterator"
                    ) from None
            yield batch, other

    def __len__(self) -> int:
        if not isinstance(self.train, Sized):
            raise TypeError("train: the loader has no length")
        return len(self.train)


def interleave(train: Iterable[Any], calibration: Iterable[Any]) -> Interleaved:
    """Pair each training batch with a batch held out for the calibration loss.

    One pass over the pairs is one pass over `train`; `calibration` starts anew with each pass and
    is cycled where it is the shorter one. Both are read again each epoch, so both must be loaders
    (iterable more than once), not iterators.

    Args:
        train: batches for the likelihood.
        calibration: batches for the calibration loss, from samples the likelihood never sees.
            A short last batch is left out by the loader's `drop_last=True`.

    Returns:
        An iterable of pairs `(training batch, calibration batch)`, as long as `train`.

    Example:
        >>> list(interleave(["a", "b", "c"], [1, 2]))
        [('a', 1), ('b', 2), ('c', 1)]

    Paper: ESD, section 4.2, eq. 11 (from Karandikar et al. 2021).
    """
    for name, loader in (("train", train), ("calibration", calibration)):
        if not isinstance(loader, Iterable):
            raise InputError(f"{name}: got {type(loader).__name__}, expected a loader of batches")
        if isinstance(loader, Iterator):
            raise InputError(
                f"{name}: got an iterator, which can be read once only; "
                "expected a loader (a list, a DataLoader) that each epoch can read again"
            )
        if isinstance(loader, Sized) and len(loader) == 0:
            raise InputError(f"{name}: the loader is empty; expected at least one batch")
    return Interleaved(train, calibration)


def likelihood(model: nn.Module, batch: tuple[Tensor, Tensor]) -> Tensor:
    """Mean negative log-likelihood of a batch `(inputs, labels)`.

    Args:
        model: gives logits `[n, classes]`.
        batch: inputs `[n, ...]` and labels `[n]`.

    Returns:
        The loss, a scalar.

    Example:
        >>> likelihood(nn.Identity(), (torch.zeros(4, 2), torch.tensor([0, 1, 0, 1])))
        tensor(0.6931)
    """
    inputs, labels = _batch("batch", batch)
    return functional.cross_entropy(model(inputs).float(), labels.long())


def _batch(name: str, batch: Any) -> tuple[Any, Tensor]:
    """Take a batch apart, or say what was given in its place."""
    if isinstance(batch, tuple | list) and len(batch) == 2:
        inputs, labels = batch
        if isinstance(labels, Tensor):
            return inputs, labels
        if isinstance(labels, tuple | list):
            raise InputError(
                f"{name}: a pair of batches given, (inputs, labels) expected; pairs of "
                "`interleave` need objective=interleaved(loss, weight=...)"
            )
    raise InputError(
        f"{name}: {_described(batch)} given, (inputs, labels) expected; write an "
        "objective(model, batch) of your own for anything else"
    )


def _described(batch: Any) -> str:
    parts = batch if isinstance(batch, tuple | list) else [batch]
    return f"{type(batch).__name__} of " + ", ".join(type(part).__name__ for part in parts)


def interleaved(calibration_loss: Callable[[Tensor, Tensor], Tensor], weight: float) -> Objective:
    """Make the objective `NLL(training batch) + weight * calibration_loss(calibration batch)`.

    Both batches go through the model in one forward pass: half as many kernel launches as two
    passes, and batch norm sees one distribution.

    Args:
        calibration_loss: of logits `[n, classes]` and labels `[n]`, as in `orbical.losses`.
        weight: lambda, not negative.

    Returns:
        A function of the model and a pair of batches, as `interleave` gives them.

    Example:
        >>> from orbical import losses
        >>> objective = interleaved(losses.esd, weight=2.0)
        >>> batch = torch.zeros(4, 2), torch.tensor([0, 1, 0, 1])
        >>> objective(nn.Identity(), (batch, batch))
        tensor(0.5...)

    Paper: ESD, eq. 11.
    """
    if not callable(calibration_loss):
        raise InputError(
            f"calibration_loss: {calibration_loss!r} given, a function of logits and labels "
            "expected, such as orbical.losses.esd"
        )
    if not weight >= 0:
        raise InputError(f"weight: got {weight}, expected a number that is not negative")

    def objective(
        model: nn.Module, pair: tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]
    ) -> Tensor:
        if not isinstance(pair, tuple | list) or len(pair) != 2 or isinstance(pair[0], Tensor):
            raise InputError(
                "batches: single batches given, pairs expected; "
                "interleave(train_loader, calibration_loader) makes them"
            )
        inputs, labels = _batch("training batch", pair[0])
        held_inputs, held_labels = _batch("calibration batch", pair[1])
        logits = model(torch.cat([inputs, held_inputs])).float()
        own, held = logits[: len(inputs)], logits[len(inputs) :]
        likelihood = functional.cross_entropy(own, labels.long())
        return likelihood + weight * calibration_loss(held, held_labels)

    return objective
