"""Unit tests for networks: is it equivariant, and where is it not?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ._trees import Tree, leaves
from .actions import check_group
from .data.samples import Samples
from .errors import InputError
from .groups import Group, as_group
from .groups.group import real_number, whole_number
from .predictors import as_predictor
from .scanning.engine import as_task
from .scanning.sweep import Sweep, refusal
from .tasks import Task

TOLERANCE = {
    torch.float16: 1e-2,
    torch.bfloat16: 5e-2,
    torch.float32: 1e-4,
    torch.float64: 1e-9,
}


@dataclass(frozen=True)
class EquivarianceError:
    """How far a model is from equivariance at each element, and where it is worst.

    The error at `g` is the largest entry of `h(g x) - g h(x)` over the batch, relative to the
    largest entry of `h(x)` (of the same quantity, where there are several). `parts` holds it for
    the answer and for what stands beside it, `{"answer": [K], "covariance": [K]}` say.
    """

    parts: Mapping[str, np.ndarray]
    group: Group
    dtype: torch.dtype

    @property
    def per_element(self) -> np.ndarray:
        """The error at each element, `[K]`, of the part that is worst there."""
        return np.max([*self.parts.values()], axis=0)

    @property
    def worst_part(self) -> str:
        """The part of the answer that is worst at the worst element."""
        return max(self.parts, key=lambda name: self.parts[name][self.worst])

    @property
    def worst(self) -> int:
        """The index of the worst element."""
        return int(self.per_element.argmax())

    @property
    def largest(self) -> float:
        """The error at the worst element."""
        return float(self.per_element[self.worst])


def equivariance_error(
    model: Any, x: Tree, *, group: Group | str, task: Task | str, batch_size: int = 512
) -> EquivarianceError:
    """Measure `||h(g x) - g h(x)|| / ||h(x)||` for each element of a group.

    What a model says of its uncertainty is judged too: variances must stay as they are, and of
    evidential outputs both parts; covariances must turn, `C(g x) = R C(x) R^T`.

    >>> import orbical as ob, torch
    >>> error = ob.testing.equivariance_error(
    ...     lambda v: 2 * v, torch.randn(5, 3), group="rotations3d:32",
    ...     task=ob.tasks.Regression(input=ob.actions.Vectors(), representation="vector"))
    >>> error.largest < 1e-5
    True
    """
    group = as_group(group)
    task = as_task(task)
    batch_size = whole_number("batch_size", batch_size, 1)
    x = _tensors(task, x)
    check_group(task.input, group)
    task.input.check(group, x)
    task.input.check_values(x)
    first = next(leaves(x))
    predictor = as_predictor(model)
    with predictor.ready(first.device):
        sweep = Sweep({"model": predictor}, group, task, first.device, batch_size)
        outputs = sweep.answers(x, "model")
    for fault, marks in task.faults(outputs).items():
        if bool(marks.any()):
            element, sample = (int(place) for place in marks.nonzero()[0])
            where = f"sample {sample} at {group.name(element)}"
            raise refusal("model", fault, where, x, sample)
    answers = task.primary(outputs)
    still = answers[group.identity]
    expected = task.output.apply(group, still)
    valid = task.output.valid(group, answers)
    difference = (answers - expected).abs().nan_to_num(0.0)  # NaN is padding: faults were refused
    if valid is not None:
        difference = difference * valid[:, None, None]  # fields are [K, B, component, row, column]
    parts = {"answer": _relative(difference, task.scale(still))}
    for name, (values, move) in task.companions(outputs).items():
        home = values[group.identity]
        parts[name] = _relative((values - move(group, home[None])).abs(), home.abs().max())
    return EquivarianceError(parts, group, _precision(x, answers))


def _tensors(task: Task, x: Any) -> Tree:
    try:
        return Samples((task.take((x, None))[0], None)).whole()
    except InputError as error:
        raise InputError(f"x: {str(error).removeprefix('data: ')}") from error


def _relative(difference: Tensor, scale: Tensor) -> np.ndarray:
    share = difference / scale.clamp_min(torch.finfo(difference.dtype).tiny)
    return share.flatten(1).amax(1).double().cpu().numpy()


def assert_equivariant(
    model: Any,
    x: Tree,
    *,
    group: Group | str,
    task: Task | str,
    tolerance: float | None = None,
) -> None:
    """Raise AssertionError, naming the worst element, unless a model is equivariant.

    The tolerance, relative to the largest answer, follows the precision of the data unless given:
    1e-9 for double, 1e-4 for single, 1e-2 and 5e-2 for half precision.

    >>> import orbical as ob, torch
    >>> pool = torch.nn.Sequential(torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten())
    >>> ob.testing.assert_equivariant(pool, torch.rand(4, 3, 8, 8), group="dihedral:4",
    ...                               task="classification")
    """
    if tolerance is not None and not real_number("tolerance", tolerance) >= 0:
        raise InputError(f"tolerance: {tolerance!r} given, a number >= 0 expected")
    error = equivariance_error(model, x, group=group, task=task)
    limit = TOLERANCE[error.dtype] if tolerance is None else tolerance
    if not error.largest <= limit:
        beyond = int((error.per_element > limit).sum())
        what = "" if error.worst_part == "answer" else f" of the {error.worst_part}"
        raise AssertionError(
            f"not equivariant under {error.group.spec}: relative error {error.largest:.3g}{what} "
            f"at {error.group.name(error.worst)} (element {error.worst}), {beyond} of "
            f"{len(error.group)} elements beyond the tolerance {limit:.3g} for {error.dtype}"
        )


def _precision(x: Tree, answers: Tensor) -> torch.dtype:
    """Give the coarser of the precisions of data and answers."""
    kinds = [leaf.dtype for leaf in leaves(x) if leaf.is_floating_point()] + [answers.dtype]
    known = [kind for kind in kinds if kind in TOLERANCE]
    if not known:
        raise InputError("x: floating-point data expected")
    return max(known, key=lambda kind: TOLERANCE[kind])
