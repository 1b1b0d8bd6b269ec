"""A training step as one launch: on a GPU its kernels are recorded once and replayed."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

WARM_UP = 3


def recorded(
    step: Callable[..., None],
    inputs: Sequence[Tensor],
    weights: Sequence[Tensor],
    optimizer: torch.optim.Optimizer,
) -> Callable[..., None]:
    """Return a function that does what `step` does, by one launch where the inputs are on a GPU.

    A step of a small network is hundreds of small kernels, and starting them takes longer than
    running them. Recording needs a few steps to warm up; weights and the optimizer's state are put
    back afterwards. The rate of the optimizer must be a tensor, which a schedule changes in place.

    Args:
        step: A function of tensors that trains `weights` by `optimizer`; it sets gradients to None.
        inputs: Tensors of the shapes and types of those of every later call.
        weights: All parameters and buffers that a step changes.
        optimizer: Their optimizer, which has not made a step.
    """
    if inputs[0].device.type != "cuda":
        return step
    places = [each.clone(memory_format=torch.preserve_format) for each in inputs]
    before = [each.detach().clone() for each in weights]
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(WARM_UP):
            step(*places)
    torch.cuda.current_stream().wait_stream(side)
    optimizer.zero_grad(set_to_none=True)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step(*places)
    with torch.no_grad():
        for each, value in zip(weights, before, strict=True):
            each.copy_(value)
        for state in optimizer.state.values():
            for value in state.values():
                value.zero_()

    def replay(*given: Tensor) -> None:
        for place, each in zip(places, given, strict=True):
            place.copy_(each)
        graph.replay()

    return replay
