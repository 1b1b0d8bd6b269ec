"""Training of `orbical.zoo.flownet`: new pairs in every step, moved along the orbit or not."""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from orbical.errors import InputError, unknown_name

from . import shipped
from .flownet import CHANNELS, DECODERS, NAMES, FlowNet, error_by_element, provenance

SEED = 1
STEPS = 6000
BATCH = 16
SIZE = 160
LEARNING_RATE = 1e-3
WEIGHT_DECAY = 1e-4
LEVEL_WEIGHTS = (1.0, 0.5, 0.25, 0.15)
TRAINED_KINDS = ("uniform", "vortex", "shear", "backstep", "cylinder", *("turbulence",) * 3)
HELD_OUT_SEED, HELD_OUT_SIZE = 2, 256
"""The pairs of a training step have seeds above `10**7`."""


def moved_at_random(
    pair: Tensor, flow: Tensor, generator: torch.Generator
) -> tuple[Tensor, Tensor]:
    """Move each pair and its flow by an element of D4 x time reversal of its own, drawn evenly.

    A transposition, a flip of columns, a flip of rows and a swap of the frames, each taken or not:
    these make all 16 elements.

    Args:
        pair: `[n, 2, c, h, h]`.
        flow: `[n, 2, h, h]`.
        generator: draws, on the device of the pairs.

    Returns:
        The moved pairs and flows.
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
    """Sum the end-point errors of all levels, in pixels of the finest, which counts most."""
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
    after_step: Callable[[int, Tensor], None] | None = None,
) -> tuple[FlowNet, int]:
    """Train a `FlowNet` on new pairs in every step, with AdamW and one cycle of the learning rate.

    Args:
        symmetric: move every pair by a random element of D4 x time reversal.
        steps: how many, at most.
        seconds: the cycle of the learning rate ends by then, wherever the steps are.
        size: side of the training images.
        batch: pairs a step.
        seed: of the initial weights and the pairs: the same pairs for both networks.
        device: where to train.
        after_step: called with the number of finished steps and the loss.

    Returns:
        The network in evaluation mode, and the number of steps taken.

    Example:
        >>> net, taken = train(symmetric=True, steps=1, size=32, batch=2)
        >>> taken
        1
    """
    from orbical.datasets import particle_pairs

    if steps < 1 or batch < 1 or size < 32 or size % 8:
        raise InputError(
            f"steps, batch, size: {steps}, {batch} and {size} given, at least 1 step of 1 pair of "
            "32 or more pixels, a multiple of 8, expected"
        )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        net = FlowNet()
    net.to(device)
    optimizer = torch.optim.AdamW(net.parameters(), LEARNING_RATE, weight_decay=WEIGHT_DECAY)
    chance = torch.Generator(device).manual_seed(seed)
    started, taken = time.monotonic(), 0
    while (progress := max(taken / steps, (time.monotonic() - started) / seconds)) < 1:
        for entry in optimizer.param_groups:
            entry["lr"] = LEARNING_RATE * _cycle(progress)
        made = particle_pairs(batch, size, TRAINED_KINDS, seed=seed * 10**7 + taken, device=device)
        pair, flow = made["pair"], made["flow"]
        if symmetric:
            pair, flow = moved_at_random(pair, flow, chance)
        loss = loss_of(net.levels(pair), flow)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
        taken += 1
        if after_step is not None:
            after_step(taken, loss.detach())
    return net.eval(), taken


def _cycle(progress: float) -> float:
    """Warm up over the first twentieth, then fall as a cosine to 0.

    >>> [round(_cycle(progress), 3) for progress in (0.0, 0.05, 0.525, 1.0)]
    [0.01, 1.0, 0.5, 0.0]
    """
    if progress < 0.05:
        return max(0.01, progress / 0.05)
    return (1 + math.cos(math.pi * (progress - 0.05) / 0.95)) / 2


def write(folder: Path, name: str, held_out: int = 60, **settings: Any) -> Path:
    """Train one network, test it on pairs it has not seen, and write its weights.

    The header of the file records the settings, the steps taken, the torch version, and the mean
    end-point error on held-out pairs of 256 pixels, as they are and over the 16 elements.

    Args:
        folder: made where absent.
        name: `"directed"` or `"symmetric"`.
        held_out: how many pairs to test on.
        settings: of `train`.

    Returns:
        The file.
    """
    from orbical.datasets import particle_pairs

    if name not in NAMES:
        raise unknown_name("name", name, NAMES)
    started = time.monotonic()
    net, taken = train(symmetric=name == "symmetric", **settings)
    spent = time.monotonic() - started
    # Test what is stored: the weights in half precision.
    net.load_state_dict({key: value.half().float() for key, value in net.state_dict().items()})
    unseen = particle_pairs(
        held_out, HELD_OUT_SIZE, seed=HELD_OUT_SEED, device=settings.get("device", "cpu")
    )
    errors = error_by_element(net, unseen["pair"], unseen["flow"])
    facts = {
        "network": f"orbical.zoo.flownet.FlowNet {CHANNELS} {DECODERS}",
        "training set": f"orbical.datasets.particle_pairs, kinds {', '.join(TRAINED_KINDS)}",
        "moved by D4 x time reversal": str(name == "symmetric"),
        "settings": ", ".join(
            f"{key} {value}" for key, value in settings.items() if key != "after_step"
        ),
        "steps": str(taken),
        "seconds": f"{spent:.0f}",
        "torch": torch.__version__,
        "held-out pairs": str(held_out),
        "held-out end-point error": f"{errors[0]:.4f}",
        "held-out end-point error over 16 elements": f"{errors.mean():.4f}",
    }
    weights = {key: value.half() for key, value in net.state_dict().items()}
    return shipped.write(weights, folder / f"flownet-{name}.safetensors", facts)


def main(arguments: Sequence[str] | None = None) -> None:
    """Train the networks from the command line."""
    parser = argparse.ArgumentParser(prog="python -m orbical.zoo.flownet", description=main.__doc__)
    parser.add_argument("command", choices=["train"])
    parser.add_argument("--out", type=Path, required=True, help="folder for the files")
    parser.add_argument("--names", nargs="+", choices=NAMES, default=list(NAMES))
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--seconds", type=float, default=math.inf, help="at most, for each")
    parser.add_argument("--batch", type=int, default=BATCH)
    parser.add_argument("--size", type=int, default=SIZE)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--held-out", type=int, default=60, help="pairs to test on")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    given = parser.parse_args(arguments)
    torch.backends.cudnn.benchmark = True  # all steps have one size
    for name in given.names:
        started = time.monotonic()

        def tell(done: int, loss: Tensor, name: str = name, started: float = started) -> None:
            if done % 100 == 0:
                spent = time.monotonic() - started
                print(f"{name} step {done}: loss {float(loss):.4f}, {spent:.0f} s", flush=True)

        path = write(
            given.out,
            name,
            given.held_out,
            steps=given.steps,
            seconds=given.seconds,
            size=given.size,
            batch=given.batch,
            seed=given.seed,
            device=given.device,
            after_step=tell,
        )
        for key, value in provenance(name, given.out).items():
            print(f"{name} {key}: {value}", flush=True)
        print(f"wrote {path}", flush=True)
