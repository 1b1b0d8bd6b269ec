"""Outputs of a classifier, and the pairs that measures take.

`top_label` makes the pair of the predicted class, `classwise` one pair for each class. Nothing is
guessed from values: the caller states whether an array holds `probs` or `logits`. One column,
`[N]` or `[..., N, 1]`, is class 1 of two. Every row is checked, in blocks that stay in the cache.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..._arrays import (
    ArrayLike,
    array_range,
    as_floating,
    both_classes,
    can_inspect_array,
    few_as_numpy,
    probability_tolerance,
    single_precision,
    warn_of_probabilities,
)
from ...errors import InputError, errors_with_usage
from .pairs_and_weights import samples_to_pair

__all__ = ["classwise", "normalized_entropy", "probabilities", "top_label"]


_BLOCK = 1 << 20
"""Elements of a block of rows: what stays in the cache while several passes read it."""

_FEW = 1 << 13
"""Elements up to which the fewest operations win, not the fewest passes."""

_LONG = 64
"""Classes from which a sum is faster than a product with ones, and NumPy's argmax than torch's."""

_BLOCK_ROWS = 1 << 15
"""Rows of a block at most, which bounds what is set aside for each row of it."""


named_outputs = errors_with_usage("(probs=probs, labels=labels), or with logits=logits")
"""Of functions that are told, by its name, what an array of outputs is."""

_REMEDY = "pass outputs before the softmax as logits="


def classifier_outputs(probs: ArrayLike | None, logits: ArrayLike | None) -> tuple[str, Tensor]:
    """Read `probs` or `logits`, whichever is given, as `[..., N, C]`; also return its name."""
    if (probs is None) == (logits is None):
        given = "neither" if probs is None else "both"
        raise InputError("probs, logits", "exactly one of the two", given)
    name = "probs" if logits is None else "logits"
    outputs = as_floating(name, probs if logits is None else logits)
    if outputs.ndim == 0:
        raise InputError(name, "shape [..., N, C]", "a single number")
    outputs = both_classes(outputs, logits=name == "logits")
    if outputs.numel() == 0:
        raise InputError(name, "at least one sample", outputs)
    if name == "logits":
        warn_of_probabilities(outputs)
    return name, outputs


def _row_blocks(rows: Tensor) -> Iterator[slice]:
    elements, most = (_BLOCK, _BLOCK_ROWS) if rows.device.type == "cpu" else (1 << 27, 1 << 21)
    size = max(1, min(most, elements // rows.shape[-1]))
    for start in range(0, rows.shape[0], size):
        yield slice(start, start + size)


def _check_largest_logits(largest: Tensor) -> None:
    if not largest.isfinite().all():
        raise InputError("logits", "a finite maximum in every row", "NaN or infinity")


def _check_probabilities(rows: Tensor, slack: float) -> None:
    """Check rows for their signs and sums."""
    _check_signs(rows)
    _check_sums_of_output_rows(rows, slack)


def _check_signs(rows: Tensor) -> None:
    # Integers are compared faster. Those of -0.0 and of some NaN are negative too.
    if _bits(rows).amin().item() < 0 and (low := rows.amin().item()) < 0:
        values = f"values in [{low:.6g}, {rows.max().item():.6g}]"
        raise InputError("probs", "values in [0, 1]", values, remedy=_REMEDY)


def _check_sums_of_output_rows(rows: Tensor, slack: float) -> None:
    sums = _row_sums(rows)
    least, most = array_range(sums)
    if not (1 - least <= slack and most - 1 <= slack):
        _check_signs(rows)
        farthest = max(sums.tolist(), key=lambda one: math.inf if one != one else abs(one - 1))
        if farthest != farthest:
            raise InputError("probs", "values in [0, 1]", "NaN")
        expected = f"rows that sum to 1 within {slack:.0e}"
        remedy = _remedy(farthest, rows.shape[-1])
        raise InputError("probs", expected, f"{farthest:.6g}", remedy=remedy)


def _remedy(total: float, classes: int) -> str:
    """Return what makes rows of this sum probabilities, by what they look like."""
    rounding = min(classes, 20) * 0.005  # of each class to two decimals; of many, most are 0
    if abs(total - 1) <= rounding:
        return "normalize rounded values: divide each row by its sum"
    return "divide percentages by 100" if abs(total / 100 - 1) <= rounding else _REMEDY


def _row_sums(rows: Tensor) -> Tensor:
    if rows.shape[-1] >= _LONG:
        return rows.sum(-1)
    with _without_autocast(rows):
        return torch.mv(rows, rows.new_ones(rows.shape[-1]))


def _bits(rows: Tensor) -> Tensor:
    """Return floats as integers: those of numbers >= 0 order alike, and are compared faster."""
    return rows.view(torch.int64 if rows.dtype == torch.float64 else torch.int32)


def _checked_outputs(probs: ArrayLike | None, logits: ArrayLike | None) -> tuple[str, Tensor]:
    name, outputs = classifier_outputs(probs, logits)
    _check_output_rows(name, outputs)
    return name, outputs


def _check_output_rows(name: str, outputs: Tensor) -> None:
    few = few_as_numpy(outputs)
    if few is not None and _are_accepted(name, few, probability_tolerance(outputs.dtype)):
        return
    rows = outputs.detach().reshape(-1, outputs.shape[-1])
    for block in _row_blocks(rows):
        part = single_precision(rows[block])
        if name == "logits":
            _check_largest_logits(part.amax(-1))
        else:
            _check_probabilities(part, probability_tolerance(rows.dtype))


def _are_accepted(name: str, few: np.ndarray, slack: float) -> bool:
    """Check a few rows, without saying what is wrong."""
    if name == "logits":
        return bool(np.isfinite(few).all())
    beyond = (np.einsum("...k->...", few) - 1).ravel()  # starts faster than a sum
    # None is as large as the length of all: one operation, where the largest takes two.
    return bool(beyond.dot(beyond) <= slack**2 and few.min() >= 0)


def softmax(logits: Tensor) -> Tensor:
    """Return the probabilities of logits `[..., C]`, in float32 at least.

    Example:
        >>> softmax(torch.zeros(1, 2, dtype=torch.float16))
        tensor([[0.5000, 0.5000]])
    """
    with _without_autocast(logits):
        return torch.softmax(single_precision(logits), dim=-1)


def _without_autocast(tensor: Tensor) -> AbstractContextManager[Any]:
    """Keep autocast from computing in half precision, as it would on some devices."""
    kind = tensor.device.type
    # A context takes as long as an operation.
    return torch.autocast(kind, enabled=False) if torch.is_autocast_enabled(kind) else nullcontext()


@errors_with_usage("(probs=probs) or (logits=logits)")
def probabilities(*, probs: ArrayLike | None = None, logits: ArrayLike | None = None) -> Tensor:
    """Return checked probabilities: `probs` as they are, or the softmax of `logits`.

    Half-precision logits are converted to float32 first.

    Args:
        probs: probabilities `[..., N, C]`; or
        logits: scores `[..., N, C]`. Pass exactly one of the two.

    Returns:
        Probabilities `[..., N, C]`, differentiable.

    Example:
        >>> probabilities(logits=[[0.0, 0.0]])
        tensor([[0.5000, 0.5000]])
    """
    name, outputs = _checked_outputs(probs, logits)
    return outputs if name == "probs" else softmax(outputs)


def log_probabilities(*, probs: ArrayLike | None = None, logits: ArrayLike | None = None) -> Tensor:
    """Return checked log-probabilities `[..., N, C]`; those of logits do not underflow.

    Example:
        >>> log_probabilities(logits=[[1000.0, 0.0]])
        tensor([[    0., -1000.]])
    """
    name, outputs = _checked_outputs(probs, logits)
    if name == "probs":
        return single_precision(outputs).log()
    with _without_autocast(outputs):
        return torch.log_softmax(single_precision(outputs), dim=-1)


@errors_with_usage("(probs=probs) or (logits=logits)")
def normalized_entropy(
    *, probs: ArrayLike | None = None, logits: ArrayLike | None = None
) -> Tensor:
    """Return the entropy of each row, divided by log C so that it lies in [0, 1].

        h_i = - sum_k p_ik log p_ik / log C

    Args:
        probs: probabilities `[..., N, C]`; or
        logits: scores `[..., N, C]`. Pass exactly one of the two.

    Returns:
        The normalized entropy `[..., N]`, differentiable.

    Example:
        >>> normalized_entropy(probs=[[0.5, 0.5], [0.9, 0.1]])
        tensor([1.0000, 0.4690])
    """
    return entropy_share_of_outputs(probabilities(probs=probs, logits=logits))


def entropy_share_of_outputs(p: Tensor) -> Tensor:
    """Return the entropy of each row of probabilities `[..., C]`, divided by log C.

    Example:
        >>> entropy_share_of_outputs(torch.tensor([[0.5, 0.5]]))
        tensor([1.])
    """
    # torch's xlogy is 0 at p = 0, but its gradient there is not finite: keep p away from 0.
    p = single_precision(p)
    safe = p.clamp(min=torch.finfo(p.dtype).tiny)
    return ((p * safe.log()).sum(-1) / -math.log(p.shape[-1])).clamp(0, 1)


@named_outputs
def top_label(
    *,
    probs: ArrayLike | None = None,
    logits: ArrayLike | None = None,
    labels: ArrayLike,
    ignore_index: int | None = None,
) -> tuple[Tensor, Tensor]:
    """Return `(confidence, correct)` of the predicted class, the pair that measures take.

        confidence_i = max_k p_ik,    correct_i = (argmax_k p_ik = label_i)

    Where several classes share the maximum, the first one is the prediction, as in `argmax`.

    Args:
        probs: probabilities `[..., N, C]`, rows summing to 1, or of class 1 of two, `[N]` or
            `[..., N, 1]`; or
        logits: scores `[..., N, C]`, turned into probabilities by the softmax. Pass exactly one of
            the two.
        labels: class indices `[N]`, `[N, 1]` or `[..., N]`; booleans for two classes.
        ignore_index: samples with this label are left out, so that N is smaller in the result.

    Returns:
        `confidence [..., N]`, differentiable, and `correct [..., N]`, boolean.

    Raises:
        InputError: if outputs and labels do not fit together, or rows are not probabilities.

    See Also:
        classwise: A pair for each class.
        pair_at: From a scan.

    Example:
        >>> confidence, correct = top_label(probs=[[0.7, 0.3], [0.4, 0.6]], labels=[0, 0])
        >>> confidence, correct
        (tensor([0.7000, 0.6000]), tensor([ True, False]))
    """
    name, outputs = classifier_outputs(probs, logits)
    outputs, labels, _ = samples_to_pair(labels, outputs, ignore_index)
    return top_label_of(name, outputs, labels)


def top_label_of(name: str, outputs: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """Return `top_label` of named outputs `[..., N, C]` whose labels were checked; checks rows.

    Example:
        >>> top_label_of("probs", torch.tensor([[0.7, 0.3]]), torch.tensor([0]))
        (tensor([0.7000]), tensor([True]))
    """
    few = outputs.numel() <= _FEW
    if few or (outputs.requires_grad and torch.is_grad_enabled()):
        _check_output_rows(name, outputs)
        if few and name == "probs":
            largest, predicted = outputs.max(-1)
            return largest, predicted == labels
        p = outputs if name == "probs" else softmax(outputs)
        predicted = outputs.detach().argmax(-1)
        return p.gather(-1, predicted[..., None])[..., 0], predicted == labels
    rows, truth = outputs.detach().reshape(-1, outputs.shape[-1]), labels.reshape(-1)
    dtype, slack = single_precision(rows[:0]).dtype, probability_tolerance(rows.dtype)
    dtype = rows.dtype if name == "probs" else dtype
    confidence = torch.empty(len(rows), dtype=dtype, device=rows.device)
    correct = torch.empty(len(rows), dtype=torch.bool, device=rows.device)
    for block in _row_blocks(rows):
        part = single_precision(rows[block]).contiguous()
        long = part.shape[-1] >= _LONG and can_inspect_array(part)
        top = _top_label_of_long_rows if long else _top_label_of_short_rows
        confidence[block], correct[block] = top(name, part, truth[block], slack)
    return confidence.reshape(labels.shape), correct.reshape(labels.shape)


def _top_label_of_short_rows(
    name: str, rows: Tensor, labels: Tensor, slack: float
) -> tuple[Tensor, Tensor]:
    """Return the pair of a contiguous block of rows; checks them."""
    if name == "logits":
        scores, largest = rows, rows.amax(-1)
        confidence = _confidence_of_logits(rows, largest)
    else:
        _check_probabilities(rows, slack)
        scores = _bits(rows)
        largest = scores.amax(-1)
        confidence = largest.view(rows.dtype)
    # A maximum and one gather are several times faster than max with indices. They agree unless
    # another class shares the maximum, and then neither can hold much more than half of the mass.
    correct = scores.gather(-1, labels[:, None])[:, 0] == largest
    doubtful = (correct & (confidence < 0.51)).nonzero()[:, 0]
    if len(doubtful):
        predicted = scores.index_select(0, doubtful).argmax(-1)
        correct[doubtful] = predicted == labels.index_select(0, doubtful)
    return confidence, correct


def _top_label_of_long_rows(
    name: str, rows: Tensor, labels: Tensor, slack: float
) -> tuple[Tensor, Tensor]:
    """Return the same by NumPy, whose argmax of long rows is several times faster than torch's.

    A number with a sign is larger than all others as an unsigned integer, so that the largest ones
    show whether there is any.
    """
    if name == "logits":
        predicted = torch.from_numpy(rows.numpy().argmax(-1))
        largest = rows.gather(-1, predicted[:, None])[:, 0]
        return _confidence_of_logits(rows, largest), predicted == labels
    _check_sums_of_output_rows(rows, slack)
    unsigned = np.uint64 if rows.dtype == torch.float64 else np.uint32
    predicted = torch.from_numpy(rows.numpy().view(unsigned).argmax(-1))
    confidence = rows.gather(-1, predicted[:, None])[:, 0]
    if _bits(confidence).amin().item() < 0:
        _check_signs(rows)
        return _top_label_of_short_rows(name, rows + 0.0, labels, slack)  # which makes 0.0 of -0.0
    return confidence, predicted == labels


def _confidence_of_logits(rows: Tensor, largest: Tensor) -> Tensor:
    """Return the largest probability of each row, whose largest logit must be finite."""
    _check_largest_logits(largest)
    return (rows - largest[:, None]).exp_().sum(-1).reciprocal_()


@named_outputs
def classwise(
    *,
    probs: ArrayLike | None = None,
    logits: ArrayLike | None = None,
    labels: ArrayLike,
    ignore_index: int | None = None,
) -> tuple[Tensor, Tensor]:
    """Return one pair `(confidence, correct)` for each class.

        confidence_ki = p_ik,    correct_ki = (label_i = k)

    Measures reduce over the last axis, so any of them applied to this pair has one value per class.

    Args:
        probs: probabilities `[..., N, C]`; or
        logits: scores `[..., N, C]`. Pass exactly one of the two.
        labels: class indices `[N]`, `[N, 1]` or `[..., N]`; booleans for two classes.
        ignore_index: samples with this label are left out, so that N is smaller in the result.

    Returns:
        `confidence [..., C, N]`, differentiable, and `correct [..., C, N]`, boolean.

    Raises:
        InputError: if outputs and labels do not fit together, or rows are not probabilities.

    Example:
        >>> confidence, correct = classwise(probs=[[0.7, 0.3], [0.4, 0.6]], labels=[0, 0])
        >>> confidence
        tensor([[0.7000, 0.4000],
                [0.3000, 0.6000]])
        >>> correct
        tensor([[ True,  True],
                [False, False]])
    """
    name, outputs = classifier_outputs(probs, logits)
    outputs, labels, _ = samples_to_pair(labels, outputs, ignore_index)
    confidence = probabilities(**{name: outputs}).transpose(-1, -2).contiguous()
    classes = torch.arange(outputs.shape[-1], device=outputs.device)
    return confidence, labels[..., None, :] == classes[:, None]
