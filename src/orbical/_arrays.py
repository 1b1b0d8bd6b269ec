"""The one reader of arrays: whatever holds numbers becomes a torch tensor, or is refused by name.

torch tensors keep their device and their place in the autograd graph. NumPy arrays may have any
stride and byte order; pandas and xarray objects are read by value, their labels and coordinates
are not looked at.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor
from torch.utils.dlpack import from_dlpack

from ._numpy import ArrayLike as ArrayLike
from ._numpy import as_numpy as as_numpy
from ._warnings import warn
from .errors import InputError

_FEW = 1 << 13
"""Values that NumPy inspects faster than torch, which takes longer to start."""

_HALF = (torch.float16, torch.bfloat16)

_ROWS = 256
"""Rows that are inspected to tell logits from probabilities; a softmax shows in any of them."""


def as_array(name: str, values: ArrayLike, device: torch.device | None = None) -> Tensor:
    """Read an argument as a tensor; without a device it stays where it is.

    Example:
        >>> as_array("confidence", np.arange(3.0)[::-1])
        tensor([2., 1., 0.], dtype=torch.float64)
    """
    try:
        tensor = values if isinstance(values, Tensor) else _read_array(values)
    except (TypeError, ValueError, RuntimeError, BufferError) as error:
        text = _holds_text(values)
        given = "text" if text else f"{type(values).__name__} ({error})"
        remedy = _remedy_for_text(name, values) if text else ""
        raise InputError(name, "an array of numbers", given, remedy=remedy) from error
    return tensor if device is None else tensor.to(device)


def _read_array(values: ArrayLike) -> Tensor:
    if isinstance(values, list | tuple):
        first = values[0] if values else None
        if isinstance(first, Tensor):
            return torch.stack(list(values))
        # A list of plain numbers becomes a tensor of torch's default precision.
        return _from_numpy(np.stack(values)) if _is_array(first) else torch.as_tensor(values)
    if hasattr(values, "__dlpack__") and not isinstance(values, np.ndarray | np.generic):
        try:
            return from_dlpack(values)
        except (TypeError, RuntimeError, BufferError):  # a dtype or device that only NumPy reads
            pass
    return _from_numpy(np.asarray(values)) if _is_array(values) else torch.as_tensor(values)


def _is_array(values: ArrayLike) -> bool:
    if np.ma.is_masked(values):
        raise ValueError("masked values cannot be read; drop them with .compressed()")
    return hasattr(values, "__array__")


def _from_numpy(array: np.ndarray) -> Tensor:
    """Return a tensor that shares the memory of an array wherever torch can."""
    kind, size = array.dtype.kind, array.dtype.itemsize
    if kind == "O":  # columns of nullable or mixed types
        array = np.array(array.tolist())
    elif kind == "u" and size > 1:  # torch hardly computes with these
        array = array.astype(np.int64)
    elif kind == "f" and size > 8:
        array = array.astype(np.float64)
    elif not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    if any(stride < 0 for stride in array.strides):
        array = array.copy()
    if not array.flags.writeable:
        array = np.asarray(_AsWriteable(array))
    return torch.as_tensor(array)


class _AsWriteable:
    """The memory of an array that torch takes without a warning, as it is only ever read here.

    Ignoring the warning would change the filters of all threads.
    """

    def __init__(self, array: np.ndarray) -> None:
        self._held = array  # which keeps the memory
        address = array.__array_interface__["data"][0]
        self.__array_interface__ = array.__array_interface__ | {"data": (address, False)}


def _holds_text(values: ArrayLike) -> bool:
    try:
        array = np.asarray(values)
    except (TypeError, ValueError, RuntimeError):  # rows of unequal lengths, a tensor elsewhere
        return False
    return array.dtype.kind in "UST" or any(isinstance(value, str) for value in array.flat)


def _remedy_for_text(name: str, values: ArrayLike) -> str:
    """Return how texts become numbers; numbered in alphabetical order, "10" would come before "2".

    >>> _remedy_for_text("labels", ["10", "2"]), _remedy_for_text("orbit", ["a", "b"])
    ('convert them, numpy.asarray(labels, int)', 'number them with numpy.unique(names, ...
    """
    for kind in ("int", "float"):
        try:
            np.asarray(np.asarray(values), kind)
        except (TypeError, ValueError, OverflowError):
            continue
        return f"convert them, numpy.asarray({name}, {kind})"
    if name not in ("labels", "label", "orbit", "predicted"):
        return ""
    hint = "number them with numpy.unique(names, return_inverse=True)[1]"
    return hint + ("" if name == "orbit" else " if the model's classes are in alphabetical order")


def as_floating(name: str, values: ArrayLike, device: torch.device | None = None) -> Tensor:
    """Read an argument as a tensor of real floating-point numbers.

    Example:
        >>> as_floating("mean", [0.5, 1.5])
        tensor([0.5000, 1.5000])
    """
    tensor = as_array(name, values, device)
    if not tensor.dtype.is_floating_point:
        raise InputError(name, "floating-point values", f"dtype {_dtype(tensor)}")
    return tensor


def single_precision(values: Tensor) -> Tensor:
    """Return values in single precision at least: half precision holds inputs, no results.

    Example:
        >>> [single_precision(torch.zeros(1, dtype=d)).dtype for d in (torch.half, torch.double)]
        [torch.float32, torch.float64]
    """
    return values.float() if values.dtype in _HALF else values


def both_classes(outputs: Tensor, *, logits: bool, axis: int = -1) -> Tensor:
    """Complete the one column of a binary classifier, `[N]` or a class axis of length 1.

    The column is the probability of class 1, as scikit-learn and torchmetrics read it, or its
    logit, the argument of the sigmoid. Class 0 has the rest: `1 - p`, or the logit 0.

    Example:
        >>> both_classes(torch.tensor([0.75, 0.5]), logits=False)
        tensor([[0.2500, 0.7500],
                [0.5000, 0.5000]])
    """
    columns = outputs[:, None] if outputs.ndim == 1 else outputs
    if columns.ndim == 0 or columns.shape[axis] != 1:
        return columns
    other = torch.zeros_like(columns) if logits else 1 - columns
    return torch.cat([other, columns], axis)


def _dtype(tensor: Tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")


def _integer_labels(labels: ArrayLike, classes: int, device: torch.device) -> Tensor:
    """Read labels as int64; booleans are the indices of two classes."""
    given = as_array("labels", labels, device)
    if given.dtype == torch.bool and classes == 2:
        return given.long()
    if given.dtype == torch.bool or given.dtype.is_floating_point or given.dtype.is_complex:
        one_hot = given.ndim > 1 and given.shape[-1] == classes
        remedy = "labels.argmax(-1)" if one_hot else "labels.astype(int) or labels.long()"
        got = f"{_dtype(given)} of shape {tuple(given.shape)}"
        remedy = f"pass class indices, e.g. {remedy}"
        raise InputError("labels", "integer class indices", got, remedy=remedy)
    return given.long()


def check_label_range(labels: Tensor, classes: int, ignore_index: int | None = None) -> None:
    """Check that labels are class indices, or the one to ignore."""
    counted = labels if ignore_index is None else labels[labels != ignore_index]
    if not counted.numel():
        return
    few = few_as_numpy(counted)
    if few is not None and few.view(np.uint64).max() < classes:
        return  # a number with a sign is larger than all others as an unsigned integer
    low, high = array_range(counted)
    if low < 0 or high >= classes:
        unused = ignore_index is None and low < 0
        remedy = f"to leave samples out pass ignore_index={low}" if unused else ""
        got = f"values in [{low}, {high}]"
        raise InputError("labels", f"class indices 0 to {classes - 1}", got, remedy=remedy)


def checked_label_array(
    labels: ArrayLike, outputs: Tensor, ignore_index: int | None = None
) -> Tensor:
    """Read the labels of outputs `[..., N, C]` as int64 `[..., N]`, and check their range.

    Example:
        >>> checked_label_array([0, 1], torch.zeros(3, 2, 5)).shape
        torch.Size([3, 2])
    """
    truth = as_label_array(outputs, labels)
    check_label_range(truth, outputs.shape[-1], ignore_index)
    return truth


def as_label_array(outputs: Tensor, labels: ArrayLike) -> Tensor:
    """Read the labels `[N]`, `[N, 1]` or `[..., N]` of outputs `[..., N, C]`, as int64 `[..., N]`.

    Example:
        >>> as_label_array(torch.zeros(2, 5), [[0], [1]])
        tensor([0, 1])
    """
    samples, classes = outputs.shape[-2:]
    truth = _integer_labels(labels, classes, outputs.device)
    column = samples > 1 or truth.ndim == outputs.ndim  # of one sample `[..., 1]` has its shape too
    if truth.ndim > 1 and truth.shape[-2:] == (samples, 1) and column:
        truth = truth[..., 0]
    if truth.ndim == 0 or truth.shape[-1] != samples:
        one_hot = truth.ndim > 1 and truth.shape[-1] == classes
        remedy = "pass class indices, e.g. labels.argmax(-1)" if one_hot else ""
        expected = f"{samples} labels along the last axis, one for each sample"
        raise InputError("labels", expected, truth, remedy=remedy)
    if truth.shape == outputs.shape[:-1]:
        return truth
    try:
        return truth.expand(outputs.shape[:-1])
    except RuntimeError as error:
        expected = f"a shape that fits outputs {tuple(outputs.shape)}"
        raise InputError("labels", expected, truth) from error


def array_range(values: Tensor) -> tuple[float, float]:
    """Return the least and the largest value, both NaN if there is one.

    Example:
        >>> array_range(torch.tensor([2, 0, 1]))
        (0, 2)
    """
    if (few := few_as_numpy(values)) is not None:
        return few.min().item(), few.max().item()
    low, high = torch.stack(values.detach().aminmax()).tolist()  # one wait for an accelerator
    return low, high


def few_as_numpy(values: Tensor) -> np.ndarray | None:
    """Return values for NumPy, which starts faster, if they are few and it can read them.

    Example:
        >>> few_as_numpy(torch.tensor([2, 0, 1]))
        array([2, 0, 1])
    """
    if values.numel() > _FEW or values.dtype in _HALF or not can_inspect_array(values):
        return None
    return values.numpy(force=True)


def can_inspect_array(tensor: Tensor) -> bool:
    """Check whether values can be seen: no device to wait for, no graph to break, no transform."""
    return tensor.device.type == "cpu" and not arrays_are_traced()


def arrays_are_traced() -> bool:
    """Check whether operations are being compiled, or transformed by `torch.func`."""
    return torch.compiler.is_compiling() or torch._C._are_functorch_transforms_active()


def probability_tolerance(dtype: torch.dtype) -> float:
    """Return how far rounding in this dtype may move a probability or a row sum from 1."""
    return {torch.float64: 1e-6, torch.float32: 1e-4}.get(dtype, 2e-2)


def row_sum_tolerance(dtype: torch.dtype) -> float:
    """Return how far the probabilities of a model may sum from 1; some are summed less precisely.

    scikit-learn's GaussianNB misses 1 by 3e-4 in single precision.
    """
    return max(1e-3, probability_tolerance(dtype))


def warn_of_probabilities(
    logits: Tensor, remedy: str = "pass them as probs=, or save them as probs", name: str = "logits"
) -> None:
    """Warn where every inspected row of logits is >= 0 and sums to 1.

    A softmax of probabilities is nearly uniform, and every measure of it is beside the point. One
    or two rows can look so by chance, and are left alone.
    """
    slack = max(probability_tolerance(logits.dtype), probability_tolerance(torch.float32))
    rows = logits.detach()
    rows = rows if rows.ndim == 2 else rows.reshape(-1, rows.shape[-1])
    if len(rows) < 3 or abs(_total(rows[0]) - 1) > slack:
        return  # the first row is enough to see nearly all logits for what they are
    some = rows[:: max(1, len(rows) // _ROWS)].double()
    if bool((some < 0).any()):
        return
    if bool(((some.sum(-1) - 1).abs() < slack).all()):
        warn(
            f"{name}: expected scores before the softmax, got rows that are >= 0 and sum to 1; if "
            f"these are probabilities, {remedy}",
        )


def _total(values: Tensor) -> float:
    return sum(values.tolist()) if len(values) <= _ROWS else values.sum().item()


def check_finite(argument: str, tensor: Tensor, what: str = "values") -> None:
    """Refuse NaN and infinity.

    Example:
        >>> check_finite("mean", torch.tensor([0.5, 1.0]))
    """
    seen = tensor.detach()
    # A finite sum proves finite terms at a fraction of the cost; an overflowing one proves nothing.
    if not (bool(torch.isfinite(seen.sum())) or bool(torch.isfinite(seen).all())):
        raise InputError(argument, f"finite {what}", "NaN or infinity")
