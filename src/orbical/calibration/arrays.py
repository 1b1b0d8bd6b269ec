"""How arguments become tensors, and the words for those that cannot."""

from __future__ import annotations

import sys
import warnings
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..errors import InputError

ArrayLike = Any
"""A torch tensor, or anything that `torch.as_tensor` takes."""

_ROWS = 256
"""Rows that are looked at to tell logits from probabilities; a softmax shows in any of them."""


def as_array(name: str, values: ArrayLike, device: torch.device | None = None) -> Tensor:
    """Take an array as a tensor, or say which argument is not one."""
    try:
        return torch.as_tensor(values, device=device)
    except (TypeError, ValueError, RuntimeError) as error:
        why = "it holds text" if _holds_text(values) else error
        hint = "; numpy.unique(names, return_inverse=True)[1] numbers names of classes"
        numbered = hint if name == "labels" and why is not error else ""
        raise InputError(f"{name}: cannot be read as an array of numbers ({why}){numbered}") from (
            error
        )


def _holds_text(values: ArrayLike) -> bool:
    try:
        return np.asarray(values).dtype.kind in "US"
    except ValueError:  # rows of unequal lengths
        return False


def as_floating(name: str, values: ArrayLike) -> Tensor:
    """Take an array as a real floating tensor, or say which argument is not one."""
    tensor = as_array(name, values)
    if not tensor.dtype.is_floating_point:
        raise InputError(f"{name}: expected floating-point values, got dtype {tensor.dtype}")
    return tensor


def class_indices(labels: ArrayLike, classes: int, device: torch.device) -> Tensor:
    """Check class indices of any shape, and return them as int64.

    >>> class_indices([0, 1], 2, torch.device("cpu"))
    tensor([0, 1])
    """
    labels = as_array("labels", labels, device)
    if labels.dtype == torch.bool or labels.dtype.is_floating_point or labels.dtype.is_complex:
        raise InputError(
            f"labels: expected integer class indices, got dtype {labels.dtype}"
            f"{_one_hot(labels, classes)}"
        )
    labels = labels.long()
    low, high = (int(bound) for bound in labels.aminmax()) if labels.numel() else (0, 0)
    if low < 0 or high >= classes:
        raise InputError(
            f"labels: values span [{low}, {high}]; expected class indices 0 to {classes - 1}"
        )
    return labels


def _one_hot(labels: Tensor, classes: int) -> str:
    given = labels.ndim > 1 and labels.shape[-1] == classes
    return "; of one-hot rows take .argmax(-1)" if given else ""


def true_labels(labels: ArrayLike, outputs: Tensor) -> Tensor:
    """Check class indices against outputs `[..., N, C]`; return them as int64 of shape `[..., N]`.

    >>> true_labels([0, 1], torch.zeros(3, 2, 5)).shape
    torch.Size([3, 2])
    """
    labels = class_indices(labels, outputs.shape[-1], outputs.device)
    if labels.ndim == 0 or labels.shape[-1] != outputs.shape[-2]:
        raise InputError(
            f"labels: expected {outputs.shape[-2]} labels along the last axis, one for each "
            f"sample, got shape {tuple(labels.shape)}{_one_hot(labels, outputs.shape[-1])}"
        )
    try:
        return labels.expand(outputs.shape[:-1])
    except RuntimeError as error:
        raise InputError(
            f"labels: shape {tuple(labels.shape)} does not fit outputs {tuple(outputs.shape)}"
        ) from error


def warn_of_probabilities(logits: Tensor) -> None:
    """Warn where what is called logits is not negative and sums to 1, row by row.

    A softmax of probabilities is nearly uniform, and every measure of it is beside the point. A
    few rows can do so by chance, so they are left alone.
    """
    rows = logits.detach().reshape(-1, logits.shape[-1])
    some = rows[:: max(1, len(rows) // _ROWS)].double()
    if len(rows) < 3 or bool((some < 0).any()):
        return
    slack = 2e-2 if logits.dtype in (torch.float16, torch.bfloat16) else 1e-4
    if bool(((some.sum(-1) - 1).abs() < slack).all()):
        warnings.warn(
            "logits: every row looked at is >= 0 and sums to 1; if these are probabilities, "
            "pass them as probs=",
            stacklevel=callers_level(),
        )


def callers_level() -> int:
    """Return the stack level, for a warning, of the line outside of orbical that led here.

    A table asks for probabilities at several places of its own; Python tells each line once.
    """
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and str(frame.f_globals.get("__name__")).startswith("orbical"):
        level, frame = level + 1, frame.f_back
    return level
