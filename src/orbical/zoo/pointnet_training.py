"""Training of point networks, and the weights that ship with the package:

python -m orbical.zoo.pointnet_training --out FOLDER
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from orbical.errors import InputError, MissingExtra

from . import shipped
from .pointnet import NAMES, InvariantNet, PointNet, fields_of, random_rotations

SEED = 1
STEPS = 1500
BATCH = 64
LEARNING_RATE = 2e-3
WEIGHT_DECAY = 5e-2
TRAIN_EACH, TEST_EACH, POINTS = 400, 50, 256
TRAIN_SEED, TEST_SEED = 1, 0


def train(
    net: nn.Module,
    clouds: Any,
    labels: Tensor,
    rotate: bool,
    steps: int = STEPS,
    points: int = POINTS,
    seed: int = SEED,
    after_step: Callable[[int, float], None] | None = None,
) -> nn.Module:
    """Train with AdamW and a cosine schedule; each cloud is another draw of itself each time.

    A draw takes `points` of the cloud's points, stretches each axis by 0.8 to 1.25 and moves
    each point by about 0.01. The order of clouds and draws does not depend on `rotate`, so two
    networks with one seed differ in the turning alone.

    Args:
        net: gives logits; trained in place, on the device where it lives.
        clouds: `[n, points, 3]`, or padded, `{"pos": ..., "mask": ...}`, points first.
        labels: `[n]`, int64.
        rotate: turn every cloud by a new rotation, uniform on SO(3), each time it is seen.
        steps: of the optimizer, 64 clouds each.
        points: drawn of each cloud.
        seed: of the order, the draws and the rotations.
        after_step: called with the number of finished steps and the loss.

    Returns:
        The network, in evaluation mode.

    Example:
        >>> from orbical.datasets import furniture
        >>> clouds = furniture(each=1)
        >>> net = train(PointNet(8), clouds.points, clouds.labels, rotate=True, steps=1)
        >>> net.training
        False
    """
    device = next(net.parameters()).device
    pos, mask = fields_of(clouds)
    _check(pos, labels, steps)
    pos, labels = pos.to(device), labels.to(device)
    sizes = torch.full((len(pos),), pos.shape[1]) if mask is None else mask.sum(1)
    sizes = sizes.to(device)
    draws, turns = (torch.Generator(device).manual_seed(seed + k) for k in range(2))
    optimizer = torch.optim.AdamW(net.parameters(), LEARNING_RATE, weight_decay=WEIGHT_DECAY)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    net.train()
    order = torch.empty(0, dtype=torch.int64, device=device)
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        torch.manual_seed(seed)  # of dropout
        for step in range(steps):
            if len(order) < min(BATCH, len(pos)):
                order = torch.randperm(len(pos), generator=draws, device=device)
            rows, order = order[:BATCH], order[BATCH:]
            batch = _drawn(pos[rows], sizes[rows], points, draws)
            if rotate:
                batch = batch @ random_rotations(len(rows), turns)
            loss = nn.functional.cross_entropy(net(batch), labels[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            if after_step is not None:
                after_step(step + 1, float(loss.detach()))
    return net.eval()


def _drawn(pos: Tensor, sizes: Tensor, points: int, generator: torch.Generator) -> Tensor:
    """Draw points of each cloud, stretched and shaken: `[n, points, 3]`."""
    device, count = pos.device, len(pos)
    among = torch.rand(count, points, generator=generator, device=device) * sizes[:, None]
    index = among.long().clamp_max(pos.shape[1] - 1)
    drawn = torch.gather(pos, 1, index[..., None].expand(-1, -1, 3))
    stretch = torch.rand(count, 1, 3, generator=generator, device=device) * 2 - 1
    shaken = 0.01 * torch.randn(drawn.shape, generator=generator, device=device)
    return drawn * torch.exp(math.log(1.25) * stretch) + shaken


@torch.inference_mode()
def accuracy(net: nn.Module, clouds: Any, labels: Tensor, turns: Tensor | None = None) -> float:
    """Share of clouds that a network names rightly, each turned by its own matrix if given.

    Args:
        net: gives logits.
        clouds: as in `train`.
        labels: `[n]`.
        turns: `[n, 3, 3]`.
    """
    device = next(net.parameters()).device
    pos, mask = fields_of(clouds)
    pos = pos if turns is None else pos @ turns.to(pos.device).mT
    right = 0
    for rows in torch.arange(len(pos)).split(BATCH):
        some: Any = pos[rows].to(device)
        some = some if mask is None else {"pos": some, "mask": mask[rows].to(device)}
        right += int((net(some).argmax(1).cpu() == labels[rows].cpu()).sum())
    return right / len(pos)


def make(name: str, classes: int, seed: int, widths: Sequence[int] | None = None) -> nn.Module:
    """Make an untrained network by its name; the caller's random state stays as it was.

    Example:
        >>> type(make("plain", 8, seed=0)).__name__
        'PointNet'
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        if name == "invariant":
            return InvariantNet(classes)
        return PointNet(classes) if widths is None else PointNet(classes, widths)


def write(
    folder: str | Path,
    names: Sequence[str] = NAMES,
    steps: int = STEPS,
    seed: int = SEED,
    device: str = "cpu",
    after_step: Callable[[str, int, float], None] | None = None,
) -> dict[str, Path]:
    """Train networks on generated furniture and write their weights.

    The header of each file records how it was made, and the accuracy on furniture of another
    seed, upright and under random rotations.

    Args:
        folder: made where absent.
        names: which; `"invariant"` needs e3nn.
        steps: of the optimizer, the same for all.
        seed: the same for all.
        device: where to train.
        after_step: called with the name, the number of finished steps and the loss.

    Returns:
        name -> file.
    """
    from orbical.datasets.furniture_clouds import furniture

    training = furniture(TRAIN_EACH, 4 * POINTS, TRAIN_SEED)
    test = furniture(TEST_EACH, POINTS, TEST_SEED)
    files = {}
    for name in names:

        def tell(done: int, loss: float, name: str = name) -> None:
            if after_step is not None:
                after_step(name, done, loss)

        net = make(name, len(test.classes), seed).to(device)
        train(net, training.points, training.labels, name == "augmented", steps, seed=seed,
              after_step=tell)  # fmt: skip
        turns = random_rotations(8 * len(test.labels), torch.Generator().manual_seed(0))
        again = test.points.repeat(8, 1, 1), test.labels.repeat(8)
        facts = {
            "network": f"orbical.zoo.pointnet.{type(net).__name__}",
            "classes": str(test.classes),
            "training set": f"orbical.datasets.furniture({TRAIN_EACH}, {4 * POINTS}, {TRAIN_SEED})",
            "rotate": str(name == "augmented"),
            "seed": str(seed),
            "steps": str(steps),
            "torch": torch.__version__,
            "test accuracy upright": f"{accuracy(net, test.points, test.labels):.4f}",
            "test accuracy under random rotations": f"{accuracy(net, *again, turns):.4f}",
        }
        path = Path(folder) / f"points-{name}.safetensors"
        files[name] = shipped.write(net.state_dict(), path, facts)
    return files


def main(arguments: Sequence[str] | None = None) -> None:
    """Train the networks that ship, from the command line."""
    from .pointnet import provenance

    parser = argparse.ArgumentParser(
        prog="python -m orbical.zoo.pointnet_training", description=main.__doc__
    )
    parser.add_argument("--out", type=Path, required=True, help="folder for the files")
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--names", nargs="+", choices=NAMES, default=list(NAMES))
    given = parser.parse_args(arguments)

    def show(name: str, done: int, loss: float) -> None:
        if done % 500 == 0 or done == given.steps:
            print(f"{name:>9}: step {done} of {given.steps}, loss {loss:.3f}", flush=True)

    for name in given.names:
        try:
            write(given.out, [name], given.steps, given.seed, given.device, show)
        except MissingExtra as error:
            print(f"{name:>9}: left out: {error}")
            continue
        facts = provenance(name, given.out)
        print(
            f"{name:>9}: {facts['test accuracy upright']} upright, "
            f"{facts['test accuracy under random rotations']} under random rotations"
        )


def _check(pos: Tensor, labels: Tensor, steps: int) -> None:
    if len(pos) < 2:
        raise InputError(f"clouds: {len(pos)} given, at least two expected")
    if labels.shape != pos.shape[:1] or labels.dtype != torch.int64:
        raise InputError(
            f"labels: got {labels.dtype} of shape {tuple(labels.shape)}, expected int64 of shape "
            f"({len(pos)},)"
        )
    if steps < 1:
        raise InputError(f"steps: got {steps}, expected at least 1")


if __name__ == "__main__":
    main()
