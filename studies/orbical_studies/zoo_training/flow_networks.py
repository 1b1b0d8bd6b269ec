"""Training of `orbical.zoo.flownet`: new pairs in every step, transformed along the orbit or not.

python -m orbical_studies.zooflow_networks --out FOLDER
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from orbical.actions import ImagePair, VectorField
from orbical.datasets import particle_pairs
from orbical.errors import InputError, check_name
from orbical.groups import parse
from orbical.zoo import flownet
from orbical.zoo.flownet import CHANNELS, DECODERS, NAMES, FlowNet

from ..framework.training_loop import AfterStep, fit
from . import build, one_cycle, run_command, save

SEED = 1
STEPS = 6000
BATCH = 16
SIZE = 160
LEARNING_RATE = 1e-3
WEIGHT_DECAY = 1e-4
LEVEL_WEIGHTS = (1.0, 0.5, 0.25, 0.15)
TRAINED_KINDS = ("uniform", "vortex", "shear", "backstep", "cylinder", *("turbulence",) * 3)
HELD_OUT_SEED, HELD_OUT_SIZE, HELD_OUT = 2, 256, 60
"""The pairs of a training step have seeds above `10**7`."""


def random_symmetry(
    pair: Tensor, flow: Tensor, generator: torch.Generator
) -> tuple[Tensor, Tensor]:
    """Transform each pair and its flow by a random element of D4 x time reversal.

    A transposition, a flip of columns, a flip of rows and a swap of the frames, each applied with
    probability 1/2, generate all 16 elements.

    Args:
        pair: Tensor `[n, 2, c, h, h]`.
        flow: Tensor `[n, 2, h, h]`.
        generator: Source of random numbers, on the device of the pairs.

    Returns:
        The transformed pairs and flows.
    """
    taken = torch.rand(4, len(pair), 1, 1, 1, device=pair.device, generator=generator) < 0.5
    steps: list[tuple[Callable[[Tensor], Tensor], Callable[[Tensor], Tensor]]] = [
        (lambda p: p.transpose(-2, -1), lambda u: u.flip(1).transpose(-2, -1)),
        (lambda p: p.flip(-1), lambda u: u.flip(-1) * _axis(u, -1.0, 1.0)),
        (lambda p: p.flip(-2), lambda u: u.flip(-2) * _axis(u, 1.0, -1.0)),
        (lambda p: p.flip(1), lambda u: -u),
    ]
    for now, (on_pair, on_flow) in zip(taken, steps, strict=True):
        pair = torch.where(now[..., None], on_pair(pair), pair)
        flow = torch.where(now, on_flow(flow), flow)
    return pair, flow


def _axis(flow: Tensor, x: float, y: float) -> Tensor:
    return torch.tensor([x, y], device=flow.device).reshape(1, 2, 1, 1)


def loss_of(flows: Sequence[Tensor], truth: Tensor) -> Tensor:
    """Sum the weighted end-point errors of all levels, in pixels of the finest.

    Args:
        flows: Flow of each level, the finest first, in pixels of its own level.
        truth: True flow `[n, 2, h, w]`.

    Returns:
        The loss, a scalar.
    """
    total = truth.new_zeros(())
    for level, (flow, weight) in enumerate(zip(flows, LEVEL_WEIGHTS, strict=True)):
        reduced = F.avg_pool2d(truth, 2**level) if level else truth
        error = (flow * 2**level - reduced).square().sum(1)
        total = total + weight * (error + 1e-6).sqrt().mean()
    return total


def train(
    symmetric: bool,
    steps: int = STEPS,
    seconds: float = math.inf,
    size: int = SIZE,
    batch: int = BATCH,
    seed: int = SEED,
    device: str = "cpu",
    after_step: AfterStep | None = None,
) -> tuple[FlowNet, int]:
    """Train a `FlowNet` on new pairs in every step, with AdamW and a one-cycle schedule.

    Args:
        symmetric: Transform every pair by a random element of D4 x time reversal.
        steps: Largest number of steps.
        seconds: Time limit; the schedule ends by then, whatever the number of steps.
        size: Side of the training images in pixels.
        batch: Number of pairs per step.
        seed: Seed of the initial weights and the pairs, which are the same for both networks.
        device: Device to train on.
        after_step: Called with the number of finished steps and the loss.

    Returns:
        The network in evaluation mode, and the number of steps taken.

    Raises:
        InputError: If the number of steps, the batch or the size cannot be used.

    Example:
        >>> net, taken = train(symmetric=True, steps=1, size=32, batch=2)
        >>> taken
        1
    """
    if steps < 1 or batch < 1 or size < 32 or size % 8:
        raise InputError(
            "steps, batch, size",
            "at least 1, at least 1, and a multiple of 8 from 32",
            f"{steps}, {batch} and {size}",
        )
    net = build(FlowNet, seed).to(device)
    chance = torch.Generator(device).manual_seed(seed)

    def loss(step: int) -> Tensor:
        made = particle_pairs(batch, size, TRAINED_KINDS, seed=seed * 10**7 + step, device=device)
        pair, flow = made["pair"], made["flow"]
        if symmetric:
            pair, flow = random_symmetry(pair, flow, chance)
        return loss_of(net.levels(pair), flow)

    how = (steps, LEARNING_RATE, WEIGHT_DECAY, partial(one_cycle, start=0.01))
    taken = fit(net, loss, *how, seconds, clip=1.0, after_step=after_step)
    return net, taken


@torch.inference_mode()
def error_by_element(net: nn.Module, pair: Tensor, flow: Tensor, batch: int = 16) -> Tensor:
    """Compute the mean end-point error at each of the 16 elements of D4 x time reversal.

    Args:
        net: Maps pairs `[n, 2, c, h, h]` to displacements `[n, 2, h, h]`.
        pair: Test pairs.
        flow: Their true displacements.
        batch: Number of pairs per forward pass.

    Returns:
        Tensor `[16]`, in the order of `orbical.groups.parse("dihedral:4*time_reversal")`, the
        identity first.
    """
    group = parse("dihedral:4*time_reversal")
    errors = torch.zeros(len(group), device=pair.device)
    for rows in torch.arange(len(pair)).split(batch):
        images = ImagePair().apply(group, pair[rows])
        truth = VectorField().apply(group, flow[rows])
        for number in range(len(group)):
            errors[number] += (net(images[number]) - truth[number]).norm(dim=1).mean((1, 2)).sum()
    return errors.cpu() / len(pair)


def train_and_save(
    folder: str | Path, name: str, held_out: int = HELD_OUT, **settings: Any
) -> Path:
    """Train one network, test it on new pairs, and save its weights.

    The header of the file records the settings, the steps taken, the torch version, and the mean
    end-point error on held-out pairs of 256 pixels, at the identity and over the 16 elements.

    Args:
        folder: Folder for the file; created if it does not exist.
        name: `"directed"` or `"symmetric"`.
        held_out: Number of test pairs.
        settings: Further arguments of `train`.

    Returns:
        The path of the file.

    Raises:
        InputError: If the name is unknown.
    """
    check_name("name", name, NAMES)
    started = time.monotonic()
    net, taken = train(symmetric=name == "symmetric", **settings)
    spent = time.monotonic() - started
    # Test what is saved: the weights in half precision.
    weights = {key: value.half() for key, value in net.state_dict().items()}
    net.load_state_dict({key: value.float() for key, value in weights.items()})
    unseen = particle_pairs(
        held_out, HELD_OUT_SIZE, seed=HELD_OUT_SEED, device=settings.get("device", "cpu")
    )
    errors = error_by_element(net, unseen["pair"], unseen["flow"])
    metadata = {
        "network": f"orbical.zoo.flownet.FlowNet {CHANNELS} {DECODERS}",
        "training set": f"orbical.datasets.particle_pairs, kinds {', '.join(TRAINED_KINDS)}",
        "moved by D4 x time reversal": str(name == "symmetric"),
        "settings": ", ".join(f"{k} {v}" for k, v in settings.items() if k != "after_step"),
        "steps": str(taken),
        "seconds": f"{spent:.0f}",
        "torch": torch.__version__,
        "held-out pairs": str(held_out),
        "held-out end-point error": f"{errors[0]:.4f}",
        "held-out end-point error over 16 elements": f"{errors.mean():.4f}",
    }
    return save(weights, Path(folder) / f"flownet-{name}.safetensors", metadata)


def main(arguments: Sequence[str] | None = None) -> None:
    """Train the networks from the command line.

    Args:
        arguments: Command-line arguments. By default, those of the process.
    """
    torch.backends.cudnn.benchmark = True  # all steps have the same size
    run_command(
        flownet, arguments, train_and_save, 100,
        steps=STEPS, seconds=math.inf, batch=BATCH, size=SIZE, seed=SEED, held_out=HELD_OUT,
        device="cuda" if torch.cuda.is_available() else "cpu",
    )  # fmt: skip


if __name__ == "__main__":
    main()
