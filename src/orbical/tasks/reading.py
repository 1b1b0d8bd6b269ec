"""Reading what models return and what is true: checks that tasks share, and their errors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeGuard

import torch
from torch import Tensor

from .._arrays import as_array
from ..actions import Window
from ..errors import InputError, ModelError


def read_truth(target: object, count: int | None = None, name: str = "labels") -> Tensor:
    """Return targets as a tensor, of `count` samples where that is known."""
    values = as_array(name, target)
    if count is not None and (values.ndim == 0 or len(values) != count):
        given = str(len(values)) if values.ndim else "a single number"
        raise InputError(name, f"one for each of {count} samples", given)
    return values


def read_class_indices(target: object, count: int, dims: int, axis: int, expected: str) -> Tensor:
    """Return true classes in `dims` dimensions, or with one more, an `axis` of length 1."""
    labels = read_truth(target, count)
    if labels.ndim == dims + 1 and labels.shape[axis] == 1:
        labels = labels.squeeze(axis)
    if labels.ndim != dims or labels.is_floating_point() or labels.is_complex():
        indices = {dims: "labels.astype(int)", dims + 1: f"labels.argmax({axis})"}
        remedy = "a class for each pixel is task='segmentation'" if dims == 1 else ""
        if labels.ndim in indices:
            remedy = f"pass class indices, e.g. {indices[labels.ndim]}"
        raise wrong_truth(expected, labels, remedy)
    return labels


def check_as_predicted(
    true: object, predicted: object, expected: str, argument: str = "labels"
) -> None:
    """Refuse a truth with another shape, or number of points or labels, than a model predicts."""
    if true != predicted:
        raise InputError(argument, f"{expected}, as the model predicts", true)


def read_class_names(classes: object) -> list[str] | None:
    """Check the names of classes, in the order of their indices."""
    if classes is None:
        return None
    if isinstance(classes, str) or not isinstance(classes, Iterable):
        raise InputError("classes", "a list of names", repr(classes))
    return [str(name) for name in classes]


def described_value(given: object) -> str:
    """Describe a value in an error message: its shape, or its type."""
    if isinstance(given, Tensor):
        return f"{str(given.dtype).removeprefix('torch.')} of shape {tuple(given.shape)}"
    if isinstance(given, Mapping):
        return f"a dictionary of {', '.join(map(repr, given)) or 'nothing'}"
    return f"a tuple of {len(given)}" if isinstance(given, tuple) else type(given).__name__


def reading_remedy(given: object) -> str:
    """Return the remedy for an output that holds what the task needs somewhere inside."""
    items = enumerate(given) if isinstance(given, tuple) else ()
    parts = given.items() if isinstance(given, Mapping) else items
    key = next((name for name, part in parts if isinstance(part, Tensor)), None)
    picked = "..." if key is None else f"out[{key!r}]"
    return (
        f"pass read=lambda out: {picked} to ob.scan, or select the outputs with --read "
        "package.module:function"
    )


def read_output(given: object, what: str, *dims: str) -> Tensor:
    """Return a model output with these dimensions, or raise; some have a size, none is empty.

    >>> read_output(torch.zeros(5, 2), "positions", "sample", "2").shape
    torch.Size([5, 2])
    >>> read_output(torch.zeros(5, 3), "positions", "sample", "2")
    Traceback (most recent call last):
    orbical.errors.ModelError: model output: expected positions [sample, 2], got float32 of ...
    """
    if is_real(given) and given.ndim == len(dims):
        sizes = zip(dims[1:], given.shape[1:], strict=True)
        if all(str(size) in dim.split(" or ") if dim[0].isdigit() else size for dim, size in sizes):
            return given
    raise unreadable_output(given, f"{what} [{', '.join(dims)}]")


def read_task_view_size(size: object, input: object) -> tuple[int, int]:
    """Return the height and width of the view that boxes and points lie in, or raise."""
    if size is None and isinstance(input, Window):
        return input.size, input.size
    match size:
        case (int(height), int(width)) if height >= 1 and width >= 1:
            return height, width
    remedy = f"{type(input).__name__} does not have a size" if size is None else ""
    expected = "height and width of the view in whole pixels, such as (256, 192)"
    raise InputError("size", expected, repr(size), remedy=remedy)


def unreadable_output(given: object, expected: str) -> ModelError:
    """Return the error for a raw model output that a task cannot read."""
    return wrong_output(expected, described_value(given), reading_remedy(given))


def wrong_output(expected: str, got: object, remedy: str = "") -> ModelError:
    """Return the error for a model output, of which `got` says in words what it is.

    >>> print(wrong_output("9 points", 8, "pass swaps="))
    model output: expected 9 points, got 8; pass swaps=
    """
    more = f"; {remedy}" if remedy else ""
    return ModelError(f"model output: expected {expected}, got {got}{more}")


def wrong_truth(expected: str, given: Tensor, remedy: str = "") -> InputError:
    """Return the error for true values of another type or shape than a task expects."""
    return InputError("labels", expected, described_value(given), remedy=remedy)


def read_precision(values: Tensor) -> Tensor:
    """Return integers and half precision as single precision, and the rest unchanged."""
    return values if values.dtype in (torch.float32, torch.float64) else values.float()


def is_real(given: object) -> TypeGuard[Tensor]:
    """Check whether a value is a tensor of real numbers."""
    return isinstance(given, Tensor) and not given.is_complex()
