"""What a training step minimizes: likelihood and calibration loss interleaved, and its weight."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sized
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from .._arrays import both_classes
from ..errors import InputError, real_number

__all__ = ["Interleaved", "Selection", "interleave", "interleaved", "likelihood", "select"]

Objective = Callable[[nn.Module, Any], Tensor]


class Interleaved:
    """Pairs of batches, one from each of two loaders; made by `interleave`.

    Args:
        train: batches for the likelihood.
        calibration: batches for the calibration loss.
    """

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
                        "calibration",
                        "a loader that can be iterated more than once",
                        "no batch when it was read again",
                        remedy="pass a list or a DataLoader",
                    ) from None
            yield batch, other

    def __len__(self) -> int:
        if not isinstance(self.train, Sized):
            raise TypeError(f"train: expected a length, got {type(self.train).__name__} without")
        return len(self.train)


def interleave(train: Iterable[object], calibration: Iterable[object]) -> Interleaved:
    """Pair each training batch with a batch held out for the calibration loss.

    One pass over the pairs is one pass over `train`; `calibration` restarts with each pass and is
    cycled where it is shorter. Both are read again in each epoch, so both must be loaders (iterable
    more than once), not iterators.

    Args:
        train: batches for the likelihood.
        calibration: batches for the calibration loss, from samples the likelihood never sees.
            Pass `drop_last=True` to the loader to drop a short last batch.

    Returns:
        An iterable of pairs `(training batch, calibration batch)`, as long as `train`.

    Example:
        >>> list(interleave(["a", "b", "c"], [1, 2]))
        [('a', 1), ('b', 2), ('c', 1)]

    Paper: ESD, section 4.2, eq. 11 (from Karandikar et al. 2021).
    """
    for name, loader in (("train", train), ("calibration", calibration)):
        if not isinstance(loader, Iterable):
            raise InputError(name, "a loader of batches", type(loader))
        if isinstance(loader, Iterator):
            raise InputError(
                name,
                "a loader that each epoch can read again",
                "an iterator",
                remedy="pass a list or a DataLoader",
            )
        if isinstance(loader, Sized) and len(loader) == 0:
            raise InputError(name, "at least one batch", "an empty loader")
    return Interleaved(train, calibration)


def likelihood(model: nn.Module, batch: tuple[Tensor, Tensor]) -> Tensor:
    """Return the mean negative log-likelihood of a batch `(inputs, labels)`.

    Args:
        model: a network that returns logits `[n, classes]`, or those of class 1 of two, `[n, 1]`.
        batch: inputs `[n, ...]` and labels `[n]`.

    Returns:
        The loss, a scalar.

    Example:
        >>> likelihood(nn.Identity(), (torch.zeros(4, 2), torch.tensor([0, 1, 0, 1])))
        tensor(0.6931)
    """
    inputs, labels = _objective_batch("batch", batch)
    return _cross_entropy(model(inputs).float(), labels)


def _cross_entropy(logits: Tensor, labels: Tensor) -> Tensor:
    return functional.cross_entropy(both_classes(logits, logits=True, axis=1), labels.long())


def _objective_batch(name: str, batch: Any) -> tuple[Any, Tensor]:
    """Return the inputs and the labels of a batch."""
    labels = batch[1] if isinstance(batch, tuple | list) and len(batch) == 2 else None
    if isinstance(labels, Tensor):
        return batch[0], labels
    given, remedy = type(batch).__name__, "pass an objective(model, batch) for anything else"
    if isinstance(batch, tuple | list):
        given += " of " + ", ".join(type(part).__name__ for part in batch)
    if isinstance(labels, tuple | list):
        given = "a pair of batches"
        remedy = "pass objective=interleaved(loss, weight=...) for pairs of `interleave`"
    raise InputError(name, "(inputs, labels)", given, remedy=remedy)


def interleaved(calibration_loss: Callable[[Tensor, Tensor], Tensor], weight: float) -> Objective:
    """Return the objective `NLL(training batch) + weight * calibration_loss(calibration batch)`.

    Both batches go through the model in one forward pass: half as many kernel launches as two
    passes, and batch norm sees one distribution.

    Args:
        calibration_loss: a function of logits `[n, classes]` and labels `[n]`, as in
            `orbical.losses`.
        weight: lambda, not negative.

    Returns:
        A function of the model and a pair of batches from `interleave`.

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
            "calibration_loss",
            "a function of logits and labels",
            repr(calibration_loss),
            remedy="pass orbical.losses.esd, for example",
        )
    real_number("weight", weight, ">= 0")

    def objective(
        model: nn.Module, pair: tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]
    ) -> Tensor:
        if not isinstance(pair, tuple | list) or len(pair) != 2 or isinstance(pair[0], Tensor):
            raise InputError(
                "batches",
                "pairs of batches",
                "single ones",
                remedy="pass interleave(train_loader, calibration_loader)",
            )
        inputs, labels = _objective_batch("training batch", pair[0])
        held_inputs, held_labels = _objective_batch("calibration batch", pair[1])
        logits = model(torch.cat([inputs, held_inputs])).float()
        own, held = logits[: len(inputs)], logits[len(inputs) :]
        likelihood = _cross_entropy(own, labels)
        return likelihood + weight * calibration_loss(held, held_labels)

    return objective


Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True)
class Selection(Generic[Key]):
    """The chosen setting, as returned by `select`.

    Attributes:
        choice: the setting.
        accuracy: its validation accuracy.
        ece: its validation ECE.
        admissible: all settings within the tolerance; empty if there is none.
    """

    choice: Key
    accuracy: float
    ece: float
    admissible: tuple[Key, ...]


def select(
    scores: Mapping[Key, tuple[float, float]], *, baseline_accuracy: float, tolerance: float = 0.015
) -> Selection[Key]:
    """Choose the setting of lowest ECE that loses at most `tolerance` of accuracy.

    Args:
        scores: for each setting (a lambda, or any key) its accuracy and ECE on VALIDATION data,
            both in 0..1.
        baseline_accuracy: validation accuracy of the model trained with cross-entropy alone.
        tolerance: the largest loss of accuracy, 0.015 in the paper.

    Returns:
        The choice. If no setting is admissible, it is the most accurate one, and `admissible` is
        empty: report that.

    Example:
        >>> scores = {6.0: (0.881, 0.026), 50.0: (0.872, 0.018), 150.0: (0.864, 0.032)}
        >>> select(scores, baseline_accuracy=0.882).choice
        50.0

    Paper: ESD, section 5.2.
    """
    if not scores:
        raise InputError("scores", "at least one setting", "none")
    real_number("baseline_accuracy", baseline_accuracy, "in [0, 1]")
    real_number("tolerance", tolerance, ">= 0")
    for key, (accuracy, ece) in scores.items():
        if not (0 <= accuracy <= 1 and 0 <= ece <= 1):
            raise InputError(
                "scores", "values in [0, 1]", f"accuracy {accuracy} and ECE {ece} for {key!r}"
            )
    # 1e-12: a loss of accuracy of exactly the tolerance is admissible whatever its rounding.
    floor = baseline_accuracy - tolerance - 1e-12
    admissible = tuple(key for key, (accuracy, _) in scores.items() if accuracy >= floor)
    if admissible:
        choice = min(admissible, key=lambda key: scores[key][1])
    else:
        choice = max(scores, key=lambda key: scores[key][0])
    return Selection(choice, *scores[choice], admissible)
