"""Whether a model is equivariant, and where it is not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from torch import Tensor

from .._trees import Tree, leaves, tree_map
from .._warnings import warn
from ..actions import check_group
from ..data import Samples
from ..errors import InputError, ModelError, real_number, whole_number
from ..groups import Elements, Group, as_group, identity_of
from ..predictors import as_predictor
from ..scanning import Sweep, refuse_faults_of_pass
from ..tasks import Task, as_task

__all__ = ["TOLERANCE", "EquivarianceError", "assert_equivariant", "equivariance_error"]

TOLERANCE = {torch.float16: 1e-2, torch.bfloat16: 5e-2, torch.float32: 1e-4, torch.float64: 1e-9}
"""The default tolerance of `assert_equivariant`, relative to the largest output."""


@dataclass(frozen=True)
class EquivarianceError:
    """The equivariance error of a model at each group element.

    The error at `g` is the largest entry of `h(g x) - g h(x)` over the batch, relative to the
    largest entry of `h(x)` (of the same quantity, if there are several).

    Attributes:
        parts: the error `[K]` of the prediction and of its uncertainty, such as
            `{"prediction": [K], "covariance": [K]}`; of atoms that of each quantity.
        group: the sampled group.
        dtype: the lower of the precisions of data and outputs.
        interpolation: `[K]`, what is not the model's fault: how much predictions change, relative
            to the same scale, if the inputs are moved there and back, which an exact action
            restores. 0 for exact actions.
        samples: for each part, the sample with the largest error at each element, in words.
    """

    parts: Mapping[str, np.ndarray]
    group: Group
    dtype: torch.dtype
    interpolation: np.ndarray
    samples: Mapping[str, tuple[str, ...]]

    @property
    def per_element(self) -> np.ndarray:
        """Return the error at each element, `[K]`, of the part that is worst there."""
        return np.asarray(np.max([*self.parts.values()], axis=0))

    @property
    def worst_part(self) -> str:
        """Return the part that is worst at the worst element."""
        return max(self.parts, key=lambda name: self.parts[name][self.worst])

    @property
    def worst(self) -> int:
        """Return the index of the worst element."""
        return int(self.per_element.argmax())

    @property
    def largest(self) -> float:
        """Return the error at the worst element."""
        return float(self.per_element[self.worst])


def equivariance_error(
    model: object, x: Tree, *, group: Group | str, task: Task | str, batch_size: int = 512
) -> EquivarianceError:
    """Measure the equivariance error of a model at each element of a group.

        error(g) = max |h(g x) - g h(x)| / max |h(x)|

    Uncertainties are checked too: variances, and both parts of evidential outputs, must be
    invariant; covariances must rotate, `C(g x) = R C(x) R^T`.

    Args:
        model: any model that `orbical.scan` takes.
        x: inputs with a leading sample dimension.
        group: the sampled group, or its text such as `"rotations:8"`.
        task: the task, or its name; it defines how inputs and outputs transform.
        batch_size: transformed inputs in one forward pass.

    Returns:
        The error at each element.

    Raises:
        InputError: If an argument cannot be used.
        ModelError: If the model's outputs cannot be read.

    See Also:
        assert_equivariant: The same as a test.
        layer_errors: Where inside a network the symmetry is lost.
        orbical.scan: Whole orbits of many samples, with scores.

    Example:
        >>> import orbical as ob, torch
        >>> error = ob.testing.equivariance_error(
        ...     lambda v: 2 * v, torch.randn(5, 3), group="rotations3d:32",
        ...     task=ob.tasks.Regression(input=ob.actions.Vectors(), representation="vector"))
        >>> error.largest < 1e-5
        True
    """
    batch_size = whole_number("batch_size", batch_size, 1)
    given = x
    group, task, x = checked_together(group, task, given)
    task.input.check_values(x)
    first = next(leaves(x))
    predictor = as_predictor(model)
    with predictor.ready(first.device):
        run = partial(Sweep, {"model": predictor}, task=task, device=first.device)
        outputs = run(group, batch_size=batch_size).answers(x, "model")
        restored = None
        if bool((task.input.defect(group, x) > 0).any()):
            back = task.input.move(group.inverse(), task.input.apply(group, x))
            joined = tree_map(lambda leaf: leaf.flatten(0, 1), back)
            restored = run(identity_of(group), batch_size=batch_size).answers(joined, "model")
    refuse_faults_of_pass("model", task.faults(outputs), group, x)
    predictions = task.primary(outputs)
    upright = predictions[group.identity]
    try:
        task.check_outputs(group, tree_map(lambda leaf: leaf[group.identity], outputs))
    except InputError as error:
        raise ModelError(f"model: its outputs do not move as the task expects: {error}") from None
    expected = task.output.apply(group, upright)
    scale = task.scale(upright)

    def relative(predicted: Tensor, wanted: Tensor, elements: Elements) -> Tensor:
        apart = (predicted - wanted).abs().nan_to_num(0.0)  # NaN is padding: faults were refused
        if (valid := task.output.valid(elements, predictions)) is not None:
            apart = apart * valid[:, None, None]  # fields are [K, B, component, row, column]
        return _relative(apart, scale)

    errors = dict(task.parts(relative(predictions, expected, group)))
    lost = np.zeros(len(group))
    if restored is not None:
        home = task.primary(restored)[0].unflatten(0, (len(group), -1))
        lost = _largest(relative(home, upright, group.inverse()))
    for name, (values, move) in task.companions(outputs).items():
        still = values[group.identity]
        apart = (values - move(group, still[None])).abs().nan_to_num(0.0)
        errors[name] = _relative(apart, still.abs().nan_to_num(0.0).max())
    names = task.names(given)
    samples = {
        name: tuple(task.sample_name(x, int(place), names) for place in _by_sample(part).argmax(1))
        for name, part in errors.items()
    }
    parts = {name: _largest(part) for name, part in errors.items()}
    return EquivarianceError(parts, group, _precision(x, predictions), lost, samples)


def checked_together(group: Group | str, task: Task | str, x: object) -> tuple[Group, Task, Tree]:
    """Return group, task and inputs of a test, if the group can act on these inputs and outputs."""
    acting = as_group(group)
    suited, inputs = with_tensors(as_task(task), x)
    check_group(suited.input, acting, inputs)
    suited.check_group(acting, inputs)
    return suited.on_outputs(acting), suited, inputs


def with_tensors(task: Task, x: object) -> tuple[Task, Tree]:
    """Return the task that suits the inputs of a test, and these as tensors of their precision."""
    try:
        samples = Samples((task.take((x, None))[0], None))
        inputs = samples.whole()
        return task.for_inputs(inputs, samples.source.action), inputs
    except InputError as error:
        raise error.about("x") from error


def _relative(difference: Tensor, scale: Tensor) -> Tensor:
    if not difference.is_floating_point():  # code points of texts, which are equal or not
        difference = difference.double()
    return difference / scale.clamp_min(torch.finfo(difference.dtype).tiny)


def _by_sample(errors: Tensor) -> Tensor:
    """Return the largest of errors `[K, B, ...]` of each sample at each element, `[K, B]`."""
    return errors.flatten(2).amax(2) if errors.ndim > 2 else errors


def _largest(errors: Tensor) -> np.ndarray:
    return np.asarray(errors.flatten(1).amax(1).double().cpu())


def assert_equivariant(
    model: object, x: Tree, *, group: Group | str, task: Task | str, tolerance: float | None = None
) -> None:
    """Raise an AssertionError that names the worst sample and element unless equivariant.

    Where the action itself loses detail, as interpolated rotations of images do, a model is not
    blamed for it: errors count beyond what moving the inputs there and back changes. That hides
    small errors of the model too, so a warning recommends an exact group.

    Args:
        model: any model that `orbical.scan` takes.
        x: inputs with a leading sample dimension.
        group: the sampled group, or its text such as `"rotations:8"`.
        task: the task, or its name; it defines how inputs and outputs transform.
        tolerance: the largest error allowed, relative to the largest output; None chooses by
            precision: 1e-9 for double, 1e-4 for single, 1e-2 for float16, 5e-2 for bfloat16.

    Raises:
        AssertionError: If the error at some element exceeds the tolerance.

    See Also:
        equivariance_error: The error at each element.

    Example:
        >>> import orbical as ob, torch
        >>> pool = torch.nn.Sequential(torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten())
        >>> ob.testing.assert_equivariant(pool, torch.rand(4, 3, 8, 8), group="dihedral:4",
        ...                               task="classification")
    """
    __tracebackhide__ = True  # pytest shows the line of the test
    if tolerance is not None:
        real_number("tolerance", tolerance, ">= 0")
    error = equivariance_error(model, x, group=group, task=task)
    limit = TOLERANCE[error.dtype] if tolerance is None else tolerance
    allowed = limit + error.interpolation
    lost = float(error.interpolation.max())
    exact = "dihedral:4, cyclic:4 or flips, which move whole pixels, have none"
    if not (error.per_element <= allowed).all():
        worst = int((error.per_element - allowed).argmax())
        beyond = int((error.per_element > allowed).sum())
        part = max(error.parts, key=lambda name: error.parts[name][worst])
        what = "" if part == "prediction" else f" of the {part}"
        share = f", of which interpolation explains {error.interpolation[worst]:.3g} ({exact})"
        raise AssertionError(
            f"not equivariant under {error.group.spec}: relative error "
            f"{error.per_element[worst]:.3g}{what} at {error.group.name(worst)} (element {worst}) "
            f"of {error.samples[part][worst]}"
            f"{share if error.interpolation[worst] > limit else ''}, {beyond} of "
            f"{len(error.group)} elements beyond the tolerance {limit:.3g} for {error.dtype}"
        )
    if error.largest > limit:
        warn(
            f"equivariant under {error.group.spec} only up to interpolation, which changes "
            f"predictions by {lost:.3g}: smaller errors of the model are not seen; {exact}",
        )


def _precision(x: Tree, predictions: Tensor) -> torch.dtype:
    """Return the lower of the precisions of data and predictions."""
    kinds = [leaf.dtype for leaf in leaves(x) if leaf.is_floating_point()] + [predictions.dtype]
    known: list[torch.dtype] = [kind for kind in kinds if kind in TOLERANCE]
    if not known:
        raise InputError("x", "floating-point data", predictions.dtype)
    return max(known, key=lambda kind: TOLERANCE[kind])
