"""The pairs, weights and labels of measures: checked here, and only here; `outputs` makes pairs.

A measure takes a pair `(confidence, correct)` and reduces over the last axis.
"""

from __future__ import annotations

import torch
from torch import Tensor

from ..._arrays import (
    ArrayLike,
    array_range,
    as_array,
    as_floating,
    checked_label_array,
    probability_tolerance,
)
from ...errors import InputError

_OF_LOGITS = "make the pair from logits with top_label(logits=..., labels=...)"


def _check_values_of_pair(name: str, tensor: Tensor, remedy: str = "") -> None:
    """Check that values lie in [0, 1], but for rounding above 1."""
    if tensor.is_cuda and torch.cuda.is_current_stream_capturing():
        return  # operations that are recorded have no values yet
    low, high = array_range(tensor)
    if low != low or high != high:  # NaN is the only value that differs from itself
        raise InputError(name, "values in [0, 1]", "NaN")
    if low < 0 or high > 1 + probability_tolerance(tensor.dtype):
        raise InputError(
            name, "values in [0, 1]", f"values in [{low:.6g}, {high:.6g}]", remedy=remedy
        )


def at_least_pairs(minimum: int, what: str) -> str:
    """Return the words for a smallest number of something.

    Example:
        >>> at_least_pairs(1, "sample"), at_least_pairs(3, "sample")
        ('at least 1 sample', 'at least 3 samples')
    """
    return f"at least {minimum} {what}" + "s" * (minimum != 1)


def pair(
    confidence: ArrayLike, correct: ArrayLike, *, minimum: int = 1, weights: ArrayLike | None = None
) -> tuple[Tensor, Tensor, Tensor | None]:
    """Check `confidence [..., N]`, `correct [..., N]` and `weights`, and bring them to one shape.

    `confidence` keeps its dtype and its place in the autograd graph. `correct` is boolean, or
    holds values in [0, 1] (0 and 1, or the share of raters who agree). Leading axes broadcast.

    Example:
        >>> confidence, correct, _ = pair([0.9, 0.6], [[True, False], [True, True]])
        >>> confidence.shape, correct.dtype
        (torch.Size([2, 2]), torch.bool)
    """
    confidence, correct = _arrays_of_pair(confidence, correct, minimum)
    _check_values_of_pair("confidence", confidence, _OF_LOGITS)
    if correct.dtype != torch.bool:
        _check_values_of_pair("correct", correct)
    mass = sample_weights(weights, confidence, minimum=minimum)
    given = (confidence, correct) if mass is None else (confidence, correct, mass)
    expanded = paired_in_one_shape("correct", "a shape that broadcasts", *given)
    return expanded[0], expanded[1], expanded[2] if len(expanded) > 2 else None


def binary_pair(
    confidence: ArrayLike, correct: ArrayLike, weights: ArrayLike | None = None
) -> tuple[Tensor, Tensor, Tensor | None]:
    """Check a pair whose labels can be drawn: `correct` is boolean, or 0 and 1; and its weights.

    Example:
        >>> binary_pair([0.9, 0.6], [1, 0])[1]
        tensor([ True, False])
    """
    confidence, correct, weights = pair(confidence, correct, weights=weights)
    if correct.dtype != torch.bool and bool(((correct != 0) & (correct != 1)).any()):
        raise InputError("correct", "only 0 and 1, since an interval draws labels", "other values")
    return confidence.detach(), correct.bool(), weights


def _arrays_of_pair(
    confidence: ArrayLike, correct: ArrayLike, minimum: int
) -> tuple[Tensor, Tensor]:
    confidence = as_floating("confidence", confidence)
    correct = as_array("correct", correct, confidence.device)
    if confidence.ndim == 0:
        raise InputError("confidence", "an array of shape [..., N]", "a single number")
    if correct.ndim == 0 or correct.shape[-1] != confidence.shape[-1]:
        hint = _not_a_pair(confidence, correct)
        raise InputError(
            "correct",
            f"{confidence.shape[-1]} values along the last axis, as in confidence",
            correct,
            remedy=hint,
        )
    if confidence.shape[-1] < minimum:
        raise InputError("confidence", at_least_pairs(minimum, "sample"), confidence.shape[-1])
    if confidence.numel() == 0 or correct.numel() == 0:
        raise InputError(
            "confidence, correct",
            "no empty axis",
            f"shapes {tuple(confidence.shape)} and {tuple(correct.shape)}",
        )
    if correct.dtype.is_complex:
        raise InputError("correct", "booleans or values in [0, 1]", correct.dtype)
    return confidence, correct


def _not_a_pair(confidence: Tensor, correct: Tensor) -> str:
    """Return the remedy where outputs `[N, C]` and labels `[N]` were passed instead of a pair."""
    if confidence.ndim > 1 and correct.ndim > 0 and correct.shape[-1] == confidence.shape[-2]:
        return "make the pair from a classifier's outputs with top_label(probs=..., labels=...)"
    return ""


def paired_in_one_shape(argument: str, expected: str, *arrays: Tensor) -> tuple[Tensor, ...]:
    """Bring arrays to one shape, or raise with what was expected of an argument.

    Example:
        >>> parts = paired_in_one_shape("b", "one number", torch.ones(2), torch.ones(1))
        >>> [part.shape for part in parts]
        [torch.Size([2]), torch.Size([2])]
    """
    if all(array.shape == arrays[0].shape for array in arrays):
        return arrays
    try:
        return tuple(torch.broadcast_tensors(*arrays))
    except RuntimeError as error:
        shapes = ", ".join(str(tuple(array.shape)) for array in arrays)
        raise InputError(argument, expected, shapes) from error


def sample_weights(
    weights: ArrayLike | None, samples: Tensor, *, minimum: int = 1
) -> Tensor | None:
    """Read the weights of samples `[..., N]` as float64; at least `minimum` of a row are above 0.

    Example:
        >>> sample_weights([1, 2], torch.zeros(2))
        tensor([1., 2.], dtype=torch.float64)
    """
    mass = unchecked_sample_weights(samples, weights)
    if mass is not None:
        check_weights(mass, minimum)
    return mass


def unchecked_sample_weights(samples: Tensor, weights: ArrayLike | None) -> Tensor | None:
    """Read the weights of samples `[..., N]` as float64, without looking at their values."""
    if weights is None:
        return None
    mass = as_array("weights", weights, samples.device).detach().double()
    if mass.ndim == 0 or mass.shape[-1] != samples.shape[-1]:
        raise InputError(
            "weights", f"{samples.shape[-1]} values along the last axis, one for each sample", mass
        )
    return mass


def check_weights(mass: Tensor, minimum: int, ignore_index: int | None = None) -> None:
    """Check that weights `[..., N]` are finite, >= 0, and positive for `minimum` samples."""
    low, high = array_range(mass)
    if not (low >= 0 and high < float("inf")):
        raise InputError("weights", "finite values >= 0", f"values in [{low:.6g}, {high:.6g}]")
    fewest = int((mass > 0).sum(-1).amin())
    if fewest < minimum and ignore_index is not None:
        raise InputError(
            "labels",
            f"{at_least_pairs(minimum, 'label')} other than ignore_index={ignore_index} with "
            "a positive weight",
            fewest,
        )
    if fewest < minimum:
        raise InputError("weights", at_least_pairs(minimum, "positive weight"), fewest)


def weighted_mean(terms: Tensor, weights: Tensor | None) -> Tensor:
    """Return the mean of terms `[..., N]` over the last axis.

    Example:
        >>> weighted_mean(torch.tensor([1.0, float("inf")]), torch.tensor([2.0, 0.0]))
        tensor(1.)
    """
    if weights is None:
        return terms.mean(-1)
    return (torch.where(weights > 0, terms, 0.0) * weights).sum(-1) / weights.sum(-1)


def labels_and_weights(
    labels: ArrayLike, outputs: Tensor, weights: ArrayLike | None, ignore_index: int | None
) -> tuple[Tensor, Tensor | None]:
    """Read labels and weights of outputs `[..., N, C]`; an ignored sample gets the weight 0.

    Example:
        >>> labels_and_weights([1, -100], torch.zeros(2, 3), None, -100)
        (tensor([1, 0]), tensor([1., 0.], dtype=torch.float64))
    """
    truth = checked_label_array(labels, outputs, ignore_index)
    truth, mass = without_ignored(truth, sample_weights(weights, truth), ignore_index)
    if mass is not None:
        check_weights(mass, 1, ignore_index)
    return truth, mass


def without_ignored(
    truth: Tensor, mass: Tensor | None, ignore_index: int | None
) -> tuple[Tensor, Tensor | None]:
    """Return labels and weights in which ignored samples have the label 0 and the weight 0."""
    if ignore_index is None:
        return truth, mass
    counted = truth != ignore_index
    return torch.where(counted, truth, 0), counted.double() if mass is None else mass * counted


def samples_to_pair(
    labels: ArrayLike, outputs: Tensor, ignore_index: int | None
) -> tuple[Tensor, Tensor, Tensor | None]:
    """Read labels, and leave out ignored samples; also return which ones are kept, `[N]`."""
    truth = checked_label_array(labels, outputs, ignore_index)
    if ignore_index is None:
        return outputs, truth, None
    rows = (truth != ignore_index).reshape(-1, truth.shape[-1])
    if bool((rows != rows[:1]).any()):
        raise InputError(
            "ignore_index",
            "the same samples to be ignored along all leading axes",
            "different ones",
            remedy="flatten the leading axes, or pass weights= to the measure",
        )
    kept = rows[0]
    if not bool(kept.any()):
        raise InputError("labels", f"some other than ignore_index={ignore_index}", "no other")
    return outputs[..., kept, :], truth[..., kept], kept
