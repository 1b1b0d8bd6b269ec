"""A training step as one launch: on a GPU its kernels are recorded once and replayed."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

WARM_UP = 3


def recorded(
    step: Callable[..., None],
    inputs: Sequence[Tensor],
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
) -> Callable[..., None]:
    """Return a function that does what `step` does, by one launch where the inputs are on a GPU.

    A step of a small network is hundreds of small kernels, and starting them takes longer than
    running them. Recording needs a few steps to warm up; weights, buffers and momenta are put back
    afterwards. The rate of the optimizer must be a tensor, which a schedule changes in place.

    Args:
        step: A function of tensors that trains `model` by `optimizer`, with gradients set to None.
        inputs: Tensors of the shapes and types of those of every later call.
        model: The network.
        optimizer: Its optimizer, which has not made a step.
    """
    if inputs[0].device.type != "cuda":
        return step
    places = [each.clone(memory_format=torch.preserve_format) for each in inputs]
    before = copy.deepcopy(model.state_dict())
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
    model.load_state_dict(before)
    for state in optimizer.state.values():
        state["momentum_buffer"].zero_()

    def replay(*given: Tensor) -> None:
        for place, each in zip(places, given, strict=True):
            place.copy_(each)
        graph.replay()

    return replay
