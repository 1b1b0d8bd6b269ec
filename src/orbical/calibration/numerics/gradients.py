"""Measures that find their gradient together with their value.

Left to autograd, a measure of a small batch spends most of its time on the bookkeeping of a dozen
tiny operations, forward and backward. A formula `(inputs, target, mass, *settings)` that returns
the value and its gradient by the inputs does the same in one forward pass.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import torch
from torch import Tensor

from ..._arrays import arrays_are_traced

Formula = Callable[..., tuple[Tensor, Tensor]]
"""Takes inputs `[..., N]`, their target, weights or None, and settings.

It is written in operations that autograd knows, because a second derivative is that of the formula
itself; so nothing that autograd would save may be overwritten.
"""


class _ValueWithGradient(torch.autograd.Function):
    # Not split into forward and setup_context: torch inspects the signature of that kind of
    # forward at every call, which takes as long as a loss does.
    @staticmethod
    def forward(
        ctx: Any, inputs: Tensor, target: Tensor, mass: Tensor | None, *formula: Any
    ) -> Tensor:
        value: Tensor
        value, ctx.gradient = formula[0](inputs, target, mass, *formula[1:])
        ctx.save_for_backward(inputs)
        ctx.given = target, mass, formula
        return value

    @staticmethod
    def backward(ctx: Any, slope: Tensor) -> tuple[Tensor | None, ...]:
        gradient, (target, mass, formula) = ctx.gradient, ctx.given
        if torch.is_grad_enabled():  # a second derivative is asked for
            (inputs,) = ctx.saved_tensors
            _, gradient = formula[0](inputs, target, mass, *formula[1:])
        if slope.ndim:  # a number leaves the gradient's dtype as it is
            slope = slope[..., None].to(gradient.dtype)
        return slope * gradient, None, None, *(None for _ in formula)


def differentiable(
    formula: Formula,
    inputs: Tensor,
    target: Tensor,
    mass: Tensor | None,
    *settings: Any,
    value_alone: Callable[..., Tensor] | None = None,
) -> Tensor:
    """Return the value of a formula, whose derivative by the inputs is the gradient it returns.

    Where nobody asks for a gradient, `value_alone` of the same arguments is called, if it is given.

    Example:
        >>> x = torch.tensor([1.0, 2.0], requires_grad=True)
        >>> def squares(x, target, mass):
        ...     return (x - target).square().sum(), 2 * (x - target)
        >>> differentiable(squares, x, torch.zeros(2), None).backward()
        >>> x.grad
        tensor([2., 4.])
    """
    if arrays_are_traced():
        return formula(inputs, target, mass, *settings)[0]  # taken apart and fused, or transformed
    if value_alone is not None and not (inputs.requires_grad and torch.is_grad_enabled()):
        return value_alone(inputs, target, mass, *settings)
    given = (inputs, target, mass, formula, *settings)
    value: Tensor = _ValueWithGradient.apply(*given)  # type: ignore[no-untyped-call]
    return value


def differentiable_root(squared: Tensor) -> Tensor:
    """Return the square root, 0 for values below 0, with gradient 0 instead of infinity there.

    Example:
        >>> differentiable_root(torch.tensor([4.0, 0.0, -1e-18]))
        tensor([2., 0., 0.])
    """
    least = torch.finfo(squared.dtype).tiny
    # NaN stays NaN; filling with a number, unlike torch.where, copies none to an accelerator.
    return squared.clamp(min=least).sqrt().masked_fill(squared <= 0, 0.0)


def can_fuse_gradient(values: Tensor, mass: Tensor | None) -> bool:
    """Check whether kernels may compute a measure of unweighted values and its gradient.

    Autograd, which second derivatives need, and compilation see through torch only.
    """
    if not values.is_cuda or mass is not None or torch.is_grad_enabled() or arrays_are_traced():
        return False
    here = values.get_device()
    return here == torch.cuda.current_device() and _triton_gradients_work(here)


@cache
def _triton_gradients_work(device: int) -> bool:
    """Check whether Triton, which comes with torch, finds the C compiler that it needs."""
    try:
        from .esd_kernels import esd_by_kernels

        confidence = torch.tensor([0.25, 0.5, 0.75], device=device)
        esd_by_kernels(confidence, torch.arange(3, device=device), confidence > 0)
    except Exception:  # whatever is amiss, torch computes the same
        return False
    return True
