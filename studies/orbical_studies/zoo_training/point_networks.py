"""Training of the point networks whose weights ship with the package.

python -m orbical_studies.zoopoint_networks --out FOLDER
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from orbical.datasets import furniture
from orbical.errors import InputError, whole_number
from orbical.zoo import pointnet
from orbical.zoo.pointnet import WIDTHS, InvariantNet, PointNet, fields_of

from ..framework.training_loop import AfterStep, cosine, fit
from . import build, check_labels, run_command, save

SEED = 1
STEPS = 1500
BATCH = 64
LEARNING_RATE = 2e-3
WEIGHT_DECAY = 5e-2
TRAIN_EACH, TEST_EACH, POINTS = 400, 50, 256
TRAIN_SEED, TEST_SEED = 1, 0


def random_rotations(count: int, generator: torch.Generator) -> Tensor:
    """Draw rotation matrices, uniform on SO(3), from normal quaternions.

    Args:
        count: Number of matrices.
        generator: Source of random numbers; the matrices are on its device.

    Returns:
        Tensor `[count, 3, 3]`.

    Example:
        >>> turns = random_rotations(5, torch.Generator().manual_seed(0))
        >>> bool(((turns @ turns.mT - torch.eye(3)).abs() < 1e-5).all())
        True
    """
    quaternions = torch.randn(count, 4, generator=generator, device=generator.device)
    w, x, y, z = nn.functional.normalize(quaternions, dim=1).unbind(1)
    rows = [
        *(1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)),
        *(2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)),
        *(2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)),
    ]
    return torch.stack(rows, 1).reshape(-1, 3, 3)


def train(
    net: nn.Module,
    clouds: Any,
    labels: Tensor,
    rotate: bool,
    steps: int = STEPS,
    points: int = POINTS,
    seed: int = SEED,
    after_step: AfterStep | None = None,
) -> nn.Module:
    """Train with AdamW and a cosine schedule on random subsets of each cloud.

    Each time a cloud is seen, `points` of its points are drawn, each axis is stretched by 0.8 to
    1.25 and each point is moved by about 0.01. The order of clouds and draws does not depend on
    `rotate`, so two networks with the same seed differ only in the rotations.

    Args:
        net: Returns logits; trained in place, on its own device.
        clouds: Tensor `[n, points, 3]`, or padded, `{"pos": ..., "mask": ...}`, points first.
        labels: Tensor `[n]`, int64.
        rotate: Rotate every cloud by a new uniform random rotation each time it is seen.
        steps: Number of optimizer steps, of 64 clouds each.
        points: Number of points drawn from each cloud.
        seed: Seed of the order, the draws and the rotations.
        after_step: Called with the number of finished steps and the loss.

    Returns:
        The network, in evaluation mode.

    Raises:
        InputError: If the clouds, the labels or the steps cannot be used.

    Example:
        >>> from orbical.datasets import furniture
        >>> clouds = furniture(each=1)
        >>> net = train(PointNet(8), clouds.points, clouds.labels, rotate=True, steps=1)
        >>> net.training
        False
    """
    device = next(net.parameters()).device
    pos, mask = fields_of(clouds)
    if len(pos) < 2:
        raise InputError("clouds", "at least two", len(pos))
    check_labels(labels, len(pos))
    whole_number("steps", steps, 1)
    pos, labels = pos.to(device), labels.to(device)
    sizes = torch.full((len(pos),), pos.shape[1]) if mask is None else mask.sum(1)
    sizes = sizes.to(device)
    draws, turns = (torch.Generator(device).manual_seed(seed + k) for k in range(2))
    order = torch.empty(0, dtype=torch.int64, device=device)

    def loss_of(step: int) -> Tensor:
        nonlocal order
        if len(order) < min(BATCH, len(pos)):
            order = torch.randperm(len(pos), generator=draws, device=device)
        rows, order = order[:BATCH], order[BATCH:]
        batch = _drawn(pos[rows], sizes[rows], points, draws)
        if rotate:
            batch = batch @ random_rotations(len(rows), turns)
        return nn.functional.cross_entropy(net(batch), labels[rows])

    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        torch.manual_seed(seed)  # of dropout
        how = (steps, LEARNING_RATE, WEIGHT_DECAY, cosine)
        fit(net, loss_of, *how, after_step=after_step)
    return net


def _drawn(pos: Tensor, sizes: Tensor, points: int, generator: torch.Generator) -> Tensor:
    """Draw points `[n, points, 3]` of each cloud, stretched and with noise."""
    device, count = pos.device, len(pos)
    among = torch.rand(count, points, generator=generator, device=device) * sizes[:, None]
    index = among.long().clamp_max(pos.shape[1] - 1)
    drawn = torch.gather(pos, 1, index[..., None].expand(-1, -1, 3))
    stretch = torch.rand(count, 1, 3, generator=generator, device=device) * 2 - 1
    shaken = 0.01 * torch.randn(drawn.shape, generator=generator, device=device)
    return drawn * torch.exp(math.log(1.25) * stretch) + shaken


@torch.inference_mode()
def accuracy(net: nn.Module, clouds: Any, labels: Tensor, turns: Tensor | None = None) -> float:
    """Compute the accuracy of a network on clouds, each rotated by its own matrix if given.

    Args:
        net: Returns logits.
        clouds: Clouds, as in `train`.
        labels: Tensor `[n]`.
        turns: Rotation matrices `[n, 3, 3]`.

    Returns:
        The share of clouds that are classified correctly.
    """
    device = next(net.parameters()).device
    pos, mask = fields_of(clouds)
    pos = pos if turns is None else pos @ turns.to(pos.device).mT
    correct = 0
    for rows in torch.arange(len(pos)).split(BATCH):
        some: Any = pos[rows].to(device)
        some = some if mask is None else {"pos": some, "mask": mask[rows].to(device)}
        correct += int((net(some).argmax(1).cpu() == labels[rows].cpu()).sum())
    return correct / len(pos)


def make(name: str, classes: int, seed: int, widths: Sequence[int] | None = None) -> nn.Module:
    """Build an untrained network by name, without changing the global random state.

    Args:
        name: `"plain"`, `"augmented"` or `"invariant"`.
        classes: Number of classes.
        seed: Seed of the weights.
        widths: Widths of a `PointNet`. By default, its own.

    Returns:
        The network.

    Example:
        >>> type(make("plain", 8, seed=0)).__name__
        'PointNet'
    """
    if name == "invariant":
        return build(lambda: InvariantNet(classes), seed)
    return build(lambda: PointNet(classes, widths or WIDTHS), seed)


def train_and_save(
    folder: str | Path,
    name: str,
    steps: int = STEPS,
    seed: int = SEED,
    device: str = "cpu",
    after_step: AfterStep | None = None,
) -> Path:
    """Train a network on generated furniture and save its weights.

    The header of the file records the settings, and the accuracy on furniture of another seed,
    upright and under random rotations.

    Args:
        folder: Folder for the file; created if it does not exist.
        name: Name of the network; `"invariant"` needs e3nn.
        steps: Number of optimizer steps.
        seed: Seed of the training.
        device: Device to train on.
        after_step: Called with the number of finished steps and the loss.

    Returns:
        The path of the file.
    """
    training = furniture(TRAIN_EACH, 4 * POINTS, TRAIN_SEED)
    test = furniture(TEST_EACH, POINTS, TEST_SEED)
    net = make(name, len(test.classes), seed).to(device)
    rotate = name == "augmented"
    train(net, training.points, training.labels, rotate, steps, seed=seed, after_step=after_step)
    turns = random_rotations(8 * len(test.labels), torch.Generator().manual_seed(0))
    repeated = test.points.repeat(8, 1, 1), test.labels.repeat(8)
    metadata = {
        "network": f"orbical.zoo.pointnet.{type(net).__name__}",
        "classes": str(test.classes),
        "training set": f"orbical.datasets.furniture({TRAIN_EACH}, {4 * POINTS}, {TRAIN_SEED})",
        "rotate": str(rotate),
        "seed": str(seed),
        "steps": str(steps),
        "torch": torch.__version__,
        "test accuracy upright": f"{accuracy(net, test.points, test.labels):.4f}",
        "test accuracy under random rotations": f"{accuracy(net, *repeated, turns):.4f}",
    }
    return save(net.state_dict(), Path(folder) / f"points-{name}.safetensors", metadata)


def main(arguments: Sequence[str] | None = None) -> None:
    """Train the networks from the command line.

    Args:
        arguments: Command-line arguments. By default, those of the process.
    """
    run_command(
        pointnet, arguments, train_and_save, 500,
        steps=STEPS, seed=SEED, device="cpu",
    )  # fmt: skip


if __name__ == "__main__":
    main()
