"""The inputs of measures: outputs, labels, pairs and weights are checked here, and only here.

A measure takes a pair `(confidence, correct)` and reduces over the last axis. `top_label` makes
the pair of the predicted class, `classwise` one pair for each class. Nothing is guessed from
values: the caller states whether an array holds `probs` or `logits`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch
from torch import Tensor

from .._arrays import ArrayLike, as_array, as_floating, true_labels, warn_of_probabilities
from ..errors import InputError

__all__ = ["classwise", "normalized_entropy", "probabilities", "top_label"]

_BLOCK = 1 << 21
"""Elements of a block of rows: what stays in the cache while several passes read it."""

_BLOCK_ROWS = 1 << 15
"""Rows of a block at most, which bounds what is set aside for each row of it."""

_CHECKED_WHOLE = 1 << 22
"""Up to this many elements every row is checked for its signs and its sum; of a larger array only
evenly spaced rows, because reading it once more would cost as much as the measure itself."""


def working_float(tensor: Tensor) -> Tensor:
    """Return the tensor in float32 at least: half precision holds inputs, it does not compute."""
    return tensor.float() if tensor.dtype in (torch.float16, torch.bfloat16) else tensor


def tolerance(dtype: torch.dtype) -> float:
    """Return how far rounding in this dtype may move a probability or a row sum from 1."""
    return {torch.float64: 1e-6, torch.float32: 1e-4}.get(dtype, 2e-2)


def _check_unit_interval(name: str, tensor: Tensor) -> None:
    low, high = torch.stack(tensor.detach().aminmax()).tolist()  # one wait for an accelerator
    if low != low or high != high:  # NaN is the only value that differs from itself
        raise InputError(f"{name}: expected values in [0, 1], got NaN")
    if low < 0 or high > 1 + tolerance(tensor.dtype):
        remedy = "" if name == "correct" else "; pass logits as logits="
        raise InputError(
            f"{name}: expected values in [0, 1], got values in [{low:.6g}, {high:.6g}]{remedy}"
        )


def positive(name: str, value: float) -> None:
    """Check that a parameter is a finite number above 0.

    Example:
        >>> positive("phi", 0.4)
    """
    if not 0 < value < float("inf"):
        raise InputError(f"{name}: expected a finite number > 0, got {value!r}")


def whole_number(name: str, value: int) -> int:
    """Return a parameter that must be a whole number >= 1.

    Example:
        >>> whole_number("bins", 15)
        15
    """
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise InputError(f"{name}: expected a whole number >= 1, got {value!r}")
    return value


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
    confidence, correct = _arrays(confidence, correct, minimum)
    _check_unit_interval("confidence", confidence)
    if correct.dtype != torch.bool:
        _check_unit_interval("correct", correct)
    mass = sample_weights(weights, confidence, minimum=minimum)
    expanded = _one_shape(confidence, correct, *(() if mass is None else (mass,)))
    return expanded[0], expanded[1], expanded[2] if len(expanded) > 2 else None


def _arrays(confidence: ArrayLike, correct: ArrayLike, minimum: int) -> tuple[Tensor, Tensor]:
    confidence = as_floating("confidence", confidence)
    correct = as_array("correct", correct, confidence.device)
    if confidence.ndim == 0:
        raise InputError("confidence: expected an array of shape [..., N], got a single number")
    if correct.ndim == 0 or correct.shape[-1] != confidence.shape[-1]:
        hint = _not_a_pair(confidence, correct)
        raise InputError(
            f"correct: expected {confidence.shape[-1]} values along the last axis,"
            f" as in confidence, got shape {tuple(correct.shape)}{hint}"
        )
    if confidence.shape[-1] < minimum:
        raise InputError(
            f"confidence: expected at least {minimum} samples, got {confidence.shape[-1]}"
        )
    if confidence.numel() == 0 or correct.numel() == 0:
        raise InputError(
            f"confidence, correct: expected no empty axis, got shapes {tuple(confidence.shape)}"
            f" and {tuple(correct.shape)}"
        )
    if correct.dtype.is_complex:
        raise InputError(f"correct: expected booleans or values in [0, 1], got {correct.dtype}")
    return confidence, correct


def _not_a_pair(confidence: Tensor, correct: Tensor) -> str:
    """Return the remedy where outputs `[N, C]` and labels `[N]` were passed instead of a pair."""
    if confidence.ndim > 1 and correct.ndim > 0 and correct.shape[-1] == confidence.shape[-2]:
        return "; make the pair from a classifier's outputs with top_label(probs=..., labels=...)"
    return ""


def _one_shape(*arrays: Tensor) -> tuple[Tensor, ...]:
    try:
        return tuple(torch.broadcast_tensors(*arrays))
    except RuntimeError as error:
        shapes = ", ".join(str(tuple(array.shape)) for array in arrays)
        raise InputError(f"correct: expected a shape that broadcasts, got {shapes}") from error


def sample_weights(
    weights: ArrayLike | None, samples: Tensor, *, minimum: int = 1
) -> Tensor | None:
    """Read the weights of samples `[..., N]` as float64; at least `minimum` of a row are above 0.

    Example:
        >>> sample_weights([1, 2], torch.zeros(2))
        tensor([1., 2.], dtype=torch.float64)
    """
    mass = weights_of(samples, weights)
    if mass is not None:
        check_weights(mass, minimum)
    return mass


def weights_of(samples: Tensor, weights: ArrayLike | None) -> Tensor | None:
    """Read the weights of samples `[..., N]` as float64, without looking at their values."""
    if weights is None:
        return None
    mass = as_array("weights", weights, samples.device).detach().double()
    if mass.ndim == 0 or mass.shape[-1] != samples.shape[-1]:
        raise InputError(
            f"weights: expected {samples.shape[-1]} values along the last axis, one for each"
            f" sample, got shape {tuple(mass.shape)}"
        )
    return mass


def check_weights(mass: Tensor, minimum: int) -> None:
    """Check that weights `[..., N]` are finite, >= 0, and positive for `minimum` samples."""
    low, high = (bound.item() for bound in mass.aminmax())
    if not (low >= 0 and high < float("inf")):
        raise InputError(
            f"weights: expected finite values >= 0, got values in [{low:.6g}, {high:.6g}]"
        )
    fewest = int((mass > 0).sum(-1).amin())
    if fewest < minimum:
        raise InputError(f"weights: expected at least {minimum} positive weights, got {fewest}")


def weighted_mean(terms: Tensor, weights: Tensor | None) -> Tensor:
    """Return the mean of terms `[..., N]` over the last axis.

    Example:
        >>> weighted_mean(torch.tensor([1.0, float("inf")]), torch.tensor([2.0, 0.0]))
        tensor(1.)
    """
    if weights is None:
        return terms.mean(-1)
    return (torch.where(weights > 0, terms, 0.0) * weights).sum(-1) / weights.sum(-1)


def counted_labels(
    labels: ArrayLike, outputs: Tensor, weights: ArrayLike | None, ignore_index: int | None
) -> tuple[Tensor, Tensor | None]:
    """Read labels and weights of outputs `[..., N, C]`; an ignored sample gets the weight 0.

    Example:
        >>> counted_labels([1, -100], torch.zeros(2, 3), None, -100)
        (tensor([1, 0]), tensor([1., 0.], dtype=torch.float64))
    """
    truth = true_labels(labels, outputs, ignore_index)
    truth, mass = without_ignored(truth, sample_weights(weights, truth), ignore_index)
    if mass is not None:
        check_weights(mass, 1)
    return truth, mass


def without_ignored(
    truth: Tensor, mass: Tensor | None, ignore_index: int | None
) -> tuple[Tensor, Tensor | None]:
    """Return labels and weights in which ignored samples have the label 0 and the weight 0."""
    if ignore_index is None:
        return truth, mass
    counted = truth != ignore_index
    return torch.where(counted, truth, 0), counted.double() if mass is None else mass * counted


def kept_samples(
    labels: ArrayLike, outputs: Tensor, ignore_index: int | None
) -> tuple[Tensor, Tensor, Tensor | None]:
    """Read labels, and leave out ignored samples; also return which ones are kept, `[N]`."""
    truth = true_labels(labels, outputs, ignore_index)
    if ignore_index is None:
        return outputs, truth, None
    rows = (truth != ignore_index).reshape(-1, truth.shape[-1])
    if bool((rows != rows[:1]).any()):
        raise InputError(
            "ignore_index: expected the same samples to be ignored along all leading axes, got"
            " different ones; flatten the leading axes, or pass weights= to the measure"
        )
    kept = rows[0]
    return outputs[..., kept, :], truth[..., kept], kept


def given_outputs(probs: ArrayLike | None, logits: ArrayLike | None) -> tuple[str, Tensor]:
    """Read `probs` or `logits`, whichever is given, `[..., N, C]`; also return its name."""
    if (probs is None) == (logits is None):
        given = "neither" if probs is None else "both"
        raise InputError(f"probs, logits: expected exactly one of the two, got {given}")
    name = "probs" if logits is None else "logits"
    outputs = as_floating(name, probs if logits is None else logits)
    if outputs.ndim < 2 or outputs.shape[-1] < 2:
        both = "[1 - p, p]" if name == "probs" else "[0 * z, z]"
        raise InputError(
            f"{name}: expected shape [..., N, C] with C >= 2 classes, got {tuple(outputs.shape)}"
            f"; of two classes pass both columns, torch.stack({both}, -1)"
        )
    if outputs.numel() == 0:
        raise InputError(f"{name}: expected at least one sample, got shape {tuple(outputs.shape)}")
    if name == "logits":
        warn_of_probabilities(outputs)
    return name, outputs


def _row_blocks(rows: Tensor) -> Iterator[slice]:
    size = max(1, min(_BLOCK_ROWS, _BLOCK // rows.shape[-1]))
    if rows.device.type != "cpu":
        size *= 64
    for start in range(0, rows.shape[0], size):
        yield slice(start, start + size)


def _check_block(name: str, rows: Tensor, slack: float) -> None:
    """Check some rows of `probs` for their sign and sum, or of `logits` for a finite maximum."""
    if name == "logits":
        if not rows.amax(-1).isfinite().all():
            raise InputError("logits: expected a finite maximum in every row, got NaN or infinity")
        return
    low = rows.min().item()
    if low != low:
        raise InputError("probs: expected values in [0, 1], got NaN")
    if low < 0:
        raise InputError(f"probs: expected values in [0, 1], got {low:.6g}; pass logits as logits=")
    with torch.autocast(rows.device.type, enabled=False):
        sums = torch.mv(rows, rows.new_ones(rows.shape[-1]))  # faster than sum on short rows
    farthest = sums[(sums - 1).abs().argmax()].item()
    if abs(farthest - 1) > slack:
        raise InputError(
            f"probs: expected rows that sum to 1 within {slack:.0e}, got {farthest:.6g};"
            " pass outputs before the softmax as logits="
        )


def _spaced(rows: Tensor) -> Tensor:
    """Return some hundred rows, evenly spaced over a large array."""
    return rows[:: max(1, len(rows) // 256)]


def _checked_outputs(probs: ArrayLike | None, logits: ArrayLike | None) -> tuple[str, Tensor]:
    name, outputs = given_outputs(probs, logits)
    rows = outputs.detach().reshape(-1, outputs.shape[-1])
    slack = tolerance(rows.dtype)
    if rows.numel() > _CHECKED_WHOLE:
        rows = _spaced(rows)
    for block in _row_blocks(rows):
        _check_block(name, working_float(rows[block]), slack)
    return name, outputs


def softmax(logits: Tensor) -> Tensor:
    """Return the probabilities of logits `[..., C]`, in float32 at least.

    Example:
        >>> softmax(torch.zeros(1, 2, dtype=torch.float16))
        tensor([[0.5000, 0.5000]])
    """
    # Autocast would send the input through half precision again on some devices.
    with torch.autocast(logits.device.type, enabled=False):
        return torch.softmax(working_float(logits), dim=-1)


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
        return working_float(outputs).log()
    with torch.autocast(outputs.device.type, enabled=False):
        return torch.log_softmax(working_float(outputs), dim=-1)


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
    return entropy_share(probabilities(probs=probs, logits=logits))


def entropy_share(p: Tensor) -> Tensor:
    """Return the entropy of each row of probabilities `[..., C]`, divided by log C.

    Example:
        >>> entropy_share(torch.tensor([[0.5, 0.5]]))
        tensor([1.])
    """
    # torch's xlogy is 0 at p = 0, but its gradient there is not finite: keep p away from 0.
    p = working_float(p)
    safe = p.clamp(min=torch.finfo(p.dtype).tiny)
    entropy = -(p * safe.log()).sum(-1)
    return (entropy / math.log(p.shape[-1])).clamp(0, 1)


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
        probs: probabilities `[..., N, C]`, rows summing to 1 (of more than 2^22 values only the
            maxima and evenly spaced rows are checked); or
        logits: scores `[..., N, C]`, turned into probabilities by the softmax. Pass exactly one of
            the two.
        labels: class indices `[N]`, `[N, 1]` or `[..., N]`; booleans for two classes.
        ignore_index: samples with this label are left out, so that N is smaller in the result.

    Returns:
        `confidence [..., N]`, differentiable, and `correct [..., N]`, boolean.

    Raises:
        InputError: if outputs and labels do not fit together, or rows are not probabilities.

    Example:
        >>> confidence, correct = top_label(probs=[[0.7, 0.3], [0.4, 0.6]], labels=[0, 0])
        >>> confidence, correct
        (tensor([0.7000, 0.6000]), tensor([ True, False]))
    """
    name, outputs = given_outputs(probs, logits)
    outputs, labels, _ = kept_samples(labels, outputs, ignore_index)
    if outputs.requires_grad and torch.is_grad_enabled():
        return top_of(probabilities(**{name: outputs}), outputs, labels)
    rows, truth = outputs.detach().reshape(-1, outputs.shape[-1]), labels.reshape(-1)
    whole = rows.numel() <= _CHECKED_WHOLE
    if not whole:
        _check_block(name, working_float(_spaced(rows)), tolerance(rows.dtype))
    dtype = rows.dtype if name == "probs" else working_float(rows[:0]).dtype
    confidence = torch.empty(len(rows), dtype=dtype, device=rows.device)
    correct = torch.empty(len(rows), dtype=torch.bool, device=rows.device)
    spare = working_float(rows[:0]).new_empty(max(1, _BLOCK // 8 // rows.shape[-1]), rows.shape[-1])
    for block in _row_blocks(rows):
        part = working_float(rows[block]).contiguous()
        if whole:
            _check_block(name, part, tolerance(rows.dtype))
        confidence[block], correct[block] = _top_of_block(name, part, truth[block], spare)
    _check_unit_interval(name, confidence)
    return confidence.reshape(labels.shape), correct.reshape(labels.shape)


def top_of(p: Tensor, outputs: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """Return the pair of probabilities `[..., C]`, predicted where `outputs` is largest.

    Example:
        >>> p = torch.tensor([[0.7, 0.3]])
        >>> top_of(p, p, torch.tensor([0]))
        (tensor([0.7000]), tensor([True]))
    """
    predicted = outputs.detach().argmax(-1)
    return p.gather(-1, predicted[..., None])[..., 0], predicted == labels


def _largest(name: str, rows: Tensor) -> Tensor:
    if name == "logits":
        return rows.amax(-1)
    # Bits of non-negative floats order like integers, whose maximum is found faster.
    integer = torch.int64 if rows.dtype == torch.float64 else torch.int32
    return rows.view(integer).amax(-1).view(rows.dtype)


def _top_of_block(name: str, rows: Tensor, labels: Tensor, spare: Tensor) -> tuple[Tensor, Tensor]:
    """Return the pair of some rows; `spare` is room for a few of them, to be overwritten."""
    confidence = largest = _largest(name, rows)
    if name == "logits":
        confidence = (rows - largest[:, None]).exp_().sum(-1).reciprocal_()
    # A maximum and one gather are several times faster than max with indices. They agree unless
    # another class shares the maximum, and then neither can hold much more than half of the mass.
    correct = rows.gather(-1, labels[:, None])[:, 0] == largest
    doubtful = (correct & (confidence < 0.51)).nonzero()[:, 0]
    for some in doubtful.split(len(spare)):
        others = torch.index_select(rows, 0, some, out=spare[: len(some)])
        others.scatter_(-1, labels[some, None], 0.0 if name == "probs" else -math.inf)
        tied = some[_largest(name, others) == largest.index_select(0, some)]
        if len(tied):
            correct[tied] = rows.index_select(0, tied).argmax(-1) == labels.index_select(0, tied)
    return confidence, correct


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
    name, outputs = given_outputs(probs, logits)
    outputs, labels, _ = kept_samples(labels, outputs, ignore_index)
    confidence = probabilities(**{name: outputs}).transpose(-1, -2).contiguous()
    classes = torch.arange(outputs.shape[-1], device=outputs.device)
    return confidence, labels[..., None, :] == classes[:, None]
